"""Talking to the proxy byte by byte from inside a run: code for the inside, and what it sends back."""
import base64
import json

from harness.sbx import PYTHON

# Sends each of the given byte strings (base64, one connection per list) and returns all that comes back.
CLIENT = """
import base64, json, os, select, socket, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])

def exchange(parts, patience):
    connection = socket.create_connection((proxy.hostname, proxy.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    got, closed = [], False
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        try:
            if part is None:
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.sendall(base64.b64decode(part))
        except OSError as error:
            got.append(b"!" + str(error).encode())
        answer = b""
        while not closed and select.select([connection], [], [], patience if last or part is not None else 0)[0]:
            try:
                data = connection.recv(65536)
            except OSError as error:
                data, answer = b"", answer + b"!" + str(error).encode()
            if not data:
                closed = True
            answer += data
        got.append(answer)
    return {"got": [base64.b64encode(g).decode() for g in got], "closed": closed}

conversations, patience = json.load(sys.stdin)
print(json.dumps([exchange(parts, patience) for parts in conversations]))
"""


class Exchange:
    """What came back on one connection: got, a byte string per part that was sent; closed, whether the proxy ended it."""

    def __init__(self, record):
        self.got = [base64.b64decode(g) for g in record["got"]]
        self.closed = record["closed"]

    def __repr__(self):
        return f"{self.got}{' closed' if self.closed else ''}"

    @property
    def all(self):
        return b"".join(self.got)

    @property
    def status(self):
        """Status code of the first answer; None where there is none."""
        words = self.all.split(b" ", 2)
        return int(words[1]) if self.all.startswith(b"HTTP/1.") and len(words) > 1 else None

    @property
    def body(self):
        return self.all.partition(b"\r\n\r\n")[2]

    @property
    def denial(self):
        """The JSON of a denial."""
        return json.loads(self.body)


def converse(sbx, conversations, *options, patience=0.5):
    """Runs one sandbox in which each conversation, a list of byte strings (None: half-close), is held on a connection of
    its own. After each part it reads until nothing has come for patience seconds. Returns an Exchange for each."""
    packed = [[None if part is None else base64.b64encode(part).decode() for part in parts] for parts in conversations]
    result = sbx.run(*options, "--", PYTHON, "-I", "-c", CLIENT, input=json.dumps([packed, patience]).encode())
    return [Exchange(record) for record in result.json]


def talk(sbx, *parts, options=(), patience=0.5):
    """One conversation."""
    return converse(sbx, [list(parts)], *options, patience=patience)[0]


def get(target, *fields, version="HTTP/1.1", method="GET", body=b""):
    """A request in absolute form, with Host and whatever else is given."""
    host = target.split("/")[2] if "//" in target else target
    if not any(f.lower().startswith("host:") for f in fields):
        fields = (f"Host: {host}", *fields)
    return "\r\n".join([f"{method} {target} {version}", *fields, "", ""]).encode("latin-1") + body


def connect(target, *fields):
    return "\r\n".join([f"CONNECT {target} HTTP/1.1", f"Host: {target}", *fields, "", ""]).encode("latin-1")
