"""Which edits of a plan can be carried out."""

from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from cards.protocol.prompts import ReviewedStep
from prompts.protocol.plan_edits import fault_of
from tests.unit.prompts.protocol.prompts import step

AVAILABLE = ("writer", "researcher")

POSSIBLE: dict[str, list[ReviewedStep]] = {
    "one step": [step("s1")],
    "a chain": [step("s1"), step("s2", "s1"), step("s3", "s2")],
    "a diamond": [step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c")],
    "a dependency twice": [step("s1"), step("s2", "s1", "s1")],
    "an available sub-agent": [step("s1", subagent_type="writer")],
    "no dependencies, said": [
        ReviewedStep(id="s1", description="do it", depends_on=[])
    ],
}

IMPOSSIBLE: dict[str, tuple[list[ReviewedStep], str]] = {
    "no id": ([step("")], "Step 1 () has no id."),
    "no description": (
        [step("s1"), step("s2", description="")],
        "Step 2 (s2) says nothing of what is to be done.",
    ),
    "the same id twice": (
        [step("s1"), step("s2"), step("s1")],
        "Step 3 (s1) has the id of an earlier step.",
    ),
    "an unknown sub-agent": (
        [step("s1", subagent_type="hacker")],
        "Step 1 (s1) is for hacker, which is none of researcher, writer.",
    ),
    "itself": ([step("s1", "s1")], "Step 1 (s1) depends on itself."),
    "a later step": (
        [step("s1", "s2"), step("s2")],
        "Step 1 (s1) depends on s2, which comes later.",
    ),
    "a cycle": (
        [step("s1", "s3"), step("s2", "s1"), step("s3", "s2")],
        "Step 1 (s1) depends on s3, which comes later.",
    ),
    "an unknown step": (
        [step("s1"), step("s2", "s1", "s9")],
        "Step 2 (s2) depends on s9, which is not in the plan.",
    ),
}

steps = st.lists(
    st.builds(
        ReviewedStep,
        id=st.sampled_from(["", "a", "b", "c", "d"]),
        description=st.sampled_from(["", "do it", "do that"]),
        subagent_type=st.sampled_from([UNSET, "", "writer", "hacker"]),
        depends_on=st.one_of(
            st.just(UNSET), st.lists(st.sampled_from(["a", "b", "c", "x"]), max_size=2)
        ),
    ),
    max_size=5,
)


def dependencies(reviewed: ReviewedStep) -> list[str]:
    return reviewed.depends_on or []


class TestFaultOf:
    """Spec: Ruling E19; case HC-32."""

    @pytest.mark.parametrize("name", POSSIBLE)
    def test_is_none_of_a_plan_that_can_be_carried_out(self, name: str) -> None:
        assert fault_of(POSSIBLE[name], available=AVAILABLE) == ""

    @pytest.mark.parametrize("name", IMPOSSIBLE)
    def test_names_the_first_step_that_cannot(self, name: str) -> None:
        edited, fault = IMPOSSIBLE[name]

        assert fault_of(edited, available=AVAILABLE) == fault

    def test_lets_any_sub_agent_do_it_when_none_are_named(self) -> None:
        assert fault_of([step("s1", subagent_type="hacker")]) == ""

    @given(edited=steps)
    def test_leaves_only_steps_that_build_on_earlier_ones(
        self, edited: list[ReviewedStep]
    ) -> None:
        if fault_of(edited, available=AVAILABLE):
            return

        known: set[str] = set()
        for each in edited:
            assert each.id
            assert each.id not in known
            assert each.description
            assert not each.subagent_type or each.subagent_type in AVAILABLE
            assert set(dependencies(each)) <= known
            known.add(each.id)

    @given(edited=steps, spare=st.sampled_from(["y", "z"]))
    def test_stays_when_more_steps_follow(
        self, edited: list[ReviewedStep], spare: str
    ) -> None:
        fault = fault_of(edited, available=AVAILABLE)

        assert fault_of([*edited, step(spare)], available=AVAILABLE) == fault

    @given(
        order=st.permutations(["a", "b", "c", "d", "e"]),
        picks=st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=5, max_size=5),
    )
    def test_takes_every_plan_in_the_order_of_its_dependencies(
        self, order: list[str], picks: list[list[int]]
    ) -> None:
        edited = [
            step(name, *(order[pick] for pick in picks[place] if pick < place))
            for place, name in enumerate(order)
        ]

        assert fault_of(edited) == ""

    def test_looks_each_dependency_up_once(self) -> None:
        """An edit with a million of them must not hold up everybody's answers."""
        names = [Counted(f"s{number}") for number in range(100)]
        edited = [step(name, *names[:place]) for place, name in enumerate(names)]
        named = sum(len(dependencies(each)) for each in edited)
        Counted.comparisons = 0

        assert fault_of(edited) == ""

        assert Counted.comparisons <= 3 * named


class Counted(str):
    """A text that counts how often one like it is compared."""

    __slots__ = ()
    comparisons: ClassVar[int] = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__
