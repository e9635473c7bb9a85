"""Fixtures for the tests of the page: a browser, a server, a scripted session."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    expect,
    sync_playwright,
)

from tests.acceptance.page_parts import is_connected
from tests.acceptance.page_script import SESSION, Script
from tests.acceptance.page_shelf import REPORT, PageShelf
from tests.acceptance.scripted_server import ScriptedServer, Show
from tests.services import CardwireServer, missing

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

#: What the browser says of a server that is away; the rest of its errors are ours.
NETWORK_ERRORS = ("WebSocket connection", "ERR_CONNECTION_REFUSED", "ERR_INTERNET")

#: How the browser begins to tell of an answer that is an error.
REFUSAL = "Failed to load resource: the server responded"

expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server that plays scenarios, shared by the module."""
    data_dir: Path = tmp_path_factory.mktemp("page")
    engine = "tests.acceptance.page_engine.PageEngine"
    server = CardwireServer(data_dir, CARDWIRE_ENGINE=engine)
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The system's Chromium."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        missing(f"no Chromium installed: {', '.join(BROWSERS)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, page_server: CardwireServer) -> Iterator[Page]:
    """A tab of a fresh visitor; script errors and policy violations fail the test."""
    context = browser.new_context(base_url=page_server.url)
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda trouble: troubles.append(str(trouble)))
    page.on("console", lambda said: _note_trouble(said, troubles))
    yield page
    context.close()
    assert troubles == []


def _note_trouble(said: ConsoleMessage, troubles: list[str]) -> None:
    is_network = any(words in said.text for words in NETWORK_ERRORS)
    # What the API refuses is shown by the page; the test looks at that.
    is_refusal = REFUSAL in said.text and "/v1/" in said.location["url"]
    if said.type == "error" and not is_network and not is_refusal:
        troubles.append(said.text)


@pytest.fixture
def show(page: Page) -> Show:
    """Open a scripted session."""

    def open_session(script: Script) -> ScriptedServer:
        server = ScriptedServer(script)
        page.route_web_socket(re.compile(r"/v1/ws"), server.serve)
        page.goto(f"/?session={SESSION}")
        is_connected(page, "open")
        return server

    return open_session


@pytest.fixture
def shelf(page: Page) -> Iterator[PageShelf]:
    """The files of the scripted session."""
    shelf = PageShelf()
    shelf.put("art_md", "report.md", "text/markdown", REPORT)
    shelf.put("art_csv", "data.csv", "text/csv", "a,b\n1,2\n")
    shelf.serve(page)
    yield shelf
    shelf.drop_uploads()
