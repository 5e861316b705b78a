"""Tests of credentials in sbx-proxy-tls: what the origin gets, what the client gets, and what sbx is asked for. sbx is
played by a thread that answers on the control socket."""
import base64
import contextlib
import os
import socket
import ssl
import struct
import threading
import time

import stage
from live import running, wait_until
from stage import read_until
from terminated import OK, REQUEST, Result, open_both, open_tls, response, tls_origin

SECRET = b"ghp_the-real-value-of-the-token-0123"
OTHER = b"another-real-value-of-another-one"
PLACEHOLDER = b"ghp_sbxplaceholder00000000000000000"
KEY = b"sk-sbxplaceholder11111111111111111"
POLICY = {
    "network": {"allow": ["origin.test", "other.test", "203.0.113.12:443"]},
    "credentials": {  # in the order of their names
        "attached": {"source": {"env": "B"}, "inject": "attach", "place": {"header": "X-Api-Key"},
                     "bind": ["other.test", "203.0.113.12"]},
        "github": {"source": {"env": "A"}, "env": "A", "inject": "replace", "bind": ["origin.test"]},
    },
}


class Sbx:
    """Answers CONTROL_WANT from values, a function of the credential's number and the count of its questions, which gives
    bytes, or a text that says why there are none; keeps the notices."""

    def __init__(self, proxy, values):
        self.proxy, self.values = proxy, values
        self.wants, self.notices = [], []
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        control = self.proxy.control
        while True:
            try:
                message = control.recv(65536)
            except OSError:
                return
            if not message:
                return
            kind, = struct.unpack_from("=I", message)
            if kind == stage.CONTROL_DENIED:
                _, reason, port, _, host, _, fix = stage.DENIED.unpack(message)
                self.notices.append((host.split(b"\0")[0].decode(), fix.split(b"\0")[0].decode()))
            elif kind == stage.CONTROL_WANT:
                index, stale = struct.unpack_from("=II", message, 4)
                self.wants.append((index, stale))
                count = sum(1 for each, _ in self.wants if each == index)
                control.send(self.answer(index, self.values(index, count)))

    @staticmethod
    def answer(index, value, valid_ms=0):
        error = b""
        if isinstance(value, tuple):
            value, valid_ms = value
        if isinstance(value, str):
            value, error = b"", value.encode()
        return struct.pack("=IIII", stage.CONTROL_SECRET, index, len(value), valid_ms) + error.ljust(512, b"\0") + value


def plain_values(index, _):
    return (OTHER, SECRET)[index]


@contextlib.contextmanager
def serving(values=plain_values):
    """A proxy whose sbx has these values."""
    with running(policy=POLICY, tls=True, more=[stage.placeholders_message([KEY, PLACEHOLDER])]) as proxy:
        yield proxy, Sbx(proxy, values)


def request(*fields, start=b"GET /path HTTP/1.1", host=b"origin.test", body=b""):
    return b"\r\n".join((start, b"Host: " + host) + fields) + b"\r\n\r\n" + body


def exchange(client, origin, *fields, answer=OK, **options):
    """One request and its response; what the origin was sent, and what the client got."""
    client.sendall(request(*fields, **options))
    got = read_until(origin, b"\r\n\r\n")
    origin.sendall(answer)
    return got, response(client)


def test_credentials_replaced():
    """The placeholder becomes the value on the way out; it is asked for once, when it is needed first."""
    with serving() as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        got, _ = exchange(client, origin)
        assert got == REQUEST and not sbx.wants
        for scheme in (b"Bearer ", b"token "):
            got, _ = exchange(client, origin, b"Authorization: " + scheme + PLACEHOLDER)
            assert b"\r\nAuthorization: " + scheme + SECRET + b"\r\n" in got, got
        basic = base64.b64encode(b"x-access-token:" + PLACEHOLDER)
        got, _ = exchange(client, origin, b"Authorization: Basic " + basic)
        assert base64.b64encode(b"x-access-token:" + SECRET) in got, got
        assert sbx.wants == [(1, 0)]
        client.close()
        lines = proxy.audit_lines(5)
        assert [line.get("credential") for line in lines] == [None, None] + ["github"] * 3
        assert SECRET.decode() not in str(lines)


