"""sbx learn: what a command needed, as a policy; the smallest that lets it pass."""
import json
import os

import pytest

from harness.sbx import PYTHON

# Fails as soon as one step does. Proxy variables are left out for "transparent".
FRONTS = {
    "http": "curl -sSf http://origin.test/ && curl -sSf http://www.origin.test:8080/",
    "connect": "curl -sSf https://origin.test/ && curl -sSf https://other.test:8443/",
    "socks": "curl -sSf --socks5-hostname 127.0.0.1:1080 http://origin.test/ &&"
             " curl -sSf --socks5-hostname 127.0.0.1:1080 https://origin.test/",
    "transparent": "unset $(env | sed -n 's/=.*//p' | grep -i _proxy); curl -sSf http://origin.test/ &&"
                   " curl -sSf http://www.origin.test:8080/ && curl -sSf https://192.0.2.11/ -k",
}
RULES = {
    "http": ["origin.test:80", "www.origin.test:8080"],
    "connect": ["origin.test:443", "other.test:8443"],
    "socks": ["origin.test"],
    "transparent": ["192.0.2.11:443", "origin.test:80", "www.origin.test:8080"],
}


@pytest.fixture
def learn(sbx, project):
    """Runs a shell script with `sbx learn`: the run and the policy. The file lies outside of the project."""
    path = project.home + "/learnt.json"

    def start(script, *options, **more):
        result = sbx("learn", "-o", path, *options, "--", "sh", "-c", script, **more)
        with open(path) as file:
            return result, json.load(file)
    start.path = path
    return start


def run_with(sbx, project, policy, script):
    path = project.home + "/policy.json"
    with open(path, "w") as file:
        json.dump(policy, file)
    sbx("check", path).ok()
    return sbx.run("--policy", path, "--", "sh", "-c", script)


@pytest.mark.parametrize("front", FRONTS)
def test_the_smallest_policy(sbx, project, lab, learn, front):
    """With it the command passes; without any one line of it, it does not."""
    script = FRONTS[front]
    result, policy = learn(script)
    assert result.code == 0, result
    assert policy == {"network": {"allow": RULES[front]}}
    lab.forget()
    again = run_with(sbx, project, policy, script)
    assert again.code == 0 and again.out == result.out, again
    for rule in policy["network"]["allow"]:
        less = {"network": {"allow": [r for r in policy["network"]["allow"] if r != rule]}}
        assert run_with(sbx, project, less, script).code != 0, rule


def test_what_is_allowed_anyway_is_not_proposed(sbx, project, learn):
    script = "curl -sSf http://origin.test/ http://www.origin.test/"
    _, policy = learn(script, "--allow", "*.origin.test")
    assert policy == {"network": {"allow": ["origin.test:80"]}}
    _, policy = learn(script, "--allow", "origin.test", "--allow", "www.origin.test")
    assert policy == {}


def test_what_stays_refused(lab, learn):
    """Deny rules, private and metadata addresses, the host's loopback: not reached, not proposed, told."""
    result, policy = learn("for h in gist.origin.test 169.254.169.254 10.0.0.1 private.test localhost; do"
                           " curl -s -o /dev/null --noproxy '' -w '%{http_code} ' http://$h/; done", "--deny", "gist.origin.test")
    assert result.out == "403 " * 5, result
    assert policy == {} and lab.connections == []
    for word in ("gist.origin.test", "169.254.169.254", "10.0.0.1", "private.test", "localhost"):
        assert any(f"denied 1x {word}" in line for line in result.messages), (word, result)


def test_what_the_network_refuses_is_told(learn):
    result, policy = learn("curl -sS http://refused.test:81/; curl -sS http://nosuch.test/; curl -sSf http://origin.test/")
    assert policy == {"network": {"allow": ["origin.test:80"]}}
    assert any("refused.test:81 was tried and not reached (connect-refused)" in m for m in result.messages), result
    assert any("nosuch.test:80 was tried and not reached (resolve-failed)" in m for m in result.messages), result


def test_many_names_are_named(learn, lab):
    """No wildcard that nobody has asked for; a word about it."""
    result, policy = learn("for n in 1 2 3 4 5 6 7; do curl -sSf http://a$n.wild.test/; done")
    assert policy["network"]["allow"] == [f"a{n}.wild.test:80" for n in range(1, 8)]
    assert [m for m in result.messages if "*.wild.test" in m and m.startswith("7 names")], result
    result, _ = learn("for n in 1 2 3 4 5; do curl -sSf http://a$n.wild.test/; done")
    assert not any("*.wild.test" in m for m in result.messages), result


def test_status_and_output(sbx, project, learn):
    """The command's own; the policy comes after it on standard output, or in the file."""
    result, policy = learn("echo out; exit 7")
    assert (result.code, result.out, policy) == (7, "out\n", {})
    result = sbx("learn", "--", "sh", "-c", "echo out; curl -sSf http://origin.test/ > /dev/null; kill -9 $$")
    assert result.code == 128 + 9
    assert json.loads(result.out.removeprefix("out\n")) == {"network": {"allow": ["origin.test:80"]}}
    assert sbx("learn", "--", "/no/such").code == 127
    absent = project.home + "/absent/learnt.json"
    sbx("learn", "-o", absent, "--", "true").refused(absent)
    sbx("learn").refused("learn", "command")


def test_the_audit_is_kept(sbx, project, learn, lab):
    """A run with everything allowed leaves its trace where every run does."""
    learn("curl -sSf http://origin.test/")
    with open(project.state + "/audit.jsonl") as file:
        line, = [json.loads(line) for line in file]
    assert (line["host"], line["verdict"]) == ("origin.test", "allow")
    learn("curl -sSf http://origin.test/", "--audit", project.home + "/audit.jsonl")
    assert "origin.test" in sbx("log").out
    with open(project.home + "/audit.jsonl") as file:
        assert json.loads(file.readline())["host"] == "origin.test"


def test_the_command_cannot_lead_the_policy_elsewhere(sbx, project):
    """A link put in place of the output file while the command runs leads nowhere."""
    victim = project.write("../../victim", "untouched\n")
    result = sbx("learn", "-o", "learnt.json", "--", "sh", "-c", f"rm learnt.json; ln -s {victim} learnt.json")
    assert result.code == 0, result
    with open(victim) as file:
        assert file.read() == "untouched\n"


def test_nothing_else_is_wider(sbx, project):
    """Files, system calls and variables are those of `run`; the workspace's file says no more than there."""
    project.policy(network={"allow": ["origin.test"]}, filesystem={"write": ["~"]})
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(os.path.exists(os.environ["REAL"] + "/secret.txt"), libc.unshare(0x10000000), libc.mount(0, 0, 0, 0, 0), os.environ.get("TOKEN"))
"""
    result = sbx("learn", "-o", project.home + "/x.json", "--env", f"REAL={project.home}", "--", PYTHON, "-I", "-c", code,
                 env={"TOKEN": "secret"})
    assert result.out == "False -1 -1 None\n", result
    assert any("not trusted" in m for m in result.messages), result


def test_nested(sbx):
    result = sbx.run("--read", os.path.dirname(sbx.program), "--", sbx.program, "learn", "--", "true")
    assert result.code == 125 and "learn" in result.err, result
