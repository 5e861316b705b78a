"""Programs that know no proxy (F50, F62, F63): names, addresses and ports as they are, judged all the same."""
import json
import os
import socket
import subprocess
import threading

import pytest

from harness.procs import descendants
from harness.sbx import PYTHON

# What a program that knows no proxy does. Each word is a step; the answers come as JSON.
CLIENT = """
import errno, json, os, socket, sys, time
for name in list(os.environ):
    if name.lower().endswith("_proxy"): del os.environ[name]
def tcp(host, port, data=b"", family=0):
    info = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    s = socket.socket(info[0]); s.settimeout(40); s.connect(info[4])
    if data: s.sendall(data)
    return s
def attempt(function):
    try: return function()
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error)) if not isinstance(error, socket.gaierror) else "gai %d" % error.errno
"""


def steps(sbx, code, *options, **more):
    return sbx.python(CLIENT + code, *options, **more)


def curl(sbx, words, *options):
    return sbx.shell(f"unset $(env | sed -n 's/=.*//p' | grep -i _proxy); exec curl -sS --noproxy '*' {words}", *options)


@pytest.mark.parametrize("words", ["http://origin.test/", "https://origin.test/", "-4 http://origin.test/",
                                   "-6 http://origin.test/", "-4 https://origin.test/", "-6 https://origin.test/"])
def test_curl_without_a_proxy(sbx, lab, words):
    """F50: no variable, no option; IPv4 and IPv6, clear and TLS."""
    assert curl(sbx, words, "--allow", "origin.test").ok().out == "lab page of origin.test\n"
    assert {r.host for r in lab.requests} == {"origin.test"}


def test_literal_addresses(sbx, lab):
    """An address is judged as an address; what leads nowhere is told."""
    options = ["--allow", "192.0.2.0/24", "--allow", "2001:db8::/32"]
    assert curl(sbx, "http://192.0.2.10/", *options).ok().out == "lab page of 192.0.2.10\n"
    assert curl(sbx, "'http://[2001:db8::10]/'", *options).ok().out.startswith("lab page of ")
    assert curl(sbx, "https://192.0.2.10/", *options).ok().out == "lab page of 192.0.2.10\n"
    assert {r.address for r in lab.requests} == {"192.0.2.10", "2001:db8::10"}


def test_denied_name(sbx, lab, project):
    """P2, P10: NXDOMAIN at once; nothing is asked of the host's name server; summary and audit have it."""
    path = project.home + "/audit.jsonl"
    result = steps(sbx, "print(attempt(lambda: tcp('secret.evil.test', 80)))", "--allow", "origin.test", "--audit", path)
    assert result.out == "gai -2\n", result
    summary, = result.messages
    assert "secret.evil.test" in summary and "not-allowed" in summary and "--allow secret.evil.test" in summary, summary
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert {(n["event"], n["via"], n["verdict"], n["host"]) for n in lines} == \
        {("lookup", "dns", "deny", "secret.evil.test")}
    assert len(lines) == 1 and "denied 1x " in summary, (lines, summary)
    assert lab.dns.queries == [] and lab.connections == []


def test_denied_lookups_are_counted_as_the_client_makes_them(sbx, project):
    """A and AAAA of a name are one lookup; the same type again is another."""
    path = project.home + "/audit.jsonl"
    code = """
for n in range(3): attempt(lambda: tcp("a.evil.test", 80)); attempt(lambda: tcp("b.evil.test", 80))
for n in range(2): attempt(lambda: tcp("c.evil.test", 80, family=socket.AF_INET6))
"""
    result = steps(sbx, code, "--allow", "origin.test", "--audit", path)
    counts = {host: m for m in result.messages for host in ("a.evil.test", "b.evil.test", "c.evil.test") if host in m}
    assert "denied 3x" in counts["a.evil.test"] and "denied 3x" in counts["b.evil.test"], result
    assert "denied 2x" in counts["c.evil.test"] and len(result.messages) == 3, result
    with open(path) as file:
        assert len(file.readlines()) == 8


def test_denied_address_over_http(sbx, lab):
    """P10: the same 403 as everywhere."""
    result = curl(sbx, "-w '%{http_code}' http://198.51.100.66/", "--allow", "origin.test")
    body, code = result.out.rsplit("\n", 1)
    assert code == "403" and json.loads(body)["reason"] == "not-allowed", result
    assert json.loads(body)["host"] == "198.51.100.66"
    assert any("198.51.100.66:80" in m and "--allow 198.51.100.66" in m for m in result.messages), result
    assert lab.connections == []


