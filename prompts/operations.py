"""What operators and REST clients do to prompts; sockets go through live sessions.

Each opens its transaction, and leaves the rest to the session's owner.

Spec: Rulings E15, E17; interfaces.md, REST.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from django.core.exceptions import ObjectDoesNotExist
from django.db import transaction

from cards.operations import settle_wait
from cards.protocol.client_messages import PromptUserResponse, nothing_waits
from prompts.book import StoredPromptBook, open_waits
from prompts.models import PendingWait
from prompts.signals import settled


def answer_prompt(
    session_pk: int,
    answer: PromptUserResponse,
    now: datetime,
    *,
    reason: str = "",
) -> str:
    """Settle a prompt by an answer.

    Args:
        reason: Shown to the user with the reply; "" for none.

    Returns:
        The decision as it counts, which is not always the word that was sent.

    Raises:
        RemoteProtocolError: Nothing waits under this id, or the answer does not fit;
            the prompt then stays open.

    Spec: Rulings E15, E16.
    """
    claim = partial(
        StoredPromptBook.claim_answer, session_pk, answer, now, reason=reason
    )
    return _settle(session_pk, answer.request_id, claim, now)


def expire_prompt(
    session_pk: int, request_id: str, now: datetime, *, reason: str
) -> None:
    """Settle an open prompt as if its time were over.

    Args:
        reason: Shown to the user with the reply.

    Raises:
        RemoteProtocolError: Nothing waits under this id.

    Spec: Ruling E17.
    """
    claim = partial(StoredPromptBook.expire, session_pk, request_id, now, reason=reason)
    _settle(session_pk, request_id, claim, now)


def resend_prompt(request_id: str, now: datetime) -> bool:
    """Have the clients shown a prompt once more; False when it is not open.

    The workers find out at their next look, within a second or so.

    Spec: Ruling E17.
    """
    return open_waits(now).filter(request_id=request_id).update(resent_at=now) == 1


def _settle(
    session_pk: int, request_id: str, claim: Callable[[], None], now: datetime
) -> str:
    rows = PendingWait.objects.filter(request_id=request_id)
    try:
        with transaction.atomic():
            settle_wait(session_pk=session_pk, claim=claim, now=now, me=None)
            transaction.on_commit(partial(_tell, session_pk))
            # Read before the commit: the owner removes the row as soon as it may.
            return rows.values_list("decision", flat=True).get()
    except ObjectDoesNotExist as error:
        # The session was deleted meanwhile, and its prompts with it.
        raise nothing_waits(
            PromptUserResponse(request_id=request_id, decision="")
        ) from error


def _tell(session_pk: int) -> None:
    # Robust: the answer is durable, whoever fails to hear of it.
    settled.send_robust(sender=PendingWait, session_pk=session_pk)
