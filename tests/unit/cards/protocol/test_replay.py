import pytest
from hypothesis import given
from hypothesis import strategies as st

from cards.protocol.kinds import ResumeFailure
from cards.protocol.replay import ReplayRange, plan_replay


def plan(last_seq: int, oldest_seq: int, newest_seq: int) -> object:
    return plan_replay(last_seq=last_seq, oldest_seq=oldest_seq, newest_seq=newest_seq)


class TestPlanReplay:
    def test_starts_after_the_last_seq_seen(self) -> None:
        """Spec: EMIT 2.4.1."""
        assert plan(42, 1, 68) == ReplayRange(from_seq=43, to_seq=68)

    def test_is_empty_when_nothing_is_missing(self) -> None:
        """Spec: Ruling E5."""
        assert plan(68, 1, 68) == ReplayRange(from_seq=69, to_seq=68)

    @pytest.mark.parametrize("oldest_seq", [1, 30], ids=["whole-log", "pruned-log"])
    def test_gives_everything_kept_for_zero(self, oldest_seq: int) -> None:
        """Spec: Ruling E5."""
        assert plan(0, oldest_seq, 68) == ReplayRange(oldest_seq, 68)

    def test_is_empty_for_zero_before_the_first_event(self) -> None:
        """Spec: Ruling E5."""
        assert plan(0, 1, 0) == ReplayRange(1, 0)

    def test_is_empty_for_zero_when_everything_was_pruned(self) -> None:
        """Spec: Ruling E5."""
        assert plan(0, 69, 68) == ReplayRange(69, 68)

    def test_is_empty_for_zero_in_a_log_whose_bounds_are_unknown(self) -> None:
        """An `oldest_seq` beyond the log never makes a hole. Spec: Ruling E2."""
        assert plan(0, 99, 68) == ReplayRange(69, 68)

    def test_reaches_down_to_the_oldest_seq_kept(self) -> None:
        """The first seq needed is the oldest one. Spec: Ruling E5."""
        assert plan(29, 30, 68) == ReplayRange(30, 68)

    def test_fails_when_the_first_seq_needed_was_pruned(self) -> None:
        """Spec: EMIT 8; Ruling E5."""
        assert plan(28, 30, 68) is ResumeFailure.EVENTS_EXPIRED

    def test_fails_when_all_that_is_needed_was_pruned(self) -> None:
        """Spec: Ruling E5."""
        assert plan(67, 69, 68) is ResumeFailure.EVENTS_EXPIRED

    def test_needs_nothing_of_a_log_that_was_pruned_after_being_seen(self) -> None:
        """Spec: Ruling E5."""
        assert plan(68, 69, 68) == ReplayRange(69, 68)

    @pytest.mark.parametrize(
        "last_seq", [69, 999_999, 2**53 - 1], ids=["by-one", "w02", "2**53-1"]
    )
    def test_fails_for_a_client_ahead_of_the_log(self, last_seq: int) -> None:
        """Spec: Ruling E5."""
        assert plan(last_seq, 1, 68) is ResumeFailure.UNKNOWN_TRACE

    @pytest.mark.parametrize(
        ("last_seq", "oldest_seq", "newest_seq"),
        [(-1, 1, 5), (0, -1, 5), (0, 1, -5)],
        ids=["last", "oldest", "newest"],
    )
    def test_refuses_negative_seqs(
        self, last_seq: int, oldest_seq: int, newest_seq: int
    ) -> None:
        with pytest.raises(ValueError, match="never negative"):
            plan(last_seq, oldest_seq, newest_seq)

    @given(st.integers(0, 60), st.integers(1, 60), st.integers(0, 60))
    def test_never_leaves_a_hole(
        self, last_seq: int, first_kept: int, newest_seq: int
    ) -> None:
        """What a client has and what it gets join without a gap. Spec: Ruling E4."""
        oldest_seq = min(first_kept, newest_seq + 1)

        planned = plan_replay(
            last_seq=last_seq, oldest_seq=oldest_seq, newest_seq=newest_seq
        )

        if isinstance(planned, ReplayRange):
            sent = range(planned.from_seq, planned.to_seq + 1)
            kept = range(oldest_seq, newest_seq + 1)
            assert list(sent) == [seq for seq in kept if seq > last_seq]
            assert planned.to_seq == newest_seq
        elif planned is ResumeFailure.EVENTS_EXPIRED:
            assert last_seq + 1 not in range(oldest_seq, newest_seq + 1)
            assert 0 < last_seq < newest_seq
        else:
            assert planned is ResumeFailure.UNKNOWN_TRACE
            assert last_seq > newest_seq
