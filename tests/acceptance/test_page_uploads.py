"""The user's own files on the page.

Spec: interfaces.md, REST; Rulings E1, E9, E28.
"""

import pytest
from playwright.sync_api import Page, expect

from tests.acceptance.page_files import (
    attach,
    chips,
    give_files,
    say_files,
    wait_for_uploads,
)
from tests.acceptance.page_parts import (
    composer,
    is_connected,
    wait_for_frames,
)
from tests.acceptance.page_script import SESSION, Script, error
from tests.acceptance.page_shelf import PageShelf
from tests.acceptance.scripted_server import ScriptedServer, Show

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)


@pytest.fixture
def server(show: Show, shelf: PageShelf) -> ScriptedServer:
    """A session to which files can be attached."""
    return say_files(show, "Hello.")


class TestUploads:
    def test_go_with_the_message(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        """Spec: interfaces.md, REST; Ruling E28."""
        attach(page, "notes.txt")
        wait_for_uploads(page, shelf, 1)
        request = shelf.uploads[0].request
        assert request.header_value("X-CSRFToken")
        body = shelf.accept("art_1", "notes.txt")
        assert SESSION in body
        assert "notes.txt" in body
        expect(chips(page)).to_have_attribute("data-state", "ready")

        composer(page).fill("Read this")
        composer(page).press("Enter")

        (sent,) = wait_for_frames(page, server, "user.message")
        assert sent["content"] == [
            {"type": "text", "text": "Read this"},
            {
                "type": "file",
                "source": {"type": "artifact", "artifact_id": "art_1"},
                "name": "notes.txt",
            },
        ]
        expect(chips(page)).to_have_count(0)
        expect(page.locator("#pending .chip")).to_have_text("notes.txt")

    def test_may_go_without_words(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "notes.txt")
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")

        page.get_by_role("button", name="Send").click()

        (sent,) = wait_for_frames(page, server, "user.message")
        assert [block["type"] for block in sent["content"]] == ["file"]

    def test_are_waited_for(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "a.txt", "b.txt")
        wait_for_uploads(page, shelf, 2)
        composer(page).fill("Read these")
        composer(page).press("Enter")
        expect(page.locator("#composer-hint")).to_contain_text(
            "when the files are there"
        )
        composer(page).press("Escape")
        expect(page.locator("#composer-hint")).to_contain_text("begins a new line")
        composer(page).press("Enter")

        shelf.accept("art_1", "a.txt")
        expect(chips(page).first).to_have_attribute("data-state", "ready")
        assert server.sent_of("user.message") == []
        assert server.sent_of("session.interrupt") == []
        shelf.accept("art_2", "b.txt")

        (sent,) = wait_for_frames(page, server, "user.message")
        assert len(sent["content"]) == 3
        expect(composer(page)).to_have_value("")

    def test_that_fail_say_why_and_are_tried_again(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "big.txt")
        wait_for_uploads(page, shelf, 1)
        composer(page).fill("Read this")
        composer(page).press("Enter")

        shelf.refuse(507, "The server has no room.")

        expect(chips(page)).to_contain_text("The server has no room.")
        expect(page.locator("#announcer")).to_contain_text("Not sent: big.txt")
        expect(composer(page)).to_have_value("Read this")
        assert server.sent_of("user.message") == []
        page.get_by_role("button", name="Upload big.txt again").click()
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "big.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")

    def test_break_off_with_a_sentence(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "a.txt")
        wait_for_uploads(page, shelf, 1)

        shelf.uploads.pop().abort("connectionrefused")

        expect(chips(page)).to_contain_text("The upload broke off")

    def test_are_cancelled_and_removed(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "a.txt", "b.txt", "c.txt", "d.txt")
        wait_for_uploads(page, shelf, 3)
        expect(chips(page).last).to_contain_text("Waiting")

        page.get_by_role("button", name="Cancel the upload of a.txt").click()
        wait_for_uploads(page, shelf, 4)
        expect(composer(page)).to_be_focused()
        shelf.uploads.pop(0)
        shelf.accept("art_2", "b.txt")
        page.get_by_role("button", name="Remove b.txt").click()

        expect(chips(page)).to_have_count(2)
        expect(chips(page).first).to_contain_text("c.txt")

    @pytest.mark.parametrize("size", [(390, 844), (390, 420), (1280, 720)])
    def test_leave_room_for_words(
        self,
        page: Page,
        shelf: PageShelf,
        server: ScriptedServer,
        size: tuple[int, int],
    ) -> None:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        attach(page, *(f"{'long' * 20}{number}.txt" for number in range(15)))
        expect(chips(page)).to_have_count(15)

        expect(composer(page)).to_be_in_viewport(ratio=1)
        expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
        assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
        tray = page.get_by_role("list", name="Attached files")
        assert tray.evaluate("tray => tray.scrollWidth <= tray.clientWidth")
        last = page.get_by_role("button", name="Cancel the upload of").last
        last.focus()
        expect(last).to_be_in_viewport()

    def test_come_by_drop_anywhere(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        veil = page.locator("#drop-veil")
        give_files(page, "dragenter", ["a.txt"])
        expect(veil).to_be_visible()
        give_files(page, "dragleave", ["a.txt"])
        expect(veil).to_be_hidden()

        give_files(page, "drop", ["a.txt", "b.txt"])

        expect(chips(page)).to_have_count(2)
        expect(veil).to_be_hidden()

    def test_come_by_paste_but_not_for_text(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        text = {"text/plain": "1\t2", "text/html": "<table></table>"}
        give_files(page, "paste", ["table.png"], **text)
        expect(chips(page)).to_have_count(0)

        give_files(page, "paste", ["image.png", "image.png"])

        expect(chips(page)).to_have_count(2)

    def test_stay_over_a_reload(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "notes.txt")
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")

        page.reload()

        expect(chips(page)).to_contain_text("notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")

    def test_come_back_with_words_that_were_crowded_out(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        """Spec: Ruling E9."""
        attach(page, "notes.txt")
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")
        composer(page).fill("Read this")
        composer(page).press("Enter")
        (sent,) = wait_for_frames(page, server, "user.message")

        details = {"event_id": sent["event_id"]}
        refusal = error("overloaded", "full", "Too many wait.", details=details)
        server.tell("error", error=refusal)

        expect(composer(page)).to_have_value("Read this")
        expect(chips(page)).to_contain_text("notes.txt")
        composer(page).press("Enter")
        again = wait_for_frames(page, server, "user.message", 2)[-1]
        assert again["content"] == sent["content"]

    def test_stay_with_a_message_that_was_refused(
        self, page: Page, shelf: PageShelf, server: ScriptedServer
    ) -> None:
        attach(page, "notes.txt")
        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")
        composer(page).fill("Read this")
        composer(page).press("Enter")
        (sent,) = wait_for_frames(page, server, "user.message")

        details = {"event_id": sent["event_id"]}
        server.tell("error", error=error("invalid_input", "x", "No.", details=details))

        pending = page.locator("#pending")
        expect(pending).to_contain_text("Not sent")
        expect(pending.locator(".chip")).to_have_text("notes.txt")
        pending.get_by_role("button", name="Send again").click()
        again = wait_for_frames(page, server, "user.message", 2)[-1]
        assert again == sent

    def test_have_a_new_session_kept_first(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: Ruling E1."""
        server = show(Script())
        attach(page, "notes.txt")
        (asked,) = wait_for_frames(page, server, "session.create")
        assert asked == {"type": "session.create", "session_id": SESSION}
        assert shelf.uploads == []

        server.tell("opened", protocol_version="2.0", trace_id="tr_x", last_seq=0)

        wait_for_uploads(page, shelf, 1)
        shelf.accept("art_1", "notes.txt")
        expect(chips(page)).to_have_attribute("data-state", "ready")
        is_connected(page, "open")
