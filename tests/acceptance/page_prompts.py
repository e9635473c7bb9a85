"""Parts of the page that ask the user."""

from typing import Any

from playwright.sync_api import Locator, Page

from tests.acceptance.page_script import Script
from tests.acceptance.scripted_server import ScriptedServer, Show


def surfaces(page: Page) -> Locator:
    return page.get_by_role("region", name="Questions to you").locator(".prompt")


def choice(surface: Locator, name: str) -> Locator:
    return surface.get_by_role("button", name=name, exact=True)


def lines(page: Page) -> Locator:
    """What the timeline tells of prompts."""
    return page.locator("#timeline .prompt-line")


def said(page: Page) -> Locator:
    """What the engine said last."""
    return page.locator('#timeline [data-card-kind="message"]').last


def asked(show: Show, *, count: int = 1, **fields: Any) -> ScriptedServer:
    """Show a turn that asks for words."""
    script = Script()
    script.turn("turn_1", "Ask me")
    for number in range(1, count + 1):
        inner: dict[str, Any] = {
            "question": f"Question {number}?",
            "allow_custom": True,
        }
        script.ask(f"req_{number}", "question", **inner, **fields)
    return show(script)


def answers_of(server: ScriptedServer) -> list[dict[str, Any]]:
    return server.sent_of("prompt.user_response")


def refuse(server: ScriptedServer, code: str, user_message: str) -> None:
    """Answer an answer with an error."""
    error = {
        "type": "invalid_input",
        "code": code,
        "message": code,
        "user_message": user_message,
        "details": {"request_id": "req_1", "field": "payload"},
    }
    server.tell("error", error=error)
