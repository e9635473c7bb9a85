"""A report of the built-in engine, from asking for it to what changed in it.

Spec: EMIT 13; Ruling E21; issue "Artifacts", done means.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.page_files import chips, panel
from tests.acceptance.page_parts import is_connected, kinds, say
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server with the engine that comes with it."""
    data_dir: Path = tmp_path_factory.mktemp("report")
    server = CardwireServer(data_dir)
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_is_linked_opened_changed_and_compared(page: Page) -> None:
    """Spec: EMIT 13."""
    page.goto("/")
    is_connected(page, "open")

    say(page, "report on src")
    expect(kinds(page, "turn", "ok")).to_have_count(1)
    said = page.locator('[data-card-kind="message"] .prose')
    mention = said.get_by_role("button", name="src-report.md", exact=True)
    mention.last.click()
    opened = panel(page)
    expect(
        opened.get_by_role("heading", name="src-report.md", exact=True)
    ).to_be_visible()
    expect(opened.get_by_role("heading", name="Report on", exact=False)).to_be_visible()
    expect(opened.get_by_role("cell", name="app.py").first).to_be_visible()
    expect(opened.get_by_label("Version", exact=True)).to_have_count(0)

    say(page, "append The neighbours were asked. to src-report.md")
    expect(kinds(page, "turn", "ok")).to_have_count(2)
    opened.get_by_role("button", name="Show version 2").click()
    expect(opened).to_contain_text("The neighbours were asked.")
    expect(opened.get_by_label("Version", exact=True)).to_have_value("2")
    opened.get_by_label("What is shown").select_option(label="Changes since version 1")

    added = opened.get_by_role("insertion")
    expect(added).to_contain_text("The neighbours were asked.")
    expect(opened.get_by_role("deletion")).to_have_count(0)
    expect(opened).to_contain_text("1 line added, 0 removed since version 1.")


def test_file_of_the_user_is_looked_at(page: Page) -> None:
    """Spec: Ruling E28."""
    page.goto("/")
    is_connected(page, "open")
    field = page.locator("#composer input[type=file]")
    words = b"Oil it in spring.\n"
    field.set_input_files(
        {"name": "larch.txt", "mimeType": "text/plain", "buffer": words}
    )
    expect(chips(page)).to_have_attribute("data-state", "ready")

    page.get_by_role("button", name="Send").click()

    turn = kinds(page, "turn", "ok")
    expect(turn.locator(".bubble .chip")).to_have_text("larch.txt")
    said = turn.locator('[data-card-kind="message"]')
    expect(said.last).to_contain_text("1 line")
    turn.locator('[data-card-kind="tool"] summary').click()
    expect(turn).to_contain_text("Oil it in spring.")
