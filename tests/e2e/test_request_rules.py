"""Rules on methods and paths: every request of cleartext HTTP is judged by itself, whatever the way. test_rules_tls.py has
those in TLS."""
import json

import pytest
from e2e_helpers import status_of

from harness.wire import connect, converse, get, talk


def rule(host="origin.test:80", **parts):
    return json.dumps({"host": host, **parts})


READ = ["--allow", rule(methods=["GET"], paths=["/large/*", "/status/200"])]


def test_methods_and_paths(sbx, lab):
    requests = [("GET", "/large/5"), ("HEAD", "/large/5"), ("GET", "/status/200"), ("GET", "/status/200?x=/large/5"),
                ("GET", "/status/2000"), ("GET", "/large"), ("GET", "/LARGE/5"), ("POST", "/large/5"), ("get", "/large/5")]
    exchanges = converse(sbx, [[get(f"http://origin.test{path}", method=method)] for method, path in requests], *READ)
    assert [e.status for e in exchanges] == [200, 200, 200, 200, 403, 403, 403, 403, 403], exchanges
    assert [e.denial["reason"] for e in exchanges[4:]] == ["path-not-allowed"] * 3 + ["method-not-allowed"] * 2
    assert {(r.method, r.target) for r in lab.requests} == {("GET", "/large/5"), ("HEAD", "/large/5"),
                                                           ("GET", "/status/200"), ("GET", "/status/200?x=/large/5")}


def test_denial_explains_itself(sbx, project):
    """P10: method, path, the rule and what to do, in the answer, the audit and the summary; the query is nobody's."""
    path = project.home + "/audit.jsonl"
    code = """
import urllib.request as r, urllib.error
for data, url in ((None, "/secret?token=tok"), (b"x", "/large/5"), (None, "/large/7?token=tok")):
    try: r.urlopen("http://origin.test" + url, data)
    except urllib.error.HTTPError as e: print(e.reason); print(e.read().decode(), end="")
"""
    result = sbx.python(code, *READ, "--audit", path)
    lines = result.ok().out.splitlines()
    assert "GET /secret of origin.test:80" in lines[0] and "POST of origin.test:80" in lines[2], lines
    first, second = json.loads(lines[1]), json.loads(lines[3])
    assert (first["reason"], first["method"], first["path"]) == ("path-not-allowed", "GET", "/secret"), first
    assert (second["reason"], second["method"], second["path"]) == ("method-not-allowed", "POST", "/large/5"), second
    assert json.loads(first["rule"]) == {"host": "origin.test:80", "methods": ["GET"], "paths": ["/large/*", "/status/200"]}
    assert first["fix"].startswith('add "/secret" to the paths of the rule ') and "--allow" in first["fix"], first
    assert second["fix"].startswith('add "POST" to the methods of the rule '), second
    summary = [m for m in result.messages if m.startswith("denied")]
    assert len(summary) == 2 and any("GET /secret of origin.test:80 (path-not-allowed" in m for m in summary), summary
    with open(path) as file:
        audit = [json.loads(line) for line in file]
    assert [(a["verdict"], a["method"], a["path"]) for a in audit] == [
        ("deny", "GET", "/secret"), ("deny", "POST", "/large/5"), ("allow", "GET", "/large/7")], audit
    assert "tok" not in json.dumps(audit), audit


@pytest.mark.parametrize("path", [
    "/large/../status/201", "/large/%2e%2e/status/201", "/large/.%2E/status/201", "//status/201", "/large//5", "/large/./5",
    "/large%2f5", "/large/..;/5", "/large/5;x", "/large\\5", "/large/%5c5", "/large/5%00", "/large/%252e%252e/x", "/large/5%25",
    "/large/%c0%ae%c0%ae/", "/large/%ff", "/large/%", "/large/%zz", "/large/5%3fx", "/large/5%0d%0ax", "/large/" + "x" * 2100])
