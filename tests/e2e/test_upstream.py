"""The proxy that the host has to use (F60): every front through every kind of parent, with its login, and what it says
when it fails. The login is nowhere inside."""
import base64
import json
import os
import socket
import subprocess

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON
from lab.origin import reset
from lab.parent import HttpParent, SocksParent

ADDRESS = "192.0.2.80"
NAMES = {"origin.test": "192.0.2.10", "other.test": "192.0.2.11", "parentonly.test": "192.0.2.10", "evil.test": "198.51.100.66"}
USER, PASSWORD = "corp user", "pa:ss@w%rd"
LOGIN = "corp%20user:pa:ss%40w%25rd@"
PORTS = {"http": 3128, "socks5": 1080, "socks5h": 1080}

CLIENT = """
import base64, errno, json, os, socket, ssl, struct, sys, urllib.request, urllib.error
def http(url):
    try: return urllib.request.urlopen(url, timeout=60).read().decode()
    except urllib.error.HTTPError as error: return [error.code, json.loads(error.read())["reason"]]
    except urllib.error.URLError as error: return str(error.reason)
def read(s, n):
    got = b""
    while len(got) < n and (data := s.recv(n - len(got))): got += data
    return got
def socks(host, port, data):
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(60)
    s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    code = read(s, 12)[3]
    if code: return code
    s.sendall(data); return s.recv(100).decode()
def direct(host, port, data):
    try: s = socket.create_connection((host, port), timeout=60); s.sendall(data); return s.recv(100).decode()
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
"""


@pytest.fixture
def parents(lab):
    """Makes parents at ADDRESS, by the scheme of their URL."""
    made = []

    def make(scheme, login=None, address=ADDRESS):
        kind = HttpParent if scheme == "http" else SocksParent
        made.append(kind(lab.servers, address, PORTS[scheme], dict(NAMES), login))
        return made[-1]
    lab.zone["proxy.test"] = [ADDRESS]
    yield make
    for parent in made:
        parent.close()


def url(scheme, login=LOGIN, host=ADDRESS):
    return f"{scheme}://{login}{host}:{PORTS[scheme]}"


def steps(sbx, code, *options, **more):
    return sbx.python(CLIENT + code, *options, **more)


FRONTS = """
print(json.dumps([http("http://origin.test/"), http("https://origin.test/"), socks("other.test", 7, b"socks\\n"),
                  direct("other.test", 7, b"\\1direct\\n"), direct("origin.test", 80, b"GET /status/204 HTTP/1.0\\r\\n\\r\\n")[:12]]))
"""
ALLOW = ["--allow", "origin.test", "--allow", "other.test:7"]


@pytest.mark.parametrize("how", ["variable", "policy"])
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_every_front(sbx, lab, project, parents, scheme, how):
    """With a login that has to be decoded; by the host's variable and by the policy."""
    parent = parents(scheme, (USER, PASSWORD))
    options, env = [*ALLOW], {}
    if how == "variable":
        env = {"HTTP_PROXY": url(scheme), "https_proxy": url(scheme)}
    else:
        options += ["--policy", project.policy("p.json", network={"upstreamProxy": url(scheme)})]
    result = steps(sbx, FRONTS, *options, env=env)
    assert result.json == ["lab page of origin.test\n", "lab page of origin.test\n", "socks\n", "\1direct\n", "HTTP/1.1 204"]
    assert len(parent.asked) >= 5, parent.asked
    assert {r.get("proxy-authorization") for r in lab.requests} == {None}
    targets = {target for _, target in parent.asked}
    if scheme == "socks5":  # judged here, and asked for by address
        assert lab.dns.asked("origin.test") and not any("test" in target for target in targets), targets
    else:
        assert not lab.dns.asked("origin.test") and not lab.dns.asked("other.test"), lab.dns.queries
        assert {"origin.test:443", "other.test:7"} <= targets, targets
    if scheme == "http":  # as a host's own program would ask
        assert ("GET", "http://origin.test/") in parent.asked and ("CONNECT", "origin.test:443") in parent.asked


