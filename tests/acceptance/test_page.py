"""The page at `/`, in a real browser.

Spec: EMIT 13, 15, 16; Rulings E4, E5, E8, E27, E28.
"""

import json
import re
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect

from tests.acceptance import page_script
from tests.acceptance.page_parts import card, is_connected, kinds, say, session_of
from tests.acceptance.page_script import Script
from tests.acceptance.scripted_server import Show
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

#: Cards of the largest session that the page must show whole.
MANY_CARDS = 3_000


def _cut(
    socket: WebSocketRoute, sent: list[dict[str, Any]], after_frames: int | None
) -> None:
    """Join the page to the server, and break off after some frames."""
    upstream = socket.connect_to_server()
    left = after_frames

    def pass_down(message: str | bytes) -> None:
        nonlocal left
        socket.send(message)
        left = None if left is None else left - 1
        if left == 0:
            socket.close(code=1012)
            upstream.close()

    def pass_up(message: str | bytes) -> None:
        sent.append(json.loads(message))
        upstream.send(message)

    upstream.on_message(pass_down)
    socket.on_message(pass_up)


def shown_cards(page: Page) -> set[tuple[str, str, str]]:
    triples = page.evaluate(
        "[...document.querySelectorAll('[data-card-id]')]"
        ".map(({dataset: d}) => [d.cardId, d.cardKind, d.status])"
    )
    return {tuple(triple) for triple in triples}


def shows_all(page: Page, wanted: set[tuple[str, str, str]]) -> None:
    """Wait until all cards are drawn: a slice per animation frame."""
    drawn = page.locator("[data-card-id]")
    expect(drawn).to_have_count(len(wanted))
    for card_id, kind, status in wanted:
        expect(card(page, card_id)).to_have_attribute("data-card-kind", kind)
        expect(card(page, card_id)).to_have_attribute("data-status", status)
    assert shown_cards(page) == wanted


class TestConversation:
    def test_shows_the_words_and_the_reply(self, page: Page) -> None:
        """Spec: EMIT 14.1; Ruling E28."""
        page.goto("/")
        is_connected(page, "open")

        say(page, "hi <b>there</b>")

        turn = kinds(page, "turn", "ok")
        expect(turn).to_contain_text("hi <b>there</b>")
        expect(kinds(page, "message", "ok")).to_contain_text("Hello World!")
        assert session_of(page).startswith("sess_")

    def test_is_the_same_as_the_snapshot_and_after_a_reload(self, page: Page) -> None:
        """Spec: EMIT 15.2; Ruling E5."""
        page.goto("/")
        say(page, "everything")
        expect(kinds(page, "turn", "ok")).to_have_count(1)
        path = f"/v1/sessions/{session_of(page)}/snapshot"
        snapshot = page.evaluate("path => fetch(path).then(r => r.json())", path)

        wanted = {
            (c["card_id"], c["card_kind"], c["status"]) for c in snapshot["cards"]
        }
        shows_all(page, wanted)
        before = page.locator("#timeline").inner_text()
        page.reload()

        shows_all(page, wanted)
        assert page.locator("#timeline").inner_text() == before

    def test_lists_sessions_and_goes_back_and_forth(self, page: Page) -> None:
        page.goto("/")
        say(page, "hi first")
        expect(kinds(page, "turn", "ok")).to_have_count(1)
        first = session_of(page)
        page.get_by_role("link", name="New conversation").click()
        expect(page.locator("[data-card-id]")).to_have_count(0)
        say(page, "hi second")
        expect(kinds(page, "turn", "ok")).to_contain_text("second")

        page.locator(f'[data-session-id="{first}"]').click()
        expect(page.locator("#timeline")).to_contain_text("hi first")
        assert session_of(page) == first
        page.go_back()

        expect(page.locator("#timeline")).to_contain_text("hi second")

    def test_shift_enter_begins_a_new_line(self, page: Page) -> None:
        page.goto("/")
        field = page.get_by_label("Message", exact=True)
        field.fill("hi")
        field.press("Shift+Enter")
        field.press_sequentially("you")

        expect(field).to_have_value("hi\nyou")
        expect(page.locator(".bubble")).to_have_count(0)

    def test_tells_a_stranger_that_the_session_is_not_there(
        self, page: Page, browser: Browser
    ) -> None:
        """Spec: Ruling E27."""
        page.goto("/")
        say(page, "hi secret")
        expect(kinds(page, "turn", "ok")).to_have_count(1)
        stranger = browser.new_context().new_page()

        stranger.goto(page.url)

        expect(stranger.get_by_role("alert")).to_contain_text("does not exist")
        expect(stranger.locator("[data-card-id]")).to_have_count(0)
        stranger.context.close()

    def test_sends_what_was_written_while_the_server_was_away_once(
        self, page: Page, page_server: CardwireServer
    ) -> None:
        """Spec: EMIT 16; Ruling E8."""
        page.goto("/")
        say(page, "hi before")
        expect(kinds(page, "turn", "ok")).to_have_count(1)
        page_server.kill()
        is_connected(page, "waiting")

        say(page, "hi meanwhile")
        expect(page.locator("#pending")).to_contain_text("when the connection is back")
        page_server.start()

        expect(kinds(page, "turn", "ok")).to_have_count(2, timeout=60_000)
        expect(page.locator("#pending")).to_be_empty()
        expect(page.locator(".bubble")).to_have_text(
            [re.compile("hi before"), re.compile("hi meanwhile")]
        )

    def test_goes_on_with_a_stream_after_a_lost_connection(self, page: Page) -> None:
        """Spec: EMIT 2.4.1; Ruling E4."""
        sent: list[dict[str, Any]] = []
        cuts = iter([60])
        page.route_web_socket(
            re.compile(r"/v1/ws"), lambda socket: _cut(socket, sent, next(cuts, None))
        )
        page.goto("/")

        say(page, "paced 300")

        reply = kinds(page, "message", "ok")
        expect(reply).to_contain_text("299", timeout=60_000)
        numbers = [str(number) for number in range(300)]
        assert reply.locator(".prose").inner_text().split() == numbers
        resumes = [frame for frame in sent if frame["type"] == "session.resume"]
        assert [frame["last_seq"] > 0 for frame in resumes] == [True]

    def test_shows_a_failed_turn_as_failed(self, page: Page) -> None:
        """Spec: EMIT 16; Ruling E11."""
        page.goto("/")

        say(page, "boom")

        turn = kinds(page, "turn", "failed")
        expect(turn).to_contain_text("Failed")
        expect(turn).to_contain_text("Something unexpected happened.")
        expect(turn).to_contain_text("So far so good")
        # Told where it happened, and nowhere else.
        expect(page.locator("#notices").get_by_role("alert")).to_have_count(0)

    def test_shows_an_error_that_no_turn_tells_until_it_is_dismissed(
        self, page: Page, show: Show
    ) -> None:
        """Spec: EMIT 12."""
        script = Script()
        script.say("Done.")
        script.session_event("error", error=page_script.error("internal", "x", "Oh."))
        show(script)

        notice = page.locator("#notices").get_by_role("alert")
        expect(notice).to_contain_text("Oh.")
        notice.get_by_role("button", name="Dismiss").click()

        expect(notice).to_have_count(0)


