"""The operator's admin: read-only, escaped, and bounded whatever the log holds."""

import re
from datetime import datetime, timedelta
from itertools import chain

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from cards.admin.addresses import (
    cards_url,
    frame_url,
    log_url,
    raw_frame_url,
    session_url,
    turn_url,
    turns_url,
)
from cards.models import Session, Turn
from tests.integration.cards.admin_pages import (
    ESCAPED,
    HOSTILE,
    NOW,
    SESSIONS,
    TURNS,
    MaxQueries,
    chunk,
    client_with,
    every_address,
    frame,
    link,
    make_session,
    make_turn,
    page,
    statements,
    store,
)


@pytest.fixture
def addresses(db: None) -> list[str]:
    """Every page, of a session whose whole text is hostile."""
    session = make_session(
        f"id{HOSTILE}", title=HOSTILE, trace_id=HOSTILE[:32], principal=HOSTILE
    )
    hostile = {"text": HOSTILE}
    turn = make_turn(session, message=hostile, card_id=HOSTILE, first_seq=1)
    store(
        session,
        [
            frame(
                1,
                "card.add",
                card_id=HOSTILE,
                kind=HOSTILE,
                hint={"title": HOSTILE},
                payload=hostile,
            ),
            chunk(2, HOSTILE, card_id=HOSTILE, kind=HOSTILE),
        ],
    )
    return every_address(session, turn)


class TestEveryPage:
    def test_shows_markup_and_direction_marks_as_characters(
        self, admin_client: Client, addresses: list[str]
    ) -> None:
        """Spec: FR-117, FR-119, FR-121."""
        for address in addresses:
            if address.endswith("/raw/"):
                continue
            html = page(admin_client, address)

            assert ESCAPED in html, address
            assert "<b>x</b>" not in html, address
            assert "<script>alert" not in html, address
            assert "\u202e" not in html, address

    def test_makes_no_link_of_a_script(self, admin_client: Client) -> None:
        """Spec: FR-117."""
        evil = "javascript:alert(1)"
        session = make_session(evil, title=f"[x]({evil})", principal=evil)
        turn = make_turn(session, first_seq=1, card_id=evil, message={"text": evil})
        store(session, [chunk(1, f"[x]({evil})", card_id=evil)])

        for address in every_address(session, turn):
            html = admin_client.get(address).content.decode()
            assert not re.search(r"""(href|src)\s*=\s*["']?\s*javascript""", html, re.I)

    def test_sends_the_anonymous_to_the_login(
        self, client: Client, addresses: list[str]
    ) -> None:
        for address in addresses:
            response = client.get(address)

            assert response.status_code == 302
            assert response.headers["Location"].startswith("/admin/login/")

    def test_sends_users_who_are_no_staff_to_the_login(
        self, client: Client, addresses: list[str]
    ) -> None:
        client.force_login(User.objects.create_user("someone", password="x"))

        for address in addresses:
            response = client.get(address)

            assert response.status_code == 302
            assert response.headers["Location"].startswith("/admin/login/")

    def test_refuses_staff_without_a_permission(self, addresses: list[str]) -> None:
        client = client_with()

        assert {client.get(address).status_code for address in addresses} == {403}

    @pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
    def test_refuses_everything_but_reading(
        self, admin_client: Client, addresses: list[str], method: str
    ) -> None:
        for address in addresses:
            response = getattr(admin_client, method)(address, {"title": "changed"})

            assert response.status_code == 405, address

    def test_can_neither_add_nor_delete(self, admin_client: Client) -> None:
        session = make_session()
        turn = make_turn(session)
        for list_url, pk in ((SESSIONS, session.pk), (TURNS, turn.pk)):
            for address in (f"{list_url}add/", f"{list_url}{pk}/delete/"):
                assert admin_client.get(address).status_code == 403
                posted = admin_client.post(address, {"post": "yes"})
                assert posted.status_code in {403, 405}

        assert (Session.objects.get(), Turn.objects.get()) == (session, turn)

    def test_has_no_history(self, admin_client: Client) -> None:
        session = make_session(HOSTILE)

        response = admin_client.get(f"{SESSIONS}{session.pk}/history/")

        assert response.status_code == 302
        assert response.headers["Location"] == session_url(session.pk)

    @pytest.mark.parametrize(
        "address",
        [
            log_url(404),
            log_url(10**30),
            cards_url(404),
            frame_url(404, 1),
            raw_frame_url(404, 1),
        ],
        ids=str,
    )
    def test_knows_no_unknown_session(self, admin_client: Client, address: str) -> None:
        assert admin_client.get(address).status_code == 404

    def test_stays_below_twenty_queries(
        self,
        admin_client: Client,
        django_assert_max_num_queries: MaxQueries,
        addresses: list[str],
    ) -> None:
        """Spec: FR-169."""
        for address in addresses:
            with django_assert_max_num_queries(20):
                page(admin_client, address)


