"""Lists of REST in pages by key: no counting, and each page costs what the first does.

Spec: interfaces.md, REST.
"""

from datetime import datetime
from typing import Final

from django.core import signing
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

_PARAMETER: Final = "cursor"


def read_cursor(request: Request, *, salt: str) -> tuple[datetime, int] | None:
    """Return the key behind which a page begins; None for the first page.

    Args:
        salt: Of the list, so that none takes the cursor of another.

    Raises:
        ValidationError: The cursor was not given by this list.
    """
    cursor = request.query_params.get(_PARAMETER)
    if not cursor:
        return None
    try:
        moment, pk = signing.loads(cursor, salt=salt)
    except signing.BadSignature as error:
        raise ValidationError(
            {_PARAMETER: "not a cursor of this list; allowed: what `next` gave"}
        ) from error
    return datetime.fromisoformat(moment), pk


def next_url(request: Request, moment: datetime, pk: int, *, salt: str) -> str:
    """Return the address of the page behind a key, with the list's other parameters."""
    query = request.query_params.copy()
    query[_PARAMETER] = signing.dumps([moment.isoformat(), pk], salt=salt)
    return request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
