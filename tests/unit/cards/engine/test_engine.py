"""The base class of assistants."""

import pytest

from cards import engine
from cards.engine import Engine, Turn


class Silent(Engine):
    """Says nothing."""

    async def run(self, turn: Turn) -> None:
        """Answer with silence."""


class TestEngine:
    def test_has_no_model_unless_it_names_one(self) -> None:
        assert Silent().model == ""

    def test_must_be_able_to_run(self) -> None:
        lazy: type[Engine] = type("Lazy", (Engine,), {})

        with pytest.raises(TypeError, match="run"):
            lazy()


class TestExports:
    def test_are_there(self) -> None:
        assert all(hasattr(engine, name) for name in engine.__all__)
