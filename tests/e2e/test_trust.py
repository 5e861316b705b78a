"""A file inside the workspace can narrow, and can widen only after `sbx trust` (P11)."""
import os

import pytest

from e2e_helpers import status_of


def test_untrusted_workspace_cannot_allow(sbx, project, lab):
    """P11: and one line says what was ignored."""
    project.policy(network={"allow": ["origin.test"]})
    assert status_of(sbx, "http://origin.test/") == 403
    result = sbx.run("--", "true").ok()
    assert len(result.messages) == 1 and ".sbx.json" in result.messages[0] and "sbx trust" in result.messages[0], result
    assert lab.connections == []


@pytest.mark.parametrize("keys, script, forbidden", [
    ({"filesystem": {"read": ["~/data"]}}, "cat ~/data/file", "hunter2"),
    ({"filesystem": {"write": ["~/data"]}}, "cat ~/data/file", "hunter2"),
    ({"filesystem": {"home": "host"}}, "cat ~/data/file", "hunter2"),
    ({"env": {"pass": ["TOKEN"]}}, 'echo "$TOKEN"', "hunter2"),
    ({"network": {"mode": "host"}}, "curl -s --max-time 20 --noproxy '*' http://192.0.2.10/", "lab page"),
    ({"network": {"allow": ["*"]}}, "curl -s http://origin.test/", "lab page"),
    ({"syscalls": {"nesting": True}}, "unshare -U echo hunter2", "hunter2"),
    ({"filesystem": {"unprotect": [".envrc"]}}, "echo hunter2 > .envrc && cat .envrc", "hunter2"),
])
def test_untrusted_workspace_cannot_widen(sbx, project, keys, script, forbidden):
    """P11"""
    project.write("../../data/file", "hunter2")
    project.write(".envrc", "original")
    project.policy(**keys)
    result = sbx.shell(script, env={"TOKEN": "hunter2"})
    assert forbidden not in result.out, result


def test_profile_that_an_untrusted_workspace_extends(sbx, project):
    """P11: it is as untrusted as what names it: taken where it narrows, and else told by its name."""
    project.policy(extends=["node", "offline"])
    result = sbx("show")
    assert result.json["network"]["mode"] == "none" and result.json["network"]["allow"] == [], result
    assert any(".sbx.json: not trusted" in m and "profile node" in m for m in result.messages), result
    sbx("trust").ok()
    assert "nodejs.org" in sbx("show").json["network"]["allow"]


@pytest.mark.parametrize("keys, script, expected", [
    ({"filesystem": {"hide": ["secret"]}}, "cat secret", ""),
    ({"filesystem": {"protect": ["kept"]}}, "echo evil > kept; cat kept", "original"),
    ({"network": {"mode": "none"}}, "curl -s http://origin.test/", ""),
    ({"network": {"deny": ["origin.test"]}}, "curl -sf http://origin.test/", ""),
])
def test_untrusted_workspace_can_narrow(sbx, project, keys, script, expected):
    """DESIGN 5"""
    project.write("secret", "hunter2")
    project.write("kept", "original")
    project.policy(**keys)
    result = sbx.shell(script, "--allow", "origin.test")
    assert result.out == expected, result


def test_untrusted_workspace_may_lower_a_limit(sbx, project):
    project.policy(limits={"timeout": "1s"})
    assert sbx.run("--", "sleep", "1000").code == 124
    project.policy(limits={"timeout": "9h"})
    assert sbx.run("--timeout", "1s", "--", "sleep", "1000").code == 124


def test_trust_takes_the_file_as_it_stands(sbx, project):
    project.policy(network={"allow": ["origin.test"]})
    sbx("trust").ok()
    assert status_of(sbx, "http://origin.test/") == 200
    assert sbx.run("--", "true").ok().messages == []


def test_trust_ends_with_a_change(sbx, project):
    """P11: by whomever, also by the run itself if it could."""
    project.policy(network={"allow": ["origin.test"]})
    sbx("trust").ok()
    project.policy(network={"allow": ["origin.test", "evil.test"]})
    assert status_of(sbx, "http://evil.test/") == 403
    assert status_of(sbx, "http://origin.test/") == 403


def test_trust_is_for_that_place(sbx, project, lab):
    """The same file in another project is not trusted by that."""
    project.policy(network={"allow": ["origin.test"]})
    sbx("trust").ok()
    project.write("../clone/.sbx.json", project.read(".sbx.json"))
    project.git("init", "-q", cwd=project.path("../clone"))
    result = sbx.shell("curl -s -o /dev/null -w '%{http_code}' http://origin.test/", cwd=project.path("../clone"))
    assert result.out == "403", result


@pytest.mark.parametrize("keys", [
    {"filesystem": {"unprotect": [".envrc"]}}, {"network": {"mode": "host"}}, {"limits": {"timeout": "9h"}},
])
def test_never_from_the_workspace(sbx, project, keys):
    """P11: not even when trusted."""
    project.write(".envrc", "original")
    project.policy("../../.config/sbx/policy.json", limits={"timeout": "20s"})
    project.policy(**keys)
    sbx("trust")
    result = sbx.shell("echo evil > .envrc; curl -s --max-time 9 --noproxy '*' http://192.0.2.10/; true")
    assert "lab page" not in result.out, result
    assert project.read(".envrc") == "original"
    shown = sbx("show").json
    assert shown["limits"]["timeout"] in ("20s", 20) and shown["network"]["mode"] == "proxy", shown
    assert any(".sbx.json: ignored, since a file in the workspace can never set it" in m for m in result.messages), result


def test_run_cannot_trust_for_the_next_run(sbx, project):
    """P11: trust is recorded outside of everything that a run can write."""
    project.policy("inner.json", network={"allow": ["evil.test"]})
    place = os.path.dirname(sbx.program)
    sbx.shell(f"cp inner.json .sbx.json; {sbx.program} trust; mkdir -p ~/.local/state/sbx", "--read", place)
    assert status_of(sbx, "http://evil.test/") == 403


def test_trust_without_a_file_is_refused(sbx):
    sbx("trust").refused(".sbx.json")


def test_trust_of_a_link_is_refused(sbx, project):
    project.write("other.json", "{}")
    os.symlink("other.json", project.path(".sbx.json"))
    sbx("trust").refused(".sbx.json")


def test_workspace_policy_is_read_only_inside(sbx, project):
    """A run must not rewrite what governs the next one."""
    project.policy(network={"deny": ["evil.test"]})
    before = project.read(".sbx.json")
    sbx.shell("echo '{}' > .sbx.json; rm .sbx.json; mv .sbx.json x; true").ok()
    assert project.read(".sbx.json") == before
