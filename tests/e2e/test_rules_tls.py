"""Rules on methods and paths inside TLS: it is terminated where such a rule has a say, each request is judged by itself
and sees only the host that it named, and everything else stays a blind tunnel."""
import hashlib
import json
import ssl

import pytest

from lab.parent import HttpParent

WAY = pytest.mark.parametrize("way", ["connect", "socks", "transparent"])

CODE = """
import errno, json, os, socket, ssl, struct, sys
def read(s, n=65536):
    try: return s.recv(n)
    except OSError as error: return errno.errorcode.get(error.errno, str(error)).encode()
def way(kind, host, port):
    if kind == "transparent":
        s = socket.create_connection((host, port))
    elif kind == "connect":
        s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(b"CONNECT %s:%d HTTP/1.1\\r\\nHost: %s:%d\\r\\n\\r\\n" % (host.encode(), port, host.encode(), port))
        assert read(s).startswith(b"HTTP/1.1 200"), "refused"
    else:
        s = socket.create_connection(("127.0.0.1", 1080)); s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
        got = b""
        while len(got) < 12: got += s.recv(12 - len(got))
        assert got[3] == 0, "refused"
    s.settimeout(40); return s
def tls(kind, host="origin.test", port=443, name=None, context=None):
    return (context or ssl.create_default_context()).wrap_socket(way(kind, host, port), server_hostname=name or host)
def raw(s, text):
    s.sendall(text.encode("latin-1"))
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        data = read(s)
        head += data
        if not data or data[:1].isupper() and data[:5] != b"HTTP/": return head.decode()
    words = dict(line.lower().split(": ", 1) for line in head.decode().split("\\r\\n\\r\\n")[0].split("\\r\\n")[1:])
    body = head.split(b"\\r\\n\\r\\n", 1)[1]
    while len(body) < int(words.get("content-length", 0)): body += read(s)
    return int(head.split()[1]), body
def ask(s, path, method="GET", host="origin.test"):
    answer = raw(s, f"{method} {path} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n")
    return answer[0] if len(answer) == 2 else answer
def reason(answer):
    return json.loads(answer[1])["reason"]
kind = sys.argv[1]
"""


def rule(host="origin.test", **parts):
    return json.dumps({"host": host, **parts})


READ = ["--allow", rule(methods=["GET"], paths=["/large/*", "/status/200"])]


def lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


@WAY
def test_each_request_is_judged(sbx, lab, project, way):
    """On one connection, one after the other; what is refused never reaches the origin, which sees TLS for its own name."""
    audit = project.home + "/audit.jsonl"
    code = """
s = tls(kind); print(s.getpeercert()["subjectAltName"])
for m, p in (("GET", "/large/5"), ("HEAD", "/status/201"), ("DELETE", "/large/5"), ("GET", "/large/6")):
    print(ask(s, p, m) if m != "HEAD" else raw(s, f"GET {p}?token=tok HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"))
"""
    result = sbx.python(CODE + code, *READ, "--audit", audit, arguments=[way]).ok()
    names, first, second, third, fourth = result.out.splitlines()
    assert names == "(('DNS', 'origin.test'),)" and (first, third, fourth) == ("200", "403", "200"), result
    denial = json.loads(eval(second)[1])  # pylint: disable=eval-used
    assert (denial["reason"], denial["method"], denial["path"]) == ("path-not-allowed", "GET", "/status/201"), denial
    assert denial["fix"].startswith('add "/status/201" to the paths of the rule '), denial
    assert [(r.method, r.target, r.sni, r.secure) for r in lab.requests] == [("GET", f"/large/{n}", "origin.test", True) for n in (5, 6)]
    told = [(a["event"], a["verdict"], a.get("method"), a.get("path"), a["port"]) for a in lines(audit)]
    assert told[0][:2] == ("connect", "allow") and told[1:] == [
        ("request", "allow", "GET", "/large/5", 443), ("request", "deny", "GET", "/status/201", 443),
        ("request", "deny", "DELETE", "/large/5", 443), ("request", "allow", "GET", "/large/6", 443)], told
    assert "tok" not in json.dumps(lines(audit))
    assert any("DELETE" in m and "method-not-allowed" in m for m in result.messages), result


@WAY
@pytest.mark.parametrize("options", [["--allow", "origin.test", "--deny", rule(methods=["DELETE"])],
                                     ["--allow", "*", "--deny", rule("*", methods=["DELETE"])],
                                     ["--allow", "*", "--deny", rule("192.0.2.0/24:443", methods=["DELETE"]),
                                      "--deny", rule("[2001:db8::/32]:443", methods=["DELETE"])]])
