"""Tests of credentials and bodies in sbx-proxy-tls: placeholders in bodies and paths of requests, values in bodies of
responses, while both stream."""
import base64
import contextlib
import gzip
import json
import ssl
import urllib.parse

import stage
from credentials import Sbx, request
from live import running
from stage import read_until
from terminated import OK, Result, open_both, open_tls, response, tls_origin, trusting

SECRETS = {"body": b'body+se"cret\\of=the&lab%1', "path": b"123456:path/secret+of the-lab?",
           "plain": b"plain-secret-of-the-lab-000", "scrub": b"scrub+secret/of=the~lab-7"}
NAMES = sorted(SECRETS)
PLACEHOLDERS = {name: b"sbx-placeholder-of-" + name.encode() for name in NAMES}
HOSTS = {"body": "origin.test", "path": "origin.test", "plain": "other.test", "scrub": "other.test"}
POLICY = {
    "network": {"allow": ["origin.test", "other.test"]},
    "credentials": {name: {"source": {"env": f"A_{name}"}, "env": f"A_{name}", "inject": "replace", "bind": [HOSTS[name]]}
                    for name in NAMES},
}
POLICY["credentials"]["body"]["place"] = "body"
POLICY["credentials"]["path"]["place"] = "path"
POLICY["credentials"]["scrub"]["scrub"] = "body"
SECRET = SECRETS["scrub"]
VALUE = SECRETS["body"]
AT = {"origin.test": "203.0.113.10", "other.test": "203.0.113.11"}


@contextlib.contextmanager
def serving(host, values=lambda index, _: SECRETS[NAMES[index]]):
    """A proxy, its sbx, and both ends of a connection to host."""
    with running(policy=POLICY, tls=True, more=[stage.placeholders_message([PLACEHOLDERS[name] for name in NAMES])]) as proxy, \
            tls_origin(address=AT[host]) as server:
        sbx = Sbx(proxy, values)
        client, origin = open_both(proxy, server, target=f"{host}:443", name=host)
        proxy.sbx = sbx
        with contextlib.closing(client), contextlib.closing(origin):
            yield proxy, client, origin


def got_request(origin):
    """Head and body of a request with a Content-Length."""
    head = read_until(origin, b"\r\n\r\n")
    head, _, body = head.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"\r\ncontent-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += origin.recv(65536)
    return head, body


def post(*fields, body, host=b"origin.test", start=b"POST /path HTTP/1.1"):
    return request(*fields, b"Content-Length: %d" % len(body), start=start, host=host, body=body)


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def refused(answer, status, reason, *wanted):
    assert answer.startswith(b"HTTP/1.1 " + status) and b'"reason":"' + reason + b'"' in answer, answer
    assert all(text in answer for text in wanted), answer


def test_bodies_watched():
    """A placeholder in a body passes as it is and is noted, in whatever form, wherever it is cut; once per request, with
    every name; nothing is asked of sbx."""
    both = b"a=" + PLACEHOLDERS["plain"] + b"&b=" + PLACEHOLDERS["scrub"]
    forms = [(both, "plain,scrub"), (b"x" * 65530 + both, "plain,scrub"), (b"nothing " * 20, None),
             (base64.b64encode(b"x" + PLACEHOLDERS["path"]), "path"), (PLACEHOLDERS["path"].replace(b"s", b"%73"), "path"),
             (PLACEHOLDERS["path"][:-1], None), (json.dumps({"a": PLACEHOLDERS["body"].decode()}).encode(), "body")]
    with serving("other.test") as (proxy, client, origin):
        proxy.audit_lines(1)
        for body, names in forms:
            for cut in {0, 3, len(body) - 7}:
                whole = post(body=body, host=b"other.test")
                client.sendall(whole[:len(whole) - cut])
                head = read_until(origin, b"\r\n\r\n")
                client.sendall(whole[len(whole) - cut:])
                rest = head.partition(b"\r\n\r\n")[2]
                while len(rest) < len(body):
                    rest += origin.recv(65536)
                assert rest == body
                origin.sendall(OK)
                response(client)
                line, = proxy.audit_lines(1)
                assert line.get("placeholder_in_body") == names and "credential" not in line, (line, names)
        assert not proxy.sbx.wants


