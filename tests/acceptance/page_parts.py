"""Parts of the page, as the tests of the page name them."""

from playwright.sync_api import Locator, Page, expect


def is_connected(page: Page, state: str) -> None:
    expect(page.locator("html")).to_have_attribute("data-connection", state)


def card(page: Page, card_id: str) -> Locator:
    return page.locator(f'[data-card-id="{card_id}"]')


def kinds(page: Page, kind: str, status: str) -> Locator:
    return page.locator(f'[data-card-kind="{kind}"][data-status="{status}"]')


def say(page: Page, text: str) -> None:
    field = page.get_by_label("Message", exact=True)
    field.fill(text)
    field.press("Enter")


def session_of(page: Page) -> str:
    return page.evaluate("new URLSearchParams(location.search).get('session')") or ""
