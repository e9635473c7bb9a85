"""Which clients make no progress."""

from cards.transport.stalls import Progress


class TestProgress:
    def test_is_none_while_nothing_leaves(self) -> None:
        progress = Progress(since=0)
        progress.written_bytes = 100

        assert progress.look(100, now=10) == 10
        assert progress.look(100, now=20) == 20

    def test_is_made_by_any_byte(self) -> None:
        progress = Progress(since=0)
        progress.written_bytes = 100

        assert progress.look(99, now=10) == 0
        assert progress.look(99, now=15) == 5
        assert progress.look(98, now=20) == 0

    def test_counts_what_was_written_meanwhile(self) -> None:
        """More is unsent than before, and yet the client has read."""
        progress = Progress(since=0)
        progress.written_bytes = 100
        progress.look(50, now=10)
        progress.written_bytes = 200

        assert progress.look(140, now=20) == 0
        progress.written_bytes = 250
        assert progress.look(190, now=30) == 10

    def test_is_not_owed_by_who_has_everything(self) -> None:
        progress = Progress(since=0)
        progress.written_bytes = 100

        assert progress.look(0, now=10) == 0
        assert progress.look(0, now=99) == 0
        progress.written_bytes = 150
        assert progress.look(50, now=100) == 1
