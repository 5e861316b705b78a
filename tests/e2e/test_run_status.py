"""How a run ends (P9, F41, F42), what goes through its pipes, and what a bad command line does."""
import hashlib
import os
import signal
import subprocess

import pytest

from harness.procs import Process, descendants, wait_until
from harness.sbx import PYTHON

TRAP = """
import os, signal, sys, time
def caught(number, frame):
    print("caught", signal.Signals(number).name, flush=True)
    sys.exit(7)
for name in sys.argv[1:]:
    signal.signal(getattr(signal, name), caught)
print("ready", flush=True)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize("code", [0, 1, 2, 7, 77, 123, 124, 125, 126, 127, 128, 200, 255])
def test_exit_code_is_the_commands(sbx, code):
    """P9"""
    result = sbx.shell(f"exit {code}")
    assert result.code == code, result
    assert result.messages == [], result


@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "ABRT", "KILL", "SEGV", "PIPE", "ALRM", "TERM", "USR1", "XCPU"])
def test_death_by_signal_is_128_plus_n(sbx, name):
    """P9"""
    result = sbx.python(f"import os, signal as s; s.signal(s.SIGPIPE, s.SIG_DFL); os.kill(os.getpid(), s.SIG{name})")
    assert result.code == 128 + getattr(signal, f"SIG{name}"), result


def test_output_arrives_whole_and_apart(sbx):
    result = sbx.shell("echo out; echo err >&2").ok()
    assert (result.out, result.err) == ("out\n", "err\n")


def test_pipes_are_binary_safe(sbx):
    data = os.urandom(3_000_000)
    result = sbx.run("--", "cat", input=data).ok()
    assert hashlib.sha256(result.raw).digest() == hashlib.sha256(data).digest()


def test_end_of_input_reaches_the_command(sbx):
    assert sbx.run("--", "wc", "-c", input=b"").ok().out.strip() == "0"


def test_reader_that_left_kills_the_writer_with_sigpipe(sbx):
    process = sbx.start("run", "--", "yes")
    process.stdout.read(10)
    process.stdout.close()
    assert process.wait(60) == 128 + signal.SIGPIPE
    process.stderr.close()


def test_closed_standard_descriptors_stay_closed_or_harmless(sbx):
    """F2: nothing of sbx itself slips into descriptors 0 to 2 that the caller has closed."""
    code = """
import os, json
found = {}
for fd in os.listdir("/proc/self/fd"):
    try: found[fd] = os.readlink("/proc/self/fd/" + fd)
    except OSError: pass
os.write(1, json.dumps(found).encode())
"""
    result = sbx("run", "--", PYTHON, "-I", "-c", code, prefix=["sh", "-c", 'exec "$@" 0<&- 2>&-', "sh"])
    links = result.json
    for fd in ("0", "2"):
        assert links.get(fd, "/dev/null") in ("/dev/null",) or links[fd].startswith("/proc/"), result


@pytest.mark.parametrize("command", ["no-such-command-here", "./no-such-file", "/no/such/path"])
def test_missing_command_is_127(sbx, command):
    """F42, P9"""
    result = sbx.run("--", command)
    assert result.code == 127, result
    assert len(result.messages) == 1 and command in result.messages[0], result


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_not_executable_is_126(sbx, project, kind):
    """F42, P9"""
    project.write("thing", "#!/bin/sh\n", 0o644)
    result = sbx.run("--", "./thing" if kind == "file" else "./.git")
    assert result.code == 126, result
    assert len(result.messages) == 1, result


def test_interpreter_missing_is_not_success(sbx, project):
    project.write("script", "#!/no/such/interpreter\n", 0o755)
    assert sbx.run("--", "./script").code in (126, 127)


def test_script_of_the_project_runs(sbx, project):
    project.write("tools/script", "#!/bin/sh\necho \"$0 $1\"\n", 0o755)
    assert sbx.run("--", "tools/script", "a b").ok().out == "tools/script a b\n"


def test_arguments_arrive_unchanged(sbx):
    arguments = ["", " ", "a b", "--allow", "-q", "--", "line\nbreak", "tab\t", "*", "$HOME", "'", '"', "\\", "ä"]
    result = sbx.run("--", PYTHON, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *arguments)
    assert result.json == arguments


def test_many_arguments(sbx):
    """F29: an engine's own limit (bubblewrap takes 9,000) is told in one line, if it cannot be lifted."""
    code = "import sys; print(len(sys.argv))"
    assert sbx.run("--", PYTHON, "-c", code, *[f"argument-{n}" for n in range(8000)]).ok().out == "8001\n"
    result = sbx.run("--", PYTHON, "-c", code, *[f"argument-{n}" for n in range(12000)])
    if result.code == 125:
        result.refused("arguments")
    else:
        assert result.ok().out == "12001\n"


def test_options_end_at_the_command(sbx):
    """Without -- too, what follows the command belongs to it."""
    assert sbx.run("echo", "--no-such-option", "-v").ok().out == "--no-such-option -v\n"


