"""What a browser is told of a file, so that it runs none of it. Cases XSS."""

import re
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from artifacts.delivery import (
    content_type_of,
    disposition_of,
    may_be_shown,
    policy_of,
)
from artifacts.protocol.names import safe_name


@pytest.mark.parametrize(
    "mime_type",
    [
        *("text/html", "image/svg+xml", "text/xml", "application/xml"),
        *("application/xhtml+xml", "application/rss+xml", "text/javascript"),
        *("application/javascript", "text/css", "text/x-anything", "text/vtt"),
        *("application/ld+json", "application/x-sh", "application/postscript"),
    ],
)
def test_a_text_that_may_do_something_is_saved_as_a_plain_one(mime_type: str) -> None:
    assert not may_be_shown(mime_type)
    assert content_type_of(mime_type) == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "mime_type",
    ["application/zip", "application/octet-stream", "application/wasm", "font/woff2"],
)
def test_what_is_no_text_is_saved_as_what_it_is(mime_type: str) -> None:
    assert not may_be_shown(mime_type)
    assert content_type_of(mime_type) == mime_type


@pytest.mark.parametrize(
    ("mime_type", "content_type"),
    [
        ("image/png", "image/png"),
        ("application/pdf", "application/pdf"),
        ("application/json", "application/json"),
        ("text/plain", "text/plain; charset=utf-8"),
        ("text/csv", "text/csv; charset=utf-8"),
        ("video/mp4", "video/mp4"),
    ],
)
def test_what_runs_nothing_is_shown(mime_type: str, content_type: str) -> None:
    assert may_be_shown(mime_type)
    assert content_type_of(mime_type) == content_type


@pytest.mark.parametrize("mime_type", ["image/png", "text/html", "application/zip"])
def test_whatever_it_is_has_no_origin_and_no_scripts(mime_type: str) -> None:
    policy = policy_of(mime_type)

    assert policy.startswith("sandbox; default-src 'none';")
    assert "script-src" not in policy
    assert "allow-" not in policy


@pytest.mark.parametrize("mime_type", ["audio/wav", "video/mp4"])
def test_a_player_may_ask_for_the_file_again(mime_type: str) -> None:
    assert policy_of(mime_type).startswith("sandbox allow-same-origin; default-src")
    assert policy_of("audio/x-unknown").startswith("sandbox; ")


def test_a_paper_has_no_scripts_of_ours_either() -> None:
    """Below `sandbox` browsers start no viewer."""
    assert policy_of("application/pdf").startswith("default-src 'none';")


@given(st.text().map(safe_name), st.booleans())
@example("..\uff0f..\uff0f\uff02\uff05\u2100", True)
@example("a%22; x=y", False)
def test_any_name_is_told_whole_and_once_more_in_ascii(
    name: str, is_saved: bool
) -> None:
    """Sample n01; cases FR-107, FR-111."""
    header = disposition_of(name, is_saved=is_saved)

    found = re.fullmatch(
        r'(inline|attachment); filename=(?:"((?:[ !#-\[\]-~]|\\["\\])*)"|([\w.-]+))'
        r"(?:; filename\*=UTF-8''([\w.~%-]+))?",
        header,
        re.ASCII,
    )
    assert found, header
    assert (found[1] == "attachment") is is_saved
    plain = re.sub(r"\\(.)", r"\1", found[2] or found[3] or "")
    if found[4] is None:
        assert plain == name
    else:
        assert unquote(found[4]) == name
        assert not set('%"/\\') & set(plain)
