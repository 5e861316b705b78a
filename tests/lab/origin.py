"""Origins: HTTP/1 over TCP and TLS, and servers that echo. They record what reaches them, byte by byte.

The path of a request selects what the HTTP origin does:

    /                   a small page that names the Host it was asked for
    /echo               the head of the request as it arrived
    /post               length and SHA-256 of the request's body
    /large/N            N bytes with Content-Length
    /chunked/N          N bytes in chunks, with a trailer field
    /close/N            N bytes, ended by closing
    /drip/N             N bytes, one at a time
    /hints              103 Early Hints, then a page
    /early              a final answer before the body is read
    /websocket          101, then every byte comes back
    /status/NNN         that status
    /silent             no answer; the connection stays open
    /hangup             closed without an answer
    /raw/HEX            these bytes as they are, then closed
"""
import hashlib
import socket
import ssl
import struct
import threading
import time

PATTERN = bytes(range(256)) * 256


def pattern(length):
    """The bytes that /large and its kin send."""
    return (PATTERN * (length // len(PATTERN) + 1))[:length]


def plain_address(address):
    """Text of a socket's address, IPv4 in its own form on a dual-stack socket too."""
    return address[0][7:] if address[0].startswith("::ffff:") else address[0]


class Request:
    """One request as the origin saw it: raw head, method, target, fields [(name, value)], body; where it arrived."""

    def __init__(self, raw, connection):
        lines = raw.decode("latin-1").split("\r\n")
        self.raw = raw
        self.method, self.target, self.version = (lines[0].split(" ") + ["", ""])[:3]
        self.fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if ":" in line]
        self.address, self.port = connection.address, connection.port
        self.secure, self.sni = connection.secure, connection.sni
        self.connection = connection.number
        self.body = b""

    def get(self, name):
        """Value of the first field of that name, or None."""
        return next((value for key, value in self.fields if key.lower() == name.lower()), None)

    @property
    def host(self):
        return (self.get("host") or "").partition(":")[0]


class Connection:
    """One accepted connection; reads exactly what it is asked for."""

    def __init__(self, stream, number, secure=False, sni=None):
        local = stream.getsockname()
        self.stream, self.number = stream, number
        self.address, self.port = plain_address(local), local[1]
        self.secure, self.sni = secure, sni
        self.held = b""

    def fill(self):
        data = self.stream.recv(65536)
        self.held += data
        return bool(data)

    def until(self, mark):
        """Bytes up to and with mark, or None at the end of the stream."""
        while mark not in self.held:
            if not self.fill():
                return None
        end = self.held.index(mark) + len(mark)
        taken, self.held = self.held[:end], self.held[end:]
        return taken

    def exactly(self, length):
        pieces, missing = [self.held[:length]], length - len(self.held)
        self.held = self.held[length:]
        while missing > 0 and (data := self.stream.recv(min(missing, 1 << 20))):
            pieces.append(data)
            missing -= len(data)
        return b"".join(pieces)

    def body(self, request):
        if (request.get("transfer-encoding") or "").lower() == "chunked":
            body = b""
            while True:
                size = int((self.until(b"\r\n") or b"0\r\n").split(b";")[0], 16)
                if size == 0:
                    while self.until(b"\r\n") not in (b"\r\n", None):  # trailer fields
                        pass
                    return body
                body += self.exactly(size)
                self.until(b"\r\n")
        return self.exactly(int(request.get("content-length") or 0))

    def send(self, data):
        self.stream.sendall(data)

    def answer(self, body, status="200 OK", fields=(), kind="text/plain"):
        head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {kind}", *fields, "", ""]
        self.send("\r\n".join(head).encode() + body)


def send_chunks(connection, length):
    connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n")
    data = pattern(length)
    for start in range(0, length, 10000):
        piece = data[start:start + 10000]
        connection.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
    connection.send(b"0\r\nX-Sum: done\r\n\r\n")


def send_until_close(connection, length):
    connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + pattern(length))


def send_dripping(connection, length):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
    for byte in pattern(length):
        connection.send(bytes([byte]))
        time.sleep(0.002)


def echo_upgraded(connection):
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    echo(connection)


def echo(connection):
    """Every byte back, until the other side has finished."""
    while connection.held or connection.fill():
        data, connection.held = connection.held, b""
        connection.send(data)


def serve_request(connection, request, sites):
    """Answers one request. Returns whether the connection goes on."""
    path = request.target
    if path.startswith("http://"):
        path = "/" + path.split("/", 3)[3] if path.count("/") > 2 else "/"
    action, _, argument = path.split("?")[0].lstrip("/").partition("/")
    if action == "early":
        connection.answer(b"early\n", "200 OK")
        request.body = connection.body(request)
        return True
    if (request.get("expect") or "").lower() == "100-continue":
        connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    if action == "websocket":
        echo_upgraded(connection)
        return False
    request.body = connection.body(request)
    if request.host.lower() in sites:
        return sites[request.host.lower()](connection, request)
    return answer_request(connection, request, action, argument)


