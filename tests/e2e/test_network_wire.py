"""The proxy's HTTP, byte by byte (F54, F56, F57, F58, F61): judged per request, strict, and faithful."""
import hashlib
import os
import signal
import subprocess

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON
from harness.wire import Quiet, connect, converse, get, talk
from lab.origin import pattern

ALLOW = ["--allow", "origin.test"]


def test_second_request_of_a_connection_is_judged(sbx, lab):
    """F54: a kept-alive connection is not a pass for another host."""
    exchange = talk(sbx, get("http://origin.test/"), get("http://evil.test/"), options=ALLOW)
    assert b"lab page of origin.test" in exchange.got[0], exchange
    assert b" 403 " in exchange.got[1].split(b"\r\n")[0], exchange
    assert {request.host for request in lab.requests} == {"origin.test"}


def test_pipelined_requests_are_answered_in_order(sbx, lab):
    exchange = talk(sbx, get("http://origin.test/status/201") + get("http://origin.test/status/202"), options=ALLOW)
    assert exchange.all.index(b"status 201") < exchange.all.index(b"status 202"), exchange


def test_host_is_rewritten_from_the_target(sbx, lab):
    """F54: Host of another name does not reach the origin."""
    talk(sbx, get("http://origin.test/echo", "Host: evil.test"), options=ALLOW)
    for request in lab.requests:
        assert [value for name, value in request.fields if name.lower() == "host"] == ["origin.test"], request.raw


def test_target_reaches_the_origin_in_origin_form(sbx, lab):
    talk(sbx, get("http://origin.test:80/echo?a=b&c=%20d"), options=ALLOW)
    assert [request.target for request in lab.requests] == ["/echo?a=b&c=%20d"]


def test_hop_by_hop_fields_and_credentials_for_the_proxy_stay(sbx, lab):
    """F61"""
    talk(sbx, get("http://origin.test/echo", "Proxy-Authorization: Basic aHVudGVyMg==", "Proxy-Connection: keep-alive",
                  "Connection: close, X-Secret-Hop", "X-Secret-Hop: hunter2", "Keep-Alive: 5", "TE: trailers",
                  "X-Kept: yes"),
         options=ALLOW)
    request, = lab.requests
    names = {name.lower() for name, _ in request.fields}
    assert not names & {"proxy-authorization", "proxy-connection", "x-secret-hop", "keep-alive"}, request.raw
    assert request.get("X-Kept") == "yes"