@pytest.mark.django_db
class TestSessionList:
    def test_tells_where_each_session_stands(self, admin_client: Client) -> None:
        idle, running = make_session("sess_idle"), make_session("sess_running")
        queued = make_session("sess_queued")
        make_turn(idle, 3)
        make_turn(running, 1, state=Turn.State.RUNNING)
        make_turn(running, 2, state=Turn.State.QUEUED)
        make_turn(queued, 1, state=Turn.State.QUEUED)
        store(idle, [chunk(seq) for seq in range(1, 8)])

        html = page(admin_client, SESSIONS)

        states = re.findall(r'cw-badge cw-\w+">(\w+)<', html)
        assert states == ["queued", "running", "idle"]
        assert re.findall(r'field-newest_turn">(\d+)<', html) == ["1", "2", "3"]
        assert re.findall(r'field-newest_seq">(\d+)<', html) == ["0", "0", "7"]

    def test_shows_times_in_utc(self, admin_client: Client) -> None:
        make_session(last_activity_at=datetime.fromisoformat("2026-05-01T08:00+08:00"))

        assert "2026-05-01 00:00:00" in page(admin_client, SESSIONS)

    def test_does_not_count_two_thousand_sessions(
        self, admin_client: Client, django_assert_max_num_queries: MaxQueries
    ) -> None:
        """Spec: FR-169, FR-173."""
        many_sessions(2000)

        for query in ("", "?q=sess_0", "?q=user:7", "?q=nothing"):
            with django_assert_max_num_queries(20) as context:
                page(admin_client, SESSIONS + query)

            assert "COUNT(" not in statements(context)
            assert "OFFSET" not in statements(context)
            assert '"CARDS_EVENT"."DATA"' not in statements(context)

    def test_pages_to_the_end_and_back(self, admin_client: Client) -> None:
        many_sessions(120)
        first = page(admin_client, SESSIONS)
        second = page(admin_client, SESSIONS + (link(first, "next") or ""))
        third = page(admin_client, SESSIONS + (link(second, "next") or ""))

        pages = [session_ids(html) for html in (first, second, third)]
        assert [len(ids) for ids in pages] == [50, 50, 20]
        assert [*chain(*pages)] == [f"sess_{n:04}" for n in reversed(range(120))]
        assert link(first, "prev") is link(third, "next") is None
        back = page(admin_client, SESSIONS + (link(third, "prev") or ""))
        assert session_ids(back) == pages[1]
        back = page(admin_client, SESSIONS + (link(back, "prev") or ""))
        assert session_ids(back) == pages[0]
        assert link(back, "prev") is None

    def test_pages_through_sessions_of_one_moment(self, admin_client: Client) -> None:
        many_sessions(60, step=timedelta())

        first = page(admin_client, SESSIONS)
        second = page(admin_client, SESSIONS + (link(first, "next") or ""))

        assert len({*session_ids(first), *session_ids(second)}) == 60

    @pytest.mark.parametrize(
        "query",
        [
            "?after=",
            "?after=x",
            "?after=2026-01-01~1",
            "?after=2026-01-01T00:00~1",
            "?before=2026-99-01T00:00:00%2B00:00~1",
            "?after=2026-01-01T00:00:00%2B00:00~x",
            "?p=7&o=1.-2&all=",
        ],
    )
    def test_shows_the_first_page_for_a_place_that_is_none(
        self, admin_client: Client, query: str
    ) -> None:
        make_session()

        assert session_ids(page(admin_client, SESSIONS + query)) == ["sess_1"]

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("sess_a", ["sess_ab", "sess_a"]),
            ("ess_a", []),
            ("SESS_A", []),
            ("sess_%", []),
            ("tr_sess_b", ["sess_b"]),
            ("user:8", ["sess_b"]),
            ("user:", []),
            ("Protein", ["sess_b"]),
            (" sess_b ", ["sess_b"]),
            ("\u202e", []),
        ],
    )
    def test_searches_ids_by_prefix_owners_and_titles(
        self, admin_client: Client, text: str, found: list[str]
    ) -> None:
        make_session("sess_a")
        make_session("sess_ab")
        make_session("sess_b", principal="user:8", title="About proteins")

        response = admin_client.get(SESSIONS, {"q": text})

        assert session_ids(response.content.decode()) == found

    def test_keeps_the_search_on_the_next_page(self, admin_client: Client) -> None:
        many_sessions(60)
        make_session("other")

        first = page(admin_client, f"{SESSIONS}?q=sess_")

        assert "q=sess_" in (link(first, "next") or "")
        second = page(admin_client, SESSIONS + (link(first, "next") or ""))
        assert len(session_ids(second)) == 10

    def test_hides_log_and_cards_from_who_may_not_view_events(self) -> None:
        session = make_session()
        client = client_with("view_session")

        for address in (SESSIONS, session_url(session.pk)):
            html = page(client, address)
            assert log_url(session.pk) not in html
            assert cards_url(session.pk) not in html
            assert turns_url(session.pk) not in html