def test_a_deny_rule_looks_into_tls(sbx, lab, way, options):
    """One on the addresses that a name leads to as well."""
    code = 's = tls(kind); print([ask(s, "/large/5", m) for m in ("GET", "DELETE", "POST")])'
    result = sbx.python(CODE + code, *options, arguments=[way]).ok()
    assert result.out == "[200, 403, 200]\n" and "deny-rule" in result.err, result
    assert [r.method for r in lab.requests] == ["GET", "POST"]


def test_wildcards(sbx, lab, project):
    """Any subdomain, each with a certificate of its own; another one is not widened by it."""
    code = """
for name in ("a.svc.test", "b.svc.test"):
    s = tls(kind, name); print(s.getpeercert()["subjectAltName"], ask(s, "/large/5", host=name), ask(s, "/large/5", "PUT", host=name))
try: way(kind, "other.test", 443)
except AssertionError as error: print(error)
"""
    result = sbx.python(CODE + code, "--allow", rule("*.svc.test", methods=["GET"]), arguments=["connect"]).ok()
    assert result.out == "".join(f"(('DNS', '{n}.svc.test'),) 200 403\n" for n in "ab") + "refused\n", result
    assert [(r.sni, r.method) for r in lab.requests] == [("a.svc.test", "GET"), ("b.svc.test", "GET")]


@WAY
def test_what_no_rule_is_about_stays_blind(sbx, lab, way):
    """A client that pins the certificate of a host beside goes on; of the host with the rule it does not, and nothing of
    it gets there."""
    with open(lab.certificate) as file:
        pem = file.read()
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT"):])).hexdigest()
    code = f"""
import hashlib
for name in ("other.test", "origin.test"):
    s = tls(kind, name); same = hashlib.sha256(s.getpeercert(True)).hexdigest() == "{pin}"
    print(name, same, ask(s, "/large/5", "DELETE", host=name) if same else "pinned: another certificate")
"""
    result = sbx.python(CODE + code, *READ, "--allow", "other.test", arguments=[way]).ok()
    assert result.out == "other.test True 200\norigin.test False pinned: another certificate\n", result
    assert [(r.sni, r.method) for r in lab.requests] == [("other.test", "DELETE")]


PATHS = ["/large/../status/201", "/large/%2e%2e/status/201", "/large/.%2E/status/201", "//status/201", "/large//5", "/large/./5",
         "/large%2f5", "/large/..;/5", "/large/5;x", "/large\\5", "/large/%5c5", "/large/5%00", "/large/%252e%252e/x",
         "/large/%c0%ae%c0%ae/", "/large/%ff", "/large/%zz", "/large/5%3fx", "/large/" + "x" * 2100]


@pytest.mark.parametrize("options", [READ, ["--allow", "origin.test", "--deny", rule(paths=["/status/*"])]])
def test_attack_paths_with_two_readings(sbx, lab, options):
    """As in cleartext: refused, and nothing of any reaches the origin."""
    code = f"""
for path in {PATHS!r}:
    s = tls(kind); print(reason(raw(s, f"GET {{path}} HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"))); s.close()
"""
    result = sbx.python(CODE + code, *options, arguments=["connect"]).ok()
    assert result.out.splitlines() == ["ambiguous-request"] * len(PATHS), result
    assert lab.requests == []


ATTACKS = {
    # the bytes, and which of the two readings may reach the origin
    "absolute-form": ("GET https://origin.test/large/5 HTTP/1.1\r\nHost: origin.test\r\n\r\n", "200", ["/large/5"]),
    "absolute-form of another path": ("GET https://origin.test/status/201 HTTP/1.1\r\nHost: origin.test\r\n\r\n", "path-not-allowed", []),
    "absolute-form of another host": ("GET https://other.test/large/5 HTTP/1.1\r\nHost: origin.test\r\n\r\n", "identity-mismatch", []),
    "another Host": ("GET /large/5 HTTP/1.1\r\nHost: other.test\r\n\r\n", "identity-mismatch", []),
    "CONNECT inside": ("CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test:443\r\n\r\n", "identity-mismatch", []),
    "method override": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nX-HTTP-Method-Override: DELETE\r\n\r\n", "ambiguous-request", []),
    "rewritten URL": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nX-Original-URL: /status/201\r\n\r\n", "ambiguous-request", []),
    "CL and TE": ("POST /large/5 HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE /x HTTP/1.1\r\n\r\n",
                  "400", []),
    "two CL": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 0\r\nContent-Length: 30\r\n\r\nDELETE /x HTTP/1.1\r\n\r\n", "400", []),
    "TE in a disguise": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "400", []),
    "bare LF": ("GET /large/5 HTTP/1.1\nHost: origin.test\n\nDELETE /x HTTP/1.1\n\n", "400", []),
    "a request in a body": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nContent-Length: 26\r\n\r\nDELETE /x HTTP/1.1\r\nA: b\r\n\r\n", "200", ["/large/5"]),
    "pipelined": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\n\r\nDELETE /large/5 HTTP/1.1\r\nHost: origin.test\r\n\r\n", "200", ["/large/5"]),
    "another upgrade": ("GET /large/5 HTTP/1.1\r\nHost: origin.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n\r\n",
                        None, None),
    "no HTTP": ("\x00\x01\x02 hello\r\n\r\n", "400", []),
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks_on_the_judgement(sbx, lab, name):
    text, expected, targets = ATTACKS[name]
    code = f"""
s = tls(kind); answer = raw(s, {text!r})
print(answer[0] if answer[0] != 403 else reason(answer))
"""
    result = sbx.python(CODE + code, *READ, arguments=["connect"]).ok()
    if expected:
        assert result.out == f"{expected}\n", result
        assert [r.target for r in lab.requests] == targets
    assert not any(r.method == "DELETE" or r.get("upgrade") for r in lab.requests), lab.requests


