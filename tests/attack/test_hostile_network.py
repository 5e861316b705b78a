"""A hostile program inside against the network (F52 to F58): odd addresses, names that carry data, floods, replies that
never end, and leaving at every byte. What the wire tests do to the HTTP front alone is done here to every front."""
import contextlib
import json
import os
import subprocess
import threading

import pytest

from harness.procs import descendants, wait_until
from harness.wire import Quiet, converse, get, talk
from lab.origin import reset

# Connections to each front; bytes as they are.
TOOLS = """
import errno, json, os, select, socket, ssl, struct, sys, time
def name(error): return errno.errorcode.get(error.errno, str(error))
def to(host, port, family=0):
    info = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    s = socket.socket(info[0]); s.settimeout(50); s.connect(info[4]); return s
def read_all(s):
    got = b""
    try:
        while data := s.recv(65536): got += data
    except OSError as error: got += b"!" + name(error).encode()
    return got
def hello(host):
    out = ssl.MemoryBIO(); session = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname=host)
    try: session.do_handshake()
    except ssl.SSLWantReadError: pass
    return out.read()
def socks(host, port): return b"\\5\\1\\0\\3" + bytes([len(host)]) + host + struct.pack(">H", port)
def question(host, kind=1):
    labels = b"".join(bytes([len(l)]) + l.encode() for l in host.split(".")) + b"\\0"
    return struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + labels + struct.pack(">HH", kind, 1)
def over_tcp(message): return struct.pack(">H", len(message)) + message
CONNECT = b"CONNECT origin.test:443 HTTP/1.1\\r\\nHost: origin.test:443\\r\\n\\r\\n"
GET = b"GET http://origin.test/ HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: close\\r\\n\\r\\n"
HTTP, SOCKS = ("127.0.0.1", 3128), ("127.0.0.1", 1080)
"""
ALLOW = ["--allow", "origin.test"]
RESIDENT_MAX = 64 * 1024  # KiB
LESS_THAN_EXPIRY = 15  # seconds: the proxy's own deadline for a head, 30 s, is not what ends a connection that was left


class Attack:
    """Code that runs inside and stops at each tick(), until go() lets it on."""

    def __init__(self, sbx, code, *options):
        code = TOOLS + "def tick(*what): print(json.dumps(what), flush=True); sys.stdin.readline()\n" + code
        self.process = sbx.start("run", *options, "--", "/usr/bin/python3", "-I", "-c", code, stdin=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def tick(self):
        """What the next tick() says."""
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read().decode()
        return json.loads(line)

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self):
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err.decode()

    @property
    def proxy(self):
        found, = [p for p in descendants(self.process.pid) if p.name == "sbx-proxy"]
        return found

    @property
    def resident(self):
        """KiB of the proxy."""
        lines = self.proxy.read("status").decode().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))

    def descriptors(self):
        """Of the proxy; None where they are not ours to see."""
        try:
            return len(os.listdir(f"/proc/{self.proxy.pid}/fd"))
        except PermissionError:
            return None


@contextlib.contextmanager
def placed(lab, address, port, serve):
    """A server of this test alone. Yields an event that is set when one of its connections has ended."""
    ended = threading.Event()

    def guarded(stream):
        try:
            serve(stream)
        finally:
            ended.set()
    lab.servers.placed[(address, port)] = guarded
    try:
        yield ended
    finally:
        del lab.servers.placed[(address, port)]


# Odd addresses.

@pytest.mark.parametrize("form", ["2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "0", "00", "0.0.0.0",
                                  "127.0.0.1", "[::1]", "::1", "fe80::1%lo", "fe80::7", "169.254.169.254", "10.0.0.1",
                                  "127.0.0.1\\0.origin.test", "\\xe2\\x91\\xa0.1.1.1"])
def test_odd_addresses_by_socks(sbx, lab, form):
    """F52: as a name, an address in any of its spellings is refused, whatever is allowed."""
    code = TOOLS + f"""
s = socket.create_connection(SOCKS); s.settimeout(50); s.sendall(b"\\5\\1\\0" + socks(b"{form}", 80)); print(s.recv(2), s.recv(10)[1])
"""
    result = sbx.python(code, "--allow", "*:*", "--allow", "origin.test").ok()
    assert result.out in ("b'\\x05\\x00' 1\n", "b'\\x05\\x00' 2\n"), result
    assert lab.connections == [] and lab.dns.queries == [], result


