"""The decision on a client's wish to continue where it stopped.

Spec: EMIT 2.4.1; Ruling E5.
"""

from dataclasses import dataclass

from cards.protocol.kinds import ResumeFailure


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """The closed range of seqs that follow; empty when from_seq = to_seq + 1."""

    from_seq: int
    to_seq: int


def plan_replay(
    *, last_seq: int, oldest_seq: int, newest_seq: int
) -> ReplayRange | ResumeFailure:
    """Return the seqs that a client having seen `last_seq` still needs.

    Args:
        last_seq: Highest seq that the client applied; 0 asks for everything kept.
        oldest_seq: Lowest seq in the log; newest_seq + 1 when the log is empty.
        newest_seq: Highest seq that was ever committed; 0 for none.

    Returns:
        The range; `UNKNOWN_TRACE` when the client is ahead of the log;
        `EVENTS_EXPIRED` when the first seq it needs was pruned.

    Raises:
        ValueError: A seq is negative.

    Spec: EMIT 2.4.1; Ruling E5.
    """
    if min(last_seq, oldest_seq, newest_seq) < 0:
        raise ValueError("a seq is never negative")
    if last_seq > newest_seq:
        return ResumeFailure.UNKNOWN_TRACE
    if last_seq == 0:
        return ReplayRange(min(oldest_seq, newest_seq + 1), newest_seq)
    if last_seq < newest_seq and last_seq + 1 < oldest_seq:
        return ResumeFailure.EVENTS_EXPIRED
    return ReplayRange(last_seq + 1, newest_seq)