def test_denied_address_under_another_name(sbx, lab):
    """P10: a program that has the address from elsewhere names its own idea of the host: what helps is told first."""
    result = curl(sbx, "--connect-to intern.corp:80:198.51.100.66:80 http://intern.corp/", "--allow", "origin.test")
    denial = json.loads(result.out)
    assert (denial["host"], denial["reason"]) == ("198.51.100.66", "not-allowed"), result
    assert "--allow 198.51.100.66" in denial["fix"], result
    assert lab.connections == []


def test_denied_address_over_tls(sbx, lab):
    """An alert that names the matter, not a reset."""
    result = curl(sbx, "https://198.51.100.66/", "--allow", "origin.test")
    assert result.code == 35 and "access denied" in result.err, result
    assert lab.connections == []


def test_denied_and_silent(sbx, lab):
    """A client that waits for the server is reset, and told to the summary."""
    code = """
s = tcp("198.51.100.66", 22); print(attempt(lambda: s.recv(10)))
s = tcp("198.51.100.66", 22, b"\\0\\1\\2"); print(attempt(lambda: s.recv(10)))
"""
    result = steps(sbx, code, "--allow", "origin.test:22")
    assert result.out == "ECONNRESET\nECONNRESET\n", result
    assert ["2x" in m and "198.51.100.66:22" in m for m in result.messages] == [True], result
    assert lab.connections == []


@pytest.mark.parametrize("name, url, code, word", [
    ("no-such-name.test", "http://no-such-name.test/", "502", "resolve-failed"),
    ("refused.test", "http://refused.test/", None, None),
    ("loop.test", "http://loop.test/", "403", "address-loopback"),
    ("metadata.test", "http://metadata.test/", "403", "address-metadata"),
    ("nat64.test", "http://nat64.test/", "403", "address-private"),
])
def test_what_a_name_leads_to_is_judged(sbx, lab, name, url, code, word):
    """F52, P10: on this path too; failures are told apart from denials."""
    result = curl(sbx, f"-w '%{{http_code}}' {url}", "--allow", name)
    if code is not None:
        body, found = result.out.rsplit("\n", 1)
        assert found == code and json.loads(body)["reason"] == word, result
        assert lab.connections == []


def test_origin_that_refuses(sbx, lab):
    code = """
s = tcp("refused.test", 81, b"GET / HTTP/1.1\\r\\nHost: refused.test\\r\\n\\r\\n"); print(s.recv(4000).decode().split("\\r\\n")[0])
s = tcp("refused.test", 81, b"\\x16\\3\\1\\0\\5"); print(attempt(lambda: s.recv(10)))
s = tcp("refused.test", 81); print(attempt(lambda: s.recv(10)))
"""
    lines = steps(sbx, code, "--allow", "refused.test:81").ok().out.splitlines()
    assert lines[0].startswith("HTTP/1.1 502 "), lines
    assert lines[1:] == ["ECONNRESET", "ECONNRESET"], lines


@pytest.mark.parametrize("family", ["socket.AF_INET", "socket.AF_INET6"])
def test_server_that_speaks_first(sbx, lab, family):
    """F50: ssh, databases, mail: the banner comes unasked, on a low and on a high port."""
    def greet(stream):
        stream.sendall(b"SSH-2.0-lab\r\n")
        stream.sendall(b"got " + stream.recv(100))
    servers = [lab.servers.listen(port, greet) for port in (2222, 220)]
    code = f"""
for port in (220, 2222):
    s = tcp("other.test", port, family={family}); print(s.recv(100)); s.sendall(b"SSH-2.0-client\\r\\n"); print(s.recv(100))
"""
    try:
        result = steps(sbx, code, "--allow", "other.test:220", "--allow", "other.test:2222").ok()
    finally:
        for server in servers:
            server.shutdown(socket.SHUT_RDWR)
            server.close()
    assert result.out == "b'SSH-2.0-lab\\r\\n'\nb'got SSH-2.0-client\\r\\n'\n" * 2, result


