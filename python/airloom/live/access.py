"""Who may see a live page, and who may use its consoles.

A page has two random tokens: with the one of the *operator* consoles can be opened, with the one of
the *viewer* not. The first request carries a token in its URL and gets a cookie, which the browser
sends from then on. A browser sends cookies to every port of a host, so all paths of a page begin with
a random part of its own, and the cookie is bound to it: another service of the host never gets it.

A web site that makes its name resolve to this host (DNS rebinding) has its own name in the header
Host: only addresses, ``localhost`` and this machine's name are served. A WebSocket must have the
page's own origin, since browsers open one from any site and send the cookie.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, urlsplit

from starlette.responses import PlainTextResponse, RedirectResponse, Response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Role = Literal["operator", "viewer"]

COOKIE = "airloom-live"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class Access:
    """The tokens of a page, and the path that it is served below."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.path = f"/{secrets.token_hex(8)}"
        self.nonce = secrets.token_urlsafe(16)
        """For the style elements that the terminal makes (Content-Security-Policy)."""
        self._tokens: dict[Role, str] = {
            "operator": secrets.token_urlsafe(32),
            "viewer": secrets.token_urlsafe(32),
        }
        self._names = {"localhost", socket.gethostname().lower(), socket.getfqdn().lower(), host.lower()}

    def link(self, role: Role) -> str:
        """The path and query with which a browser gets in."""
        return f"{self.path}/?token={self._tokens[role]}"

    def role_of(self, token: str) -> Role | None:
        """The role that a token gives; takes as long for each wrong one of the same length."""
        found: Role | None = None
        for role, right in self._tokens.items():
            if hmac.compare_digest(right.encode(), token.encode("utf-8", "replace")):
                found = role
        return found

    def knows(self, host: str) -> bool:
        """True if a header Host names this machine: by address, ``localhost`` or its own name."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


class Gate:
    """ASGI middleware: what every request passes first. ``scope["state"]["role"]`` is set behind it."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal = self._refusal(scope)
        if scope["type"] == "websocket":
            if refusal is None:
                await self.app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008, "reason": "not admitted"})
            return
        answer = self.app if refusal is None else refusal
        own = _HEADERS | {"content-security-policy": _POLICY.format(nonce=self.access.nonce)}

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(key.encode(), value.encode()) for key, value in own.items()]
                message = {**message, "headers": [*message["headers"], *headers]}
            await send(message)

        await answer(scope, receive, answered)

    def _refusal(self, scope: Scope) -> Response | None:
        """The answer to a request that must not reach the page; None if it may."""
        access = self.access
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        host = headers.get(b"host", "")
        if not access.knows(host):
            return PlainTextResponse("This name is not this machine's: use its address.\n", 421)
        if scope["type"] == "websocket":
            if not _is_own(headers.get(b"origin", ""), host):
                return PlainTextResponse("Another site's page must not open this.\n", 403)
        elif scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("The page only answers GET.\n", 405, {"allow": "GET, HEAD"})
        if not scope["path"].startswith(f"{access.path}/"):
            return _stranger()
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if "token" in query and scope["path"] == f"{access.path}/" and scope["type"] == "http":
            token = query["token"][0]
            if access.role_of(token) is None:
                return _stranger()
            answer = RedirectResponse(f"{access.path}/", 303)
            answer.set_cookie(COOKIE, token, path=access.path, httponly=True, samesite="strict")
            return answer
        role = access.role_of(_cookie(headers.get(b"cookie", "")))
        if role is None:
            return _stranger()
        scope.setdefault("state", {})["role"] = role
        return None


def _is_own(origin: str, host: str) -> bool:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


def _stranger() -> Response:
    return PlainTextResponse("Open the page with the whole URL that airloom printed.\n", 401)


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