def test_credentials_attached():
    """Set on every request to where it is bound, by name and by address; nowhere else."""
    with serving() as (proxy, sbx):
        for address, name in (("203.0.113.11", "other.test"), ("203.0.113.12", "203.0.113.12")):
            with tls_origin(address=address) as server:
                client, origin = open_both(proxy, server, target=f"{name}:443", name=name)
                for fields in ((), (b"X-Api-Key: mine",), (b"x-api-key: " + KEY,)):
                    got, _ = exchange(client, origin, *fields, host=name.encode())
                    assert got.lower().count(b"x-api-key:") == 1 and OTHER in got, got
                client.close()
                origin.close()
        assert sbx.wants == [(0, 0)]
        with tls_origin() as server:
            client, origin = open_both(proxy, server)
            assert exchange(client, origin)[0] == REQUEST
            client.close()


def refused(answer, *wanted):
    assert answer.startswith(b"HTTP/1.1 403 ") and b'"reason":"credential-misuse"' in answer, answer
    assert all(text in answer for text in wanted), answer


def test_credentials_misused():
    """F71: a placeholder that goes elsewhere is refused and never swapped: another host, cleartext, the HTTP front."""
    with serving() as (proxy, sbx), tls_origin(address="203.0.113.11") as server, contextlib.closing(
            socket.create_server(("203.0.113.10", 443))) as listener:
        client, origin = open_both(proxy, server, target="other.test:443", name="other.test")
        for fields, start in (((b"Authorization: Bearer " + PLACEHOLDER,), b"GET / HTTP/1.1"),
                              ((b"X-Other: " + PLACEHOLDER,), b"GET / HTTP/1.1"),
                              ((), b"GET /?token=" + PLACEHOLDER + b" HTTP/1.1"),
                              ((), b"GET /" + PLACEHOLDER + b" HTTP/1.1"),
                              ((b"Authorization: Basic " + base64.b64encode(b"u:" + PLACEHOLDER),), b"GET / HTTP/1.1")):
            client.sendall(request(*fields, start=start, host=b"other.test"))
            refused(response(client), b"that of github, which is not bound to this host")
        got, _ = exchange(client, origin, host=b"other.test")
        assert PLACEHOLDER not in got and SECRET not in got
        client.close()
        refused(proxy.get("http://other.test/?token=" + PLACEHOLDER.decode()), b"in a request without TLS", b"https://")
        raw = proxy.tunnel("origin.test:443")
        raw.settimeout(stage.PATIENCE)
        connection, _ = listener.accept()
        raw.sendall(request(b"Authorization: Bearer " + PLACEHOLDER, host=b"origin.test:443"))
        answer = response(raw) # its own host, where it is bound: TLS would be the way
        assert b'"reason":"not-terminated"' in answer and b'"fix":"use https://"' in answer, answer
        raw.close()
        assert connection.recv(100) == b""
        wait_until(lambda: len(sbx.notices) >= 7, "a notice is missing")
        assert ("other.test", "bind github to this host in the policy, if its value may go there") in sbx.notices
        assert sbx.wants == [(0, 0)]
        lines = [line for line in proxy.audit_lines(10) if line["reason"] == "credential-misuse"]
        assert len(lines) == 6 and all(line["credential"] == "github" and line["verdict"] == "deny" for line in lines)


def test_credentials_not_in_their_place():
    """Bound, but in a field that holds no credential."""
    with serving() as (proxy, sbx), tls_origin() as server:
        client, _ = open_both(proxy, server)
        client.sendall(request(b"X-Strange: " + PLACEHOLDER))
        refused(response(client), b"not its place", b"\\\"place\\\" of github")
        assert not sbx.wants
        client.close()


