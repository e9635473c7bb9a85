"""Files that were made to harm who looks at them.

Nothing that is in a file or in its name runs, loads from elsewhere, or takes the page
away. What the page draws could be of any kind, so each test looks at all of that.

Spec: EMIT 13, 15.3; field cases FR-109, FR-113, FR-117, FR-119.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from tests.acceptance.page_files import (
    artifact_card,
    attach,
    chips,
    open_file,
    panel,
    wait_for_uploads,
)
from tests.acceptance.page_parts import card, session_of
from tests.acceptance.page_script import SESSION, Script
from tests.acceptance.page_shelf import PageShelf
from tests.acceptance.scripted_server import Show

pytestmark = pytest.mark.chromium
pytest_plugins = ("tests.acceptance.page_browser",)

RUN = "top.owned=1;parent.owned=1;alert(1)"
ELSEWHERE = "evil.example"

MARKUP = f"""<!doctype html><html><head>
<meta http-equiv="refresh" content="0;url=https://{ELSEWHERE}/">
<base href="https://{ELSEWHERE}/"><link rel="stylesheet" href="x.css"></head>
<body onload="{RUN}"><script>{RUN}</script><img src="x" onerror="{RUN}">
<iframe src="javascript:{RUN}"></iframe><form action="/x"><input autofocus
onfocus="{RUN}"></form></body></html>"""

DRAWING = f"""<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"
onload="{RUN}"><script>{RUN}</script><image href="https://{ELSEWHERE}/x.png"/>
<foreignObject><body xmlns="http://www.w3.org/1999/xhtml" onload="{RUN}"/>
</foreignObject><a href="javascript:{RUN}"><text>x</text></a></svg>"""

MARKDOWN = f"""<script>{RUN}</script> <img src=x onerror="{RUN}"> <svg onload="{RUN}">

