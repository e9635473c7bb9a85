"""A clock that stands still until it is told to move."""


class FakeClock:
    """Unix milliseconds; call it to read, `advance` to move."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, ms: int) -> None:
        self.now_ms += ms
