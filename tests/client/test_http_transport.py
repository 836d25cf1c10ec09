"""The blocking client's HTTP: kept connections, proxies, TLS, and servers that misbehave."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from socket import create_connection, create_server, socket
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mainspring.client.requests import Message, TransportError
from mainspring.client.transport import HttpTransport

GET = Message("GET", "/api/v1/jobs?limit=1", {"Authorization": "Bearer t"}, None, 5.0)


@dataclass
class Seen:
    """What a server was sent."""

    port: int
    targets: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    clients: set[tuple[str, int]] = field(default_factory=set)
    closed: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@contextmanager
def serving(*, closes: bool = False, tls: ssl.SSLContext | None = None) -> Iterator[Seen]:
    """A server that answers `ok`, and a proxy that tunnels; without saying so it may close."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            seen.targets.append(self.path)
            seen.headers.append(dict(self.headers))
            seen.clients.add(self.client_address)
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            self.close_connection = closes

        def do_CONNECT(self) -> None:
            seen.targets.append(self.path)
            seen.headers.append(dict(self.headers))
            host, _, port = self.path.rpartition(":")
            with create_connection((host, int(port)), 5) as far:
                self.send_response(200)
                self.end_headers()
                tunnel(self.connection, far)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def shutdown_request(self, request: Any) -> None:
            super().shutdown_request(request)
            seen.closed.release()

    server = Listener(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    seen = Seen(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def tunnel(near: socket, far: socket) -> None:
    back = threading.Thread(target=pump, args=(far, near), daemon=True)
    back.start()
    pump(near, far)
    back.join(5)


def pump(source: socket, target: socket) -> None:
    try:
        while chunk := source.recv(65536):
            target.sendall(chunk)
    except OSError:
        pass  # The other side has hung up.


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1 with its key, which nobody has signed but itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path / "server.pem"
    path.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return path


@pytest.fixture
def tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def sent(transport: HttpTransport, times: int = 1) -> list[bytes]:
    answers = [transport.send(GET).content for _ in range(times)]
    transport.close()
    return answers


def test_requests_share_a_connection():
    with serving() as server:
        assert sent(HttpTransport(f"http://127.0.0.1:{server.port}"), 3) == [b"ok"] * 3

    assert len(server.clients) == 1


def test_a_connection_that_the_server_closed_is_replaced():
    with serving(closes=True) as server:
        transport = HttpTransport(f"http://127.0.0.1:{server.port}")
        for _ in range(3):
            assert transport.send(GET).content == b"ok"
            assert server.closed.acquire(timeout=5)
        transport.close()

    assert len(server.clients) == 3


def test_the_path_of_the_server_stands_before_that_of_the_request():
    with serving() as server:
        sent(HttpTransport(f"http://127.0.0.1:{server.port}/mainspring/"))

    assert server.targets == ["/mainspring/api/v1/jobs?limit=1"]


def test_a_proxy_gets_the_whole_address_and_its_login(monkeypatch):
    with serving() as proxy:
        monkeypatch.setenv("http_proxy", f"http://ada:se%40cret@127.0.0.1:{proxy.port}")
        assert sent(HttpTransport("http://127.0.0.1:9/x")) == [b"ok"]

    assert proxy.targets == ["http://127.0.0.1:9/x/api/v1/jobs?limit=1"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic YWRhOnNlQGNyZXQ="


def test_no_proxy_is_asked_for_a_server_that_the_environment_exempts(monkeypatch):
    with serving() as proxy, serving() as server:
        monkeypatch.setenv("all_proxy", f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert sent(HttpTransport(f"http://127.0.0.1:{server.port}")) == [b"ok"]

    assert proxy.targets == []


def test_a_certificate_of_the_environment_is_trusted(monkeypatch, certificate, tls):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving(tls=tls) as server:
        assert sent(HttpTransport(f"https://127.0.0.1:{server.port}"), 2) == [b"ok"] * 2

    assert len(server.clients) == 1


def test_an_unknown_certificate_is_refused_before_the_token_is_sent(tls):
    with (
        serving(tls=tls) as server,
        pytest.raises(TransportError, match="certificate verify failed"),
    ):
        sent(HttpTransport(f"https://127.0.0.1:{server.port}"))

    assert server.headers == []


def test_https_goes_through_a_proxy_in_a_tunnel(monkeypatch, certificate, tls):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with serving() as proxy, serving(tls=tls) as server:
        monkeypatch.setenv("https_proxy", f"http://ada:pw@127.0.0.1:{proxy.port}")
        assert sent(HttpTransport(f"https://127.0.0.1:{server.port}")) == [b"ok"]

    assert proxy.targets == [f"127.0.0.1:{server.port}"]
    assert proxy.headers[0]["Proxy-Authorization"] == "Basic YWRhOnB3"
    assert "Proxy-Authorization" not in server.headers[0]
    assert all("Authorization" not in headers for headers in proxy.headers)


def test_a_server_that_says_nothing_is_given_up():
    with create_server(("127.0.0.1", 0)) as silent:
        transport = HttpTransport(f"http://127.0.0.1:{silent.getsockname()[1]}")
        quick = Message("GET", "/", {}, None, 0.05)
        with pytest.raises(TransportError, match="timed out"):
            transport.send(quick)


@pytest.mark.parametrize("url", ["jobs.example.com", "ftp://jobs", "http://", "http://h:none"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(TransportError):
        HttpTransport(url).send(GET)
