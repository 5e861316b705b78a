"""WebSocket (RFC 6455), the server's side: messages in single frames, as programs send those that are not huge."""
import base64
import hashlib

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def accept(connection, request):
    key = (request.get("sec-websocket-key") or "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    answer = base64.b64encode(hashlib.sha1(key.encode()).digest())
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    b"Sec-WebSocket-Accept: " + answer + b"\r\n\r\n")


def send(connection, data, kind=TEXT):
    length = len(data)
    if length < 126:
        head = bytes([length])
    else:
        head = b"\x7e" + length.to_bytes(2, "big") if length < 1 << 16 else b"\x7f" + length.to_bytes(8, "big")
    connection.send(bytes([0x80 | kind]) + head + data)


def read_frame(connection):
    """(kind, data), or (CLOSE, b"") where the client has left."""
    head = connection.exactly(2)
    if len(head) < 2:
        return CLOSE, b""
    length = head[1] & 0x7f
    if length >= 126:
        length = int.from_bytes(connection.exactly(2 if length == 126 else 8), "big")
    mask, data = connection.exactly(4), connection.exactly(length)
    key = int.from_bytes((mask * (length // 4 + 1))[:length], "big")
    return head[0] & 0xf, (int.from_bytes(data, "big") ^ key).to_bytes(length, "big")


def read(connection):
    """The next message, or None at the end. Pings and the end are answered here."""
    while True:
        kind, data = read_frame(connection)
        if kind == CLOSE:
            send(connection, data[:2], CLOSE)
            return None
        if kind == PING:
            send(connection, data, PONG)
        elif kind != PONG:
            return data
