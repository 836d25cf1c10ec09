"""Logging in through an OpenID Connect provider: the code flow with PKCE, state and nonce.

    browser ── GET /login/oidc ──────────▶ us: a key, kept by the browser in a signed cookie
            ◀─ 303 to the provider ─────── with state, nonce and challenge made of the key
            ── logs in ──────────────────▶ provider
            ◀─ 302 with code and state ───
            ── GET /login/oidc/callback ─▶ us: the state is of the key, and the key is used up
                                           us ── code and verifier ──▶ provider
                                              ◀─ ID token ──────────── checked by its keys
            ◀─ a session ─────────────────

Everything that has to be known again is made of the key, which is in a signed cookie with its
expiry, so a login that is begun leaves nothing here. Of one that is completed a digest is kept, so
that it is completed once. The ID token says who it is; nothing else of the provider's is kept.
"""

import hmac
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import urlsplit

import httpx

from mainspring.domain.errors import SettingsError
from mainspring.settings import Settings

_PATH = "/.well-known/openid-configuration"
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# Only those of key pairs: the client's secret signs nothing, and nothing goes unsigned.
_ALGORITHMS = [
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
]
_TIMEOUT = 10.0
_FRESH_SECONDS = 300.0
_LEEWAY_SECONDS = 60


class LoginFailed(Exception):
    """Nobody was let in: the provider is in trouble, or what it says cannot be relied upon."""


@dataclass(frozen=True, slots=True)
class Key:
    """What one login is known by; its text stays between the browser and us."""

    text: str

    @classmethod
    def make(cls) -> "Key":
        return cls(secrets.token_urlsafe(32))

    @classmethod
    def read(cls, cookie: str, secret: bytes) -> "Key | None":
        """The key in a cookie; None unless we have signed it, and not too long ago."""
        text, _, rest = cookie.partition(".")
        expires_at, _, signature = rest.partition(".")
        signed = hmac.digest(secret, f"oidc.{text}.{expires_at}".encode(), "sha256").hex()
        if not hmac.compare_digest(signed.encode(), signature.encode()):
            return None
        return cls(text) if int(expires_at) > time.time() else None

    def signed(self, secret: bytes, *, expires_at: float) -> str:
        """The cookie that holds it."""
        known = f"{self.text}.{int(expires_at)}"
        return f"{known}.{hmac.digest(secret, f'oidc.{known}'.encode(), 'sha256').hex()}"

    def _derive(self, use: str) -> str:
        made = hmac.digest(self.text.encode(), use.encode(), "sha256")
        return urlsafe_b64encode(made).decode().rstrip("=")

    @property
    def state(self) -> str:
        return self._derive("state")

    @property
    def nonce(self) -> str:
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        return self._derive("verifier")

    @property
    def digest(self) -> bytes:
        return sha256(self.text.encode()).digest()

    def is_of(self, state: str) -> bool:
        return hmac.compare_digest(self.state.encode(), state.encode())


