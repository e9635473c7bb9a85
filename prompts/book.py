"""The prompt book: what cards needs of this app.

Each write is one conditional change whose row count decides, within the caller's
transaction; each change that goes with a frame is one the log makes.

Spec: Rulings E15 to E18, E24; design.md 5.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Q, QuerySet

from cards.log.store import RowChange
from cards.ports import NewWait, OpenPrompt, Settlement
from cards.protocol.client_messages import (
    PromptUserResponse,
    ToolResult,
    nothing_waits,
)
from cards.protocol.json_form import JSONValue, json_form
from cards.protocol.kinds import PromptKind
from cards.protocol.snapshot import decode_stored
from prompts.models import PendingWait, PermissionGrant
from prompts.protocol.answers import CheckedAnswer, check_answer
from prompts.protocol.continuations import continuation_text
from prompts.protocol.permission_keys import permission_key

#: The kind of a wait for a client's tool.
CLIENT_TOOL = "client_tool"

State = PendingWait.State


class StoredPromptBook:
    """Keeps prompts in the database; see `cards.ports.PromptBook`.

    Args:
        time_to_live: Of an unanswered prompt; None for ever. Spec: Ruling E17.
    """

    def __init__(self, *, time_to_live: timedelta | None) -> None:
        self._time_to_live = time_to_live

    # Opening and removing.

    def open_wait(self, wait: NewWait) -> None:
        """See `PromptBook.open_wait`."""
        timeout = timedelta(milliseconds=wait.timeout_ms)
        PendingWait.objects.create(
            request_id=wait.request_id,
            session_id=wait.session_pk,
            turn_id=wait.turn_pk,
            kind=wait.kind,
            created_at=wait.created_at,
            expires_at=wait.created_at + self._time_to_live
            if self._time_to_live
            else None,
            deadline_at=wait.created_at + timeout if timeout else None,
        )

    @staticmethod
    def wait_shown(request_id: str, *, frame: bytes, seq: int) -> RowChange:
        """See `PromptBook.wait_shown`."""
        return RowChange(
            "UPDATE prompts_pendingwait SET state = 'pending', frame = %s, seq = %s"
            " WHERE request_id = %s AND state = 'opening'",
            (frame, seq, request_id),
            1,
        )

    @staticmethod
    def wait_removed(
        session_pk: int, request_id: str, decision: str, now: datetime
    ) -> tuple[RowChange, ...]:
        """See `PromptBook.wait_removed`."""
        return (
            RowChange(
                "DELETE FROM prompts_pendingwait WHERE request_id = %s",
                (request_id,),
                1,
            ),
            RowChange(
                "INSERT INTO prompts_settledprompt"
                " (session_id, request_id, decision, settled_at)"
                " VALUES (%s, %s, %s, %s)",
                (session_pk, request_id, decision, now),
                1,
            ),
        )

    @staticmethod
    def wait_dropped(request_id: str) -> None:
        """See `PromptBook.wait_dropped`."""
        PendingWait.objects.filter(request_id=request_id).delete()

    # Answering.

    @staticmethod
    def open_prompts(session_pk: int, now: datetime) -> list[OpenPrompt]:
        """See `PromptBook.open_prompts`."""
        rows = open_waits(now).filter(session_id=session_pk)
        return [_open_prompt(row) for row in rows.order_by("seq")]

    @staticmethod
    def may_be_settled(session_pk: int, request_id: str) -> bool:
        """See `PromptBook.may_be_settled`."""
        return _is_there(
            "request_id = %s AND session_id = %s AND state = 'pending'",
            request_id,
            session_pk,
        )

    @staticmethod
    def claim_answer(
        session_pk: int,
        answer: PromptUserResponse,
        now: datetime,
        *,
        reason: str = "",
    ) -> None:
        """See `PromptBook.claim_answer`.

        Args:
            reason: Shown to the user with the reply.
        """
        rows = open_waits(now).filter(
            session_id=session_pk, request_id=answer.request_id
        )
        row = rows.first()
        if row is None:
            raise nothing_waits(answer)
        checked = check_answer(
            PromptKind(row.kind),
            inner_of(bytes(row.frame)),
            decision=answer.decision,
            payload=answer.payload,
        )
        is_claimed = rows.update(
            state=State.SETTLED,
            decision=checked.decision,
            answer=checked.payload,
            rejection=checked.rejection,
            reason=reason,
            settled_at=now,
        )
        if not is_claimed:
            raise nothing_waits(answer)
        _remember(session_pk, checked, now)

    @staticmethod
    def claim_result(session_pk: int, result: ToolResult, now: datetime) -> None:
        """See `PromptBook.claim_result`."""
        is_claimed = PendingWait.objects.filter(
            session_id=session_pk,
            request_id=result.tool_use_id,
            kind=CLIENT_TOOL,
            state=State.PENDING,
            # Its card is closed as soon as nobody runs the turn any more.
            turn__state="running",
        ).update(
            state=State.SETTLED,
            decision="success" if result.status == "ok" else result.status,
            answer={
                "output": json_form(result.output),
                "error": json_form(result.error),
                "metadata": json_form(result.metadata or {}),
            },
            settled_at=now,
        )
        if not is_claimed:
            raise nothing_waits(result)

    # Time.

    @staticmethod
    def lapse(request_id: str, now: datetime) -> bool:
        """See `PromptBook.lapse`."""
        rows = _overdue(now).filter(request_id=request_id)
        return rows.update(**_lapsed(now)) == 1

    def lapse_due(self, now: datetime, *, limit: int) -> int:
        """See `PromptBook.lapse_due`."""
        due = _overdue(now).order_by("deadline_at").values_list("pk", flat=True)
        return len(self.lapse_all(list(due[:limit]), now))

    def lapse_expired(self, now: datetime, *, limit: int) -> int:
        """See `PromptBook.lapse_expired`."""
        rows = PendingWait.objects.filter(state=State.PENDING, expires_at__lte=now)
        expired = rows.exclude(kind=CLIENT_TOOL).order_by("expires_at")
        pks = list(expired.values_list("pk", flat=True)[:limit])
        return len(self.lapse_all(pks, now))

    @staticmethod
    def lapse_all(pks: Sequence[int], now: datetime) -> list[int]:
        """Settle these waits with `timeout` if they are open; return which were.

        Needs an open transaction.
        """
        rows = PendingWait.objects.filter(pk__in=pks, state=State.PENDING)
        # In one order, or two sweeps would wait for each other in a circle.
        locked = rows.order_by("pk").select_for_update()
        lapsed = list(locked.values_list("pk", flat=True))
        PendingWait.objects.filter(pk__in=lapsed).update(**_lapsed(now))
        return lapsed

    @staticmethod
    def expire(session_pk: int, request_id: str, now: datetime, *, reason: str) -> None:
        """Settle an open prompt with `timeout`, whatever its time.

        Args:
            reason: Shown to the user with the reply.

        Raises:
            RemoteProtocolError: Nothing waits under this id.
        """
        rows = open_waits(now).filter(session_id=session_pk, request_id=request_id)
        if not rows.update(**_lapsed(now), reason=reason):
            raise nothing_waits(
                PromptUserResponse(request_id=request_id, decision="timeout")
            )

    # What is settled.

    @staticmethod
    def settlements(session_pks: Sequence[int]) -> list[Settlement]:
        """See `PromptBook.settlements`."""
        rows = _settled().filter(session_id__in=session_pks)
        return [_settlement(row) for row in rows.order_by("settled_at", "pk")]

    @staticmethod
    def has_settlements(session_pk: int) -> bool:
        """See `PromptBook.has_settlements`."""
        return _is_there("session_id = %s AND state = 'settled'", session_pk)

    @staticmethod
    def is_settled(request_id: str) -> bool:
        """See `PromptBook.is_settled`."""
        return _settled().filter(request_id=request_id).exists()

    @staticmethod
    def sessions_with_settlements(*, limit: int) -> list[int]:
        """See `PromptBook.sessions_with_settlements`."""
        pks = _settled().order_by("session_id").values_list("session_id", flat=True)
        return list(pks.distinct()[:limit])

    @staticmethod
    def continuation_text(settlement: Settlement) -> str | None:
        """See `PromptBook.continuation_text`."""
        if settlement.is_lapsed:
            return None
        return continuation_text(
            PromptKind(settlement.kind),
            inner_of(settlement.frame),
            decision=settlement.decision,
            payload=settlement.payload,
        )

    @staticmethod
    def prompt_of(settlement: Settlement) -> dict[str, JSONValue]:
        """See `PromptBook.prompt_of`."""
        return inner_of(settlement.frame)

    # What was allowed.

    @staticmethod
    def permission_key(tool_name: str, tool_input: object) -> str:
        """See `PromptBook.permission_key`."""
        return permission_key(tool_name, tool_input)

    @staticmethod
    def is_granted(session_pk: int, permission_key: str) -> bool:
        """See `PromptBook.is_granted`."""
        grants = PermissionGrant.objects.filter(session_id=session_pk)
        return grants.filter(permission_key=permission_key).exists()

    # What an operator had sent again.

    @staticmethod
    def resent(since: datetime, now: datetime) -> list[OpenPrompt]:
        """See `PromptBook.resent`."""
        rows = open_waits(now).filter(resent_at__gte=since)
        return [_open_prompt(row) for row in rows.order_by("seq")]


def _is_there(condition: str, *parameters: int | str) -> bool:
    # As SQL, because every turn and every answer passes here: see
    # docs/decisions/0005-sql-where-every-message-passes.md.
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT 1 FROM prompts_pendingwait WHERE {condition} LIMIT 1",  # noqa: S608
            parameters,
        )
        return cursor.fetchone() is not None


def open_waits(now: datetime) -> QuerySet[PendingWait]:
    """Return the prompts that may be answered. Spec: Ruling E17."""
    return PendingWait.objects.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        Q(deadline_at=None) | Q(deadline_at__gt=now),
        state=State.PENDING,
    ).exclude(kind=CLIENT_TOOL)


def inner_of(frame: bytes) -> dict[str, JSONValue]:
    """Return what a prompt's frame asks."""
    inner = decode_stored(frame).payload["inner"]
    if not isinstance(inner, dict):
        raise TypeError("the inner of a prompt is an object")
    return inner


