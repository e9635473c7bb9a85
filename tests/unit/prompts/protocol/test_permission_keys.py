"""What an allowance for the session covers."""

from datetime import date
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts.protocol.permission_keys import MAX_KEY_CHARS, permission_key

KEYS: dict[str, tuple[object, str]] = {
    "text": ("git status", "Bash:git status"),
    "command": ({"command": "git status"}, "Bash:git status"),
    "path": ({"path": "/a"}, 'Bash:{"path":"/a"}'),
    "file path": ({"file_path": "/a"}, 'Bash:{"file_path":"/a"}'),
    "path and content": ({"path": "/a", "content": "x"}, 'Bash:{"path":"/a"}'),
    "path and text": ({"text": "x", "path": "/a"}, 'Bash:{"path":"/a"}'),
    "path and edit": (
        {"path": "/a", "old_string": "x", "new_string": "y"},
        'Bash:{"path":"/a"}',
    ),
    "path and more": (
        {"path": "/a", "mode": "x", "content": "y"},
        'Bash:{"mode":"x","path":"/a"}',
    ),
    "content alone": ({"content": "x"}, 'Bash:{"content":"x"}'),
    "command and more": (
        {"command": "ls", "cwd": "/"},
        'Bash:{"command":"ls","cwd":"/"}',
    ),
    "command of no text": ({"command": ["ls"]}, 'Bash:{"command":["ls"]}'),
    "order of fields": (
        {"b": 1, "a": {"d": 2, "c": 3}},
        'Bash:{"a":{"c":3,"d":2},"b":1}',
    ),
    "list": ([1, "a"], 'Bash:[1,"a"]'),
    "zero": (0, "Bash:0"),
    "false": (False, "Bash:false"),
    "date": ({"on": date(2026, 12, 1)}, 'Bash:{"on":"2026-12-01"}'),
    "nothing": (None, "Bash"),
    "no fields": ({}, "Bash"),
    "no items": ([], "Bash"),
    "no text": ("", "Bash"),
    "no command": ({"command": ""}, "Bash"),
    "NUL": ("a\0b", "Bash:a\ufffdb"),
}  # fmt: skip

LONG = "echo " + "x" * MAX_KEY_CHARS

#: Pairs of calls of which the first must not cover the second.
DIFFERENT: dict[str, tuple[tuple[str, object], tuple[str, object]]] = {
    "more behind it": (
        ("Bash", "git status"),
        ("Bash", "git status && rm -rf x"),
    ),
    "more behind it, as an object": (
        ("Bash", {"command": "git status"}),
        ("Bash", {"command": "git status && rm -rf x"}),
    ),
    "another line": (("Bash", "ls"), ("Bash", "ls\nrm -rf x")),
    "another directory": (
        ("Bash", {"command": "rm -rf .", "cwd": "/srv/a"}),
        ("Bash", {"command": "rm -rf .", "cwd": "/"}),
    ),
    "an argument beside it": (
        ("Bash", {"command": "ls"}),
        ("Bash", {"command": "ls", "sudo": True}),
    ),
    "a space that is escaped": (("Bash", "rm a\\ "), ("Bash", "rm a\\")),
    "a space before it": (("Bash", " ls"), ("Bash", "ls")),
    "another tool": (("Read", "/a"), ("Write", "/a")),
    "another path": (("Write", {"path": "/a"}), ("Write", {"path": "/b"})),
    "a path with a space": (("Write", {"path": "/a"}), ("Write", {"path": "/a "})),
    "a command for a path": (("Do", {"path": "./a"}), ("Do", {"command": "./a"})),
    "another field": (("Do", {"path": "/a"}), ("Do", {"file_path": "/a"})),
    "a colon in the name": (("mcp:files", "/a"), ("mcp", "files:/a")),
    "a colon in the name alone": (("Bash:ls", None), ("Bash", "ls")),
    "a backslash in the name": (("a\\", "b"), ("a", "\\b")),
    "the end of a long one": (("Bash", LONG + "a"), ("Bash", LONG + "b")),
    "what looks like a digest": (
        ("Bash", LONG),
        ("Bash", permission_key("Bash", LONG).removeprefix("Bash:")),
    ),
    "a number for its digits": (("Do", {"n": 1}), ("Do", {"n": "1"})),
    "nothing for something": (("Bash", None), ("Bash", "ls")),
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(
            st.sampled_from(["command", "path", "file_path", "cwd"]) | st.text(),
            inside,
            max_size=3,
        )
    ),
    max_leaves=6,
)
names = st.text() | st.sampled_from(["a", "a:b", "a\\", "a\\:b", ":", "sha256"])
lines = st.text(min_size=1) | st.sampled_from(
    ["b", "b:c", ":c", "sha256:", "sha256:" + "0" * 64, LONG, LONG + " ", " " + LONG]
)


def encoded(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()


class TestPermissionKey:
    """Spec: Ruling E18."""

    @pytest.mark.parametrize("name", KEYS)
    def test_covers_the_input(self, name: str) -> None:
        given_input, key = KEYS[name]

        assert permission_key("Bash", given_input) == key

    @pytest.mark.parametrize("name", DIFFERENT)
    def test_of_one_call_is_not_that_of_another(self, name: str) -> None:
        first, second = DIFFERENT[name]

        assert permission_key(*first) != permission_key(*second)

    @pytest.mark.parametrize("size", [1, MAX_KEY_CHARS - 5, MAX_KEY_CHARS])
    def test_is_readable_up_to_its_bound(self, size: int) -> None:
        key = permission_key("Bash", "x" * size)

        is_readable = size + len("Bash:") <= MAX_KEY_CHARS
        assert key.startswith("Bash:x") is is_readable
        assert key.startswith("Bash:sha256:") is not is_readable

    @given(name=names, tool_input=json_values)
    def test_is_the_same_for_the_same_call(self, name: str, tool_input: Any) -> None:
        again = msgspec.json.decode(msgspec.json.encode(tool_input))

        assert permission_key(name, tool_input) == permission_key(name, again)

    @given(name=names | st.text(min_size=MAX_KEY_CHARS), tool_input=json_values)
    def test_is_bounded(self, name: str, tool_input: Any) -> None:
        """An index of PostgreSQL takes no more than 2,704 bytes."""
        assert len(permission_key(name, tool_input)) <= MAX_KEY_CHARS

    @given(first=st.tuples(names, lines), second=st.tuples(names, lines))
    def test_is_shared_by_equal_command_lines_alone(
        self, first: tuple[str, str], second: tuple[str, str]
    ) -> None:
        keys = [
            permission_key(name, line.replace("\0", "-"))
            for name, line in (first, second)
        ]
        as_objects = [
            permission_key(name, {"command": line.replace("\0", "-")})
            for name, line in (first, second)
        ]

        shown = [(name, line.replace("\0", "-")) for name, line in (first, second)]
        assert (keys[0] == keys[1]) is (shown[0] == shown[1])
        assert as_objects == keys

    @given(
        first=st.dictionaries(st.text(), st.text(), min_size=2, max_size=4),
        second=st.dictionaries(st.text(), st.text(), min_size=2, max_size=4),
    )
    def test_is_shared_by_equal_objects_alone(
        self, first: dict[str, str], second: dict[str, str]
    ) -> None:
        keys = [permission_key("Do", each) for each in (first, second)]

        assert (keys[0] == keys[1]) is (encoded(first) == encoded(second))
