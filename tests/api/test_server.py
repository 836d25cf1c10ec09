"""The socket that the server listens on."""

import socket

from mainspring.api.server import listen


def test_small_answers_are_not_held_back_by_the_network():
    # An event loop sets TCP_NODELAY on what it accepts only where the protocol is known; without
    # it every answer waits 40 ms for an acknowledgement.
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