@pytest.mark.parametrize("scheme", PORTS)
def test_credentials(sbx, lab, project, parents, scheme):
    """On the terminated leg too, on every front and for each connection of it: the parent sees TLS, and its login is not
    the origin's."""
    parent = parents(scheme, (USER, PASSWORD))
    bound = {"bound": {"source": {"env": "KEY"}, "env": "KEY", "bind": ["origin.test"]}}
    code = """
import http.client
answers = []
for how in (lambda: http.client.HTTPSConnection("origin.test", timeout=60), proxied):
    connection = how()
    for path in ("/", "/close/5", "/"):  # the origin closes after the second
        connection.request("GET", path, headers={"Authorization": "Bearer " + os.environ["KEY"]})
        answers.append(connection.getresponse().read().decode("latin-1"))
print(json.dumps(answers))
"""
    proxied = """
def proxied():
    connection = http.client.HTTPSConnection("127.0.0.1", 3128, timeout=60)
    connection.set_tunnel("origin.test", 443)
    return connection
"""
    result = steps(sbx, proxied + code, "--policy", project.policy("p.json", credentials=bound),
                   env={"KEY": "the-value-of-the-key-outside", "HTTP_PROXY": url(scheme), "https_proxy": url(scheme)})
    assert result.json == ["lab page of origin.test\n", "\0\1\2\3\4", "lab page of origin.test\n"] * 2, result
    assert [r.get("authorization") for r in lab.requests] == ["Bearer the-value-of-the-key-outside"] * 6
    assert {r.get("proxy-authorization") for r in lab.requests} == {None} and all(r.secure for r in lab.requests)
    assert len(parent.asked) >= 4 and all(kind != "GET" for kind, _ in parent.asked), parent.asked


def test_parent_by_name_and_unencrypted_port(sbx, lab, parents):
    parent = parents("http")
    result = steps(sbx, "print(http('http://origin.test:8080/'), end='')", "--allow", "origin.test:8080",
                   env={"http_proxy": "proxy.test:3128/"})
    assert result.ok().out == "lab page of origin.test:8080\n", result
    assert parent.asked == [("GET", "http://origin.test:8080/")] and parent.logins == [None]
    assert lab.dns.asked("proxy.test") and not lab.dns.asked("origin.test")


def test_name_that_only_the_parent_knows(sbx, lab, parents):
    parent = parents("http")
    result = steps(sbx, "print(http('http://parentonly.test/'), end='')", "--allow", "parentonly.test",
                   env={"http_proxy": url("http", "")})
    assert result.ok().out == "lab page of parentonly.test\n" and len(parent.asked) == 1


def test_parent_that_tunnels_to_443_only(sbx, parents):
    """As squid does unless it is told otherwise: http:// has to come as a request."""
    parent = parents("http")
    parent.tunnel_ports = {443}
    code = 'print(http("http://origin.test/"), http("https://origin.test/"), direct("other.test", 7, b"\\1x"))'
    result = steps(sbx, code, *ALLOW, env={"ALL_PROXY": url("http", "")})
    assert result.out == "lab page of origin.test\n lab page of origin.test\n ECONNRESET\n", result
    summary, = result.messages
    assert "other.test:7" in summary and "parent-refused" in summary and f"http://{ADDRESS}:3128: it answered 403" in summary


def test_websocket_goes_through_a_tunnel(sbx, lab, parents):
    parent = parents("http")
    code = """
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"GET http://origin.test/websocket HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\\r\\n")
print(read(s, 12)); s.sendall(b"\\x81\\x84ping"); got = b""
while b"ping" not in got: got += s.recv(999)
print("pong")
"""
    assert steps(sbx, code, *ALLOW, env={"http_proxy": url("http", "")}).ok().out == "b'HTTP/1.1 101'\npong\n"
    assert parent.asked == [("CONNECT", "origin.test:80")]


