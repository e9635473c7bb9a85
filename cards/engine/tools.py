"""The block of a tool call."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
from msgspec import UNSET

from cards.engine.artifacts import Artifact, refs_of
from cards.engine.block import Block, Context
from cards.engine.errors import error_info
from cards.engine.values import (
    NoteSeverity,
    count_or_unset,
    fraction_or_unset,
    json_or_unset,
    one_of,
    text_or_unset,
)
from cards.protocol.card_tree import Card
from cards.protocol.errors import ErrorInfo
from cards.protocol.ids import is_safe_id
from cards.protocol.json_form import clean_text, json_form
from cards.protocol.kinds import CardKind, CloseStatus, Severity, TickKind
from cards.protocol.payloads import (
    HeartbeatInner,
    IntentInner,
    NoteInner,
    Payload,
    ProgressInner,
    TickPayload,
    ToolPayload,
)

#: What `Tool.set` may change while the call runs.
_SETTABLE = frozenset(
    {
        "input",
        "intent",
        "render_hint",
        "language",
        "file_path",
        "metadata",
        "phase",
        "phase_hint",
    }
)
_JSON_FIELDS = frozenset({"input", "metadata"})


class Tool(Block):
    """One tool call that the server runs. Spec: EMIT 10, 11, 14."""

    kind: ClassVar[CardKind] = CardKind.TOOL

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        agent_id: str,
        agent_run_id: str | None,
        name: str,
        input: object,  # noqa: A002 - the wire's word
        intent: str | None,
        call_id: str | None,
    ) -> None:
        super().__init__(
            context, parent=parent, agent_id=agent_id, agent_run_id=agent_run_id
        )
        self._name = clean_text(name).strip() or "tool"
        self._input = input
        self._intent = intent
        self._call_id = call_id
        self._result: ToolPayload | None = None
        self._error: ErrorInfo | None = None

    def _opening(self) -> Payload:
        return ToolPayload(
            name=self._name,
            target="server",
            intent=text_or_unset(self._intent),
            input=json_or_unset(self._input),
        )

    def _wanted_card_id(self) -> str | None:
        # Ruling E7: the model's call id when it is safe and unused.
        if self._call_id is not None and is_safe_id(self._call_id):
            return self._call_id
        return None

    async def set(self, **fields: object) -> None:
        """Change fields of the card while the call runs; None and "" change nothing.

        Raises:
            TypeError: A field that a tool card does not have or that may not change.

        Spec: EMIT 6.2.
        """
        unknown = set(fields) - _SETTABLE
        if unknown:
            allowed = ", ".join(sorted(_SETTABLE))
            raise TypeError(f"cannot set {min(unknown)!r}; allowed: {allowed}")
        forms = {
            name: json_form(value)
            if name in _JSON_FIELDS
            else text_or_unset(str(value))
            for name, value in fields.items()
            if value is not None
        }
        patch = msgspec.structs.replace(ToolPayload(), **forms)
        if patch != ToolPayload():
            self.context.builder.set(self.card, patch)
        await self.context.builder.writer.breathe()

    async def heartbeat(self, stage: str | None = None) -> None:
        """Show that the call is alive; throttled, the newest wins. Spec: EMIT 11."""
        uptime_ms = self.context.builder.now_ms() - self.card.opened_ms
        inner = HeartbeatInner(stage=text_or_unset(stage), uptime_ms=max(0, uptime_ms))
        await self._tick(TickKind.HEARTBEAT, inner)

    async def progress(  # noqa: PLR0917 - the signature is the API
        self,
        stage: str | None = None,
        progress_pct: float | None = None,
        items_processed: int | None = None,
        items_total: int | None = None,
        unit: str | None = None,
        eta_ms: int | None = None,
    ) -> None:
        """Show how far the call has come; throttled, the newest wins.

        Args:
            stage: What is being done.
            progress_pct: From 0 to 1.
            items_processed: How many of the items are done.
            items_total: How many there are.
            unit: What the items are, such as "files".
            eta_ms: Milliseconds that it will probably still take.

        Spec: EMIT 11; Ruling E20.
        """
        inner = ProgressInner(
            stage=text_or_unset(stage),
            progress_pct=fraction_or_unset(progress_pct),
            items_processed=count_or_unset(items_processed),
            items_total=count_or_unset(items_total),
            unit=text_or_unset(unit),
            eta_ms=count_or_unset(eta_ms),
        )
        await self._tick(TickKind.PROGRESS, inner)

    async def intent(self, text: str) -> None:
        """Say what the call is about to do; never dropped. Spec: EMIT 11."""
        await self._tick(TickKind.INTENT, IntentInner(intent=clean_text(text)))

    async def note(self, text: str, severity: str = "info") -> None:
        """Remark something beside the work; never dropped.

        Raises:
            ValueError: The severity is not info, warn or error.

        Spec: EMIT 11.
        """
        word = one_of("severity", severity, NoteSeverity)
        inner = NoteInner(text=clean_text(text), severity=Severity(word))
        await self._tick(TickKind.NOTE, inner)

    async def _tick(self, kind: TickKind, inner: Payload) -> None:
        self.context.builder.tick(self.card, TickPayload(kind=kind, inner=inner))
        await self.context.builder.writer.breathe()

    def result(
        self,
        output: object,
        *,
        render_hint: str | None = None,
        language: str | None = None,
        file_path: str | None = None,
        artifacts: Sequence[Artifact] = (),
        details: object = None,
        metadata: object = None,
    ) -> None:
        """Record what the call gave, for the close.

        Args:
            output: Text as a rule; anything with a JSON form.
            render_hint: How to show it: terminal, code, diff, search, file_info.
            language: Of code.
            file_path: That the output is about.
            artifacts: What it gave as files; those kept within the block are named
                without it.
            details: More facts for programs.
            metadata: More facts about the call itself.

        Raises:
            TypeError: `artifacts` holds something else.

        Spec: EMIT 10.
        """
        form = json_form(output)
        self._result = ToolPayload(
            output=UNSET if form is None else form,
            render_hint=text_or_unset(render_hint),
            language=text_or_unset(language),
            file_path=text_or_unset(file_path),
            artifacts=refs_of(artifacts) or UNSET,
            details=json_or_unset(details),
            metadata=json_or_unset(metadata),
        )

    def fail(
        self,
        type: str,  # noqa: A002 - the wire's word
        message: str,
        *,
        code: str | None = None,
        retryable: bool | None = None,
    ) -> None:
        """Record that the call failed, for the close; a result stays beside it.

        Raises:
            ValueError: The type is not one of EMIT 12.

        Spec: EMIT 12; Ruling E11.
        """
        self._error = error_info(type, message, code=code, retryable=retryable)

    def _ending(self) -> tuple[CloseStatus, ErrorInfo | None]:
        if self._error is not None:
            return CloseStatus.FAILED, self._error
        return CloseStatus.OK, None

    def _inner(self) -> Payload | None:
        return self._naming_made(self._result, ToolPayload)
