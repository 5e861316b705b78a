"""Live approval (--ask fd:N): a host that no rule names is asked about while the connection waits."""
import json
import os
import socket
import stat

import pytest

from harness.procs import descendants
from harness.sbx import PYTHON, Result

CLIENT = """
import json, os, socket, subprocess, sys, threading
def connect(host, port):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(50)
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
    return s
def status(s): return int(s.recv(65536).split()[1])
def curl(*words):
    done = subprocess.run(["curl", "-sS", *words], capture_output=True, text=True); return done.stdout or done.stderr
"""


class Ide:
    """The other end of --ask fd:N, and the run."""

    def __init__(self, sbx, code, *options, **more):
        self.mine, theirs = socket.socketpair()
        self.mine.settimeout(50)
        self.lines = self.mine.makefile("r")
        words = [PYTHON, "-I", "-c", CLIENT + code]
        self.process = sbx.start("run", "--ask", f"fd:{theirs.fileno()}", *options, "--", *words,
                                 pass_fds=(theirs.fileno(),), **more)
        theirs.close()

    def question(self):
        return json.loads(self.lines.readline())

    def answer(self, question, word):
        self.mine.sendall(json.dumps({"id": question["id"], "answer": word}).encode() + b"\n")

    def end(self):
        out, err = self.process.communicate(timeout=60)
        self.lines.close()
        self.mine.close()
        return Result(self.process.returncode, out, err, self.process.args)


@pytest.fixture
def ide(sbx):
    made = []

    def start(code, *options, **more):
        made.append(Ide(sbx, code, *options, **more))
        return made[-1]
    yield start
    for each in made:
        each.mine.close()
        if each.process.poll() is None:
            each.process.kill()
            each.process.communicate()


def test_allowed_once(ide, lab):
    """The connection waits, passes, and the next one is asked about again."""
    run = ide("print(curl('http://origin.test/')); print(curl('-w', '%{http_code}', '-o', '/dev/null', 'http://origin.test/'))")
    question = run.question()
    assert {k: question[k] for k in ("host", "port", "rule", "reason", "answers", "timeoutMs")} == {
        "host": "origin.test", "port": 80, "rule": "origin.test", "reason": "not-allowed",
        "answers": ["once", "run", "project", "deny"], "timeoutMs": 60000}
    assert lab.connections == [] and lab.dns.queries == []
    run.answer(question, "once")
    again = run.question()
    assert again["host"] == "origin.test" and again["id"] != question["id"]
    run.answer(again, "deny")
    result = run.end()
    assert result.out == "lab page of origin.test\n\n403\n", result
    assert len(lab.requests) == 1


@pytest.mark.parametrize("word", ["once", "run"])
def test_deny_rules_on_requests_hold(ide, lab, word):
    """What the user allows is the host; deny wins over it all the same, request by request, and TLS does not hide it."""
    deny = json.dumps({"host": "origin.test:80", "methods": ["DELETE"]})
    run = ide("""
s = socket.create_connection(("origin.test", 80)); s.settimeout(50)
def ask(method):
    s.sendall(f"{method} / HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n".encode()); return int(s.recv(65536).split()[1])
print([ask(m) for m in ("GET", "DELETE", "GET")])
t = connect("origin.test", 80); status(t); t.sendall(b"\\x16\\3\\1"); print(t.recv(10)[5:])
""", "--deny", deny)
    run.answer(run.question(), word)
    if word == "once":
        run.answer(run.question(), word)
    result = run.end()
    assert result.out == "[200, 403, 200]\nb'\\x021'\n", result
    assert [r.method for r in lab.requests] == ["GET", "GET"]


def test_allowed_for_the_run(ide, lab, project):
    """Asked once, whatever comes after; http, CONNECT and both ports of the rule. No file is written."""
    run = ide("print(*[curl(u) for u in ('http://origin.test/', 'https://origin.test/', 'http://origin.test/')], sep='')")
    run.answer(run.question(), "run")
    result = run.end()
    assert result.out == "lab page of origin.test\n" * 3 + "\n", result
    assert run.process.returncode == 0
    assert not os.path.exists(project.home + "/.config/sbx/projects")