def test_time_limit_is_124(sbx):
    """P9, P6: also for a command that ignores SIGTERM, and nothing of it lives on (fixture)."""
    result = sbx.run("--timeout", "1s", "--", "sh", "-c", "trap '' TERM INT HUP; sleep 1000 & sleep 1000; sleep 1000")
    assert result.code == 124, result
    assert any("1s" in m or "time" in m for m in result.messages), result


def test_time_limit_that_is_not_reached(sbx):
    assert sbx.run("--timeout", "1h", "--", "sh", "-c", "exit 3").code == 3


@pytest.mark.parametrize("arguments", [
    ["--no-such-option", "--", "true"], ["--allow"], ["--timeout", "soon", "--", "true"],
    ["--memory", "-1", "--", "true"],
    ["--pids", "many", "--", "true"], ["--network", "some", "--", "true"], ["--home", "none", "--", "true"],
    ["--engine", "docker", "--", "true"], ["--fd", "x", "--", "true"], ["--allow", "http://origin.test/", "--", "true"],
    ["--profile", "no-such-profile", "--", "true"], ["--policy", "/no/such/file", "--", "true"], [], ["--"],
])
def test_bad_command_line_is_125(sbx, arguments):
    """P1, P11: one clear line, and the command never starts."""
    sbx.run(*arguments).refused()


def test_unknown_command_of_sbx_is_125(sbx):
    sbx("frobnicate").refused("frobnicate")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_signal_reaches_the_command(sbx, name):
    """P9, F41: the command's trap runs, and its exit code is sbx's."""
    process = sbx.start("run", "--", PYTHON, "-u", "-c", TRAP, name)
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, name))
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (7, f"caught {name}\n".encode()), err


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_signal_that_is_not_caught_ends_the_run(sbx, name):
    """P9, F41: 128+n, not 0, and nothing runs on (fixture)."""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)


def test_signal_at_any_early_moment_ends_the_run(sbx):
    """P9, F41: a signal that comes while the sandbox is being built is not lost."""
    for delay in range(0, 40, 4):
        process = sbx.start("run", "--", "sleep", "1000")
        subprocess.run(["sleep", f"0.{delay:03d}"], check=True)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode in (128 + signal.SIGTERM, -signal.SIGTERM), (delay, process.returncode)


def test_ignored_signal_stays_ignored(sbx):
    """nohup works: a disposition of SIG_IGN is inherited, and sbx does not die of the signal itself."""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; sleep 1; echo done", prefix=["nohup"])
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"done\n")


def test_blocked_signals_are_not_passed_on(sbx):
    code = "print(open('/proc/self/status').read())"
    status = sbx.python(code).ok().out
    masks = {line.split(":")[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Sig")
             and "Q" not in line}
    assert masks["SigBlk"] == 0, status
    ignored = masks["SigIgn"] & ~(1 << (signal.SIGPIPE - 1)) & ~(1 << (signal.SIGXFSZ - 1))  # Python ignores these two
    assert ignored == 0, status


def test_stop_and_continue_reach_the_command(sbx):
    """P9"""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    sleeper = wait_until(lambda: [p for p in descendants(process.pid) if p.name == "sleep"], "sleep runs")[0]
    process.send_signal(signal.SIGTSTP)
    # A SIGCONT that comes before sbx itself has stopped is lost to it, as to any program that stops itself.
    wait_until(lambda: all(Process(p).state == "T" for p in (sleeper.pid, process.pid)), "both stop")
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: Process(sleeper.pid).state != "T", "the command goes on")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143


def test_background_process_does_not_keep_the_run(sbx):
    """The run ends with the command; what it left in the background dies with it (P6; the fixture looks)."""
    process = sbx.start("run", "--", "sh", "-c",
                        "sleep 1000 >/dev/null 2>&1 & setsid sleep 1000 >/dev/null 2>&1 & exit 5")
    process.communicate(timeout=60)
    assert process.returncode == 5


def test_directory_is_kept(sbx, project):
    project.write("deep/er/file")
    assert sbx.run("--", "pwd", cwd=project.path("deep/er")).ok().out.strip() == project.path("deep/er")


def test_umask_and_nice_are_kept(sbx):
    result = sbx("run", "--", "sh", "-c", "umask; nice",
                 prefix=["sh", "-c", 'umask 027; exec nice -n 5 "$@"', "sh"]).ok()
    assert result.out.split() == ["0027", str(min(os.nice(0) + 5, 19))]


def test_quiet_and_summary_never(sbx):
    code = "import urllib.request as r\ntry: r.urlopen('http://evil.test/')\nexcept Exception as e: print(e)"
    assert "evil.test" in sbx.python(code).ok().err
    assert sbx.python(code, "--summary", "never").ok().err == ""
    assert sbx.python(code, "-q").ok().err == ""


def test_help_and_version(sbx):
    assert "run" in sbx("--help").ok().out
    assert "--allow" in sbx("run", "--help").ok().out
    assert sbx("--version").ok().out.startswith("sbx ")