@pytest.mark.parametrize("request_bytes", [
    pytest.param(get("http://origin.test/post", "Content-Length: 5", "Transfer-Encoding: chunked", method="POST",
                     body=b"0\r\n\r\nGET http://evil.test/ HTTP/1.1\r\n\r\n"), id="length and chunked"),
    pytest.param(get("http://origin.test/post", "Content-Length: 5", "Content-Length: 6", method="POST",
                     body=b"abcdef"),
                 id="two lengths"),
    pytest.param(get("http://origin.test/post", "Content-Length: 5", "Content-Length: 5", method="POST", body=b"abcde"),
                 id="two equal lengths"),
    pytest.param(get("http://origin.test/post", "Content-Length: 5, 5", method="POST", body=b"abcde"),
                 id="list of lengths"),
    pytest.param(get("http://origin.test/post", "Content-Length: +5", method="POST", body=b"abcde"),
                 id="signed length"),
    pytest.param(get("http://origin.test/post", "Content-Length: -1", method="POST"), id="negative length"),
    pytest.param(get("http://origin.test/post", "Content-Length: 0x5", method="POST", body=b"abcde"),
                 id="hexadecimal length"),
    pytest.param(get("http://origin.test/post", "Content-Length: 18446744073709551621", method="POST", body=b"abcde"),
                 id="overflowing length"),
    pytest.param(get("http://origin.test/post", "Content-Length: ", method="POST"), id="empty length"),
    pytest.param(get("http://origin.test/post", "Transfer-Encoding: gzip, chunked", method="POST", body=b"0\r\n\r\n"),
                 id="two codings"),
    pytest.param(get("http://origin.test/post", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked",
                     method="POST",
                     body=b"0\r\n\r\n"), id="chunked twice"),
    pytest.param(get("http://origin.test/post", "Transfer-Encoding: xchunked", method="POST", body=b"0\r\n\r\n"),
                 id="unknown coding"),
    pytest.param(get("http://origin.test/post", "Transfer-Encoding: \x0bchunked", method="POST", body=b"0\r\n\r\n"),
                 id="control byte before chunked"),
    pytest.param(get("http://origin.test/post", "Transfer-Encoding: chunked", version="HTTP/1.0", method="POST",
                     body=b"0\r\n\r\n"), id="chunked in 1.0"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\nHost: origin.test\n\n", id="bare LF"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nX: a\nY: b\r\n\r\n",
                 id="bare LF in a field"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nX: a\rY: b\r\n\r\n", id="bare CR"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nX: a\r\n b\r\n\r\n", id="folded line"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost : origin.test\r\n\r\n", id="space before colon"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\n Host: origin.test\r\n\r\n", id="space before the first field"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nHost: evil.test\r\n\r\n", id="two Hosts"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nnocolon\r\n\r\n", id="no colon"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n: empty\r\n\r\n", id="empty name"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\nX: a\x00b\r\n\r\n", id="NUL"),
    pytest.param(b"GET http://origin.test/ HTTP/2.0\r\nHost: origin.test\r\n\r\n", id="version 2.0"),
    pytest.param(b"GET http://origin.test/ HTTP/1.1 x\r\nHost: origin.test\r\n\r\n", id="fourth word"),
    pytest.param(b"GET  http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n", id="two spaces"),
    pytest.param(b"GET http://origin.test/\r\n\r\n", id="HTTP/0.9"),
    pytest.param(b"G\x01T http://origin.test/ HTTP/1.1\r\nHost: origin.test\r\n\r\n", id="control byte in the method"),
    pytest.param(b"GET / HTTP/1.1\r\nHost: origin.test\r\n\r\n", id="origin form"),
    pytest.param(b"OPTIONS * HTTP/1.1\r\nHost: origin.test\r\n\r\n", id="asterisk form"),
])
def test_malformed_request_is_400_and_closed(sbx, lab, request_bytes):
    """F56; bad input: 400, the connection closed, nothing of it at any origin, and the proxy alive."""
    bad, good = converse(sbx, [[request_bytes], [get("http://origin.test/")]], *ALLOW)
    assert bad.status == 400, bad
    assert bad.closed, bad
    assert good.status == 200, good
    assert [request.target for request in lab.requests] == ["/"]


JUNK = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 600, "zeros": b"\x00" * 100 + b"\r\n\r\n",
    "SSH": b"SSH-2.0-x\r\n", "SOCKS": b"\x05\x01\x00", "SMTP": b"EHLO x\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "high bytes": b"\xff" * 70000, "empty lines": b"\r\n" * 40000,
}


@pytest.mark.parametrize("junk", JUNK)
def test_what_is_no_http_is_closed(sbx, lab, junk):
    """Bad input: another protocol on the port: an error or nothing, nothing at any origin, and the proxy alive."""
    bad, good = converse(sbx, [[Quiet(JUNK[junk]), None], [get("http://origin.test/")]], *ALLOW)
    assert bad.closed and (bad.status in (400, 431, None)), bad
    assert good.status == 200, good
    assert [request.target for request in lab.requests] == ["/"]


