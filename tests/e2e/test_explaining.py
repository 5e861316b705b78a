"""P10: one decision, told alike by every front, the audit, the summary and `sbx why`."""
import collections
import json
import random

import pytest

# Each target is asked for by every front. Prints [front, target, status or code, the denial's JSON or null].
ASK = """
import json, os, socket, struct, sys
def read(s):
    got = b""
    try:
        while data := s.recv(65536):
            got += data
            head, end, body = got.partition(b"\\r\\n\\r\\n")
            length = head.partition(b"Content-Length: ")[2].split(b"\\r")[0] if end else None
            if end and len(body) >= int(length or 0): break  # a tunnel that was granted has none
    except OSError: pass
    return got
def http(address, text):
    s = socket.create_connection(address); s.settimeout(40); s.sendall(text.encode()); got = read(s); s.close()
    body = got.partition(b"\\r\\n\\r\\n")[2]
    return int(got.split()[1]) if got else None, json.loads(body) if body.startswith(b"{") else None
def socks(host, port):
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(40)
    s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    got = b""
    while len(got) < 4 and (data := s.recv(4 - len(got))): got += data
    return got[3]
proxy = ("127.0.0.1", 3128)
for target in sys.argv[2:]:
    host, port = target.rsplit(":", 1)
    fronts = {
        "http": lambda: http(proxy, f"GET http://{target}/ HTTP/1.1\\r\\nHost: {target}\\r\\nConnection: close\\r\\n\\r\\n"),
        "connect": lambda: http(proxy, f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n"),
        "socks5": lambda: (socks(host, int(port)), None),
        "transparent": lambda: http((host, int(port)), f"GET / HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n"),
    }
    for front in sys.argv[1].split(","):
        print(json.dumps([front, target, *fronts[front]()]))
"""
POLICY = """{
  "network": {
    "allow": ["origin.test", "*.wild.test:80", "192.0.2.0/24"],
    "deny": ["bad.wild.test", "198.51.100.0/24"]
  }
}
"""
DENIED = {"evil.test:80": "not-allowed", "evil.test:443": "not-allowed", "origin.test:8080": "port-not-allowed",
          "bad.wild.test:80": "deny-rule", "198.51.100.66:80": "deny-rule", "203.0.113.9:80": "not-allowed"}
RULES = {"origin.test:8080": "origin.test", "bad.wild.test:80": "bad.wild.test", "198.51.100.66:80": "198.51.100.0/24"}


def why(sbx, target, *options):
    result = sbx("why", "--json", *options, target)
    assert result.code in (0, 1), result
    answer = json.loads(result.out)
    assert (answer["answer"] == "yes") == (result.code == 0), result
    return answer


@pytest.fixture
def policy(project):
    return project.write("../../policy.json", POLICY)


@pytest.fixture
def asked(sbx, project, policy):
    """Asks every front for every denied target once, and twice over HTTP: (answers, audit, messages)."""
    audit = project.home + "/audit.jsonl"
    result = sbx.python(ASK, "--policy", policy, "--audit", audit, arguments=["http,http,connect,socks5", *DENIED]).ok()
    with open(audit) as file:
        lines = [json.loads(line) for line in file]
    return [json.loads(line) for line in result.out.splitlines()], lines, result.messages


def test_every_front_tells_what_why_tells(sbx, policy, asked):
    """What is denied, by which rule and where it stands, and what to type: the same words everywhere."""
    answers, audit, _ = asked
    assert len(answers) == 4 * len(DENIED)
    for front, target, status, denial in answers:
        expected = why(sbx, target, "--policy", policy)
        assert expected["answer"] == "no" and expected["reason"] == DENIED[target], expected
        assert expected["rule"] == RULES.get(target, "") and expected["fix"], expected
        if expected["reason"] == "deny-rule":
            assert f"{policy}:4" in expected["fix"] and f"{policy}:4" in expected["place"], expected
        if front == "socks5":
            assert status == 2, target
            continue
        assert status == 403, (front, target, status)
        host, port = target.rsplit(":", 1)
        assert (denial["host"], denial["port"]) == (host, int(port)), denial
        assert {key: denial[key] for key in ("reason", "rule", "fix")} == \
            {key: expected[key] for key in ("reason", "rule", "fix")}, (front, target, denial)
        assert denial["error"], denial


