"""A little OpenID Connect provider: real HTTP, real keys, real tokens; it can be told to lie."""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

CLIENT, SECRET = "mainspring", "between us"
KEY, OTHER_KEY = (RSAKey.generate_key(2048, {"kid": "one"}) for _ in range(2))


class Provider:
    """Whoever comes is logged in as `claims` say."""

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {"email": "ann@example.com", "email_verified": True}
        self.key = KEY
        self.is_unsigned = False
        self.asked: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """Where the browser is sent back to."""
        assert asked["client_id"] == CLIENT
        assert asked["response_type"] == "code"
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.asked[code] = asked
        back = urlencode({"code": code, "state": asked["state"], "iss": self.issuer})
        return f"{asked['redirect_uri']}?{back}"

    def trade(self, given: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        asked = self.asked.pop(given.get("code", ""), None)
        shown = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if asked is None or given["redirect_uri"] != asked["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        if authorization != f"Basic {shown}":
            return 401, {"error": "invalid_client"}
        made = hashlib.sha256(given["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(made).decode().rstrip("=") != asked["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.token(asked)}

    def token(self, asked: dict[str, str]) -> str:
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "1",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": asked["nonce"],
            **self.claims,
        }
        if self.is_unsigned:
            return f"{_part({'alg': 'none', 'typ': 'JWT'})}.{_part(claims)}."
        return jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)


def _part(facts: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(facts).encode()).decode().rstrip("=")


def _handler(provider: Provider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(_fields(parts.query)))
                self.end_headers()
            elif parts.path == "/keys":
                self._answer(200, KeySet([KEY]).as_dict(private=False))
            else:
                self._answer(200, provider.metadata())

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer(*provider.trade(_fields(body), self.headers.get("Authorization", "")))

        def _answer(self, status: int, facts: Any) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(facts).encode())

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _fields(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@contextmanager
def provider() -> Iterator[Provider]:
    made = Provider()
    made.start()
    try:
        yield made
    finally:
        made.stop()