@pytest.mark.parametrize("body", [
    b"-1\r\nabc\r\n0\r\n\r\n", b"ffffffffffffffff1\r\nabc\r\n0\r\n\r\n", b"0x3\r\nabc\r\n0\r\n\r\n",
    b"3 \nabc\r\n0\r\n\r\n", b"3\nabc\n0\n\n", b"3\r\nabcd\r\n0\r\n\r\n", b"\r\nabc\r\n0\r\n\r\n",
    b"3\r\nabcXX0\r\n\r\n", b"g\r\nabc\r\n0\r\n\r\n", b"+3\r\nabc\r\n0\r\n\r\n", b"3\x00\r\nabc\r\n0\r\n\r\n",
    b"3\rabc\r\n0\r\n\r\n",
])
def test_malformed_chunks_end_the_connection(sbx, lab, body):
    """F56: nothing that follows is taken for a request."""
    request = get("http://origin.test/post", "Transfer-Encoding: chunked", method="POST", body=body)
    bad, good = converse(sbx, [[request + get("http://evil.test/smuggled")], [get("http://origin.test/")]], *ALLOW)
    assert bad.closed, bad
    assert b"403" not in bad.all, bad
    assert good.status == 200
    assert all("smuggled" not in r.target for r in lab.requests)


def test_chunked_in_capitals_is_chunked(sbx, lab):
    """F56"""
    exchange = talk(sbx,
                    get("http://origin.test/post", "Transfer-Encoding: CHUNKED", method="POST",
                        body=b"3\r\nabc\r\n0\r\n\r\n"),
                    options=ALLOW)
    assert exchange.status == 400 or b"3 " + hashlib.sha256(b"abc").hexdigest().encode() in exchange.all, exchange


def test_chunked_body_with_extensions_and_trailers(sbx, lab):
    body = b"3;name=value\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: x\r\n\r\n"
    exchange = talk(sbx, get("http://origin.test/post", "Transfer-Encoding: chunked", method="POST", body=body),
                    get("http://origin.test/status/201"), options=ALLOW)
    assert b"7 " + hashlib.sha256(b"abcdefg").hexdigest().encode() in exchange.got[0], exchange
    assert b"status 201" in exchange.got[1], exchange


def test_head_in_single_bytes(sbx):
    """A request that comes byte by byte is the same request."""
    raw = get("http://origin.test/")
    parts = [Quiet(raw[i:i + 1]) for i in range(len(raw) - 1)] + [raw[-1:]]
    exchange = talk(sbx, *parts, options=ALLOW, silence=0.01)
    assert exchange.got[-1].startswith(b"HTTP/1.1 200"), exchange


def test_head_that_is_too_long(sbx, lab):
    """Bounded memory: 64 KiB of head, and no more."""
    for request in (get("http://origin.test/", "X: " + "a" * 70000), get("http://origin.test/" + "a" * 70000),
                    get("http://origin.test/", *[f"X-{n}: y" for n in range(400)])):
        exchange = talk(sbx, request, options=ALLOW)
        assert exchange.status in (400, 414, 431) and exchange.closed, exchange
    assert lab.requests == []


def test_interim_answers_are_relayed_and_not_final(sbx):
    """F57: 103 and 100 arrive before the answer, and the answer arrives."""
    hints, expected = converse(sbx, [
        [get("http://origin.test/hints")],
        [get("http://origin.test/post", "Expect: 100-continue", "Content-Length: 3", method="POST"), b"abc"],
    ], *ALLOW)
    assert hints.all.startswith(b"HTTP/1.1 103 ") and b"after hints" in hints.all, hints
    assert expected.got[0].startswith(b"HTTP/1.1 100 "), expected
    assert b"3 " + hashlib.sha256(b"abc").hexdigest().encode() in expected.got[1], expected


def test_early_answer_does_not_poison_the_next_request(sbx, lab):
    """F58: the origin answers before the body was sent; what is sent later is never taken for a request."""
    first = get("http://origin.test/early", "Content-Length: 40", method="POST")
    late = Quiet(get("http://evil.test/smuggled")[:40].ljust(40, b"x"))
    exchange = talk(sbx, first, late, get("http://origin.test/status/207"), options=ALLOW)
    assert b"early" in exchange.got[0], exchange
    assert all("smuggled" not in request.target for request in lab.requests)
    after = talk(sbx, get("http://origin.test/status/208"), options=ALLOW)
    assert b"status 208" in after.all, after
    if b"status 207" not in exchange.all:
        assert exchange.closed, exchange