def test_ambiguous_paths_are_refused(sbx, lab, path):
    """Never guessed: not by an allow rule, and not past a deny rule; where no rule is about paths, they pass as they are."""
    deny = ["--allow", "origin.test:80", "--deny", rule(paths=["/status/*"])]
    for options in (READ, deny):
        exchange = talk(sbx, get(f"http://origin.test{path}"), options=options)
        assert exchange.status in (400, 403), exchange
        if exchange.status == 403:
            assert exchange.denial["reason"] == "ambiguous-request" and "path" in exchange.denial["error"], exchange
    assert lab.connections == [] and lab.requests == []
    if path != "/large/5%0d%0ax":
        talk(sbx, get(f"http://origin.test{path}"), options=["--allow", "origin.test:80"])
        assert [r.target for r in lab.requests] == [path]


def test_paths_are_decoded_once(sbx, lab):
    paths = ["/l%61rge/5", "/%6carge/5", "/large/%35"]
    exchanges = converse(sbx, [[get(f"http://origin.test{path}")] for path in paths], *READ)
    assert not any(e.status == 403 for e in exchanges), exchanges
    assert [r.target for r in lab.requests] == paths  # sent on as they came


def test_deny_wins_and_whole_rules_allow_all(sbx, lab):
    options = ["--allow", "origin.test", "--allow", rule(methods=["GET"], paths=["/large/1"]),
               "--deny", rule(methods=["DELETE"]), "--deny", rule(paths=["/large/13", "/status/20*"])]
    asked = [("GET", "/large/2"), ("PUT", "/post"), ("DELETE", "/large/1"), ("GET", "/large/13"), ("GET", "/large/13/"),
             ("POST", "/status/204"), ("GET", "/%6carge/13"), ("GET", "/status/301")]
    exchanges = converse(sbx, [[get(f"http://origin.test{p}", "Content-Length: 0", method=m)] for m, p in asked], *options)
    assert [e.status for e in exchanges] == [200, 200, 403, 403, 403, 403, 403, 301], exchanges
    assert {e.denial["reason"] for e in exchanges if e.status == 403} == {"deny-rule"}
    assert len(lab.requests) == 3


def test_each_request_of_a_connection_is_judged(sbx, lab):
    """F54's kind: pipelined and one after the other."""
    good, bad = get("http://origin.test/large/5"), get("http://origin.test/status/404")
    exchange = talk(sbx, good, bad, good + bad + good, options=READ)
    assert exchange.all.count(b"HTTP/1.1 200") == 3 and exchange.all.count(b"HTTP/1.1 403") == 2, exchange
    assert [r.target for r in lab.requests] == ["/large/5"] * 3


WAYS = """
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
def ask(s, path, method="GET", fields=""):
    s.sendall(f"{method} {path} HTTP/1.1\\r\\nHost: origin.test\\r\\n{fields}\\r\\n".encode())
    head = b""
    while b"\\r\\n\\r\\n" not in head:
        data = read(s)
        head += data
        if not data or data.startswith(b"E"): return head.decode()
    words = dict(line.lower().split(": ", 1) for line in head.decode().split("\\r\\n\\r\\n")[0].split("\\r\\n")[1:])
    body = head.split(b"\\r\\n\\r\\n", 1)[1]
    while len(body) < int(words.get("content-length", 0)): body += read(s)
    return int(head.split()[1])
kind = sys.argv[1]
"""
WAY = pytest.mark.parametrize("way", ["connect", "socks", "transparent"])


@WAY
def test_cleartext_in_tunnels(sbx, lab, way):
    """Requests in a tunnel are judged one by one, as those to the HTTP front are."""
    code = """
s = way(kind, "origin.test", 80)
print([ask(s, p, m) for m, p in (("GET", "/large/5"), ("GET", "/status/201"), ("DELETE", "/large/5"), ("GET", "/x/../large/5"), ("GET", "/large/6"))])
"""
    result = sbx.python(WAYS + code, *READ, arguments=[way]).ok()
    assert result.out == "[200, 403, 403, 403, 200]\n", result
    assert [r.target for r in lab.requests] == ["/large/5", "/large/6"]