def many_sessions(count: int, *, step: timedelta = timedelta(minutes=1)) -> None:
    Session.objects.bulk_create(
        Session(
            session_id=f"sess_{n:04}",
            trace_id=f"tr_{n}",
            principal="user:7",
            created_at=NOW,
            last_activity_at=NOW + n * step,
        )
        for n in range(count)
    )


def session_ids(html: str) -> list[str]:
    return re.findall(r'field-session"><a href="[^"]+">([^<]+)</a>', html)


@pytest.mark.django_db
class TestSessionPage:
    def test_leads_to_log_cards_and_turns(self, admin_client: Client) -> None:
        session = make_session()
        turn = make_turn(session, first_seq=1)

        html = page(admin_client, session_url(session.pk))

        addresses = [log_url(session.pk), cards_url(session.pk), turns_url(session.pk)]
        for address in [*addresses, turn_url(turn.pk), cards_url(session.pk, turn=1)]:
            assert f'href="{address}"' in html

    def test_lists_the_newest_turns_without_their_messages(
        self, admin_client: Client, django_assert_max_num_queries: MaxQueries
    ) -> None:
        session = make_session()
        for turn_no in range(1, 31):
            make_turn(session, turn_no)

        with django_assert_max_num_queries(20) as context:
            html = page(admin_client, session_url(session.pk))

        assert re.findall(r">Turn (\d+)</a>", html) == [
            str(number) for number in range(30, 20, -1)
        ]
        assert '"MESSAGE"' not in statements(context)
        assert "COUNT(" not in statements(context)


