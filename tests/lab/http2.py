"""Origins that speak HTTP/2, by python3-h2, at names of their own:

    h2.test             the pages below
    h2grpc.test         gRPC: a server of the tests takes its place (placed)
    h2tools.test        nghttpd(1), the same
    h2untrusted.test    the pages, with a certificate that nobody should believe

What the pages do:

    /check              200 for a request with the secret, 401 for one without
    /echo               its header list, trailer, and the digest of its body, as JSON
    /reflect            the secret in fields of a 103, of the response and of its trailer
    /large/N            N bytes; /large-head/N: N KB in fields of the head
    /trailers           a body and a trailer; with a request's body, that
    /hints              103 Early Hints, then a page
    /status/NNN         that status, without a body
    /early              a whole answer before the body is read, and a reset with NO_ERROR
    /reset/CODE         a reset with that code instead of an answer; /reset-late/CODE inside one
    /goaway             an answer, and GOAWAY; /hangup: the connection ends instead; /hangup-late: inside an answer
    /silent             no answer
    /raw/HEX            these bytes, as they are, instead of an answer
"""
import hashlib
import json
import ssl

import h2.config
import h2.connection
import h2.errors
import h2.events

from lab import ca, guarded, origin, space, world

ADDRESSES = {name: places[0] for name, places in world.PLACES.items() if name.startswith("h2")}


class Stream:
    """One request as it comes, and what is still to be sent of its answer."""

    def __init__(self, fields):
        self.fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
        self.body, self.trailer = b"", []
        self.rest, self.after = b"", None

    def get(self, name):
        return next((value for key, value in self.fields if key == name), None)