def test_early_answer_and_half_sent_body_then_another_client(sbx, lab):
    """F58: an upstream connection that still waits for a body is not used for somebody else's request."""
    conversations = [[get("http://origin.test/early", "Content-Length: 1000", method="POST", body=b"x" * 10)],
                     [get("http://origin.test/status/209")], [get("http://origin.test/status/210")]]
    _, second, third = converse(sbx, conversations, *ALLOW)
    assert b"status 209" in second.all and b"status 210" in third.all, (second, third)


def test_websocket_upgrade(sbx):
    """F57: upgraded connections relay both ways, more than one buffer's worth."""
    blob = b"\x82\xfe" + pattern(200000)  # a frame, as far as is looked at
    exchange = talk(sbx, get("http://origin.test/websocket", "Upgrade: websocket", "Connection: Upgrade",
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"), blob, b"tail",
                    options=ALLOW)
    assert exchange.got[0].startswith(b"HTTP/1.1 101 "), exchange
    assert exchange.got[1] == blob and exchange.got[2] == b"tail"


def test_half_close_through_a_tunnel(sbx):
    """F57: the client has finished sending; the answer still comes, and then the end."""
    exchange = talk(sbx, connect("origin.test:7"), b"hello\n", None, options=["--allow", "origin.test:7"])
    assert exchange.got[0].startswith(b"HTTP/1.1 200 "), exchange
    assert exchange.got[1] == b"hello\n" and exchange.closed, exchange


def test_bytes_that_came_with_connect_are_not_lost(sbx):
    exchange = talk(sbx, connect("origin.test:7") + b"early bytes\n", options=["--allow", "origin.test:7"])
    assert exchange.all.endswith(b"early bytes\n"), exchange


def test_answer_to_head_and_without_a_body(sbx):
    exchange = talk(sbx, get("http://origin.test/status/204") , get("http://origin.test/status/201"), options=ALLOW)
    assert b"status 201" in exchange.all, exchange


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
    b"garbage that is no answer\r\n\r\n",
    b"HTTP/1.1 2000 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nBad Field : x\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc",
])
def test_malformed_answers_do_not_harm(sbx, raw):
    """F56: an origin that answers nonsense gives a 502 or a closed connection, and the next request is served."""
    bad, good = converse(sbx, [[get(f"http://origin.test/raw/{raw.hex()}")], [get("http://origin.test/")]], *ALLOW)
    assert bad.status == 502 or bad.closed, bad
    assert b"abc" not in bad.all or bad.status == 200, bad
    assert good.status == 200, good


def test_origin_that_hangs_up(sbx):
    """P10: an answer that explains, not a silent close."""
    exchange = talk(sbx, get("http://origin.test/hangup"), options=ALLOW)
    assert exchange.status == 502 and b"upstream-closed" in exchange.all, exchange


