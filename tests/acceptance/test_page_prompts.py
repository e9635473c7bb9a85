"""The page asks its user: a surface for each kind, in every tab, after every crash.

Spec: EMIT 2.4.2, 2.4.4, 7; Rulings E15, E16, E19, E26.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.acceptance.page_parts import is_connected, say
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)


@pytest.fixture
def own_page_server(tmp_path: Path) -> Iterator[CardwireServer]:
    """A server for one test to kill; a lost worker is noticed soon."""
    engine = "tests.acceptance.page_engine.PageEngine"
    server = CardwireServer(tmp_path, CARDWIRE_ENGINE=engine, CARDWIRE_LEASE_S="1")
    try:
        server.start()
        yield server
    finally:
        server.close()


def prompts(page: Page, kind: str = "") -> Locator:
    return page.locator(f'[data-prompt-kind="{kind}"]' if kind else "[data-request-id]")


def button(part: Locator, name: str) -> Locator:
    return part.get_by_role("button", name=name)


def heard(page: Page, text: str) -> None:
    expect(page.locator('[data-card-kind="message"]').last).to_contain_text(
        f"I heard: {text}"
    )
    expect(prompts(page)).to_have_count(0)


class TestQuestion:
    def test_takes_choices_and_own_words(self, page: Page) -> None:
        page.goto("/")
        say(page, "choose")
        asked = prompts(page, "question")
        expect(asked).to_contain_text("Which toppings?")
        answer = button(asked, "Answer").first
        expect(answer).to_be_disabled()

        asked.get_by_label("figs").check()
        asked.get_by_label("ham").check()
        answer.click()

        heard(page, "ham; figs")
        expect(page.locator(".timeline")).to_contain_text("Answered: ham; figs")

    def test_can_be_declined(self, page: Page) -> None:
        page.goto("/")
        say(page, "choose")

        button(prompts(page), "Decline to answer").click()

        heard(page, "nothing")

    def test_keeps_two_apart(self, page: Page) -> None:
        page.goto("/")
        say(page, "both")
        expect(prompts(page)).to_have_count(2)

        for words in ("Second", "First"):
            asked = prompts(page).filter(has_text=f"{words}?")
            asked.get_by_role("textbox").fill(words.lower())
            button(asked, "Answer").first.click()
            expect(asked).to_have_count(0)

        heard(page, "first second")

    def test_does_not_take_the_focus_from_who_writes(self, page: Page) -> None:
        page.goto("/")
        say(page, "choose")
        expect(prompts(page)).to_have_count(1)

        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        page.keyboard.press("Alt+p")
        expect(
            page.locator("[data-request-id] :focus, [data-request-id]:focus")
        ).to_have_count(1)


class TestPermission:
    def test_shows_exactly_what_would_be_done(self, page: Page) -> None:
        page.goto("/")
        say(page, "allow rm -rf <b>x</b>")
        asked = prompts(page, "permission")
        expect(asked).to_contain_text("rm -rf <b>x</b>")
        expect(asked).to_contain_text("Sure?")

        button(asked, "Deny").click()

        heard(page, "False once")

    def test_for_the_session_is_not_asked_again(self, page: Page) -> None:
        """Spec: Ruling E18."""
        page.goto("/")
        say(page, "allow ls")
        asked = prompts(page)
        asked.get_by_role("textbox").fill("go on")
        button(asked, "Allow for this session").click()
        heard(page, "True session go on")

        say(page, "allow ls")

        expect(page.get_by_text("I heard: True session")).to_have_count(2)
        expect(prompts(page)).to_have_count(0)


class TestPlanReview:
    def test_edits_the_steps(self, page: Page) -> None:
        page.goto("/")
        say(page, "review")
        asked = prompts(page, "plan_review")
        expect(asked).to_contain_text("A report")

        button(asked, "Edit steps").click()
        asked.get_by_label("What step s2 does").fill("write less")
        button(asked, "Approve with changes").click()

        heard(page, "True True : look, write less")

    def test_is_declined_with_a_reason(self, page: Page) -> None:
        page.goto("/")
        say(page, "review")

        asked = prompts(page)
        asked.get_by_label("Reason").fill("too long")
        button(asked, "Decline").click()

        heard(page, "False False too long: look, write")


class TestStepDecision:
    @pytest.mark.parametrize(
        ("allows", "buttons", "pressed", "decision"),
        [
            ("retry", 3, "Try again", "retry"),
            ("no", 2, "Continue", "continue"),
        ],
    )
    def test_offers_what_is_allowed(
        self, page: Page, allows: str, buttons: int, pressed: str, decision: str
    ) -> None:
        page.goto("/")
        say(page, f"decide {allows}")
        asked = prompts(page, "step_decision")
        expect(asked).to_contain_text("rate limit")
        expect(asked.get_by_role("button")).to_have_count(buttons)

        button(asked, pressed).click()

        heard(page, decision)


class TestEverywhere:
    def test_is_answered_in_one_tab_and_gone_in_the_other(self, page: Page) -> None:
        """Spec: Ruling E26; case HC-55."""
        page.goto("/")
        say(page, "choose")
        expect(prompts(page)).to_have_count(1)
        other = page.context.new_page()
        other.goto(page.url)
        for _ in range(3):
            other.reload()
            expect(prompts(other)).to_have_count(1)

        prompts(other).get_by_label("figs").check()
        button(prompts(other), "Answer").first.click()

        heard(page, "figs")
        heard(other, "figs")

    def test_outlives_the_server(
        self, browser: Browser, own_page_server: CardwireServer
    ) -> None:
        """Spec: EMIT 2.4.2; cases HC-22, HC-23."""
        context = browser.new_context(base_url=own_page_server.url)
        page = context.new_page()
        page.goto("/")
        say(page, "ask Which color?")
        expect(prompts(page)).to_have_count(1)

        own_page_server.kill()
        is_connected(page, "waiting")
        own_page_server.start_again()
        phone = context.new_page()
        phone.set_viewport_size({"width": 390, "height": 800})
        phone.goto(page.url)

        expect(prompts(page)).to_have_count(1)
        prompts(phone).get_by_label("blue").check()
        button(prompts(phone), "Answer").first.click()
        for each in (page, phone):
            expect(each.locator('[data-card-kind="message"]').last).to_contain_text(
                "My answer: blue"
            )
            expect(prompts(each)).to_have_count(0)
        context.close()
