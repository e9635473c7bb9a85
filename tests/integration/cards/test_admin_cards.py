"""The admin's page of a session's cards."""

import re

import pytest
from django.test import Client

from cards.admin import card_pages, reads
from cards.admin.addresses import (
    cards_url,
)
from cards.admin.card_pages import in_tree_order
from cards.models import Turn
from cards.protocol.snapshot import CardView
from tests.integration.cards.admin_pages import (
    frame,
    link,
    make_session,
    make_turn,
    page,
    prune,
    store,
    turn_frames,
)


@pytest.mark.django_db
class TestCardsPage:
    def test_shows_a_small_session_as_a_whole_tree(self, admin_client: Client) -> None:
        session = make_session()
        make_turn(session, 1, first_seq=1)
        store(session, turn_frames(1, 1, "streamed words"))

        html = page(admin_client, cards_url(session.pk))

        assert levels_of(html) == [("0", "Turn 1"), ("1", "Reply 1"), ("2", "Bash 1")]
        assert "streamed words" in html
        assert "3 cards" in html
        assert 'cw-failed">failed' in html
        assert 'cw-open">open' in html

    def test_folds_one_turn_alone(self, admin_client: Client) -> None:
        session = make_session()
        for turn_no, first_seq in ((1, 1), (2, 7), (3, 13)):
            make_turn(session, turn_no, first_seq=first_seq)
            store(session, turn_frames(turn_no, first_seq), first_seq)
        make_turn(session, 4, state=Turn.State.QUEUED)

        html = page(admin_client, cards_url(session.pk, turn=2))

        assert [title for _, title in levels_of(html)] == [
            "Turn 2",
            "Reply 2",
            "Bash 2",
        ]
        assert "seq 7–12" in html
        last = page(admin_client, cards_url(session.pk, turn=3))
        assert "seq 13–18" in last
        assert "not started" in page(admin_client, cards_url(session.pk, turn=4))
        assert "no such turn" in page(admin_client, cards_url(session.pk, turn=5))

    def test_shows_a_large_session_by_its_newest_turn(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(card_pages, "WHOLE_FRAMES", 10)
        session = make_session()
        for turn_no, first_seq in ((1, 1), (2, 7)):
            make_turn(session, turn_no, first_seq=first_seq)
            store(session, turn_frames(turn_no, first_seq), first_seq)

        newest = page(admin_client, cards_url(session.pk))
        whole = page(admin_client, cards_url(session.pk, turn="all"))

        assert levels_of(newest)[0] == ("0", "Turn 2")
        assert len(levels_of(whole)) == 6

    @pytest.mark.parametrize(
        ("bound", "most", "reached"),
        [("FOLD_FRAMES", 4, 4), ("FOLD_BYTES", 400, 2), ("FOLD_BYTES", 1, 1)],
    )
    def test_says_when_it_folded_a_part_only(
        self,
        admin_client: Client,
        monkeypatch: pytest.MonkeyPatch,
        bound: str,
        most: int,
        reached: int,
    ) -> None:
        monkeypatch.setattr(reads, bound, most)
        session = make_session()
        store(session, turn_frames(1, 1))

        html = page(admin_client, cards_url(session.pk))

        assert f"Cards as of seq {reached}, of 6" in html

    def test_leaves_out_what_it_cannot_read_and_says_so(
        self, admin_client: Client
    ) -> None:
        session = make_session()
        broken = [b"{", b"null", frame(9, "card.close", card_id="turn_1", payload={})]
        store(session, [*turn_frames(1, 1), *broken])

        html = page(admin_client, cards_url(session.pk))

        assert "left out: seq 7, 8, 9" in html
        assert len(levels_of(html)) == 3

    def test_shows_a_bounded_number_of_cards(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(card_pages, "PAGE_CARDS", 2)
        session = make_session()
        store(session, turn_frames(1, 1))

        html = page(admin_client, cards_url(session.pk))

        assert len(levels_of(html)) == 2
        assert "The first 2 of 3 cards." in html

    def test_cuts_long_texts(self, admin_client: Client) -> None:
        session = make_session()
        store(session, turn_frames(1, 1, "x" * 1_000_000))

        assert len(page(admin_client, cards_url(session.pk))) < 50_000

    @pytest.mark.parametrize("pruned_turns", [1, 2])
    @pytest.mark.parametrize("shown", ["1", "2", "all", ""])
    def test_shows_pruned_turns_as_before(
        self, admin_client: Client, pruned_turns: int, shown: str
    ) -> None:
        sessions = [make_session("whole"), make_session("pruned")]
        frames = turn_frames(1, 1, "old words") + turn_frames(2, 7)
        cut = 6 * pruned_turns
        for session in sessions:
            make_turn(session, 1, first_seq=1)
            make_turn(session, 2, first_seq=7)
        store(sessions[0], frames)
        store(sessions[1], frames[cut:], first_seq=cut + 1)
        prune(sessions[1], up_to=cut, frames=frames[:cut])

        whole, pruned = (
            page(admin_client, cards_url(session.pk) + f"?turn={shown}")
            for session in sessions
        )

        assert levels_of(pruned) == levels_of(whole)
        assert ("old words" in pruned) == ("old words" in whole) == (shown != "2")
        assert f"Frames 1–{cut} were pruned on 2026-12-01" in pruned

    def test_leaves_out_pruned_cards_that_are_too_many_and_says_so(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reads, "FOLD_BYTES", 400)
        session = make_session()
        prune(session, up_to=6, frames=turn_frames(1, 1))
        store(session, [frame(7, "card.add", card_id="new", payload={})], first_seq=7)

        html = page(admin_client, cards_url(session.pk))

        assert [title for _, title in levels_of(html)] == ["new"]
        assert "cards of the pruned frames are left out" in html

    def test_pages_the_turns(self, admin_client: Client) -> None:
        session = make_session()
        for turn_no in range(1, 31):
            make_turn(session, turn_no)

        html = page(admin_client, cards_url(session.pk))
        older = page(admin_client, link(html, "next") or "")

        assert turns_beside(html) == [*range(30, 5, -1)]
        assert turns_beside(older) == [*range(5, 0, -1)]
        assert link(older, "next") is None


def levels_of(html: str) -> list[tuple[str, str]]:
    return re.findall(r'cw-level-(\d)">.*?<strong>([^<]+)</strong>', html, re.S)


def turns_beside(html: str) -> list[int]:
    return [int(number) for number in re.findall(r"<span>Turn (\d+)</span>", html)]


class TestInTreeOrder:
    def test_keeps_children_with_their_parents(self) -> None:
        cards = [card("a"), card("b"), card("c", "a"), card("d", "b"), card("e", "c")]

        order = [(each.card_id, level) for each, level in in_tree_order(cards)]

        assert order == [("a", 0), ("c", 1), ("e", 2), ("b", 0), ("d", 1)]

    @pytest.mark.parametrize(
        "cards",
        [
            pytest.param([("a", "a")], id="its own parent"),
            pytest.param([("a", "b"), ("b", "a")], id="a circle"),
            pytest.param([("a", "gone")], id="a parent that is not here"),
        ],
    )
    def test_loses_no_card(self, cards: list[tuple[str, str]]) -> None:
        order = in_tree_order([card(name, parent) for name, parent in cards])

        assert sorted(each.card_id for each, _ in order) == [name for name, _ in cards]

    def test_knows_no_depth_that_is_too_much(self) -> None:
        chain = [card("0"), *(card(str(n), str(n - 1)) for n in range(1, 5000))]

        assert [level for _, level in in_tree_order(chain)] == [*range(5000)]


def card(card_id: str, parent: str | None = None) -> CardView:
    return CardView(
        card_id=card_id,
        card_kind="message",
        parent_card_id=parent,
        agent_id=None,
        hint={},
        payload={},
    )
