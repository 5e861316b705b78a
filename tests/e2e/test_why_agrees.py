"""P10: `sbx why` and the proxy say the same, by verdict, reason and rule: random policies, and random requests sent
through a live proxy, odd spellings included."""
import json
import os
import random

import pytest

REQUESTS = 100

SEND = """
import json, os, socket, ssl, sys
context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
def end(s):
    try:
        s.settimeout(30)
        while s.recv(65536): pass
    except OSError: pass
    s.close()
for scheme, method, target, path in json.load(sys.stdin):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(30)
    rest = f" HTTP/1.1\\r\\nHost: {target}\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n"
    if scheme == "http":
        s.sendall(f"{method} http://{target}{path}{rest}".encode())
    else:
        s.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
        head = b""
        while not head.endswith(b"\\r\\n\\r\\n") and (data := s.recv(1)): head += data
        if head.startswith(b"HTTP/1.1 200"):
            name = target.rpartition(":")[0].rstrip(".").lower().strip("[]")
            try:
                s = context.wrap_socket(s, server_hostname=name)
                s.sendall(f"{method} {path if path[:1] == '/' else '/' + path}{rest}".encode())
            except OSError: pass
    end(s)
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(30)
    s.sendall(b"GET http://mark.test/ HTTP/1.1\\r\\nHost: mark.test\\r\\nConnection: close\\r\\n\\r\\n"); end(s)
"""

HOSTS = ["origin.test", "other.test", "a.wild.test", "b.a.wild.test", "wild.test", "evil.test", "sub.evil.test"]
PATHS = ["", "/", "/status/200", "/status/404", "/status/204/", "/large/5", "/Large/5", "/post", "/a%20b",
         "/%6carge/5", "/large/../post", "/large/%2e%2e/post", "/large//5", "/large%2f5", "/large/5;x", "/large\\5", "/%", "/%00",
         "/%25", "/%c0%af", "/caf%c3%a9", "/status/200?x=/large/5", "?x", "/*", "/x*y", "/%2a"]
PATTERNS = ["/", "/*", "/status/*", "/status/20*", "/large/5", "/large/*", "/post", "/a b", "/caf\u00e9", "/x*", "/*/*"]
METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "get", "PURGE"]
NAMES = [*HOSTS, "*.wild.test", "*.evil.test", "*"]


def rule(dice, hosts):
    host = dice.choice(hosts)
    if dice.random() < 0.45:
        return host + dice.choice(["", "", ":80", ":443", ":8080", ":*", ":1-442"])
    parts = {"host": host + dice.choice([":80", "", ":443", ":1-1000", ":8443"])}
    if dice.random() < 0.7:
        parts["methods"] = dice.sample([m for m in METHODS if m != "get"], dice.randint(1, 3))
    if "methods" not in parts or dice.random() < 0.6:
        parts["paths"] = dice.sample(PATTERNS, dice.randint(1, 3))
    return parts


def request(dice):
    host = dice.choice([*HOSTS, "192.0.2.10", "198.51.100.66", "localhost", "10.0.0.1", "[2001:db8::10]"])
    odd = dice.random()
    if odd < 0.1 and host[0].isalpha():
        host = dice.choice([host.upper(), host + ".", host.replace("t", "%74"), host + "..", "-" + host, host.replace(".", "_")])
    if dice.random() < 0.4:
        return "https", dice.choice(METHODS), f"{host}:{dice.choice([443, 443, 8443])}", dice.choice(PATHS)
    port = dice.choice(["", "", "", ":80", ":8080", ":443", ":22", ":0", ":80x"])
    return "http", dice.choice(METHODS), host + port, dice.choice(PATHS)


def asked(sbx, policy, one):
    scheme, method, target, path = one
    result = sbx("why", "--json", "--policy", policy, "--method", method, f"{scheme}://{target}{path}")
    if result.code == 125:
        return "malformed"
    answer = json.loads(result.out)
    return answer["answer"] == "yes", answer["reason"], answer["rule"]


def told(line):
    if line["reason"] in ("bad-target", "bad-request"):
        return "malformed"
    allowed = line["verdict"] in ("allow", "error")
    return allowed, "allowed" if allowed else line["reason"], line.get("rule", "")


def told_of_each(lines):
    """The last line of each: after the connection that is terminated comes the request that it carries. A request to
    mark.test ends each."""
    each, line = [], None
    for one in lines:
        if one.get("host") == "mark.test":
            each.append(line)
        line = one
    return each


@pytest.mark.parametrize("seed", range(4))
def test_the_same_answers(sbx, project, lab, seed):
    dice = random.Random(f"why {seed}")
    allow = [rule(dice, [*NAMES, "192.0.2.0/24", "2001:db8::/32"]) for _ in range(8)]
    deny = [rule(dice, [*HOSTS, "*.evil.test"]) for _ in range(4)]
    # IPv6 with ports stands in brackets.
    deny += ["mark.test"]
    text = json.dumps({"network": {"allow": allow, "deny": deny}}).replace("2001:db8::/32:", "[2001:db8::/32]:")
    policy, path = project.write("../../p.json", text), project.home + "/audit.jsonl"
    requests = [request(dice) for _ in range(REQUESTS)]
    sbx.python(SEND, "--policy", policy, "--audit", path, input=json.dumps(requests).encode()).ok()
    with open(path) as file:
        lines = told_of_each(json.loads(line) for line in file)
    assert len(lines) == REQUESTS, lines
    answers = [(one, asked(sbx, policy, one), told(line)) for one, line in zip(requests, lines)]
    differ = [answer for answer in answers if answer[1] != answer[2]]
    assert not differ, (text, differ)
    verdicts = {told(line)[1] for line in lines if told(line) != "malformed"}
    assert len(verdicts) > 3 and "allowed" in verdicts, verdicts


def test_what_is_the_sandbox_s_own(sbx):
    """Files and directories that stand nowhere on the host, or over the host's."""
    for path in ("/etc/hosts", f"/run/user/{os.geteuid()}", "/.sbx", "/tmp"):
        why = sbx("why", path)
        assert "the sandbox has its own there" in why.out, why
