"""sbx learn: what a command needed, as a policy; the smallest that lets it pass."""
import json
import os
import shutil
import socket

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON

# Fails as soon as one step does. Proxy variables are left out for "transparent".
FRONTS = {
    "http": "curl -sSf http://origin.test/ && curl -sSf http://www.origin.test:8080/",
    "connect": "curl -sSf https://origin.test/ && curl -sSf https://other.test:8443/",
    "socks": "curl -sSf --socks5-hostname 127.0.0.1:1080 http://origin.test/ &&"
             " curl -sSf --socks5-hostname 127.0.0.1:1080 https://origin.test/",
    "transparent": "unset $(env | sed -n 's/=.*//p' | grep -i _proxy); curl -sSf http://origin.test/ &&"
                   " curl -sSf https://other.test:8443/ && curl -sSf https://192.0.2.11/ -k",
}
RULES = {
    "http": ["origin.test:80", "www.origin.test:8080"],
    "connect": ["origin.test:443", "other.test:8443"],
    "socks": ["origin.test"],
    "transparent": ["192.0.2.11:443", "origin.test:80", "other.test:8443"],
}


@pytest.fixture
def learn(sbx, project):
    """Runs a shell script with `sbx learn`: the run and the policy. The file lies outside of the project."""
    path = project.home + "/learnt.json"

    def start(script, *options, **more):
        result = sbx("learn", "-o", path, *options, "--", "sh", "-c", script, **more)
        with open(path) as file:
            return result, json.load(file)
    start.path = path
    return start


def run_with(sbx, project, policy, script):
    path = project.home + "/policy.json"
    with open(path, "w") as file:
        json.dump(policy, file)
    sbx("check", path).ok()
    return sbx.run("--policy", path, "--", "sh", "-c", script)


@pytest.mark.parametrize("front", FRONTS)
def test_the_smallest_policy(sbx, project, lab, learn, front):
    """With it the command passes; without any one line of it, it does not."""
    script = FRONTS[front]
    result, policy = learn(script)
    assert result.code == 0, result
    assert policy == {"network": {"allow": RULES[front]}}
    lab.forget()
    again = run_with(sbx, project, policy, script)
    assert again.code == 0 and again.out == result.out, again
    for rule in policy["network"]["allow"]:
        less = {"network": {"allow": [r for r in policy["network"]["allow"] if r != rule]}}
        assert run_with(sbx, project, less, script).code != 0, rule


def test_what_is_allowed_anyway_is_not_proposed(sbx, project, learn):
    script = "curl -sSf http://origin.test/ http://www.origin.test/"
    _, policy = learn(script, "--allow", "*.origin.test")
    assert policy == {"network": {"allow": ["origin.test:80"]}}
    _, policy = learn(script, "--allow", "origin.test", "--allow", "www.origin.test")
    assert policy == {}


def test_what_stays_refused(lab, learn):
    """Deny rules, private and metadata addresses, the host's loopback: not reached, not proposed, told."""
    result, policy = learn("for h in gist.origin.test 169.254.169.254 10.0.0.1 private.test localhost; do"
                           " curl -s -o /dev/null --noproxy '' -w '%{http_code} ' http://$h/; done", "--deny", "gist.origin.test")
    assert result.out == "403 " * 5, result
    assert policy == {} and lab.connections == []
    for word in ("gist.origin.test", "169.254.169.254", "10.0.0.1", "private.test", "localhost"):
        assert any(f"denied 1x {word}" in line for line in result.messages), (word, result)


def test_what_the_network_refuses_is_told(learn):
    result, policy = learn("curl -sS http://refused.test:81/; curl -sS http://nosuch.test/; curl -sSf http://origin.test/")
    assert policy == {"network": {"allow": ["origin.test:80"]}}
    assert any("refused.test:81 was tried and not reached (connect-refused)" in m for m in result.messages), result
    assert any("nosuch.test:80 was tried and not reached (resolve-failed)" in m for m in result.messages), result


