"""A turn for each test."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.unit.cards.engine.stage import Stage


@pytest_asyncio.fixture(name="stage")
async def _stage() -> AsyncIterator[Stage]:
    async with Stage() as stage:
        yield stage
