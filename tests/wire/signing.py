"""Signed requests in sbx-proxy-tls, as bytes: bodies that are kept for their hash, and what is left of the key."""
import contextlib
import hashlib
import hmac
import os
import time

import stage
from credentials import Sbx, resident
from live import running
from stage import read_until
from terminated import OK, open_both, response, tls_origin

ID, KEY = b"AKIAWIREPLACEHOLDER2", b"wirePlaceholderSecretKeyOf40Letters00000"
REAL_ID, REAL_KEY, TOKEN = b"ASIAREALKEYID", b"wire/Real+Secret9Key/Zq7xW4vT9rLm2KdYs8e", b"wire+session/token=="
NOW = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()).encode()
SCOPE = NOW[:8] + b"/us-east-1/lambda/aws4_request"
POLICY = {"network": {"allow": []}, "credentials": {"aws": {"source": {"env": "A"}, "bind": ["origin.test"]}}}


def sign(key, names, values, body, method=b"POST"):
    """The one request of these tests: a path that needs no encoding, and no query."""
    fields = b"".join(name + b":" + value + b"\n" for name, value in zip(names, values, strict=True))
    canonical = b"\n".join((method, b"/path", b"", fields, b";".join(names), hashlib.sha256(body).hexdigest().encode()))
    text = b"\n".join((b"AWS4-HMAC-SHA256", NOW, SCOPE, hashlib.sha256(canonical).hexdigest().encode()))
    key = b"AWS4" + key
    for part in (*SCOPE.split(b"/"), text):
        key = hmac.new(key, part, hashlib.sha256).digest()
    return b"AWS4-HMAC-SHA256 Credential=%s/" + SCOPE + b", SignedHeaders=" + b";".join(names) + b", Signature=" + key.hex().encode()


def request(body, framing, method=b"POST"):
    """The head that a client makes, and the Authorization that has to come of it."""
    inside = sign(KEY, [b"host", b"x-amz-date"], [b"origin.test", NOW], body, method)
    outside = sign(REAL_KEY, [b"host", b"x-amz-date", b"x-amz-security-token"], [b"origin.test", NOW, TOKEN], body,
                   method)
    head = b"\r\n".join((method + b" /path HTTP/1.1", b"Host: origin.test", b"X-Amz-Date: " + NOW,
                         b"Authorization: " + inside.replace(b"%s", ID), *framing, b"", b""))
    return head, b"Authorization: " + outside.replace(b"%s", REAL_ID) + b"\r\n"


@contextlib.contextmanager
def serving():
    with running(policy=POLICY, tls=True, more=[stage.placeholders_message([ID + b" " + KEY])]) as proxy:
        yield proxy, Sbx(proxy, lambda index, count: b" ".join((REAL_ID, REAL_KEY, TOKEN)))


def test_body_in_pieces():
    """Chunks that come byte by byte, and the next request right behind them: the body goes on as it came."""
    body = b"6;a=b\r\nhello\n\r\n1\r\n!\r\n0\r\nX-Trailer: t\r\n\r\n"
    head, wanted = request(b"hello\n!", [b"Transfer-Encoding: chunked"])
    following, also = request(b"", [], b"GET")
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        client.sendall(head)
        for at in range(len(body) - 1):
            client.sendall(body[at:at + 1])
        client.sendall(body[-1:] + following)
        got = read_until(origin, b"X-Trailer: t\r\n\r\n")
        assert wanted in got and b"\r\nx-amz-security-token: " + TOKEN + b"\r\n" in got
        assert got.endswith(b"\r\n\r\n" + body) and ID not in got and KEY not in got
        origin.sendall(OK)
        response(client)
        assert also in read_until(origin, b"\r\n\r\n")
        origin.sendall(OK)
        response(client)


def test_body_is_broken():
    """Nothing of such a request goes out; and a client that goes away in the middle leaves nothing behind."""
    head, _ = request(b"hello", [b"Transfer-Encoding: chunked"])
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        client.sendall(head + b"5\r\nhel")
        client.sendall(b"loX")
        assert b'"reason":"bad-request"' in response(client)
        assert origin.recv(65536) == b""
        client.close()
        client, origin = open_both(proxy, server)
        client.sendall(head + b"5\r\nhel")
        client.close()
        assert origin.recv(65536) == b""
        assert proxy.alive()


def test_key_is_wiped():
    """What is made of the secret key on the way to a signature does not stay."""
    head, wanted = request(b"hello", [b"Content-Length: 5"])
    with serving() as (proxy, _), tls_origin() as server:
        client, origin = open_both(proxy, server)
        for _ in range(3):
            client.sendall(head + b"hello")
            assert wanted in read_until(origin, b"hello")
            origin.sendall(OK)
            response(client)
        memory = resident(proxy)
        assert os.geteuid() == 0 or memory is None
        # Its end: the beginning of freed memory is the allocator's.
        assert memory is None or memory.count(REAL_KEY[-16:]) == 1, memory.count(REAL_KEY[-16:])