@pytest.mark.parametrize("form", ["2130706433", "0x7f.1", "0177.0.0.1", "0", "::", "::1", "::ffff:127.0.0.1",
                                  "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "fe80::7%lo",
                                  "fe80::7%1", "fd00:ec2::254", "169.254.169.254", "10.0.0.1", "100.64.0.7"])
def test_odd_addresses_without_a_proxy(sbx, lab, form):
    """F52: libc reads decimal, octal and hexadecimal forms; where they lead is judged, IPv4 in any dress as IPv4."""
    code = TOOLS + f"""
try:
    s = to("{form}", 80); s.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
    print(json.loads(read_all(s).partition(b"\\r\\n\\r\\n")[2])["reason"])
except OSError as error: print(error)
"""
    result = sbx.python(code, "--allow", "*:*").ok()
    assert result.out.startswith(("address-", "not-allowed", "[Errno")), result
    assert lab.connections == [], result


def test_mapped_form_of_a_synthetic_address(sbx, lab):
    """An IPv6 socket that connects to ::ffff:198.18.x.y has come to the name all the same, and to no other."""
    code = TOOLS + """
mapped = "::ffff:" + socket.getaddrinfo("origin.test", 80, socket.AF_INET)[0][4][0]
for host in (b"origin.test", b"evil.test"):
    s = to(mapped, 80); s.sendall(b"GET / HTTP/1.1\\r\\nHost: " + host + b"\\r\\n\\r\\n"); print(s.recv(12))
"""
    assert sbx.python(code, *ALLOW).ok().out == "b'HTTP/1.1 200'\nb'HTTP/1.1 403'\n"
    assert [r.host for r in lab.requests] == ["origin.test"]


def test_synthetic_addresses_of_nobody(sbx, lab):
    """F52: an address that the stub has not given is an address like any other: judged, and not public."""
    code = TOOLS + """
to("origin.test", 80).close()
for address in ("198.18.0.77", "198.19.255.254", "2001:2::77"):
    s = to(address, 80); s.sendall(b"GET / HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"); print(s.recv(12))
"""
    result = sbx.python(code, *ALLOW, "--allow", "*").ok()
    assert result.out == "b'HTTP/1.1 403'\n" * 3, result
    assert lab.requests == []


# Ways round the verdict.

def test_udp_to_any_name_server(sbx, lab):
    """P2: port 53 of every address is the stub's: neither a question nor anything else gets through to a real server."""
    code = TOOLS + """
for address in ("192.0.2.53", "8.8.8.8", "2001:db8::53", "10.0.0.1"):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM); s.connect((address, 53))
    for message in (question("origin.test"), question("secret.evil.test"), question("secret.origin.test", 16), b"secret", bytes(9000)):
        s.send(message)
    s.settimeout(50); print(s.recv(4096)[:2])
"""
    assert sbx.python(code, *ALLOW).ok().out == "b'\\x00\\x07'\n" * 4
    assert lab.dns.queries == [] and lab.datagrams == []


@pytest.mark.parametrize("family", ["socket.AF_INET", "socket.AF_INET6"])
def test_quic_is_refused_at_once(sbx, lab, family):
    """P2: UDP to port 443 of an allowed host fails at once, so that a client falls back to TCP."""
    code = TOOLS + f"""
place = socket.getaddrinfo("origin.test", 443, {family})[0][4]
s = socket.socket({family}, socket.SOCK_DGRAM); s.settimeout(50); s.connect(place); s.send(bytes([0xc0]) * 1200)
try: s.recv(1)
except OSError as error: print(name(error))
"""
    assert sbx.python(code, *ALLOW).ok().out == "ECONNREFUSED\n"
    assert lab.datagrams == []


