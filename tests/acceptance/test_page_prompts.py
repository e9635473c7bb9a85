"""Questions to the user on the page, answered by mouse, keyboard and several tabs.

Spec: EMIT 2.4.2, 2.4.4, 7, 16; Rulings E15 to E19, E26.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.page_parts import (
    is_connected,
    kinds,
    say,
    wait_for_frames,
)
from tests.acceptance.page_prompt_engine import LONG_INPUT
from tests.acceptance.page_script import Script
from tests.acceptance.scripted_server import ScriptedServer, Show
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

ENGINE = "tests.acceptance.page_prompt_engine.PromptEngine"


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server whose engine asks, shared by the module."""
    data_dir: Path = tmp_path_factory.mktemp("prompts")
    server = CardwireServer(data_dir, CARDWIRE_ENGINE=ENGINE, CARDWIRE_LEASE_S="1")
    try:
        server.start()
        yield server
    finally:
        server.close()


def ask_for(page: Page, words: str) -> Locator:
    """Have the engine ask in a new conversation; return what it asks."""
    page.goto("/")
    is_connected(page, "open")
    say(page, words)
    expect(surfaces(page)).not_to_have_count(0)
    return surfaces(page).first


def surfaces(page: Page) -> Locator:
    return page.get_by_role("region", name="Questions to you").locator(".prompt")


def choice(surface: Locator, name: str) -> Locator:
    return surface.get_by_role("button", name=name, exact=True)


def lines(page: Page) -> Locator:
    """What the timeline tells of prompts."""
    return page.locator("#timeline .prompt-line")


