"""One identity: what is sent through a connection names the host that it was allowed for (F54, F55), whatever the way."""
import json

import pytest

# A way to host:port, and the first bytes through it. Answers: what came back.
WAYS = """
import errno, json, os, socket, ssl, struct, sys, time
def read(s, n=65536):
    try: return s.recv(n)
    except OSError as error: return errno.errorcode.get(error.errno, str(error)).encode()
def until_end(s):
    got = b""
    while True:
        data = read(s)
        got += data
        if not data or data.startswith(b"ECONN"): return got
def way(kind, host, port):
    if kind == "transparent":
        s = socket.create_connection((host, port))
    elif kind == "connect":
        s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n" % (host.encode(), port, host.encode(), port))
        head = b""
        while not head.endswith(b"\\r\\n\\r\\n"): head += s.recv(1) or sys.exit("closed")
        assert head.startswith(b"HTTP/1.1 200"), "refused"
    else:
        s = socket.create_connection(("127.0.0.1", 1080)); s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
        got = b""
        while len(got) < 12: got += s.recv(12 - len(got))
        assert got[3] == 0, "refused"
    s.settimeout(40); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def hello(name, protocols=()):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    if protocols: context.set_alpn_protocols(list(protocols))
    out = ssl.MemoryBIO(); session = context.wrap_bio(ssl.MemoryBIO(), out, server_hostname=name)
    try: session.do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
ALERT = b"\\x15\\3\\1\\0\\2\\2\\x31"
kind = sys.argv[1]
"""
WAY = pytest.mark.parametrize("way", ["connect", "socks", "transparent"])
OPTIONS = ["--allow", "origin.test", "--allow", "other.test"]


def steps(sbx, way, code, *options):
    return sbx.python(WAYS + code, *(options or OPTIONS), arguments=[way])


@WAY
def test_right_name(sbx, lab, way):
    code = """
s = ssl.create_default_context().wrap_socket(way(kind, "origin.test", 443), server_hostname="origin.test")
s.sendall(b"GET / HTTP/1.0\\r\\nHost: origin.test\\r\\n\\r\\n"); print(s.recv(12))
"""
    assert steps(sbx, way, code).ok().out == "b'HTTP/1.1 200'\n"
    assert [r.sni for r in lab.requests] == ["origin.test"]


@WAY
@pytest.mark.parametrize("name", ["evil.test", "other.test", "www.origin.test", "origin.test.evil.test"])
def test_other_name(sbx, lab, way, name):
    """F54: also of a host that is allowed by itself: an alert, nothing to the origin, and the reason told."""
    result = steps(sbx, way, f"s = way(kind, 'origin.test', 443); s.sendall(hello('{name}')); print(until_end(s) == ALERT)")
    assert result.out == "True\n", result
    assert result.messages and "origin.test:443 (identity-mismatch" in result.messages[0], result
    assert lab.requests == [] and all(kind == "tls-failed" for kind, _, _ in lab.connections)


@WAY
def test_no_name(sbx, lab, way):
    """F54: a hello without a name could be for any host behind that address."""
    result = steps(sbx, way, "s = way(kind, 'origin.test', 443); s.sendall(hello(None)); print(until_end(s) == ALERT)")
    assert result.out == "True\n" and "identity-mismatch" in result.err, result
    assert lab.requests == []


RECORDS = {
    "empty change of ciphers": "b'\\x14\\3\\1\\0\\0'", "change of ciphers": "b'\\x14\\3\\3\\0\\1\\1'", "warning": "b'\\x15\\3\\1\\0\\2\\1\\x5a'",
    "warning of no version": "b'\\x15\\0\\0\\0\\2\\1\\x5a'", "empty handshake": "b'\\x16\\3\\1\\0\\0'", "data": "b'\\x17\\3\\3\\0\\1a'",
    "heartbeat": "b'\\x18\\3\\1\\0\\0'"}