def _overdue(now: datetime) -> QuerySet[PendingWait]:
    return PendingWait.objects.filter(state=State.PENDING, deadline_at__lte=now)


def _lapsed(now: datetime) -> dict[str, object]:
    return {
        "state": State.SETTLED,
        "decision": "timeout",
        "is_lapsed": True,
        "answer": {},
        "settled_at": now,
    }


def _settled() -> QuerySet[PendingWait]:
    return PendingWait.objects.filter(state=State.SETTLED)


def _remember(session_pk: int, checked: CheckedAnswer, now: datetime) -> None:
    if checked.granted_key:
        PermissionGrant.objects.get_or_create(
            session_id=session_pk,
            permission_key=checked.granted_key,
            defaults={"granted_at": now},
        )


def _open_prompt(row: PendingWait) -> OpenPrompt:
    return OpenPrompt(
        session_pk=row.session_id,
        request_id=row.request_id,
        seq=row.seq or 0,
        frame=bytes(row.frame),
        resent_at=row.resent_at,
    )


def _settlement(row: PendingWait) -> Settlement:
    return Settlement(
        request_id=row.request_id,
        session_pk=row.session_id,
        turn_pk=row.turn_id,
        kind=row.kind,
        decision=row.decision,
        is_lapsed=row.is_lapsed,
        payload=row.answer or {},
        reason=row.reason,
        rejection=row.rejection,
        frame=bytes(row.frame),
    )