def test_high_port_by_name_stays_free_on_loopback(sbx, lab):
    """DESIGN 8: the program reaches db.test:5432 and serves 127.0.0.1:5432 itself, in either order."""
    lab.zone["db.test"] = ["192.0.2.11"]
    code = """
before = socket.create_server(("127.0.0.1", 5432))
s = tcp("db.test", 5432, b"ping\\n"); print(s.recv(100), s.getpeername()[0].startswith("198.1"))
v6 = socket.create_server(("::1", 5432), family=socket.AF_INET6)
own = tcp("127.0.0.1", 5432); before.accept()[0].sendall(b"own"); print(own.recv(10))
print(attempt(lambda: tcp("origin.test", 5432)))
"""
    result = steps(sbx, code, "--allow", "db.test:5432", "--allow", "origin.test").ok()
    assert result.out == "b'ping\\n' True\nb'own'\nECONNREFUSED\n", result
    assert lab.connections == [("echo", "192.0.2.11", 5432)]


def test_high_port_of_an_address(sbx, lab):
    code = """
own = socket.create_server(("127.0.0.1", 5432))
print(tcp("192.0.2.10", 5432, b"ping\\n").recv(100)); print(attempt(lambda: tcp("192.0.2.11", 5432)))
"""
    assert steps(sbx, code, "--allow", "192.0.2.10:5432").ok().out == "b'ping\\n'\nECONNREFUSED\n"
    assert lab.connections == [("echo", "192.0.2.10", 5432)]


def test_high_port_of_a_prefix_and_of_a_name(sbx, lab):
    """Both want the port; a listener on every address serves both."""
    code = "print(tcp('192.0.2.10', 5432, b'a\\n').recv(9), tcp('other.test', 5432, b'b\\n').recv(9))"
    result = steps(sbx, code, "--allow", "192.0.2.0/24:5432", "--allow", "other.test:5432").ok()
    assert result.out == "b'a\\n' b'b\\n'\n" and result.messages == [], result


def test_unlisted_ports_are_refused_at_once(sbx, lab):
    """P2"""
    code = """
answers = [attempt(lambda: tcp(host, port)) for host in ("origin.test", "192.0.2.10", "2001:db8::10", "8.8.8.8")
           for port in (22, 25, 8080, 5432)]
print(set(answers))
"""
    assert steps(sbx, code, "--allow", "origin.test").ok().out == "{'ECONNREFUSED'}\n"
    assert lab.connections == []


def test_refused_ports_are_told(sbx, project):
    """P10, N2: the kernel refuses what nobody listens on, and summary and audit have the reason and what to type."""
    path = project.home + "/audit.jsonl"
    code = """
print({attempt(lambda: tcp(host, port)) for host, port in
       (("origin.test", 22), ("198.51.100.66", 22), ("2001:db8::66", 5432), ("many.wild.test", 9000), ("127.0.0.1", 8123),
        ("::1", 8123), ("localhost", 8123))})
for family in (socket.AF_INET6, socket.AF_INET): attempt(lambda: tcp("other.test", 22, family=family))
"""
    result = steps(sbx, code, "--allow", "origin.test", "--allow", "other.test", "--allow", "*.wild.test:8000-9000",
                   "--audit", path)
    assert result.out == "{'ECONNREFUSED'}\n", result
    told = {word: m for m in result.messages for word in ("origin.test:22", "198.51.100.66:22", "2001:db8::66",
                                                          "other.test:22", "limit-ports") if word in m}
    assert len(told) == len(result.messages) == 5, result
    assert "port-not-allowed" in told["origin.test:22"] and "--allow origin.test:22 ..." in told["origin.test:22"], result
    assert "denied 1x other.test:22" in told["other.test:22"], result  # both addresses of a name are one connection
    assert "(not-allowed: " in told["198.51.100.66:22"] and "--allow 198.51.100.66:22 ..." in told["198.51.100.66:22"]
    assert "--allow [2001:db8::66]:5432 ..." in told["2001:db8::66"], result
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert {(n["via"], n["event"], n["verdict"]) for n in lines} == {("transparent", "connect", "deny")}, lines
    assert not any(n.get("host") in ("localhost", "127.0.0.1", "::1") for n in lines), lines


def test_many_refused_connections(sbx):
    """They are told or counted, and nothing hangs."""
    code = "print(len([1 for n in range(20000) if attempt(lambda: tcp('198.51.100.66', 2000 + n % 50)) == 'ECONNREFUSED']))"
    result = steps(sbx, code, "--allow", "origin.test").ok()
    assert result.out == "20000\n" and len(result.messages) == 50, result


