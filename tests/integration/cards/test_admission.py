"""How many may be here, how much they may say, and how long.

Spec: Ruling E27; issue "Liveness and ownership" 8, 9; case HC-62.
"""

import asyncio

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from cards.access_tokens import find_token
from cards.admission import FEW_RATES, Admission
from cards.authentication import Identity
from cards.database import run_in_database
from cards.principals import ANONYMOUS, user_principal
from cards.protocol.client_messages import (
    Ping,
    PromptUserResponse,
    SessionInterrupt,
    UserMessage,
)
from cards.protocol.errors import RemoteProtocolError
from tests.integration.cards.test_identity import token_of


@pytest.fixture
def ann(transactional_db: None) -> User:
    return User.objects.create_user("ann", password="pw")


class TestAdmission:
    def admission(self, **limits: int) -> Admission:
        return Admission(
            **{"max_connections": 0, "messages_per_minute": 0} | limits,
            check_interval_s=0,
        )

    async def test_sends_away_whose_right_has_ended(self, ann: User) -> None:
        closed: list[tuple[str, int]] = []
        row = await run_in_database(find_token, await run_in_database(token_of, ann))
        assert row is not None
        admission = self.admission()
        admission.enter(
            Identity(principal=user_principal(ann.pk), token_pk=row.pk),
            lambda code: closed.append(("ann", code)),
        )
        admission.enter(
            Identity(principal=ANONYMOUS), lambda code: closed.append(("guest", code))
        )
        await admission.check()
        assert closed == []

        await run_in_database(row.delete)
        await admission.check()

        assert closed == [("ann", 1008)]

    async def test_hears_nothing_more_from_them(self, ann: User) -> None:
        """A client may leave the close frame unanswered, and go on to send."""
        row = await run_in_database(find_token, await run_in_database(token_of, ann))
        assert row is not None
        admission = self.admission()
        identity = Identity(principal=user_principal(ann.pk), token_pk=row.pk)
        visit = admission.enter(identity, print)
        visit.admit(UserMessage(text="hi"))
        await run_in_database(row.delete)
        await admission.check()

        for message in (UserMessage(text="hi"), SessionInterrupt(), Ping()):
            with pytest.raises(RemoteProtocolError) as refusal:
                visit.admit(message)
            assert refusal.value.error.code == "SIGNED_OUT"

    async def test_goes_on_looking_after_trouble(
        self,
        ann: User,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """A database that is away sends nobody away."""
        answers: list[Exception] = [OperationalError("away"), RuntimeError("odd")]
        closed_after: asyncio.Queue[int] = asyncio.Queue()

        def look(identities: set[Identity]) -> set[Identity]:
            if answers:
                raise answers.pop(0)
            return set()

        monkeypatch.setattr("cards.admission.still_valid", look)
        admission = Admission(
            max_connections=0, messages_per_minute=0, check_interval_s=0.001
        )
        identity = Identity(principal=user_principal(ann.pk), session_key="key")
        admission.enter(identity, lambda _: closed_after.put_nowait(len(answers)))
        admission.start()
        async with asyncio.timeout(30):
            assert await closed_after.get() == 0
        await admission.stop()

        assert "were not looked at: away" in caplog.text
        assert "broke down" in caplog.text

    async def test_counts_the_connections_of_a_principal(self) -> None:
        admission = self.admission(max_connections=2)
        ann, bob = (Identity(principal=user_principal(pk)) for pk in (1, 2))
        first = admission.enter(ann, print)
        admission.enter(ann, print)

        with pytest.raises(RemoteProtocolError) as refusal:
            admission.enter(ann, print)
        assert refusal.value.error.code == "TOO_MANY_CONNECTIONS"
        admission.enter(bob, print)
        admission.leave(first)
        admission.leave(first)
        admission.enter(ann, print)

    async def test_counts_messages_of_a_principal_on_all_its_connections(self) -> None:
        admission = self.admission(messages_per_minute=3)
        ann = Identity(principal=user_principal(1))
        visits = [admission.enter(ann, print) for _ in "ab"]
        for visit in (*visits, visits[0]):
            visit.admit(UserMessage(text="hi"))
        for visit in visits:
            admission.leave(visit)

        again = admission.enter(ann, print)
        with pytest.raises(RemoteProtocolError) as refusal:
            again.admit(UserMessage(text="hi"))
        error = refusal.value.error
        assert (error.type, error.code) == ("rate_limit", "RATE_LIMITED")
        assert isinstance(error.retry_after_ms, int)
        assert error.retry_after_ms > 0

    async def test_never_counts_an_answer(self) -> None:
        """Case HC-62."""
        admission = self.admission(messages_per_minute=1)
        visit = admission.enter(Identity(principal=user_principal(1)), print)
        answer = PromptUserResponse(request_id="req_1", decision="approved")
        for _ in range(100):
            for message in (answer, Ping(), SessionInterrupt()):
                visit.admit(message)
        visit.admit(UserMessage(text="hi"))

    async def test_is_not_shared_between_anonymous_clients(self) -> None:
        admission = self.admission(max_connections=1, messages_per_minute=1)
        for _ in range(5):
            visit = admission.enter(Identity(principal=ANONYMOUS), print)
            visit.admit(UserMessage(text="hi"))

    async def test_forgets_who_is_gone_and_silent(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Memory is bounded by who was here within the last minute."""
        now = 0.0
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: now)
        admission = self.admission(messages_per_minute=1)
        # Ann has spoken just now, and is gone when the others come.
        identities = [Identity(principal=user_principal(pk)) for pk in range(5000)]
        for identity in identities[1:2500]:
            admission.leave(admission.enter(identity, print))
        ann = admission.enter(identities[0], print)
        ann.admit(UserMessage(text="hi"))
        admission.leave(ann)
        for identity in identities[2500:]:
            admission.leave(admission.enter(identity, print))

        assert len(admission._rates) <= 2 * FEW_RATES
        assert not admission._counts
        with pytest.raises(RemoteProtocolError, match="too many messages"):
            admission.enter(identities[0], print).admit(UserMessage(text="hi"))