@pytest.mark.parametrize("scheme", ["http", "socks5h"])
def test_server_that_speaks_first(sbx, lab, parents, scheme):
    """Its bytes may come in one piece with the parent's answer."""
    parent = parents(scheme)
    parent.greet = b"220 hello\n"
    result = steps(sbx, "print(direct('other.test', 7, b''), end='')", "--allow", "other.test:7",
                   env={"all_proxy": url(scheme, "")})
    assert result.ok().out == "220 hello\n"


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize("login", ["", "corp%20user:wrong@"])
def test_wrong_login(sbx, lab, project, parents, scheme, login):
    """One reason on every front, naming the parent, and no 407 for the command."""
    parents(scheme, (USER, PASSWORD))
    path = project.home + "/audit.jsonl"
    result = steps(sbx, FRONTS, *ALLOW, "--audit", path, env={"HTTP_PROXY": url(scheme, login), "HTTPS_PROXY": url(scheme, login)})
    assert result.json == [[502, "parent-auth"], "Tunnel connection failed: 502 " + result.json[1].split("502 ")[1], 1,
                           "ECONNRESET", "HTTP/1.1 502"], result
    assert "wants a user and password" in result.json[1] and f"{scheme}://{ADDRESS}" in result.json[1]
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    assert {(n["verdict"], n["reason"]) for n in lines} == {("error", "parent-auth")}
    assert {n["parent"] for n in lines} == {f"{scheme}://{ADDRESS}:{PORTS[scheme]}"}, lines
    assert lab.connections == [] and "wrong" not in result.err + result.out + str(lines), result
    assert all("parent-auth" in m and f"{scheme}://{ADDRESS}" in m for m in result.messages), result


@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_parent_that_is_down(sbx, lab, scheme):
    """Says so, on every front, and nothing goes past it."""
    result = steps(sbx, FRONTS, *ALLOW, env={"HTTP_PROXY": url(scheme), "HTTPS_PROXY": url(scheme)})
    first, second, third, fourth, fifth = result.json
    assert (first, third, fourth, fifth) == ([502, "parent-unreachable"], 1, "ECONNRESET", "HTTP/1.1 502"), result
    assert "the proxy that the host has to use could not be reached" in second and f"{scheme}://{ADDRESS}" in second, second
    assert {(k, a) for k, a, _ in lab.connections} == set(), lab.connections
    assert "pa:ss" not in result.err + result.out and "%40" not in result.err + result.out


def test_parent_whose_name_is_unknown(sbx):
    result = steps(sbx, 'print(http("http://origin.test/"))', *ALLOW, env={"http_proxy": "http://nosuch.test:3128"})
    assert result.ok().out == "[502, 'parent-unreachable']\n"


@pytest.mark.parametrize("scheme, answers", [
    ("http", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\n\n", b"HTTP/1.1 101 Switching\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n",
              b"HTTP/1.1 200 OK\r\nX: " + b"a" * 20000]),
    ("socks5h", [b"", b"\x04\x00", b"\x05\x01", b"\x05\x02", b"\x05\x00\x05\x00\x01\x01", b"\x05\x00\x05\x00\x00\x09aaaa"]),
])
def test_answers_that_are_none(sbx, lab, parents, scheme, answers):
    parent = parents(scheme)
    for answer in answers:
        parent.say = answer
        result = steps(sbx, 'print(http("https://origin.test/"))', *ALLOW, env={"https_proxy": url(scheme, "")})
        assert "502" in result.out and "is not well formed" in result.out, (answer, result)
    assert lab.connections == []


@pytest.mark.parametrize("scheme, answer", [("http", b"HTTP/1.1 200 OK\r\nVia: x\r\n\r\n"),
                                            ("socks5h", b"\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")])
def test_parent_that_leaves_at_every_byte(sbx, lab, project, scheme, answer):
    """Of its handshake, by a close or a reset: told as the parent's failure, and nothing goes past it."""
    path = project.home + "/audit.jsonl"
    cuts = [(length, hard) for length in range(len(answer)) for hard in (False, True)]
    left = iter(cuts)

    def serve(stream):
        stream.recv(65536)
        length, hard = next(left)
        stream.sendall(answer[:length])
        if hard:
            reset(stream)
    listener = lab.servers.listen(PORTS[scheme], serve, ADDRESS)
    try:
        result = steps(sbx, f"for _ in range({len(cuts)}): print(http('https://origin.test/'), flush=True)", *ALLOW, "--audit", path,
                       env={"https_proxy": url(scheme, "")}).ok()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    lines = result.out.splitlines()
    assert len(lines) == len(cuts) and all("502" in line and f"{scheme}://{ADDRESS}" in line for line in lines), result
    with open(path) as file:
        told = {(line["verdict"], line["reason"]) for line in map(json.loads, file)}
    assert told <= {("error", "parent-bad-reply"), ("error", "parent-unreachable")}, told
    assert next(left, None) is None and lab.connections == []


