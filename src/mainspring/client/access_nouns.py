"""More things that a client has: tenants, people and tokens."""

from collections.abc import Iterator
from typing import Any

from mainspring.api.models.base import Page
from mainspring.api.models.people import LoginModel, PersonModel
from mainspring.api.models.tenants import TenantModel
from mainspring.api.models.tokens import CreatedTokenModel, TokenModel
from mainspring.client.asking import Ask, act, create, given, named
from mainspring.client.nouns import Noun


class Tenants(Noun):
    """`client.tenants`."""

    def list(self, **filters: Any) -> Iterator[TenantModel]:
        """By name."""
        return self._client.pages(Ask("GET", "/tenants", filters), Page[TenantModel])

    def get(self, name: str) -> TenantModel:
        return self._client.ask(Ask("GET", f"/tenants/{named(name)}"), TenantModel)

    def create(self, name: str, **fields: Any) -> TenantModel:
        return self._client.ask(create("/tenants", {"name": name, **fields}), TenantModel)

    def update(self, name: str, **changes: Any) -> TenantModel:
        return self._client.ask(Ask("PATCH", f"/tenants/{named(name)}", body=changes), TenantModel)


class People(Noun):
    """`client.people`."""

    def list(self, **filters: Any) -> Iterator[PersonModel]:
        """By name."""
        return self._client.pages(Ask("GET", "/people", filters), Page[PersonModel])

    def get(self, name: str) -> PersonModel:
        return self._client.ask(Ask("GET", f"/people/{named(name)}"), PersonModel)

    def create(self, name: str, role: str) -> PersonModel:
        return self._client.ask(create("/people", {"name": name, "role": role}), PersonModel)

    def change(self, name: str, **changes: Any) -> PersonModel:
        return self._client.ask(Ask("PATCH", f"/people/{named(name)}", body=changes), PersonModel)

    def delete(self, name: str) -> None:
        self._client.do(Ask("DELETE", f"/people/{named(name)}"))

    def open_login(self, name: str) -> LoginModel:
        """A link with which the person logs in, once and soon."""
        return self._client.ask(Ask("POST", f"/people/{named(name)}/login"), LoginModel)


class Tokens(Noun):
    """`client.tokens`."""

    def list(self, *, ended: bool = False, **filters: Any) -> Iterator[TokenModel]:
        """By name."""
        ask = Ask("GET", "/tokens", {"ended": ended, **filters})
        return self._client.pages(ask, Page[TokenModel])

    def get(self, name: str) -> TokenModel:
        return self._client.ask(Ask("GET", f"/tokens/{named(name)}"), TokenModel)

    def create(self, name: str, role: str, **fields: Any) -> CreatedTokenModel:
        """The only time its text is shown."""
        body = {"name": name, "role": role, **given(**fields)}
        return self._client.ask(Ask("POST", "/tokens", body=body), CreatedTokenModel)

    def revoke(self, name: str) -> TokenModel:
        return self._client.ask(act(f"/tokens/{named(name)}/revoke"), TokenModel)