def test_denied_is_remembered(ide, lab, project):
    """One question, and the same answer to all that follow: 403 with the fix, on every front."""
    path = project.home + "/audit.jsonl"
    run = ide("""
first = [connect("evil.test", 443) for _ in range(20)]
print([status(s) for s in first], [status(connect("evil.test", 80)) for _ in range(20)])
""", "--audit", path)
    run.answer(run.question(), "deny")
    result = run.end()
    assert result.out == f"{[403] * 20} {[403] * 20}\n", result
    assert run.lines.closed and any("--allow evil.test" in line for line in result.messages), result
    with open(path) as file:
        assert {json.loads(line)["asked"] for line in file} == {"deny"}
    assert lab.connections == [] and lab.dns.queries == []


def test_a_flood_is_one_question(ide, lab):
    """Same host: one question. Many hosts: no more than LIMITS_ASK_BURST at once, the rest refused at once."""
    run = ide("""
same = [connect("origin.test", 443) for _ in range(50)]
for s in same: assert status(s) == 200
many = [connect(f"a{n}.evil.test", 443) for n in range(60)]
print(sum(status(s) == 403 for s in many))
""")
    run.answer(run.question(), "run")
    asked = []
    while question := run.lines.readline():
        asked.append(json.loads(question))
        if "host" in asked[-1]:
            run.answer(asked[-1], "deny")
    result = run.end()
    assert result.out == "60\n", result
    assert 7 <= len(asked) <= 12 and len({q["host"] for q in asked}) == len(asked)


def test_allowed_for_the_project(ide, sbx, lab, project):
    """Written to the user's own policy, outside of the workspace; show, check and why know its place."""
    before = set(os.listdir(project.root))
    run = ide("print(curl('http://origin.test/'), curl('http://www.origin.test:8080/'), sep='')")
    for _ in range(2):
        run.answer(run.question(), "project")
    assert run.end().out == "lab page of origin.test\nlab page of www.origin.test:8080\n\n"
    name, = os.listdir(project.home + "/.config/sbx/projects")
    path = f"{project.home}/.config/sbx/projects/{name}"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert set(os.listdir(project.root)) == before
    why = sbx("why", "--json", "origin.test")
    assert why.json["answer"] == "yes" and why.json["place"].startswith(path + ":"), why
    assert '"www.origin.test:8080"' in sbx("show").ok().out
    sbx("check", path).ok()
    sbx("check").ok()
    assert sbx.run("--", "curl", "-sS", "http://origin.test/").ok().out == "lab page of origin.test\n"


def test_the_project_file_keeps_what_it_has(ide, sbx, project):
    run = ide("print(curl('http://origin.test/'))")
    run.answer(run.question(), "project")
    run.end()
    directory = project.home + "/.config/sbx/projects"
    path = f"{directory}/{os.listdir(directory)[0]}"
    with open(path, "w") as file:
        file.write('{"env": {"set": {"A": "x\\ny"}}, // why\n "network": {"deny": ["bad.test"], "allow": ["other.test:7"]}, "limits": {"timeout": "5m"}}')
    run = ide("print(curl('http://origin.test/'))")
    run.answer(run.question(), "project")
    run.end()
    shown = sbx("show").json
    assert shown["env"]["set"] == {"A": "x\ny"} and shown["limits"]["timeout"] == "5m"
    assert shown["network"]["deny"] == ["bad.test"] and shown["network"]["allow"] == ["other.test:7", "origin.test"]
    with open(path) as file:
        assert '}}, // why\n "network"' in file.read()
    os.chmod(path, 0o666)
    assert "chmod" in sbx.run("--", "true").refused(path).err


def test_a_project_file_that_cannot_be_written(ide, project):
    """It holds for this run, and a line tells what to write where."""
    run = ide("print(curl('http://origin.test/'))")
    run.answer(run.question(), "project")
    run.end()
    directory = project.home + "/.config/sbx/projects"
    path = f"{directory}/{os.listdir(directory)[0]}"
    target = project.write("../../dotfiles.json", "{}\n")
    os.unlink(path)
    os.symlink(target, path)
    run = ide("print(curl('http://origin.test/'), curl('http://origin.test/'), sep='')")
    run.answer(run.question(), "project")
    result = run.end()
    assert result.out == "lab page of origin.test\n" * 2 + "\n", result
    assert any("for this run only" in m and "symbolic link" in m and f'add "origin.test" to network.allow of {path}' in m
               for m in result.messages), result
    assert os.path.islink(path)
    with open(target) as file:
        assert file.read() == "{}\n"


