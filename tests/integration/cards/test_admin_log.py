"""The admin's pages of a session's log."""

import pytest
from django.test import Client

from cards.admin import log_pages, reads
from cards.admin.addresses import (
    frame_url,
    log_url,
    raw_frame_url,
    turns_url,
)
from cards.admin.shown_text import shown
from tests.integration.cards.admin_pages import (
    HOSTILE,
    MaxQueries,
    chunk,
    client_with,
    link,
    make_session,
    page,
    prune,
    seqs_of,
    statements,
    store,
)


@pytest.mark.django_db
class TestLogPage:
    def test_shows_what_a_frame_is(self, admin_client: Client) -> None:
        session = make_session()
        store(session, [chunk(1, "hello"), b"no frame"])

        html = page(admin_client, log_url(session.pk))

        for text in ("card.append", "msg_1", "2026-12-01 10:00:00.123", "hello"):
            assert text in html
        assert "unreadable" in html
        assert "no frame" in html

    def test_shows_an_empty_log(self, admin_client: Client) -> None:
        html = page(admin_client, log_url(make_session().pk))

        assert "The log is empty." in html
        assert link(html, "next") is link(html, "prev") is None

    def test_pages_by_seq_in_both_directions(self, admin_client: Client) -> None:
        session = make_session()
        store(session, map(chunk, range(1, 251)))
        address = log_url(session.pk)

        first = page(admin_client, address)
        second = page(admin_client, link(first, "next") or "")
        third = page(admin_client, link(second, "next") or "")

        assert seqs_of(first) == [*range(1, 101)]
        assert seqs_of(second) == [*range(101, 201)]
        assert seqs_of(third) == [*range(201, 251)]
        assert link(first, "prev") is link(third, "next") is None
        back = page(admin_client, link(third, "prev") or "")
        assert seqs_of(back) == [*range(101, 201)]
        last = page(admin_client, log_url(session.pk, before=251))
        assert seqs_of(last) == [*range(151, 251)]

    def test_goes_to_a_seq_and_marks_it(self, admin_client: Client) -> None:
        session = make_session()
        store(session, map(chunk, range(1, 251)))

        html = page(admin_client, log_url(session.pk, seq=42))

        assert seqs_of(html)[0] == 42
        assert html.count("cw-marked") == 2  # the style and the row
        assert link(html, "prev") == log_url(session.pk, before=42)

    @pytest.mark.parametrize(
        "query",
        ["?after=x", "?before=-1", "?seq=١", "?after=&seq=", "?after=1.5"],
    )
    def test_ignores_a_place_that_is_none(
        self, admin_client: Client, query: str
    ) -> None:
        session = make_session()
        store(session, [chunk(1)])

        assert seqs_of(page(admin_client, log_url(session.pk) + query)) == [1]

    @pytest.mark.parametrize("name", ["after", "seq"])
    def test_says_that_nothing_is_behind_the_end(
        self, admin_client: Client, name: str
    ) -> None:
        session = make_session()
        store(session, [chunk(1)])

        html = page(admin_client, log_url(session.pk, **{name: 9999999999999999}))

        assert seqs_of(html) == []
        assert link(html, "prev")
        assert "The log has 1–1." in html

    def test_begins_where_old_frames_were_pruned(self, admin_client: Client) -> None:
        session = make_session()
        store(session, map(chunk, range(39, 61)), first_seq=39)
        prune(session, up_to=40)

        html = page(admin_client, log_url(session.pk))

        assert seqs_of(html) == [*range(41, 61)]
        assert link(html, "prev") is None
        assert "The log has 41–60." in html
        assert "Frames 1–40 were pruned on 2026-12-01 10:00:00 (UTC)" in html
        for seq in (39, 40):
            # Left over by a run that died; as good as gone.
            assert admin_client.get(frame_url(session.pk, seq)).status_code == 404
        oldest = page(admin_client, frame_url(session.pk, 41))
        assert link(oldest, "prev") is None

    def test_says_when_all_frames_were_pruned(self, admin_client: Client) -> None:
        session = make_session()
        prune(session, up_to=40)

        for place in ({}, {"seq": 7}, {"before": 41}, {"after": 40}):
            html = page(admin_client, log_url(session.pk, **place))

            assert seqs_of(html) == []
            assert link(html, "next") is None
            assert "All of it was pruned." in html
            assert "Frames 1–40 were pruned" in html

    def test_finds_a_cards_frames_in_a_bounded_range_and_says_so(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_pages, "SCAN_ROWS", 50)
        session = make_session()
        store(session, [chunk(n, card_id=f"card_{n % 20}") for n in range(1, 121)])

        first = page(admin_client, log_url(session.pk, card="card_7"))
        second = page(admin_client, link(first, "next") or "")
        back = page(admin_client, link(second, "prev") or "")

        assert seqs_of(first) == [7, 27, 47]
        assert "3 found among the 50 frames of seq 1–50" in first
        assert "search on from seq 51" in first
        assert seqs_of(second) == [67, 87]
        assert seqs_of(back) == seqs_of(first)

    def test_says_when_it_searched_the_whole_log(self, admin_client: Client) -> None:
        session = make_session()
        store(session, [chunk(1)])

        html = page(admin_client, log_url(session.pk, card="msg"))

        assert seqs_of(html) == []
        assert "That is the whole log." in html

    def test_stays_small_with_bodies_of_a_megabyte(
        self, admin_client: Client, django_assert_max_num_queries: MaxQueries
    ) -> None:
        """Spec: FR-171."""
        session = make_session()
        body = "\u202e<&\"'" * 200_000
        store(session, (chunk(seq, body) for seq in range(1, 101)))

        with django_assert_max_num_queries(20) as context:
            response = admin_client.get(log_url(session.pk))

        assert len(response.content) < 1_000_000
        assert seqs_of(response.content.decode()) == [*range(1, 101)]
        assert "COUNT(" not in statements(context)

    def test_never_fetches_a_whole_body(self, admin_client: Client) -> None:
        session = make_session()
        store(session, [chunk(1, "x" * 1_000_000)])

        heads = reads.frame_heads(session.pk, after_seq=0, before_seq=None, max_rows=9)

        (head,) = heads
        assert head.size_bytes > 1_000_000
        assert len(head.head) == reads.HEAD_BYTES

    def test_ends_a_page_early_when_bodies_are_huge(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(log_pages, "SCAN_BYTES", 3000)
        session = make_session()
        store(session, (chunk(seq, "x" * 2000) for seq in range(1, 6)))

        first = page(admin_client, log_url(session.pk))
        second = page(admin_client, link(first, "next") or "")

        assert seqs_of(first) == [1, 2]
        assert seqs_of(second) == [3, 4]

    def test_needs_the_permission_to_view_events(self) -> None:
        session = make_session()

        assert client_with("view_session").get(log_url(session.pk)).status_code == 403

    def test_opens_with_both_permissions(self) -> None:
        session = make_session()
        client = client_with("view_session", "view_event")

        assert "The log is empty." in page(client, log_url(session.pk))
        assert turns_url(session.pk) not in page(client, log_url(session.pk))


@pytest.mark.django_db
class TestFramePage:
    def test_lays_the_frame_out_without_changing_its_values(
        self, admin_client: Client
    ) -> None:
        session = make_session()
        store(session, [b'{"type":"x","payload":{"n":1e400,"d":0.10,"n":2}}'])

        html = page(admin_client, frame_url(session.pk, 1))

        assert "&quot;n&quot;: 1e400,\n    &quot;d&quot;: 0.10," in html

    @pytest.mark.parametrize(
        "data", [b"", b"\xff\xfe", b"{", b"[" * 100_000, b'{"type":1,"envelope":7}']
    )
    def test_shows_what_is_no_frame(self, admin_client: Client, data: bytes) -> None:
        session = make_session()
        store(session, [data])

        assert "unreadable" in page(admin_client, frame_url(session.pk, 1))

    def test_shows_the_beginning_of_a_huge_frame(self, admin_client: Client) -> None:
        session = make_session()
        store(session, [chunk(1, "汉" * 1_000_000)])

        html = page(admin_client, frame_url(session.pk, 1))

        assert len(html) < 200_000
        assert "The first 100,000 characters of 2,930 KiB" in html
        assert raw_frame_url(session.pk, 1) in html
        assert "\ufffd" not in html

    def test_gives_the_bytes_as_a_download(self, admin_client: Client) -> None:
        session = make_session()
        data = chunk(1, HOSTILE)
        store(session, [data])

        response = admin_client.get(raw_frame_url(session.pk, 1))

        assert response.content == data
        assert response.headers["Content-Type"] == "application/json"
        assert response.headers["Content-Disposition"].startswith("attachment")
        assert response.headers["X-Content-Type-Options"] == "nosniff"

    @pytest.mark.parametrize("seq", [0, 2, 10**30])
    def test_knows_no_other_frames(self, admin_client: Client, seq: int) -> None:
        session = make_session()
        store(session, [chunk(1)])

        for address in (frame_url(session.pk, seq), raw_frame_url(session.pk, seq)):
            assert admin_client.get(address).status_code == 404

    def test_leads_to_its_neighbours_and_its_card(self, admin_client: Client) -> None:
        session = make_session()
        store(session, map(chunk, range(1, 4)))

        html = page(admin_client, frame_url(session.pk, 2))

        assert link(html, "prev") == frame_url(session.pk, 1)
        assert link(html, "next") == frame_url(session.pk, 3)
        assert log_url(session.pk, card="msg_1") in html
        assert link(page(admin_client, frame_url(session.pk, 3)), "next") is None


class TestShown:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("plain 汉字 مرحبا 🧪\n\t", "plain 汉字 مرحبا 🧪\n\t"),
            ("a\u202eb\u2066c\u200fd", "a\\u202eb\\u2066c\\u200fd"),
            ("\x00\x1b[31m\x7f\x85", "\\u0000\\u001b[31m\\u007f\\u0085"),
            ("\u200b\ufeff\u00ad\u2028", "\\u200b\\ufeff\\u00ad\\u2028"),
            ("\U000e0041", "\\U000e0041"),
            ("\ud800", "\\ud800"),
        ],
    )
    def test_escapes_what_deceives(self, text: str, expected: str) -> None:
        assert shown(text) == expected

    def test_marks_a_cut(self) -> None:
        assert [shown("abc", 3), shown("abcd", 3)] == ["abc", "abc…"]
