"""Rows for the admin, and what its pages say about them."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.test.utils import CaptureQueriesContext

from cards.admin.addresses import (
    cards_url,
    frame_url,
    log_url,
    raw_frame_url,
    session_url,
    turn_url,
)
from cards.models import Event, LogBase, Session, Turn
from cards.protocol.snapshot import CardFold

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)

SESSIONS = "/admin/cards/session/"
TURNS = "/admin/cards/turn/"

#: What the pages must show as characters. Spec: FR-119, FR-121.
HOSTILE = "<b>x</b><script>alert(1)</script>\u202egnp.exe"
ESCAPED = "&lt;b&gt;x&lt;/b&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\u202egnp.exe"


class MaxQueries(Protocol):
    """The fixture `django_assert_max_num_queries`."""

    def __call__(self, num: int) -> CaptureQueriesContext: ...


def make_session(session_id: str = "sess_1", **fields: Any) -> Session:
    return Session.objects.create(
        session_id=session_id,
        **{
            "trace_id": f"tr_{session_id}"[:32],
            "principal": "user:7",
            "created_at": NOW,
            "last_activity_at": NOW,
            **fields,
        },
    )


def make_turn(session: Session, turn_no: int = 1, **fields: Any) -> Turn:
    return Turn.objects.create(
        session=session,
        turn_no=turn_no,
        **{
            "event_id": f"evt_{turn_no}",
            "card_id": f"turn_{session.pk}_{turn_no}",
            "run_id": f"run_{turn_no}",
            "state": Turn.State.ENDED,
            "message": {"text": "hello"},
            "accepted_at": NOW,
            **fields,
        },
    )


def frame(
    seq: int,
    action: str = "card.append",
    *,
    card_id: str = "msg_1",
    kind: str = "message",
    parent: str | None = None,
    **rest: Any,
) -> bytes:
    envelope = {
        "event_id": f"evt_{seq}",
        "card_id": card_id,
        "card_kind": kind,
        "seq": seq,
        "timestamp": "2026-12-01T10:00:00.123Z",
    }
    if parent:
        envelope["parent_card_id"] = parent
    return msgspec.json.encode({"type": action, "envelope": envelope, **rest})


def chunk(seq: int, text: str = "words", **options: Any) -> bytes:
    return frame(seq, payload={"channel": "text", "chunk": text}, **options)


def store(session: Session, frames: Iterable[bytes], first_seq: int = 1) -> None:
    Event.objects.bulk_create(
        Event(session=session, seq=seq, data=data)
        for seq, data in enumerate(frames, first_seq)
    )


def prune(session: Session, *, up_to: int, frames: Iterable[bytes] = ()) -> None:
    """Give a session's log a base that the frames amount to."""
    fold = CardFold()
    fold.apply_all(frames)
    fold.last_seq = up_to
    LogBase.objects.create(
        session=session, last_seq=up_to, cards=fold.encode(), pruned_at=NOW
    )


def turn_frames(turn_no: int, first_seq: int, text: str = "words") -> list[bytes]:
    """Return the six frames of a turn with one message and one open tool."""
    turn, message = f"turn_{turn_no}", f"msg_{turn_no}"
    return [
        frame(
            first_seq,
            "card.add",
            card_id=turn,
            kind="turn",
            hint={"title": f"Turn {turn_no}"},
            payload={"turn_no": turn_no},
        ),
        frame(
            first_seq + 1,
            "card.add",
            card_id=message,
            parent=turn,
            hint={"title": f"Reply {turn_no}"},
            payload={},
        ),
        chunk(first_seq + 2, text, card_id=message),
        frame(
            first_seq + 3,
            "card.add",
            card_id=f"tool_{turn_no}",
            kind="tool",
            parent=message,
            hint={"title": f"Bash {turn_no}"},
            payload={"name": "Bash"},
        ),
        frame(first_seq + 4, "card.close", card_id=message, payload={"status": "ok"}),
        frame(
            first_seq + 5,
            "card.close",
            card_id=turn,
            kind="turn",
            payload={"status": "failed"},
        ),
    ]


def page(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return response.content.decode()


def seqs_of(html: str) -> list[int]:
    """Return the seqs of the frames that a page of the log lists."""
    return [int(seq) for seq in re.findall(r'/log/\d+/">(\d+)</a>', html)]


def link(html: str, rel: str) -> str | None:
    """Return the address of the link to the next or previous page."""
    found = re.search(rf'<a href="([^"]+)" rel="{rel}">', html)
    return found[1].replace("&amp;", "&") if found else None


def statements(context: CaptureQueriesContext) -> str:
    return "\n".join(query["sql"] for query in context.captured_queries).upper()


def client_with(*permissions: str) -> Client:
    user = User.objects.create_user("operator", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(user)
    return client


def every_address(session: Session, turn: Turn) -> list[str]:
    return [
        SESSIONS,
        session_url(session.pk),
        log_url(session.pk),
        frame_url(session.pk, 1),
        raw_frame_url(session.pk, 1),
        cards_url(session.pk),
        TURNS,
        turn_url(turn.pk),
    ]