def composer(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def said(page: Page) -> Locator:
    """What the engine said last."""
    return page.locator('#timeline [data-card-kind="message"]').last


class TestQuestion:
    def test_takes_one_choice(self, page: Page) -> None:
        """Spec: EMIT 7.1, 7.3."""
        surface = ask_for(page, "one")
        expect(surface.get_by_role("group", name="Which colour?")).to_be_visible()
        expect(choice(surface, "Answer")).to_be_disabled()
        expect(surface.get_by_role("textbox")).to_have_count(0)

        surface.get_by_role("radio", name="red").check()
        surface.get_by_role("radio", name="blue").check()
        choice(surface, "Answer").click()

        expect(said(page)).to_contain_text("approved=True text='blue'")
        expect(surfaces(page)).to_have_count(0)
        expect(lines(page)).to_contain_text("Answered: blue")
        expect(composer(page)).to_be_focused()

    def test_is_answered_by_keyboard_alone(self, page: Page) -> None:
        surface = ask_for(page, "one")

        page.keyboard.press("Alt+p")
        expect(surface).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(surface.get_by_role("radio", name="red")).to_be_checked()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")

        expect(said(page)).to_contain_text("text='blue'")

    def test_takes_own_words_instead_of_a_choice(self, page: Page) -> None:
        surface = ask_for(page, "other")
        surface.get_by_role("radio", name="red").check()

        field = surface.get_by_label("In your own words")
        field.fill("rather green")
        expect(surface.get_by_role("radio", name="Other")).to_be_checked()
        field.press("Enter")

        expect(said(page)).to_contain_text("chosen=[] own=rather green")

    def test_takes_several_choices_and_own_words(self, page: Page) -> None:
        surface = ask_for(page, "some")

        surface.get_by_role("checkbox", name="green").check()
        surface.get_by_role("checkbox", name="red").check()
        surface.get_by_label("In your own words").fill("not too bright")
        choice(surface, "Answer").click()

        expect(said(page)).to_contain_text("chosen=['red', 'green'] own=not too bright")
        expect(lines(page)).to_contain_text("Answered: red; green; not too bright")

    def test_takes_free_text_of_several_lines(self, page: Page) -> None:
        surface = ask_for(page, "free")
        field = surface.get_by_label("Your answer")

        field.fill("one")
        field.press("Shift+Enter")
        field.press_sequentially("two")
        expect(surfaces(page)).to_have_count(1)
        field.press("Enter")

        expect(said(page)).to_contain_text("You said: one\ntwo")

    def test_may_be_declined(self, page: Page) -> None:
        """Spec: Ruling E16."""
        surface = ask_for(page, "one")

        choice(surface, "Decline to answer").click()

        expect(said(page)).to_contain_text("approved=False text=''")
        expect(lines(page)).to_contain_text("Declined to answer")

    def test_ends_by_itself_in_its_time(self, page: Page) -> None:
        """Spec: Ruling E17."""
        surface = ask_for(page, "hasty 2")
        expect(surface).to_contain_text("less than a minute left")

        expect(surfaces(page)).to_have_count(0)

        expect(lines(page)).to_contain_text("Nobody answered in time")
        expect(said(page)).to_contain_text("Too late.")

    def test_goes_with_the_turn_that_is_stopped(self, page: Page) -> None:
        """Spec: Ruling E10."""
        ask_for(page, "one")

        page.get_by_role("button", name="Stop", exact=True).click()

        expect(surfaces(page)).to_have_count(0)
        expect(lines(page)).to_contain_text("Withdrawn")


class TestPermission:
    def test_is_given_once(self, page: Page) -> None:
        """Spec: EMIT 7.1; Ruling E18."""
        surface = ask_for(page, "permit ls -la")
        expect(surface.get_by_role("heading")).to_have_text("Allow Bash?")
        expect(surface).to_contain_text("I want to look around.")
        expect(surface.locator("pre").first).to_have_text('{"command":"ls -la"}')
        names = surface.locator(".prompt-choices button > span:first-child")
        expect(names).to_have_text(["Allow once", "Allow for this session", "Deny"])
        expect(choice(surface, "Allow once")).to_have_accessible_description(
            "this call only"
        )

        choice(surface, "Allow once").click()

        expect(said(page)).to_contain_text("True for once, asked")
        expect(lines(page)).to_contain_text("Allowed once")

    def test_is_given_for_the_session(self, page: Page) -> None:
        """Spec: Ruling E18."""
        surface = ask_for(page, "permit git status")
        expect(surface).to_contain_text("Bash:git status")

        choice(surface, "Allow for this session").click()
        expect(said(page)).to_contain_text("True for session, asked")
        expect(lines(page)).to_contain_text("Allowed for this session")
        say(page, "permit git status")

        expect(said(page)).to_contain_text("True for session, remembered")

    def test_is_denied_with_a_remark(self, page: Page) -> None:
        """Spec: EMIT 7.3."""
        surface = ask_for(page, "permit rm -rf /")

        surface.get_by_label("Remark").fill("not that one")
        surface.get_by_label("Remark").press("Enter")
        surface.get_by_label("Remark").press("Escape")
        expect(surfaces(page)).to_have_count(1)
        choice(surface, "Deny").click()

        expect(said(page)).to_contain_text("False for once, asked, 'not that one")
        expect(lines(page)).to_contain_text("Denied")

    def test_shows_all_of_a_long_input(self, page: Page) -> None:
        surface = ask_for(page, "script")
        shown = surface.locator("pre").first
        expect(shown).not_to_contain_text("echo 99")
        expect(surface).to_contain_text("Marked as read only")

        surface.get_by_role("button", name="Show all").click()

        expect(shown).to_have_text(LONG_INPUT)
        assert shown.evaluate("e => e.scrollHeight <= e.clientHeight")

    def test_cannot_be_made_to_look_like_another_one(self, page: Page) -> None:
        """Spec: EMIT 13."""
        surface = ask_for(page, "hidden")

        expect(surface.get_by_role("heading")).to_have_text("Allow <b>Bash</b>?")
        expect(surface.locator("pre")).to_contain_text("ls U+202E<img src=x")
        expect(choice(surface, "<i>Fine</i>")).to_be_visible()
        expect(choice(surface, "Deny")).to_be_visible()
        assert page.evaluate("globalThis.owned") is None


class TestPlanReview:
    def test_approves_the_plan_as_it_is(self, page: Page) -> None:
        """Spec: EMIT 7.1; Ruling E19."""
        surface = ask_for(page, "review")
        for words in ("Compare two papers", "One by one.", "researcher", "after s2"):
            expect(surface).to_contain_text(words)

        choice(surface, "Approve").click()

        expect(said(page)).to_contain_text("approved=True edited=False")
        expect(lines(page)).to_contain_text("Approved")

    def test_approves_an_edited_plan(self, page: Page) -> None:
        """Spec: EMIT 7.3; Ruling E19."""
        surface = ask_for(page, "review")
        choice(surface, "Edit steps").click()

        surface.get_by_label("What step s1 does").fill("Read both papers")
        surface.get_by_role("button", name="Remove s2").click()
        surface.get_by_label("Who does step s3").select_option("writer")
        choice(surface, "Add a step").click()
        expect(choice(surface, "Approve with changes")).to_be_disabled()
        expect(surface.get_by_label("What step s4 does")).to_be_focused()
        page.keyboard.type("Print it")
        choice(surface, "Approve with changes").click()

        expect(said(page)).to_contain_text(
            "approved=True edited=True reason='':"
            " s1 Read both papers (researcher) after [];"
            " s3 Write the report (writer) after ['s1'];"
            " s4 Print it (None) after ['s3']"
        )
        expect(lines(page)).to_contain_text("Approved with changes")

    def test_declines_with_a_reason(self, page: Page) -> None:
        surface = ask_for(page, "review")

        surface.get_by_label("Reason, if you decline").fill("too long")
        choice(surface, "Decline").click()

        expect(said(page)).to_contain_text("approved=False")
        expect(said(page)).to_contain_text("too long")

    def test_goes_on_with_an_edit_that_cannot_be_carried_out(self, page: Page) -> None:
        """Spec: Ruling E19."""
        surface = ask_for(page, "review")
        choice(surface, "Edit steps").click()
        surface.get_by_label("What step s1 does").fill("Read both papers")
        up = surface.get_by_role("button", name="Move s2 up")
        up.press("Enter")
        expect(surface).to_contain_text("after s1, which comes later")
        expect(surface.get_by_role("button", name="Move s2 down")).to_be_focused()

        choice(surface, "Approve with changes").click()

        expect(surface).to_contain_text("Your changes could not be carried out: Step 1")
        expect(surfaces(page)).to_have_count(1)
        expect(lines(page).first).to_contain_text("Not approved: Step 1")
        expect(surface.get_by_label("What step s1 does")).to_have_value(
            "Read both papers"
        )
        choice(surface, "Let s2 not wait for s1").click()
        choice(surface, "Approve with changes").click()
        expect(said(page)).to_contain_text("s2 Compare them (None) after []; s1 Read")

    def test_undoes_all_changes_and_keeps_one_step(self, page: Page) -> None:
        surface = ask_for(page, "review")
        choice(surface, "Edit steps").click()
        for step in ("s1", "s2"):
            choice(surface, f"Remove {step}").click()
        expect(choice(surface, "Remove s3")).to_be_disabled()

        choice(surface, "Undo all changes").click()
        choice(surface, "End editing").click()
        choice(surface, "Approve").click()

        expect(said(page)).to_contain_text("edited=False")


class TestStepDecision:
    @pytest.mark.parametrize(
        ("label", "decision", "words"),
        [
            ("Continue", "continue", "Continued"),
            ("Try again", "retry", "Tried again"),
            ("Stop", "cancel", "Stopped"),
        ],
    )
    def test_decides(self, page: Page, label: str, decision: str, words: str) -> None:
        """Spec: EMIT 7.1; Ruling E16."""
        surface = ask_for(page, "decide again")
        for told in ("Step s2 failed", "rate limit exceeded (+2 more)", "3 times"):
            expect(surface).to_contain_text(told)

        surface.get_by_label("Remark").fill("go")
        choice(surface, label).click()

        expect(said(page)).to_contain_text(f"{decision}, 'go'")
        expect(lines(page)).to_contain_text(words)

    def test_offers_no_second_try_that_is_not_allowed(self, page: Page) -> None:
        surface = ask_for(page, "decide")

        expect(surface.locator(".prompt-choices button")).to_have_count(2)
        expect(choice(surface, "Try again")).to_have_count(0)


class TestSeveral:
    def test_keeps_them_apart(self, page: Page) -> None:
        ask_for(page, "both")
        expect(surfaces(page)).to_have_count(2)
        first, second = (
            surfaces(page).filter(has_text=f"{name} agent")
            for name in ("first", "second")
        )
        expect(page).to_have_title("(2) both · Cardwire")

        first.get_by_label("Your answer").fill("one")
        second.get_by_label("Your answer").fill("two")
        choice(second, "Answer").click()
        expect(surfaces(page)).to_have_count(1)
        expect(first).to_be_focused()
        expect(first.get_by_label("Your answer")).to_have_value("one")
        choice(first, "Answer").click()

        expect(kinds(page, "turn", "ok")).to_contain_text("first: one")
        expect(kinds(page, "turn", "ok")).to_contain_text("second: two")
        expect(lines(page)).to_have_count(2)

    def test_leaves_every_tab_when_one_answers(self, page: Page) -> None:
        """Spec: EMIT 2.4.4; Rulings E15, E26."""
        surface = ask_for(page, "one")
        other = page.context.new_page()
        other.goto(page.url)
        expect(surfaces(other)).to_have_count(1)

        surface.get_by_role("radio", name="red").check()
        choice(surface, "Answer").click()

        expect(surfaces(page)).to_have_count(0)
        expect(surfaces(other)).to_have_count(0)
        expect(lines(other)).to_contain_text("Answered")
        expect(other.locator("#announcer")).to_contain_text("Answered")
        expect(other.locator("#notices")).to_be_empty()

    def test_keeps_what_was_entered_over_a_reload(self, page: Page) -> None:
        surface = ask_for(page, "free")
        surface.get_by_label("Your answer").fill("half an ans")

        page.reload()

        expect(surfaces(page)).to_have_count(1)
        expect(surface.get_by_label("Your answer")).to_have_value("half an ans")


class TestOutage:
    def test_outlives_the_server_and_goes_on_in_a_turn_of_its_own(
        self, page: Page, page_server: CardwireServer
    ) -> None:
        """Spec: EMIT 2.4.2; Ruling E15."""
        surface = ask_for(page, "one")
        page_server.kill()
        is_connected(page, "waiting")
        surface.get_by_role("radio", name="red").check()
        choice(surface, "Answer").click()
        expect(surface).to_contain_text("when the connection is back")
        expect(choice(surface, "Answer")).to_be_disabled()

        surface.get_by_role("button", name="Change").click()
        surface.get_by_role("radio", name="blue").check()
        choice(surface, "Answer").click()
        page_server.start()

        expect(kinds(page, "turn", "ok")).to_contain_text(
            "My answer: blue", timeout=60_000
        )
        expect(kinds(page, "turn", "failed")).to_have_count(1)
        expect(surfaces(page)).to_have_count(0)
        expect(page.locator("#notices")).to_be_empty()


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


def test_snapshot_opens_what_it_lists(page: Page) -> None:
    """Spec: Ruling E5."""
    ask_for(page, "one")
    path = page.evaluate(
        "`/v1/sessions/${new URLSearchParams(location.search).get('session')}/snapshot`"
    )
    snapshot = page.evaluate("path => fetch(path).then(r => r.json())", path)
    fresh = page.context.new_page()

    def refuse_first(socket: Any) -> None:
        upstream = socket.connect_to_server()
        failures = iter([True])

        def pass_up(message: str) -> None:
            frame = json.loads(message)
            if frame["type"] == "session.resume" and next(failures, False):
                frame["trace_id"] = "tr_000000000000000000000000"
            upstream.send(json.dumps(frame))

        socket.on_message(pass_up)

    fresh.route_web_socket("**/v1/ws*", refuse_first)
    with fresh.expect_request("**/snapshot"):
        fresh.goto(page.url)

    expect(surfaces(fresh)).to_have_count(1)
    assert [p["payload"]["kind"] for p in snapshot["prompts"]] == ["question"]
