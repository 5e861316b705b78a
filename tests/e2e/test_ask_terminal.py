"""Live approval on the terminal (--ask): the command stands still while the question does, whatever it does with it."""
import os
import signal
import termios
import time

import pytest

from harness import refuse
from harness.procs import descendants, wait_until
from harness.sbx import PYTHON

QUESTION = r"the command wants to reach origin\.test:80, which no rule allows.*allow origin\.test\? .*d\]eny \(in 60 s\)\? "
PROMPT = r"bash-[0-9.]+[#$] "
GET = "curl -sS http://origin.test/"

# Writes and reads all the time, on whatever leads to the terminal, and takes no notice of job control.
HOSTILE = r"""
import ctypes, os, signal, struct, subprocess, sys, termios, threading, tty
for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP): signal.signal(number, signal.SIG_IGN)
fd = os.open("/dev/tty", os.O_RDWR)
got = []
def wake_up():  # by a timer of the kernel: a slow one, since SIGSTOP ends one whose signal is pending just then
    signal.signal(signal.SIGCONT, lambda *_: None)
    libc, timer = ctypes.CDLL(None, use_errno=True), ctypes.c_void_p()
    event = struct.pack("QII48x", 0, signal.SIGCONT, 0)
    if libc.timer_create(1, event, ctypes.byref(timer)): raise OSError(ctypes.get_errno(), "timer_create")
    libc.timer_settime(timer, 0, struct.pack("4q", 0, 50000000, 0, 50000000), None)
def draw():
    while True: os.write(fd, b".")
def draw_awake(): wake_up(); draw()
def draw_in_threads():
    for _ in range(4): threading.Thread(target=draw).start()
    draw_awake()
def draw_and_flee():  # each child goes on for its parent
    wake_up()
    while True:
        os.write(fd, b".")
        if os.fork(): os._exit(0)
def draw_in_vfork():  # the parent cannot be interrupted
    ctypes.CDLL(None).vfork() or draw()
def read():
    while True: got.append(os.read(fd, 1))
for _ in range(3):
    if os.fork() == 0: METHOD()
tty.setraw(fd)
threading.Thread(target=read, daemon=True).start()
print("attacking\r", flush=True)
page = subprocess.run(["curl", "-sS", "http://origin.test/"], capture_output=True).stdout
print(f"\r\nread {got} page {page}\r", flush=True)
os.kill(-1, signal.SIGKILL)
"""


def inside():
    return [p for p in descendants() if p.name in ("sh", "curl", "python3", "cat", "bash", "sleep")]


@pytest.mark.parametrize("key, page", [("o", True), ("run", True), ("P", True), ("d", False)])
def test_answers(terminal, sbx, lab, project, key, page):
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"{GET}; {GET}; echo end")
    term.expect(QUESTION)
    assert lab.connections == []
    term.send(key + "\n")
    if key == "o":
        term.expect("lab page of origin.test")
        term.expect(QUESTION)
        term.send("d\n")
        term.expect("not-allowed")
    else:
        term.expect(("lab page of origin.test.*?" if page else "not-allowed.*?") * 2)
    term.expect("end")
    assert term.wait() == 0
    assert os.path.exists(project.home + "/.config/sbx/projects") == (key == "P")


def test_other_words(terminal, sbx, lab):
    """What is no answer is asked about; an empty line is none."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", GET)
    term.expect(QUESTION)
    for word in ("", "yes", "order", "x" * 60):
        term.send(word + "\n")
        term.expect("o, r, p or d\\? ")
    term.send("deny\n")
    term.expect("not-allowed")
    term.wait()


@pytest.mark.parametrize("key", ["\x03", "\x04"])
def test_ctrl_c_and_ctrl_d_are_a_no(terminal, sbx, lab, key):
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"trap 'echo trapped' INT; {GET}; echo end")
    term.expect(QUESTION)
    term.send("\x1a")  # Ctrl-Z does nothing
    term.send(key)
    term.expect("end")
    term.wait()
    assert lab.connections == []


def test_no_answer_in_time(terminal, sbx, lab):
    term = terminal(sbx.program, "run", "--ask", "--ask-timeout", "300ms", "--", "sh", "-c", f"{GET}; echo end")
    term.expect("in 1 s.*no answer in time, so it is denied.*not-allowed.*end")
    assert term.wait() == 0 and lab.connections == []


def test_what_was_typed_before_is_no_answer(terminal, sbx, lab):
    """Input for the command that came before the question could be read."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"echo ready; sleep 0.5; {GET}; echo end")
    term.expect("ready")
    term.send("o\nr\np\n")
    term.expect(QUESTION)
    term.send("d\n")
    term.expect("not-allowed.*end")
    term.wait()
    assert lab.connections == []