class TestCards:
    def test_draws_every_kind_nested_as_the_frames_say(
        self, page: Page, show: Show
    ) -> None:
        """Spec: EMIT 5, 15.2."""
        script = page_script.one_of_each_kind()
        show(script)

        adds = [json.loads(f) for f in script.frames if '"card.add"' in f]
        expect(page.locator("[data-card-id]")).to_have_count(len(adds))
        for frame in adds:
            envelope = frame["envelope"]
            drawn = card(page, envelope["card_id"])
            expect(drawn).to_have_attribute("data-card-kind", envelope["card_kind"])
            parent = envelope.get("parent_card_id")
            if parent:
                expect(card(page, parent).locator(drawn)).to_have_count(1)

    @pytest.mark.parametrize(
        ("card_id", "words"),
        [
            ("sys", ["No search", "Why", "Fix"]),
            ("turn_1", ["Do everything"]),
            ("msg", ["Let me see."]),
            ("tool", ["Bash", "ls", "a.txt", "skipped the cache", "1.5 s"]),
            ("agent", ["researcher", "Find", "Found it", "3 rounds"]),
            ("plan", ["Reach the goal", "1 of 1 done"]),
            ("step", ["First", "Attempt 2", "Reached", "Deep inside."]),
            ("art", ["report.md", "version 2"]),
            ("thk", ["hm"]),
            ("mem", ["Remembered", "a fact", "2 kB"]),
            ("bud", ["9 of 10 tokens"]),
            ("todo", ["Write", "In progress"]),
            ("team", ["Crew", "ann", "bob"]),
            ("holo", ["Hologram", "depth", "3"]),
        ],
    )
    def test_tells_what_the_card_tells(
        self, page: Page, show: Show, card_id: str, words: list[str]
    ) -> None:
        """Spec: EMIT 10."""
        show(page_script.one_of_each_kind())

        for word in words:
            expect(card(page, card_id)).to_contain_text(word)

    def test_never_lets_a_bad_end_look_good(self, page: Page, show: Show) -> None:
        """Spec: EMIT 16."""
        show(page_script.every_bad_end())

        for status in ("failed", "skipped", "cancelled", "vanished"):
            ended = card(page, status)
            expect(ended).to_have_attribute("data-status", status)
            expect(ended.locator(".mark-ok")).to_have_count(0)
            expect(ended.locator(".status-word")).to_have_text(status.capitalize())
        expect(card(page, "failed")).to_contain_text("That took too long.")
        developer_text = card(page, "failed").get_by_text("Bash exceeded 120 s")
        expect(developer_text).to_be_hidden()
        card(page, "failed").get_by_text("Details").click()
        expect(developer_text).to_be_visible()

    def test_shows_progress_while_a_tool_runs(self, page: Page, show: Show) -> None:
        """Spec: EMIT 11."""
        script = Script()
        script.turn("turn_1", "Fetch")
        tool = script.add("tool", "tool", "turn_1", title="WebFetch", name="WebFetch")
        script.tick(tool, "intent", intent="Fetch the paper")
        script.tick(tool, "heartbeat", stage="connecting", uptime_ms=5000)
        script.tick(
            tool, "progress", stage="parsing", items_processed=12, items_total=30
        )

        show(script)

        expect(card(page, "tool").get_by_role("progressbar")).to_have_js_property(
            "value", 0.4
        )
        for word in ("Fetch the paper", "parsing", "12 of 30"):
            expect(card(page, "tool")).to_contain_text(word)

    def test_shows_thousands_of_cards_live_and_as_a_history(self, page: Page) -> None:
        page.goto("/")
        say(page, f"many {MANY_CARDS}")
        expect(kinds(page, "turn", "ok")).to_have_count(1, timeout=90_000)
        expect(kinds(page, "tool", "ok")).to_have_count(MANY_CARDS, timeout=90_000)

        page.reload()

        expect(kinds(page, "tool", "ok")).to_have_count(MANY_CARDS, timeout=90_000)
        expect(kinds(page, "tool", "ok").last).to_be_in_viewport()