def test_name_that_carries_data(sbx, lab):
    """A wildcard lets the command choose the name. Looking it up asks nobody; only a connection does, for that name as it
    is and for its addresses alone, once. That much is the rule's price: see sbx-security(7)."""
    code = TOOLS + """
hosts = ["%s.wild.test" % ("data%d" % n) for n in range(20)]
for host in hosts: socket.getaddrinfo(host, 80)
tick()
s = to(hosts[3], 80); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(json.dumps([s.recv(12).decode()]), flush=True); sys.stdin.readline()
try: to(hosts[4], 81)
except OSError as error: tick(name(error))
"""
    with Attack(sbx, code, "--allow", "*.wild.test") as attack:
        attack.tick()
        assert lab.dns.queries == []
        attack.go()
        assert attack.tick() == ["HTTP/1.1 200"]
        attack.go()
        assert attack.tick() == ["ECONNREFUSED"]
        assert sorted(lab.dns.queries) == [("data3.wild.test", "A"), ("data3.wild.test", "AAAA")]
        attack.go()
        attack.end()


def test_namespace_cannot_be_changed(sbx, lab):
    """P2: no address, route, interface or sysctl of the sandbox's network is the command's to set."""
    code = TOOLS + """
def ask(kind, body):
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    link.send(struct.pack("IHHII", 16 + len(body), kind, 0x605, 1, 0) + body); return -struct.unpack("i", link.recv(4096)[16:20])[0]
route = struct.pack("BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + struct.pack("HHI", 8, 4, 1)
address = struct.pack("BBBBI", 2, 32, 0, 0, 1) + struct.pack("HH4s", 8, 2, socket.inet_aton("192.0.2.1"))
device = struct.pack("BBHiII", 0, 0, 0, 0, 0, 0) + struct.pack("HH8s", 12, 3, b"lab0") + struct.pack("HHHH8s", 16, 18, 12, 1, b"dummy")
answers = [errno.errorcode.get(ask(*q), "done") for q in ((24, route), (25, route), (20, address), (16, device))]
for path in ("ipv4/ip_forward", "ipv4/conf/all/route_localnet", "ipv6/conf/lo/disable_ipv6", "ipv4/ip_unprivileged_port_start"):
    try: open("/proc/sys/net/" + path, "w").write("1"); answers.append("done")
    except OSError as error: answers.append(name(error))
for option in ((socket.SOL_IP, 19), (socket.SOL_SOCKET, 36)): # IP_TRANSPARENT, SO_MARK
    try: socket.socket().setsockopt(*option, 1); answers.append("done")
    except OSError as error: answers.append(name(error))
print(json.dumps(answers))
"""
    answers = sbx.python(code).json
    assert len(answers) == 10 and set(answers) <= {"EPERM", "EACCES", "EROFS"}, answers


# Floods.

def test_slow_connections(sbx, lab):
    """10,000 connections over all fronts that send a byte and then another: the proxy lives in bounded memory, tells who
    comes too late, and serves when they are gone."""
    code = """
import resource
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]; resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
target = socket.getaddrinfo("origin.test", 80, socket.AF_INET)[0][4][0]
fronts = [(HTTP, b"G"), (SOCKS, b"\\5"), ((target, 80), b"G"), ((target, 443), b"\\x16"), (("198.51.100.66", 443), b"\\x16"), (("192.0.2.53", 53), b"\\0")]
def fetch(host): s = socket.create_connection(HTTP); s.settimeout(50); s.sendall(GET.replace(b"origin.test", host)); return read_all(s).decode()
held = []
for n in range(min(10000, hard - 100)):
    address, byte = fronts[n % len(fronts)]
    try:
        s = socket.create_connection(address, 50); s.setblocking(False); held.append(s); s.send(byte)
    except OSError: pass
for s in held:
    try: s.send(b"E")
    except OSError: pass
tick(len(held), fetch(b"denied.test")) # the origin has as many to serve, and more trouble with it
for s in held: s.close()
for _ in range(500): # until the proxy has noticed
    answer = fetch(b"origin.test")
    if " 503 " not in answer: break
    time.sleep(0.1)
tick(answer)
"""
    with Attack(sbx, code, *ALLOW) as attack:
        count, answer = attack.tick()
        assert count > 1000
        assert answer.startswith("HTTP/1.1 403 ") or '"reason":"limit-connections"' in answer, answer
        assert attack.resident < RESIDENT_MAX
        attack.go()
        answer, = attack.tick()
        assert answer.startswith("HTTP/1.1 200 "), answer
        attack.go()
        attack.end()