[a](javascript:{RUN}) [b](data:text/html,<script>{RUN}</script>) <javascript:{RUN}>
![c](https://{ELSEWHERE}/x.png) ![d](/v1/../admin/) ![e](javascript:{RUN})

```html" onmouseover="{RUN}
{MARKUP}
```

[f]: javascript:{RUN}
[f] | ![g][f]
"""

TABLE = f'''<script>{RUN}</script>,"<img src=x onerror=""{RUN}"">",=cmd|'/c calc'!A1
javascript:{RUN},"=HYPERLINK(""https://{ELSEWHERE}"")",<svg onload={RUN}>
'''

PAPER = f"""%PDF-1.4
1 0 obj << /Type /Catalog /Pages 2 0 R /OpenAction 3 0 R >> endobj
2 0 obj << /Type /Pages /Kids [] /Count 0 >> endobj
3 0 obj << /S /JavaScript /JS ({RUN}) >> endobj
trailer << /Root 1 0 R >>
"""

NAME = '"><img src=x onerror=top.owned=1><b>invoice\u202e\u2066fdp.exe'
SHOWN_NAME = '"><img src=x onerror=top.owned=1><b>invoice[U+202E][U+2066]fdp.exe'


@pytest.fixture(autouse=True)
def nothing_happens(page: Page) -> Iterator[None]:
    """Nothing ran, nothing was asked of elsewhere, and the page is still there."""
    dialogs: list[str] = []
    elsewhere: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    def note(route: Route) -> None:
        elsewhere.append(route.request.url)
        route.abort()

    page.on("dialog", dismiss)
    page.context.route(f"**://{ELSEWHERE}/**", note)
    yield
    assert page.evaluate("window.owned") is None
    assert (dialogs, elsewhere) == ([], [])
    assert session_of(page) == SESSION


def holds_only_text(drawn: Locator) -> None:
    """Check that nothing active was drawn."""
    active = "script, svg:not(.icon), form, object, embed, base, meta, link, style"
    expect(drawn.locator(active)).to_have_count(0)
    attributes = drawn.evaluate(
        """drawn => [...drawn.querySelectorAll('*')].flatMap((element) =>
          [...element.attributes].map(({ name, value }) => [name, value]))"""
    )
    assert [name for name, _ in attributes if name.startswith("on")] == []
    addresses = [
        value for name, value in attributes if name in {"href", "src", "srcdoc"}
    ]
    assert [value for value in addresses if not is_harmless(value)] == []


def is_harmless(address: str) -> bool:
    """Tell whether an address leads to a file, or elsewhere by the reader's click."""
    return address.startswith(("/v1/artifacts/", "blob:", f"https://{ELSEWHERE}/"))


class TestContent:
    @pytest.mark.parametrize(
        ("name", "mime_type", "content"),
        [
            ("x.html", "text/html", MARKUP),
            ("x.xhtml", "application/xhtml+xml", MARKUP),
            ("x.svg", "image/svg+xml", DRAWING),
            ("x.xml", "application/xml", DRAWING),
            ("x.md", "text/markdown", MARKDOWN),
            ("x.md", "text/html", MARKUP),
            ("x.csv", "text/csv", TABLE),
            ("x.tsv", "text/plain", TABLE.replace(",", "\t")),
            ("x.json", "application/json", MARKUP),
            ("x.js", "text/javascript", RUN),
            ("x.txt", "text/plain", MARKUP),
            ("x", "text/html; charset=utf-7", MARKUP),
            ("x.png", "image/png", DRAWING),
            ("x.pdf", "application/pdf", PAPER),
            ("x.pdf", "application/pdf", MARKUP),
            ("x.zip", "application/zip", MARKUP),
            ("x", "<b>&\"'", MARKUP),
        ],
    )
    def test_is_only_looked_at(
        self,
        page: Page,
        show: Show,
        shelf: PageShelf,
        name: str,
        mime_type: str,
        content: str,
    ) -> None:
        """Spec: EMIT 15.3; field cases FR-109, FR-117, FR-119."""
        shelf.put("art_x", name, mime_type, content)

        opened = open_file(page, show, "art_x")

        body = opened.locator(".panel-body")
        expect(body).to_have_attribute("aria-busy", "false")
        holds_only_text(opened)

    @pytest.mark.parametrize("content", [MARKUP, MARKDOWN])
    def test_is_only_compared(
        self, page: Page, show: Show, shelf: PageShelf, content: str
    ) -> None:
        shelf.put("art_x", "x.md", "text/markdown", "before", content)
        opened = open_file(page, show, "art_x")

        opened.get_by_label("What is shown").select_option("1")

        expect(opened.get_by_role("insertion").first).to_be_visible()
        shown = opened.locator(".panel-diff")
        expect(shown).to_contain_text(f"<script>{RUN}</script>")
        holds_only_text(shown)


class TestNames:
    def test_are_words_wherever_they_stand(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        """Spec: field cases FR-113, FR-119."""
        shelf.put("art_x", NAME, "text/plain", "x")
        script = Script()
        source = {"type": "artifact", "artifact_id": "art_x", "name": NAME}
        block = {"type": "file", "source": source}
        words = {"event_id": "m", "text": "Look", "content": [block]}
        turn = script.add("turn_m", "turn", turn_no=1, input=words)
        script.add("tool", "tool", turn, title="Write", name="Write")
        script.close("tool", inner={"artifacts": [{**source, "description": NAME}]})
        artifact_card(script, NAME, artifact_id="art_x", description=NAME, role=NAME)
        show(script)

        for place in (".bubble .chip", "[data-card-id=tool] .chip", ".artifact"):
            expect(page.locator(place)).to_contain_text(SHOWN_NAME)
        card(page, "card_art_x_1").get_by_role("button").click()
        heading = panel(page).get_by_role("heading")
        expect(heading).to_have_text(SHOWN_NAME)
        expect(page.locator("#announcer")).to_contain_text(SHOWN_NAME)
        for drawn in ("#timeline", "#panel", "#announcer"):
            holds_only_text(page.locator(drawn))

    def test_are_words_while_the_file_is_attached(
        self, page: Page, show: Show, shelf: PageShelf
    ) -> None:
        script = Script()
        script.say("Hello.")
        show(script)
        attach(page, NAME)
        wait_for_uploads(page, shelf, 1)
        expect(chips(page)).to_contain_text(SHOWN_NAME)

        shelf.refuse(400, NAME)
        expect(page.locator("#announcer")).to_contain_text("is not attached")
        holds_only_text(page.locator("#announcer"))
        holds_only_text(page.locator("#composer"))

    @pytest.mark.parametrize(
        "thumbnail",
        [
            f"https://{ELSEWHERE}/x.png",
            f"//{ELSEWHERE}/x.png",
            "/v1/artifacts/../../admin/",
            "/v1/artifacts/art_x/content?version=1",
            f"javascript:{RUN}",
            "data:image/svg+xml,<svg onload='top.owned=1'/>",
            "file:///etc/passwd",
            "artifact://art_x",
        ],
    )
    def test_of_pictures_elsewhere_are_not_followed(
        self, page: Page, show: Show, shelf: PageShelf, thumbnail: str
    ) -> None:
        """Spec: field case FR-115."""
        script = Script()
        script.turn("turn_m", "Draw")
        artifact_card(script, "a.png", artifact_id="art_x", thumbnail=thumbnail)
        show(script)

        drawn = card(page, "card_art_x_1")
        expect(drawn).to_contain_text("a.png")
        expect(drawn.locator("img")).to_have_count(0)
