"""The page of a session whose log was pruned, in a real browser.

Spec: Ruling E5; issue: `prune_events`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.acceptance.page_parts import is_connected, kinds, say, session_of
from tests.services import CardwireServer, until

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

SCRIPTED = {"CARDWIRE_ENGINE": "tests.acceptance.engines.ScriptedEngine"}

#: Kept after the last activity: a tenth of a second.
KEPT_DAYS = "0.000001"


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[CardwireServer]:
    server = CardwireServer(
        tmp_path, CARDWIRE_EVENT_RETENTION_DAYS=KEPT_DAYS, **SCRIPTED
    )
    try:
        server.start()
        yield server
    finally:
        server.close()


class Tab:
    """A tab of a visitor, whose socket can be cut and kept away."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.is_away = False
        self._socket: WebSocketRoute | None = None
        page.route_web_socket(re.compile(r"/v1/ws"), self._join)

    def _join(self, socket: WebSocketRoute) -> None:
        if self.is_away:
            socket.close(code=1013)
            return
        self._socket = socket
        socket.connect_to_server()

    def go_away(self) -> None:
        assert self._socket is not None
        self.is_away = True
        self._socket.close(code=1013)
        is_connected(self.page, "waiting")

    def come_back(self) -> None:
        self.is_away = False
        # As the browser says it when the network is back; it tries by itself, too.
        self.page.evaluate("dispatchEvent(new Event('online'))")
        is_connected(self.page, "open")


def prune(server: CardwireServer) -> None:
    """Prune everything; the turn that just ended may still be too young."""

    def is_pruned() -> bool:
        said = server.manage("prune_events").stdout
        return re.search(r"sessions=1 events=[1-9]", said) is not None

    until(is_pruned, "the log to be old enough")


def ask(page: Page, words: str, turns: int) -> None:
    say(page, words)
    expect(kinds(page, "turn", "ok")).to_have_count(turns)


def shows_all(page: Page) -> None:
    expect(kinds(page, "turn", "ok")).to_have_count(3)
    timeline = page.locator(".timeline")
    for words in ("hi", "Hello World!", "list", "Here are the files: a.txt"):
        expect(timeline.get_by_text(words, exact=True).first).to_be_visible()


@pytest.mark.parametrize("goes_on", [False, True], ids=["at rest", "going on"])
def test_shows_the_whole_conversation(
    browser: Browser, server: CardwireServer, *, goes_on: bool
) -> None:
    """Whether the page knows nothing of it, or the beginning, or all."""
    context = browser.new_context(base_url=server.url)
    behind, abreast = Tab(context.new_page()), Tab(context.new_page())
    behind.page.goto("/")
    is_connected(behind.page, "open")
    ask(behind.page, "hi", 1)
    address = f"/?session={session_of(behind.page)}"
    behind.go_away()
    abreast.page.goto(address)
    ask(abreast.page, "list", 2)
    if not goes_on:
        ask(abreast.page, "hi", 3)

    prune(server)
    if goes_on:
        ask(abreast.page, "hi", 3)
    behind.come_back()
    fresh = context.new_page()
    fresh.goto(address)

    for page in (behind.page, abreast.page, fresh):
        shows_all(page)
    ask(fresh, "hi", 4)
    for page in (behind.page, abreast.page):
        expect(kinds(page, "turn", "ok")).to_have_count(4)
    context.close()