@WAY
@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_record_before_the_hello(sbx, lab, way, record):
    """F54: servers skip some records, and read the hello behind them. In one piece, and byte by byte."""
    code = f"""
for piece in (9999, 1):
    s = way(kind, "origin.test", 443); data = {record} + hello("evil.test")
    try:
        for start in range(0, min(len(data), 100), piece): s.sendall(data[start:start + piece])
        s.sendall(data[100:] if piece == 1 else b"")
    except OSError: pass
    print(read(s)[:2] == b"\\x16\\3")
"""
    result = steps(sbx, way, code)
    assert result.out == "False\n" * 2 and "2x origin.test:443 (identity-mismatch" in result.err, result
    assert lab.requests == [] and all(kind == "tls-failed" for kind, _, _ in lab.connections)


@WAY
def test_hello_of_ssl2(sbx, lab, way):
    """It names no host."""
    code = """
suites = bytes([0, 0xc0, 0x2b, 0, 0, 0x2f]); data = bytes([1, 3, 3, 0, len(suites), 0, 0, 0, 16]) + suites + b"A" * 16
s = way(kind, "origin.test", 443); s.sendall(bytes([0x80, len(data)]) + data); print(until_end(s))
"""
    assert steps(sbx, way, code).out == "b'ECONNRESET'\n"
    assert lab.requests == []


@WAY
@pytest.mark.parametrize("answer", ["HTTP/1.1 200 OK\r\n\r\n", "\x16\3\3\0\x04\x0e\0\0\0", "\x15\3\3\0\2\2\x28"])
def test_answer_to_nothing(sbx, lab, way, answer):
    """F54: a server that is lenient in a way not known here has taken the client's bytes for a request or a hello. What
    it answers tells, and does not come in."""
    def serve(stream):
        stream.recv(100)
        stream.sendall(answer.encode("latin-1"))
        stream.recv(100)

    server = lab.servers.listen(2525, serve)
    try:
        result = steps(sbx, way, "s = way(kind, 'other.test', 2525); s.sendall(b'PING\\r\\n'); print(until_end(s))", "--allow", "other.test:2525")
    finally:
        server.shutdown(2)
        server.close()
    assert result.out == "b'ECONNRESET'\n" and "identity-mismatch" in result.err, result


@WAY
def test_hello_over_many_segments(sbx, lab, way):
    """F55: 2 KiB and more, in pieces, the name anywhere; and one that never ends."""
    code = """
long = [("p%03d" % n) * 30 for n in range(20)]
for name in ("origin.test", "evil.test"):
    data = hello(name, long); assert len(data) > 2048, len(data)
    s = way(kind, "origin.test", 443)
    for start in range(0, len(data), 400): s.sendall(data[start:start + 400]); time.sleep(0.01)
    print(read(s)[:1] == b"\\x16")
    s = way(kind, "origin.test", 443)
    for byte in data[:60]: s.sendall(bytes([byte]))
    s.sendall(data[60:]); print(read(s)[:1] == b"\\x16")
s = way(kind, "origin.test", 443); s.sendall(data[:1000]); s.shutdown(socket.SHUT_WR); print(until_end(s) == ALERT)
"""
    assert steps(sbx, way, code).ok().out == "True\nTrue\nFalse\nFalse\nTrue\n"


@WAY
def test_encrypted_client_hello(sbx, lab, way):
    """The outer name is what counts: browsers send the extension always. Behind another one anything could be meant."""
    code = """
def with_ech(data):
    body = data[9:]; at = 34; at += 1 + body[at]; at += 2 + int.from_bytes(body[at:at + 2], "big"); at += 1 + body[at]
    outer = bytes(1) + struct.pack(">HHBH", 1, 1, 7, 32) + os.urandom(32) + struct.pack(">H", 144) + os.urandom(144)
    extensions = body[at + 2:] + struct.pack(">HH", 0xfe0d, len(outer)) + outer
    body = body[:at] + struct.pack(">H", len(extensions)) + extensions
    return data[:3] + struct.pack(">H", len(body) + 4) + b"\\1" + len(body).to_bytes(3, "big") + body
for name in ("origin.test", "evil.test"):
    s = way(kind, "origin.test", 443); s.sendall(with_ech(hello(name))); got = read(s); print(got[:1] == b"\\x16", got == ALERT)
"""
    result = steps(sbx, way, code).ok()
    assert result.out == "True False\nFalse True\n", result