@pytest.mark.parametrize("scheme, reason", [("http", "parent-refused"), ("socks5h", "connect-failed")])
def test_target_that_the_parent_cannot_reach(sbx, project, parents, scheme, reason):
    parents(scheme)
    path = project.home + "/audit.jsonl"
    steps(sbx, "print(socks('nosuch.test', 443, b'x'))", "--allow", "nosuch.test", "--audit", path, env={"https_proxy": url(scheme, "")})
    with open(path) as file:
        line, = [json.loads(line) for line in file]
    assert line["reason"] == reason and "ip" not in line, line


@pytest.mark.parametrize("no_proxy, through", [
    ("", True), ("origin.test", False), (".origin.test", False), ("*.test", False), ("test", False), ("*", False),
    ("rigin.test", True), ("other.test, origin.test", False), ("origin.test:80", False), ("origin.test:443", True),
    ("192.0.2.0/24", True), ("ORIGIN.TEST.", False), ("www.origin.test", True), ("<local> 10.*", True),
])
def test_no_proxy(sbx, lab, parents, no_proxy, through):
    """What it names is reached directly, and judged as ever."""
    parent = parents("http")
    result = steps(sbx, "print(http('http://origin.test/'), end='')", *ALLOW, env={"http_proxy": url("http", ""), "NO_PROXY": no_proxy})
    assert result.ok().out == "lab page of origin.test\n"
    assert bool(parent.asked) == through and lab.dns.asked("origin.test") == (not through), parent.asked


def test_no_proxy_with_addresses(sbx, parents):
    parent = parents("http")
    code = "print(http('http://192.0.2.10/') == http('http://192.0.2.11/') == http('http://[2001:db8::10]/'))"
    allow = ["--allow", "192.0.2.0/24", "--allow", "2001:db8::/32"]
    steps(sbx, code, *allow, env={"http_proxy": url("http", ""), "no_proxy": "192.0.2.10/31,2001:db8::10"}).ok()
    assert parent.asked == []
    steps(sbx, code, *allow, env={"http_proxy": url("http", ""), "no_proxy": "192.0.2.10,[2001:db8::10]:80"}).ok()
    assert parent.asked == [("GET", "http://192.0.2.11/")]


def test_the_rules_hold_all_the_same(sbx, lab, parents):
    """P2: name and address of the target are judged before the parent hears of them."""
    parent = parents("http")
    code = 'print(http("http://evil.test/"), http("http://10.0.0.1/"), http("http://169.254.169.254/"), socks("evil.test", 443, b"x"))'
    result = steps(sbx, code, "--allow", "origin.test", "--allow", "*", "--deny", "evil.test:*", env={"ALL_PROXY": url("http", "")})
    assert result.out == "[403, 'deny-rule'] [403, 'address-private'] [403, 'address-metadata'] 2\n" or \
        "deny-rule" in result.out and result.out.endswith(" 2\n") and result.out.count("403") == 3, result
    assert parent.asked == [] and lab.connections == []


def test_socks5_judges_the_address(sbx, lab, parents):
    """F52: with socks5:// a name that leads to a private place is refused here."""
    parent = parents("socks5")
    result = steps(sbx, 'print(http("http://private.test/"), http("http://loop.test/"))', "--allow", "private.test", "--allow",
                   "loop.test", env={"http_proxy": url("socks5", "")})
    assert result.out == "[403, 'address-private'] [403, 'address-loopback']\n" and parent.asked == [], result


def test_loopback_goes_without(sbx, lab, parents):
    """The host's own loopback is not the parent's."""
    parent = parents("http")
    code = "print(http('http://localhost/status/200'), direct('127.0.0.1', 7, b'x\\n'), end='')"
    steps(sbx, code, "--allow", "localhost", "--forward", "7", env={"ALL_PROXY": url("http", "")}).ok()
    assert parent.asked == [] and ("echo", "127.0.0.1", 7) in lab.connections


def test_none_goes_without(sbx, lab, project, parents):
    parent = parents("http")
    for value in ("none", None):
        path = project.policy("p.json", network={"upstreamProxy": value})
        steps(sbx, "print(http('http://origin.test/'))", *ALLOW, "--policy", path, env={"http_proxy": url("http")}).ok()
    assert parent.asked == [] and len(lab.requests) == 2