@pytest.mark.parametrize("method", ["draw", "draw_awake", "draw_in_threads", "draw_and_flee", "draw_in_vfork"])
def test_the_command_cannot_draw_or_read(terminal, sbx, lab, method):
    """A hostile command that ignores job control, in raw mode: nothing of it shows while the question stands, and it gets
    no key of the answer. Afterwards the terminal is as it had made it."""
    term = terminal(sbx.program, "run", "--ask", "--", PYTHON, "-I", "-c", HOSTILE.replace("METHOD", method))
    term.expect("attacking")
    term.expect(QUESTION)
    time.sleep(0.2)
    term.send("x\n")
    term.expect(r"\Ax\r\n[^.]*o, r, p or d\? ")  # our own words and nothing else
    time.sleep(0.2)
    term.send("o\n")
    assert term.expect(r"\Ao\r\n.*read (\[.*?\]) page (b'.*?')").groups() == ("[]", r"b'lab page of origin.test\n'")
    term.wait()


def test_all_that_is_inside_is_held(terminal, sbx, lab):
    """The first process of the sandbox too: programs inside may be able to write in its memory."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"sleep 1000 & {GET}; kill $!")
    term.expect(QUESTION)
    guard, = [p for p in descendants() if p.name == "bwrap" and p.state != "t"]
    below = descendants(guard.pid)
    assert {p.name for p in below} == {"bwrap", "sh", "sleep", "curl"} and {p.state for p in below} == {"t"}
    term.send("d\n")
    term.expect("not-allowed")
    term.wait()


REFUSED = r"the command cannot be stopped for the question, {}; origin\.test is refused for now.*not-allowed.*end"


def test_who_is_traced_inside_cannot_be_held(terminal, sbx, lab):
    code = f"""
import ctypes, os, subprocess
if (child := os.fork()) == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)  # PTRACE_TRACEME
    os.kill(os.getpid(), 10)
os.waitpid(child, 0)
subprocess.run({GET.split()!r})
print("end", flush=True)
os.kill(child, 9)
"""
    term = terminal(sbx.program, "run", "--syscalls", "ptrace", "--ask", "--", PYTHON, "-I", "-c", code)
    term.expect(REFUSED.format("since a process inside is traced by another"))
    assert term.wait() == 0 and lab.connections == []


def test_where_tracing_is_refused(terminal, sbx, lab):
    term = terminal(*refuse.prefix("ptrace=EPERM"), sbx.program, "run", "--ask", "--", "sh", "-c", f"{GET}; echo end")
    term.expect(REFUSED.format(r"since tracing is refused here .*ptrace_scope.*--ask fd:N"))
    assert term.wait() == 0 and lab.connections == []


def test_whoever_holds_it_dies(terminal, sbx, lab):
    """Then it has not stood still, and the question is not for the user to answer."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"{GET}; echo end")
    term.expect(QUESTION)
    holder, = [p for p in descendants() if p.name == "sbx-freeze"]
    os.kill(holder.pid, signal.SIGKILL)
    term.expect("the command did not stand still, so it is denied.*not-allowed.*end")
    assert term.wait() == 0 and lab.connections == []


def test_modes_that_are_changed_meanwhile(terminal, sbx, lab):
    """What the keys mean may have changed with them: such an answer does not count."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", f"{GET}; echo end")
    term.expect(QUESTION)
    modes = term.modes()
    modes[6][termios.VERASE] = b"n"
    termios.tcsetattr(term.master, termios.TCSANOW, modes)
    term.send("on\n")
    term.expect("modes were changed meanwhile, so it is denied.*not-allowed.*end")
    assert term.wait() == 0 and lab.connections == []


def test_keys_that_the_command_has_changed(terminal, sbx, lab):
    """With "n" as the key that erases, a "no" would be an "o"; and output that was stopped would stop us."""
    code = f"""
