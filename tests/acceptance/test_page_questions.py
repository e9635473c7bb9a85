"""Questions on the page that a test asks: frames that repeat, refusals, manners.

Spec: EMIT 2.4.2, 2.4.4, 7; Rulings E3, E15, E16.
"""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.page_parts import composer, is_connected, wait_for_frames
from tests.acceptance.page_prompts import (
    answers_of,
    asked,
    choice,
    lines,
    refuse,
    surfaces,
)
from tests.acceptance.page_script import Script
from tests.acceptance.scripted_server import Show

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)


class TestOnTheWire:
    def test_is_shown_once_however_often_it_is_sent(
        self, page: Page, show: Show
    ) -> None:
        """Spec: EMIT 2.4.2, 2.4.4; Ruling E3."""
        server = asked(show)
        expect(surfaces(page)).to_have_count(1)
        surfaces(page).get_by_label("Your answer").fill("half")
        for _ in range(2):
            server.close(1012)
            is_connected(page, "waiting")
            is_connected(page, "open")

        resume = wait_for_frames(page, server, "session.resume", 3)[-1]
        assert resume["last_seq"] == 2
        expect(surfaces(page)).to_have_count(1)
        expect(surfaces(page).get_by_label("Your answer")).to_have_value("half")

    def test_shows_nothing_of_what_was_settled_long_ago(
        self, page: Page, show: Show
    ) -> None:
        script = Script()
        script.turn("turn_1", "Ask me")
        script.ask("req_1", "question", question="Old?", allow_custom=True)
        script.settle("req_1", "denied", reason="asked elsewhere")
        script.add("m", "message", "turn_1", role="assistant")
        script.close("m")
        script.close("turn_1")

        show(script)

        expect(lines(page)).to_contain_text("Declined to answer: asked elsewhere")
        expect(page.locator(".prompt-line + [data-card-id='m']")).to_have_count(1)
        expect(surfaces(page)).to_have_count(0)

    def test_answers_once(self, page: Page, show: Show) -> None:
        """Spec: EMIT 2.4.4; Ruling E15."""
        server = asked(show)
        field = surfaces(page).get_by_label("Your answer")
        field.fill("yes")

        page.evaluate(
            "() => { const form = document.querySelector('.prompt form');"
            " form.requestSubmit(); form.requestSubmit(); }"
        )
        expect(surfaces(page)).to_contain_text("Sending…")
        expect(field).to_be_disabled()
        expect(surfaces(page)).to_be_focused()

        assert wait_for_frames(page, server, "prompt.user_response") == [
            {
                "type": "prompt.user_response",
                "request_id": "req_1",
                "decision": "approved",
                "payload": {"selected_options": [], "custom_text": "yes"},
            }
        ]

    def test_sends_an_answer_again_that_may_be_lost(
        self, page: Page, show: Show
    ) -> None:
        """Spec: EMIT 2.4.2."""
        server = asked(show)
        surfaces(page).get_by_label("Your answer").fill("yes")
        surfaces(page).get_by_label("Your answer").press("Enter")
        wait_for_frames(page, server, "prompt.user_response")
        server.close(1012)

        first, again = wait_for_frames(page, server, "prompt.user_response", 2)
        assert first == again
        server.close(1012)
        server.script.settle("req_1", "approved")
        wait_for_frames(page, server, "session.resume", 3)

        expect(lines(page)).to_contain_text("Answered")
        assert len(answers_of(server)) == 2

    def test_hides_what_the_server_does_not_wait_for(
        self, page: Page, show: Show
    ) -> None:
        """Spec: Ruling E15."""
        server = asked(show)
        surfaces(page).get_by_label("Your answer").fill("yes")
        choice(surfaces(page), "Answer").click()

        refuse(server, "UNKNOWN_REQUEST_ID", "There is a problem.")

        expect(surfaces(page)).to_have_count(0)
        notice = page.locator("#notices").get_by_role("alert")
        expect(notice).to_have_count(1)
        expect(notice).to_contain_text("already answered or has expired")
        expect(lines(page)).to_contain_text("Already answered, or expired")

    def test_may_be_answered_again_when_it_was_refused(
        self, page: Page, show: Show
    ) -> None:
        """Spec: Ruling E16."""
        server = asked(show)
        field = surfaces(page).get_by_label("Your answer")
        field.fill("no")
        field.press("Enter")

        refuse(server, "INVALID_ANSWER", "That does not fit.")
        expect(surfaces(page).get_by_role("alert")).to_contain_text("does not fit")
        expect(page.locator("#notices")).to_be_empty()
        field.fill("yes")
        field.press("Enter")

        wait_for_frames(page, server, "prompt.user_response", 2)
        texts = [frame["payload"]["custom_text"] for frame in answers_of(server)]
        assert texts == ["no", "yes"]
        server.script.settle("req_1", "approved")
        server.push()
        expect(lines(page)).to_contain_text("Answered: yes")

    def test_doubts_what_is_old(self, page: Page, show: Show) -> None:
        """Spec: EMIT 2.4.4."""
        asked(show, asked_at="2025-12-23T12:00:00.000Z")

        expect(surfaces(page)).to_contain_text(
            "This question is 8 days old; it may have expired."
        )

    def test_tells_roughly_how_long_it_waits(self, page: Page, show: Show) -> None:
        asked(show, timeout_ms=7_200_000)

        expect(surfaces(page)).to_contain_text("about 2 hours left")

    def test_shows_a_kind_of_a_later_protocol(self, page: Page, show: Show) -> None:
        script = Script()
        script.turn("turn_1", "Ask me")
        script.ask("req_1", "riddle", verse="What walks on four legs?")

        show(script)

        expect(surfaces(page)).to_contain_text("What walks on four legs?")
        expect(surfaces(page).get_by_role("button")).to_have_count(0)


