"""What a run inherits and what it shows of itself: descriptors (P7, F2), command lines (F4)."""
import json
import os

import pytest

from harness import descriptors
from harness.procs import descendants, wait_until

LIST = """
import os, json
def is_open(fd):
    try: os.fstat(fd)
    except OSError: return False
    return True
print(json.dumps([fd for fd in range(1024) if is_open(fd)]))
"""

EVERY_ARGV = """
import os, json
seen = {}
for pid in os.listdir("/proc"):
    if pid.isdigit():
        for name in ("cmdline", "environ"):
            try: seen[pid + "/" + name] = open(f"/proc/{pid}/{name}", "rb").read().decode("latin-1")
            except OSError as error: seen[pid + "/" + name] = "!" + str(error)
print(json.dumps(seen))
"""


def test_no_descriptor_but_the_standard_ones(sbx, project):
    """P7, F2: descriptors 33 and 251 of the caller do not exist inside."""
    path = project.path("../outside")
    result = sbx.python(LIST, prefix=descriptors.prefix(f"33={path}", f"251={path}", f"3={path}", f"12={path}"))
    assert result.json == [0, 1, 2]


def test_no_descriptor_in_any_process_inside(sbx, project):
    """P7, F2: neither in the sandbox's first process, from which they could be taken through /proc/1/fd."""
    code = """
import os, json
found = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    except OSError: pass
print(json.dumps(found))
"""
    result = sbx.python(code, prefix=descriptors.prefix(f"33={project.path('../outside')}"))
    for link in result.json:
        assert "outside" not in link and "policy" not in link and "socket:" not in link, result


def test_named_descriptor_is_passed(sbx, project):
    """--fd N: that one, under its own number, and usable."""
    path = project.write("../outside", "secret of descriptor nine")
    prefix = descriptors.prefix(f"9={path}", f"12={path}")
    assert sbx.python(LIST, "--fd", "9", prefix=prefix).json == [0, 1, 2, 9]
    text = sbx.python("import os; print(os.pread(9, 100, 0).decode())", "--fd", "9", prefix=prefix).ok().out
    assert text == "secret of descriptor nine\n"


@pytest.mark.parametrize("number", [3, 4, 10, 11, 99, 100, 255, 1000])
def test_named_descriptor_of_any_number(sbx, project, number):
    """Whatever numbers sbx uses for itself."""
    path = project.write("../outside", "secret")
    result = sbx.python(LIST, "--fd", str(number), prefix=descriptors.prefix(f"{number}={path}"))
    assert result.json == [0, 1, 2, number]


def test_named_descriptor_that_is_not_open_is_refused(sbx):
    """P1"""
    sbx.run("--fd", "77", "--", "true").refused("77")


def test_descriptors_named_inside_a_pipe_chain(sbx):
    """What a shell's process substitution hands over works with --fd."""
    read, write = os.pipe()
    os.write(write, b"through the pipe")
    os.close(write)
    try:
        result = sbx.python(f"import os; print(os.read({read}, 100).decode())", "--fd", str(read), pass_fds=(read,))
    finally:
        os.close(read)
    assert result.ok().out == "through the pipe\n"


def test_no_argv_shows_policy_or_values(sbx, project):
    """F4: hosts, hidden paths and values of variables stand in no command line that other users could read."""
    project.write("../secret-place/file", "x")
    policy = project.policy("../../policy.json", network={"allow": ["internal-name.test"]},
                            filesystem={"hide": ["~/src/app/hidden-thing"]}, env={"set": {"TOKEN": "hunter2-value"}})
    project.write("hidden-thing", "x")
    project.write("busy", "curl -s http://internal-name.test/ >/dev/null 2>&1; echo ready; exec sleep 1000")
    process = sbx.start("run", "--policy", policy, "--env", "PASSED", "--", "sh", "busy",
                        env={"PASSED": "passed-value"})
    assert process.stdout.readline() == b"ready\n"
    lines = [p.read("cmdline").decode("latin-1") for p in descendants()]
    process.kill()
    process.communicate()
    assert len(lines) >= 4
    for line in lines:
        for secret in ("internal-name", "hidden-thing", "hunter2", "passed-value"):
            assert secret not in line, line


def test_first_process_inside_shows_nothing_of_the_host(sbx, project):
    """F4, P7: from inside, no command line and no environment tells of the policy or of the caller's variables."""
    policy = project.policy("../../policy.json", network={"allow": ["internal-name.test"]})
    result = sbx.python(EVERY_ARGV, "--policy", policy, env={"CALLERS_SECRET": "hunter2-value"})
    text = json.dumps(result.json)
    assert "hunter2" not in text, result
    assert "internal-name" not in text, result


def test_helpers_of_sbx_are_not_dumpable_or_hold_no_secret(sbx):
    """P3: the environment of the command lacks the caller's variables, as the host's /proc shows it."""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000", env={"CALLERS_SECRET": "hunter2-value"})
    assert process.stdout.readline() == b"ready\n"
    wait_until(lambda: any(p.name == "sleep" for p in descendants()), "the command runs")
    shown = [p for p in descendants(process.pid) if b"hunter2" in p.read("environ") and p.name == "sleep"]
    process.kill()
    process.communicate()
    assert shown == []
