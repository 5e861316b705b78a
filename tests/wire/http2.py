"""Tests of HTTP/2 in sbx-proxy-tls, frame by frame: what happens when a request is sent again, or not at all."""
import contextlib
import socket
import ssl
import struct
import threading
import time

from credentials import PLACEHOLDER, SECRET, serving
from live import wait_until
from stage import PATIENCE
from terminated import Result, tls_origin, trusting

DATA, HEADERS, RESET, SETTINGS, GOAWAY, WINDOW = 0, 1, 3, 4, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, number=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, number) + payload


def field(name, value):
    """Of a header list; both shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


POST = b"".join(field(*pair) for pair in ((b":method", b"POST"), (b":scheme", b"https"), (b":authority", b"origin.test"),
                                          (b":path", b"/p"), (b"authorization", b"Bearer " + PLACEHOLDER)))
REFUSED = field(b":status", b"401")


class End:
    """One end of a connection, its settings sent and acknowledged."""

    def __init__(self, stream, settings=b"", client=False):
        self.stream, self.held = stream, b""
        stream.settimeout(PATIENCE)
        stream.sendall((PREFACE if client else b"") + frame(SETTINGS, 0, 0, settings) + frame(SETTINGS, ACK))
        if not client:
            while len(self.held) < len(PREFACE):
                self.held += stream.recv(65536)
            assert self.held.startswith(PREFACE)
            self.held = self.held[len(PREFACE):]

    def send(self, *words):
        self.stream.sendall(frame(*words))

    def next(self):
        """(kind, flags, stream, payload) of the next frame; None at the end."""
        while len(self.held) < 9 or len(self.held) < 9 + int.from_bytes(self.held[:3], "big"):
            data = self.stream.recv(65536)
            if not data:
                return None
            self.held += data
        size = int.from_bytes(self.held[:3], "big")
        kind, flags, number = struct.unpack(">BBI", self.held[3:9])
        payload, self.held = self.held[9:9 + size], self.held[9 + size:]
        return kind, flags, number, payload

    def until(self, kind):
        while (got := self.next()) and got[0] != kind:
            pass
        assert got, "it has ended"
        return got

    def drain(self, seconds):
        """What comes within that time is of no interest."""
        self.stream.settimeout(seconds)
        with contextlib.suppress(TimeoutError, ssl.SSLError, OSError):
            while self.stream.recv(65536):
                pass
        self.stream.settimeout(PATIENCE)


@contextlib.contextmanager
def both(values, settings=b"", small=False):
    with serving(values) as (proxy, sbx), tls_origin() as server:
        if small:
            server.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            server.listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        accepted = Result(server.accept)
        context = trusting(proxy)
        context.set_alpn_protocols(["h2"])
        stream = context.wrap_socket(proxy.tunnel("origin.test:443"), server_hostname="origin.test")
        origin = accepted.get()
        client = End(stream, client=True)
        origin = End(origin, settings)
        yield proxy, sbx, client, origin
        stream.close()
        origin.stream.close()


class Gate:
    """The first value at once, another once it is opened."""

    def __init__(self, second):
        self.opened, self.second = threading.Event(), second

    def __call__(self, _, count):
        if count > 1:
            self.opened.wait(PATIENCE)
        return SECRET if count == 1 else self.second


def test_renewed_while_blocked():
    """Bodies are stuck since the origin does not read; it refuses the requests, and takes no new ones: they end, and nothing
    that nghttp2 still holds of them is touched."""
    count, size = 90, 60000
    gate = Gate(SECRET + b"-new")
    with both(gate, struct.pack(">HIHI", 4, 1 << 20, 3, 200), small=True) as (proxy, _, client, origin):
        for i in range(count):
            client.send(HEADERS, END_HEADERS, 2 * i + 1, POST)
        reader = threading.Thread(target=origin.drain, args=(2,))
        reader.start()
        for i in range(count):  # they are held here, since the origin's window of the connection is small
            for at in range(0, size, 16384):
                client.send(DATA, 0, 2 * i + 1, b"x" * min(16384, size - at))
        reader.join()
        client.drain(1)
        origin.send(WINDOW, 0, 0, struct.pack(">I", 50_000_000))  # all goes out now, and nobody reads
        time.sleep(1.5)
        for i in range(1, count):
            origin.send(HEADERS, END_HEADERS | END_STREAM, 2 * i + 1, REFUSED)
        origin.send(GOAWAY, 0, 0, struct.pack(">II", 2 * count + 1, 0))
        time.sleep(1)
        gate.opened.set()
        client.drain(1)
        origin.drain(1)
        assert proxy.alive()


def test_sent_again_whole():
    """However the origin ends the stream of a 401, the request that is sent again has all of its body."""
    for code in (None, 0, 8, 5):
        gate = Gate(SECRET + b"-new")
        with both(gate, struct.pack(">HI", 4, 0)) as (_, sbx, client, origin):  # no byte of a body may go yet
            client.send(HEADERS, END_HEADERS, 1, POST)
            first = origin.until(HEADERS)[2]
            client.send(DATA, 0, 1, b"first-half ")
            time.sleep(0.2)
            origin.send(HEADERS, END_HEADERS | END_STREAM, first, REFUSED)
            if code is not None:
                origin.send(RESET, 0, first, struct.pack(">I", code))
            wait_until(lambda: len(sbx.wants) == 2, "a newer value is not asked for")
            time.sleep(0.2)
            client.send(DATA, END_STREAM, 1, b"second-half")
            time.sleep(0.2)
            gate.opened.set()
            again = origin.until(HEADERS)[2]
            assert again > first
            origin.send(WINDOW, 0, again, struct.pack(">I", 65535))
            body, flags = b"", 0
            while not flags & END_STREAM:
                _, flags, number, data = origin.until(DATA)
                assert number == again
                body += data
            assert body == b"first-half second-half", (code, body)


def test_placeholder_that_did_not_go():
    """What the audit says of a body is about what was sent of it."""
    with both(lambda *_: "there is none") as (proxy, _, client, _origin):
        client.send(HEADERS, END_HEADERS, 1, POST)
        client.send(DATA, END_STREAM, 1, b"token=" + PLACEHOLDER)
        client.until(HEADERS)
        line = proxy.audit_lines(2)[1]
        assert line["reason"] == "credential-unavailable" and "placeholder_in_body" not in line, line
