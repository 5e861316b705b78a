"""What is allowed and cannot be reached: one reason word for each cause, the same on every front (P10).

A front tells the client in the words that its protocol has: an HTTP status and JSON, a SOCKS code. A client without a
proxy that speaks no HTTP believes to be connected and can only be reset; the audit and the summary have the word.
"""
import json
import socket

import pytest

from lab.origin import unanswering

# Goes to host:port through each front at once, and prints what each got.
FRONTS = """
import errno, json, socket, struct, sys, threading
host, port = sys.argv[1], int(sys.argv[2])
GET = b"GET %s HTTP/1.1\\r\\nHost: %s:%d\\r\\nConnection: close\\r\\n\\r\\n"
def read_all(s):
    got = b""
    try:
        while data := s.recv(65536): got += data
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
    return got
def say(address, data):
    s = socket.create_connection(address); s.settimeout(50); s.sendall(data); return read_all(s)
def status(answer):
    if isinstance(answer, str): return answer
    head, _, body = answer.partition(b"\\r\\n\\r\\n")
    return [int(head[9:12]), head.split(b"\\r\\n")[0].decode(), json.loads(body)["reason"], json.loads(body)["error"]]
def text(): return b"%s:%d" % (host.encode(), port)
def http(): return status(say(("127.0.0.1", 3128), GET % (b"http://" + text() + b"/", host.encode(), port)))
def connect(): return status(say(("127.0.0.1", 3128), b"CONNECT %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (text(), text())))
def socks():
    return say(("127.0.0.1", 1080), b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))[3]
def bare_http(): return status(say((host, port), GET % (b"/", host.encode(), port)))
def bare_tls(): return say((host, port), b"\\x16\\3\\1\\0\\5")
def bare(): return say((host, port), b"\\0\\1\\2")
answers = {}
def run(front): answers[front.__name__] = front()
threads = [threading.Thread(target=run, args=(f,)) for f in (http, connect, socks, bare_http, bare_tls, bare)]
[t.start() for t in threads]; [t.join() for t in threads]
print(json.dumps(answers))
"""

# what fails: host, port, reason, status over HTTP, SOCKS code, a part of the message
FAILURES = {
    "no such name": ("nosuch.test", 80, "resolve-failed", 502, 4, "name"),
    "a name server that fails": ("servfail.test", 80, "resolve-failed", 502, 4, "server"),
    "a name server that is silent": ("silent.test", 80, "resolve-failed", 502, 4, "time"),
    "a name without an address": ("empty.test", 80, "resolve-failed", 502, 4, "address"),
    "a host that refuses": ("refused.test", 81, "connect-refused", 502, 5, "refused"),
    "a host that does not answer": ("deaf.test", 81, "connect-timeout", 504, 6, "timed out"),
}


@pytest.mark.parametrize("what", FAILURES)
def test_failure_on_every_front(sbx, lab, project, what):
    host, port, reason, status, code, words = FAILURES[what]
    path = project.home + "/audit.jsonl"
    lab.zone.update({"empty.test": [], "deaf.test": ["203.0.113.9"]})
    held = unanswering("203.0.113.9", 81)
    try:
        result = sbx.python(FRONTS, "--allow", f"{host}:{port}", "--audit", path, arguments=[host, str(port)])
    finally:
        for each in held:
            each.close()
    answers = result.json
    for front in ("http", "connect", "bare_http"):
        assert answers[front][0] == status and answers[front][2] == reason, (front, answers)
        assert answers[front][1].startswith(f"HTTP/1.1 {status} sbx: {host}") and words in answers[front][3], answers
    assert (answers["socks"], answers["bare_tls"], answers["bare"]) == (code, "ECONNRESET", "ECONNRESET"), answers
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert {(n["verdict"], n["reason"], n["host"], n["port"]) for n in lines} == {("error", reason, host, port)}, lines
    assert sorted(n["via"] for n in lines) == ["http", "http", "socks5", "transparent", "transparent", "transparent"]
    summary, = result.messages
    assert summary.startswith(f"failed 4x {host}:{port} ({reason}: "), result


def test_connect_that_fails_is_in_the_summary(sbx):
    """The answer to CONNECT has the reason, and programs show its status alone."""
    result = sbx.shell("curl -sS https://nosuch.test/", "--allow", "nosuch.test")
    assert result.code == 56 and "nosuch" not in result.err.replace("sbx: failed 1x nosuch.test:443", ""), result
    assert [m.split("; ")[0] for m in result.messages if "nosuch.test:443 (resolve-failed: " in m] and \
        len(result.messages) == 1, result