@WAY
@pytest.mark.parametrize("options", [READ, ["--allow", "origin.test", "--deny", rule(methods=["DELETE"])]])
def test_neither_tls_nor_http(sbx, lab, project, way, options):
    audit = project.home + "/audit.jsonl"
    code = """
s = way(kind, "origin.test", 443); s.sendall(b"\\0\\1\\2 hello\\r\\n"); print(read(s))
s = way(kind, "origin.test", 443); s.sendall(b"EHLO there\\r\\n"); print(read(s))
s = way(kind, "origin.test", 443); s.sendall(b"\\x16\\x03\\x01"); s.shutdown(1); print(read(s)[:1])
"""
    result = sbx.python(CODE + code, *options, "--audit", audit, arguments=[way]).ok()
    assert result.out == "b'ECONNRESET'\nb'ECONNRESET'\nb'\\x15'\n", result
    told = lines(audit)
    assert [a["reason"] for a in told] == ["not-http", "not-http", "identity-mismatch"], told
    assert "methods" in json.loads(told[0]["rule"]) and lab.requests == []
    assert any("not-http" in m and "use HTTP there" in m for m in result.messages), result


@WAY
def test_names_that_differ(sbx, lab, way):
    """No name, or another one, in the ClientHello: refused before anything is terminated."""
    code = """
context = ssl.create_default_context(); context.check_hostname = False
for name in (None, "other.test"):
    try: context.wrap_socket(way(kind, "origin.test", 443), server_hostname=name); print("taken")
    except OSError as error: print(error.reason)
"""
    result = sbx.python(CODE + code, *READ, "--allow", "other.test", arguments=[way]).ok()
    assert [line.replace("TLSV1_ALERT_", "TLSV13_ALERT_") for line in result.out.splitlines()].count("taken") == 0, result
    assert result.out.count("ACCESS_DENIED") == 2 and "identity-mismatch" in result.err, result
    assert lab.requests == []


@WAY
@pytest.mark.parametrize("options", [["--allow", "192.0.2.10:443", "--allow", rule(methods=["GET"])],
                                     ["--allow", rule("192.0.2.10:443", methods=["GET"]), "--allow", "origin.test"],
                                     ["--allow", rule("192.0.2.0/24:443", methods=["GET"]), "--allow", rule(methods=["GET", "DELETE"])]])
def test_an_address_with_a_name_that_comes_along(sbx, lab, way, options):
    """The rules of both have to be kept, whichever of them it is that is about requests."""
    code = """
s = tls(kind, "192.0.2.10", name="origin.test"); print(s.getpeercert()["subjectAltName"])
print([ask(s, "/large/5", m) for m in ("GET", "DELETE", "GET")])
"""
    result = sbx.python(CODE + code, *options, arguments=[way]).ok()
    assert result.out == "(('DNS', 'origin.test'),)\n[200, 403, 200]\n", result
    assert [(r.method, r.sni) for r in lab.requests] == [("GET", "origin.test")] * 2


@WAY
def test_an_address_alone(sbx, lab, way):
    code = """
s = tls(kind, "192.0.2.10"); print(s.getpeercert()["subjectAltName"])
print([ask(s, "/large/5", m, host="192.0.2.10") for m in ("GET", "DELETE")])
"""
    result = sbx.python(CODE + code, "--allow", rule("192.0.2.10", methods=["GET"]), arguments=[way]).ok()
    assert result.out == "(('IP Address', '192.0.2.10'),)\n[200, 403]\n", result
    assert [r.method for r in lab.requests] == ["GET"]


@pytest.fixture
def loopback(lab):
    """A TLS origin on the host's loopback that is known by all of its names."""
    servers = lab.servers
    server = servers.listen(4433, servers.tls(lab.authority.issue("loopback", ["localhost", "127.0.0.1"])))
    yield 4433
    server.shutdown(2)
    server.close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