import subprocess, termios
modes = termios.tcgetattr(0)
modes[6][termios.VERASE], modes[6][termios.VEOL] = b"n", b"o"
termios.tcsetattr(0, termios.TCSANOW, modes)
termios.tcflow(0, termios.TCOOFF)
page = subprocess.run({GET.split()!r}, capture_output=True).stdout
print(page, flush=True)
"""
    term = terminal(sbx.program, "run", "--ask", "--", PYTHON, "-I", "-c", code)
    term.expect(QUESTION)
    term.send("no\n")
    term.expect(r"\Ano\r\n.*o, r, p or d\? ")
    term.send("d\n")
    term.expect("not-allowed")
    assert term.modes()[6][termios.VERASE] == b"n"
    assert term.wait() == 0 and lab.connections == []


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_what_the_command_leaves_is_undone(terminal, sbx, lab, kind):
    """Margins, colours, a string without its end: the question is seen as it is. A terminal that knows no sequences gets
    none."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c", GET, env={"TERM": kind})
    before = term.expect(r"(.*)sbx: the command wants").group(1)
    if kind == "dumb":
        assert before.strip() == ""
    else:
        assert before.startswith("\030\033\\") and before.endswith("\r\n\033[J")
        for sequence in ("[?69l", "[r", "8", "[4l", "[?7h", "(B", "[m", "[?25h", "]104\007"):
            assert "\033" + sequence in before
    term.send("d\n")
    term.expect("not-allowed")
    term.wait()


def test_after_a_stop_it_is_asked_again(terminal, sbx, lab):
    """The shell had the terminal meanwhile, with modes of its own."""
    shell = terminal("bash", "--norc", "--noprofile", "-i")
    shell.expect("outer> ")
    shell.send(f"{sbx.program} run --ask -- {GET}\n")
    shell.expect(QUESTION)
    ours, = [p for p in descendants() if p.name == "sbx"]
    os.kill(ours.pid, signal.SIGSTOP)
    shell.expect("Stopped.*outer> ")
    shell.send("fg\n")
    shell.expect(QUESTION)
    shell.send("o\n")
    shell.expect("lab page of origin.test.*outer> ")
    shell.send("exit 0\n")
    shell.wait()


def test_the_end_with_questions_that_wait(terminal, sbx, lab):
    """Who is told to end refuses all questions at once: the command has to hear of it."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c",
                    f"trap 'echo terminated; exit 3' TERM; {GET} & curl -sS http://evil.test/ & wait")
    term.expect("wants to reach")
    wait_until(lambda: len([p for p in inside() if p.name == "curl"]) == 2, "both ask")
    time.sleep(0.3)
    ours, = [p for p in descendants() if p.name == "sbx"]
    os.kill(ours.pid, signal.SIGTERM)
    term.expect("terminated")
    assert term.wait() == 3 and lab.connections == []


def test_the_end_without_further_questions(terminal, sbx, lab):
    """Who is told to end asks no more: a question would hold the command, which has to end."""
    term = terminal(sbx.program, "run", "--ask", "--", "sh", "-c",
                    f"trap 'curl -sS http://evil.test/; echo terminated; exit 3' TERM; {GET} & wait")
    term.expect(QUESTION)
    ours, = [p for p in descendants() if p.name == "sbx"]
    os.kill(ours.pid, signal.SIGTERM)
    term.expect(r"evil\.test:80 is not allowed.*terminated")
    assert term.wait() == 3 and lab.connections == []


def test_a_pipeline_inside_whose_first_process_has_ended(terminal, sbx, lab):
    """The foreground is the sandbox's, though no process has its group's number any more."""
    term = terminal(sbx.program, "run", "--ask", "--", "bash", "--norc", "--noprofile", "-i")
    term.expect(PROMPT)
    term.send(f"true | (sleep 0.3; {GET})\n")
    term.expect(QUESTION)
    term.send("r\n")
    term.expect("lab page of origin.test.*" + PROMPT)
    term.send("exit 0\n")
    term.wait()


def test_a_full_screen_program_goes_on(terminal, sbx, lab):
    """Raw mode is restored to the letter, and SIGCONT tells the program to draw anew."""
    code = f"""