def test_no_answer_in_time_is_a_no(ide, lab, project):
    run = ide("print(status(connect('evil.test', 443)), status(connect('evil.test', 443)))", "--ask-timeout", "300ms",
              "--audit", project.home + "/audit.jsonl")
    question = run.question()
    assert run.question() == {"id": question["id"], "closed": "deadline"}
    run.answer(question, "run")  # too late
    result = run.end()
    assert result.out == "403 403\n", result
    with open(project.home + "/audit.jsonl") as file:
        assert {json.loads(line)["asked"] for line in file} == {"deadline"}


@pytest.mark.parametrize("how", ["end", "junk", "endless"])
def test_an_ide_that_fails_is_a_no(ide, lab, project, how):
    path = project.home + "/audit.jsonl"
    run = ide("print(status(connect('evil.test', 443)), status(connect('other.test', 443)))", "--audit", path)
    question = run.question()
    if how == "end":
        run.mine.shutdown(socket.SHUT_RDWR)
    elif how == "junk":
        for line in (b"yes", b"{}", b'{"id":"1","answer":"run"}', b'{"id":1,"answer":true}', b'{"id":-1,"answer":"run"}',
                     b'{"id":99,"answer":"run"}', b'{"id":1,"answer":"RUN"}', b"\xff\0"):
            run.mine.sendall(line + b"\n")
        run.answer(question, "deny")
        run.answer(run.question(), "deny")
    else:
        run.mine.sendall(b"x" * 10000)
    assert run.end().out == "403 403\n"
    assert lab.connections == []
    with open(path) as file:
        assert {json.loads(line)["asked"] for line in file} == {"deny" if how == "junk" else "unasked"}


def test_what_is_never_asked(ide, lab):
    """Deny rules, addresses that lead inside, the loopback, malformed targets: the denial stands. An allowed name that
    resolves to a place where no name may lead is refused after the answer."""
    run = ide("""
hosts = [("gist.origin.test", 443), ("169.254.169.254", 80), ("10.0.0.1", 443), ("127.0.0.1", 443), ("[::1]", 443),
         ("localhost", 443), ("a.localhost", 443), ("[::ffff:10.0.0.1]", 443), ("[64:ff9b::a00:1]", 443)]
print([status(connect(*h)) for h in hosts], status(connect("bad_\\x01", 443)), status(connect("metadata.test", 80)))
""", "--deny", "gist.origin.test")
    question = run.question()
    assert question["host"] == "metadata.test"
    run.answer(question, "run")
    assert run.end().out == f"{[403] * 9} 400 403\n"
    assert lab.connections == []


def test_answers_in_any_order(ide, lab):
    """Each connection gets the answer to its own question, and waits until that comes."""
    run = ide("""
a, b, c = [connect(h, 443) for h in ("origin.test", "evil.test", "other.test")]
print("b", status(b), flush=True); a.settimeout(0.3)
try: print("a", a.recv(99))
except TimeoutError: print("a waits")
a.settimeout(50); sys.stdout.flush(); sys.stdin.readline()
print("c", status(c), "a", status(a))
""", stdin=-1)
    first, second, third = questions = [run.question() for _ in range(3)]
    assert [q["host"] for q in questions] == ["origin.test", "evil.test", "other.test"]
    run.answer(second, "deny")
    assert [run.process.stdout.readline() for _ in range(2)] == [b"b 403\n", b"a waits\n"]
    run.answer(third, "once")
    run.answer(first, "run")
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    assert run.end().out == "c 200 a 200\n"


def test_once_is_not_for_others(ide, lab):
    """What is allowed once for one connection is not for another that asks for the same host a moment later."""
    run = ide("""
a = connect("origin.test", 443); assert status(a) == 200
print(status(connect("origin.test", 443)), status(connect("origin.test", 80)))
""")
    run.answer(run.question(), "once")
    run.answer(run.question(), "deny")
    assert run.end().out == "403 403\n"


def test_once_lasts_for_its_connection(ide, lab):
    """Kept-alive requests to the same host are no new questions; to another they are."""
    run = ide("""
import http.client
c = http.client.HTTPConnection("127.0.0.1", 3128)
def get(host):
    c.request("GET", f"http://{host}/"); r = c.getresponse(); r.read(); return r.status
print(get("origin.test"), get("origin.test"), get("www.origin.test"))
s = connect("origin.test", 80); assert status(s) == 200  # cleartext inside a tunnel
for _ in range(2):
    s.sendall(b"GET / HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"); print(status(s))
""")
    run.answer(run.question(), "once")
    question = run.question()
    assert question["host"] == "www.origin.test"
    run.answer(question, "deny")
    question = run.question()
    assert question["host"] == "origin.test"
    run.answer(question, "once")
    assert run.end().out == "200 200 403\n200\n200\n"


