"""The sessions that this process has live, each once."""

from cards.clock import Entropy
from cards.database import WriteBatches, run_in_database
from cards.live.runtime import RuntimeSettings
from cards.live.session import LiveSession
from cards.log.committer import Committer
from cards.operations import SessionTaken
from cards.principals import Principal
from cards.protocol.ids import mint_session_id
from cards.queries import (
    SessionRecord,
    find_session,
    find_session_of_trace,
    newest_seq,
)


class Hub:
    """Finds, makes and lets go of live sessions; one per process.

    Args:
        committer: Writes the log for all of them.
        settings: For their runtimes.
        queue_limit: Messages that may wait in one session. Spec: Ruling E9.
    """

    def __init__(
        self, *, committer: Committer, settings: RuntimeSettings, queue_limit: int
    ) -> None:
        self._committer = committer
        self._writes = WriteBatches()
        self._settings = settings
        self._entropy = Entropy()
        # A session without a row belongs to nobody yet: two principals who name the
        # same new id each have their own, until one of them makes the row.
        self._sessions: dict[tuple[Principal, str], LiveSession] = {}
        self.queue_limit = queue_limit

    @property
    def entropy(self) -> Entropy:
        """Randomness for ids."""
        return self._entropy

    @property
    def model(self) -> str:
        """Name of the engine's model; "" for none."""
        return self._settings.engine.model

    async def attach(self, session_id: str | None, principal: Principal) -> LiveSession:
        """Return a session of the principal, with or without a row yet.

        Args:
            session_id: None mints one.

        Raises:
            SessionTaken: Somebody else owns a session of that id.

        Spec: Rulings E1, E27.
        """
        if session_id is None:
            return self._enter(mint_session_id(self._entropy.hex), principal, None, 0)
        live = self._sessions.get((principal, session_id))
        if live is not None:
            return live
        record = await run_in_database(find_session, session_id)
        if record is not None and record.principal != principal:
            raise SessionTaken(session_id)
        newest = await run_in_database(newest_seq, record.pk) if record else 0
        # Another connection may have been faster while the database was asked.
        live = self._sessions.get((principal, session_id))
        return live or self._enter(session_id, principal, record, newest)

    async def attach_to_trace(
        self, trace_id: str, principal: Principal
    ) -> LiveSession | None:
        """Return the principal's session of that trace; None if there is none."""
        session_id = await run_in_database(find_session_of_trace, trace_id, principal)
        return None if session_id is None else await self.attach(session_id, principal)

    def _enter(
        self,
        session_id: str,
        principal: Principal,
        record: SessionRecord | None,
        newest: int,
    ) -> LiveSession:
        self._sweep()
        live = LiveSession(
            session_id=session_id,
            principal=principal,
            record=record,
            newest=newest,
            committer=self._committer,
            writes=self._writes,
            settings=self._settings,
            entropy=self._entropy,
        )
        self._sessions[principal, session_id] = live
        return live

    def release(self, live: LiveSession) -> None:
        """Let a session go once nobody follows it and nothing runs in it."""
        if live.is_idle:
            self._sessions.pop((live.principal, live.session_id), None)

    def _sweep(self) -> None:
        # Sessions whose turn outlived their sockets are let go here.
        for key in [key for key, live in self._sessions.items() if live.is_idle]:
            del self._sessions[key]
