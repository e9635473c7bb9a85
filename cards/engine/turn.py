"""A turn: one user message, and everything an engine can do about it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from cards.engine.block import Context
from cards.engine.input import TurnInput
from cards.engine.scope import Scope
from cards.engine.values import count_or_unset, number_or_unset, text_or_unset
from cards.log.changes import session_titled
from cards.protocol.envelope import Metrics
from cards.protocol.hints import MAX_TITLE_CHARS, shorten
from cards.protocol.ids import MAIN_AGENT
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import SessionEventKind
from cards.protocol.payloads import UpdatedInner


class HistoryEntry(NamedTuple):
    """What was said in an earlier turn; `role` is "user" or "assistant"."""

    role: str
    text: str
    turn_no: int


class TurnMetrics:
    """What the turn cost, summed up for its close. Spec: EMIT 3.4."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._cost_usd: float | None = None
        self._model: str | None = None

    def add(
        self,
        *,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cost_usd: float | None = None,
        model: str | None = None,
    ) -> None:
        """Add what one model call cost; None adds nothing, the last model stays."""
        counts = {
            "tokens_in": tokens_in,
            "tokens_out": tokens_out,
            "cache_read_tokens": cache_read_tokens,
            "cache_write_tokens": cache_write_tokens,
        }
        for name, count in counts.items():
            usable = count_or_unset(count)
            if usable is not UNSET:
                self._counts[name] = self._counts.get(name, 0) + usable
        cost = number_or_unset(cost_usd)
        if cost is not UNSET:
            self._cost_usd = (self._cost_usd or 0.0) + cost
        self._model = model or self._model

    def total(self) -> Metrics:
        """Return the sums."""
        return msgspec.structs.replace(
            Metrics(
                cost_usd=number_or_unset(self._cost_usd),
                model=text_or_unset(self._model),
            ),
            # A sum of numbers that a browser can hold may be one that it cannot.
            **{name: count_or_unset(count) for name, count in self._counts.items()},
        )


class Turn(Scope):
    """One user message being answered. Spec: engine-api.md, Turn.

    Attributes:
        session_id: Public id of the session.
        trace_id: Its durable trace.
        run_id: Id of this run.
        turn_no: Position in the session, from 1.
        input: The user's message.
        history: Earlier turns, oldest first, bounded.
        metrics: What the turn cost.
    """

    def __init__(
        self,
        context: Context,
        *,
        session_id: str,
        session_pk: int,
        trace_id: str,
        turn_no: int,
        input: TurnInput,  # noqa: A002 - the wire's word
        history: Sequence[HistoryEntry],
        topics_shown: set[str],
        injections: "asyncio.Queue[str]",
    ) -> None:
        super().__init__(
            context,
            agent_id=MAIN_AGENT,
            agent_run_id=context.run_id,
            topics_shown=topics_shown,
        )
        self.session_id = session_id
        self.trace_id = trace_id
        self.run_id = context.run_id
        self.turn_no = turn_no
        self.input = input
        self.history = history
        self.metrics = TurnMetrics()
        self._session_pk = session_pk
        self._injections = injections

    async def injections(self) -> AsyncIterator[str]:
        """Give what the user says into the running turn, as it comes.

        The words are in the log already. The iteration ends with the turn, not by
        itself: run it in a task of its own, or leave it.

        Spec: Ruling E23; engine-api.md, Turn.
        """
        while True:
            yield await self._injections.get()

    @property
    def card_id(self) -> str:
        """Id of the turn's card."""
        return self._context.turn_card.card_id

    async def set_title(self, text: str) -> None:
        """Name the session; blank text changes nothing. Spec: Ruling E29."""
        title = shorten(clean_text(text), MAX_TITLE_CHARS)
        if not title or not self._context.may_emit():
            return
        builder = self._context.builder
        builder.session_event(
            SessionEventKind.UPDATED,
            UpdatedInner(title=title),
            changes=(session_titled(session_pk=self._session_pk, title=title),),
        )
        await builder.writer.breathe()
