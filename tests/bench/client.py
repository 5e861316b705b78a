"""What runs inside (through the proxy) and outside (directly): does one round of a measure per line of standard input.

Lines are "MEASURE COUNT"; the answer is one line, the seconds that the round took. Arguments: PORT of the server on
the host's loopback. Where HTTP_PROXY is set every connection goes through it.
"""

import os
import socket
import sys
import time
import urllib.parse

HOST = "localhost"
BLOCK = 256 * 1024


class Link:
    """Connections to the server, by CONNECT where there is a proxy."""

    def __init__(self, port):
        proxy = os.environ.get("HTTP_PROXY") or os.environ.get("http_proxy")
        self.port = port
        self.proxy = urllib.parse.urlsplit(proxy) if proxy else None
        self.kept = None

    def dial(self):
        address = (self.proxy.hostname, self.proxy.port) if self.proxy else ("127.0.0.1", self.port)
        connection = socket.create_connection(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def tunnel(self):
        connection = self.dial()
        if self.proxy:
            target = f"{HOST}:{self.port}"
            connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
            head = read_head(connection)
            if not head.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"client: {head!r}")
        return connection

    def url(self, path):
        return f"http://{HOST}:{self.port}{path}" if self.proxy else path


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
        link.kept = link.dial()
    head = f"GET {link.url('/')} HTTP/1.1\r\nHost: {HOST}:{link.port}\r\n\r\n".encode()
    for _ in range(count):
        link.kept.sendall(head)
        answer = read_head(link.kept)
        if not answer.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"client: {answer!r}")


def connect(link, count):
    """Opens so many tunnels one after the other, with one byte there and back on each."""
    for _ in range(count):
        connection = link.tunnel()
        connection.sendall(b"E")
        if connection.recv(1) != b"E":
            raise SystemExit("client: no echo")
        connection.close()


def hold(link, count):
    """Opens so many tunnels and keeps them."""
    link.held = [link.tunnel() for _ in range(count)]


def main():
    link = Link(int(sys.argv[1]))
    measures = {"stream": stream, "request": request, "connect": connect, "hold": hold}
    for line in sys.stdin:
        name, count = line.split()
        start = time.perf_counter()
        measures[name](link, int(count))
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
