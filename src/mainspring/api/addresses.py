"""Where a request comes from: the address of the client, behind proxies that are trusted."""

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_FORWARDED = b"x-forwarded-for"
# What one customer of a provider has at the least: whoever has one address has all of these.
_IPV6_SHARED_BITS = 64


def client_of(scope: Mapping[str, Any], proxies: Sequence[Network]) -> str:
    """The client as limits count it; IPv6 by its /64. X-Forwarded-For counts only as far as it was
    written by proxies that are trusted: whatever is left of that, a client can write itself."""
    peer = (scope.get("client") or ("",))[0]
    address = _read(peer)
    if address is None:
        return str(peer)
    for hop in reversed(_forwarded(scope)):
        if not _is_among(address, proxies):
            break
        before = _read(hop)
        if before is None:
            break
        address = before
    return _shared(address)


def is_proxy(scope: Mapping[str, Any], proxies: Sequence[Network]) -> bool:
    """Whether the request came through a proxy that is trusted."""
    address = _read((scope.get("client") or ("",))[0])
    return address is not None and _is_among(address, proxies)


def _forwarded(scope: Mapping[str, Any]) -> list[str]:
    values = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return [hop.strip() for hop in ",".join(values).split(",")] if values else []


def _read(text: str) -> Address | None:
    """None for a name or nothing. Some proxies add the port."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    # A socket for both families shows IPv4 so.
    return getattr(address, "ipv4_mapped", None) or address


def _is_among(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _shared(address: Address) -> str:
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((int(address), _IPV6_SHARED_BITS), strict=False))
