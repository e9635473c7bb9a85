"""Frames as the references send them: the size and shape of ours, nothing checked."""

from typing import Final

_ENVELOPE: Final = (
    '"envelope":{"event_id":"evt_0123456789abcdef0123",'
    '"session_id":"sess_0123456789abcdef0123",'
    '"trace_id":"tr_0123456789abcdef01234567",'
)
_ORIGIN: Final = (
    '"timestamp":"2026-01-01T00:00:00.000Z",'
    '"agent_id":"main","agent_role":"persona",'
    '"agent_run_id":"run_0123456789abcdef","severity":"info"}'
)


def append_frame(seq: int, chunk: str) -> str:
    """Return the `card.append` that carries a chunk; chunks need no escaping."""
    return (
        f'{{"type":"card.append",{_ENVELOPE}"card_id":"msg_0123456789abcdef",'
        f'"parent_card_id":"turn_0123456789abcdef","card_kind":"message","seq":{seq},'
        f'{_ORIGIN},"payload":{{"channel":"text","chunk":"{chunk}"}}}}'
    )


def turn_closed_frame(seq: int) -> str:
    """Return the `card.close` of a turn, the last frame of an order."""
    return (
        f'{{"type":"card.close",{_ENVELOPE}"card_id":"turn_0123456789abcdef",'
        f'"card_kind":"turn","seq":{seq},{_ORIGIN},"payload":{{"status":"ok"}}}}'
    )
