"""check, show, init, --dry-run (P10, P11): what a user types to see and write policy."""
import json
import os

import pytest

from e2e_helpers import status_of
from harness import cover
from harness.tree import difference, snapshot


def test_check_of_a_good_policy(sbx, project):
    project.policy(network={"allow": ["origin.test"]})
    sbx("check").ok()


def test_check_of_one_file(sbx, project):
    path = project.policy("../../some.json", network={"allow": ["origin.test:443"]})
    sbx("check", path).ok()


def test_check_without_any_policy(sbx):
    sbx("check").ok()


def test_check_names_file_line_and_key(sbx, project):
    """P11"""
    path = project.write("../../bad.json", '{\n  "network": {\n    "alow": []\n  }\n}\n')
    sbx("check", path).refused(f"{path}:3", "alow", "allow")


def test_check_as_json(sbx, project):
    path = project.write("../../bad.json", '{\n  "network": {\n    "alow": []\n  }\n}\n')
    result = sbx("check", "--json", path)
    assert result.code == 125, result
    found = json.loads(result.out)
    assert "alow" in json.dumps(found) and "bad.json" in json.dumps(found), found


def test_show_prints_the_whole_policy(sbx, project):
    project.policy("../../.config/sbx/policy.json", network={"allow": ["ORIGIN.test"]}, env={"set": {"A": "b"}})
    shown = sbx("show", "--allow", "other.test:8080").json
    assert shown["network"]["allow"] == ["origin.test", "other.test:8080"], shown
    assert shown["env"]["set"]["A"] == "b"


def test_what_show_prints_is_a_policy(sbx, project):
    """It can be saved and read again, and says the same."""
    first = sbx("show", "--allow", "origin.test", "--hide", "**/.env", "--timeout", "1h").ok().out
    path = project.write("../../saved.json", first)
    sbx("check", path).ok()
    again = sbx("show", "--policy", path).ok().out
    assert json.loads(again) == json.loads(first)


def test_show_plan_is_readable_and_complete(sbx, project):
    plan = sbx("show", "--plan", "--read", "/opt", "--hide", "README").ok().out
    assert project.root in plan and "/opt" in plan and "README" in plan and "/proc" in plan


def test_dry_run_starts_and_makes_nothing(sbx, project):
    """P4"""
    before = snapshot(project.base)
    result = sbx.run("--dry-run", "--allow", "origin.test", "--", "touch", "started").ok()
    assert project.root in result.out + result.err
    assert difference(before, snapshot(project.base)) == []


def test_dry_run_fails_as_the_run_would(sbx, project):
    """P1"""
    before = snapshot(project.base)
    sbx.run("--dry-run", "--write", "/no/such/path", "--", "true").refused("/no/such/path")
    assert difference(before, snapshot(project.base)) == []


def test_plan_shows_no_values_of_variables(sbx):
    """P3: a plan is pasted into bug reports."""
    result = sbx.run("--dry-run", "--env", "TOKEN", "--", "true", env={"TOKEN": "hunter2-value"}).ok()
    assert "hunter2" not in result.out + result.err, result


def test_init_writes_a_policy_that_passes(sbx, project):
    sbx("init").ok()
    sbx("check").ok()
    assert project.exists(".sbx.json")


def test_init_leaves_an_existing_file_alone(sbx, project):
    project.write(".sbx.json", "{}")
    sbx("init")
    assert project.read(".sbx.json") == "{}"


@pytest.mark.parametrize("marker, profile", [
    ("package.json", "node"), ("pyproject.toml", "python"), ("Cargo.toml", "rust"), ("go.mod", "go"),
])
def test_init_suits_the_project(sbx, project, marker, profile):
    project.write(marker, "{}" if marker.endswith("json") else "")
    sbx("init").ok()
    assert f'"{profile}"' in project.read(".sbx.json")


@pytest.mark.parametrize("profile", ["default", "strict", "offline", "git", "node", "python", "rust", "go", "claude", "codex"])
def test_profiles_run(sbx, profile):
    assert sbx.run("--profile", profile, "--", "echo", "fine").ok().out == "fine\n"


def test_offline_profile_has_no_network(sbx, lab):
    sbx.shell("curl -s http://origin.test/", "--profile", "offline", "--allow", "origin.test")
    assert lab.connections == []


def test_layers_add_up_and_options_come_last(sbx, project):
    """DESIGN 5: system, user, workspace, --policy, options; lists add, the last scalar counts."""
    project.policy("../../etc/sbx/policy.json", network={"allow": ["zero.test"]}, limits={"timeout": "10m", "pids": 9})
    project.policy("../../.config/sbx/policy.json", network={"allow": ["one.test"]}, limits={"timeout": "1h"})
    path = project.policy("../../p.json", network={"allow": ["two.test"]}, limits={"timeout": "2h"})
    shown = sbx("show", "--policy", path, "--allow", "three.test", "--timeout", "3h",
                prefix=cover.prefix(f"{project.home}/etc+=/etc")).json
    assert shown["network"]["allow"] == ["zero.test", "one.test", "two.test", "three.test"]
    assert shown["limits"]["pids"] == 9
    assert shown["limits"]["timeout"] in ("3h", "10800s", 10800), shown["limits"]


def test_configuration_home_of_xdg(sbx, project):
    path = project.policy("../../xdg/sbx/policy.json", network={"allow": ["one.test"]})
    shown = sbx("show", env={"XDG_CONFIG_HOME": os.path.dirname(os.path.dirname(path))}).json
    assert shown["network"]["allow"] == ["one.test"]


def test_state_home_of_xdg(sbx, project):
    state = project.home + "/elsewhere"
    sbx.run("--", "sh", "-c", "echo x > ~/kept", env={"XDG_STATE_HOME": state}).ok()
    assert os.path.isdir(state + "/sbx") and not os.path.exists(project.state)
    assert sbx.run("--", "cat", project.home + "/kept", env={"XDG_STATE_HOME": state}).ok().out == "x\n"


def test_state_is_private_to_the_user(sbx, project):
    """Homes and audits are nobody else's to read."""
    sbx.run("--", "true").ok()
    assert os.stat(project.state).st_mode & 0o077 == 0


def test_answers_are_the_same_everywhere(sbx, project):
    """P10: `show`, the proxy and the audit judge with one function: what show lists is what passes."""
    from e2e_helpers import status_of
    project.policy("../../.config/sbx/policy.json", network={"allow": ["*.wild.test:80"], "deny": ["bad.wild.test"]})
    assert status_of(sbx, "http://good.wild.test/") == 200
    assert status_of(sbx, "http://bad.wild.test/") == 403