def test_udp_is_refused_at_once(sbx, lab):
    """P2: whatever the rules say of TCP."""
    code = """
def udp(address, port):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(30)
    s.connect((address, port)); s.send(b"out"); return s.recv(10)
print({attempt(lambda: udp(a, p)) for a in ("192.0.2.10", "2001:db8::10", "127.0.0.1") for p in (443, 123, 5353, 7)})
"""
    assert steps(sbx, code, "--allow", "*:*", "--allow", "192.0.2.0/24:7").ok().out == "{'ECONNREFUSED'}\n"
    assert lab.datagrams == []


def test_addresses_are_stable(sbx):
    """Synthetic addresses are given once for the run, one per name."""
    code = """
look = lambda name: sorted({i[4][0] for i in socket.getaddrinfo(name, 80)})
first = [look("origin.test"), look("other.test"), look("ORIGIN.test.")]
again = [look("origin.test"), look("other.test"), look("origin.test")]
print(json.dumps([first, again]))
"""
    first, again = steps(sbx, code, "--allow", "origin.test", "--allow", "other.test").json
    assert first == again and first[0] == first[2] and not set(first[0]) & set(first[1]), first
    assert all(a.startswith(("198.18.", "2001:2:")) for a in first[0] + first[1]), first


def test_address_of_a_proxy_that_died_is_no_other_name(sbx, lab):
    """What meant A never means B: an address that the next proxy has not given stands for nothing."""
    code = """
a = socket.getaddrinfo("origin.test", 7, socket.AF_INET)[0][4][0]
print("ready", flush=True); sys.stdin.readline()
b = socket.getaddrinfo("other.test", 7, socket.AF_INET)[0][4][0]
s = socket.create_connection((a, 7)); s.settimeout(50); s.sendall(b"for origin.test"); print(a != b, attempt(lambda: s.recv(20)))
s = socket.create_connection((socket.gethostbyname("origin.test"), 7)); s.settimeout(50); s.sendall(b"x"); print(s.recv(9))
"""
    process = sbx.start("run", "--allow", "origin.test:7", "--allow", "other.test:7", "--", PYTHON, "-c", CLIENT + code,
                        stdin=-1)
    assert process.stdout.readline() == b"ready\n", process.stderr.read1()
    proxy, = [p for p in descendants(process.pid) if p.name == "sbx-proxy"]
    os.kill(proxy.pid, 9)
    out, err = process.communicate(b"\n", timeout=60)
    assert out == b"True ECONNRESET\nb'x'\n", (out, err)
    assert b"--allow 198.18" not in err and b"(resolve-failed: " in err, err
    assert {connection[1] for connection in lab.connections} <= {"192.0.2.10", "2001:db8::10"}


def test_wildcards_carry_nothing_out(sbx, lab):
    """A lookup below an allowed wildcard is answered here: no tunnel through the host's name server."""
    code = """
for n in range(50): socket.getaddrinfo("secret%d.wild.test" % n, 80)
print("done")
"""
    assert steps(sbx, code, "--allow", "*.wild.test").ok().out == "done\n"
    assert lab.dns.queries == []


DNS = """
import struct
def query(name, kind, ident=7, edns=None):
    head = struct.pack(">HHHHHH", ident, 0x0100, 1, 0, 0, 1 if edns else 0)
    question = b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\\0" + struct.pack(">HH", kind, 1)
    return head + question + (b"\\0" + struct.pack(">HHIH", 41, edns, 0, 0) if edns else b"")
def udp(message, server):
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(20); s.connect((server, 53)); s.send(message); return s.recv(4096)
def stream(messages, server):
    s = tcp(server, 53, b"".join(struct.pack(">H", len(m)) + m for m in messages)); f = s.makefile("rb")
    return [f.read(struct.unpack(">H", f.read(2))[0]) for _ in messages]
def show(answer):
    ident, flags, questions, answers, _, extra = struct.unpack(">HHHHHH", answer[:12])
    return [ident, flags & 15, questions, answers, extra]
"""