ENDLESS = {
    "http": ("HTTP", "GET[:-2] + b'X: '", "a", "HTTP/1.1 431"),
    "connect": ("HTTP", "CONNECT[:-2] + b'X: '", "a", "HTTP/1.1 431"),
    "fields": ("HTTP", "GET[:-2]", "X-Y: z\\r\\n", "HTTP/1.1 431"),
    "target": ("HTTP", "b'GET http://origin.test/'", "a", "HTTP/1.1 431"),
    "transparent": ("('origin.test', 80)", "b'GET / HTTP/1.1\\r\\nHost: origin.test\\r\\nX: '", "a", "HTTP/1.1 431"),
    "in a tunnel": ("HTTP", "CONNECT.replace(b'443', b'80') + b'GET / HTTP/1.1\\r\\nHost: origin.test\\r\\nX: '", "a",
                    "HTTP/1.1 431"),
    "socks": ("SOCKS", "b'\\5\\xff'", "\\1", "\x05\xff"),
    "tls": ("('origin.test', 443)", "b''", "\\x16\\3\\1\\0\\4\\1\\xff\\xff\\xff", "\x15\x03\x01\0\x02\x02\x31"),
    "dns": ("('192.0.2.53', 53)", "b''", "\\0\\1a", ""),
}


@pytest.mark.parametrize("front", ENDLESS)
def test_head_of_100_mb(sbx, lab, front):
    """Nothing that has to be whole before it is judged may be that long: refused, nothing sent on, memory bounded. What
    comes after a refusal is read for two seconds at most and thrown away, so that the client sees the answer."""
    address, begin, piece, refusal = ENDLESS[front]
    code = f"""
s = socket.create_connection({address}); s.settimeout(50); s.sendall({begin})
block, sent, got = b"{piece}" * 10000, 0, b""
try:
    while sent < 100 << 20:
        sent += s.send(block)
        if select.select([s], [], [], 0)[0]: got += s.recv(65536)
except OSError: pass
tick(got.decode("latin-1"), read_all(s).decode("latin-1"))
"""
    with Attack(sbx, code, *ALLOW) as attack:
        answer = "".join(attack.tick()).rpartition("200 Connection established\r\n\r\n")[2]
        assert answer.startswith(refusal) and len(answer) < 1000, answer
        assert attack.resident < RESIDENT_MAX
        assert lab.requests == [] and all(kind in ("tls-failed", "http") for kind, _, _ in lab.connections), lab.connections
        attack.go()
        attack.end()


@pytest.mark.parametrize("piece", [b"X-Field: value\r\n" * 1000, b"a" * 16000, b"HTTP/1.1 103 Early\r\n\r\n" * 500],
                         ids=["fields", "one field", "interim answers"])
def test_head_of_an_answer_that_never_ends(sbx, lab, piece):
    """An origin that works together with the command: cut off at the limit of a head. Interim answers are passed on as
    they come, and are the client's to bear."""
    lab.zone["endless.test"] = ["192.0.2.60"]

    def serve(stream):
        stream.recv(65536)
        stream.sendall(piece if piece.startswith(b"HTTP") else b"HTTP/1.1 200 OK\r\nX: ")
        while True:
            stream.sendall(piece)
    code = """
s = socket.create_connection(HTTP); s.settimeout(50); s.sendall(GET.replace(b"origin.test", b"endless.test"))
got = s.recv(65536); tick(got[:12].decode()); s.close(); tick()
"""
    with placed(lab, "192.0.2.60", 80, serve) as ended, Attack(sbx, code, "--allow", "endless.test") as attack:
        assert attack.tick() == ["HTTP/1.1 103" if piece.startswith(b"HTTP") else "HTTP/1.1 502"]
        assert attack.resident < RESIDENT_MAX
        attack.go()
        assert attack.tick() == []
        wait_until(ended.is_set, "the origin is let go")
        attack.go()
        attack.end()


