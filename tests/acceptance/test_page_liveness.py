"""The page while work goes on, is stopped, waits, breaks off or loses its server.

Spec: EMIT 9, 12, 16; Rulings E8-E12, E14, E27.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.template.loader import render_to_string
from django.test import RequestFactory
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.acceptance import page_script
from tests.acceptance.page_parts import (
    card,
    is_connected,
    kinds,
    say,
    wait_for_frames,
)
from tests.acceptance.page_script import SERVER_STOPPED, SESSION, TRACE, WORKER_LOST
from tests.acceptance.scripted_server import ScriptedServer, Show
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

QUEUE_FULL = page_script.error(
    "overloaded", "8 messages wait", "Please wait a moment.", code="QUEUE_FULL"
)


@pytest.fixture
def own_page_server(tmp_path: Path) -> Iterator[CardwireServer]:
    """A server for one test to mistreat; a lost worker is noticed soon."""
    engine = "tests.acceptance.page_engine.PageEngine"
    server = CardwireServer(tmp_path, CARDWIRE_ENGINE=engine, CARDWIRE_LEASE_S="1")
    try:
        server.start()
        yield server
    finally:
        server.close()


def field(page: Page) -> Locator:
    return page.get_by_label("Message", exact=True)


def stop_button(page: Page) -> Locator:
    return page.get_by_role("button", name="Stop", exact=True)


def queued(page: Page) -> Locator:
    return page.get_by_role("region", name="Queued messages").get_by_role("listitem")


def is_still(page: Page, selector: str) -> bool:
    """Tell whether nothing that matches is animated."""
    is_quiet: bool = page.evaluate(
        """selector => [...document.querySelectorAll(selector)]
            .flatMap((element) => element.getAnimations({ subtree: true }))
            .every((animation) => animation.playState !== 'running')""",
        selector,
    )
    return is_quiet


class TestStop:
    def test_stops_a_running_turn(self, page: Page) -> None:
        """Spec: Ruling E10."""
        page.goto("/")
        say(page, "work hard")
        expect(kinds(page, "tool", "open")).to_have_count(1)

        stop_button(page).click()

        turn = kinds(page, "turn", "cancelled")
        expect(turn).to_contain_text("Cancelled")
        expect(kinds(page, "tool", "cancelled")).to_have_count(1)
        expect(
            turn.locator(".mark-ok, .mark-failed, .mark-open, .error")
        ).to_have_count(0)
        expect(stop_button(page)).to_have_count(0)
        expect(field(page)).to_be_focused()
        assert is_still(page, ".timeline")

    def test_stops_by_escape_before_anything_was_said(self, page: Page) -> None:
        """Spec: Ruling E10; FR-47."""
        page.goto("/")
        say(page, "brood")
        expect(kinds(page, "turn", "open")).to_have_count(1)

        field(page).press("Escape")

        expect(kinds(page, "turn", "cancelled")).to_have_count(1)
        expect(page.locator('[data-card-kind="message"]')).to_have_count(0)

    def test_names_the_turn_that_is_meant_and_stays_pressed(
        self, page: Page, show: Show
    ) -> None:
        """Spec: Ruling E10; FR-43."""
        server = show(page_script.at_work())
        expect(stop_button(page)).to_have_attribute("aria-pressed", "false")

        stop_button(page).click()

        expect(stop_button(page)).to_have_attribute("aria-pressed", "true")
        assert wait_for_frames(page, server, "session.interrupt") == [
            {"type": "session.interrupt", "trace_id": TRACE, "turn_card_id": "turn_1"}
        ]
        server.script.close("tool", "cancelled")
        server.script.close("turn_1", "cancelled")
        server.push()
        expect(stop_button(page)).to_have_count(0)

    def test_stops_a_message_that_has_no_turn_yet(self, page: Page, show: Show) -> None:
        """Spec: Ruling E10."""
        server = show(page_script.Script())
        say(page, "Begin")
        [message] = wait_for_frames(page, server, "user.message")

        field(page).press("Escape")

        [interrupt] = wait_for_frames(page, server, "session.interrupt")
        assert interrupt["turn_card_id"] == f"turn_{message['event_id']}"
        expect(stop_button(page)).to_have_attribute("aria-pressed", "true")

    def test_is_released_when_nothing_runs(self, page: Page, show: Show) -> None:
        """Spec: Ruling E10."""
        server = show(page_script.at_work())
        stop_button(page).click()
        expect(stop_button(page)).to_have_attribute("aria-pressed", "true")

        server.tell("updated", state="idle")

        expect(stop_button(page)).to_have_attribute("aria-pressed", "false")

    def test_leaves_escape_to_an_open_drawer(self, page: Page, show: Show) -> None:
        page.set_viewport_size({"width": 360, "height": 740})
        server = show(page_script.at_work())
        page.get_by_role("button", name="Conversations").click()
        expect(page.get_by_role("link", name="New conversation")).to_be_focused()

        page.keyboard.press("Escape")

        expect(page.get_by_role("link", name="New conversation")).to_be_hidden()
        assert server.sent_of("session.interrupt") == []


class TestQueue:
    def test_shows_what_waits_in_every_tab_and_after_a_reload(self, page: Page) -> None:
        """Spec: Ruling E9."""
        page.goto("/")
        say(page, "work first")
        expect(kinds(page, "tool", "open")).to_have_count(1)
        say(page, "hi second")
        say(page, "hi third")
        waiting = [re.compile(r"hi second\s+Queued"), re.compile(r"hi third\s+Queued")]
        expect(queued(page)).to_have_text(waiting)
        other = page.context.new_page()
        other.goto(page.url)
        expect(queued(other)).to_have_text(waiting)

        page.reload()
        expect(queued(page)).to_have_text(waiting)
        stop_button(page).click()

        for tab in (page, other):
            expect(kinds(tab, "turn", "cancelled")).to_have_count(1)
            expect(kinds(tab, "turn", "ok")).to_have_count(2)
            expect(queued(tab)).to_have_count(0)
        expect(page.locator(".bubble")).to_have_text(
            [re.compile(words) for words in ("work first", "hi second", "hi third")]
        )

    def test_is_stopped_and_cleared(self, page: Page) -> None:
        """Spec: Rulings E9, E10."""
        page.goto("/")
        say(page, "work first")
        expect(kinds(page, "tool", "open")).to_have_count(1)
        say(page, "work second")
        expect(queued(page)).to_have_count(1)

        page.get_by_role("button", name="Stop and clear queue").click()

        expect(kinds(page, "turn", "cancelled")).to_have_count(2)
        expect(queued(page)).to_have_count(0)
        expect(stop_button(page)).to_have_count(0)

    def test_shows_an_own_message_once(self, page: Page, show: Show) -> None:
        """Spec: Ruling E9."""
        server = show(page_script.at_work())
        say(page, "And then?")
        expect(queued(page)).to_have_text([re.compile(r"And then\?\s+Sending")])
        [message] = wait_for_frames(page, server, "user.message")
        event_id = message["event_id"]

        entry = {"event_id": event_id, "text": "And then?"}
        server.script.session_event("updated", queue=[entry])
        server.push()
        expect(queued(page)).to_have_text([re.compile(r"And then\?\s+Queued")])
        server.script.close("tool")
        server.script.close("turn_1")
        server.script.turn(f"turn_{event_id}", "And then?")
        server.push()

        expect(queued(page)).to_have_count(0)
        expect(page.locator(".bubble").last).to_contain_text("And then?")

    def test_gives_the_words_back_when_it_is_full(self, page: Page, show: Show) -> None:
        """Spec: Ruling E9."""
        server = show(page_script.at_work())
        say(page, "One more\nthing")
        [message] = wait_for_frames(page, server, "user.message")
        field(page).fill("Something else")

        details = {"event_id": message["event_id"]}
        server.tell("error", error={**QUEUE_FULL, "details": details})

        expect(field(page)).to_have_value("One more\nthing\n\nSomething else")
        expect(page.get_by_role("alert")).to_contain_text("Please wait a moment.")
        expect(queued(page)).to_have_count(0)


class TestBrokenOff:
    def test_tells_of_a_lost_worker_and_tries_again(
        self, page: Page, show: Show
    ) -> None:
        """Spec: Ruling E14."""
        server = show(page_script.cut_off("failed", WORKER_LOST))
        turn = card(page, "turn_1")
        expect(turn.locator(".error")).to_have_count(1)
        expect(turn.locator(".error")).to_contain_text("was interrupted while")
        expect(card(page, "tool")).to_contain_text("Failed")
        expect(page.locator("#notices").get_by_role("alert")).to_have_count(0)
        assert is_still(page, ".timeline")

        turn.get_by_role("button", name="Try again").click()

        [message] = wait_for_frames(page, server, "user.message")
        assert message["content"] == [{"type": "text", "text": "Write the report"}]
        assert message["event_id"] != "1"
        expect(turn.get_by_role("button", name="Try again")).to_be_disabled()

    def test_shows_a_stopped_server_as_stopped(self, page: Page, show: Show) -> None:
        """Spec: Ruling E11."""
        show(page_script.cut_off("cancelled", SERVER_STOPPED))

        turn = card(page, "turn_1")
        expect(turn.locator(".error-calm")).to_contain_text("was restarted while")
        expect(turn.get_by_role("button", name="Try again")).to_be_visible()
        expect(turn.locator(".mark-ok, .mark-failed")).to_have_count(0)
        expect(page.locator("#notices").get_by_role("alert")).to_have_count(0)

    def test_does_not_offer_what_would_not_help(self, page: Page, show: Show) -> None:
        """Spec: EMIT 12; Ruling E13."""
        silent = page_script.error("orphan_timeout", "silent", "This step went silent.")
        show(page_script.cut_off("failed", silent))

        turn = card(page, "turn_1")
        expect(turn).to_contain_text("This step went silent.")
        expect(turn.get_by_role("button", name="Try again")).to_have_count(0)

    def test_never_moves_below_a_closed_turn(self, page: Page, show: Show) -> None:
        """Spec: EMIT 16."""
        script = page_script.at_work()
        script.close("turn_1", "failed", error=WORKER_LOST)
        show(script)

        expect(card(page, "tool")).to_have_attribute("data-status", "open")
        assert is_still(page, ".timeline")

    def test_finds_the_turn_of_a_killed_server_closed(
        self, browser: Browser, own_page_server: CardwireServer
    ) -> None:
        """Spec: Ruling E14."""
        server = own_page_server
        page = browser.new_context(base_url=server.url).new_page()
        page.goto("/")
        say(page, "work on")
        expect(kinds(page, "tool", "open")).to_have_count(1)
        server.kill()
        is_connected(page, "waiting")
        expect(page.locator(".timeline")).to_contain_text("Whether this goes on")
        assert is_still(page, ".timeline")

        server.start()

        turn = kinds(page, "turn", "failed")
        expect(turn).to_contain_text("was interrupted while", timeout=60_000)
        expect(turn.get_by_role("button", name="Try again")).to_be_visible()
        expect(stop_button(page)).to_have_count(0)
        page.context.close()


class TestConnectionState:
    def test_tells_that_it_reconnects_and_when(self, page: Page, show: Show) -> None:
        """Spec: EMIT 16."""
        server = show(page_script.at_work())
        server.refusal = 1013
        said = page.locator("#connection").get_by_role("status")
        expect(said).to_have_text("Connected")

        server.close(1013)

        is_connected(page, "waiting")
        expect(said).to_have_text("Reconnecting")
        expect(page.locator("#connection")).to_contain_text(re.compile(r"in \d+ s"))
        assert is_still(page, ".timeline")
        server.refusal = 0
        page.get_by_role("button", name="Retry now").click()
        is_connected(page, "open")
        expect(said).to_have_text("Connected")
        assert server.sent_of("session.resume")[-1]["last_seq"] == 6

    def test_tells_that_the_network_is_away(self, page: Page, show: Show) -> None:
        server = show(page_script.at_work())
        page.context.set_offline(True)
        server.refusal = 1013

        server.close(1013)

        expect(page.locator("#connection").get_by_role("status")).to_have_text(
            "Offline"
        )

    def test_leads_to_the_sign_in_page_when_signed_out(
        self, browser: Browser, page_server: CardwireServer
    ) -> None:
        """Spec: Ruling E27."""
        page = browser.new_context(base_url=page_server.url).new_page()
        scripted = ScriptedServer(page_script.at_work())
        page.route_web_socket(re.compile(r"/v1/ws"), scripted.serve)
        page.goto(f"/?session={SESSION}")
        is_connected(page, "open")
        field(page).fill("Not yet sent")

        def refuse(route: Route) -> None:
            route.fulfill(status=403, body="{}")

        page.route("**/v1/sessions", refuse)
        scripted.refusal = 1008
        scripted.close(1008)

        is_connected(page, "signed_out")
        link = page.locator("#signed-out").get_by_role("link", name="Sign in")
        expect(link).to_have_attribute(
            "href", f"/sign-in/?next=%2F%3Fsession%3D{SESSION}"
        )
        said = page.locator("#connection").get_by_role("status")
        expect(said).to_have_text("Signed out")
        expect(stop_button(page)).to_have_count(0)
        # Somebody signs in, in this tab or another: the words are still there.
        page.unroute("**/v1/sessions", refuse)
        scripted.refusal = 0
        page.reload()
        is_connected(page, "open")
        expect(field(page)).to_have_value("Not yet sent")
        page.context.close()


class TestAccount:
    def _goto(self, page: Page, **context: Any) -> None:
        request = RequestFactory().get("/")
        text = render_to_string("cards/page.html", context, request=request)

        def answer(route: Route) -> None:
            route.fulfill(body=text, content_type="text/html")

        page.route(re.compile(r"/(\?.*)?$"), answer)
        page.goto("/")

    def test_shows_who_is_signed_in_and_the_way_out(self, page: Page) -> None:
        """Spec: Ruling E27."""
        self._goto(page, signed_in_name="Ada <b>", sign_out_url="/sign-out/")

        account = page.locator(".account")
        expect(account).to_contain_text("Ada <b>")
        expect(account.get_by_role("button", name="Sign out")).to_be_visible()
        expect(account.locator("form")).to_have_attribute("method", "post")
        token = account.locator('input[name="csrfmiddlewaretoken"]')
        expect(token).to_have_value(re.compile(r"\w{32,}"))

    def test_leads_a_guest_to_the_sign_in_page_and_back(self, page: Page) -> None:
        """Spec: Ruling E27."""
        # The browser keeps a page that a test made up from the server's socket.
        scripted = ScriptedServer(page_script.at_work())
        page.route_web_socket(re.compile(r"/v1/ws"), scripted.serve)
        self._goto(page, sign_in_url="/enter/", anonymous_allowed=True)
        is_connected(page, "open")
        say(page, "And then?")
        page.wait_for_url(f"**/?session={SESSION}")
        asked: list[str] = []

        def note(route: Route) -> None:
            asked.append(route.request.url)
            route.fulfill(body="", content_type="text/html")

        page.route("**/enter/**", note)
        address = f"/enter/?next=%2F%3Fsession%3D{SESSION}"
        page.locator(".account").get_by_role("link", name="Sign in").click()
        page.wait_for_url(f"**{address}")

        assert [url.endswith(address) for url in asked] == [True]

    def test_shows_no_account_where_there_is_none(self, page: Page) -> None:
        self._goto(page)

        expect(page.locator(".account")).to_have_count(0)


class TestSmallScreen:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_fits_the_narrowest_phone(
        self, page: Page, show: Show, scheme: str
    ) -> None:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 360, "height": 740})
        script = page_script.at_work()
        texts = ("x" * 300, "Then mend what fails, and tell me what it was")
        script.session_event("updated", queue=page_script.queue_of(*texts))

        show(script)
        expect(queued(page)).to_have_count(2)

        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        for name in ("Stop", "Stop and clear queue", "Send"):
            button = page.get_by_role("button", name=name, exact=True)
            expect(button).to_be_in_viewport(ratio=1)