@pytest.mark.parametrize("server", ["192.0.2.53", "8.8.8.8", "127.0.0.53", "2001:db8::53"])
def test_stub_at_any_address(sbx, server):
    """The answer comes from the address that was asked (a connected socket would not take it otherwise), by UDP and TCP."""
    code = DNS + f"""
print(json.dumps([show(udp(query("origin.test", 1), "{server}")), show(udp(query("origin.test", 28, edns=4096), "{server}")),
                  [show(a) for a in stream([query("origin.test", 1, 1), query("evil.test", 1, 2)], "{server}")]]))
"""
    assert steps(sbx, code, "--allow", "origin.test").json == [[7, 0, 1, 1, 0], [7, 0, 1, 1, 1],
                                                               [[1, 0, 1, 1, 0], [2, 3, 1, 0, 0]]]


def test_stub_tells_names_that_no_host_can_have(sbx, project):
    """P10: refused, as ever, and told; a dot within a label makes no other name."""
    path = project.home + "/audit.jsonl"
    code = DNS + """
def labels(*words): return b"".join(bytes([len(w)]) + w for w in words) + b"\\0"
names = [labels(b"a b", b"test"), labels(b"origin.test"), labels(b"x\\0", b"test"), labels(b"127", b"1"), labels()]
for name in names:
    for kind in (1, 28, 33):
        print(show(udp(struct.pack(">HHHHHH", 7, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", kind, 1), "192.0.2.53"))[1], end=" ")
"""
    result = steps(sbx, code, "--allow", "origin.test", "--audit", path)
    assert result.out == "3 " * 15, result
    told = [m.split(" (")[0] for m in result.messages]
    assert told == ["denied 1x a b.test", "denied 1x origin.test", "denied 1x x?.test", "denied 1x 127.1"], result
    assert all("bad-target" in m for m in result.messages)
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert [n["host"] for n in lines] == ["a b.test"] * 2 + ["origin.test"] * 2 + ["x\0.test"] * 2 + ["127.1"] * 2, lines
    assert {(n["event"], n["verdict"], n["reason"]) for n in lines} == {("lookup", "deny", "bad-target")}


def test_stub_answers_once(sbx, lab):
    """Also where the answer waits for a listener, as of a name with a high port: one answer to each query, in their order."""
    code = DNS + """
names = ["a.wild.test", "b.wild.test", "a.wild.test", "evil.test", "c.wild.test"]
s = tcp("192.0.2.53", 53, b"".join(struct.pack(">H", len(m)) + m for m in (query(n, 1, i) for i, n in enumerate(names))))
s.shutdown(socket.SHUT_WR); f = s.makefile("rb"); got = []
while size := f.read(2): got.append(show(f.read(struct.unpack(">H", size)[0])))
print(json.dumps(got))
"""
    answers = steps(sbx, code, "--allow", "*.wild.test:5432").json
    assert answers == [[0, 0, 1, 1, 0], [1, 0, 1, 1, 0], [2, 0, 1, 1, 0], [3, 3, 1, 0, 0], [4, 0, 1, 1, 0]], answers


def test_stub_types_and_case(sbx):
    """HTTPS and SVCB are empty, other types refused; the name comes back as it was written (0x20)."""
    code = DNS + """
print(json.dumps([show(udp(query("origin.test", kind), "192.0.2.53"))[1:4] for kind in (1, 28, 65, 64, 16, 15, 255)] +
                 [b"oRiGiN" in udp(query("oRiGiN.test", 1), "192.0.2.53"), b"eViL" in udp(query("eViL.test", 1), "192.0.2.53")]))
"""
    assert steps(sbx, code, "--allow", "origin.test").json == \
        [[0, 1, 1], [0, 1, 1], [0, 1, 0], [0, 1, 0], [5, 1, 0], [5, 1, 0], [5, 1, 0], True, True]


def test_many_names_at_once(sbx, lab):
    """Lookups that need listeners wait for them, also where several ask at once."""
    code = """
import threading
bad = []
def one(n):
    try:
        if tcp("h%d.wild.test" % (n % 20), 5432, b"x\\n").recv(9) != b"x\\n": bad.append(n)
    except OSError as error: bad.append(str(error))
threads = [threading.Thread(target=one, args=(n,)) for n in range(60)]
[t.start() for t in threads]; [t.join() for t in threads]
print(bad)
"""
    assert steps(sbx, code, "--allow", "*.wild.test:5432").ok().out == "[]\n"