import os, signal, subprocess, sys, tty
tty.setraw(0)
signal.signal(signal.SIGCONT, lambda *_: print("drawn anew\\r", flush=True))
print("raw\\r", flush=True)
child = subprocess.run({GET.split()!r}, capture_output=True)
while child:
    key = os.read(0, 1)
    print("key", key, "\\r", flush=True)
    if key == b"q": break
"""
    term = terminal(sbx.program, "run", "--ask", "--", PYTHON, "-I", "-c", code)
    term.expect("raw")
    term.expect(QUESTION)
    assert term.modes()[3] & 2  # ICANON
    term.send("r\n")
    term.expect("drawn anew")
    wait_until(lambda: not term.modes()[3] & 2, "raw again")
    term.send("kq")
    term.expect("key b'k'.*key b'q'")
    assert term.wait() == 0


def test_a_shell_inside_keeps_its_jobs(terminal, sbx, lab):
    """Job control inside: the job has the foreground, and has it again afterwards; one that was stopped stays so."""
    term = terminal(sbx.program, "run", "--ask", "--", "bash", "--norc", "--noprofile", "-i")
    term.expect(PROMPT)
    term.send("sleep 1000\n")
    wait_until(lambda: [p for p in inside() if p.name == "sleep"], "sleep runs")
    term.send("\x1a")
    term.expect("Stopped.*" + PROMPT)
    sleeping, = [p for p in inside() if p.name == "sleep"]
    term.send(f"{GET}\n")
    term.expect(QUESTION)
    term.send("r\n")
    term.expect("lab page of origin.test.*" + PROMPT)
    wait_until(lambda: sleeping.state == "T", "the stopped job is stopped still")
    term.send("cat\n")
    term.expect("cat")
    wait_until(lambda: [p for p in inside() if p.name == "cat"], "cat runs")
    term.send("echoed\n\x04")
    term.expect("echoed.*echoed.*" + PROMPT)
    term.send("exit 0\nexit 0\n")  # the first is told of the stopped job
    term.wait()


def test_in_the_background_nobody_is_asked(terminal, sbx, lab):
    """The terminal is another job's: no question, no key taken from it, and a word about it."""
    shell = terminal("bash", "--norc", "--noprofile", "-i")
    shell.expect("outer> ")
    shell.send(f"{sbx.program} run --ask -- {GET} </dev/null &\n")
    shell.expect("in the background.*origin.test is refused for now.*not-allowed")
    shell.send("echo shell has $((6*7))\n")
    shell.expect("shell has 42")
    shell.send("exit 0\n")
    shell.wait()
    assert lab.connections == []


def test_in_a_shells_foreground(terminal, sbx, lab):
    shell = terminal("bash", "--norc", "--noprofile", "-i")
    shell.expect("outer> ")
    shell.send(f"{sbx.program} run --ask -- {GET} | cat\n")
    shell.expect(QUESTION)
    shell.send("o\n")
    shell.expect("lab page of origin.test.*outer> ")
    shell.send("exit 0\n")
    shell.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_while_a_question_stands(terminal, sbx, lab, number):
    """The command hears of SIGTERM; when sbx is killed everything is dead (P6)."""
    shell = terminal("bash", "--norc", "--noprofile", "-i")
    shell.expect("outer> ")
    shell.send(f"{sbx.program} run --ask -- sh -c 'trap \"echo terminated; exit 3\" TERM; {GET}; sleep 100 & wait'; echo status $?\n")
    shell.expect(QUESTION)
    ours, = [p for p in descendants() if p.name == "sbx"]
    os.kill(ours.pid, number)
    shell.expect("terminated.*status 3" if number == signal.SIGTERM else "Killed.*status 137")
    wait_until(lambda: not inside() or {p.name for p in inside()} == {"bash"}, "all inside is dead")
    shell.send("exit 0\n")
    shell.wait()


def test_without_a_terminal(sbx):
    sbx.run("--ask", "--", "true", start_new_session=True).refused("--ask", "terminal", "--ask fd:N")
