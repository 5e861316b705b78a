"""Runs on a terminal (P9, F43): job control, signals from the keyboard, size, and who has the terminal afterwards."""
import os
import signal

import pytest

from harness.procs import Process, descendants, wait_until
from harness.sbx import PYTHON

# What an editor does: raw mode, its own handling of Ctrl-Z (back to cooked mode, stop, and raw again on SIGCONT).
FULL_SCREEN = """
import os, signal, sys, termios, tty
fd = sys.stdin.fileno()
saved = termios.tcgetattr(fd)
tty.setraw(fd)
print("raw on\\r", flush=True)
while True:
    key = os.read(fd, 1)
    if key == b"\\x1a":
        termios.tcsetattr(fd, termios.TCSADRAIN, saved)
        os.kill(0, signal.SIGTSTP)
        tty.setraw(fd)
        print("raw again\\r", flush=True)
    elif key == b"q":
        break
    else:
        print(f"key {key!r}\\r", flush=True)
termios.tcsetattr(fd, termios.TCSADRAIN, saved)
"""


@pytest.fixture
def outer(terminal):
    """An interactive shell of the user's, outside any sandbox."""
    shell = terminal("bash", "--norc", "--noprofile", "-i")
    shell.expect("outer> ")
    return shell


def wait_stopped(*names):
    """The shell says Stopped when sbx has; what is inside may need a moment more, and could still read a key."""
    wait_until(lambda: all(p.state == "T" for p in descendants() if p.name in names), f"{names} stop")


def leave(shell):
    shell.send("exit 0\n")
    shell.wait()


def test_command_on_a_terminal_has_one(terminal, sbx):
    """F43: a controlling terminal, so that ssh and gpg can ask (/dev/tty opens)."""
    term = terminal(sbx.program, "run", "--", "sh", "-c",
                    "tty; echo asked > /dev/tty; test -t 0 -a -t 1 -a -t 2 && echo all")
    term.expect("/dev/(pts/|tty|console)")
    term.expect("asked")
    term.expect("all")
    assert term.wait() == 0


def test_interrupt_from_the_keyboard(terminal, sbx):
    """P9"""
    term = terminal(sbx.program, "run", "--", "sh", "-c",
                    "trap 'echo caught; exit 5' INT; echo ready; sleep 1000 & wait")
    term.expect("ready")
    term.send("\x03")
    term.expect("caught")
    assert term.wait() == 5