def answer_request(connection, request, action, argument):
    if action == "":
        connection.answer(f"lab page of {request.get('host')}\n".encode())
    elif action == "echo":
        connection.answer(request.raw)
    elif action == "post":
        connection.answer(f"{len(request.body)} {hashlib.sha256(request.body).hexdigest()}\n".encode())
    elif action == "large":
        connection.answer(pattern(int(argument)))
    elif action == "chunked":
        send_chunks(connection, int(argument))
    elif action == "close":
        send_until_close(connection, int(argument))
        return False
    elif action == "drip":
        send_dripping(connection, int(argument))
    elif action == "hints":
        connection.send(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n")
        connection.answer(b"after hints\n")
    elif action == "status":
        connection.answer(f"status {argument}\n".encode(), f"{argument} Lab")
    elif action == "silent":
        connection.stream.recv(1)
        return False
    elif action == "hangup":
        return False
    elif action == "raw":
        connection.send(bytes.fromhex(argument))
        return False
    else:
        connection.answer(b"no such page\n", "404 Not Found")
    return (request.get("connection") or "").lower() != "close"


class Servers:
    """Starts servers and holds their records: requests, and connections as (kind, address, port).

    sites   {host: function}: who answers requests for that Host instead of the pages above. It is called with the
            connection and the request, body read, and returns whether the connection goes on
    placed  {(address, port): function}: who serves a connection to that address instead of the port's own server
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.sites = {}
        self.placed = {}
        self.requests = []
        self.connections = []
        self.datagrams = []

    def record(self, kind, address, port):
        with self.lock:
            self.connections.append((kind, address, port))
            return len(self.connections)

    def listen(self, port, serve, address="::"):
        """Accepts on port, each connection in a thread of its own; the default address is every address."""
        server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if address == "::":
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((address, port))
        server.listen(1024)
        threading.Thread(target=self.accept, args=(server, serve), daemon=True).start()
        return server

    def accept(self, server, serve):
        while True:
            try:
                stream, _ = server.accept()
            except OSError:
                if server.fileno() < 0:
                    return  # closed by the test
                time.sleep(0.01)  # no descriptor free: clients may be many
                continue
            threading.Thread(target=self.guard, args=(serve, stream), daemon=True).start()

    def guard(self, serve, stream):
        with stream:
            try:
                local = stream.getsockname()
                self.placed.get((plain_address(local), local[1]), serve)(stream)
            except (OSError, ValueError):
                pass  # a client may break off or talk nonsense: its own test looks at that

    def http(self, stream, secure=False, sni=None):
        local = stream.getsockname()
        number = self.record("tls" if secure else "http", plain_address(local), local[1])
        connection = Connection(stream, number, secure, sni)
        while (raw := connection.until(b"\r\n\r\n")) is not None:
            request = Request(raw, connection)
            with self.lock:
                self.requests.append(request)
            if not serve_request(connection, request, self.sites):
                break

    def tls(self, certificate):
        """A function that serves HTTP behind TLS with the key and certificate of that file."""
        def serve(stream):
            local, names = stream.getsockname(), []
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            context.sni_callback = lambda _socket, name, _context: names.append(name)
            try:
                secured = context.wrap_socket(stream, server_side=True)
            except OSError:
                self.record("tls-failed", plain_address(local), local[1])
                raise
            with secured:
                self.http(secured, True, names[0] if names else None)
        return serve

    def echo(self, stream):
        local = stream.getsockname()
        echo(Connection(stream, self.record("echo", plain_address(local), local[1])))

    def endless(self, stream):
        """Bytes for as long as there is somebody who takes them."""
        local = stream.getsockname()
        self.record("endless", plain_address(local), local[1])
        while True:
            stream.sendall(PATTERN)

    def listen_datagrams(self, port):
        server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind(("::", port))

        def serve():
            while True:
                data, peer = server.recvfrom(65536)
                with self.lock:
                    self.datagrams.append((port, data, plain_address(peer)))
        threading.Thread(target=serve, daemon=True).start()

    def forget(self):
        with self.lock:
            self.requests.clear()
            self.connections.clear()
            self.datagrams.clear()


def unanswering(address, port):
    """A listener whose queue is full: connecting to it neither succeeds nor fails. Returns what keeps it so."""
    server = socket.socket()
    server.bind((address, port))
    server.listen(0)
    fillers = []
    for _ in range(4):
        filler = socket.socket()
        filler.setblocking(False)
        filler.connect_ex((address, port))
        fillers.append(filler)
    return [server, *fillers]


def reset(stream):
    """Closes with RST instead of FIN."""
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()
