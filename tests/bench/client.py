"""The client of the measures, inside a sandbox or outside: does one round of a measure per line of standard input.

Lines are "VIA MEASURE COUNT"; the answer is one line, the seconds that the round took. VIA is "direct", or "http",
"socks5" or "tcp" with the address of a proxy that speaks it, as in "http:127.0.0.1:3128"; "tcp" is one that leads to
the server whatever it is told. The argument is the port of the server on the host's loopback.
"""

import resource
import socket
import sys
import time

HOST = "localhost"
BLOCK = 256 * 1024


class Link:
    """A way to the server."""

    def __init__(self, via, port):
        self.kind, _, address = via.partition(":")
        host, _, number = address.rpartition(":")
        self.port = port
        self.address = (host, int(number)) if address else ("127.0.0.1", port)
        self.kept = None
        self.held = []

    def dial(self):
        connection = socket.create_connection(self.address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def tunnel(self):
        connection = self.dial()
        if self.kind == "http":
            target = f"{HOST}:{self.port}"
            connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            expect(read_head(connection), b"HTTP/1.", b" 200 ")
        elif self.kind == "socks5":
            connection.sendall(b"\5\1\0")
            expect(connection.recv(2), b"\5\0")
            connection.sendall(b"\5\1\0\1\x7f\0\0\1" + self.port.to_bytes(2, "big"))
            expect(connection.recv(10), b"\5\0")
        return connection

    def url(self, path):
        return f"http://{HOST}:{self.port}{path}" if self.kind == "http" else path


def expect(answer, start, part=b""):
    if not answer.startswith(start) or part not in answer:
        raise SystemExit(f"client: {answer!r}")


def read_head(connection):
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(4096)
        if not part:
            raise SystemExit(f"client: the connection ended after {head!r}")
        head += part
    return head


def stream(link, mebibytes):
    """Receives so many MiB over one tunnel."""
    connection = link.tunnel()
    connection.sendall(b"S%d\n" % mebibytes)
    left = mebibytes << 20
    block = bytearray(BLOCK)
    while left:
        got = connection.recv_into(block, min(left, BLOCK))
        if not got:
            raise SystemExit("client: the stream ended early")
        left -= got
    connection.close()


def request(link, count):
    """Sends so many plain requests on one connection that stays open from round to round."""
    if not link.kept:
        link.kept = link.dial() if link.kind == "http" else link.tunnel()
    head = f"GET {link.url('/')} HTTP/1.1\r\nHost: {HOST}:{link.port}\r\n\r\n".encode()
    for _ in range(count):
        link.kept.sendall(head)
        expect(read_head(link.kept), b"HTTP/1.1 200")


def echo(connection):
    """One line there and back. A whole line: for the rest of one the proxy would wait, as it may be a request."""
    connection.sendall(b"E\n")
    expect(connection.recv(2), b"E")


def connect(link, count):
    """Opens so many tunnels one after the other, with one line there and back on each."""
    for _ in range(count):
        connection = link.tunnel()
        echo(connection)
        connection.close()


def hold(link, count):
    """Keeps so many tunnels, which have carried one line each and are idle."""
    while len(link.held) > count:
        link.held.pop().close()
    while len(link.held) < count:
        link.held.append(link.tunnel())
        echo(link.held[-1])


def use(link, count):
    """One line there and back on so many of the tunnels that are kept, from all over."""
    for connection in link.held[::max(1, len(link.held) // count)]:
        echo(connection)


def main():
    port = int(sys.argv[1])
    links = {}
    measures = {"stream": stream, "request": request, "connect": connect, "hold": hold, "use": use}
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    for line in sys.stdin:
        via, name, count = line.split()
        link = links.setdefault(via, Link(via, port))
        start = time.perf_counter()
        measures[name](link, int(count))
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
