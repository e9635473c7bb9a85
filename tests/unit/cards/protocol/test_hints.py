import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from cards.protocol.envelope import Hint
from cards.protocol.hints import (
    HINT_REGISTRY,
    MAX_SUMMARY_CHARS,
    MAX_TITLE_CHARS,
    default_hint,
    shorten,
)
from cards.protocol.kinds import CardKind, Role
from cards.protocol.payloads import (
    PAYLOAD_OF_KIND,
    AgentPayload,
    Payload,
    SystemPayload,
    ToolPayload,
    TurnPayload,
)
from tests.unit.cards.protocol.frames import PAYLOADS

TABLE = [
    (CardKind.TURN, "Turn 1", "Turn", "chat", Role.PERSONA),
    (CardKind.MESSAGE, "Reply", "Reply", "chat", Role.PERSONA),
    (CardKind.TOOL, "bash", "Tool", "tool", Role.WORKER),
    (CardKind.AGENT, "researcher", "Agent", "agent", Role.WORKER),
    (CardKind.PLAN, "Plan", "Plan", "plan", Role.ORCHESTRATOR),
    (CardKind.STEP, "Search", "Step", "dispatch", Role.ORCHESTRATOR),
    (CardKind.ARTIFACT, "mail.md", "File", "artifact", Role.WORKER),
    (CardKind.THINKING, "Thinking", "Thinking", "thinking", Role.PERSONA),
    (CardKind.MEMORY_OP, "Memory", "Memory", "memory", Role.SYSTEM),
    (CardKind.BUDGET, "Budget", "Budget", "warning", Role.SYSTEM),
    (CardKind.TODO, "Tidy up", "To-do", "task", Role.SYSTEM),
    (CardKind.TEAM, "Writers", "Team", "team", Role.SYSTEM),
    (CardKind.SYSTEM, "System notice", "System notice", "info", Role.SYSTEM),
]


class TestHintRegistry:
    def test_knows_every_kind(self) -> None:
        """Spec: EMIT 3.3, 5."""
        assert set(HINT_REGISTRY) == set(CardKind)

    @pytest.mark.parametrize(
        ("kind", "role"), [(row[0], row[4]) for row in TABLE], ids=str
    )
    def test_gives_a_kind_its_role(self, kind: CardKind, role: Role) -> None:
        """Spec: emit-tables 6."""
        assert HINT_REGISTRY[kind].role is role


class TestShorten:
    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("", ""),
            (" \n\t ", ""),
            ("a", "a"),
            (" a \n b\tc ", "a b c"),
            ("1234567890", "1234567890"),
            ("1234567890 ", "1234567890"),
            ("12345678901", "123456789…"),
            ("12345678 0123", "12345678 …"),
            ("实验实验实验实验实验!", "实验实验实验实验实…"),
            ("a" + " " * 100 + "b", "a b"),
            (" " * 100 + "a", "a"),
            ("1 2 3 4 5 6 7 8 9 10 11 12\n13", "1 2 3 4 5…"),
        ],
        ids=[
            "empty",
            "blank",
            "one",
            "one-line",
            "exact",
            "exact-and-blank",
            "one-over",
            "cut-at-blank",
            "chinese",
            "wide-gap",
            "wide-start",
            "many-words",
        ],
    )
    def test_gives_one_line_of_at_most_the_limit(self, text: str, line: str) -> None:
        assert shorten(text, 10) == line

    @given(st.text(st.sampled_from(" \n\u3000ab…"), max_size=80), st.integers(1, 20))
    def test_cuts_the_text_on_one_line_at_the_limit(
        self, text: str, limit: int
    ) -> None:
        whole = " ".join(text.split())

        line = shorten(text, limit)

        assert (
            line == whole if len(whole) <= limit else line == whole[: limit - 1] + "…"
        )


class TestDefaultHint:
    @pytest.mark.parametrize(
        ("kind", "title", "icon"), [(row[0], row[1], row[3]) for row in TABLE], ids=str
    )
    def test_takes_title_and_icon_of_the_kind(
        self, kind: CardKind, title: str, icon: str
    ) -> None:
        """Spec: EMIT 3.3; Ruling E6; emit-tables 6."""
        assert default_hint(kind, PAYLOADS[kind]) == Hint(title=title, icon=icon)

    @pytest.mark.parametrize(
        ("kind", "title"), [(row[0], row[2]) for row in TABLE], ids=str
    )
    def test_has_a_title_when_the_payload_is_empty(
        self, kind: CardKind, title: str
    ) -> None:
        """Never a template token. Spec: Ruling E6."""
        assert default_hint(kind, PAYLOAD_OF_KIND[kind]()).title == title

    @pytest.mark.parametrize("name", ["", " \n", " " * 1000])
    def test_has_a_title_when_the_name_is_blank(self, name: str) -> None:
        """Spec: Ruling E6."""
        assert default_hint(CardKind.TOOL, ToolPayload(name=name)).title == "Tool"

    def test_finds_a_name_behind_many_blanks(self) -> None:
        """Spec: Ruling E6."""
        payload = ToolPayload(name=" " * 1000 + "bash")

        assert default_hint(CardKind.TOOL, payload).title == "bash"

    def test_shows_braces_in_a_name_as_they_are(self) -> None:
        """A name is no template. Spec: Ruling E6."""
        payload = AgentPayload(name="{turn_no} {}")

        assert default_hint(CardKind.AGENT, payload).title == "{turn_no} {}"

    def test_takes_what_its_maker_says(self) -> None:
        """Spec: EMIT 10.9."""
        hint = default_hint(
            CardKind.SYSTEM,
            SystemPayload(),
            title="No\nsearch",
            summary="Switched\toff",
            icon="warning",
        )

        assert hint == Hint(title="No search", summary="Switched off", icon="warning")

    def test_takes_the_default_for_what_its_maker_leaves_blank(self) -> None:
        """Spec: Ruling E6."""
        hint = default_hint(
            CardKind.SYSTEM, SystemPayload(), title=" ", summary="\n", icon=""
        )

        assert hint == Hint(title="System notice", summary=UNSET, icon="info")

    def test_cuts_a_long_title_and_summary(self) -> None:
        hint = default_hint(
            CardKind.TURN, TurnPayload(), title="t" * 500, summary="s" * 500
        )

        assert hint.title == "t" * (MAX_TITLE_CHARS - 1) + "…"
        assert hint.summary == "s" * (MAX_SUMMARY_CHARS - 1) + "…"

    @given(st.text(max_size=200), st.integers(0, 700))
    def test_always_has_a_title_that_fits(self, name: str, blanks: int) -> None:
        """Spec: Ruling E6."""
        payload: Payload = ToolPayload(name=" " * blanks + name)

        title = default_hint(CardKind.TOOL, payload).title

        assert title.strip()
        assert len(title) <= MAX_TITLE_CHARS
        assert "\n" not in title