def test_F79_unavailable():
    """A source that fails: one clear answer with its name, nothing sent, and the next request asks again."""
    def values(_, count):
        return "the variable A is not set" if count < 3 else SECRET

    with serving(values) as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        for _ in range(2):
            client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
            answer = response(client)
            assert answer.startswith(b"HTTP/1.1 502 ") and b'"reason":"credential-unavailable"' in answer, answer
            assert b"github: the variable A is not set" in answer, answer
        wait_until(lambda: sbx.notices, "no notice came")
        assert sbx.notices[0] == ("origin.test", "github: the variable A is not set")
        origin.settimeout(0.2)
        with contextlib.suppress(TimeoutError):
            assert origin.recv(100) == b""
        client.close()
        origin.close()
        client, origin = open_both(proxy, server)
        got, _ = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER)
        assert SECRET in got
        client.close()
        lines = proxy.audit_lines(5)
        assert [line["reason"] for line in lines[1:3]] == ["credential-unavailable"] * 2
        assert lines[1]["credential"] == "github"


def test_bad_value():
    """A value that cannot stand in a head."""
    with serving(lambda *_: b"two\r\nlines: x") as (proxy, _), tls_origin() as server:
        client, _ = open_both(proxy, server)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        answer = response(client)
        assert b'"reason":"credential-unavailable"' in answer and b"github" in answer and b"lines" not in answer, answer
        client.close()


def test_F70_reflection():
    """What the origin sends back in a head is the placeholder again, raw and as it was sent."""
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        basic = base64.b64encode(b"user:" + SECRET)
        answer = b"HTTP/1.1 200 OK\r\nX-Echo: " + SECRET + b"\r\nX-Basic: Basic " + basic + b"\r\nContent-Length: 2\r\n\r\nok"
        got, back = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER, answer=answer)
        assert SECRET in got
        assert SECRET not in back and basic not in back and b"X-Echo: " + PLACEHOLDER in back, back
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        read_until(origin, b"\r\n\r\n")
        origin.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: <" + SECRET + b">\r\n\r\n" + OK)
        assert SECRET not in read_until(client, b"ok")
        client.close()
        assert proxy.audit_lines(3)[1]["scrubbed"] == 2


