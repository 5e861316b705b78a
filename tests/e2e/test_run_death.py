"""Whoever of a run dies, nothing is left (P4, P6, F20, F40), and runs do not touch each other (P5, F21)."""
import os
import select
import signal
import statistics
import subprocess
import time

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON
from harness.tree import difference, snapshot

# One request, so that the proxy runs too; then children of several kinds.
BUSY = """
import os, subprocess, time, urllib.request
print(urllib.request.urlopen("http://origin.test/").status, flush=True)
subprocess.Popen(["sleep", "1000"])
subprocess.Popen(["setsid", "sleep", "1000"])
if os.fork() == 0:
    os.setsid()
    while True: time.sleep(1)
print("ready", flush=True)
while True: time.sleep(1)
"""


def start_busy(sbx):
    process = sbx.start("run", "--allow", "origin.test", "--", PYTHON, "-c", BUSY)
    assert process.stdout.readline() == b"200\n", process.stderr.read1()
    assert process.stdout.readline() == b"ready\n"
    return process


def roles(process):
    """Everything that belongs to the run, sbx first, in the order of birth."""
    return [process.pid] + sorted(p.pid for p in descendants(process.pid))


def count_roles(sbx):
    process = start_busy(sbx)
    found = [(p.name, p.pid) for p in descendants(process.pid)]
    process.kill()
    process.communicate()
    return found


def host_trees(project):
    """What a run may not touch: all of the home but sbx's own state and the private home's place below it."""
    return snapshot(project.base, without=(project.state,))


def end_of(process):
    """Waits for sbx, killed or not, and closes the pipes."""
    process.wait(60)
    process.stdout.close()
    process.stderr.close()
    return process.returncode


def test_the_run_has_the_processes_that_this_file_kills(sbx):
    names = {name for name, _ in count_roles(sbx)}
    assert {"bwrap", "sbx-proxy"} <= names, names


@pytest.mark.parametrize("index", range(12))
def test_sigkill_of_any_process_leaves_nothing(sbx, project, index):
    """P4, P6, P9, F20, F40: each process of the run in turn; afterwards no process (fixture), and the trees as before."""
    project.write(".bashrc-like", "x")
    before = host_trees(project)
    process = start_busy(sbx)
    pids = roles(process)
    if index >= len(pids):
        index %= len(pids)  # fewer processes than planned for: kill some twice over rather than none
    victim = next(p for p in descendants() if p.pid == pids[index]) if index else None
    os.kill(pids[index], signal.SIGKILL)
    if victim is not None and victim.name != "bwrap":
        # The run may go on without a child of the command, and without its proxy: it ends as ever.
        process.send_signal(signal.SIGTERM)
    code = end_of(process)
    assert code != 0, "a run that lost a process is no success"
    assert victim is None or victim.name != "bwrap" or code == 128 + signal.SIGKILL
    wait_until(lambda: not descendants(), lambda: f"left after SIGKILL of {victim}: {descendants()}", 10)
    assert difference(before, host_trees(project)) == []


def test_sigkill_of_sbx_at_any_moment(sbx, project):
    """P4, P6, F40: also while the sandbox is being built."""
    project.write("node_modules/x", "x")
    before = host_trees(project)
    for delay in range(0, 30, 2):
        process = sbx.start("run", "--hide", "node_modules", "--", "sleep", "1000")
        try:
            process.wait(delay / 1000)
        except subprocess.TimeoutExpired:
            pass
        assert process.poll() is None, "ended by itself"
        process.kill()
        end_of(process)
        wait_until(lambda: not descendants(), lambda: f"left after {delay} ms: {descendants()}", 10)
    assert difference(before, host_trees(project)) == []


def time_to_die(sbx):
    """From SIGKILL of sbx until the last descriptor of a run's output is closed: the command's own, of one that has left
    its session, and of the proxy."""
    process = start_busy(sbx)
    poll = select.poll()
    for stream in (process.stdout, process.stderr):
        poll.register(stream, 0)  # nothing but its end
    process.kill()
    begin, open_streams = time.monotonic(), 2
    while open_streams:
        for fd, _ in poll.poll(10000):
            poll.unregister(fd)
            open_streams -= 1
        assert time.monotonic() < begin + 10
    ended = time.monotonic()
    end_of(process)
    return ended - begin


def test_death_is_quick(sbx):
    """P6: within 100 ms. The median, since a busy machine may keep the kernel from its work."""
    assert statistics.median(time_to_die(sbx) for _ in range(5)) < 0.1


