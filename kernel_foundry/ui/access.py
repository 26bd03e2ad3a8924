"""Who may see the page: whoever has the token, from this machine, and no other site's scripts.

The token comes once in an address and is a cookie from then on that no script reads and no other
site's request carries. A name that points to this machine only by somebody's DNS is refused.
"""

import hmac
from http import HTTPStatus
from typing import Final

from kernel_foundry.ui.http import Request, Response

_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""Of this machine; a port may be another one, as where a tunnel ends."""

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Of every answer: the page's own scripts, styles and connections alone; no text becomes markup."""


class PageAccess:
    """Decides which requests are answered.

    Args:
        token: The secret of this server.
        port: Its own, which the cookie is named by: cookies know no ports.
    """

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self._cookie = f"kfoundry-{port}"

    def refusal(self, request: Request) -> Response | None:
        """Return what a request is answered with instead; None: it may be answered."""
        if not _is_this_machine(request.headers.get("host", "")):
            return _refused(HTTPStatus.MISDIRECTED_REQUEST, "this page is for this machine alone")
        if request.method == "GET" and not request.path and "token" in request.query:
            return self._entry(request.query["token"])
        if not self._is_token(self._sent_cookie(request)):
            return _refused(HTTPStatus.FORBIDDEN, "open the address that `kfoundry ui` printed")
        if request.method not in ("GET", "POST"):
            return _refused(HTTPStatus.METHOD_NOT_ALLOWED, "GET or POST")
        if request.method == "POST" and not _is_own(request):
            return _refused(HTTPStatus.FORBIDDEN, "only the page itself may change anything")
        return None

    def _entry(self, token: str) -> Response:
        """Make the token of an address a cookie, and take it out of the address."""
        if not self._is_token(token):
            return _refused(HTTPStatus.FORBIDDEN, "open the address that `kfoundry ui` printed")
        cookie = f"{self._cookie}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        return Response(
            status=HTTPStatus.SEE_OTHER, headers={"Location": "/", "Set-Cookie": cookie}
        )

    def _sent_cookie(self, request: Request) -> str:
        # The standard library takes quadratic time for quotes, which our own cookie does not have.
        for pair in request.headers.get("cookie", "").split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self._cookie:
                return value
        return ""

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())


def _is_this_machine(host: str) -> bool:
    name, _, port = host.rpartition(":")
    return host in _NAMES or (name in _NAMES and port.isascii() and port.isdigit())


def _is_own(request: Request) -> bool:
    """Whether the page's own script sent a request that changes something.

    The cookie is not enough: a site on another port of this machine counts as the same site. A form
    of any site can send neither this `Origin` nor this content type.
    """
    headers = request.headers
    is_json = headers.get("content-type", "").partition(";")[0].strip() == "application/json"
    return is_json and headers.get("origin", "") == f"http://{headers.get('host', '')}"


def _refused(status: HTTPStatus, text: str) -> Response:
    return Response(status=status, body=f"{text}\n".encode())