def test_two_variables(sbx, parents):
    """Each is for its own; what is not set goes directly."""
    first, second = parents("http"), parents("socks5h")
    code = 'http("http://origin.test/"); http("https://origin.test/")'
    steps(sbx, code, *ALLOW, env={"http_proxy": url("http", "")}).ok()
    assert len(first.asked) == 1
    steps(sbx, code, *ALLOW, env={"http_proxy": url("http", ""), "HTTPS_PROXY": url("socks5h", ""), "https_proxy": ""}).ok()
    assert len(first.asked) == 2 and second.asked == [(1, "origin.test:443")]


def test_the_login_is_nowhere_inside(sbx, lab, parents):
    """P3: not in a variable, a file, an argument or another process's memory map of names; not in what comes back."""
    parents("http", (USER, PASSWORD))
    code = """
import glob
text = repr(os.environ)
for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/net/*"):
    try: text += repr(open(path, "rb").read())
    except OSError: pass
s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"GET http://origin.test/echo HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n")
s.settimeout(5); text += s.recv(65536).decode()
text += repr(socks("nosuch.test", 443, b"x"))
# Backwards: this text itself is an argument.
secrets = [word[::-1] for word in ("ss:ap", "w04%ss", "02%proc", "resu proc")]
secrets.append(base64.b64encode((secrets[3] + ":" + secrets[0] + "@w%rd").encode()).decode())
print([word for word in secrets if word in text], "lab" in text, "192.0.2.80" in repr(os.environ))
"""
    result = steps(sbx, code, *ALLOW, "--allow", "nosuch.test", env={"HTTP_PROXY": url("http"), "HTTPS_PROXY": url("http"), "ALL_PROXY": url("http")})
    assert result.ok().out == "[] True False\n", result


@pytest.mark.parametrize("line, field", [("TRACE", "X: y"), ("TRACE", "Max-Forwards: 0"), ("trace", "X: y"), ("TRACK", "X: y"),
                                         ("OPTIONS", "Max-Forwards: 0"), ("GET", "max-forwards: 0"), ("GET", "Max-Forwards: 1")])
def test_a_parent_does_not_echo_the_login(sbx, lab, parents, line, field):
    """P3: what a proxy may answer by itself, with what it was asked, is never a request to the parent."""
    parent = parents("http", (USER, PASSWORD))
    code = f"""
s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(60)
s.sendall(b"{line} http://origin.test/echo HTTP/1.1\\r\\nHost: origin.test\\r\\n{field}\\r\\n\\r\\n"); print(s.recv(65536)[:12])
print(http("http://origin.test/"), end="")
"""
    result = steps(sbx, code, *ALLOW, env={"http_proxy": url("http")})
    assert result.ok().out.endswith("lab page of origin.test\n"), result
    assert parent.asked == [("CONNECT", "origin.test:80"), ("GET", "http://origin.test/")]
    assert [r.method for r in lab.requests] == [line, "GET"] and lab.requests[0].get(field.split(":")[0]), lab.requests


def test_error_pages_of_a_parent(sbx, parents):
    """P3: squid's show the request, and the login with it. Ours takes its place."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    code = """
s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(60)
s.sendall(b"GET http://nosuch.test/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"); print(b"".join(iter(lambda: s.recv(65536), b"")))
"""
    parent = parents("http", (USER, PASSWORD))
    result = steps(sbx, code, "--allow", "nosuch.test", env={"http_proxy": url("http")})
    assert parent.asked == [("GET", "http://nosuch.test/")]
    assert login[:8] not in result.out and "parent-refused" in result.out and "it answered 503" in result.out, result
    parent.login = None  # one that wants no login can show none: its page is passed on
    result = steps(sbx, code, "--allow", "nosuch.test", env={"http_proxy": url("http", "")})
    assert "503 No" in result.out and "nosuch.test" in result.out, result


def test_the_login_is_not_shown(sbx, project):
    """P3: not by show, the plan, an error or a process's arguments; and what was shown is not taken for one."""
    path = project.policy("p.json", network={"upstreamProxy": url("http")})
    shown = sbx("show", "--policy", path).ok().out
    assert json.loads(shown)["network"]["upstreamProxy"] == f"http://***@{ADDRESS}:3128"
    plan = sbx("show", "--plan", "--policy", path).ok().out + sbx("show", "--plan", "--json", "--policy", path).ok().out
    assert f"http://{ADDRESS}:3128" in plan and "corp" not in plan and "***" not in plan
    project.write("shown.json", shown, 0o600)
    result = sbx("check", project.path("shown.json")).refused("network.upstreamProxy", "left out when this was printed")
    assert "corp" not in result.err


