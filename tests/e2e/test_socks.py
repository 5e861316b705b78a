"""The SOCKS 5 front (RFC 1928): names and addresses, reply codes, what is sent ahead."""
import json

import pytest

SOCKS = """
import json, os, select, socket, struct, sys
def name(n, port, command=1): return b"\\5" + bytes([command]) + b"\\0\\3" + bytes([len(n)]) + n.encode() + struct.pack(">H", port)
def v4(a, port, command=1): return b"\\5" + bytes([command]) + b"\\0\\1" + socket.inet_aton(a) + struct.pack(">H", port)
def v6(a, port): return b"\\5\\1\\0\\4" + socket.inet_pton(socket.AF_INET6, a) + struct.pack(">H", port)
def connect():
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(40); return s
def read(s, n):
    got = b""
    while len(got) < n and (data := s.recv(n - len(got))): got += data
    return got
def ask(request, greeting=b"\\5\\1\\0"):
    s = connect(); s.sendall(greeting + request)
    if read(s, 2) != b"\\5\\0": return s, None
    return s, read(s, 10)[1]
"""


@pytest.mark.parametrize("option", ["--socks5-hostname", "--socks5"])
@pytest.mark.parametrize("url", ["http://origin.test/", "https://origin.test/"])
def test_curl(sbx, lab, option, url):
    """By name, and by the synthetic address that a client found itself."""
    result = sbx.run("--allow", "origin.test", "--", "curl", "-sS", option, "127.0.0.1:1080", url).ok()
    assert result.out == "lab page of origin.test\n"
    assert {r.host for r in lab.requests} == {"origin.test"}


def test_reply_codes(sbx, lab):
    """Each outcome has its code (RFC 1928, section 6)."""
    code = SOCKS + """
requests = {"allowed": name("other.test", 7), "upper": name("OTHER.test.", 7), "v4": v4("192.0.2.10", 7),
    "v6": v6("2001:db8::10", 7), "denied": name("evil.test", 443), "denied-v4": v4("198.51.100.66", 80), "port": name("other.test", 8),
    "loopback": name("loop.test", 80), "metadata": v4("169.254.169.254", 80), "mapped": v6("::ffff:10.0.0.1", 7), "refused": name("refused.test", 81),
    "unresolvable": name("nosuch.test", 80), "bind": name("other.test", 7, 2), "udp": name("other.test", 7, 3), "other": name("other.test", 7, 9),
    "type": b"\\5\\1\\0\\2aaaaaaa", "reserved": b"\\5\\1\\1\\1aaaabb", "nul": name("other.test\\0.x", 7), "empty": name("", 7),
    "zero": name("other.test", 0)}
print(json.dumps({key: ask(request)[1] for key, request in requests.items()}))
"""
    options = [w for r in ("other.test:7", "192.0.2.10:7", "[2001:db8::10]:7", "loop.test", "refused.test:81", "nosuch.test")
               for w in ("--allow", r)]
    assert sbx.python(code, *options).json == {
        "allowed": 0, "upper": 0, "v4": 0, "v6": 0, "denied": 2, "denied-v4": 2, "port": 2, "loopback": 2, "metadata": 2,
        "mapped": 2, "refused": 5, "unresolvable": 4, "bind": 7, "udp": 7, "other": 7, "type": 8, "reserved": 1, "nul": 1,
        "empty": 1, "zero": 1}
    assert {address for _, address, _ in lab.connections} == {"192.0.2.11", "192.0.2.10", "2001:db8::10"}


def test_pipelined_and_byte_by_byte(sbx, lab):
    """Greeting, request and data in one piece; and each byte by itself."""
    code = SOCKS + """
import time
s = connect(); s.sendall(b"\\5\\2\\2\\0" + name("other.test", 7) + b"ahead\\n"); print(read(s, 2 + 10 + 6)[12:])
s = connect(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for byte in b"\\5\\1\\0" + name("other.test", 7): s.sendall(bytes([byte])); time.sleep(0.002)
print(read(s, 12)[2:4]); s.sendall(b"after\\n"); print(read(s, 6))
"""
    assert sbx.python(code, "--allow", "other.test:7").ok().out == "b'ahead\\n'\nb'\\x05\\x00'\nb'after\\n'\n"


def test_other_protocols_on_this_port(sbx, lab):
    code = SOCKS + """
for greeting in (b"\\5\\1\\2", b"\\4\\1\\0\\120\\300\\0\\2\\12x\\0", b"GET / HTTP/1.1\\r\\n\\r\\n", b"\\x16\\3\\1\\0\\5"):
    s = connect(); s.sendall(greeting); s.shutdown(socket.SHUT_WR); print(read(s, 12))
"""
    result = sbx.python(code, "--allow", "*:*").ok()
    assert result.out == "b'\\x05\\xff'\nb''\nb'HTTP/1.1 400'\nb''\n", result
    assert lab.connections == []


def test_server_that_speaks_first_and_half_close(sbx, lab):
    code = SOCKS + """
s, reply = ask(name("other.test", 7)); s.sendall(bytes(1) + bytes(300000)); s.shutdown(socket.SHUT_WR); print(len(read(s, 10**7)))
"""
    assert sbx.python(code, "--allow", "other.test:7").ok().out == "300001\n"


def test_denial_is_told(sbx, project, lab):
    """P10: one denial looks the same from every front."""
    path = project.home + "/audit.jsonl"
    result = sbx.python(SOCKS + "ask(name('evil.test', 443)); ask(name('other.test', 7))[0].close()", "--allow", "other.test:7",
                        "--audit", path).ok()
    summary, = result.messages
    assert "evil.test:443" in summary and "--allow evil.test" in summary, summary
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert {(n["via"], n["event"], n["host"], n["verdict"], n["reason"]) for n in lines} == {
        ("socks5", "connect", "evil.test", "deny", "not-allowed"), ("socks5", "connect", "other.test", "allow", "allowed")}
    assert not lab.dns.asked("evil.test")


def test_reply_does_not_tell_the_hosts_address(sbx):
    code = SOCKS + "s = connect(); s.sendall(b'\\5\\1\\0' + name('other.test', 7)); print(read(s, 12)[2:])"
    assert sbx.python(code, "--allow", "other.test:7").ok().out == repr(b"\5\0\0\1\0\0\0\0\0\0") + "\n"
