"""Parts of the page that show files or take them."""

from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.acceptance.page_parts import card
from tests.acceptance.page_script import Script
from tests.acceptance.page_shelf import PageShelf
from tests.acceptance.scripted_server import ScriptedServer, Show
from tests.services import until


def panel(page: Page) -> Locator:
    return page.locator("#panel")


def chips(page: Page) -> Locator:
    """The files above the message field."""
    return page.get_by_role("list", name="Attached files").get_by_role("listitem")


def say_files(show: Show, text: str) -> ScriptedServer:
    """Show a session whose last message is a text."""
    script = Script()
    script.say(text)
    return show(script)


def open_file(page: Page, show: Show, artifact_id: str) -> Locator:
    """Open a file by a mention of it; return the panel."""
    say_files(show, f"See [the file](artifact://{artifact_id}).")
    card(page, "m").get_by_role("button", name="the file").click()
    expect(panel(page)).to_be_visible()
    return panel(page)


def artifact_card(script: Script, name: str, **payload: Any) -> None:
    """Log the card of a version."""
    version = payload.setdefault("version", 1)
    card_id = f"card_{payload['artifact_id']}_{version}"
    script.add(card_id, "artifact", "turn_m", name=name, **payload)
    script.close(card_id)


def attach(page: Page, *names: str) -> None:
    """Pick files of which each holds its name."""
    files: list[Any] = [
        {"name": name, "mimeType": "text/plain", "buffer": name.encode()}
        for name in names
    ]
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    chooser.value.set_files(files)


def wait_for_uploads(page: Page, shelf: PageShelf, count: int) -> None:
    def have_come() -> bool:
        page.evaluate("0")
        return len(shelf.uploads) >= count

    until(have_come, f"{count} uploads")


def give_files(page: Page, event: str, names: list[str], **types: str) -> None:
    """Drop files on the page, or paste them."""
    page.evaluate(
        """([kind, names, types]) => {
          const data = new DataTransfer();
          for (const name of names) data.items.add(new File([name], name));
          for (const [type, text] of Object.entries(types)) data.setData(type, text);
          const init = { bubbles: true, cancelable: true };
          const event = kind === 'paste'
            ? new ClipboardEvent(kind, { ...init, clipboardData: data })
            : new DragEvent(kind, { ...init, dataTransfer: data });
          document.querySelector('#scroller').dispatchEvent(event);
        }""",
        [event, names, types],
    )