def test_names_leave_descriptors_for_connections(sbx, project):
    """A listener for each name and port: with a low limit on open files every front still answers, and the limit is told."""
    code = """
for n in range(60):
    try: socket.getaddrinfo("h%d.wild.test" % n, 8081)
    except OSError: pass
print(attempt(lambda: tcp("h0.wild.test", 7007, b"x\\n").recv(9)))
for port, ask in ((3128, b"GET http://origin.test/ HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: close\\r\\n\\r\\n"), (1080, b"\\5\\1\\0")):
    print(tcp("127.0.0.1", port, ask).recv(12))
"""
    limited = ["prlimit", "--nofile=1024:1024"]
    raises = subprocess.run([*limited, "prlimit", "--nofile=1025:1025", "true"], capture_output=True).returncode == 0
    result = steps(sbx, code, "--allow", "*.wild.test:7000-7015", "--allow", "origin.test", prefix=limited)
    assert result.out.splitlines()[1:] == ["b'HTTP/1.1 200'", "b'\\x05\\x00'"], result
    assert raises or any("limit-ports" in message for message in result.messages), result


@pytest.fixture
def host_server():
    """A server on the host's loopback only, which names itself."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                stream, _ = server.accept()
            except OSError:
                return
            with stream:
                stream.sendall(b"host " + stream.recv(100))
    threading.Thread(target=serve, daemon=True).start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()


@pytest.mark.parametrize("how", ["forward", "mapped", "rule"])
def test_forward(sbx, host_server, how):
    """F63: the host's loopback, per port, at 127.0.0.1 and ::1 inside, whatever is sent first."""
    port = 15432 if how == "mapped" else host_server
    options = {"forward": ["--forward", str(port)], "mapped": ["--forward", f"{host_server}:{port}"],
               "rule": ["--allow", f"localhost:{port}"]}[how]
    code = f"""
for host in ("127.0.0.1", "::1", "localhost"):
    print(tcp(host, {port}, b"GET / HTTP/1.1\\r\\nHost: elsewhere\\r\\n\\r\\n").recv(9))
print(attempt(lambda: tcp("127.0.0.2", {port})), attempt(lambda: tcp("192.0.2.10", {port})))
"""
    result = steps(sbx, code, *options).ok()
    assert result.out == "b'host GET '\n" * 3 + "ECONNREFUSED ECONNREFUSED\n", result


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_rule_for_an_address_of_the_loopback(sbx, host_server, address):
    """As `localhost:PORT`, and that address of the host alone; `why` says the same."""
    rule = f"[{address}]:{host_server}" if ":" in address else f"{address}:{host_server}"
    code = f"""
for host in ("127.0.0.1", "::1", "127.0.0.2"):
    def say():
        try: return tcp(host, {host_server}, b"x").recv(9) or "end"
        except ConnectionResetError: return "reset"
    print(host, attempt(say))
"""
    result = steps(sbx, code, "--allow", rule).ok()
    # The server is at 127.0.0.1; where the rule names ::1 nobody serves that address.
    assert result.out == {"127.0.0.1": "127.0.0.1 b'host x'\n::1 ECONNREFUSED\n127.0.0.2 ECONNREFUSED\n",
                          "::1": "127.0.0.1 ECONNREFUSED\n::1 reset\n127.0.0.2 ECONNREFUSED\n"}[address], result
    assert sbx("why", "--allow", rule, rule).code == 0
    if address == "::1":
        assert any("::1" in m and "connect-refused" in m for m in result.messages), result


def test_deny_wins_over_an_address_of_the_loopback(sbx, host_server):
    code = f"s = tcp('127.0.0.1', {host_server}, b'x'); print(attempt(lambda: s.recv(9)))"
    result = steps(sbx, code, "--allow", f"127.0.0.1:{host_server}", "--deny", f"localhost:{host_server}")
    assert result.out == "ECONNRESET\n" and "deny-rule" in result.err, result


PAGE = "import urllib.request; page = urllib.request.urlopen('http://origin.test/').read()\n"  # by the variables