class TestMarkdown:
    def test_cannot_be_made_to_run_load_or_lead_astray(
        self, page: Page, show: Show
    ) -> None:
        """Spec: EMIT 13."""
        requested: list[str] = []
        page.on("request", lambda request: requested.append(request.url))
        script = Script()
        script.say(page_script.HOSTILE_MARKDOWN)

        show(script)
        expect(card(page, "m")).to_contain_text("<script>")

        reply = card(page, "m")
        hrefs = reply.locator("a").evaluate_all("links => links.map(a => a.href)")
        assert hrefs == [
            "https://example.org/",
            "mailto:a@example.org",
            "https://evil.example/pixel.png",
            "https://example.org/auto",
        ]
        expect(
            reply.locator("img, script, iframe, [onmouseover], [style]")
        ).to_have_count(0)
        assert page.evaluate("globalThis.owned") is None
        assert not [url for url in requested if "evil" in url]
        for link in reply.locator("a").all():
            assert link.get_attribute("target") == "_blank"
            assert link.get_attribute("rel") == "noopener noreferrer"

    def test_looks_the_same_streamed_and_whole(self, page: Page, show: Show) -> None:
        """Spec: EMIT 6.3."""
        script = Script()
        script.say(page_script.LONG_MARKDOWN, card_id="whole")
        turn = script.turn("turn_cut", "Again")
        script.add("cut", "message", turn, role="assistant")
        for letter in page_script.LONG_MARKDOWN:
            script.append("cut", letter)
        script.close("cut")

        show(script)
        expect(kinds(page, "message", "ok")).to_have_count(2)

        texts = page.locator(".prose").evaluate_all("all => all.map(e => e.innerHTML)")
        assert texts[0] == texts[1]
        assert 'href="https://example.org/"' in texts[0]


class TestSmallScreen:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    def test_fits_a_phone(self, page: Page, show: Show, scheme: str) -> None:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": 390, "height": 844})
        script = page_script.one_of_each_kind()
        script.say("`" + "long" * 100 + "`\n\n```\n" + "wide " * 100 + "\n```")

        show(script)
        expect(card(page, "m")).to_contain_text("wide")

        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.evaluate("document.getElementById('scroller').scrollWidth") <= 390

    def test_opens_the_list_by_keyboard_and_closes_it(self, page: Page) -> None:
        page.set_viewport_size({"width": 390, "height": 844})
        page.goto("/")
        is_connected(page, "open")
        menu = page.get_by_role("button", name="Conversations")

        menu.focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="New conversation")).to_be_focused()
        page.keyboard.press("Escape")

        expect(menu).to_be_focused()
        expect(page.get_by_role("link", name="New conversation")).to_be_hidden()
