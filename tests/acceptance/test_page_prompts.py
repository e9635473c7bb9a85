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
    composer,
    is_connected,
    kinds,
    say,
)
from tests.acceptance.page_prompt_engine import LONG_INPUT
from tests.acceptance.page_prompts import (
    choice,
    lines,
    said,
    surfaces,
)
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
