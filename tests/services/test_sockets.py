"""The sockets that processes listen on."""

import socket

import pytest

from mainspring.domain.errors import SettingsError
from mainspring.services.sockets import listen


def test_small_answers_are_not_held_back_by_the_network():
    # An event loop sets TCP_NODELAY on what it accepts only where the protocol is known; without
    # it every answer waits 40 ms for an acknowledgement.
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


@pytest.mark.parametrize("host", ["", "256.0.0.1", "a" * 70])
def test_a_host_that_is_no_address_is_named(host):
    with pytest.raises(SettingsError, match="is not an address of this machine"):
        listen(host, 0)