class TestManners:
    def test_never_takes_the_focus_from_who_types(self, page: Page, show: Show) -> None:
        server = asked(show, count=0)
        composer(page).press_sequentially("I am wri")
        script = server.script

        script.ask("req_1", "permission", tool_name="Bash", tool_input="ls")
        server.push()
        expect(surfaces(page)).to_have_count(1)
        composer(page).press_sequentially("ting")

        expect(composer(page)).to_be_focused()
        expect(composer(page)).to_have_value("I am writing")
        expect(page.locator("#announcer")).to_contain_text("Allow Bash?")
        script.settle("req_1", "approved")
        server.push()
        expect(page.locator("#announcer")).to_contain_text("Allowed")
        expect(composer(page)).to_be_focused()

    def test_goes_from_one_to_the_next_by_keyboard(
        self, page: Page, show: Show
    ) -> None:
        asked(show, count=2)
        expect(surfaces(page)).to_have_count(2)

        for place in (0, 1):
            page.keyboard.press("Alt+p")
            expect(surfaces(page).nth(place)).to_be_focused()
        page.keyboard.press("Alt+p")

        expect(composer(page)).to_be_focused()

    def test_decides_nothing_by_escape(self, page: Page, show: Show) -> None:
        server = asked(show)
        field = surfaces(page).get_by_label("Your answer")
        field.fill("half")

        for control in (field, choice(surfaces(page), "Decline to answer")):
            control.press("Escape")
        surfaces(page).press("Escape")

        expect(field).to_have_value("half")
        assert answers_of(server) == []
        assert server.sent_of("session.interrupt") == []

    def test_takes_no_click_that_was_meant_for_something_else(
        self, page: Page, show: Show
    ) -> None:
        """What appears under the pointer was not what it was going for."""
        server = asked(show)
        expect(surfaces(page)).to_have_count(1)
        decline = choice(surfaces(page).first, "Decline to answer")
        decline.hover()
        box = decline.bounding_box()
        assert box is not None

        server.script.ask("req_2", "question", question="And?", allow_custom=True)
        server.push()
        surfaces(page).nth(1).wait_for()
        page.mouse.click(box["x"] + 5, box["y"] + 5)

        assert answers_of(server) == []
        choice(surfaces(page).nth(1), "Decline to answer").click()
        (answer,) = wait_for_frames(page, server, "prompt.user_response")
        assert answer["request_id"] == "req_2"

    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("size", [(390, 844), (390, 420), (1280, 720)])
    def test_fits_the_screen_with_its_buttons(
        self, page: Page, show: Show, scheme: Any, size: tuple[int, int]
    ) -> None:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": size[0], "height": size[1]})
        script = Script()
        script.turn("turn_1", "Ask me")
        steps = [{"id": f"s{n}", "description": "long " * 40} for n in range(30)]
        script.ask("req_1", "plan_review", plan_id="p", goal="g" * 200, steps=steps)

        show(script)
        choice(surfaces(page), "Edit steps").click()

        for seen in (choice(surfaces(page), "Approve"), composer(page)):
            expect(seen).to_be_in_viewport(ratio=1)
        expect(surfaces(page).get_by_role("heading")).to_be_in_viewport()
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        body = surfaces(page).locator(".prompt-body")
        assert body.evaluate("e => e.scrollWidth <= e.clientWidth")
