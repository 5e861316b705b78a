"""sbx inside sbx (F9): it may only narrow, and cannot be talked into believing that it is inside (F8)."""
import os

import pytest

from harness.sbx import PYTHON


@pytest.fixture
def inner(sbx):
    """Runs sbx with arguments within an outer run that shows it the program."""
    place = os.path.dirname(sbx.program)

    def run(*arguments, outer=(), **options):
        return sbx.run("--read", place, *outer, "--", sbx.program, *arguments, **options)
    return run


def test_nested_run_runs_the_command(inner):
    assert inner("run", "--", "echo", "from within").ok().out == "from within\n"


def test_nested_run_passes_the_status_on(inner):
    assert inner("run", "--", "sh", "-c", "exit 9").code == 9
    assert inner("run", "--", "no-such-command-here").code == 127


@pytest.mark.parametrize("option", [
    ["--network", "host"], ["--allow", "evil.test"], ["--write", "/opt"], ["--read", "/root"], ["--home", "host"],
    ["--unix-socket", "/run/docker.sock"], ["--unprotect", ".envrc"], ["--hide", "README"], ["--network", "none"],
    ["--memory", "100m"],
])
def test_nested_option_that_cannot_be_honoured_is_refused(inner, option):
    """F9, P1: neither widening nor a promise that nobody keeps."""
    inner("run", *option, "--", "true").refused(option[0])


def test_nested_run_stays_confined(inner, project, lab):
    project.write(".envrc", "original")
    code = f"""
import urllib.request, urllib.error
try: open({project.path(".envrc")!r}, "w"); print("wrote")
except OSError: print("kept")
try: urllib.request.urlopen("http://evil.test/"); print("reached")
except urllib.error.HTTPError as error: print(error.code)
"""
    assert inner("run", "--", PYTHON, "-c", code).ok().out.split() == ["kept", "403"]
    assert lab.connections == []


def test_nested_run_cannot_use_a_policy_of_the_inside(inner, project):
    """F9: an agent inside writes itself a policy and calls sbx again."""
    path = project.policy("mine.json", network={"allow": ["evil.test"]})
    inner("run", "--policy", path, "--", "true").refused("--policy")


def test_pretending_to_be_inside_does_not_turn_the_sandbox_off(sbx, project):
    """F8, F9: every variable that a run sets, set outside: a .envrc or an editor's settings could do that."""
    shown = sbx.python("import os, json; print(json.dumps(dict(os.environ)))").json
    wanted = {name: value for name, value in shown.items() if name not in ("HOME", "PATH", "PWD")}
    project.write(".envrc", "original")
    result = sbx.python(f"""
import os
print(open("/proc/self/status").read().split("Seccomp:")[1].split()[0])
print(os.path.exists({project.home + "/secret.txt"!r}))
""", env=wanted)
    assert result.code == 125 or result.out.split() == ["2", "False"], result
