"""Which clients make no progress."""

from cards.transport.stalls import Progress


class TestProgress:
    def test_is_none_while_nothing_leaves(self) -> None:
        progress = Progress(since=0)
        progress.written_bytes = 100
        progress.look(100, now=10)

        assert progress.look(100, now=20) == 10
        assert progress.look(100, now=30) == 20

    def test_is_made_by_any_byte(self) -> None:
        progress = Progress(since=0)
        progress.written_bytes = 100
        progress.look(100, now=5)

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
        """Nor for the time before the first look that finds something unsent."""
        progress = Progress(since=0)
        progress.written_bytes = 100

        assert progress.look(0, now=10) == 0
        assert progress.look(0, now=99) == 0
        progress.written_bytes = 150
        assert progress.look(50, now=100) == 0
        assert progress.look(50, now=101) == 1

    def test_is_owed_for_what_others_wrote(self) -> None:
        """A ping of autobahn to a machine that is gone: nobody counted it."""
        progress = Progress(since=0)
        progress.look(18, now=10)

        assert progress.look(18, now=40) == 30

    def test_tells_when_the_client_was_last_behind(self) -> None:
        progress = Progress(since=0)
        assert progress.behind_at < 0
        progress.written_bytes = 100

        progress.look(1, now=10)
        progress.look(0, now=20)

        assert progress.behind_at == 10
