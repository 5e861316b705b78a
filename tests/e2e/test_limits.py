"""Limits (DESIGN 7.5). Where this machine cannot give one, that is said and nothing starts (P1)."""
import pytest

EATER = """
blocks = []
try:
    for _ in range(600): blocks.append(bytearray(b"x") * 1000000)
    print("ate")
except MemoryError:
    print("refused")
"""
FORKER = """
import os, time
children = 0
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(100)
            os._exit(0)
        children += 1
except OSError: pass
print(children, flush=True)
os._exit(0)
"""


def limited(result, option):
    """Whether the run was limited; else it must have been refused with one line that names the option."""
    if result.code == 125:
        result.refused(option)
        return False
    return True


def test_memory_limit(sbx):
    result = sbx.python(EATER, "--memory", "200m", may_refuse=True)
    if limited(result, "memory"):
        assert result.out == "refused\n" or result.code in (137, 1), result
    assert "ate" not in result.out


def test_memory_limit_that_is_not_reached(sbx):
    result = sbx.python("print(len(bytearray(50000000)))", "--memory", "2g", may_refuse=True)
    if limited(result, "memory"):
        assert result.ok().out == "50000000\n"


@pytest.mark.parametrize("number", [20, 64])
def test_process_limit(sbx, number):
    result = sbx.python(FORKER, "--pids", str(number), may_refuse=True)
    if limited(result, "pids"):
        assert 0 < int(result.out) < number, result


@pytest.mark.user
def test_process_limit_counts_this_run_alone(sbx):
    """FACTS: RLIMIT_NPROC inside the user namespace counts that sandbox and not the user's other processes."""
    other = sbx.start("run", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 100 & done; echo ready; wait")
    assert other.stdout.readline() == b"ready\n"
    result = sbx.python(FORKER, "--pids", "12")
    other.kill()
    other.communicate()
    assert int(result.ok().out) >= 5, result


@pytest.mark.user
def test_process_limit_works_for_a_user(sbx):
    """A plain user can always have it, by rlimit."""
    assert 0 < int(sbx.python(FORKER, "--pids", "20").ok().out) < 20


def test_limit_is_told(sbx):
    """DESIGN 7.5: which mechanism is in force is said by -v."""
    result = sbx.run("-v", "--memory", "1g", "--", "true")
    if limited(result, "memory"):
        assert "cgroup" in result.err or "rlimit" in result.err, result


@pytest.mark.parametrize("option, value", [
    ("--memory", "0"), ("--memory", "lots"), ("--memory", "99999999999999999999g"), ("--pids", "0"), ("--pids", "-5"),
    ("--cpus", "0"), ("--cpus", "x"), ("--timeout", "0x10"), ("--timeout", "-1s"), ("--timeout", "5 m"),
])
def test_bad_limits_are_refused(sbx, option, value):
    """P11"""
    sbx.run(option, value, "--", "touch", "started").refused(option)
    assert not sbx.project.exists("started")


def is_held_by_a_cgroup(sbx, *option):
    return "limits are held by a cgroup" in sbx.run("-v", *option, "--", "true").ok().err


def test_processor_limit(sbx):
    code = "import os; print(len(os.sched_getaffinity(0)))"
    result = sbx.python(code, "--cpus", "1", may_refuse=True)
    if limited(result, "cpus") and result.ok().out != "1\n":
        assert is_held_by_a_cgroup(sbx, "--cpus", "1")


def test_part_of_a_processor_needs_a_cgroup(sbx):
    """P1: a whole one would be more than was asked for."""
    if limited(sbx.run("--cpus", "0.5", "--", "true"), "limits.cpus"):
        assert is_held_by_a_cgroup(sbx, "--cpus", "0.5")


@pytest.mark.user
@pytest.mark.parametrize("letter, own, option, value", [("d", 1000000, "memory", "2g"), ("u", 4000, "pids", "5000")])
def test_limit_beyond_the_callers_own(sbx, letter, own, option, value):
    """P1: what the kernel does not grant is not left out in silence."""
    prefix = ["bash", "-c", f'ulimit -{letter} {own} && exec "$@"', "bash"]
    result = sbx("run", f"--{option}", value, "--", "true", prefix=prefix)
    if limited(result, f"limits.{option}"):
        assert is_held_by_a_cgroup(sbx, f"--{option}", value)
    else:
        assert "more than your own hard limit" in result.messages[0], result


def test_no_core_files_in_the_workspace(sbx, project):
    """P4: a crash leaves no core in the user's tree."""
    sbx.python("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert not [n for n in project.git("status", "--porcelain").split() if "core" in n]