def test_audit_has_every_denial_with_its_rule(asked):
    _, audit, _ = asked
    seen = collections.Counter((line["via"], f"{line['host']}:{line['port']}", line["verdict"], line["reason"],
                                line.get("rule", "")) for line in audit)
    expected = collections.Counter()
    for target, reason in DENIED.items():
        for via, count in (("http", 3), ("socks5", 1)):
            expected[via, target, "deny", reason, RULES.get(target, "")] = count
    assert seen == expected


def test_summary_counts_each_denial_and_tells_what_helps(sbx, policy, asked):
    """One line for each host and port with the count over all fronts."""
    _, _, messages = asked
    assert len(messages) == len(DENIED), messages
    for target, reason in DENIED.items():
        host, port = target.rsplit(":", 1)
        line, = [m for m in messages if f"{host} " in m.replace(":", " ") and f":{port} " in m and f" {host}" in m]
        assert line.startswith("denied 4x ") and f"({reason}: " in line, line
        assert line.endswith("to allow it: " + why(sbx, target, "--policy", policy)["fix"]), line


def test_transparent_denial_tells_the_same(sbx, policy):
    """An address without a proxy: HTTP has the 403, TLS the alert, and the summary both; a name's lookup is told too."""
    code = ASK + """
s = socket.create_connection(("198.51.100.66", 443)); s.sendall(b"\\x16\\3\\1\\0\\5\\1\\0\\0\\1\\0"); print(s.recv(99)[:7].hex())
try: socket.getaddrinfo("looked-up.test", 80)
except socket.gaierror: print("none")
"""
    result = sbx.python(code, "--policy", policy, arguments=["transparent", "198.51.100.66:80"]).ok()
    answer, alert, name = result.out.splitlines()
    expected = why(sbx, "198.51.100.66:80", "--policy", policy)
    _, _, status, denial = json.loads(answer)
    assert status == 403 and all(denial[key] == expected[key] for key in ("reason", "rule", "fix")), denial
    assert alert == "15030100020231" and name == "none"
    assert len(result.messages) == 3 and all("to allow it: " in message for message in result.messages), result
    for told in ("198.51.100.66:80 (deny-rule", "198.51.100.66:443 (deny-rule", "looked-up.test (not-allowed"):
        assert sum(told in message for message in result.messages) == 1, (told, result)


@pytest.mark.parametrize("seed", range(3))
def test_proxy_and_why_agree_on_whatever_the_rules_are(sbx, project, seed):
    """One decision function: random rules and targets; each denial of the proxy is why's, word for word."""
    chance = random.Random(seed)
    names = ["a.test", "b.test", "c.a.test", "d.c.a.test", "e.test"]
    addresses = ["192.0.2.10", "192.0.2.66", "10.1.2.3", "127.0.0.1", "169.254.169.254", "198.51.100.66"]
    rules = [*names, "*.a.test", "*.c.a.test", "*", "192.0.2.0/24", "10.0.0.0/8", "localhost", *addresses]
    ports = ["", "", ":80", ":443", ":8000-8100", ":*"]
    pick = lambda count: sorted({chance.choice(rules) + chance.choice(ports) for _ in range(count)})  # noqa: E731
    path = project.policy("../../policy.json", network={"allow": pick(6), "deny": pick(2)})
    targets = [f"{chance.choice(names + addresses)}:{chance.choice([80, 443, 8080, 22])}" for _ in range(24)]
    result = sbx.python(ASK, "--policy", path, arguments=["connect", *targets]).ok()
    verdicts = set()
    for line in result.out.splitlines():
        _, target, status, denial = json.loads(line)
        expected = why(sbx, target, "--policy", path)
        verdicts.add(expected["answer"])
        if expected["answer"] == "no":
            assert status == 403 and denial, (target, expected, status)
            assert all(denial[key] == expected[key] for key in ("reason", "rule", "fix")), (denial, expected)
        else:  # what it leads to may be refused, and need not exist
            assert denial is None or denial["reason"] not in ("not-allowed", "port-not-allowed", "deny-rule"), denial
    assert "no" in verdicts