@pytest.mark.parametrize("way", ["http", "tunnel", "transparent"])
@pytest.mark.parametrize("framing", ["Content-Length: 1000000000000", "Transfer-Encoding: chunked", "Connection: close"])
def test_answer_that_never_ends(sbx, lab, way, framing):
    """F57: a client that stops reading stops the origin, in bounded memory; one that leaves lets it go."""
    lab.zone["endless.test"] = ["192.0.2.60"]
    sent = [0]

    def serve(stream):
        stream.recv(65536)
        stream.sendall(f"HTTP/1.1 200 OK\r\n{framing}\r\n\r\n".encode())
        block = b"fff0\r\n" + bytes(0xfff0) + b"\r\n" if "chunked" in framing else bytes(65536)
        while True:
            stream.sendall(block)
            sent[0] += len(block)
    code = f"""
way = "{way}"
s = socket.create_connection(("endless.test", 80) if way == "transparent" else HTTP); s.settimeout(50)
if way == "tunnel":
    s.sendall(b"CONNECT endless.test:80 HTTP/1.1\\r\\nHost: endless.test\\r\\n\\r\\n"); assert b" 200 " in s.recv(4096)
s.sendall(b"GET %s HTTP/1.1\\r\\nHost: endless.test\\r\\n\\r\\n" % (b"http://endless.test/" if way == "http" else b"/"))
got = 0
while got < 1 << 20: got += len(s.recv(65536))
tick(); s.close(); tick()
"""
    with placed(lab, "192.0.2.60", 80, serve) as ended, Attack(sbx, code, "--allow", "endless.test") as attack:
        attack.tick()

        def stalled():
            before = sent[0]
            return ended.wait(0.3) or sent[0] == before
        wait_until(stalled, "the origin is held back")
        assert not ended.is_set() and sent[0] < 100 << 20, sent
        assert attack.resident < RESIDENT_MAX
        attack.go()
        attack.tick()
        wait_until(ended.is_set, "the origin is let go")
        attack.go()
        attack.end()


# What the two ends make each other read.

@pytest.mark.parametrize("request_bytes", [
    get("http://evil.test/%0d%0aX-Split:%20yes"), get("http://evil.test%0d%0aX-Split:%20yes/"),
    b"CONNECT evil.test:443%0d%0aX-Split:yes HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT evil.test\rX-Split:yes:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://evil.test/\rX-Split: yes HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://evil.test/\nX-Split: yes\n\n HTTP/1.1\r\nHost: x\r\n\r\n",
    b"CONNECT evil\x85X-Split:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    get("http://evil.test/", "Host: evil.test\rX-Split: yes"),
])
def test_splitting_by_the_request(sbx, lab, request_bytes):
    """What a refusal repeats of a request cannot become a field or a second answer."""
    exchange = talk(sbx, request_bytes, options=ALLOW)
    head, _, body = exchange.all.partition(b"\r\n\r\n")
    assert exchange.status in (400, 403), exchange
    assert {line.split(b":")[0] for line in head.split(b"\r\n")[1:]} <= {b"Content-Type", b"Content-Length", b"Connection"}
    assert b"\r" not in head.replace(b"\r\n", b"") and b"\n" not in head.replace(b"\r\n", b""), exchange
    assert json.loads(body) and b"\x85" not in exchange.all, exchange
    assert lab.connections == []


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\npoison\n", b"poison", b"\r\n", b"0\r\n\r\n"])
def test_second_answer_of_the_origin(sbx, lab, extra):
    """F58: bytes behind an answer are nobody's answer; the next request of the client gets its own."""
    lab.zone["double.test"] = ["192.0.2.61"]
    served = []

    def serve(stream):
        while request := stream.recv(65536):
            served.append(request.split(b" ")[1])
            stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nmine\n" + extra)
    with placed(lab, "192.0.2.61", 80, serve):
        first, second = get("http://double.test/1"), get("http://double.test/2")
        pipelined, separate = converse(sbx, [[first + second], [first, second]], "--allow", "double.test")
    for exchange in (pipelined, separate):
        assert b"poison" not in exchange.all, exchange
        assert exchange.all.count(b"mine") == exchange.all.count(b"HTTP/1.1 200"), exchange
    assert set(served) <= {b"/1", b"/2"}