def test_interrupt_that_is_not_caught(terminal, sbx):
    term = terminal(sbx.program, "run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    term.expect("ready")
    term.send("\x03")
    assert term.wait() in (130, -signal.SIGINT)


def test_quit_from_the_keyboard(terminal, sbx):
    term = terminal(sbx.program, "run", "--", "sh", "-c",
                    "trap 'echo caught; exit 6' QUIT; echo ready; sleep 1000 & wait")
    term.expect("ready")
    term.send("\x1c")
    term.expect("caught")
    assert term.wait() == 6


def test_interrupt_reaches_the_command_once(terminal, sbx):
    """P9: the kernel signals the whole foreground group; sbx must not add a second one to it. It is stopped until the
    command has taken the first, or the two would become one."""
    code = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print("ready", flush=True)
signal.sigwaitinfo([signal.SIGINT])
print("once", flush=True)
print("again" if signal.sigtimedwait([signal.SIGINT], 2) else "no more", flush=True)
"""
    term = terminal(sbx.program, "run", "--", PYTHON, "-c", code)
    term.expect("ready")
    outer, = [p for p in descendants() if p.name == "sbx"]
    os.kill(outer.pid, signal.SIGSTOP)
    wait_until(lambda: Process(outer.pid).state == "T", "sbx stops")
    term.send("\x03")
    term.expect("once")
    os.kill(outer.pid, signal.SIGCONT)
    assert term.expect(r"again|no more").group() == "no more"
    assert term.wait() == 0


def test_size_of_the_terminal_and_its_change(terminal, sbx):
    """P9: WINCH"""
    code = """
import os, signal, time
changed = []
signal.signal(signal.SIGWINCH, lambda *_: changed.append(1))
print("size", *os.get_terminal_size(), flush=True)
while not changed: time.sleep(0.05)
print("size", *os.get_terminal_size(), flush=True)
"""
    term = terminal(sbx.program, "run", "--", PYTHON, "-c", code, size=(31, 97))
    term.expect("size 97 31")
    term.resize(41, 111)
    term.expect("size 111 41")
    assert term.wait() == 0


def test_sigwinch_sent_to_sbx_reaches_the_command(sbx):
    """P9"""
    process = sbx.start("run", "--", PYTHON, "-u", "-c", """
import signal, sys, time
def changed(*_): print("changed", flush=True); sys.exit(3)
signal.signal(signal.SIGWINCH, changed)
print("ready", flush=True)
while True: time.sleep(0.1)
""")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGWINCH)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (3, b"changed\n")


def test_stop_and_foreground_in_the_users_shell(outer, sbx):
    """P9: Ctrl-Z stops the whole run, fg goes on with it, and the shell has the terminal in between."""
    outer.send(f"{sbx.program} run -- sh -c 'echo ready; read line; echo got $line'\n")
    outer.expect(r"ready\r\n")
    outer.send("\x1a")
    outer.expect("Stopped")
    outer.expect("outer> ")
    wait_stopped("sh")
    outer.send("echo between $((1 + 1))\n")
    outer.expect("between 2")
    outer.send("fg\n")
    outer.expect("read line")
    outer.send("input\n")
    outer.expect("got input")
    outer.expect("outer> ")
    leave(outer)


def test_terminal_is_the_shells_again_after_the_run(outer, sbx):
    """Foreground group and modes as before, however the run ended."""
    group, modes = outer.foreground, outer.modes()
    for command in ("true", "sh -c 'kill -KILL $$'", "sh -c 'exit 9'", "sh -c 'setsid sleep 100 & exit 0'"):
        outer.send(f"{sbx.program} run -- {command}; echo status $?\n")
        outer.expect(r"[\r\n]status \d+")
        outer.expect("outer> ")
        wait_until(lambda: outer.foreground == group, "the shell is in the foreground")
    assert outer.modes()[:4] == modes[:4]
    leave(outer)


def test_terminal_is_the_shells_again_after_sigkill_of_sbx(outer, sbx):
    outer.send(f"{sbx.program} run -- sleep 1000\n")
    victim = wait_until(lambda: [p for p in descendants() if p.argv[1:2] == ["run"]
                                 and any(c.name == "sleep" for c in descendants(p.pid))], "the run is up")[0]
    os.kill(victim.pid, signal.SIGKILL)
    outer.expect("outer> ")
    outer.send("echo still $((2 + 2)) here\n")
    outer.expect("still 4 here")
    leave(outer)


def test_full_screen_program_stops_and_comes_back(outer, sbx, project):
    """F43: raw mode works, Ctrl-Z as an editor does it stops the run, the terminal is cooked in between."""
    project.write("screen.py", FULL_SCREEN)
    cooked = outer.modes()
    outer.send(f"{sbx.program} run -- {PYTHON} screen.py\n")
    outer.expect("raw on")
    outer.send("a")
    outer.expect("key b'a'")
    outer.send("\x1a")
    outer.expect("Stopped")
    outer.expect("outer> ")
    wait_stopped("python3")
    outer.send("echo between $((1 + 1))\n")
    outer.expect("between 2")
    outer.send("fg\n")
    outer.expect("raw again")
    outer.send("b")
    outer.expect("key b'b'")
    outer.send("q")
    outer.expect("outer> ")
    assert outer.modes()[3] == cooked[3]
    leave(outer)


def test_run_in_the_background_of_a_shell(outer, sbx):
    """A background run that reads the terminal stops (SIGTTIN) instead of taking the shell's input."""
    outer.send(f"{sbx.program} run -- sh -c 'echo ready; read line; echo got $line' &\n")
    outer.expect(r"ready\r\n")
    wait_until(lambda: any(p.name == "sh" for p in descendants()), "the command runs")
    wait_stopped("sh", os.path.basename(sbx.program))
    outer.send("\n")  # the shell tells of its jobs when it prompts
    outer.expect("Stopped")
    outer.send("fg\n")
    outer.expect("read line")
    outer.send("input\n")
    outer.expect("got input")
    leave(outer)


def test_sandbox_shell_has_job_control(terminal, sbx):
    """F43: `sbx shell` with Ctrl-Z, jobs, fg, bg and Ctrl-C as in any shell."""
    term = terminal(sbx.program, "shell", env={"PS1": None, "SHELL": "/bin/bash"})
    term.send("PS1='in''ner> '; set +o history\n")
    term.expect("inner> ")
    assert "no job control" not in term.seen
    term.send("sleep 1000\n")
    wait_until(lambda: any(p.name == "sleep" for p in descendants()), "sleep runs")
    term.send("\x1a")
    term.expect("Stopped")
    term.expect("inner> ")
    term.send("jobs\n")
    term.expect(r"\[1\].*Stopped.*sleep 1000")
    term.send("fg\n")
    term.expect("sleep 1000")
    # The shell prints the line before it hands the terminal over: a Ctrl-C in between would be its own.
    wait_until(lambda: all(p.state != "T" for p in descendants() if p.name == "sleep"), "sleep goes on")
    term.send("\x03")
    term.expect("inner> ")
    term.send("echo status $?\n")
    term.expect("status 130")
    term.send("cat\n")
    wait_until(lambda: any(p.name == "cat" for p in descendants()), "cat runs")
    term.send("through cat\n")
    term.expect("through cat.*through cat")
    term.send("\x04")
    term.expect("inner> ")
    term.send("exit 4\n")
    assert term.wait() == 4


def test_sandbox_shell_is_confined(terminal, sbx, project):
    term = terminal(sbx.program, "shell", env={"SHELL": "/bin/bash"})
    term.send("PS1='in''ner> '\n")
    term.expect("inner> ")
    term.send(f"cat {project.home}/secret.txt; echo status $?\n")
    term.expect("status 1")
    term.send("exit\n")
    term.wait()


def test_sandbox_shell_within_the_users_shell(outer, sbx):
    """The inner shell takes the foreground and gives it back."""
    group = outer.foreground
    outer.send(f"{sbx.program} shell\n")
    outer.send("PS1='in''ner> '\n")
    outer.expect("inner> ")
    outer.send("exit 3\n")
    outer.expect("outer> ")
    outer.send("echo status $?\n")
    outer.expect("status 3")
    assert outer.foreground == group
    leave(outer)


def test_stop_of_a_program_in_the_sandbox_shell_is_not_seen_outside(outer, sbx):
    """Ctrl-Z within the inner shell stops its job, not the run."""
    outer.send(f"{sbx.program} shell\n")
    outer.send("PS1='in''ner> '\n")
    outer.expect("inner> ")
    outer.send("sleep 1000\n")
    sleeper = wait_until(lambda: [p for p in descendants() if p.name == "sleep"], "sleep runs")[0]
    outer.send("\x1a")
    outer.expect("Stopped.*inner> ")
    assert Process(sleeper.pid).state == "T"
    outer.send("kill %1; exit\n")
    outer.send("exit\n")
    outer.expect("outer> ")
    leave(outer)


def test_no_terminal_at_all(sbx):
    """F43: from cron or an IDE: no terminal, no complaint."""
    result = sbx.shell("test -t 0 || echo none; echo fine", start_new_session=True).ok()
    assert result.out == "none\nfine\n"
    assert result.err == ""


def test_keystrokes_cannot_be_pushed_to_the_users_shell(outer, sbx, project):
    """F5: what the sandbox does to its terminal must not become a command of the shell outside."""
    project.write("push.py", """
import ctypes
libc = ctypes.CDLL(None)
for request in (0x5412, 0x5412 | 1 << 32, 0x5412 | 3 << 40):
    for byte in b"touch pushed\\n":
        libc.syscall(ctypes.c_long(16), ctypes.c_long(0), ctypes.c_ulong(request), ctypes.byref(ctypes.c_char(byte)))
print("tried")
""")
    outer.send(f"{sbx.program} run -- {PYTHON} push.py\n")
    outer.expect("tried")
    outer.expect("outer> ")
    outer.send("echo nothing $((3 + 3)) pushed\n")
    outer.expect("nothing 6 pushed")
    assert not project.exists("pushed")
    leave(outer)