def test_many_names_are_named(learn, lab):
    """No wildcard that nobody has asked for; a word about it."""
    result, policy = learn("for n in 1 2 3 4 5 6 7; do curl -sSf http://a$n.wild.test/; done")
    assert policy["network"]["allow"] == [f"a{n}.wild.test:80" for n in range(1, 8)]
    assert [m for m in result.messages if "*.wild.test" in m and m.startswith("7 names")], result
    result, _ = learn("for n in 1 2 3 4 5; do curl -sSf http://a$n.wild.test/; done")
    assert not any("*.wild.test" in m for m in result.messages), result


def test_status_and_output(sbx, project, learn):
    """The command's own; the policy comes after it on standard output, or in the file."""
    result, policy = learn("echo out; exit 7")
    assert (result.code, result.out, policy) == (7, "out\n", {})
    result = sbx("learn", "--", "sh", "-c", "echo out; curl -sSf http://origin.test/ > /dev/null; kill -9 $$")
    assert result.code == 128 + 9
    assert json.loads(result.out.removeprefix("out\n")) == {"network": {"allow": ["origin.test:80"]}}
    assert sbx("learn", "--", "/no/such").code == 127
    absent = project.home + "/absent/learnt.json"
    sbx("learn", "-o", absent, "--", "true").refused(absent)
    sbx("learn").refused("learn", "command")


def test_the_audit_is_kept(sbx, project, learn, lab):
    """A run with everything allowed leaves its trace where every run does."""
    learn("curl -sSf http://origin.test/")
    with open(project.state + "/audit.jsonl") as file:
        line, = [json.loads(line) for line in file]
    assert (line["host"], line["verdict"]) == ("origin.test", "allow")
    learn("curl -sSf http://origin.test/", "--audit", project.home + "/audit.jsonl")
    assert "origin.test" in sbx("log").out
    with open(project.home + "/audit.jsonl") as file:
        assert json.loads(file.readline())["host"] == "origin.test"


def test_the_command_cannot_lead_the_policy_elsewhere(sbx, project):
    """A link put in place of the output file while the command runs is replaced, and leads nowhere."""
    victim = project.write("../../victim", "untouched\n")
    result = sbx("learn", "-o", "learnt.json", "--", "sh", "-c", f"ln -s {victim} learnt.json")
    assert result.code == 0, result
    with open(victim) as file:
        assert file.read() == "untouched\n"
    with open(project.root + "/learnt.json") as file:
        assert json.load(file) == {}
    assert sorted(n for n in os.listdir(project.root) if n.startswith(".sbx")) == []


def test_a_file_that_cannot_take_the_policy(sbx, project):
    """Links are not followed, and what is no file is not written to; nothing is started."""
    victim = project.write("../../victim", "untouched\n")
    os.symlink(victim, project.root + "/link")
    os.mkfifo(project.root + "/fifo")
    for name, word in (("link", "is a symbolic link, which is not written through"), ("fifo", "is no regular file"),
                       ("/dev/stdout", "leave --output out"), (".git", "is no regular file"), (".git/", "is a directory")):
        sbx("learn", "-o", name, "--", "sh", "-c", "echo started").refused("--output " + name, word)
    with open(victim) as file:
        assert file.read() == "untouched\n"


@pytest.mark.parametrize("words, code", [
    (["--audit", "broken/file", "--", "true"], 125), (["--publish", "PORT", "--", "true"], 125), (["--", "/no/such"], 127),
    (["--", "./broken"], 126), (["--timeout", "x", "--", "true"], 125),
])
def test_a_run_that_does_not_come_to_be_leaves_the_file(sbx, project, words, code):
    project.write("broken", "#!/no/such/interpreter\n")
    os.chmod(project.root + "/broken", 0o755)
    path = project.write("learnt.json", "mine\n")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words = [word.replace("PORT", str(taken.getsockname()[1])) for word in words]
        assert sbx("learn", "-o", "learnt.json", *words).code == code
    with open(path) as file:
        assert file.read() == "mine\n"


def test_the_file_keeps_its_mode(sbx, project):
    path = project.write("learnt.json", "{}\n")
    os.chmod(path, 0o600)
    sbx("learn", "-o", "learnt.json", "--", "curl", "-sSf", "http://origin.test/").ok()
    assert os.stat(path).st_mode & 0o777 == 0o600
    with open(path) as file:
        assert json.load(file) == {"network": {"allow": ["origin.test:80"]}}