@pytest.mark.parametrize("way", ["connect", "transparent"])
def test_localhost(sbx, lab, loopback, way, host):
    """A client that names it, and one that means its address, which no ClientHello names."""
    code = f"""
s = tls(kind, {host!r}, {loopback}); print([ask(s, "/large/5", m, host="{host}:{loopback}") for m in ("GET", "DELETE", "GET")])
"""
    result = sbx.python(CODE + code, "--allow", rule(f"localhost:{loopback}", methods=["GET"]), arguments=[way]).ok()
    assert result.out == "[200, 403, 200]\n", result
    assert [r.method for r in lab.requests] == ["GET", "GET"]


def test_origin_that_is_not_verified(sbx, lab, guarded):
    """No request goes there; the client is told why."""
    code = """
for name in ("untrusted.test", "expired.test", "wrongname.test"):
    s = tls(kind, name); answer = raw(s, f"GET /large/5 HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n"); print(answer[0], reason(answer))
"""
    options = [word for name in ("untrusted", "expired", "wrongname") for word in ("--allow", rule(f"{name}.test", methods=["GET"]))]
    result = sbx.python(CODE + code, *options, arguments=["connect"]).ok()
    assert result.out == "502 upstream-tls\n" * 3 and lab.requests == [], result


def test_through_a_parent(sbx, lab):
    """F60: the proxy that the host has to use is on the way of the terminated leg too."""
    parent = HttpParent(lab.servers, "192.0.2.80", 3128, {"origin.test": "192.0.2.10"}, None)
    try:
        code = 's = tls(kind); print([ask(s, "/large/5", m) for m in ("GET", "DELETE", "GET")])'
        result = sbx.python(CODE + code, *READ, arguments=["connect"], env={"https_proxy": "http://192.0.2.80:3128"}).ok()
    finally:
        parent.close()
    assert result.out == "[200, 403, 200]\n", result
    assert [(r.method, r.sni) for r in lab.requests] == [("GET", "origin.test")] * 2
    assert parent.asked == [("CONNECT", "origin.test:443")], parent.asked


CLIENTS = {
    "curl": "curl -sS -o /dev/null -w '%{http_code}\\n' ",
    "wget": "wget -q -O /dev/null -S --content-on-error ",
    "python": "python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).status)' ",
    "node": "node -e \"require('https').get(process.argv[1], r => { console.log(r.statusCode); r.resume(); })\" ",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_clients_trust_it(sbx, lab, client):
    """F78: bundle and variables are set up without any credential too."""
    result = sbx.shell(CLIENTS[client] + "https://origin.test/large/5", *READ)
    assert "200" in result.ok().out + result.err, result
    assert [(r.target, r.sni) for r in lab.requests] == [("/large/5", "origin.test")]


def test_only_what_has_to_be_seen_brings_the_ca(sbx, project):
    """A policy without such rules has no CA, and does not start the proxy that makes one."""
    def shows(*options):
        plan = sbx.run("--dry-run", *options, "--", "true").ok().out
        return "NODE_EXTRA_CA_CERTS" in plan
    assert shows(*READ) and shows("--allow", "origin.test", "--deny", rule(methods=["PUT"]))
    assert not shows("--allow", "origin.test", "--deny", "evil.test")


def test_a_credential_gives_way_to_rules(sbx, lab, guarded, project):
    """What a credential implies lets through no request that the rules on its host do not name."""
    policy = project.policy("../../p.json", network={"allow": [json.loads(rule("api.github.com", methods=["GET"], paths=["/check"]))]},
                            credentials={"github": {"source": {"env": "GH_TOKEN"}}})
    script = """
for m in GET POST; do curl -sS -X $m -o /dev/null -w '%{http_code} ' -H "Authorization: token $GH_TOKEN" https://api.github.com/check; done
curl -sS -o /dev/null -w '%{http_code} ' https://api.github.com/large/5
curl -sS -o /dev/null -w '%{http_code}\\n' -H "Authorization: token $GH_TOKEN" https://uploads.github.com/check
"""
    from lab.guarded import SECRET  # pylint: disable=import-outside-toplevel
    result = sbx.shell(script, "--policy", policy, env={"GH_TOKEN": SECRET}).ok()
    assert result.out == "200 403 403 200\n", result
    assert [(r.method, r.target, r.sni) for r in lab.requests] == [("GET", "/check", "api.github.com"), ("GET", "/check", "uploads.github.com")]
    shown = sbx("show", "--policy", policy).json
    assert [each for each in shown["network"]["allow"] if "github" in str(each)] == [json.loads(rule("api.github.com", methods=["GET"], paths=["/check"]))]
    why = json.loads(sbx("why", "--json", "--policy", policy, "-X", "POST", "https://api.github.com/check").out)
    assert (why["answer"], why["reason"]) == ("no", "method-not-allowed"), why