@pytest.mark.parametrize("port", [3128, 1080])
@pytest.mark.parametrize("how", ["forward", "rule", "address", "name", "publish"])
def test_the_proxy_makes_way(sbx, lab, how, port):
    """A port that the policy names is not the proxy's own; the variables lead to where it is."""
    lab.zone["proxy.test"] = ["192.0.2.11"]
    server = lab.servers.listen(port, lambda stream: stream.sendall(b"server " + stream.recv(9)))
    options = {"forward": ["--forward", str(port)], "rule": ["--allow", f"localhost:{port}"],
               "address": ["--allow", f"192.0.2.11:{port}"], "name": ["--allow", f"proxy.test:{port}"],
               "publish": ["--publish", f"{port + 20000}:{port}"]}[how]
    host = {"address": "192.0.2.11", "name": "proxy.test"}.get(how, "127.0.0.1")
    code = "print(page)\n"
    code += f"print(tcp('{host}', {port}, b'hi').recv(20))" if how != "publish" else \
        f"s = socket.create_server(('127.0.0.1', {port})); print(b'server hi')"
    try:
        result = sbx.python(PAGE + CLIENT + code, "--allow", "origin.test", *options)
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    assert result.out == "b'lab page of origin.test\\n'\nb'server hi'\n", result


def test_forward_of_a_low_port(sbx, lab):
    """A port that has a listener on every address is told apart by the address."""
    code = "print(tcp('127.0.0.1', 80, b'GET /status/204 HTTP/1.0\\r\\n\\r\\n').recv(12))"
    assert steps(sbx, code, "--forward", "80").ok().out == "b'HTTP/1.1 204'\n"
    assert lab.connections == [("http", "127.0.0.1", 80)]


def test_forward_that_nobody_serves(sbx):
    code = "s = tcp('127.0.0.1', 15433, b'x'); print(attempt(lambda: s.recv(9)))"
    assert steps(sbx, code, "--forward", "15433").ok().out == "ECONNRESET\n"


def test_deny_wins_over_forward(sbx, lab):
    code = "s = tcp('127.0.0.1', 8080, b'GET / HTTP/1.0\\r\\n\\r\\n'); print(attempt(lambda: s.recv(9)))"
    for rule in ("localhost:8080", "127.0.0.1:8080", "127.0.0.0/8"):
        result = steps(sbx, code, "--forward", "8080", "--deny", rule, "--deny", "[::1]:8080")
        assert result.out == "ECONNRESET\n" and "deny-rule" in result.err, result
    assert lab.connections == []
    result = steps(sbx, code.replace("8080", "8081"), "--forward", "8080:8081", "--deny", "[::1]")
    assert result.ok().out == "b'HTTP/1.1 '\n" and lab.connections == [("http", "127.0.0.1", 8080)]


def test_large_streams_and_half_close(sbx, lab):
    """F57"""
    code = """
s = tcp("other.test", 7, bytes(1) + bytes(range(256)) * 4000 ); s.shutdown(socket.SHUT_WR)
got = b""
while data := s.recv(65536): got += data
print(len(got), got[1:] == bytes(range(256)) * 4000)
"""
    assert steps(sbx, code, "--allow", "other.test:7").ok().out == "1024001 True\n"


def test_a_word_without_a_line_end_goes_on(sbx):
    """What could become a request is waited for, not for ever."""
    assert steps(sbx, "print(tcp('other.test', 7, b'hello').recv(9))", "--allow", "other.test:7").ok().out == "b'hello'\n"


def test_java_like_and_git(sbx, lab):
    """Whole programs: git over http without variables."""
    result = sbx.shell("unset $(env | sed -n 's/=.*//p' | grep -i _proxy); wget -qO- http://origin.test/; "
                       f"{PYTHON} -c 'import urllib.request as u; print(u.urlopen(\"https://origin.test/\").read())'",
                       "--allow", "origin.test").ok()
    assert result.out == "lab page of origin.test\nb'lab page of origin.test\\n'\n", result


def test_audit_of_this_path(sbx, project):
    path = project.home + "/audit.jsonl"
    code = "tcp('other.test', 7, b'x\\n').recv(9); tcp('origin.test', 80, b'GET /p?q HTTP/1.0\\r\\n\\r\\n').recv(9)"
    steps(sbx, code, "--allow", "other.test:7", "--allow", "origin.test", "--audit", path).ok()
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert all(line["via"] == "transparent" for line in lines), lines
    assert {(n["event"], n["host"], n["port"], n.get("path")) for n in lines} == \
        {("connect", "other.test", 7, None), ("connect", "origin.test", 80, None), ("request", "origin.test", 80, "/p")}
    assert "192.0.2.11" in {n["ip"] for n in lines}, lines