def test_what_was_learnt_is_not_lost(sbx, project):
    """The file's name is taken by a directory meanwhile."""
    result = sbx("learn", "-o", "learnt.json", "--", "sh", "-c", "mkdir -p learnt.json/x; curl -sSf http://origin.test/ -o /dev/null")
    assert result.code == 125 and "learnt.json" in result.err, result
    assert json.loads(result.out) == {"network": {"allow": ["origin.test:80"]}}


def test_nothing_else_is_wider(sbx, project):
    """Files, system calls and variables are those of `run`; the workspace's file says no more than there."""
    project.policy(network={"allow": ["origin.test"]}, filesystem={"write": ["~"]})
    code = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(os.path.exists(os.environ["REAL"] + "/secret.txt"), libc.unshare(0x10000000), libc.mount(0, 0, 0, 0, 0), os.environ.get("TOKEN"))
"""
    result = sbx("learn", "-o", project.home + "/x.json", "--env", f"REAL={project.home}", "--", PYTHON, "-I", "-c", code,
                 env={"TOKEN": "secret"})
    assert result.out == "False -1 -1 None\n", result
    assert any("not trusted" in m for m in result.messages), result


def test_nested(sbx):
    result = sbx.run("--read", os.path.dirname(sbx.program), "--", sbx.program, "learn", "--", "true")
    assert result.code == 125 and "learn" in result.err, result


@pytest.fixture
def wide(project):
    """Things outside of the view: data to read, a place to write."""
    for name, text in (("datasets/a.csv", "1,2\n"), ("datasets/more/b.csv", "3\n"), ("out/old.txt", "old\n"),
                       ("out/sub/x", ""), (".netrc", "machine x\n"), (".ssh/id_ed25519", "KEY\n"), ("work/server.pem", "KEY\n"),
                       ("tools/run.sh", "#!/bin/sh\necho ran\n"), ("datasets/star*.csv", "4\n")):
        project.write("../../" + name, text)
    os.chmod(project.home + "/tools/run.sh", 0o755)
    os.symlink(project.home + "/datasets", project.home + "/link")
    return project


STEPS = {
    "read": ("cat ~/datasets/a.csv", {"read": ["~/datasets/a.csv"]}),
    "through a link": ("cat ~/link/a.csv 2>/dev/null || cat ~/datasets/a.csv", {"read": ["~/datasets/a.csv"]}),
    "relative": ("cd /tmp && cat ../$HOME/datasets/../datasets/a.csv", {"read": ["~/datasets/a.csv"]}),
    "list": ("ls ~/datasets", {"read": ["~/datasets"]}),
    "execute": ("~/tools/run.sh", {"read": ["~/tools/run.sh"]}),
    "write": ("echo new > ~/out/old.txt", {"write": ["~/out/old.txt"]}),
    "append": ("echo new >> ~/out/old.txt", {"write": ["~/out/old.txt"]}),
    "make": ("echo new > ~/out/new.txt", {"write": ["~/out"]}),
    "make a directory": ("mkdir ~/out/sub/deep", {"write": ["~/out/sub"]}),
    "remove": ("rm ~/out/old.txt", {"write": ["~/out"]}),
    "rename": (f"""{PYTHON} -c 'import os; os.chdir(os.environ["HOME"]); os.rename("out/old.txt", "out/sub/new.txt")'""", {"write": ["~/out"]}),
    "look, then read": ("test -d ~/datasets/more; test -f ~/datasets/a.csv; cat ~/datasets/more/b.csv",
                        {"read": ["~/datasets/a.csv", "~/datasets/more/b.csv"]}),
    "both": ("cat ~/datasets/a.csv; r=$?; echo x > ~/out/n; exit $(($? + r))", {"read": ["~/datasets/a.csv"], "write": ["~/out"]}),
}


@pytest.mark.parametrize("step", STEPS)
def test_paths(sbx, wide, learn, step):
    """What failed for want of a path passes with the policy; without a line of it, it fails as before."""
    script, wanted = STEPS[step]
    result, policy = learn(script)
    assert policy == {"filesystem": wanted}, result
    if step in ("through a link", "look, then read"):
        return  # they do not fail, or need a second run
    assert result.code != 0, result
    again = run_with(sbx, wide, policy, script)
    assert again.code == 0, again
    for key in wanted:
        shutil.rmtree(wide.state + "/home")  # mount points of the run before stay there
        assert run_with(sbx, wide, {"filesystem": {k: v for k, v in wanted.items() if k != key}}, script).code != 0


def test_paths_and_hosts_in_one(sbx, wide, learn):
    script = "cat ~/datasets/a.csv; r=$?; curl -sSf http://origin.test/; exit $r"
    result, policy = learn(script)
    assert policy == {"filesystem": {"read": ["~/datasets/a.csv"]}, "network": {"allow": ["origin.test:80"]}}, result
    assert run_with(sbx, wide, policy, script).ok().out == "1,2\nlab page of origin.test\n"


def test_paths_that_are_not_proposed(wide, learn):
    """Secrets, hidden and protected names, the system, the home itself: told, and nothing proposed. None was read."""
    wide.write(".env", "TOKEN=1\n")
    wide.write(".vscode/tasks.json", "{}\n")
    result, policy = learn("cat ~/.netrc ~/.ssh/id_ed25519 ~/work/server.pem .env; echo > .vscode/tasks.json; rm -r ~/out/../../user;"
                           " echo > /usr/new; cat ~/nosuch /proc/1/nosuch; ls ~/.local/state/sbx", "--hide", ".env")
    assert policy == {}, result
    for word in (".netrc: a dot file", ".ssh/id_ed25519: a dot file", "server.pem: its name", "app/.env: it is hidden",
                 ".vscode/tasks.json: it is protected"):
        assert any(m.startswith("tried, not proposed: ") and word in m for m in result.messages), (word, result)
    assert "KEY" not in result.out + result.err and "TOKEN" not in result.out + result.err
    assert not any("nosuch" in m for m in result.messages), result


def test_sockets_of_the_host_are_not_proposed(sbx, wide, learn):
    """They are shut off on purpose: told, with the option that opens one, which does."""
    paths = [wide.home + "/agent.sock", wide.root + "/server.sock"]  # not shown, and masked
    servers = [socket.socket(socket.AF_UNIX) for _ in paths]
    for server, path in zip(servers, paths):
        server.bind(path)
        server.listen()
    script = f"for p in {' '.join(paths)}; do test -S $p; cat $p; echo > $p; chmod 700 $p; done; cat ~/datasets/a.csv"
    result, policy = learn(script)
    assert policy == {"filesystem": {"read": ["~/datasets/a.csv"]}}, result
    told = [m for m in result.messages if m.startswith("tried, not proposed: ")]
    for path in paths:
        assert [m for m in told if m == f"tried, not proposed: {path}: a socket of the host, which is shut off on purpose;"
                " --unix-socket with its path opens it"], result
    result, policy = learn(script, *[word for path in paths for word in ("--unix-socket", path)])
    assert policy == {"filesystem": {"read": ["~/datasets/a.csv"]}}, result
    assert not any("socket" in m for m in result.messages), result
    connect = "import socket, sys; [socket.socket(socket.AF_UNIX).connect(p) for p in sys.argv[1:]]"
    sbx.run(*[word for path in paths for word in ("--unix-socket", path)], "--", PYTHON, "-I", "-c", connect, *paths).ok()
    for server in servers:
        server.close()


@pytest.mark.root
def test_a_sessions_directory_is_not_proposed(learn):
    """Root can make one for a test."""
    directory = "/run/user/sbx-lab"
    made = [d for d in ("/run/user", directory) if not os.path.isdir(d)]
    os.makedirs(directory, exist_ok=True)
    try:
        result, policy = learn(f"ls {directory}; test -d {directory}")
    finally:
        for each in reversed(made):
            os.rmdir(each)
    assert policy == {} and any(f"{directory}: it belongs to a login session" in m for m in result.messages), result


def test_what_a_policy_cannot_name_is_told(wide, learn):
    result, policy = learn("cat \"$HOME/datasets/star*.csv\"")
    assert policy == {} and any("cannot be written in a policy" in m for m in result.messages), result


def test_other_processes_and_threads(wide, learn):
    """Children by fork, vfork and threads, and programs executed from a thread."""
    code = """