SOCKS = """
import struct
def socks(host, port):
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(50)
    s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    got = b""
    while len(got) < 12 and (data := s.recv(12 - len(got))): got += data
    return got[3]
"""


def test_socks(ide, lab):
    run = ide(SOCKS + "print(socks('other.test', 7), socks('other.test', 7), socks('evil.test', 443), socks('evil.test', 443))")
    question = run.question()
    assert question["rule"] == "other.test:7" and question["port"] == 7
    run.answer(question, "run")
    run.answer(run.question(), "deny")
    assert run.end().out == "0 0 2 2\n"


def test_transparent(ide, lab):
    """A program that knows no proxy: the name resolves, and the question comes with the connection."""
    run = ide("""
for name in list(os.environ):
    if name.lower().endswith("_proxy"): del os.environ[name]
print(curl("http://origin.test/"), curl("https://origin.test/"), curl("-o", "/dev/null", "-w", "%{http_code}", "http://evil.test/"), sep="")
try: socket.getaddrinfo("evil.test", 80)
except socket.gaierror as error: print(error.errno)
print(subprocess.run(["sh", "-c", "echo hello | timeout 20 nc -N other.test 22"], capture_output=True, text=True).stdout)
s = socket.create_connection(("192.0.2.10", 80)); s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n"); print(s.recv(99)[9:12])
""")
    question = run.question()
    assert (question["host"], question["port"]) == ("origin.test", 80)
    assert lab.dns.queries == []  # nothing is resolved before
    run.answer(question, "run")
    question = run.question()
    assert question["host"] == "evil.test"
    run.answer(question, "deny")
    question = run.question()
    assert question["rule"] == "other.test:22"
    run.answer(question, "run")
    question = run.question()
    assert question["host"] == "192.0.2.10"
    run.answer(question, "once")
    result = run.end()
    assert result.out == "lab page of origin.test\n" * 2 + "403\n-2\nhello\n\nb'200'\n", result


def test_a_new_proxy_knows_the_answers(ide, lab):
    run = ide("""
import time
assert status(connect("origin.test", 443)) == 200
print("go", flush=True); sys.stdin.readline()
print(status(connect("origin.test", 443)))
""", stdin=-1)
    run.answer(run.question(), "run")
    assert run.process.stdout.readline() == b"go\n"
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    os.kill(proxy.pid, 9)
    run.process.stdin.write(b"\n")
    run.process.stdin.flush()
    assert run.end().out == "200\n"


def test_a_proxy_that_dies_takes_its_questions(ide, lab):
    run = ide("s = connect('origin.test', 443)\ntry: print(s.recv(99))\nexcept OSError: print(b'')")
    question = run.question()
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    os.kill(proxy.pid, 9)
    assert run.question() == {"id": question["id"], "closed": "gone"}
    assert run.end().out == "b''\n"


@pytest.mark.parametrize("options, words", [
    (["--ask", "fd:99"], ["--ask", "99", "not open"]),
    (["--ask", "fd:1"], ["--ask", "command's"]),
    (["--ask", "fd:x"], ["--ask", "number"]),
    (["--ask", "pipe"], ["--ask", "fd:N"]),
    (["--ask-timeout", "1s"], ["--ask-timeout", "--ask"]),
])
def test_bad_options(sbx, options, words):
    sbx.run(*options, "--", "true").refused(*words)


def test_bad_descriptors(sbx):
    read, write = os.pipe()
    for fd in (read, write):
        sbx.run("--ask", f"fd:{fd}", "--", "true", pass_fds=(fd,)).refused("reading and writing", "socketpair")
    os.close(read)
    os.close(write)
    mine, theirs = socket.socketpair()
    number = str(theirs.fileno())
    keep = {"pass_fds": (theirs.fileno(),)}
    sbx.run("--ask", f"fd:{number}", "--fd", number, "--", "true", **keep).refused("--fd", "answer for you")
    sbx.run("--ask", f"fd:{number}", "--network", "none", "--", "true", **keep).refused("--ask", "network")
    mine.close()
    theirs.close()


def test_the_command_does_not_have_the_descriptor(ide):
    run = ide("print(os.listdir('/proc/self/fd'))")
    assert run.end().out == "['0', '1', '2', '3']\n"  # 3 is the listing's own


def test_a_workspace_cannot_ask(sbx, project):
    project.policy(ask=True)
    assert "ask" in sbx.run("--", "true").refused(".sbx.json").err
