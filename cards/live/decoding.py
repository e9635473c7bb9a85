"""Frames of clients to messages, large ones beside the event loop.

A frame of 16 MiB may hold millions of values, and each is looked at: seconds in which
nobody else would be served. In a thread it takes no longer, and the loop has its turns.

Spec: Ruling E22.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from cards.protocol.client_messages import AnyClientMessage, FrameLimits
from cards.protocol.codec import decode_client_message

#: Characters of a frame that is decoded at once; some milliseconds at worst.
MAX_INLINE_CHARS = 32 * 1024

_decoders = ThreadPoolExecutor(2, thread_name_prefix="cardwire-frames")


async def decoded(text: str, limits: FrameLimits) -> AnyClientMessage:
    """Return the message in a frame.

    Raises:
        RemoteProtocolError: See `decode_client_message`.
    """
    if len(text) <= MAX_INLINE_CHARS:
        return decode_client_message(text, limits)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_decoders, decode_client_message, text, limits)
