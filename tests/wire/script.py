"""Runs a case file: a conversation, step by step, between a client, the proxy and up to three origins.

A line is a step: a word, and where it needs one a colon, a space and a text. \\r \\n \\t \\0 \\\\ and \\xNN are escapes, and
\\N is what sbx is called; "* N TEXT" stands for N times TEXT, and "N x STEP" for N times that step. Lines that begin
with # are comments; the first says what the case is about and names the F-numbers that it holds.

  send: TEXT         the client sends (it connects when it has not yet)
  finish             the client ends its direction
  reset              the client closes with RST
  reconnect          the client goes on with a new connection
  expect: TEXT       the client receives exactly this
  status: N          the client receives a whole response with this status and a Content-Length, or a head without
  head: N            the client receives the head of such a response, and nothing after it is read
  has: TEXT          the last response held this text
  closed             the client's connection ends, and nothing more came
  origin: TEXT       origin.test:80 receives exactly this (it accepts when it has not yet)
  answer: TEXT       it sends this
  origin-finish      it ends its direction
  origin-close       it closes
  origin-closed      its connection ends (or is reset), and nothing more came
  origin-next        it waits for a new connection
  no-origin          no connection has come to any origin, since the beginning or since the last origin-next
  audit: KEY=VALUE   the next line of the audit has these; KEY=- for a key that is absent
  denied: REASON HOST PORT    the next notice to sbx

origin-, answer- and so on for the others: "other" is other.test:80 ("other: TEXT", "other-answer: TEXT" ...), "local" is
the host's localhost:8080.
"""
import re

import stage

REASONS = ["allowed", "deny-rule", "not-allowed", "port-not-allowed", "method-not-allowed",
           "path-not-allowed", "ambiguous-request", "not-http", "address-loopback", "address-unspecified",
           "address-private", "address-cgnat", "address-link-local", "address-metadata", "address-multicast",
           "bad-target", "bad-request", "identity-mismatch"]
ESCAPES = {"r": "\r", "n": "\n", "t": "\t", "0": "\0", "\\": "\\", "N": stage.NAME}


def unescape(text):
    repeat = re.fullmatch(r"\* (\d+) (.*)", text)
    if repeat:
        return unescape(repeat[2]) * int(repeat[1])
    return re.sub(r"\\(x[0-9a-f]{2}|.)", lambda m: chr(int(m[1][1:], 16)) if m[1][0] == "x" else ESCAPES[m[1]],
                  text).encode("latin-1")


class Peer:
    """An origin in a case."""

    def __init__(self, origin):
        self.origin = origin
        self.connection = None

    def ensure(self):
        if self.connection is None:
            self.connection = self.origin.accept()
        return self.connection

    def drop(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None


def receive_exactly(connection, wanted):
    got = b""
    while len(got) < len(wanted):
        data = connection.recv(len(wanted) - len(got))
        assert data, f"the connection ended after {got!r}, {wanted!r} is due"
        got += data
    assert got == wanted, f"received {got!r}\n  instead of {wanted!r}"


def receive_end(connection):
    try:
        data = connection.recv(65536)
    except ConnectionResetError:
        return
    assert not data, f"more came: {data!r}"


class Case:
    def __init__(self, proxy, origins):
        self.proxy = proxy
        self.client = None
        self.response = b""
        self.denials = []
        self.peers = {name: Peer(origin) for name, origin in origins.items()}

    def ensure_client(self):
        if self.client is None:
            self.client = self.proxy.connect()
        return self.client

    def step_send(self, text):
        try:
            self.ensure_client().sendall(unescape(text))
        except (BrokenPipeError, ConnectionResetError):
            pass  # what the proxy says about it is checked by other steps

    def step_finish(self, _):
        self.ensure_client().shutdown(stage.socket.SHUT_WR)

    def step_reset(self, _):
        self.ensure_client().setsockopt(stage.socket.SOL_SOCKET, stage.socket.SO_LINGER, stage.struct.pack("ii", 1, 0))
        self.step_reconnect(_)

    def step_reconnect(self, _):
        self.client.close()
        self.client = None

    def step_expect(self, text):
        receive_exactly(self.client, unescape(text))

    def step_head(self, text):
        self.step_status(text, True)

    def step_status(self, text, head_only=False):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = self.client.recv(1)
            assert byte, f"the connection ended after {head!r}"
            head += byte
        length = re.search(rb"\r\ncontent-length: (\d+)\r\n", head, re.I)
        body = b""
        while length and not head_only and len(body) < int(length[1]):
            data = self.client.recv(int(length[1]) - len(body))
            assert data, "the body ended early"
            body += data
        self.response = head + body
        assert head.split(b" ", 2)[1].decode() == text, f"answered {self.response!r}"

    def step_has(self, text):
        assert unescape(text) in self.response, f"not in {self.response!r}"

    def step_closed(self, _):
        receive_end(self.client)

    def step_audit(self, text):
        line = self.proxy.audit_lines(1)[0]
        for pair in text.split():
            key, value = pair.split("=", 1)
            value = unescape(value).decode("latin-1")
            assert str(line.get(key, "-")) == value, f"{key} is not {value} in {line}"

    def step_denied(self, text):
        reason, host, port = text.split(" ")
        self.denials += self.proxy.denials()
        assert self.denials, "no notice came"
        number, got_port, got_host, _ = self.denials.pop(0)
        assert (REASONS.index(reason), host, int(port)) == (number, got_host, got_port), (number, got_host, got_port)

    def step_no_origin(self, _):
        for name, peer in self.peers.items():
            assert not peer.origin.pending(), f"{name} was connected to"

    def origin_step(self, peer, what, text):
        if what == "":
            receive_exactly(peer.ensure(), unescape(text))
        elif what == "answer":
            peer.ensure().sendall(unescape(text))
        elif what == "finish":
            peer.ensure().shutdown(stage.socket.SHUT_WR)
        elif what == "close":
            peer.ensure()
            peer.drop()
        elif what == "closed":
            receive_end(peer.ensure())
        elif what == "next":
            peer.drop()
        else:
            raise AssertionError(f"unknown step {what}")

    def run_step(self, word, text):
        if word == "answer":
            word = "origin-answer"
        peer, _, what = word.partition("-")
        if peer in self.peers:
            self.origin_step(self.peers[peer], what, text)
        else:
            getattr(self, "step_" + word.replace("-", "_"))(text)

    def run(self, path):
        with open(path, encoding="ascii") as file:
            lines = [line.rstrip("\n") for line in file]
        assert lines[0].startswith("# "), "the first line does not say what the case is about"
        try:
            for number, line in enumerate(lines, 1):
                if not line or line.startswith("#"):
                    continue
                repeat = re.fullmatch(r"(\d+) x (.*)", line)
                word, _, text = (repeat[2] if repeat else line).partition(": ")
                try:
                    for _ in range(int(repeat[1]) if repeat else 1):
                        self.run_step(word, text)
                except Exception as error:
                    raise AssertionError(f"{path}:{number}: {line}: {error!r}") from error
        finally:
            if self.client is not None:
                self.client.close()
            for peer in self.peers.values():
                peer.drop()