import os, subprocess, threading
data = os.path.expanduser("~/datasets/")
def look(name):
    try: open(data + name)
    except OSError: pass
if os.fork() == 0: look("a.csv"); os._exit(0)
os.wait()
subprocess.run(["cat", data + "more/b.csv"], stderr=subprocess.DEVNULL)
threads = [threading.Thread(target=look, args=("a.csv",)) for _ in range(20)]
for t in threads: t.start()
for t in threads: t.join()
t = threading.Thread(target=lambda: os.execv("/bin/sh", ["sh", "-c", "cat ~/out/old.txt; exit 5"])); t.start(); t.join()
"""
    result, policy = learn(f"exec {PYTHON} -I -c '{code}'")
    assert result.code == 5, result
    assert policy == {"filesystem": {"read": ["~/datasets/a.csv", "~/datasets/more/b.csv", "~/out/old.txt"]}}, result


def test_faithful(sbx, learn):
    """Signals, stops and the time limit are as in run (P9)."""
    assert learn("kill -TERM $$")[0].code == 128 + 15
    assert learn("trap 'exit 9' TERM; sleep 30 & wait", "--timeout", "1s")[0].code == 124
    result, _ = learn("exec bash -c '(kill -STOP $BASHPID; exit 4) & p=$!; until grep -q \"State:.[Tt]\" /proc/$p/status;"
                      " do sleep 0.05; done; kill -CONT $p; wait $p'")
    assert result.code == 4, result


def test_hosts_only(sbx, wide, learn):
    """Without tracing: a debugger works, and no path is learnt."""
    result, policy = learn("cat ~/datasets/a.csv; curl -sSf http://origin.test/", "--hosts-only")
    assert policy == {"network": {"allow": ["origin.test:80"]}}, result


def test_hostile_programs_gain_nothing(wide, learn):
    """A filter of its own that asks for a tracer, a child without one, a path without an end."""
    code = """
