"""Looks at the database that are made again and again, whatever becomes of one."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from django.db import Error as DatabaseError

logger = logging.getLogger(__name__)


async def look_again_and_again(
    look: Callable[[], Awaitable[None]], *, pause_s: float, what: str
) -> None:
    """Look until cancelled.

    Args:
        pause_s: Seconds between the end of a look and the next one.
        what: Is looked at, for the server's log; a plural.
    """
    while True:
        await look_once(look(), what=what)
        await asyncio.sleep(pause_s)


async def look_once(look: Awaitable[None], *, what: str) -> None:
    """Wait for a look; what goes wrong is logged, because a later one looks again."""
    try:
        await look
    except (DatabaseError, OSError) as error:
        logger.warning("%s were not looked at: %s", what, error)
    except Exception:
        logger.exception("the look at %s broke down", what)
