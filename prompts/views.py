"""REST: which prompts are open, and answering them.

Spec: interfaces.md, REST; Rulings E15, E16, E27.
"""

from datetime import datetime
from itertools import accumulate
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Length
from django.http import HttpResponse
from rest_framework.exceptions import NotFound, UnsupportedMediaType
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from cards.clock import utc_now
from cards.permissions import OwnsSessions, principal_of
from cards.principals import Principal
from cards.protocol.client_messages import PromptUserResponse, read_client_message
from cards.protocol.codec import decode_json
from cards.protocol.errors import RemoteProtocolError, refuse
from cards.protocol.ids import is_safe_id, is_session_id
from cards.queries import find_own_session
from prompts.book import CLIENT_TOOL, open_waits
from prompts.models import PendingWait, SettledPrompt
from prompts.operations import answer_prompt

#: Most prompts in one answer; a session has hardly ever more than a few.
MAX_PROMPTS = 1000

#: Bytes of frames after which an answer ends early; at least one prompt is in it.
MAX_BYTES = 8 * 1024 * 1024

#: Code of the error for a body that no frame could be as long as.
TOO_LARGE = "BODY_TOO_LARGE"

#: `prompt.reply` has another word for one of the user's. Spec: Ruling E15.
_REPLY_OF_DECISION = {"cancel": "cancelled"}


class PromptList(APIView):
    """The open prompts of one's sessions, oldest first."""

    permission_classes = (OwnsSessions,)

    def get(self, request: Request) -> HttpResponse:
        """Return `{results}`; of one session if it is named.

        They end after 1,000 prompts or 8 MiB; whoever answers these sees the next.

        Spec: Ruling E17.
        """
        principal = principal_of(request)
        rows = open_waits(utc_now()).filter(session__principal=principal)
        session_id = request.query_params.get("session_id")
        if session_id is not None:
            rows = rows.filter(session_id=_session_pk(session_id, principal))
        rows = rows.order_by("created_at", "pk")
        shown = rows.filter(pk__in=_first_of(rows)).select_related("session")
        results = [_prompt_json(row) for row in shown]
        # msgspec keeps stored bytes as they are; a renderer would decode them.
        return HttpResponse(
            msgspec.json.encode({"results": results}), content_type="application/json"
        )


def _first_of(rows: QuerySet[PendingWait]) -> list[int]:
    """Return the keys of as many rows as one answer holds."""
    sizes = rows.annotate(size=Length("frame")).values_list("pk", "size")
    found = list(sizes[:MAX_PROMPTS])
    ends = accumulate(size for _, size in found)
    return [
        pk
        for (pk, size), end in zip(found, ends, strict=True)
        if end - size < MAX_BYTES
    ]


def _session_pk(session_id: str, principal: Principal | None) -> int:
    record = None
    # PostgreSQL fails on a NUL, which no session id has.
    if principal is not None and is_session_id(session_id):
        record = find_own_session(session_id, principal)
    if record is None:
        raise NotFound("there is no such session")
    return record.pk


def _prompt_json(row: PendingWait) -> dict[str, Any]:
    return {
        "request_id": row.request_id,
        "session_id": row.session.session_id,
        "kind": row.kind,
        "created_at": _moment(row.created_at),
        "expires_at": _moment(row.expires_at),
        "frame": msgspec.Raw(bytes(row.frame)),
    }


def _moment(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


class PromptAnswer(APIView):
    """The answer to one prompt."""

    permission_classes = (OwnsSessions,)

    def post(self, request: Request, request_id: str) -> Response:
        """Settle the prompt: 200; 409 when it was; 404 unknown; 400 does not fit.

        A body beyond CARDWIRE_MAX_FRAME_BYTES, the bound of frames, is a 413.

        The decision comes back as it counts; beside a 409, as `prompt.reply` has it.

        Spec: Rulings E15, E16, E22.
        """
        session_pk = self._session_of(request, request_id)
        if session_pk is None:
            return _already_settled(request, request_id)
        try:
            answer = _answer_in(request, request_id)
            decision = answer_prompt(session_pk, answer, utc_now())
        except RemoteProtocolError as refusal:
            if refusal.error.code == "UNKNOWN_REQUEST_ID":
                # Somebody else was faster.
                return _already_settled(request, request_id)
            status = 413 if refusal.error.code == TOO_LARGE else 400
            error = msgspec.to_builtins(refusal.error)
            return Response({"error": error}, status=status)
        return Response({"request_id": request_id, "decision": decision})

    @staticmethod
    def _session_of(request: Request, request_id: str) -> int | None:
        """Return the session of an open prompt of one's own; None if there is none."""
        if not is_safe_id(request_id):
            raise NotFound("there is no such prompt")
        rows = open_waits(utc_now()).filter(
            session__principal=principal_of(request), request_id=request_id
        )
        return rows.values_list("session_id", flat=True).first()


def _already_settled(request: Request, request_id: str) -> Response:
    """Answer 409 if a prompt of one's own was settled.

    Raises:
        NotFound: There never was one, or it is forgotten.
    """
    own = {"session__principal": principal_of(request), "request_id": request_id}
    row: PendingWait | SettledPrompt | None = (
        PendingWait.objects.filter(**own, state=PendingWait.State.SETTLED)
        .exclude(kind=CLIENT_TOOL)
        .first()
    )
    row = row or SettledPrompt.objects.filter(**own).exclude(decision="called").first()
    if row is None:
        raise NotFound("there is no such prompt")
    decision = _REPLY_OF_DECISION.get(row.decision, row.decision)
    return Response(
        {"detail": "the prompt was settled before", "decision": decision}, status=409
    )


def _answer_in(request: Request, request_id: str) -> PromptUserResponse:
    """Return the answer in a request's body, read as strictly as a frame.

    Raises:
        RemoteProtocolError: It is not JSON, none, or too long.
        UnsupportedMediaType: It does not say that it is JSON.
    """
    if request.content_type.partition(";")[0].strip() != "application/json":
        raise UnsupportedMediaType(request.content_type)
    try:
        body = decode_json(_body_of(request).decode())
    except UnicodeDecodeError as error:
        raise refuse(
            "the body is not UTF-8", code="INVALID_JSON", allowed="UTF-8"
        ) from error
    if not isinstance(body, dict):
        raise refuse(
            "the body is not a JSON object", code="NOT_AN_OBJECT", allowed="an object"
        )
    body |= {"type": "prompt.user_response", "request_id": request_id}
    message = read_client_message(body)
    if not isinstance(message, PromptUserResponse):
        raise TypeError("the type was given")
    return message


def _body_of(request: Request) -> bytes:
    """Return a request's body, as long as a frame may be.

    Raises:
        RemoteProtocolError: It is longer.

    Spec: Ruling E22.
    """
    limit = settings.CARDWIRE_MAX_FRAME_BYTES
    # Not `body`, which Django bounds as it bounds forms.
    body = request._request.read(limit + 1)
    if len(body) > limit:
        raise refuse(
            "the body is too large",
            code=TOO_LARGE,
            allowed=f"{limit} bytes",
            user_message="This is too large to send; please shorten your answer.",
        )
    return body