class Provider:
    """The provider that the settings name."""

    def __init__(self, settings: Settings) -> None:
        _ensure_installed()
        self._issuer = (settings.oidc_issuer or "").rstrip("/")
        self._client_id = settings.oidc_client_id or ""
        self._secret = settings.oidc_client_secret.reveal()
        self._claim = settings.oidc_claim
        self._known: tuple[float, Mapping[str, Any]] | None = None
        # Reading the certificates takes longer than a request does.
        self._trust = httpx.create_ssl_context()

    @property
    def name(self) -> str:
        """What people call it."""
        return urlsplit(self._issuer).netloc

    def is_called(self, issuer: str) -> bool:
        return issuer.rstrip("/") == self._issuer

    async def entrance(self, key: Key, callback: str) -> str:
        """Where the browser is sent to log in."""
        from authlib.oauth2.rfc6749.parameters import prepare_grant_uri  # noqa: PLC0415 - optional
        from authlib.oauth2.rfc7636 import create_s256_code_challenge  # noqa: PLC0415 - optional

        async with self._asking() as client:
            metadata = await self._metadata(client)
        return str(
            prepare_grant_uri(
                metadata["authorization_endpoint"],
                client_id=self._client_id,
                response_type="code",
                redirect_uri=callback,
                scope="openid email profile",
                state=key.state,
                nonce=key.nonce,
                code_challenge=create_s256_code_challenge(key.verifier),
                code_challenge_method="S256",
            )
        )

    async def person(self, key: Key, code: str, *, callback: str) -> str:
        """The name that the provider vouches for."""
        async with self._asking() as client:
            metadata = await self._metadata(client)
            token = await self._trade(client, metadata, key=key, code=code, callback=callback)
            keys = await _ask(client, "GET", metadata["jwks_uri"])
        return _named(self._checked(token, keys, metadata, nonce=key.nonce), self._claim)

    def _asking(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            timeout=_TIMEOUT,
            follow_redirects=False,
            headers={"Accept": "application/json"},
            verify=self._trust,
        )

    async def _metadata(self, client: httpx.AsyncClient) -> Mapping[str, Any]:
        if self._known is None or time.monotonic() - self._known[0] > _FRESH_SECONDS:
            found = await _ask(client, "GET", self._issuer + _PATH)
            self._ensure_complete(found)
            self._known = (time.monotonic(), found)
        return self._known[1]

    def _ensure_complete(self, metadata: Mapping[str, Any]) -> None:
        if not self.is_called(str(metadata.get("issuer"))):
            raise LoginFailed("the provider's issuer is not oidc_issuer")
        # In the clear only where the provider itself is, which is this machine.
        schemes = ("https://", "http://") if self._issuer.startswith("http:") else ("https://",)
        for name in _ENDPOINTS:
            if not str(metadata.get(name)).startswith(schemes):
                raise LoginFailed(f"the provider publishes no usable {name}")

    async def _trade(
        self,
        client: httpx.AsyncClient,
        metadata: Mapping[str, Any],
        *,
        key: Key,
        code: str,
        callback: str,
    ) -> str:
        """The ID token for a code."""
        from authlib.oauth2.auth import ClientAuth  # noqa: PLC0415 - optional
        from authlib.oauth2.rfc6749.parameters import prepare_token_request  # noqa: PLC0415

        body = prepare_token_request(
            "authorization_code", redirect_uri=callback, code=code, code_verifier=key.verifier
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        shown = ClientAuth(self._client_id, self._secret, self._method(metadata))
        url, headers, body = shown.prepare("POST", metadata["token_endpoint"], headers, body)
        answer = await _ask(client, "POST", url, headers=headers, content=body)
        if not isinstance(answer.get("id_token"), str):
            raise LoginFailed("the provider returned no ID token")
        return str(answer["id_token"])

    def _method(self, metadata: Mapping[str, Any]) -> str:
        """How the provider is shown the secret."""
        if not self._secret:
            return "none"
        known = metadata.get("token_endpoint_auth_methods_supported")
        is_posted = isinstance(known, list) and "client_secret_basic" not in known
        return "client_secret_post" if is_posted else "client_secret_basic"

    def _checked(
        self,
        token: str,
        keys: Mapping[str, Any],
        metadata: Mapping[str, Any],
        *,
        nonce: str,
    ) -> Mapping[str, Any]:
        from joserfc import jwt  # noqa: PLC0415 - optional
        from joserfc.errors import JoseError  # noqa: PLC0415 - optional
        from joserfc.jwk import KeySet  # noqa: PLC0415 - optional

        rules = jwt.JWTClaimsRegistry(
            leeway=_LEEWAY_SECONDS,
            iss={"essential": True, "value": metadata["issuer"]},
            aud={"essential": True, "value": self._client_id},
            exp={"essential": True},
            iat={"essential": True},
            nonce={"essential": True, "value": nonce},
        )
        try:
            known = KeySet.import_key_set({"keys": list(keys["keys"])})
            claims = jwt.decode(token, known, algorithms=_ALGORITHMS).claims
            rules.validate(claims)
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise LoginFailed(f"the provider's ID token is invalid: {error}") from error
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else self._client_id) != self._client_id:
            raise LoginFailed("the provider's ID token was issued to another client")
        if claims["nonce"] != nonce:
            raise LoginFailed("the provider's ID token was issued for another login")
        return claims


def _named(claims: Mapping[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str) or not name:
        raise LoginFailed(f"the provider's ID token has no claim {claim}")
    if claim == "email" and claims.get("email_verified") not in (True, "true"):
        raise LoginFailed(f"the provider has not verified that {name} is yours")
    return name


async def _ask(client: httpx.AsyncClient, method: str, url: str, **given: Any) -> Mapping[str, Any]:
    try:
        answer = await client.request(method, url, **given)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise LoginFailed(f"cannot reach the provider: {error}") from error
    try:
        facts = answer.json()
    except ValueError:
        facts = None
    if not isinstance(facts, dict):
        raise LoginFailed(f"the provider answered {answer.status_code} without JSON")
    if answer.status_code != httpx.codes.OK:
        said = str(facts.get("error", "without a reason"))[:200]
        raise LoginFailed(f"the provider answered {answer.status_code}: {said}")
    return facts


def _ensure_installed() -> None:
    try:
        import authlib  # noqa: F401, PLC0415 - optional
        import joserfc  # noqa: F401, PLC0415 - optional
    except ImportError:
        raise SettingsError(
            "oidc_issuer needs the package authlib; run `pip install 'mainspring[oidc]'`"
        ) from None