# Protocols whose first word could be a method's, a part of a request, and silence. What each client got.
WORDS = """
import errno, json, socket, sys, threading
host = sys.argv[1]
def say(data):
    s = socket.create_connection((host, 5432)); s.settimeout(50)
    try:
        s.sendall(data); got = ascii(s.recv(4000))
    except OSError as error: got = errno.errorcode.get(error.errno, str(error))
    return got
for data in (b"SSH-2.0-OpenSSH_9.2\\r\\n", b"hello\\n", b"EHLO me\\r\\n", b"*1\\r\\n$4\\r\\nPING\\r\\n", b"hello",
             b"GET is a word", b""):
    print(say(data))
"""


@pytest.mark.parametrize("host, word", [("nosuch.test", "failed 7x nosuch.test:5432 (resolve-failed: "),
                                        ("192.0.2.11", "denied 7x 192.0.2.11:5432 (deny-rule: ")])
def test_only_a_request_is_answered_over_http(sbx, project, host, word):
    """A client of another protocol is reset, and the summary has the true reason."""
    options = ["--allow", f"{host}:5432", "--deny", "192.0.2.11"]
    result = sbx.python(WORDS, *options, arguments=[host])
    assert result.out == "ECONNRESET\n" * 7, result
    summary, = result.messages
    assert summary.startswith(word), result


def test_a_request_that_does_not_end_keeps_its_reason(sbx, project):
    """Its client speaks HTTP and is told; once it was told of a limit, half a minute later."""
    code = """
import socket
s = socket.create_connection(("nosuch.test", 80)); s.settimeout(50); s.sendall(b"GET / HT"); s.sendall(b"TP/1.1\\r\\nHo")
print(s.recv(4000).decode())
s = socket.create_connection(("nosuch.test", 80)); s.sendall(b"GET / HTTP/1.1\\r\\nHo"); s.close()
"""
    path = project.home + "/audit.jsonl"
    result = sbx.python(code, "--allow", "nosuch.test", "--audit", path)
    assert result.out.startswith("HTTP/1.1 502 sbx: nosuch.test"), result
    with open(path) as file:
        assert {json.loads(line)["reason"] for line in file} == {"resolve-failed"}
    summary, = result.messages
    assert summary.startswith("failed 1x nosuch.test:80 (resolve-failed: "), result


def test_failures_that_the_client_was_told_of_are_not_in_the_summary(sbx):
    """An answer with the reason is enough: programs that try again until a server is up would fill it."""
    result = sbx.shell("curl -s http://refused.test:81/; true", "--allow", "refused.test:81")
    assert "connect-refused" in result.out and result.messages == [], result


@pytest.mark.parametrize("how", ["", "--noproxy '*'", "--socks5-hostname 127.0.0.1:1080 --noproxy ''"])
def test_wrong_certificate(sbx, lab, project, how):
    """A tunnel is blind: it is the client that sees the certificate, and says the same on every front."""
    path = project.home + "/audit.jsonl"
    result = sbx.shell(f"curl -sS {how} https://a.wild.test/", "--allow", "a.wild.test", "--audit", path)
    assert result.code == 60 and "SSL" in result.err and "a.wild.test" in result.err, result
    with open(path) as file:
        line, = [json.loads(line) for line in file]
    assert (line["verdict"], line["host"], line["ip"]) == ("allow", "a.wild.test", "192.0.2.30"), line
    assert lab.requests == [] and result.messages == [], result


@pytest.mark.parametrize("what, raw", [("upstream-closed", b""), ("upstream-closed", b"HTTP/1.1 200 O"),
                                       ("bad-response", b"no answer at all\r\n\r\n")])
def test_origin_that_answers_badly(sbx, lab, what, raw):
    """The fronts that speak HTTP: one word."""
    lab.servers.placed[("192.0.2.50", 80)] = lambda stream: (stream.recv(4096), stream.sendall(raw))
    lab.zone["bad.test"] = ["192.0.2.50"]
    try:
        result = sbx.shell("curl -s http://bad.test/; curl -s --noproxy '*' http://bad.test/; "
                           "curl -sp http://bad.test/; curl -s --socks5-hostname 127.0.0.1:1080 http://bad.test/",
                           "--allow", "bad.test").ok()
    finally:
        del lab.servers.placed[("192.0.2.50", 80)]
    reasons = [json.loads(line)["reason"] for line in result.out.splitlines()]
    assert reasons == [what] * 4, result
