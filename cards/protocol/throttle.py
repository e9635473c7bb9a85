"""Which droppable ticks go out now, which wait, which are replaced.

Spec: EMIT 6.4; Ruling E20.
"""

from typing import Generic, TypeVar

Tick = TypeVar("Tick")
Key = tuple[str, str]


class TickThrottle(Generic[Tick]):
    """At most one droppable tick per card and kind in each interval.

    A tick that comes too early waits; a newer one of the same card and kind takes
    its place. Nothing here has a seq yet, so nothing visible is ever dropped.

    Args:
        interval_ms: Milliseconds between two ticks; 0 lets everything through.
    """

    def __init__(self, interval_ms: int) -> None:
        if interval_ms < 0:
            raise ValueError(f"interval_ms must not be negative, got {interval_ms}")
        self._interval_ms = interval_ms
        self._next_ms: dict[Key, int] = {}
        self._waiting: dict[Key, Tick] = {}
        # Thousands of cards may close together: none may walk the keys of all.
        self._keys: dict[str, list[Key]] = {}

    def offer(self, key: Key, tick: Tick, *, now_ms: int) -> Tick | None:
        """Return the tick if it may go out now, else keep it and return None."""
        next_ms = self._next_ms.get(key)
        if next_ms is None:
            self._keys.setdefault(key[0], []).append(key)
        elif now_ms < next_ms:
            self._waiting[key] = tick
            return None
        self._waiting.pop(key, None)
        self._next_ms[key] = now_ms + self._interval_ms
        return tick

    def due_ms(self, key: Key) -> int | None:
        """Return when the waiting tick of a key may go out; None if none waits."""
        return self._next_ms[key] if key in self._waiting else None

    def take(self, key: Key, *, now_ms: int) -> Tick | None:
        """Return and forget the waiting tick of a key, whether due or not."""
        tick = self._waiting.pop(key, None)
        if tick is not None:
            # It waits because another one went out: the key is known.
            self._next_ms[key] = now_ms + self._interval_ms
        return tick

    def drain(self, card_id: str) -> list[Tick]:
        """Return the waiting ticks of a card, and forget the card.

        To be called before the card closes: the newest value is never lost.

        Spec: Ruling E20.
        """
        keys = self._keys.pop(card_id, [])
        for key in keys:
            del self._next_ms[key]
        return [self._waiting.pop(key) for key in keys if key in self._waiting]