@WAY
def test_address_as_target(sbx, lab, way):
    """A hello without a name is right there; a name must be allowed by itself."""
    code = """
for name in (None, "origin.test", "evil.test"):
    s = way(kind, "192.0.2.10", 443); s.sendall(hello(name)); print(read(s)[:1] == b"\\x16")
"""
    assert steps(sbx, way, code, "--allow", "192.0.2.10", "--allow", "origin.test").ok().out == "True\nTrue\nFalse\n"


@WAY
@pytest.mark.parametrize("request_text", [
    "GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n", "GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n",
    "GET http://evil.test/ HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n", "GET / HTTP/1.1\\r\\nHost: origin.test:8080\\r\\n\\r\\n",
    "CONNECT evil.test:80 HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n", "CONNECT origin.test:80 HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n",
    "GET / HTTP/1.1\\r\\nHost: origin.test\\r\\nHost: evil.test\\r\\n\\r\\n", "GET / HTTP/1.1\\nHost: evil.test\\n\\n",
    "\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n", "get / http/1.1\\r\\nHost: evil.test\\r\\n\\r\\n",
    "GET / HTTP/1.1\\r\\nHost: 198.51.100.66\\r\\n\\r\\n"])
def test_fronting_in_the_clear(sbx, lab, way, request_text):
    """F54: cleartext HTTP through a tunnel or without a proxy is judged as at the front."""
    result = steps(sbx, way, f"s = way(kind, 'origin.test', 80); s.sendall(b'{request_text}'); print(until_end(s)[:12])")
    assert result.out in ("b'HTTP/1.1 403'\n", "b'HTTP/1.1 400'\n"), result
    assert lab.requests == []


LENIENT = ["GET /s\\r\\n", "GET s\\r\\n", "GET\\x85/s HTTP/1.1\\r\\n", "\\x1fGET /s HTTP/1.1\\r\\n", "GET /s\\0HTTP/1.1\\r\\n", "GET\\r/s HTTP/1.1\\r\\n",
           "GET /s XTTP/1.1\\r\\n", "(GET /s x\\r\\n", "\\x01GET /s x\\r\\n", "\\xff /s x\\r\\n", "POST /s RTSP/1.0\\r\\n", "GET %2fs x\\r\\n",
           "X\\n /s x\\r\\n", "X\\r\\r\\n /s x\\r\\n", "(\\tx /s x\\r\\n", "X /s\\xe9 x\\r\\n"]


@WAY
def test_lenient_servers(sbx, lab, way):
    """F54: what some server takes for a request line is one. In one piece: answered 400; in two, never whole at the origin."""
    lines = "[" + ", ".join(f"b'{line}Host: evil.test\\r\\n\\r\\n'" for line in LENIENT) + "]"
    code = f"""
for line in {lines}:
    s = way(kind, "origin.test", 8080); s.sendall(line); got = until_end(s)
    if not got.startswith(b"HTTP/1.1 400 sbx"): print(line, got)
    s = way(kind, "origin.test", 8080); s.sendall(line[:4]); time.sleep(0.02)
    try: s.sendall(line[4:]); got = until_end(s)
    except OSError: got = b""
    if b"HTTP/1.1 200" in got: print("in two", line, got)
"""
    result = steps(sbx, way, code, "--allow", "origin.test:8080").ok()
    assert result.out == "", result
    assert lab.requests == []


