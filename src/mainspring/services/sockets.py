"""The sockets that processes listen on."""

import errno
import socket

from mainspring.domain.errors import SettingsError


def listen(host: str, port: int, *, prefix: str = "", hint: str = "") -> socket.socket:
    """A socket on the port; 0 takes any that is free. Complaints name the settings `host` and
    `port` with the prefix."""
    try:
        # With the protocol, since event loops turn Nagle's algorithm off only where they see it.
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
        )[0]
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"setting {prefix}host: {host!r} is not an address of this machine"
        ) from error
    listening = socket.socket(family, kind, protocol)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            said = (
                f"setting {prefix}port: {port} is already in use on {host}; "
                f"choose another port{hint}"
            )
        else:
            said = f"setting {prefix}host: cannot listen on {host}, port {port}: {error.strerror}"
        raise SettingsError(said) from error
    listening.listen(2048)
    listening.setblocking(False)
    return listening