def test_bodies_watched_in_chunks():
    """The framing does not hide it; nor does cleartext."""
    with serving("other.test") as (proxy, client, origin), contextlib.closing(stage.Origin(AT["other.test"], 80).listener) as listener:
        proxy.audit_lines(1)
        placeholder = PLACEHOLDERS["plain"]
        body = chunked(*(bytes([byte]) for byte in placeholder))
        client.sendall(request(b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1", host=b"other.test", body=body))
        assert body in read_until(origin, b"0\r\n\r\n")
        origin.sendall(OK)
        response(client)
        assert proxy.audit_lines(1)[0]["placeholder_in_body"] == "plain"
        with proxy.connect() as plain:
            plain.settimeout(stage.PATIENCE)
            plain.sendall(post(body=placeholder, host=b"other.test", start=b"POST http://other.test/ HTTP/1.1"))
            connection, _ = listener.accept()
            assert placeholder in read_until(connection, placeholder)
            connection.sendall(OK)
            response(plain)
            connection.close()
        assert proxy.audit_lines(1)[0]["placeholder_in_body"] == "plain"


def test_bodies_place_path():
    """Swapped in the path, encoded as a path needs it; refused in the query, and of a credential with another place."""
    encoded = urllib.parse.quote(SECRETS["path"].decode(), safe=":+").encode()
    placeholder = PLACEHOLDERS["path"]
    with serving("origin.test") as (proxy, client, origin):
        for path, expected in ((b"/bot" + placeholder + b"/send?a=b", b"/bot" + encoded + b"/send?a=b"),
                               (b"/" + placeholder.replace(b"s", b"%73") + b"/" + placeholder, b"/" + encoded + b"/" + encoded)):
            client.sendall(request(start=b"GET " + path + b" HTTP/1.1"))
            assert read_until(origin, b"\r\n\r\n").startswith(b"GET " + expected + b" HTTP/1.1\r\n")
            origin.sendall(OK)
            response(client)
        for path in (b"/?q=" + placeholder, b"/" + PLACEHOLDERS["body"], b"/" + PLACEHOLDERS["plain"],
                     b"/" + base64.b64encode(placeholder)):
            client.sendall(request(start=b"GET " + path + b" HTTP/1.1"))
            refused(response(client), b"403", b"credential-misuse")
        lines = proxy.audit_lines(7)
        assert lines[1]["path"] == "/bot" + placeholder.decode() + "/send" and lines[1]["credential"] == "path", lines
        assert not any(SECRETS["path"].decode() in str(line) or encoded.decode() in str(line) for line in lines)


def swapped(client, origin, whole, expected):
    client.sendall(whole)
    head, body = got_request(origin)
    assert body == expected, body
    assert b"transfer-encoding" not in head.lower() and head.lower().count(b"content-length") == 1, head
    origin.sendall(OK)
    assert response(client) == OK
    return head


def test_bodies_place_body():
    """Swapped by the type of the content, whole or in chunks, with a new length; a body without one goes as it is."""
    form, kind = b"Content-Type: application/x-www-form-urlencoded", b"Content-Type: application/json"
    placeholder = PLACEHOLDERS["body"]
    bodies = [([form], b"a=b&token=" + placeholder, b"a=b&token=" + urllib.parse.quote(VALUE.decode(), safe="").encode()),
              ([kind], b'{"token": "%s"}' % placeholder, b'{"token": %s}' % json.dumps(VALUE.decode()).encode()),
              ([], b"<%s>" % placeholder * 3, b"<%s>" % VALUE * 3),
              ([kind], b"x" * 300000 + placeholder, b"x" * 300000 + json.dumps(VALUE.decode())[1:-1].encode()),
              ([form], b"other=" + PLACEHOLDERS["plain"], b"other=" + PLACEHOLDERS["plain"])]
    with serving("origin.test") as (proxy, client, origin):
        for fields, body, expected in bodies:
            swapped(client, origin, post(*fields, body=body), expected)
            pieces = chunked(*(body[at:at + 7777] for at in range(0, len(body), 7777)))
            swapped(client, origin, request(*fields, b"Transfer-Encoding: chunked", start=b"POST / HTTP/1.1", body=pieces), expected)
        client.sendall(request(form, b"Content-Length: %d" % len(placeholder), b"Expect: 100-continue", start=b"POST / HTTP/1.1"))
        assert read_until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        head = swapped(client, origin, placeholder, urllib.parse.quote(VALUE.decode(), safe="").encode())
        assert b"expect" not in head.lower()
        assert proxy.sbx.wants == [(NAMES.index("body"), 0)]
        lines = proxy.audit_lines(12)[1:]
        assert [line.get("credential") for line in lines] == ["body"] * 8 + [None, None, "body"], lines
        assert [line.get("placeholder_in_body") for line in lines] == [None] * 8 + ["plain", "plain", None], lines
        assert VALUE.decode() not in str(lines)


def test_bodies_place_body_not_swapped():
    """A coded body passes as it came; too large a one is refused; one whose value is not to be had goes nowhere."""
    def values(index, count):
        return "no such variable" if count == 1 else SECRETS[NAMES[index]]

    with serving("origin.test", values) as (proxy, client, origin):
        body = gzip.compress(PLACEHOLDERS["body"])
        client.sendall(post(b"Content-Encoding: gzip", body=body))
        assert got_request(origin)[1] == body
        origin.sendall(OK)
        response(client)
        client.sendall(post(body=PLACEHOLDERS["body"]))
        refused(response(client), b"502", b"credential-unavailable", b"no such variable")
        swapped(client, origin, post(body=PLACEHOLDERS["body"]), VALUE)
        client.sendall(request(b"Content-Length: 16777217", start=b"POST / HTTP/1.1"))
        refused(response(client), b"413", b"limit-body", b"16 MiB")
        origin.settimeout(stage.PATIENCE)
        assert origin.recv(10) == b""
        assert [line["reason"] for line in proxy.audit_lines(5)] == [
            "allowed", "allowed", "credential-unavailable", "allowed", "limit-body"]


def scrubbed(text):
    return text.replace(SECRET, b"*" * len(SECRET))


def ask(client, origin, *fields, start=b"GET / HTTP/1.1"):
    client.sendall(request(b"Authorization: Bearer " + PLACEHOLDERS["scrub"], *fields, start=start, host=b"other.test"))
    head = read_until(origin, b"\r\n\r\n")
    assert b"Bearer " + SECRET in head
    return head


def test_bodies_scrubbed():
    """Masked in a body with a length, which stays, wherever it is cut, in every form; up to the last byte."""
    quoted = urllib.parse.quote(SECRET.decode(), safe="").encode()
    encoded = base64.b64encode(b"xy" + SECRET + b"z")
    middle = encoded[3:(2 + len(SECRET)) * 8 // 6]
    bodies = [(b"a " + SECRET + b" b", scrubbed(b"a " + SECRET + b" b"), 1), (SECRET * 2, b"*" * len(SECRET) * 2, 2),
              (quoted + b"&", b"*" * len(quoted) + b"&", 1), (encoded, encoded.replace(middle, b"*" * len(middle)), 1),
              (SECRET[:-1], SECRET[:-1], None), (b"%s%s" % (SECRET[:9], SECRET), SECRET[:9] + b"*" * len(SECRET), 1),
              (b"y" * 200000 + SECRET + b"y", b"y" * 200000 + b"*" * len(SECRET) + b"y", 1),
              (SECRETS["plain"], SECRETS["plain"], None)]
    with serving("other.test") as (proxy, client, origin):
        proxy.audit_lines(1)
        for body, expected, count in bodies:
            for cut in {0, 5, len(body) - 4}:
                ask(client, origin)
                answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
                origin.sendall(answer[:len(answer) - cut])
                origin.sendall(answer[len(answer) - cut:])
                assert response(client).partition(b"\r\n\r\n")[2] == expected
                line, = proxy.audit_lines(1)
                assert line.get("scrubbed") == count and line["down"] == len(body), line


def read_event(client, mark):
    got = b""
    while mark not in got:
        piece = client.recv(65536)
        assert piece, got
        got += piece
    return got


def unchunk(text):
    """Content and trailer."""
    content = b""
    while True:
        size, _, text = text.partition(b"\r\n")
        if size == b"0":
            return content, text
        content, text = content + text[:int(size, 16)], text[int(size, 16):]
        assert text.startswith(b"\r\n"), text
        text = text[2:]


def test_bodies_scrubbed_events():
    """A value in several chunks is found; an event that holds none goes on at once, before the next is sent; so is one
    that begins like a value, once it is known to be none; the trailer is scrubbed too."""
    with serving("other.test") as (proxy, client, origin):
        ask(client, origin)
        origin.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-End\r\n\r\n")
        head = read_until(client, b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        got = head.partition(b"\r\n\r\n")[2]
        for number in range(5):
            origin.sendall(b"%x\r\ndata: %d\n\n\r\n" % (9, number))
            got += read_event(client, b"data: %d\n\n\r\n" % number)
        for byte in b"data: " + SECRET[:-1] + b"!\n\n":
            origin.sendall(b"1;ext=1\r\n" + bytes([byte]) + b"\r\n")
        while SECRET[:-1] + b"!\n\n" not in b"".join(got.split(b"\r\n")[1::2]):
            got += client.recv(65536)
        for byte in b"data: " + SECRET + b"\n\n":
            origin.sendall(b"1\r\n" + bytes([byte]) + b"\r\n")
        origin.sendall(b"4\r\nlast\r\n0\r\nX-End: " + SECRET + b"\r\n\r\n")
        while not got.endswith(b"\r\n\r\n"):
            got += client.recv(65536)
        content, trailer = unchunk(got)
        events = b"".join(b"data: %d\n\n" % number for number in range(5))
        assert content == events + b"data: " + SECRET[:-1] + b"!\n\ndata: " + b"*" * len(SECRET) + b"\n\nlast", content
        assert trailer == b"X-End: " + PLACEHOLDERS["scrub"] + b"\r\n\r\n", trailer
        ask(client, origin)
        origin.sendall(OK)
        assert response(client) == OK
        assert proxy.audit_lines(3)[1]["scrubbed"] == 2


def test_bodies_scrubbed_until_close():
    """The end of the connection is that of the body, and of what was held; and an end that cuts a value is passed on."""
    for end, expected in ((SECRET, b"*" * len(SECRET)), (SECRET[:-2], SECRET[:-2])):
        with serving("other.test") as (proxy, client, origin):
            ask(client, origin)
            origin.sendall(b"HTTP/1.1 200 OK\r\n\r\nbegin " + end[:7])
            read_until(client, b"begin ")
            origin.sendall(end[7:])
            origin.unwrap()
            origin.close()
            got = b""
            while piece := client.recv(65536):
                got += piece
            assert got == expected, got
            proxy.audit_lines(2)


def test_bodies_scrubbed_framing_broken():
    """Broken or short: the client's response is cut, as without the search."""
    for tail in (b"5\r\nhelloX\r\n", b"5\r\nhel", b"zz\r\n"):
        with serving("other.test") as (proxy, client, origin):
            ask(client, origin)
            origin.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
            read_until(client, b"hello\r\n")
            origin.sendall(tail)
            with contextlib.suppress(OSError):
                origin.unwrap()
            origin.close()
            got = b""
            with contextlib.suppress(OSError):
                while piece := client.recv(65536):
                    got += piece
            assert not got.endswith(b"0\r\n\r\n"), got
            assert proxy.audit_lines(2)[1]["verdict"] == "error"


def test_bodies_scrubbed_asked_plain():
    """No coding and no range is asked for, and no WebSocket; a response with either is refused, one without a body is not."""
    coded = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nzz"
    part = b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-1/9\r\nContent-Length: 2\r\n\r\nzz"
    for answer, cause in ((coded, b"Content-Encoding"), (part, b"a part of a body")):
        with serving("other.test") as (proxy, client, origin):
            head = ask(client, origin, b"Accept-Encoding: gzip, br", b"Range: bytes=0-1", b"If-Range: x")
            assert head.count(b"Accept-Encoding: identity\r\n") == 1 and b"gzip" not in head and b"Range" not in head, head
            origin.sendall(answer)
            refused(response(client), b"502", b"bad-response", cause, b"scrub")
            assert proxy.audit_lines(2)[1]["reason"] == "bad-response"
    with serving("other.test") as (proxy, client, origin):
        head = ask(client, origin, b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: x")
        assert b"Accept-Encoding: identity\r\n" in head and b"upgrade" not in head.lower(), head
        origin.sendall(OK)
        assert response(client) == OK
        for start, answer in ((b"HEAD / HTTP/1.1", coded[:-2]), (b"GET / HTTP/1.1", b"HTTP/1.1 204 No Content\r\nContent-Encoding: br\r\n\r\n"),
                              (b"GET / HTTP/1.1", b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: br\r\n\r\n")):
            ask(client, origin, start=start)
            origin.sendall(answer)
            assert read_until(client, b"\r\n\r\n") == answer
        ask(client, origin)
        origin.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Encoding: identity\r\nContent-Length: 2\r\n\r\nok")
        assert read_until(client, b"ok").endswith(b"\r\n\r\nok")


def test_bodies_not_scrubbed_elsewhere():
    """A credential that does not ask for it costs its hosts nothing."""
    with serving("origin.test") as (_, client, origin):
        client.sendall(request(b"Accept-Encoding: gzip", b"Range: bytes=0-1"))
        head = read_until(origin, b"\r\n\r\n")
        assert b"Accept-Encoding: gzip\r\n" in head and b"Range: bytes=0-1\r\n" in head
        origin.sendall(b"HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(SECRET) + SECRET)
        assert SECRET in response(client)


def test_bodies_speak_http_1():
    """HTTP/2 is not offered to a host whose bodies are looked into, nor given to its client; one that insists is refused."""
    for host in HOSTS.values():
        with running(policy=POLICY, tls=True, more=[stage.placeholders_message([PLACEHOLDERS[name] for name in NAMES])]) as proxy, \
                tls_origin(address=AT[host]) as server:
            context = trusting(proxy)
            context.set_alpn_protocols(["h2", "http/1.1"])
            client, origin = open_both(proxy, server, target=f"{host}:443", name=host, context=context)
            assert (client.selected_alpn_protocol(), origin.selected_alpn_protocol()) == ("http/1.1", "http/1.1")
            client.close()
            origin.close()
            context.set_alpn_protocols(["h2"])
            accepted = Result(server.accept)
            try:
                open_tls(proxy, target=f"{host}:443", name=host, context=context)
                raise AssertionError("it was taken")
            except ssl.SSLError as error:
                assert "no application protocol" in str(error), error
            accepted.get().close()
            assert [line["reason"] for line in proxy.audit_lines(2)][1] == "client-tls"
