"""Files on the page, kept and given by the real server.

Spec: EMIT 10, 13; interfaces.md, REST; Rulings E1, E28; FR-109, FR-111.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Error, FilePayload, Locator, Page, expect

from tests.acceptance.page_file_engine import FILES, NAMES
from tests.acceptance.page_files import chips, panel
from tests.acceptance.page_parts import is_connected, kinds, say, session_of
from tests.acceptance.page_shelf import picture
from tests.services import CardwireServer

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

ENGINE = "tests.acceptance.page_file_engine.FileEngine"

MAX_UPLOAD_BYTES = 1024 * 1024


@pytest.fixture(scope="module")
def page_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CardwireServer]:
    """A server whose engine makes files, shared by the module."""
    data_dir: Path = tmp_path_factory.mktemp("files")
    largest = str(MAX_UPLOAD_BYTES)
    server = CardwireServer(
        data_dir, CARDWIRE_ENGINE=ENGINE, CARDWIRE_MAX_UPLOAD_BYTES=largest
    )
    try:
        server.start()
        yield server
    finally:
        server.close()


def begin(page: Page) -> None:
    page.goto("/")
    is_connected(page, "open")


def ask_for(page: Page, words: str) -> Locator:
    """Have the engine do something; return the turn in which it did."""
    count = kinds(page, "turn", "ok").count()
    say(page, words)
    expect(kinds(page, "turn", "ok")).to_have_count(count + 1)
    return kinds(page, "turn", "ok").last


def attach(page: Page, *files: FilePayload) -> None:
    page.locator("#composer input[type=file]").set_input_files(files)
    expect(chips(page)).to_have_count(len(files))


def are_ready(page: Page) -> None:
    for chip in chips(page).all():
        expect(chip).to_have_attribute("data-state", "ready")


def text_file(name: str, text: str) -> FilePayload:
    return {"name": name, "mimeType": "text/plain", "buffer": text.encode()}


def open_by_mention(turn: Locator, name: str) -> Locator:
    message = turn.locator('[data-card-kind="message"]')
    message.get_by_role("button", name=name, exact=True).click()
    return turn.page.locator("#panel")


class TestVersions:
    def test_are_offered_and_compared(self, page: Page) -> None:
        """Spec: EMIT 13; issue "Artifacts" 6."""
        begin(page)
        first = ask_for(page, "report Three files.")
        expect(first.locator(".artifact").filter(has_text="report.md")).to_have_count(1)
        # The card below the tool says it already.
        expect(first.locator(".chip")).to_have_count(0)
        opened = open_by_mention(first, "report.md")
        expect(opened.get_by_role("heading", name="Report", exact=True)).to_be_visible()
        expect(opened).to_contain_text("What was asked for")
        expect(opened).to_contain_text("Three files.")

        ask_for(page, "report Four files.")

        offer = opened.get_by_role("status")
        offer.get_by_role("button", name="Show version 2").click()
        expect(opened).to_contain_text("Four files.")
        opened.get_by_label("What is shown").select_option("1")
        expect(opened.get_by_role("deletion")).to_contain_text("Three files.")
        expect(opened.get_by_role("insertion")).to_contain_text("Four files.")

        page.reload()
        cards = page.locator(".artifact").filter(has_text="report.md")
        expect(cards).to_have_count(2)
        cards.first.click()
        expect(opened.get_by_label("Version", exact=True)).to_have_value("1")
        expect(opened).to_contain_text("Three files.")


class TestKinds:
    def test_are_shown_in_their_own_way(self, page: Page) -> None:
        """Spec: issue "Artifacts" 6; field case FR-109."""
        begin(page)
        turn = ask_for(page, "files")
        shown: dict[str, Callable[[Locator], Locator]] = {
            "data.csv": lambda opened: opened.get_by_role("cell", name="blue"),
            "count.py": lambda opened: opened.locator("pre .hljs-keyword").first,
            "chart.png": lambda opened: opened.get_by_role("img", name="chart.png"),
            "paper.pdf": lambda opened: opened.locator("iframe[src^='blob:']"),
            "drawing.svg": lambda opened: opened.locator("pre", has_text="<script>"),
            "site.html": lambda opened: opened.locator("pre", has_text="<script>"),
            "notes.txt": lambda opened: opened.get_by_text("Some words."),
            "bytes.bin": lambda opened: opened.get_by_text("There is no preview"),
            "empty.txt": lambda opened: opened.get_by_text("This file is empty."),
        }
        assert shown.keys() == FILES.keys()

        for name, part in shown.items():
            opened = open_by_mention(turn, name)
            expect(opened.get_by_role("heading", name=name, exact=True)).to_be_visible()
            expect(part(opened)).to_be_visible()
            expect(opened.get_by_role("alert")).to_have_count(0)

        assert page.evaluate("window.owned") is None

    def test_that_can_run_are_saved_where_they_are_opened(self, page: Page) -> None:
        """Whoever is led to the address of such a file. Spec: field case FR-109."""
        begin(page)
        turn = ask_for(page, "files")
        tab = page.context.new_page()

        for name in ("site.html", "drawing.svg"):
            card = turn.locator(".artifact").filter(has_text=name)
            address = f"/v1/artifacts/{card.get_attribute('data-target')}/content"
            with (
                tab.expect_download() as download,
                pytest.raises(Error, match="Download is starting"),
            ):
                tab.goto(address)
            assert download.value.suggested_filename == name
            assert tab.url == "about:blank"

    def test_have_pictures_where_they_are_some(self, page: Page) -> None:
        begin(page)
        turn = ask_for(page, "files")

        card = turn.locator(".artifact").filter(has_text="chart.png")
        expect(card.locator("img")).to_have_js_property("complete", value=True)
        assert card.locator("img").evaluate("image => image.naturalWidth") > 0
        opened = open_by_mention(turn, "chart.png")
        expect(opened.get_by_role("img")).to_have_js_property("naturalWidth", 300)


class TestNames:
    def test_are_linked_as_they_are_whatever_is_in_them(self, page: Page) -> None:
        """Spec: EMIT 13; Ruling E21; field cases FR-111, FR-117, FR-119."""
        begin(page)
        turn = ask_for(page, "names")
        names = turn.locator(".artifact strong").all_inner_texts()
        assert len(names) == len(NAMES)

        said = turn.locator('[data-card-kind="message"]')
        expect(said.get_by_role("listitem")).to_have_count(len(NAMES))
        expect(said.locator("[href], img")).to_have_count(0)
        for line, name in zip(said.get_by_role("listitem").all(), names, strict=True):
            expect(line).to_have_text(f"{name} is there")
            mention = line.get_by_role("button")
            expect(mention).to_have_text(name)
            mention.click()
            expect(panel(page).get_by_role("heading")).to_have_text(name)
        assert page.evaluate("window.owned") is None


class TestUploads:
    def test_reach_the_engine_and_come_back(self, page: Page) -> None:
        """Spec: Rulings E1, E28."""
        begin(page)
        png: FilePayload = {
            "name": "chart.png",
            "mimeType": "application/octet-stream",
            "buffer": picture(300, 200),
        }
        attach(page, text_file("实验 记录.txt", "Some words."), png)
        are_ready(page)
        expect(chips(page).last.locator("img")).to_have_js_property(
            "naturalHeight", 171
        )

        turn = ask_for(page, "read these")

        answer = turn.locator('[data-card-kind="message"]')
        expect(answer).to_contain_text(
            "实验 记录.txt · text/plain · 11 · b'Some words.'"
        )
        expect(answer).to_contain_text("chart.png · image/png")
        page.reload()
        bubble = page.locator(".bubble")
        expect(bubble.locator(".chip")).to_have_text(["实验 记录.txt", "chart.png"])
        expect(bubble.locator("img")).to_have_js_property("naturalHeight", 171)
        bubble.get_by_role("button", name="实验 记录.txt").click()
        expect(panel(page)).to_contain_text("from you")
        expect(panel(page)).to_contain_text("Some words.")

    def test_are_downloaded_under_their_name(self, page: Page) -> None:
        """Spec: field case FR-111."""
        begin(page)
        attach(page, text_file("é 😀 实验.html", "<script>top.owned = 1</script>"))
        are_ready(page)
        say(page, "")
        page.locator(".bubble .chip").click()

        with page.expect_download() as download:
            panel(page).get_by_role("link", name="Download").click()

        assert download.value.suggested_filename == "é 😀 实验.html"
        assert download.value.path().read_text() == "<script>top.owned = 1</script>"

    def test_over_the_cap_are_refused_in_words(self, page: Page) -> None:
        begin(page)
        attach(page, text_file("big.txt", "x" * (MAX_UPLOAD_BYTES + 1)))

        expect(chips(page)).to_have_attribute("data-state", "failed")
        expect(chips(page)).to_contain_text("This file is too large.")
        page.get_by_role("button", name="Remove big.txt").click()
        expect(chips(page)).to_have_count(0)

    def test_stay_with_the_new_conversation(self, page: Page) -> None:
        """Spec: Ruling E1."""
        begin(page)
        attach(page, text_file("a.txt", "a"))
        are_ready(page)
        assert session_of(page)

        page.reload()

        expect(chips(page)).to_contain_text("a.txt")
        turn = ask_for(page, "read it")
        expect(turn).to_contain_text("a.txt · text/plain · 1")


class TestDeletion:
    def test_of_the_session_leaves_nothing_open(self, page: Page) -> None:
        """Another tab deletes it. Spec: Ruling E5."""
        begin(page)
        turn = ask_for(page, "report Three files.")
        card = turn.locator(".artifact").filter(has_text="report.md")
        address = f"/v1/artifacts/{card.get_attribute('data-target')}"
        assert page.request.get(address).status == 200
        card.click()
        expect(panel(page)).to_contain_text("Three files.")

        token = page.locator('meta[name="csrf-token"]').get_attribute("content")
        deleted = page.request.delete(
            f"/v1/sessions/{session_of(page)}", headers={"X-CSRFToken": token or ""}
        )

        assert deleted.status == 204
        expect(panel(page)).to_be_hidden()
        expect(page.locator("#notices")).to_contain_text("was deleted")
        expect(page.locator("[data-card-id]")).to_have_count(0)
        assert session_of(page) == ""
        assert page.request.get(address).status == 404