def test_F70_trailer():
    """Nor in a trailer, however it comes in pieces; one without a value passes byte for byte."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Echo\r\n\r\n5\r\nhello\r\n"
    plain = b"0;a=b\r\nX-Sum: 1\r\nX-Other:  2\r\n\r\n"
    telling = b"0\r\nX-Echo: " + SECRET + b"\r\nX-Basic: " + base64.b64encode(b"user:" + SECRET) + b"\r\nX-Sum: 1\r\n\r\n"
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        for trailer, size in ((plain, 1), (plain, 1000), (telling, 1000), (telling, 7), (b"0\r\n\r\n", 1), (b"0\r\n\r\n", 9)):
            client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
            read_until(origin, b"\r\n\r\n")
            origin.sendall(head)
            for start in range(0, len(trailer), size):
                origin.sendall(trailer[start:start + size])
            got = read_until(client, b"hello\r\n")
            while not got.endswith(b"\r\n\r\n"):
                got += client.recv(4096)
            got = got.partition(b"hello\r\n")[2]
            if trailer is telling:
                assert got.startswith(b"0\r\nX-Echo: " + PLACEHOLDER + b"\r\nX-Basic: "), got
                assert got.endswith(b"\r\nX-Sum: 1\r\n\r\n") and b64_part(SECRET) not in got, got
            else:
                assert got == trailer, got
        client.close()
        assert [line.get("scrubbed") for line in proxy.audit_lines(7)[1:]] == [None, None, 2, 2, None, None]


def b64_part(value):
    """What base64 of "user:" and the value has of the value."""
    return base64.b64encode(b"user:" + value)[8:-4]


def test_F70_former_value():
    """The value has changed while a request was under way: the one that it had is not let in either."""
    with serving(lambda _, count: (SECRET, OTHER)[count - 1]) as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        assert SECRET in read_until(origin, b"\r\n\r\n")
        other, other_origin = open_both(proxy, server)
        again = Result(server.accept)
        other.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        read_until(other_origin, b"\r\n\r\n")
        other_origin.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno")
        other_origin = again.get()
        assert OTHER in read_until(other_origin, b"\r\n\r\n")
        origin.sendall(b"HTTP/1.1 200 OK\r\nX-Echo: " + SECRET + b"\r\nX-New: " + OTHER + b"\r\nContent-Length: 2\r\n\r\nok")
        back = response(client)
        assert b"X-Echo: " + PLACEHOLDER + b"\r\nX-New: " + PLACEHOLDER in back, back
        assert len(sbx.wants) == 2
        other.close()
        client.close()


def test_F70_all_former_values():
    """The same after many changes: a request may be held open while the value changes again and again."""
    values = [f"{SECRET.decode()}{number}" for number in range(8)]
    with serving(lambda _, count: (values[count - 1].encode(), 1)) as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        assert values[0].encode() in read_until(origin, b"\r\n\r\n")
        other, other_origin = open_both(proxy, server)
        for value in values[1:]:
            time.sleep(0.01)
            got, _ = exchange(other, other_origin, b"Authorization: Bearer " + PLACEHOLDER)
            assert value.encode() in got
        echo = "".join(f"X-Echo: {value}\r\n" for value in values).encode()
        origin.sendall(b"HTTP/1.1 200 OK\r\n" + echo + b"Content-Length: 2\r\n\r\nok")
        back = response(client)
        assert SECRET not in back and back.count(PLACEHOLDER) == len(values), back
        other.close()
        client.close()


def test_renewed():
    """A 401 to a value: asked for anew once, and sent again where that has changed it."""
    def values(_, count):
        return SECRET if count == 1 else OTHER

    with serving(values) as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        denied = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\nno"
        again = Result(server.accept)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER, start=b"DELETE /x HTTP/1.1"))
        assert SECRET in read_until(origin, b"\r\n\r\n")
        origin.sendall(denied)
        origin = again.get()
        got = read_until(origin, b"\r\n\r\n")
        assert got.startswith(b"DELETE /x ") and OTHER in got, got
        origin.sendall(OK)
        assert response(client) == OK
        got, back = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER, answer=denied)
        assert OTHER in got and back == denied  # the value is the same: nothing would come of another try
        assert sbx.wants == [(1, 0), (1, 1), (1, 1)]
        got, back = exchange(client, origin, answer=denied)
        assert back == denied and len(sbx.wants) == 3  # no value was in it
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER, b"Content-Length: 4", start=b"POST / HTTP/1.1",
                               body=b"body"))
        assert read_until(origin, b"body")
        origin.sendall(denied)
        assert response(client) == denied and len(sbx.wants) == 3  # its body is gone
        client.close()


def test_renewal_fails():
    """No newer value is to be had: the origin's 401 is the answer, and the next request says what is wrong."""
    def values(_, count):
        return SECRET if count == 1 else "it is gone"

    with serving(values) as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        denied = b"HTTP/1.1 401 Unauthorized\r\nX-Told: " + SECRET + b"\r\nContent-Length: 2\r\n\r\nno"
        _, back = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER, answer=denied)
        assert back == denied.replace(SECRET, PLACEHOLDER)
        assert proxy.audit_lines(2)[1]["scrubbed"] == 1  # though it was looked at twice
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        assert b"github: it is gone" in response(client)
        client.close()


def test_origin_gone_meanwhile():
    """The origin closes while a value is fetched: nothing had gone to it, so another takes its place, for a POST too."""
    release = threading.Event()

    def values(*_):
        release.wait(stage.PATIENCE)
        return SECRET

    with serving(values) as (proxy, sbx), tls_origin() as server:
        client, origin = open_both(proxy, server)
        again = Result(server.accept)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER, b"Content-Length: 4", start=b"POST / HTTP/1.1",
                               body=b"body"))
        wait_until(lambda: sbx.wants, "it is not asked for")
        origin.close()
        time.sleep(0.2)
        release.set()
        origin = again.get()
        assert SECRET in read_until(origin, b"\r\n\r\nbody")
        origin.sendall(OK)
        assert response(client) == OK
        client.close()


