"""Talking to the proxy byte by byte from inside a run: code for the inside, and what it sends back."""
import base64
import json

from harness.sbx import PYTHON

# Sends the parts of each conversation, [what, bytes in base64], and returns all that comes back. Where an answer is due
# it is waited for; afterwards, and where none is due, a short silence ends the reading.
CLIENT = """
import base64, json, os, select, socket, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])

def exchange(parts, silence):
    connection = socket.create_connection((proxy.hostname, proxy.port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    got, closed = [], False
    for what, text in parts:
        try:
            if what == "end":
                connection.shutdown(socket.SHUT_WR)
            else:
                connection.sendall(base64.b64decode(text))
        except OSError as error:
            got.append(b"!" + str(error).encode())
        answer, patience = b"", silence if what == "quiet" else 30
        while not closed and select.select([connection], [], [], patience)[0]:
            patience = silence
            try:
                data = connection.recv(65536)
            except OSError as error:
                data, answer = b"", answer + b"!" + str(error).encode()
            if not data:
                closed = True
            answer += data
        got.append(answer)
    return {"got": [base64.b64encode(g).decode() for g in got], "closed": closed}

conversations, silence = json.load(sys.stdin)
print(json.dumps([exchange(parts, silence) for parts in conversations]))
"""


class Exchange:
    """What came back on one connection: got, bytes for each part that was sent; closed, whether the proxy ended it."""

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


class Quiet(bytes):
    """A part that no answer is due to."""


def pack(part):
    if part is None:
        return ["end", ""]
    return ["quiet" if isinstance(part, Quiet) else "said", base64.b64encode(part).decode()]


def converse(sbx, conversations, *options, silence=0.3):
    """Runs one sandbox in which each conversation, a list of byte strings (None: half-close), is held on a connection
    of its own. Returns an Exchange for each."""
    packed = [[pack(part) for part in parts] for parts in conversations]
    result = sbx.run(*options, "--", PYTHON, "-I", "-c", CLIENT, input=json.dumps([packed, silence]).encode())
    return [Exchange(record) for record in result.json]


def talk(sbx, *parts, options=(), silence=0.3):
    """One conversation."""
    return converse(sbx, [list(parts)], *options, silence=silence)[0]


def get(target, *fields, version="HTTP/1.1", method="GET", body=b""):
    """A request in absolute form, with Host and whatever else is given."""
    host = target.split("/")[2] if "//" in target else target
    if not any(f.lower().startswith("host:") for f in fields):
        fields = (f"Host: {host}", *fields)
    return "\r\n".join([f"{method} {target} {version}", *fields, "", ""]).encode("latin-1") + body


def connect(target, *fields):
    return "\r\n".join([f"CONNECT {target} HTTP/1.1", f"Host: {target}", *fields, "", ""]).encode("latin-1")