@pytest.mark.django_db
class TestTurnList:
    def test_reads_no_message(
        self, admin_client: Client, django_assert_max_num_queries: MaxQueries
    ) -> None:
        """Spec: FR-171."""
        session = make_session()
        for turn_no in range(1, 101):
            make_turn(session, turn_no, message={"text": "x" * 1_000_000})

        for query in ("", "?state=ended", "?q=sess_", "?q=turn_1"):
            with django_assert_max_num_queries(20) as context:
                response = admin_client.get(TURNS + query)

            assert len(response.content) < 1_000_000
            assert '"MESSAGE"' not in statements(context)
            assert "COUNT(" not in statements(context)

    @pytest.mark.parametrize(
        ("state", "found"),
        [
            ("queued", [3]),
            ("running", [2]),
            ("ended", [1]),
            ("unfinished", [3, 2]),
            ("other", []),
            ("%00", []),
        ],
    )
    def test_filters_by_state(
        self, admin_client: Client, state: str, found: list[int]
    ) -> None:
        session = make_session()
        make_turn(session, 1)
        make_turn(session, 2, state=Turn.State.RUNNING)
        make_turn(session, 3, state=Turn.State.QUEUED)

        assert turn_numbers(page(admin_client, f"{TURNS}?state={state}")) == found

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("sess_a", [2, 1]),
            ("tr_sess_b", [7]),
            ("turn_x", [7]),
            ("run_1", [1]),
            ("evt_2", [2]),
            ("evt", []),
        ],
    )
    def test_searches_by_the_ids_of_session_and_turn(
        self, admin_client: Client, text: str, found: list[int]
    ) -> None:
        session = make_session("sess_a")
        make_turn(session, 1)
        make_turn(session, 2)
        make_turn(make_session("sess_b"), 7, card_id="turn_x")

        assert turn_numbers(page(admin_client, f"{TURNS}?q={text}")) == found

    def test_shows_the_turns_of_one_session_in_pages(
        self, admin_client: Client
    ) -> None:
        session = make_session("sess_a")
        make_turn(make_session("sess_b"), 99)
        for turn_no in range(1, 61):
            make_turn(session, turn_no)

        first = page(admin_client, turns_url(session.pk))
        second = page(admin_client, TURNS + (link(first, "next") or ""))

        assert turn_numbers(first) == [*range(60, 10, -1)]
        assert turn_numbers(second) == [*range(10, 0, -1)]
        assert turn_numbers(
            page(admin_client, TURNS + (link(second, "prev") or ""))
        ) == turn_numbers(first)

    @pytest.mark.parametrize("side", ["after", "before"])
    def test_takes_a_place_beyond_all_numbers(
        self, admin_client: Client, side: str
    ) -> None:
        make_turn(make_session())

        assert turn_numbers(page(admin_client, f"{TURNS}?{side}={10**30}")) == [1]

    def test_drops_the_place_when_the_filter_changes(
        self, admin_client: Client
    ) -> None:
        session = make_session()
        for turn_no in range(1, 61):
            make_turn(session, turn_no)
        first = page(admin_client, TURNS)

        second = page(admin_client, TURNS + (link(first, "next") or ""))

        assert 'href="?state=ended"' in second


def turn_numbers(html: str) -> list[int]:
    return [int(n) for n in re.findall(r'field-turn"><a[^>]*>Turn (\d+)<', html)]


@pytest.mark.django_db
class TestTurnPage:
    def test_shows_the_message(self, admin_client: Client) -> None:
        turn = make_turn(make_session(), message={"text": "hello", "content": []})

        html = page(admin_client, turn_url(turn.pk))

        assert "&quot;text&quot;: &quot;hello&quot;" in html
        assert "The first" not in html

    def test_shows_the_beginning_of_a_long_message(self, admin_client: Client) -> None:
        turn = make_turn(make_session(), message={"text": "x" * 300_000})

        html = page(admin_client, turn_url(turn.pk))

        assert len(html) < 150_000
        assert "The first 100,000 of 300," in html

    def test_leads_to_its_session_log_and_cards(self, admin_client: Client) -> None:
        session = make_session()
        turn = make_turn(session, first_seq=12)

        html = page(admin_client, turn_url(turn.pk))

        for address in (
            session_url(session.pk),
            log_url(session.pk, seq=12),
            cards_url(session.pk, turn=1),
        ):
            assert f'href="{address}"' in html

    def test_leads_nowhere_before_it_started(self, admin_client: Client) -> None:
        session = make_session()
        turn = make_turn(session, state=Turn.State.QUEUED)

        html = page(admin_client, turn_url(turn.pk))

        assert "not started" in html
        assert log_url(session.pk) not in html

    def test_is_all_that_the_view_of_turns_opens(self) -> None:
        session = make_session()
        turn = make_turn(session, first_seq=1)
        client = client_with("view_turn")

        html = page(client, turn_url(turn.pk))

        assert log_url(session.pk) not in html
        assert client.get(session_url(session.pk)).status_code == 403
        assert client.get(reverse("admin:cards_session_changelist")).status_code == 403
