"""P10 under a flood: what was denied is told, whatever a program inside does to hide it; and the audit says what it lacks."""
import fcntl
import json
import os
import re
import signal
import socket
import threading

import pytest

from harness.sbx import PYTHON

# Is denied so often, by hosts' names: NAME=COUNT. Waits for a line of standard input before each but the first.
DENIED = """
import socket, sys
def ask(name, count):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(50)
    s.sendall(b"GET http://%s/ HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % name.encode() * count)
    got = b""
    while got.count(b"HTTP/1.1 403") < count: got += s.recv(1 << 20)
ask("first.evil.test", 1)
print("ready", flush=True)
sys.stdin.readline()
for word in sys.argv[1:]:
    name, count = word.split("=")
    ask(name, int(count))
print("done", flush=True)
sys.stdin.readline()
"""


def flood(sbx, words):
    """The messages of a run whose sbx stands still while the program inside is denied all that."""
    process = sbx.start("run", "--allow", "origin.test", "--", PYTHON, "-c", DENIED, *words, stdin=-1)
    assert process.stdout.readline() == b"ready\n", process.stderr.read1()
    os.kill(process.pid, signal.SIGSTOP)
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"done\n", process.stderr.read1()
    os.kill(process.pid, signal.SIGCONT)
    _, err = process.communicate(b"\n", timeout=60)
    assert process.returncode == 0, err
    return err.decode().splitlines()


def test_every_denial_is_told_once_sbx_reads_again(sbx):
    names = [f"h{n}.evil.test" for n in range(40)]
    messages = flood(sbx, ["noise.evil.test=500", *(f"{name}=2" for name in names), "noise.evil.test=500"])
    counts = {line.split()[3]: line.split()[2] for line in messages if " denied " in line}
    assert counts == {"first.evil.test:80": "1x", "noise.evil.test:80": "1000x",
                      **{f"{name}:80": "2x" for name in names}}, messages


def test_denials_past_those_that_are_kept_are_counted(sbx):
    messages = flood(sbx, [f"h{n}.evil.test=2" for n in range(300)])
    assert len(messages) == 257 and messages[-1] == "sbx: denied 90x more", messages[-3:]


FILL = """
import socket
def burst(path, count):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(50)
    s.sendall(b"GET http://e.evil.test/%s HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % path * count)
    got = 0
    while got < count: got += s.recv(1 << 20).count(b"HTTP/1.1 403")
for n in range(100): burst(b'"' * 1024, 60)
"""


def test_one_run_does_not_fill_the_audit_of_all(sbx, project):
    """The run is told what its audit lacks; the next one's lines are there, and what was there before."""
    file = project.state + "/audit.jsonl"
    sbx.shell("curl -s http://before.evil.test/", "--allow", "origin.test")
    result = sbx.python(FILL, "--allow", "origin.test")
    assert any(m.startswith("the audit lacks the last ") and "8 MiB" in m for m in result.messages), result
    assert os.path.getsize(file) < 9 << 20
    assert json.loads(open(file).read().splitlines()[-1])["event"] == "audit-full"
    sbx.shell("curl -s http://after.evil.test/", "--allow", "origin.test")
    sbx.python(FILL, "--allow", "origin.test")
    assert sum(os.path.getsize(f"{project.state}/{n}") for n in os.listdir(project.state) if "audit" in n) < 33 << 20
    shown = sbx("log").ok().out
    assert "before.evil.test" in shown and "after.evil.test" in shown and "audit-full" in shown


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_an_audit_that_nobody_reads(sbx, lab, kind):
    """The run goes on, and is told what is missing. A reader that comes late gets all, while there is room to wait."""
    def run(count, read):
        ours, theirs = os.pipe() if kind == "pipe" else (s.detach() for s in socket.socketpair())
        code = FILL.replace("range(100)", f"range({count})")
        process = sbx.start("run", "--allow", "origin.test", "--audit", f"fd:{theirs}", "--", PYTHON, "-c",
                            code + "print('done', flush=True); input()", stdin=-1, pass_fds=(theirs,))
        assert fcntl.fcntl(theirs, fcntl.F_GETFL) & os.O_NONBLOCK == 0
        os.close(theirs)
        assert process.stdout.readline() == b"done\n", process.stderr.read1()
        lines = []
        if read:
            reader = threading.Thread(target=lambda: lines.extend(open(ours, "rb")))
            reader.start()
        _, err = process.communicate(b"\n", timeout=60)
        if read:
            reader.join(60)
        else:
            os.close(ours)
        assert process.returncode == 0, err
        return err.decode(), [json.loads(line) for line in lines]

    err, _ = run(30, False)
    told = re.search(r"the audit lacks (\d+) lines of this run: its descriptor was full", err)
    assert told and 1000 < int(told[1]) < 1800, err
    err, lines = run(15, True)
    assert "the audit lacks" not in err and len(lines) == 900, (err, len(lines))


def test_rotated_lines_are_shown_first(sbx, project):
    """A file without room for a run makes way; `sbx log` reads both."""
    file = project.state + "/audit.jsonl"
    sbx.shell("curl -s http://older.evil.test/", "--allow", "origin.test")
    with open(file, "a") as audit:
        audit.write(" " * (9 << 20) + "\n")
    sbx.shell("curl -s http://newer.evil.test/", "--allow", "origin.test")
    assert os.path.exists(file + ".1") and "newer" in open(file).read() and "older" not in open(file).read()
    lines = sbx("log").ok().out.splitlines()
    assert ["older" in line for line in lines] == [True, False] and "newer" in lines[1], lines
    assert "newer" in sbx("log", "last").ok().out and "older" not in sbx("log", "last").ok().out