def test_answer_cut_at_every_byte(sbx, lab):
    """F57: an origin that leaves, or resets, after any byte: never a whole answer, unless it was whole; and the client's
    connection ends, since what came next would be taken for the rest."""
    lab.zone["cut.test"] = ["192.0.2.62"]
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
    state = []

    def serve(stream):
        count, hard = divmod(int(stream.recv(65536).split(b" ")[1][1:]), 2)
        state.append(count)
        stream.sendall(answer[:count])
        if hard:
            reset(stream)
    with placed(lab, "192.0.2.62", 80, serve):
        head = len(answer) - len(b"body")
        requests = [[get(f"http://cut.test/{n}", *(["Connection: close"] if n // 2 < head else []))]
                    for n in range(2 * len(answer) + 2)]
        exchanges = converse(sbx, requests, "--allow", "cut.test", silence=2)
    for number, exchange in enumerate(exchanges):
        whole = exchange.status == 200 and exchange.body == b"body"
        assert exchange.closed or whole, (number, exchange)
        assert whole if number == 2 * len(answer) else not whole or number > 2 * len(answer), (number, exchange)
        assert exchange.status == 502 or number // 2 >= head, (number, exchange)


# Leaving.

HANDSHAKES = {
    "connect": ("HTTP", "CONNECT"), "request": ("HTTP", "GET"), "socks": ("SOCKS", "b'\\5\\1\\0' + socks(b'origin.test', 443)"),
    "tls": ("('origin.test', 443)", "hello('origin.test')[:150]"), "tls by connect": ("HTTP", "CONNECT + hello('origin.test')[:150]"),
    "tls by socks": ("SOCKS", "b'\\5\\1\\0' + socks(b'origin.test', 443) + hello('origin.test')[:150]"),
    "refused tls": ("('198.51.100.66', 443)", "hello('evil.test')[:150]"),
    "bare http": ("('origin.test', 80)", "GET.replace(b'http://origin.test/', b'/')"),
    "dns over tcp": ("('192.0.2.53', 53)", "over_tcp(question('origin.test')) + over_tcp(question('evil.test', 28))"),
}


@pytest.mark.parametrize("handshake", HANDSHAKES)
def test_leaving_at_every_byte(sbx, lab, handshake):
    """A client that closes, half-closes or resets after any byte of any handshake leaves nothing open behind it, inside or
    towards an origin, and the next one is served."""
    address, data = HANDSHAKES[handshake]
    code = f"""
def fetch(): s = socket.create_connection(HTTP); s.settimeout(50); s.sendall(GET); return read_all(s)[:12].decode()
def count():
    # Sockets of the sandbox's network that are neither listening (0A) nor closed for good (06, 07).
    lines = [l.split()[3] for f in ("tcp", "tcp6") for l in open("/proc/net/" + f).readlines()[1:]]
    return sum(state not in ("0A", "06", "07") for state in lines)
def settle():
    for _ in range(100):
        if not count(): break
        time.sleep(0.1)
fetch(); settle(); tick()
data = {data}
for length in range(len(data) + 1):
    for way in ("close", "half", "reset"):
        s = socket.create_connection({address}); s.settimeout(50); s.sendall(data[:length])
        if way == "reset": s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if way == "half":
            s.shutdown(socket.SHUT_WR)
            if length % 10 == 0: read_all(s)
        s.close()
settle(); tick(count(), fetch())
"""
    with Attack(sbx, code, *ALLOW) as attack:
        attack.tick()
        before = attack.descriptors()
        attack.go()
        assert attack.tick() == [0, "HTTP/1.1 200"]
        wait_until(lambda: before is None or attack.descriptors() <= before,
                   lambda: f"{before} descriptors, now {attack.descriptors()}", LESS_THAN_EXPIRY)
        attack.go()
        attack.end()


def test_leaving_while_the_origin_is_silent(sbx, lab):
    """The same where the connection to the origin stands, or is still being made."""
    lab.zone["mute.test"] = ["192.0.2.63"]
    with placed(lab, "192.0.2.63", 443, lambda stream: stream.recv(65536) and stream.recv(1)) as ended:
        code = """
for address, begin in ((HTTP, CONNECT.replace(b"origin", b"mute")), (SOCKS, b"\\5\\1\\0" + socks(b"mute.test", 443)), (("mute.test", 443), b"")):
    for n in range(20):
        s = socket.create_connection(address); s.settimeout(50); s.sendall(begin + (hello("mute.test") if n % 2 else b"")); s.close()
tick()
"""
        with Attack(sbx, code, "--allow", "mute.test") as attack:
            attack.tick()
            wait_until(ended.is_set, "an origin is let go")
            attack.go()
            attack.end()