class Connection:
    """One connection; only its own thread touches it."""

    def __init__(self, servers, stream, sni, number):
        self.servers, self.stream, self.sni, self.number = servers, stream, sni, number
        local = stream.getsockname()
        self.address, self.port, self.secure = origin.plain_address(local), local[1], True
        self.streams = {}
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None,
                                                                        normalize_outbound_headers=False,
                                                                        validate_outbound_headers=False))

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.stream.sendall(data)

    def serve(self):
        self.h2.initiate_connection()
        self.h2.update_settings({4: 1 << 20})
        self.flush()
        while data := self.stream.recv(65536):
            for event in self.h2.receive_data(data):
                if self.take(event) is False:
                    return
            for number, stream in list(self.streams.items()):
                self.push(number, stream)
            self.flush()

    def take(self, event):
        number = getattr(event, "stream_id", None)
        if isinstance(event, h2.events.RequestReceived):
            self.streams[number] = Stream(event.headers)
            if self.streams[number].get(":path") == "/early":
                return self.answer(number, self.streams[number])
        elif isinstance(event, h2.events.DataReceived):
            self.h2.acknowledge_received_data(event.flow_controlled_length, number)
            if number in self.streams:
                self.streams[number].body += event.data
        elif isinstance(event, h2.events.TrailersReceived):
            self.streams[number].trailer = [(n.decode(), v.decode()) for n, v in event.headers]
        elif isinstance(event, h2.events.StreamReset):
            with self.servers.lock:
                self.servers.resets.append(int(event.error_code))
            self.streams.pop(number, None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            return False
        elif isinstance(event, h2.events.StreamEnded) and number in self.streams:
            return self.answer(number, self.streams[number])
        return True

    def push(self, number, stream):
        """Sends what the windows let pass."""
        while stream.rest:
            room = min(self.h2.local_flow_control_window(number), self.h2.max_outbound_frame_size)
            if room <= 0:
                return
            self.h2.send_data(number, stream.rest[:room])
            stream.rest = stream.rest[room:]
            self.flush()
        if stream.after:
            after, stream.after = stream.after, None
            after()

    def respond(self, number, stream, body=b"", status="200", fields=(), trailer=None, end=True):
        body = b"" if stream.get(":method") == "HEAD" else body
        self.h2.send_headers(number, [(":status", status), ("content-type", "text/plain"), *fields],
                             end_stream=end and not body and trailer is None)
        stream.rest = body

        def after():
            if trailer is not None:
                self.h2.send_headers(number, trailer, end_stream=True)
            elif end:
                self.h2.end_stream(number)
            self.streams.pop(number, None)
        stream.after = after if body or trailer is not None else None
        self.push(number, stream)

    def note(self, stream):
        lines = [f"{stream.get(':method')} {stream.get(':path')} HTTP/2"]
        lines += [f"{name.lstrip(':')}: {value}" for name, value in stream.fields + stream.trailer]
        request = origin.Request("\r\n".join([*lines, "", ""]).encode("latin-1"), self)
        request.body = stream.body
        request.listed = stream.fields
        with self.servers.lock:
            self.servers.requests.append(request)
        return request

    def answer(self, number, stream):
        request = self.note(stream)
        action, _, argument = request.target.split("?")[0].lstrip("/").partition("/")
        if action == "check":
            known = guarded.is_known(request)
            self.respond(number, stream, b"hello, lab\n" if known else b"who are you?\n", "200" if known else "401")
        elif action == "echo":
            seen = {"fields": stream.fields, "trailer": stream.trailer, "body": guarded.digest(stream.body)}
            self.respond(number, stream, json.dumps(seen).encode())
        elif action == "reflect":
            secret = (request.get("authorization") or "x nothing").split()[-1]
            self.h2.send_headers(number, [(":status", "103"), ("x-early", secret)])
            self.respond(number, stream, b"reflected\n", fields=[("x-secret", secret), (f"x-{secret.lower()}", "x")],
                         trailer=[("x-late", secret)])
        elif action == "large-head":
            self.respond(number, stream, fields=[("x-large", "a" * 1000)] * int(argument))
        elif action == "large":
            self.respond(number, stream, origin.pattern(int(argument)))
        elif action == "trailers":
            self.respond(number, stream, stream.body or b"with a trailer\n", trailer=[("x-sum", "done")])
        elif action == "hints":
            self.h2.send_headers(number, [(":status", "103"), ("link", "</style.css>; rel=preload")])
            self.respond(number, stream, b"after hints\n")
        elif action == "status":
            self.respond(number, stream, status=argument)
        elif action == "early":
            self.respond(number, stream, b"early\n")
            self.h2.reset_stream(number, h2.errors.ErrorCodes.NO_ERROR)
        elif action in ("reset", "reset-late"):
            if action == "reset-late":
                self.respond(number, stream, b"half", end=False)
            self.h2.reset_stream(number, int(argument))
            self.streams.pop(number, None)
        elif action == "goaway":
            self.respond(number, stream, b"going\n")
            self.h2.close_connection(last_stream_id=number)
            self.flush()
        elif action in ("hangup", "hangup-late"):
            if action == "hangup-late":
                self.respond(number, stream, b"half", end=False)
                self.flush()
            return False
        elif action == "raw":
            self.flush()
            self.stream.sendall(bytes.fromhex(argument))
        elif action != "silent":
            self.respond(number, stream, f"lab page of {request.get('authority')}\n".encode())
        self.flush()
        return True


def serve(servers, certificate, protocols=("h2", "http/1.1")):
    """A function that serves the pages over TLS; a client that does not choose HTTP/2 gets HTTP/1 from origin.py."""
    def serve_one(stream):
        names = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.set_alpn_protocols(list(protocols))
        context.sni_callback = lambda _socket, name, _context: names.append(name)
        local = stream.getsockname()
        try:
            secured = context.wrap_socket(stream, server_side=True)
        except OSError:
            servers.record("tls-failed", origin.plain_address(local), local[1])
            raise
        with secured:
            chosen = secured.selected_alpn_protocol()
            with servers.lock:
                servers.chosen.append(chosen)
            if chosen != "h2":
                servers.http(secured, True, names[0] if names else None)
                return
            number = servers.record("h2", origin.plain_address(local), local[1])
            try:
                Connection(servers, secured, names[0] if names else None, number).serve()
            except (h2.exceptions.ProtocolError, KeyError):
                pass  # the test that has made it looks at that
    return serve_one


class Http2:
    """Puts all of it into the lab, a world.World; forget() is for each test."""

    def __init__(self, lab):
        self.servers, self.authority = lab.servers, lab.authority
        self.certificate = lab.authority.issue("http2", list(ADDRESSES))
        stranger = ca.Authority(f"{space.BASE}/etc/stranger2")
        lab.servers.sites["h2.test"] = guarded.api
        self.place("h2.test")
        self.place("h2untrusted.test", stranger.issue("untrusted2", ["h2untrusted.test"]))
        self.forget()

    def place(self, name, certificate=None, protocols=("h2", "http/1.1")):
        serve_it = serve(self.servers, certificate or self.certificate, protocols)
        self.servers.placed[(ADDRESSES[name], 443)] = serve_it

    def forget(self):
        self.servers.resets, self.servers.chosen = [], []