import ctypes, os, struct, mmap
libc = ctypes.CDLL(None, use_errno=True)
page = mmap.mmap(-1, 4096); page.write(b"/" + b"a" * 4095)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(libc.open(ctypes.c_void_p(address), 0), libc.open(ctypes.c_void_p(1), 0), libc.open(b"/" + b"x/" * 5000, 0))
child = libc.syscall(56, 0x00800000 | 17, 0, 0, 0, 0)  # CLONE_UNTRACED
if child == 0:
    r = libc.open(b"/etc/passwd", 0); os._exit(0 if r < 0 and ctypes.get_errno() == 38 else 1)
print(os.waitpid(child, 0)[1])
class Filter(ctypes.Structure): _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
for datum in (0, 9, 65535):
    # getppid asks for a tracer; everything else passes
    text = b"".join(struct.pack("=HBBI", *row) for row in ((0x20, 0, 0, 0), (0x15, 0, 1, 110), (6, 0, 0, 0x7ff00000 | datum), (6, 0, 0, 0x7fff0000)))
    held = ctypes.create_string_buffer(text); f = Filter(4, ctypes.cast(held, ctypes.c_void_p))
    print(libc.prctl(22, 2, ctypes.byref(f)), libc.getppid() > 0)
print(os.path.exists(os.path.expanduser("~/datasets/a.csv")))
"""
    wide.write("hostile.py", code)
    result, policy = learn(f"exec {PYTHON} -I hostile.py")
    assert result.out == "-1 -1 -1\n0\n0 True\n0 True\n0 True\nFalse\n", result
    assert policy == {"filesystem": {"read": ["~/datasets/a.csv"]}}


def test_death_is_shared(sbx, wide):
    """P6 holds while the command is traced."""
    process = sbx.start("learn", "-o", wide.home + "/l.json", "--", "sh", "-c", "echo go; sleep 1000")
    assert process.stdout.readline() == b"go\n"
    process.kill()
    process.communicate()
    wait_until(lambda: not descendants(), "all is dead")
