"""A client of HTTP/2 that tests put in front of their code inside: it does what no other client would."""
import os
import socket
import ssl
import struct

import h2.config
import h2.connection
import h2.events
import h2.exceptions

TOKEN = os.environ.get("LAB_KEY", "")


def frame(kind, flags=0, number=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, number) + payload


class Answer:
    def __init__(self):
        self.heads, self.body, self.trailer, self.ended, self.reset = [], b"", None, False, None

    @property
    def status(self):
        return int(dict(self.heads[-1])[":status"]) if self.heads else None

    @property
    def done(self):
        return self.ended or self.reset is not None

    def __repr__(self):
        return repr(vars(self))


class Client:
    def __init__(self, host="h2.test", connect=None, taking=True):
        raw = socket.create_connection((connect or host, 443), timeout=60)
        context = ssl.create_default_context()
        context.set_alpn_protocols(["h2"])
        self.stream = context.wrap_socket(raw, server_hostname=host)
        assert self.stream.selected_alpn_protocol() == "h2"
        self.host, self.taking = host, taking
        self.answers, self.ended, self.closed, self.held = {}, None, False, b""
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="latin-1", validate_outbound_headers=False,
                                                                        normalize_outbound_headers=False))
        self.h2.initiate_connection()
        self.flush()

    def flush(self):
        self.stream.sendall(self.h2.data_to_send())

    def begin(self, path="/check", *fields, method="GET", authority=None, end=True, scheme="https", login=True):
        number = self.h2.get_next_available_stream_id()
        fields = [(name, value.replace("TOKEN", TOKEN)) for name, value in fields]
        login = [("authorization", f"Bearer {TOKEN}")] if login else []
        head = [(":method", method), (":scheme", scheme), (":authority", authority or self.host), (":path", path)]
        self.h2.send_headers(number, [*head, *login, *fields], end_stream=end)
        self.answers[number] = Answer()
        self.flush()
        return number

    def send(self, number, data, end=False):
        """All of it, as the windows let it pass."""
        while data:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            if room <= 0:
                self.turn()
                continue
            self.h2.send_data(number, data[:room])
            data = data[room:]
            self.flush()
        if end:
            self.h2.end_stream(number)
            self.flush()

    def turn(self):
        """Reads once. False at the end."""
        try:
            data = self.stream.recv(65536)
        except (ConnectionError, ssl.SSLError):
            data = b""
        if not data:
            self.closed = True
            return False
        self.held += data
        while len(self.held) >= 9 and len(self.held) >= (size := 9 + int.from_bytes(self.held[:3], "big")):
            piece, self.held = self.held[:size], self.held[size:]
            for event in self.h2.receive_data(piece):
                self.take(event)
            # It takes GOAWAY for the end; answers that are under way still come.
            self.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
        try:
            self.flush()
        except OSError:
            pass  # what came before its end counts
        return True

    def take(self, event):
        answer = self.answers.setdefault(getattr(event, "stream_id", None), Answer())
        if isinstance(event, (h2.events.ResponseReceived, h2.events.InformationalResponseReceived)):
            answer.heads.append(list(event.headers))
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailer = list(event.headers)
        elif isinstance(event, h2.events.DataReceived):
            answer.body += event.data
            if self.taking and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            answer.ended = True
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = int(event.error_code)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.ended = int(event.error_code)

    def until(self, so):
        while not so():
            if not self.turn():
                return False
        return True

    def finish(self, number):
        """The answer, as whole as it gets."""
        self.until(lambda: self.answers[number].done)
        return self.answers[number]

    def ask(self, path="/check", *fields, body=None, trailer=None, **more):
        number = self.begin(path, *fields, end=body is None and trailer is None, **more)
        if body is not None:
            self.send(number, body, end=trailer is None)
        if trailer is not None:
            self.h2.send_headers(number, trailer, end_stream=True)
            self.flush()
        return self.finish(number)

    def drain(self):
        """Reads up to the end; the code of the last GOAWAY."""
        while self.turn():
            pass
        return self.ended