@pytest.mark.parametrize("value, word", [
    ("https://proxy.test:3128", "neither a known word nor a URL"), ("socks4://proxy.test:1080", "neither a known word nor a URL"),
    ("http://proxy.test", "no port"), ("http://us er:hunter2@proxy.test:1", "a space"), ("http://u:hunter2%zz@p.test:1", "hexadecimal"),
    ("http://:hunter2@p.test:1", "an empty user"), ("http://u:hunter2%0a@p.test:1", "a control byte"),
    ("http://proxy.test:3128/path", ""), ("http://u:" + "hunter2" * 40 + "@p.test:1", "more than 255 bytes"),
])
def test_bad_values(sbx, project, value, word):
    """P1, P11: what cannot be used stops the run, with its place and without its password."""
    result = sbx.run("--", "true", env={"HTTPS_PROXY": value}).refused("HTTPS_PROXY cannot be used", word)
    assert "hunter2" not in result.err
    path = project.policy("p.json", network={"upstreamProxy": value})
    result = sbx.run("--policy", path, "--", "true").refused(f"{path}:1: network.upstreamProxy", word)
    assert "hunter2" not in result.err
    sbx.run("--network", "none", "--", "true", env={"HTTPS_PROXY": value}).ok()


def test_doctor(sbx):
    """It says what is gone through, without the login, and what stops every run."""
    out = sbx("doctor", env={"HTTPS_PROXY": url("http")}).out
    assert f"parent proxy: connections go through http://{ADDRESS}:3128\n" in out and "corp" not in out, out
    result = sbx("doctor", env={"HTTPS_PROXY": "https://u:hunter2@proxy.test:1"})
    assert "parent proxy: " in result.out and "HTTPS_PROXY cannot be used" in result.out and result.code != 0, result
    assert "hunter2" not in result.out


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_parent_on_the_hosts_loopback(sbx, lab, parents, address):
    """As a local helper that logs in to the real one: the host's loopback, not the sandbox's."""
    parent = parents("http", address=address)
    host = f"[{address}]" if ":" in address else address
    result = steps(sbx, "print(http('http://origin.test/'), http('https://origin.test/'))", *ALLOW, env={"ALL_PROXY": url("http", "", host)})
    assert result.ok().out.count("lab page of origin.test") == 2 and len(parent.asked) == 2, parent.asked
    result = steps(sbx, "print(direct('127.0.0.1', 3129, b'x'))", env={"ALL_PROXY": url("http", "", host)})
    assert result.out == "ECONNREFUSED\n"


def test_proxy_that_comes_again_knows_its_parent(sbx, lab, parents):
    parent = parents("http", (USER, PASSWORD))
    process = sbx.start("run", *ALLOW, "--", PYTHON, "-I", "-c", CLIENT + "while input(): print(len(http('http://origin.test/')), flush=True)",
                        env={"http_proxy": url("http")}, stdin=subprocess.PIPE)
    for _ in range(2):
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"24\n"
        proxy, = (p for p in descendants(process.pid) if p.name == "sbx-proxy")
        os.kill(proxy.pid, 9)
        wait_until(lambda: proxy.pid not in [p.pid for p in descendants(process.pid)], "it is gone")
    process.communicate(b"\n", timeout=60)
    assert len(parent.asked) == 2


def test_other_modes_and_variables_do_not_matter(sbx, lab):
    """A variable that nobody would use does no harm."""
    env = {"ALL_PROXY": "socks://127.0.0.1:1", "http_proxy": f"http://{ADDRESS}:3128", "https_proxy": f"http://{ADDRESS}:3128"}
    sbx.run("--", "true", env=env).ok()


def test_publish_and_parents(sbx, lab):
    """A published port has nothing to do with them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    process = sbx.start("run", "--publish", f"{port}:3000", "--", PYTHON, "-c",
                        "import socket; s = socket.create_server(('127.0.0.1', 3000)); print('ready', flush=True); s.accept()[0].sendall(b'hi')",
                        env={"ALL_PROXY": f"http://{ADDRESS}:3128"})
    assert process.stdout.readline() == b"ready\n"
    with socket.create_connection(("127.0.0.1", port), timeout=40) as client:
        assert client.recv(9) == b"hi"
    process.communicate(timeout=60)