OTHERS = {6380: ("PING\\r\\n", "+PONG\\r\\n"), 11211: ("get x\\r\\n", "END\\r\\n"), 5433: ("\\0\\0\\0\\x08\\4\\xd2\\x16\\x2f", "S"),
          9418: ("002egit-upload-pack /p.git\\0host=other.test\\0", "0000"), 4222: ("CONNECT {}\\r\\n", "+OK\\r\\n"), 554: (
              "OPTIONS rtsp://other.test/ RTSP/1.0\\r\\n", "RTSP/1.0 200 OK\\r\\n"), 6667: ("NICK x\\r\\n", ":x 001\\r\\n"),
          2222: ("SSH-2.0-x y\\r\\n", "SSH-2.0-z\\r\\n"), 3690: ("( 2 ( ) 16:svn://other.test ) ", "( success )")}


@WAY
def test_other_protocols(sbx, lab, way):
    """What is not HTTP passes, both ways, at its own port."""
    def bytes_of(text):
        return text.encode("latin-1").decode("unicode_escape").encode("latin-1")

    def serve(asked, answer):
        def run(stream):
            if stream.recv(100) == asked:
                stream.sendall(answer)
                stream.sendall(stream.recv(100))
        return run

    servers = [lab.servers.listen(port, serve(*map(bytes_of, pair))) for port, pair in OTHERS.items()]
    pairs = "{" + ", ".join(f"{port}: (b'{asked}', b'{answer}')" for port, (asked, answer) in OTHERS.items()) + "}"
    code = f"""
for port, (asked, answer) in {pairs}.items():
    s = way(kind, "other.test", port); s.sendall(asked); got = read(s)
    if got == answer: s.sendall(b"more"); got = read(s)
    print(port, got == b"more" or got)
"""
    try:
        result = steps(sbx, way, code, *[word for port in OTHERS for word in ("--allow", f"other.test:{port}")])
    finally:
        for server in servers:
            server.shutdown(2)
            server.close()
    assert result.out == "".join(f"{port} True\n" for port in OTHERS), result


@WAY
def test_http_through_a_tunnel(sbx, lab, way):
    """Node ≥ 22 asks CONNECT host:80 for http:// URLs. Later requests of a kept connection are judged too (F54)."""
    code = """
s = way(kind, "origin.test", 80)
for target, host in (("/", "origin.test"), ("http://origin.test/", "ORIGIN.test:80"), ("/", "evil.test"), ("/", "origin.test")):
    try: s.sendall(b"GET %s HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n" % (target.encode(), host.encode()))
    except OSError: break
    got = b""
    while b"\\r\\n\\r\\n" not in got and (data := read(s)) and not data.startswith(b"ECONN"): got += data
    print(got[9:12].decode(), json.loads(got.partition(b"\\r\\n\\r\\n")[2])["reason"] if b" 403 " in got[:15] else "")
    if b" 403 " in got[:15]: break
"""
    result = steps(sbx, way, code).ok()
    assert result.out == "200 \n200 \n403 identity-mismatch\n", result
    assert [r.get("host") for r in lab.requests] == ["origin.test"] * 2


@WAY
def test_smuggling_through_a_tunnel(sbx, lab, way):
    """F56 holds there as well."""
    code = """
for head in (b"Content-Length: 4\\r\\nTransfer-Encoding: chunked", b"Content-Length: 4\\r\\nContent-Length: 5", b"Transfer-Encoding : chunked", b"X: a\\r\\n folded"):
    s = way(kind, "origin.test", 80); s.sendall(b"POST / HTTP/1.1\\r\\nHost: origin.test\\r\\n" + head + b"\\r\\n\\r\\n0\\r\\n\\r\\n"); print(until_end(s)[:12])
"""
    assert steps(sbx, way, code).ok().out == "b'HTTP/1.1 400'\n" * 4
    assert lab.requests == []


