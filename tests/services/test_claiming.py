"""Claim orders of a server: shared by workers that claim from the same lanes."""

from mainspring.services import claiming
from mainspring.services.claiming import ClaimOrders


def test_workers_of_the_same_queues_and_tenants_share_an_order():
    orders = ClaimOrders()

    assert orders.of(["mail", "far"], None) is orders.of(["far", "mail"], None)
    assert orders.of(["mail"], None) is not orders.of(["mail"], ["acme"])
    assert orders.of(["mail"], ["acme"]) is not orders.of(["far"], ["acme"])


def test_the_order_that_was_used_least_recently_is_forgotten(monkeypatch):
    monkeypatch.setattr(claiming, "_MOST_ORDERS", 2)
    orders = ClaimOrders()
    first, second = orders.of(["a"], None), orders.of(["b"], None)

    assert orders.of(["a"], None) is first
    orders.of(["c"], None)

    assert orders.of(["a"], None) is first
    assert orders.of(["b"], None) is not second