def test_client_that_leaves_does_not_spin_the_proxy(sbx):
    """F57: EPIPE loop at full speed. The proxy's CPU time is measured, not the clock."""
    code = """
import os, socket, time, urllib.parse
p = urllib.parse.urlsplit(os.environ["http_proxy"])
for path in ("drip/100000", "silent", "large/50000000"):
    for _ in range(10):
        s = socket.create_connection((p.hostname, p.port))
        s.sendall(f"GET http://origin.test/{path} HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n".encode())
        if path != "silent": s.recv(1000)
        s.close()
print("left", flush=True)
time.sleep(1000)
"""
    import os
    import time
    from harness.procs import descendants
    process = sbx.start("run", *ALLOW, "--", "/usr/bin/python3", "-c", code)
    assert process.stdout.readline() == b"left\n"
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]

    def ticks():
        fields = proxy.read("stat").rsplit(b")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    time.sleep(1)  # what is still being relayed ends
    before = ticks()
    time.sleep(2)
    used = (ticks() - before) / os.sysconf("SC_CLK_TCK")
    process.kill()
    process.communicate()
    assert used < 1.0, f"{used} s of CPU in 2 s of idling"


def test_junk_connections(sbx):
    """Bad input: 10,000 connections of junk: the proxy lives, and its memory is bounded."""
    code = """
import os, socket, urllib.parse, urllib.request
p = urllib.parse.urlsplit(os.environ["http_proxy"])
for n in range(10000):
    try:
        with socket.create_connection((p.hostname, p.port)) as s: s.sendall(os.urandom(64) + b"\\r\\n\\r\\n"[: n % 5])
    except OSError: pass
print(urllib.request.urlopen("http://origin.test/").status, flush=True)
input()
"""
    from harness.procs import descendants
    process = sbx.start("run", *ALLOW, "--", "/usr/bin/python3", "-c", code, stdin=-1)
    assert process.stdout.readline() == b"200\n", process.stderr.read1()
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    lines = proxy.read("status").decode().splitlines()
    resident = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
    process.communicate(b"\n", timeout=60)
    assert resident < 64 * 1024, f"{resident} KiB"


def test_open_connections_have_a_limit_that_holds(sbx):
    """Many idle connections do not starve the run, and the proxy lives."""
    code = """
import os, resource, socket, urllib.parse, urllib.request
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
p = urllib.parse.urlsplit(os.environ["http_proxy"])
held = []
for _ in range(min(hard - 50, 2000)):
    try: held.append(socket.create_connection((p.hostname, p.port), 20))
    except OSError: break
for s in held[::2]: s.close()
print(urllib.request.urlopen("http://origin.test/").status)
"""
    assert sbx.python(code, *ALLOW).ok().out == "200\n"


def test_proxy_killed_fails_closed(sbx, lab):
    """P1, P2: after SIGKILL of the proxy the command's requests fail; none gets through unjudged; the run goes on."""
    code = """
import urllib.request
def go(url):
    try: return str(urllib.request.urlopen(url, timeout=20).status)
    except urllib.error.HTTPError as error: return str(error.code)
    except Exception: return "failed"
print(go("http://origin.test/"), flush=True)
input()
print(go("http://evil.test/"), go("http://origin.test/"), flush=True)
raise SystemExit(4)
"""
    process = sbx.start("run", *ALLOW, "--", "/usr/bin/python3", "-c", code, stdin=-1)
    assert process.stdout.readline() == b"200\n"
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    os.kill(proxy.pid, signal.SIGKILL)
    out, err = process.communicate(b"\n", timeout=120)
    evil, _ = out.split()
    assert evil in (b"failed", b"403", b"502", b"503"), (out, err)
    assert process.returncode in (4, 125), (out, err)
    assert b"proxy" in err, err
    assert all(request.host != "evil.test" for request in lab.requests)


def test_proxy_that_dies_again_and_again(sbx, lab):
    """P1, P2: it is replaced a few times, and then there is no network: that is told once, and connections are refused at
    once."""
    code = """
import socket
while input():
    try:
        s = socket.create_connection(("origin.test", 80), timeout=40); s.sendall(b"GET / HTTP/1.0\\r\\nHost: origin.test\\r\\n\\r\\n")
        print(s.recv(12).decode(), flush=True)
    except OSError as error: print(type(error).__name__, flush=True)
"""
    process = sbx.start("run", *ALLOW, "--", PYTHON, "-c", code, stdin=subprocess.PIPE)
    answers = []
    for _ in range(8):
        process.stdin.write(b"go\n")
        process.stdin.flush()
        answers.append(process.stdout.readline().decode().strip())
        for proxy in [p for p in descendants(process.pid) if p.name == "sbx-proxy"]:
            os.kill(proxy.pid, signal.SIGKILL)
        wait_until(lambda: not [p for p in descendants(process.pid) if p.name == "sbx-proxy"], "it is gone")
    _, err = process.communicate(b"\n", timeout=60)
    served = answers.count("HTTP/1.1 200")
    assert 2 <= served <= 6 and answers[:served] == ["HTTP/1.1 200"] * served, answers
    assert set(answers[served:]) <= {"gaierror", "ConnectionRefusedError"}, answers
    assert err.decode().count("the sandbox has no network from here on") == 1, err
