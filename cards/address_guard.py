"""No secrets in addresses: they end up in logs, histories and links.

One place in front of every page, route and socket refuses them, before anything else
has read the address, so that nothing else can repeat it.

| an address with | is |
|---|---|
| a parameter that is named like a secret, whatever it holds | refused |
| `cwt_` anywhere behind the `?`, however often percent-encoded | refused |
| something as long as a token behind `cwt_` in its path | refused |

A request is answered with 400, a handshake refused like any other.

Spec: Ruling E27; case FR-129.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

from cards.access_tokens import TOKEN_PREFIX
from cards.protocol.close_codes import CloseCode

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Any, Any], Awaitable[None]]

#: Names under which clients put secrets into addresses, beside those that end in
#: "token".
_SECRET_NAMES: Final = frozenset(
    {"bearer", "authorization", "auth", "api_key", "apikey", "jwt", "sessionid"}
)

#: How often something may be percent-encoded, as by pages that lead to each other; what
#: is encoded more often hides something.
MAX_ENCODINGS: Final = 4

# A session may be called "cwt_1", and stands in paths.
_WHOLE_TOKEN: Final = re.compile(TOKEN_PREFIX + r"[A-Za-z0-9_-]{20}")

# Also of an address within the address, as in `next=/?token=…`.
_BETWEEN_PARAMETERS: Final = re.compile("[?&;#]")

REFUSAL: Final = (
    "a token does not belong into an address, which ends up in logs;"
    " allowed: Authorization: Bearer"
)


def has_secret(*, path: str, query: str) -> bool:
    """Tell whether an address carries what may be a secret.

    Args:
        path: Of the address, encoded or not.
        query: What stands behind its `?`, as it came.

    Spec: Ruling E27.
    """
    return _hides(query, _is_secret_query) or _hides(path, _is_secret_path)


def _hides(text: str, is_secret: Callable[[str], bool]) -> bool:
    for _ in range(MAX_ENCODINGS + 1):
        if is_secret(text):
            return True
        decoded = unquote(text)
        if decoded == text:
            return False
        text = decoded
    return True


def _is_secret_path(path: str) -> bool:
    return _WHOLE_TOKEN.search(path) is not None


def _is_secret_query(query: str) -> bool:
    return TOKEN_PREFIX in query or any(
        _is_secret_name(parameter.partition("=")[0])
        for parameter in _BETWEEN_PARAMETERS.split(query)
    )


def _is_secret_name(name: str) -> bool:
    name = name.strip("+ ").lower().replace("-", "_")
    return name in _SECRET_NAMES or name.endswith("token")


def address_for_logs(address: str) -> str:
    """Return what a log may keep of an address: its path, or "(secret)"."""
    path = address.partition("?")[0]
    return "(secret)" if has_secret(path=path, query="") else path


class AddressGuard:
    """An ASGI application in front of another one.

    Args:
        application: Gets whatever carries no secret in its address.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it without a word of what it said."""
        is_refused = scope["type"] in {"http", "websocket"} and has_secret(
            path=scope["path"], query=scope.get("query_string", b"").decode("latin1")
        )
        if not is_refused:
            await self._application(scope, receive, send)
        elif scope["type"] == "websocket":
            # As any other handshake: daphne answers 403.
            await receive()
            await send({"type": "websocket.close", "code": CloseCode.POLICY_VIOLATION})
        else:
            await _refuse(send, is_json=scope["path"].startswith("/v1/"))


async def _refuse(send: Send, *, is_json: bool) -> None:
    kind, body = "text/plain", REFUSAL
    if is_json:
        kind, body = "application/json", f'{{"detail":"{REFUSAL}"}}'
    headers = {
        "Content-Type": f"{kind}; charset=utf-8",
        "Content-Length": str(len(body)),
        # No page that follows, and nothing in between, is to keep the address.
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    await send(
        {
            "type": "http.response.start",
            "status": 400,
            "headers": [
                (name.lower().encode(), value.encode())
                for name, value in headers.items()
            ],
        }
    )
    await send({"type": "http.response.body", "body": body.encode()})