@pytest.mark.parametrize("address", ["127.0.0.1:8080", "127.0.0.0/8:8080"])
def test_an_address_of_the_loopback(sbx, lab, address):
    """A deny rule on requests to the address that `localhost` leads to: the port there is not blind either."""
    code = """
s = socket.create_connection(("127.0.0.1", 8080)); print([ask(s, "/large/5", m) for m in ("GET", "DELETE", "GET")])
s = socket.create_connection(("127.0.0.1", 8080)); s.sendall(b"\\0\\1\\2 hello\\r\\n"); print(read(s))
"""
    result = sbx.python(WAYS.replace("Host: origin.test", "Host: localhost:8080") + code, "--allow", "localhost:8080",
                        "--deny", rule(address, methods=["DELETE"]), "--deny", rule("[::1]:8080", methods=["DELETE"]), arguments=["x"])
    assert result.ok().out == "[200, 403, 200]\nb'ECONNRESET'\n", result
    assert [r.method for r in lab.requests] == ["GET", "GET"]


def test_unfinished_line_is_never_sent_on(sbx, lab):
    """Without such a rule the beginning of a line goes on after a second (sbx-proxy(8)); here it must not."""
    code = """
import time
s = way("connect", "origin.test", 7); s.sendall(b"DELETE"); s.settimeout(3)
print(read(s))
"""
    plain = sbx.python(WAYS + code, "--allow", "origin.test:7", arguments=["x"]).ok()
    assert plain.out == "b'DELETE'\n", plain
    judged = sbx.python(WAYS + code, "--allow", rule("origin.test:7", methods=["GET"]), arguments=["x"]).ok()
    assert judged.out == "b'timed out'\n", judged


