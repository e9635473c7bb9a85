"""Parts of the page, as the tests of the page name them."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.acceptance.scripted_server import ScriptedServer
from tests.services import until


def is_connected(page: Page, state: str) -> None:
    expect(page.locator("html")).to_have_attribute("data-connection", state)


def card(page: Page, card_id: str) -> Locator:
    return page.locator(f'[data-card-id="{card_id}"]')


def kinds(page: Page, kind: str, status: str) -> Locator:
    return page.locator(f'[data-card-kind="{kind}"][data-status="{status}"]')


def composer(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def say(page: Page, text: str) -> None:
    field = composer(page)
    field.fill(text)
    field.press("Enter")


def session_of(page: Page) -> str:
    return page.evaluate("new URLSearchParams(location.search).get('session')") or ""


def wait_for_frames(
    page: Page, server: ScriptedServer, frame_type: str, count: int = 1
) -> list[dict[str, Any]]:
    """Wait until the page has sent some frames of a type."""

    def has_sent() -> bool:
        # Any call of the browser lets its messages in.
        page.evaluate("0")
        return len(server.sent_of(frame_type)) >= count

    until(has_sent, f"the page to send {frame_type}")
    return server.sent_of(frame_type)