def test_expiry():
    """A value that has expired is asked for anew before it is used."""
    with serving(lambda _, count: ((SECRET, OTHER)[count - 1], 300 if count == 1 else 0)) as (proxy, sbx), \
            tls_origin() as server:
        client, origin = open_both(proxy, server)
        got, _ = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER)
        assert SECRET in got
        time.sleep(0.5)
        got, _ = exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER)
        assert OTHER in got and sbx.wants == [(1, 0), (1, 1)]
        client.close()


def test_many_wait_for_one():
    """Any number of requests, one question; those that leave meanwhile are no matter."""
    release = threading.Event()

    def values(*_):
        release.wait(stage.PATIENCE)
        return SECRET

    with serving(values) as (proxy, sbx), tls_origin() as server:
        pairs = [open_both(proxy, server) for _ in range(20)]
        for client, _ in pairs:
            client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
        for client, _ in pairs[:10]:
            client.close()
        wait_until(lambda: sbx.wants, "nothing was asked for")
        time.sleep(0.2)
        release.set()
        for client, origin in pairs[10:]:
            assert SECRET in read_until(origin, b"\r\n\r\n")
            origin.sendall(OK)
            assert response(client) == OK
        assert sbx.wants == [(1, 0)]


def test_body_passes():
    """In a body the placeholder is worthless and passes; in an Expect request the body follows the value."""
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER, b"Expect: 100-continue",
                               b"Content-Length: %d" % len(PLACEHOLDER), start=b"PUT / HTTP/1.1"))
        assert SECRET in read_until(origin, b"\r\n\r\n")
        origin.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        read_until(client, b"\r\n\r\n")
        client.sendall(PLACEHOLDER)
        assert read_until(origin, PLACEHOLDER) == PLACEHOLDER
        origin.sendall(OK)
        assert response(client) == OK
        client.close()


def test_unverified_origin_gets_nothing():
    """F75, and DESIGN 9: no value is even asked for where the origin is not the target."""
    with serving() as (proxy, sbx):
        for certificate in (stage.AUTHORITIES.untrusted, stage.AUTHORITIES.expired, stage.AUTHORITIES.wrong_name):
            with tls_origin(certificate) as server:
                def accept(server=server):
                    with contextlib.suppress(ssl.SSLError, ConnectionError), server.accept() as connection:
                        return connection.recv(65536)
                    return b""
                accepted = Result(accept)
                client = open_tls(proxy)
                client.sendall(request(b"Authorization: Bearer " + PLACEHOLDER))
                assert b'"reason":"upstream-tls"' in response(client)
                assert accepted.get() == b"" and not sbx.wants
                client.close()


def test_placeholders_are_checked():
    """What sbx says must fit the policy."""
    for message in (stage.placeholders_message([KEY]), stage.placeholders_message([KEY, b"short"]),
                    stage.placeholders_message([KEY, PLACEHOLDER])[:-1]):
        proxy = stage.Proxy(policy=POLICY, tls=True, more=[message])
        assert proxy.process.wait(stage.PATIENCE) != 0
        assert struct.unpack_from("=I", proxy.first)[0] == stage.CONTROL_FAILED, proxy.first


def resident(proxy):
    """All memory of the proxy, as root of this namespace may read it; None where that is not allowed."""
    found = []
    try:
        with open(f"/proc/{proxy.process.pid}/maps", encoding="ascii") as maps, \
                open(f"/proc/{proxy.process.pid}/mem", "rb") as memory:
            for line in maps:
                start, end = (int(part, 16) for part in line.split()[0].split("-"))
                if end - start > 1 << 30:
                    continue  # terabytes of shadow, where a sanitizer watches
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(start)
                    found.append(memory.read(end - start))
    except PermissionError:
        return None
    return b"".join(found)


def test_not_readable():
    """Another process of the same user cannot read the proxy's memory."""
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        exchange(client, origin, b"Authorization: Bearer " + PLACEHOLDER)
        assert os.geteuid() == 0 or resident(proxy) is None
        memory = resident(proxy)
        print(f"# copies of the value in the proxy: {memory.count(SECRET) if memory else 'not readable'}")
        assert not memory or not stage.CONFINED or memory.count(SECRET) == 1
        client.close()