def test_sigkill_of_the_callers_process_group(sbx, project):
    """P6: an agent kills the group that it started."""
    process = sbx.start("run", "--allow", "origin.test", "--", PYTHON, "-c", BUSY, start_new_session=True)
    assert process.stdout.readline() == b"200\n"
    assert process.stdout.readline() == b"ready\n"
    os.killpg(process.pid, signal.SIGKILL)
    end_of(process)
    wait_until(lambda: not descendants(), lambda: f"left: {descendants()}", 10)


def test_death_of_the_parent_of_sbx_is_not_the_end(sbx, project):
    """A shell that started a run in the background and left: the run goes on to its own end."""
    process = sbx.start("run", "--", "sh", "-c", "sleep 1; echo done > result",
                        prefix=["sh", "-c", '"$@" >/dev/null 2>&1 & exit 0', "sh"])
    process.communicate(timeout=60)
    wait_until(lambda: project.exists("result"), "the run ends by itself")
    assert project.read("result") == "done\n"


def test_ordinary_end_leaves_the_trees_alone(sbx, project):
    """P4, F20: no placeholder in a user's tree, whatever was protected, hidden or masked, and git status is clean."""
    project.write(".envrc", "x")
    project.write("secrets/key", "x")
    project.git("add", "-A")
    project.git("commit", "-qm", "all")
    before = host_trees(project)
    sbx.run("--hide", "secrets", "--hide", "not-there", "--allow", "origin.test", "--", "true").ok()
    assert difference(before, host_trees(project)) == []
    assert project.git("status", "--porcelain") == ""
    project.git("add", "-A")


def test_while_it_runs_the_trees_hold_nothing_new(sbx, project):
    """P4, F20: a placeholder that is removed at the end is one that SIGKILL leaves."""
    before = host_trees(project)
    process = start_busy(sbx)
    during = host_trees(project)
    process.kill()
    end_of(process)
    assert difference(before, during) == []


def test_only_the_commands_own_files_come(sbx, project):
    """P4"""
    before = host_trees(project)
    sbx.shell("echo one > one; mkdir two; echo three > two/three; rm README").ok()
    lines = difference(before, host_trees(project))
    root = project.root
    assert lines == [f"+ {root}/one", f"+ {root}/two", f"+ {root}/two/three", f"- {root}/README"]


def test_two_runs_share_a_directory_and_keep_their_protection(sbx, project):
    """P5, F21: the end of one run, orderly or by SIGKILL, lifts nothing from the other."""
    project.write(".envrc", "original")
    project.write("hidden/file", "hidden")
    attempt = ("echo x > .envrc; cat hidden/file; echo x > .git/hooks/pre-commit; mv .git .g; rm -f .envrc; "
               "mv .envrc e; true")
    long = sbx.start("run", "--hide", "hidden", "--", "sh", "-c", f"read line; {attempt}", stdin=-1)
    other = start_busy(sbx)
    sbx.run("--hide", "hidden", "--", "true").ok()
    other.kill()
    end_of(other)
    out, err = long.communicate(b"go\n", timeout=60)
    assert b"hidden" not in out, (out, err)
    assert project.read(".envrc") == "original"
    assert project.read("hidden/file") == "hidden"
    assert not project.exists(".git/hooks/pre-commit")
    assert project.exists(".git/HEAD")


def test_runs_at_once_do_not_see_each_other(sbx):
    """P5, P7"""
    first = sbx.start("run", "--", "sh", "-c", "echo one > /tmp/mine; echo ready; read line; cat /tmp/*", stdin=-1)
    assert first.stdout.readline() == b"ready\n"
    result = sbx.shell("ls /tmp; echo two > /tmp/other; cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "mine" not in result.out and "read line" not in result.out, result
    out, _ = first.communicate(b"\n", timeout=60)
    assert out == b"one\n"


def test_many_runs_at_once(sbx, project):
    """P5"""
    runs = [sbx.start("run", "--allow", "origin.test", "--", PYTHON, "-c",
                      f"import urllib.request as r; print({n}, r.urlopen('http://origin.test/').status)")
            for n in range(12)]
    for number, process in enumerate(runs):
        out, err = process.communicate(timeout=120)
        assert out == f"{number} 200\n".encode(), err


def test_stale_state_of_a_killed_run_does_not_hinder_the_next(sbx):
    """P5, F40"""
    for _ in range(3):
        process = start_busy(sbx)
        process.kill()
        end_of(process)
    sbx.run("--", "true").ok()
