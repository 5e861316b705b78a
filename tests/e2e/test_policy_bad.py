"""Bad policy (P11, F59): 125, one line with the place, nothing started, nothing made."""
import os

import pytest

from harness import cover, refuse
from harness.tree import difference, snapshot

BAD = {
    "unknown key": '{"netwrok": {}}',
    "unknown nested key": '{"network": {"alow": ["a.test"]}}',
    "wrong type of list": '{"network": {"allow": "origin.test"}}',
    "wrong type of item": '{"network": {"allow": [5]}}',
    "wrong type of object": '{"network": []}',
    "wrong type of word": '{"network": {"mode": 1}}',
    "null": '{"network": {"allow": null}}',
    "top is a list": "[]",
    "top is a text": '"x"',
    "bad mode": '{"network": {"mode": "open"}}',
    "bad home": '{"filesystem": {"home": "real"}}',
    "rule with a scheme": '{"network": {"allow": ["https://origin.test"]}}',
    "rule with a path": '{"network": {"allow": ["origin.test/x"]}}',
    "rule *.com": '{"network": {"allow": ["*.com"]}}',
    "rule *foo.com": '{"network": {"allow": ["*foo.com"]}}',
    "rule foo.*": '{"network": {"allow": ["foo.*"]}}',
    "rule with NUL": '{"network": {"allow": ["origin.test\\u0000.evil.test"]}}',
    "rule with %": '{"network": {"allow": ["origin%2etest"]}}',
    "rule with a control byte": '{"network": {"allow": ["origin.test\\n"]}}',
    "rule with a blank": '{"network": {"allow": ["origin.test "]}}',
    "empty rule": '{"network": {"allow": [""]}}',
    "port x": '{"network": {"allow": ["origin.test:443x"]}}',
    "port 0": '{"network": {"allow": ["origin.test:0"]}}',
    "port 65536": '{"network": {"allow": ["origin.test:65536"]}}',
    "ports reversed": '{"network": {"allow": ["origin.test:90-80"]}}',
    "decimal address": '{"network": {"allow": ["2130706433"]}}',
    "octal address": '{"network": {"allow": ["0177.0.0.1"]}}',
    "bits below the prefix": '{"network": {"allow": ["10.1.2.3/8"]}}',
    "prefix too long": '{"network": {"allow": ["10.0.0.0/33"]}}',
    "bare IPv6 with port": '{"network": {"allow": ["2001:db8::10:443/x"]}}',
    "umlaut": '{"network": {"allow": ["m\\u00fcller.test"]}}',
    "relative dots": '{"filesystem": {"write": ["../x"]}}',
    "empty path": '{"filesystem": {"read": [""]}}',
    "path with NUL": '{"filesystem": {"read": ["/opt\\u0000/x"]}}',
    "pattern to write": '{"filesystem": {"write": ["**/x"]}}',
    "bad size": '{"limits": {"memory": "big"}}',
    "negative size": '{"limits": {"memory": -1}}',
    "bad duration": '{"limits": {"timeout": "1 hour"}}',
    "bad name of a variable": '{"env": {"pass": ["A=B"]}}',
    "bad name of a set variable": '{"env": {"set": {"A B": "x"}}}',
    "value with NUL": '{"env": {"set": {"A": "x\\u0000y"}}}',
    "unknown profile": '{"extends": ["no-such"]}',
    "duplicate key": '{"network": {"allow": ["a.test"], "allow": []}}',
    "duplicate section": '{"network": {"deny": ["a.test"]}, "network": {}}',
    "trailing comma": '{"network": {"allow": ["a.test",]}}',
    "unfinished": '{"network": {"allow": ["a.test"]',
    "two documents": "{} {}",
    "trailing words": "{} x",
    "empty file": "",
    "not UTF-8": b'{"env": {"set": {"A": "\xff"}}}',
    "binary": b"\x7fELF\x00\x01",
    "deep nesting": "[" * 100000,
    "syscalls of the wrong type": '{"syscalls": {"nesting": "yes"}}',
    "pids of the wrong type": '{"limits": {"pids": "many"}}',
    "forward of a wrong port": '{"network": {"forward": [70000]}}',
    "encoded path of a rule": '{"network": {"allow": [{"host": "a.test:80", "paths": ["/a%20b"]}]}}',
    "rule on a forwarded port": '{"network": {"forward": [80], "deny": [{"host": "localhost:80", "methods": ["PUT"]}]}}',
    "credential of an unknown form": '{"credentials": {"github": {"mode": "unknown"}}}',
    "credential bound to no host": '{"credentials": {"x": {"source": {"env": "X"}, "env": "X"}}}',
    "credential bound to every host": '{"credentials": {"github": {"bind": ["*"]}}}',
    "credential bound to the loopback": '{"credentials": {"github": {"bind": ["localhost:8443"]}}}',
    "credential of half a key": '{"credentials": {"aws": {"env": "AWS_ACCESS_KEY_ID"}}}',
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_policy_file(sbx, project, kind):
    """P11, P1: named by file and line."""
    path = project.write("../../bad.json", BAD[kind])
    before = snapshot(project.base)
    sbx.run("--policy", path, "--", "touch", "started").refused(f"{path}:")
    assert difference(before, snapshot(project.base)) == []


def test_line_numbers_are_right(sbx, project):
    lines = ["{", "  // a comment", '  "network": {', '    "allow": [', '      "a.test",', '      "b.test:0"', "    ]",
             "  }", "}"]
    path = project.write("../../bad.json", "\n".join(lines))
    sbx.run("--policy", path, "--", "true").refused(f"{path}:6", "b.test:0")


@pytest.mark.parametrize("where", ["system", "user", "project", "workspace", "trusted"])
def test_every_layer_is_strict(sbx, project, where):
    """P11: also the untrusted workspace's: a fault in it is not what narrows."""
    prefix = []
    if where == "project":  # what --ask writes to
        sbx.run("--", "true").ok()
        name, = os.listdir(project.state + "/home")
        path = project.write(f"../../.config/sbx/projects/{name}.json", '{"netwrok": {}}')
    else:
        name = {"system": "../../etc/sbx/policy.json", "user": "../../.config/sbx/policy.json"}.get(where, ".sbx.json")
        path = project.write(name, '{"netwrok": {}}')
    if where == "system":
        path, prefix = "/etc/sbx/policy.json", cover.prefix(f"{project.home}/etc+=/etc")
    if where == "trusted":
        assert sbx("trust").code in (0, 125)
    sbx("run", "--", "touch", "started", prefix=prefix).refused(f"{path}:1")
    assert not project.exists("started")


REFUSED = {
    "unknown key": (["--policy", "unknown"], {}),
    "world-writable policy": (["--policy", "open"], {}),
    "absent policy": (["--policy", "absent"], {}),
    "bad rule": (["--allow", "https://x"], {}),
    "absent path": (["--write", "absent"], {}),
    "home": ([], {"cwd": "../.."}),
    "no bubblewrap": ([], {"prefix": cover.prefix("/usr/bin/bwrap")}),
    "no namespaces": ([], {"prefix": refuse.prefix("unshare=EPERM", "clone=EPERM:namespaces", "clone3=ENOSYS")}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_nothing_is_made_where_a_run_is_refused(sbx, project, what):
    """Bad input, P4: nothing started, and nothing created: neither in the project nor in the home, sbx's own places
    included."""
    project.write("unknown", '{"netwrok": {}}')
    project.write("open", "{}", 0o666)
    options, more = REFUSED[what]
    before = snapshot(project.base)
    sbx("run", *options, "--", "touch", "started", **{**more, "cwd": project.path(more.get("cwd", "."))}).refused()
    assert difference(before, snapshot(project.base)) == []


def test_policy_that_is_absent(sbx, project):
    sbx.run("--policy", project.home + "/absent.json", "--", "true").refused("absent.json")


def test_policy_that_is_a_directory(sbx, project):
    sbx.run("--policy", project.home, "--", "true").refused(project.home)


@pytest.mark.user
def test_policy_that_is_unreadable(sbx, project):
    path = project.write("../../p.json", "{}", 0)
    sbx.run("--policy", path, "--", "true").refused("p.json")


@pytest.mark.user
def test_user_policy_that_is_unreadable(sbx, project):
    """P11: not as if it were not there."""
    project.write("../../.config/sbx/policy.json", '{"network": {"deny": ["*"]}}', 0)
    sbx.run("--", "true").refused("policy.json")


@pytest.mark.parametrize("mode", [0o666, 0o662, 0o606])
def test_policy_that_others_can_write(sbx, project, mode):
    """P11: whoever can write it could widen it."""
    path = project.write("../../.config/sbx/policy.json", "{}", mode)
    sbx.run("--", "true").refused(path)


@pytest.mark.root
def test_policy_that_belongs_to_another(sbx, project):
    """P11"""
    path = project.write("../../p.json", "{}")
    os.chown(path, 4242, 4242)
    sbx.run("--policy", path, "--", "true").refused(path)


def test_policy_that_is_too_large(sbx, project):
    path = project.write("../../p.json", "{" + " " * 2_000_000 + "}")
    sbx.run("--policy", path, "--", "true").refused("p.json")


def test_workspace_policy_that_is_a_link(sbx, project):
    """P11: a link could lead to any file of the user's, and what it says would be shown in an error."""
    project.write("../../private", "hunter2")
    os.symlink(project.home + "/private", project.path(".sbx.json"))
    result = sbx.run("--", "true")
    assert result.code == 125 and "hunter2" not in result.err, result


def test_bytes_of_a_policy_are_escaped_in_messages(sbx, project):
    """P10: a repository's file must not write to the user's terminal."""
    project.write(".sbx.json", '{"\\u001b]0;title\\u0007": 1}')
    result = sbx.run("--", "true")
    assert result.code == 125 and "\x1b" not in result.err, result


def test_comments_are_allowed(sbx, project):
    path = project.write("../../p.json", '// one\n{ /* two */ "network": { "allow": [] } } // three\n')
    sbx.run("--policy", path, "--", "true").ok()


def test_bubblewrap_that_is_missing(sbx, project):
    """Bad input: 125, one line."""
    sbx("run", "--", "true", prefix=cover.prefix("/usr/bin/bwrap")).refused("bubblewrap", "install")


def test_proxy_that_is_missing(sbx):
    """P1, F7: a missing helper turns nothing off."""
    path = os.path.join(os.path.dirname(sbx.program), "sbx-proxy")
    result = sbx("run", "--allow", "origin.test", "--", "touch", "started", prefix=cover.prefix(path))
    result.refused("network", "sbx-proxy", "install")
    assert not sbx.project.exists("started")


def test_bubblewrap_of_the_project_is_not_run(sbx, project):
    """A `bwrap` in a relative or workspace directory of PATH would run unconfined."""
    project.write("bwrap", "#!/bin/sh\ntouch \"$HOME/owned\"\n", 0o755)
    project.write("bin/bwrap", "#!/bin/sh\ntouch \"$HOME/owned\"\n", 0o755)
    for path in (".:" + sbx.env["PATH"], ":" + sbx.env["PATH"], project.path("bin") + ":" + sbx.env["PATH"]):
        sbx.run("--", "true", env={"PATH": path})
        assert not os.path.exists(project.home + "/owned"), path


@pytest.mark.parametrize("value", ["", "relative", "/no/such/home", "/dev/null"])
def test_odd_home(sbx, value):
    """P1: either it works as ever, or it is refused with one line."""
    result = sbx.run("--", "true", env={"HOME": value})
    assert result.code in (0, 125) and len(result.messages) == (result.code == 125), result


def test_state_directory_that_cannot_be_made(sbx, project):
    """P1"""
    project.write("../../file", "x")
    sbx.run("--", "true", env={"XDG_STATE_HOME": project.home + "/file"}).refused("file")


def test_current_directory_that_is_gone(sbx, project):
    """F8: never unsandboxed."""
    os.makedirs(project.path("gone"))
    result = sbx("run", "--", "touch", "/tmp/x", prefix=["sh", "-c", 'cd gone && rmdir ../gone && exec "$@"', "sh"])
    result.refused()


def test_current_directory_that_is_not_writable(sbx, project):
    """F8: the command runs sandboxed, or not at all."""
    os.makedirs(project.path("readonly"))
    os.chmod(project.path("readonly"), 0o555)
    result = sbx.run("--", "grep", "Seccomp:", "/proc/self/status", cwd=project.path("readonly"))
    os.chmod(project.path("readonly"), 0o755)
    assert result.code == 125 or "2" in result.out, result


def test_user_namespaces_that_are_forbidden(sbx, project):
    """Bad input: no user namespaces: 125, one line that names the mend. As root: all namespaces."""
    sbx("run", "--", "true", prefix=refuse.prefix("unshare=EPERM", "clone=EPERM:namespaces", "clone3=ENOSYS")).refused("namespace")
