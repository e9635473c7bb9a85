"""What a browser is told of a file, so that it runs none of it. Cases XSS."""

import pytest

from artifacts.delivery import content_type_of, may_be_shown, policy_of


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
