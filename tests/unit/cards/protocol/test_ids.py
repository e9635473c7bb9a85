import re
from collections.abc import Callable

import pytest

from cards.protocol.ids import (
    MAIN_AGENT,
    RandomHex,
    is_safe_id,
    is_session_id,
    mint_card_id,
    mint_event_id,
    mint_run_id,
    mint_session_id,
    mint_trace_id,
)
from cards.protocol.kinds import CardKind

PREFIXES = {
    CardKind.TURN: "turn_",
    CardKind.MESSAGE: "msg_",
    CardKind.TOOL: "tool_",
    CardKind.AGENT: "sub_",
    CardKind.PLAN: "plan_",
    CardKind.STEP: "step_",
    CardKind.ARTIFACT: "art_",
    CardKind.THINKING: "thk_",
    CardKind.MEMORY_OP: "card_",
    CardKind.BUDGET: "card_",
    CardKind.TODO: "todo_",
    CardKind.TEAM: "card_",
    CardKind.SYSTEM: "card_",
}


def hex_of_a(byte_count: int) -> str:
    return "a" * (2 * byte_count)


class TestMint:
    @pytest.mark.parametrize(
        ("mint", "shape"),
        [
            (mint_event_id, r"evt_[0-9a-f]{20}"),
            (mint_session_id, r"sess_[0-9a-f]{20}"),
            (mint_trace_id, r"tr_[0-9a-f]{24}"),
            (mint_run_id, r"run_[0-9a-f]{16}"),
        ],
        ids=["event", "session", "trace", "run"],
    )
    def test_gives_the_shape_of_the_ruling(
        self, mint: Callable[[RandomHex], str], shape: str
    ) -> None:
        """Spec: Rulings E1, E2, E7."""
        assert re.fullmatch(shape, mint(hex_of_a))

    @pytest.mark.parametrize("kind", CardKind)
    def test_gives_a_card_the_prefix_of_its_kind(self, kind: CardKind) -> None:
        """Spec: Ruling E7."""
        assert mint_card_id(kind, hex_of_a) == PREFIXES[kind] + "a" * 16

    @pytest.mark.parametrize("kind", CardKind)
    def test_gives_ids_that_are_safe(self, kind: CardKind) -> None:
        assert is_safe_id(mint_card_id(kind, hex_of_a))


class TestMainAgent:
    def test_is_called_main(self) -> None:
        """Spec: EMIT 3.2."""
        assert MAIN_AGENT == "main"


UNSAFE = [
    "",
    " ",
    "a b",
    "a/b",
    "../x",
    "a\n",
    "a\x00",
    "实验",
    "é",
    "１",  # a digit, but not of ASCII
    "<script>",
]


class TestIsSafeId:
    @pytest.mark.parametrize("candidate", ["a", "A-Z.0_9:x", "toolu_01", "x" * 64])
    def test_takes_what_may_become_a_card_id(self, candidate: str) -> None:
        """Spec: Ruling E7."""
        assert is_safe_id(candidate)

    @pytest.mark.parametrize("candidate", [*UNSAFE, "x" * 65], ids=ascii)
    def test_refuses_everything_else(self, candidate: str) -> None:
        """Spec: Ruling E7."""
        assert not is_safe_id(candidate)


class TestIsSessionId:
    @pytest.mark.parametrize("candidate", ["s", "sess_lab_01", "x" * 128])
    def test_takes_ids_up_to_128_characters(self, candidate: str) -> None:
        """Spec: Ruling E1."""
        assert is_session_id(candidate)

    @pytest.mark.parametrize("candidate", [*UNSAFE, "x" * 129], ids=ascii)
    def test_refuses_other_characters_and_lengths(self, candidate: str) -> None:
        """Spec: Ruling E1."""
        assert not is_session_id(candidate)
