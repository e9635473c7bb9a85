"""The bytes of large bodies, for both ends."""

CHUNK = bytes(range(256)) * 256


def body_of(size: int) -> bytes:
    return (CHUNK * (size // len(CHUNK) + 1))[:size]