def test_upgrades(sbx, lab):
    """WebSocket is a GET of its path; another protocol could carry requests unseen."""
    def ask(path, protocol):
        return get(f"http://origin.test{path}", f"Upgrade: {protocol}", "Connection: Upgrade",
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
    options = ["--allow", rule(methods=["GET"], paths=["/websocket"])]
    good, path, other, both = converse(sbx, [[ask("/websocket", "websocket"), b"\x81\x84ping"], [ask("/large/5", "websocket")],
                                             [ask("/websocket", "TLS/1.0")], [ask("/websocket", "websocket, foo")]], *options)
    assert good.got[0].startswith(b"HTTP/1.1 101 ") and good.got[1] == b"\x81\x84ping", good
    assert [e.denial["reason"] for e in (path, other, both)] == ["path-not-allowed", "ambiguous-request", "ambiguous-request"]
    assert len(lab.requests) == 1


@pytest.mark.parametrize("field", ["X-HTTP-Method-Override: DELETE", "x_http_method: DELETE", "X-Method-Override: PUT",
                                   "X-Original-URL: /secret", "X-Rewrite-Url: /secret", "X-Forwarded-Uri: /secret", "Destination: /secret"])
def test_fields_that_override_the_request_line(sbx, lab, field):
    judged, whole = (talk(sbx, get("http://origin.test/large/5", field), options=options)
                     for options in (READ, ["--allow", "origin.test"]))
    assert judged.status == 403 and judged.denial["reason"] == "ambiguous-request", judged
    assert whole.status == 200 and len(lab.requests) == 1


def test_options_of_the_whole_server(sbx, lab):
    asked = [get("http://origin.test", method="OPTIONS"), get("http://origin.test/", method="OPTIONS")]
    paths = converse(sbx, [[a] for a in asked], "--allow", rule(paths=["/", "/*"]))
    methods = converse(sbx, [[a] for a in asked], "--allow", rule(methods=["OPTIONS"]))
    assert [e.status for e in paths] == [403, 200] and [e.status for e in methods] == [404, 200]
    assert [r.target for r in lab.requests] == ["/", "*", "/"]


def test_addresses(sbx, lab):
    """An address rule, a name that comes along with the address, and a deny rule on the address that a name leads to."""
    code = """
def at(host, method):
    s = socket.create_connection(("192.0.2.10", 80))
    s.sendall(f"{method} /large/5 HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode()); return int(s.recv(65536).split()[1])
print([at(h, m) for h in ("192.0.2.10", "origin.test") for m in ("GET", "DELETE")])
"""
    options = ["--allow", rule("192.0.2.0/24:80", methods=["GET"]), "--allow", "origin.test"]
    assert sbx.python(WAYS + code, *options, arguments=["x"]).ok().out == "[200, 403, 200, 403]\n"
    options = ["--allow", "*", "--deny", rule("192.0.2.0/24:80", methods=["DELETE"]), "--deny", rule("[2001:db8::/32]:80", methods=["DELETE"])]
    assert sbx.python(WAYS + code, *options, arguments=["x"]).ok().out == "[200, 403, 200, 403]\n"
    requests = [[get("http://origin.test/large/5", method=m)] * 2 for m in ("GET", "DELETE")]
    good, bad = converse(sbx, requests, *options)
    assert good.all.count(b"HTTP/1.1 200") == 2 and bad.all.count(b"HTTP/1.1 403") == 2, (good, bad)
    assert bad.all.count(b'"reason":"deny-rule"') == 2, bad
    mixed = talk(sbx, requests[0][0], requests[1][0], options=options)  # the second on the origin's kept connection
    assert mixed.all.count(b"HTTP/1.1 200") == 1 and mixed.all.count(b"HTTP/1.1 403") == 1, mixed
    assert not [r for r in lab.requests if r.method == "DELETE"]


def test_localhost(sbx, lab):
    """A rule on requests to the host's loopback: the port leads there, and is not blind."""
    code = """
s = socket.create_connection(("127.0.0.1", 8080))
def ask(method):
    s.sendall(f"{method} /large/5 HTTP/1.1\\r\\nHost: localhost:8080\\r\\n\\r\\n".encode()); return int(s.recv(65536).split()[1])
print([ask(m) for m in ("GET", "DELETE", "GET")])
"""
    result = sbx.python(WAYS + code, "--allow", rule("localhost:8080", methods=["GET"]), arguments=["x"])
    assert result.ok().out == "[200, 403, 200]\n", result
    assert [r.method for r in lab.requests] == ["GET", "GET"]


def test_show_prints_what_can_be_read_again(sbx, project):
    path = project.policy("../../p.json", network={"allow": [{"paths": ["/b", "/a"], "host": "API.test:80"}, "b.test"],
                                                   "deny": [{"host": "*:80", "methods": ["TRACE"]}]})
    shown = sbx("show", "--policy", path).json
    assert shown["network"]["allow"] == [{"host": "api.test:80", "paths": ["/a", "/b"]}, "b.test"]
    again = project.write("../../q.json", json.dumps(shown))
    assert sbx("show", "--policy", again).json["network"] == shown["network"]


def test_why(sbx, project):
    """The same answers before a run."""
    path = project.policy("../../p.json", network={"allow": [json.loads(READ[1])]})

    def why(*words):
        result = sbx("why", "--json", "--policy", path, *words)
        return json.loads(result.out) if result.code in (0, 1) else result
    assert why("http://origin.test/large/1")["answer"] == "yes"
    assert why("http://origin.test/secret?x#y")["reason"] == "path-not-allowed"
    assert why("--method", "POST", "http://origin.test/large/1")["reason"] == "method-not-allowed"
    assert why("-X", "POST", "http://origin.test/large/1")["fix"].startswith('add "POST" to the methods')
    assert why("http://origin.test/large/../x")["reason"] == "ambiguous-request"
    assert why("https://origin.test:80/large/1")["answer"] == "yes"
    assert why("-X", "PUT", "https://origin.test:80/large/1")["reason"] == "method-not-allowed"
    assert why("ssh://origin.test:80")["reason"] == "not-http"
    answer = why("origin.test:80")
    assert answer["answer"] == "yes" and "each request is judged" in answer["text"] and answer["place"] == f"{path}:1", answer
    assert why("-X", "GET", "ssh://origin.test").code == 125
    assert why("-X", "GET", "/tmp").code == 125


def test_an_untrusted_workspace_only_narrows(sbx, project, lab):
    """P11: deny rules on requests are taken from it, allow rules are not."""
    project.policy(network={"allow": [json.loads(rule(methods=["PUT"]))], "deny": [json.loads(rule(paths=["/large/*"]))]})
    assert status_of(sbx, "http://origin.test/large/5", "--allow", "origin.test") == 403
    assert talk(sbx, get("http://origin.test/x", method="PUT"), options=READ).denial["reason"] == "method-not-allowed"
