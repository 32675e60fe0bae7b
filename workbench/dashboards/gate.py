"""Checks every request to the dashboard before routing it: host, origin, token."""

from __future__ import annotations

import hmac
import secrets
from typing import Any, Final
from urllib.parse import urlencode

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Router
from tornado.web import Application, RequestHandler

from workbench.dashboards.connections import Connections

_METHODS: Final = frozenset({"GET", "HEAD"})
POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' blob:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""Content security policy: whatever a page contains, it neither loads anything from other sites nor sends anything
there. Panel compiles components in the browser, hence 'unsafe-eval'; `connect-src 'self'` covers the WebSocket.
"""


class Gate(Router):
    """Admits browsers with the token: once in the address, then as a cookie. All others get 403, on every route.

    Attributes:
      application: The application behind it.
      token: The token that opens it.
      cookie: Name of the cookie; browsers do not distinguish cookies of different ports.
      connections: The open connections.
    """

    def __init__(self, application: Application, origins: frozenset[str]) -> None:
        """Creates the gate.

        Args:
          application: The application behind it.
          origins: The exact origins that its pages may come from, such as "http://127.0.0.1:5006".
        """
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"workbench-{secrets.token_hex(4)}"
        self._pass = secrets.token_urlsafe(32)  # the cookie's value; the token itself is only in the address
        self.application = application
        self._origins = origins
        self._hosts = frozenset(origin.partition("://")[2] for origin in origins)
        self.connections = Connections()

    def start_request(self, server_conn: object, request_conn: Any) -> HTTPMessageDelegate:
        """Called by tornado for each connection before anything is read from it, and again for its later requests."""
        self.connections.add(request_conn.stream)
        delegate: HTTPMessageDelegate = super().start_request(server_conn, request_conn)
        return delegate

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """Called by tornado for each request, before its body is read."""
        problem = self._problem(request)
        if problem is not None:
            status, text = problem
            return self._answer(request, _Refusal, status=status, text=text)
        if self._has_cookie(request):
            self.connections.trust(request.connection.stream)  # type: ignore[union-attr]  # HTTP/1 has one
            return self.application.find_handler(request, **kwargs)
        if self._has_token(request):
            return self._answer(request, _Admission, gate=self)
        return self._answer(
            request, _Refusal, status=403, text="open the address with the token that was printed"
        )

    def admit(self, handler: RequestHandler) -> None:
        """Gives a browser with the token its cookie, limited to TLS if the request used TLS, even through a proxy."""
        secure = f"http://{handler.request.host}" not in self._origins
        handler.set_cookie(
            self.cookie, self._pass, httponly=True, samesite="Lax", secure=secure, expires_days=None
        )

    def _problem(self, request: HTTPServerRequest) -> tuple[int, str] | None:
        # Another name for this machine: a foreign page may have pointed its own name here (DNS rebinding).
        if request.host not in self._hosts:
            return (
                403,
                "this is not the address of the dashboard; to allow another one, name it when the dashboard "
                "starts (origin)",
            )
        origins = request.headers.get_list("Origin")
        if any(origin not in self._origins for origin in origins):
            return 403, "not a page of the dashboard"
        if request.method not in _METHODS:
            return 405, "the dashboard is read-only"
        if "%00" in request.path:
            return 403, "no page has that path"
        return None

    def _has_cookie(self, request: HTTPServerRequest) -> bool:
        morsel = request.cookies.get(self.cookie)
        return morsel is not None and _same(morsel.value, self._pass)

    def _has_token(self, request: HTTPServerRequest) -> bool:
        given = request.query_arguments.get("token", [])
        return request.path == "/" and len(given) == 1 and hmac.compare_digest(given[0], self.token.encode())

    def _answer(
        self, request: HTTPServerRequest, handler: type[RequestHandler], **arguments: Any
    ) -> HTTPMessageDelegate:
        return self.application.get_handler_delegate(request, handler, arguments)


class _Refusal(RequestHandler):
    def initialize(self, status: int, text: str) -> None:
        """Called by tornado."""
        self._status, self._text = status, text

    def prepare(self) -> None:
        """Sends the status and the text, whatever the request."""
        self.set_status(self._status)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(f"{self._status}: {self._text}\n")


class _Admission(RequestHandler):
    """Redirects to the same page without the token, to keep it out of the history and of Referer headers."""

    def initialize(self, gate: Gate) -> None:
        """Called by tornado."""
        self._gate = gate

    def get(self) -> None:
        """Sets the cookie."""
        self._gate.admit(self)
        others = {
            name: values[-1]
            for name, values in self.request.query_arguments.items()
            if name != "token" and values
        }
        self.redirect(f"./?{urlencode(others)}" if others else "./")  # relative, because there may be a proxy

    head = get


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "surrogateescape"), other.encode())
