"""Older kernels, played by a filter that answers ENOSYS: the run works, or is refused; never is it open (P1)."""
import pytest

from harness import descriptors, refuse
from harness.sbx import PYTHON

NEWER_CALLS = ["openat2", "clone3", "pidfd_open", "pidfd_send_signal", "landlock_create_ruleset", "close_range",
               "statx", "faccessat2", "memfd_create", "open_tree", "move_mount", "mount_setattr", "fsopen",
               "renameat2", "seccomp"]

CHECKS = """
import os, urllib.request, urllib.error
def attempt(function):
    try: return str(function())
    except urllib.error.HTTPError as error: return str(error.code)
    except OSError as error: return "refused"
print(attempt(lambda: open("hidden/file").read()), attempt(lambda: open(".envrc", "w").write("evil")),
      attempt(lambda: open(os.environ["HOME"] + "/secret.txt").read()),
      attempt(lambda: urllib.request.urlopen("http://origin.test/").status),
      attempt(lambda: urllib.request.urlopen("http://evil.test/").status),
      open("/proc/self/status").read().split("Seccomp:")[1].split()[0])
raise SystemExit(7)
"""


@pytest.fixture
def checked(sbx, project):
    """Runs the checks under a kernel without the calls: sound or refused."""
    project.write("hidden/file", "hunter2")
    project.write(".envrc", "original")

    def run(*calls):
        result = sbx("run", "--hide", "hidden", "--allow", "origin.test", "--", PYTHON, "-c", CHECKS,
                     prefix=refuse.prefix(*[f"{call}=ENOSYS" for call in calls]))
        assert project.read(".envrc") == "original"
        if result.code == 125 and "bwrap: " in result.err:
            # bubblewrap itself could not do without the call: its line, then ours, and nothing was run.
            assert len(result.messages) == 1 and result.raw == b"", result
        elif result.code == 125:
            result.refused()
        else:
            assert result.code == 7, result
            assert result.out.split() == ["refused", "refused", "refused", "200", "403", "2"], result
        return result
    return run


def test_this_kernel(checked):
    assert checked().code == 7


@pytest.mark.parametrize("call", NEWER_CALLS)
def test_one_call_missing(checked, call):
    checked(call)


@pytest.mark.parametrize("call",
                         ["clone3", "landlock_create_ruleset", "close_range", "mount_setattr", "fsopen", "statx"])
def test_calls_that_are_not_needed(checked, call):
    """Below the floor of some call there is a way that needs it not."""
    assert checked(call).code == 7


def test_all_of_them_missing(checked):
    checked(*NEWER_CALLS[:12])


@pytest.mark.parametrize("call", ["clone3", "close_range", "landlock_create_ruleset"])
def test_death_is_shared_without_the_call(sbx, call):
    """P6"""
    from harness.procs import descendants, wait_until
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000", prefix=refuse.prefix(f"{call}=ENOSYS"))
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    process.kill()
    process.communicate()
    wait_until(lambda: not descendants(), lambda: f"left: {descendants()}", 10)


def test_no_descriptor_leaks_without_close_range(sbx, project):
    """F2"""
    code = "import os; print(os.path.exists('/proc/self/fd/57'))"
    prefix = descriptors.prefix(f"57={project.path('README')}") + refuse.prefix("close_range=ENOSYS")
    assert sbx("run", "--", PYTHON, "-c", code, prefix=prefix).ok().out == "False\n"
