"""Files on the page: mentions, chips and the panel.

Spec: EMIT 10, 13; Rulings E21, E27, E28.
"""

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.acceptance.page_files import (
    artifact_card,
    attach,
    chips,
    open_file,
    panel,
    say_files,
    wait_for_uploads,
)
from tests.acceptance.page_parts import (
    card,
    composer,
    session_of,
)
from tests.acceptance.page_script import SESSION, Script, error
from tests.acceptance.page_shelf import REPORT, PageShelf, paper, picture
from tests.acceptance.scripted_server import Show

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)


class TestMentions:
    def test_open_the_file_and_stay_on_the_page(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: EMIT 13."""
        opened = open_file(page, show, "art_md")

        expect(opened.get_by_role("heading", name="report.md")).to_be_visible()
        expect(opened).to_contain_text("Three files.")
        assert session_of(page) == SESSION

    def test_are_never_addresses_of_another_scheme(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: EMIT 13; field case FR-117."""
        say_files(
            show,
            "[good](artifact://art_md) [a](artifact://x%22onclick=y) "
            "[b](artifact://../../etc) [c](ARTIFACT:) [d](artifact://a?b#c)",
        )

        links = card(page, "m").locator("[data-action='show-artifact']")
        expect(links).to_have_count(1)
        assert links.evaluate("link => link.getAttributeNames().sort()") == [
            *("class", "data-action", "data-target", "role", "tabindex")
        ]
        expect(card(page, "m").locator("[href], [onclick]")).to_have_count(0)

    def test_of_an_unknown_file_say_so(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: Ruling E27."""
        opened = open_file(page, show, "art_gone")

        expect(opened.get_by_role("alert")).to_contain_text("is not available")
        expect(opened.get_by_role("link")).to_have_count(0)

    def test_are_opened_by_keyboard_and_left_by_escape(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        server = say_files(show, "See [report.md](artifact://art_md).")
        mention = card(page, "m").get_by_role("button", name="report.md")

        for key in ("Enter", "Space"):
            mention.focus()
            page.keyboard.press(key)
            expect(panel(page)).to_be_focused()
            download = panel(page).get_by_role("link", name="Download")
            expect(download).to_be_visible()
            page.keyboard.press("Tab")
            expect(download).to_be_focused()
            page.keyboard.press("Escape")
            expect(panel(page)).to_be_hidden()
            expect(mention).to_be_focused()

        assert server.sent_of("session.interrupt") == []

    def test_are_bold_beside_chinese_letters(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """CommonMark alone shows the stars: a bracket is no letter."""
        say_files(show, "生成了**[report.md](artifact://art_md)**已经")

        bold = card(page, "m").locator("strong")
        expect(bold.get_by_role("button", name="report.md")).to_be_visible()
        expect(card(page, "m")).not_to_contain_text("**")

    def test_within_a_file_lead_to_the_next(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        opened = open_file(page, show, "art_md")

        opened.get_by_role("button", name="data.csv").click()
        expect(opened.get_by_role("heading", name="data.csv")).to_be_visible()
        page.keyboard.press("Escape")

        expect(card(page, "m").get_by_role("button", name="the file")).to_be_focused()


class TestChips:
    def test_of_every_place_open_their_file(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: EMIT 10; Ruling E28."""
        script = Script()
        source = {"type": "artifact", "artifact_id": "art_csv", "name": "data.csv"}
        words: dict[str, Any] = {
            "event_id": "m",
            "text": "Look",
            "content": [{"type": "file", "source": source}],
        }
        turn = script.add("turn_m", "turn", turn_no=1, input=words)
        script.add("tool", "tool", turn, title="Write", name="Write")
        ref = {"artifact_id": "art_md", "name": "report.md"}
        script.close("tool", inner={"output": "ok", "artifacts": [ref]})
        artifact_card(
            script, "report.md", artifact_id="art_md", uri="artifact://art_md"
        )
        show(script)

        places = {
            ".bubble .chip": "data.csv",
            "[data-card-id=tool] .chip": "report.md",
            "[data-card-id=card_art_md_1] .artifact": "report.md",
        }
        for place, name in places.items():
            page.locator(place).click()
            heading = panel(page).get_by_role("heading", name=name, exact=True).first
            expect(heading).to_be_visible()

    def test_show_the_picture_of_a_picture(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        shelf.put("art_png", "a.png", "image/png", picture())
        script = Script()
        script.turn("turn_m", "Draw")
        thumbnail = "/v1/artifacts/art_png/thumbnail?version=1"
        artifact_card(script, "a.png", artifact_id="art_png", thumbnail=thumbnail)
        show(script)

        image = card(page, "card_art_png_1").locator("img")
        expect(image).to_have_js_property("naturalWidth", 60)

    def test_hide_nothing_in_a_name(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: field case FR-113."""
        script = Script()
        script.turn("turn_m", "Write")
        artifact_card(script, "invoice\u202efdp.exe", artifact_id="art_md")
        show(script)

        expect(card(page, "card_art_md_1")).to_contain_text("invoice[U+202E]fdp.exe")

    def test_without_an_id_open_nothing(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: field case FR-115."""
        script = Script()
        script.turn("turn_m", "Write")
        artifact_card(script, "a", artifact_id="../x", uri="file:///etc/passwd")
        show(script)

        drawn = card(page, "card_../x_1")
        expect(drawn).to_contain_text("file:///etc/passwd")
        expect(drawn.locator("button, a, img")).to_have_count(0)


class TestPreview:
    @pytest.mark.parametrize("mime_type", ["text/html", "image/svg+xml"])
    def test_of_markup_is_its_source(
        self, page: Page, show: Show, shelf: PageShelf, mime_type: str
    ) -> None:
        """Spec: field cases FR-109, FR-119."""
        markup = "<svg onload='window.owned=1'><script>window.owned=1</script></svg>"
        shelf.put("art_x", "x.html", mime_type, markup)

        opened = open_file(page, show, "art_x")

        expect(opened.locator("pre")).to_have_text(markup)
        expect(opened.locator("svg:not(.icon), script, iframe, img")).to_have_count(0)
        assert page.evaluate("window.owned") is None

    def test_of_markdown_runs_nothing(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: EMIT 15.3; field case FR-117."""
        text = "<img src=x onerror='window.owned=1'> [a](javascript:window.owned=1)"
        shelf.put("art_x", "x.md", "text/markdown", text)

        opened = open_file(page, show, "art_x")

        expect(opened.locator(".prose")).to_contain_text("onerror")
        expect(opened.locator(".prose :is(img, [href])")).to_have_count(0)

    def test_of_a_table_counts_what_it_leaves_out(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        rows = "".join(f"row {n};{n}\n" for n in range(400))
        shelf.put("art_x", "x.csv", "text/csv", "name;count\n" + rows)

        opened = open_file(page, show, "art_x")

        expect(opened.get_by_role("row")).to_have_count(301)
        expect(opened.get_by_role("columnheader", name="count")).to_be_visible()
        expect(opened).to_contain_text("100 more rows")

    def test_of_a_long_text_is_its_beginning(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        size = 3 * 1024 * 1024
        shelf.put("art_x", "x.log", "text/plain", "é" * (size // 2))

        opened = open_file(page, show, "art_x")

        expect(opened).to_contain_text("The first 1 MB of 3 MB.")
        read = opened.locator("pre").evaluate("pre => pre.textContent.length")
        assert read == 1024 * 1024 // 2
        path = "/v1/artifacts/art_x/content?version=1"
        assert ("GET", path, "bytes=0-1048575") in shelf.asked

    def test_of_a_picture_is_the_picture(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        shelf.put("art_x", "x.png", "image/png", picture(), b"no picture at all")

        opened = open_file(page, show, "art_x")

        expect(opened).to_contain_text("cannot show this picture")
        opened.get_by_label("Version", exact=True).select_option("1")
        expect(opened.get_by_role("img", name="x.png")).to_have_js_property(
            "naturalWidth", 60
        )

    def test_of_a_pdf_is_the_browsers(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        shelf.put("art_x", "x.pdf", "application/pdf", paper())

        opened = open_file(page, show, "art_x")

        frame = opened.locator("iframe")
        expect(frame).to_be_visible()
        assert (frame.get_attribute("src") or "").startswith("blob:")

    @pytest.mark.parametrize(
        ("mime_type", "content", "words"),
        [
            ("application/zip", b"PK", "no preview"),
            ("text/plain", b"", "is empty"),
        ],
    )
    def test_of_other_files_is_the_download(
        self,
        page: Page,
        show: Show,
        shelf: PageShelf,
        mime_type: str,
        content: bytes,
        words: str,
    ) -> None:
        shelf.put("art_x", "x", mime_type, content)

        opened = open_file(page, show, "art_x")

        expect(opened).to_contain_text(words)
        expect(opened.get_by_role("link", name="Download")).to_have_attribute(
            "href", "/v1/artifacts/art_x/content?version=1&download=1"
        )

    def test_may_be_tried_again(self, page: Page, show: Show, shelf: PageShelf) -> None:
        page.route("**/content?version=1", lambda route: route.fulfill(status=500))

        opened = open_file(page, show, "art_csv")

        expect(opened.get_by_role("alert")).to_contain_text("HTTP 500")
        page.unroute("**/content?version=1")
        opened.get_by_role("button", name="Try again").click()
        expect(opened.get_by_role("cell", name="2")).to_be_visible()
        expect(opened).to_be_focused()


class TestVersions:
    def test_are_compared_line_by_line(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        shelf.put("art_md", "", "", REPORT.replace("Three", "Four"))
        opened = open_file(page, show, "art_md")

        opened.get_by_label("What is shown").select_option(
            label="Changes since version 1"
        )

        expect(opened.get_by_role("insertion")).to_contain_text("Four files.")
        expect(opened.get_by_role("deletion")).to_contain_text("Three files.")
        expect(page.locator("#announcer")).to_contain_text(
            "1 line added, 1 removed since version 1"
        )
        opened.get_by_label("Version", exact=True).select_option("1")
        expect(opened).to_contain_text("Three files.")
        expect(opened.get_by_label("What is shown")).to_have_count(0)

    def test_that_come_while_one_is_read_are_offered(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        script = Script()
        script.turn("turn_m", "Write")
        artifact_card(script, "report.md", artifact_id="art_md")
        server = show(script)
        card(page, "card_art_md_1").get_by_role("button").click()
        expect(panel(page)).to_contain_text("Three files.")

        shelf.put("art_md", "", "", "# New\n")
        artifact_card(script, "report.md", artifact_id="art_md", version=2)
        server.push()

        offer = panel(page).get_by_role("status")
        expect(offer).to_contain_text("There is a newer version.")
        expect(panel(page)).to_contain_text("Three files.")
        offer.get_by_role("button", name="Show version 2").click()
        expect(panel(page).get_by_role("heading", name="New")).to_be_visible()
        expect(offer).to_be_empty()
        expect(panel(page)).to_be_focused()

    def test_of_a_card_are_the_ones_it_tells_of(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        shelf.put("art_md", "", "", "# New\n")
        script = Script()
        script.turn("turn_m", "Write")
        artifact_card(script, "report.md", artifact_id="art_md", version=1)
        show(script)

        card(page, "card_art_md_1").get_by_role("button").click()

        expect(panel(page)).to_contain_text("Three files.")
        expect(panel(page).get_by_label("Version", exact=True)).to_have_value("1")


class TestPanel:
    @pytest.mark.parametrize("scheme", ["light", "dark"])
    @pytest.mark.parametrize("width", [390, 760, 1000, 1280])
    def test_fits_the_screen(
        self, page: Page, show: Show, shelf: PageShelf, scheme: Any, width: int
    ) -> None:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        shelf.put("art_x", "long" * 40 + ".txt", "text/plain", "wide " * 500)

        opened = open_file(page, show, "art_x")
        expect(opened).to_contain_text("wide")

        box = opened.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] == width
        assert (box["width"] == width) == (width < 700)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert opened.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
        expect(opened.get_by_role("button", name="Close the file")).to_be_in_viewport()

    @pytest.mark.parametrize("width", [390, 900])
    def test_keeps_the_keyboard_from_what_it_covers(
        self, page: Page, show: Show, shelf: PageShelf, width: int
    ) -> None:
        page.set_viewport_size({"width": width, "height": 844})
        opened = open_file(page, show, "art_md")
        expect(opened).to_contain_text("Three files.")
        stage = page.locator("#stage")
        expect(stage).to_have_attribute("inert", "")

        for _ in range(12):
            page.keyboard.press("Tab")
            assert stage.evaluate("stage => !stage.matches(':focus-within')")
        opened.get_by_role("button", name="Close the file").click()

        expect(stage).not_to_have_attribute("inert", "")
        page.set_viewport_size({"width": 1280, "height": 844})
        card(page, "m").get_by_role("button", name="the file").click()
        expect(opened).to_be_visible()
        expect(stage).not_to_have_attribute("inert", "")

    def test_tells_of_a_question_that_it_covers(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        page.set_viewport_size({"width": 390, "height": 844})
        script = Script()
        script.turn("turn_m", "Write")
        artifact_card(script, "report.md", artifact_id="art_md")
        server = show(script)
        card(page, "card_art_md_1").get_by_role("button").click()
        expect(panel(page)).to_contain_text("Three files.")
        offer = panel(page).get_by_role("status")
        expect(offer).to_be_empty()

        script.ask("req_1", "question", question="Which?", allow_custom=True)
        server.push()

        expect(offer).to_contain_text("There is a question to you.")
        offer.get_by_role("button", name="Back to the conversation").click()
        expect(panel(page)).to_be_hidden()
        expect(page.get_by_label("Your answer")).to_be_visible()

    def test_is_read_by_name_and_while_it_loads(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        waiting: list[Route] = []

        def hold(route: Route) -> None:
            waiting.append(route)

        page.route("**/content?version=1", hold)

        opened = open_file(page, show, "art_csv")

        expect(page.get_by_role("dialog", name="data.csv")).to_be_visible()
        expect(page.locator("#announcer")).to_contain_text("data.csv is open.")
        body = opened.locator(".panel-body")
        expect(body).to_have_attribute("aria-busy", "true")
        expect(body).to_have_text("Loading…")
        waiting.pop().fulfill(body="a,b\n1,2\n")
        expect(body).to_have_attribute("aria-busy", "false")
        expect(opened.get_by_role("cell", name="2")).to_be_visible()

    def test_says_when_the_server_is_away(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        address = "**/artifacts/art_md"
        page.route(address, lambda route: route.abort("connectionrefused"))

        opened = open_file(page, show, "art_md")

        expect(opened.get_by_role("alert")).to_contain_text("does not answer")
        page.unroute(address)
        opened.get_by_role("button", name="Try again").click()
        expect(opened).to_contain_text("Three files.")
        expect(opened.get_by_role("alert")).to_have_count(0)

    def test_belongs_to_its_session(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        open_file(page, show, "art_md")

        page.get_by_role("link", name="New conversation").click()

        expect(panel(page)).to_be_hidden()

    def test_closes_when_the_session_is_deleted(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Words that were not sent are the user's, and files were the session's.

        Spec: Ruling E5.
        """
        server = say_files(show, "See [report.md](artifact://art_md).")
        attach(page, "a.txt")
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_a", "a.txt")
        composer(page).fill("What I was about to say")
        card(page, "m").get_by_role("button", name="report.md").click()
        expect(panel(page)).to_contain_text("Three files.")

        page.route("**/snapshot", lambda route: route.fulfill(status=404))
        deleted = error("user_aborted", "x", "Deleted.", code="SESSION_DELETED")
        server.tell("error", error=deleted)
        server.tell("resume_failed", reason="session_not_found")

        expect(panel(page)).to_be_hidden()
        notices = page.locator("#notices").get_by_role("alert")
        expect(notices).to_have_count(1)
        expect(notices).to_contain_text("This conversation was deleted.")
        expect(composer(page)).to_have_value("What I was about to say")
        expect(composer(page)).to_be_focused()
        expect(chips(page)).to_have_count(0)


class TestAnnouncements:
    def test_name_files_without_their_addresses(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        script = Script()
        turn = script.turn("turn_m", "Write")
        server = show(script)

        artifact_card(script, "report.md", artifact_id="art_md", version=2)
        script.add("m", "message", turn, role="assistant")
        script.append("m", "Read [report.md](artifact://art_md) and `x[0](1)`.")
        script.close("m")
        server.push()

        heard = page.locator("#announcer")
        expect(heard).to_contain_text("File report.md, version 2.")
        expect(heard).to_contain_text("Read report.md and")
        expect(heard).not_to_contain_text("artifact:")