@WAY
def test_websocket_through_a_tunnel(sbx, lab, way):
    code = """
s = way(kind, "origin.test", 80)
s.sendall(b"GET /websocket HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: x\\r\\n\\r\\n")
print(read(s)[:12]); s.sendall(b"\\x81\\x84back"); print(read(s))
"""
    assert steps(sbx, way, code).ok().out == "b'HTTP/1.1 101'\nb'\\x81\\x84back'\n"


@pytest.mark.parametrize("way", ["connect", "socks", "transparent", "front"])
@pytest.mark.parametrize("ahead", [True, False])
def test_upgrade_and_then_another_host(sbx, lab, way, ahead):
    """F54: after a 101 a request is none: neither of the kept connection nor of the tunnel that it has become."""
    code = f"""
s = socket.create_connection(("127.0.0.1", 3128)) if kind == "front" else way(kind, "origin.test", 80)
s.settimeout(40); start = "http://origin.test" if kind == "front" else ""
first = b"GET %s/websocket HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n" % start.encode()
second = b"GET http://%s/ HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n"
for host in (b"evil.test", b"other.test", b"origin.test"):
    s.sendall(first + (second % (host, host) if {ahead} else b""))
    head = read(s)
    if not {ahead}:
        print(head[:12]); s.sendall(second % (host, host))
    print(until_end(s).endswith(b"ECONNRESET") or head.endswith(b"ECONNRESET"))
    s = socket.create_connection(("127.0.0.1", 3128)) if kind == "front" else way(kind, "origin.test", 80); s.settimeout(40)
"""
    result = steps(sbx, way, code)
    assert result.out == ("" if ahead else "b'HTTP/1.1 101'\n").join(["", *["True\n"] * 3]), result
    assert "3x origin.test:80 (bad-request" in result.err, result
    assert [r.target.removeprefix("http://origin.test") for r in lab.requests] == ["/websocket"] * 3


@WAY
def test_http2_in_the_clear(sbx, lab, way):
    """Its requests are not judged: refused for a name."""
    code = "s = way(kind, 'origin.test', 80); s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n'); print(until_end(s))"
    result = steps(sbx, way, code)
    assert result.out == "b'ECONNRESET'\n" and "identity-mismatch" in result.err, result
    assert lab.requests == []


@WAY
def test_http_after_the_server_has_spoken(sbx, lab, way):
    """Neither the front's nor a blind tunnel: cut."""
    server = lab.servers.listen(2525, lambda stream: (stream.sendall(b"220 lab\r\n"), lab.servers.http(stream)))
    try:
        result = steps(sbx, way, "s = way(kind, 'other.test', 2525); print(read(s)); s.sendall(b'GET / HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n'); print(until_end(s))",
                       "--allow", "other.test:2525")
    finally:
        server.shutdown(2)
        server.close()
    assert result.out == "b'220 lab\\r\\n'\nb'ECONNRESET'\n", result
    assert lab.requests == []


def test_curl_cannot_front(sbx, lab):
    """As a person would try it."""
    result = sbx.shell("""
curl -sS --connect-to evil.test:443:origin.test:443 https://evil.test/
unset $(env | sed -n 's/=.*//p' | grep -i _proxy)
curl -sS -H 'Host: evil.test' http://origin.test/
curl -sS --connect-to evil.test:443:origin.test:443 https://evil.test/
curl -sS --connect-to evil.test:80:origin.test:80 http://evil.test/
""", *OPTIONS)
    assert result.out.count("identity-mismatch") == 2 and "lab page" not in result.out, result
    assert lab.requests == []


def test_audit_of_a_mismatch(sbx, project):
    path = project.home + "/audit.jsonl"
    sbx.python(WAYS + "s = way(kind, 'origin.test', 443); s.sendall(hello('evil.test')); until_end(s)", *OPTIONS, "--audit", path,
               arguments=["connect"]).ok()
    with open(path) as file:
        line, = [json.loads(line) for line in file]
    assert (line["event"], line["verdict"], line["reason"], line["host"], line["up"]) == \
        ("connect", "deny", "identity-mismatch", "origin.test", 0), line
