"""sbx doctor (DESIGN 10): what the machine has, and a proof of enforcement. Each check is made to fail once: by a
machine that lacks something, by attempts that nothing confines, and by a bubblewrap or a proxy that lets one thing
through."""
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess

import pytest

from harness import refuse
from harness.procs import descendants, wait_until
from harness.sbx import PYTHON, Sbx
from harness.tree import difference, snapshot

SELF_TESTS = ["files", "protected", "hidden", "network", "kernel", "death"]

# Binds SOURCE over TARGET in a mount namespace (a plain user's lies in a user namespace), then executes the rest.
COVER = """
import ctypes, os, sys
libc, uid, gid = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
if libc.unshare(0x20000 | (0x10000000 if uid else 0)): raise SystemExit("unshare")
for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")) if uid else ():
    with open("/proc/self/" + name, "w") as file: file.write(text)
if libc.mount(None, b"/", None, 0x44000, None): raise SystemExit("private")
if libc.mount(sys.argv[1].encode(), sys.argv[2].encode(), None, 0x5000, None):
    raise SystemExit("mount: " + os.strerror(ctypes.get_errno()))
os.execv(sys.argv[3], sys.argv[3:])
"""

# A bubblewrap that lets one thing through: it edits the options before it executes the true one.
WRONG_BWRAP = """#!/usr/bin/python3 -I
import ctypes, os, sys
words = sys.argv[1:]
def edit(options):
    work = next((o for o in options if o.endswith("/work") and "/doctor-" in o), "")
    at = options.index("--chdir") if "--chdir" in options else len(options)
    {edit}
    return options
if "--args" in words:
    fd = int(words[words.index("--args") + 1])
    with os.fdopen(fd, "rb") as file: options = file.read().decode().split(chr(0))[:-1]
    fresh = os.memfd_create("args", 0)
    os.write(fresh, b"".join(o.encode() + bytes(1) for o in edit(options)))
    os.lseek(fresh, 0, 0)
    words[words.index("--args") + 1] = str(fresh)
os.execv("{real}", ["bwrap", *words])
"""

# A proxy that speaks to sbx as sbx-proxy does (src/sys/control.h), and lets one thing through.
WRONG_PROXY = """#!/usr/bin/python3 -I
import array, os, re, socket, struct, sys, time
try: control = socket.socket(fileno=3)
except OSError: sys.exit(1)
_, received, _, _ = control.recvmsg(4096, 1024)
listener = socket.socket(fileno=array.array("i", received[0][2])[2])
control.send(struct.pack("I", 2))
listener.setblocking(True)
while True:
    connection = listener.accept()[0]
    connection.setblocking(True)
    request = connection.recv(4096).decode()
    {answer}
    connection.close()
"""


def cover(source, target):
    return [PYTHON, "-I", "-c", COVER, source, target]


def checks(result):
    """{name: [check]} of the JSON form."""
    found = {}
    for check in json.loads(result.out)["checks"]:
        assert set(check) == {"status", "name", "text", "mend"}, check
        found.setdefault(check["name"], []).append(check)
    return found


def failed(result, name):
    """The one check of that name, which failed; and so did doctor."""
    assert result.code == 1, result
    assert json.loads(result.out)["ok"] is False
    wrong = [c for c in checks(result).get(name, []) if c["status"] == "fail"]
    assert len(wrong) == 1, result
    return wrong[0]


@pytest.fixture
def own(sbx, project):
    """An sbx of the project's own, beside which another sbx-proxy can stand."""
    place = project.path("../../own")
    os.makedirs(place)
    for name in ("sbx", "sbx-proxy"):
        shutil.copy(os.path.join(os.path.dirname(sbx.program), name), place)
    return Sbx(f"{place}/sbx", project)


@pytest.fixture
def wrong_bwrap(project):
    """A function: words to put before a command that then finds a bubblewrap with edited options."""
    def make(edit):
        real = project.path("../../bwrap")
        shutil.copy("/usr/bin/bwrap", real)
        wrong = project.write("../../wrong-bwrap", WRONG_BWRAP.format(edit=edit, real=real), 0o755)
        return cover(wrong, "/usr/bin/bwrap")
    return make


def test_doctor_passes_here(sbx):
    result = sbx("doctor").ok()
    assert result.out.count("\n") >= 8, result
    for word in ("namespace", "bubblewrap", "seccomp", "cgroup"):
        assert word in result.out.lower(), (word, result)
    for line in result.out.splitlines():
        assert re.match(r"(ok  |warn|FAIL)  \S", line), line


def test_doctor_tries_to_break_out(sbx):
    found = checks(sbx("doctor", "--json").ok())
    for name in SELF_TESTS:
        check, = found[f"self-test: {name}"]
        assert check["status"] == "ok", check
        assert check["mend"] is None


def test_doctor_as_json_says_the_same(sbx):
    text, found = sbx("doctor").ok().out, sbx("doctor", "--json").json
    assert found["ok"] is True
    names = re.findall(r"(?m)^(?:ok|warn) +((?:self-test: |kernel: L)?[^:]+):", text)
    assert [c["name"] for c in found["checks"]] == names


def test_doctor_leaves_nothing(sbx, project):
    before = snapshot(project.base)
    sbx("doctor").ok()
    assert difference(before, snapshot(project.base)) == []


def test_doctor_removes_what_a_killed_one_left(sbx, project):
    os.makedirs(f"{project.state}/doctor-2147483000/work/.git")
    os.makedirs(f"{project.state}/doctor-notes")
    sbx("doctor").ok()
    assert os.listdir(project.state) == ["doctor-notes"]


def test_doctor_works_where_no_workspace_can_be(sbx, project):
    sbx("doctor", cwd=project.home).ok()


def test_doctor_inside_a_sandbox(sbx, project):
    result = sbx.run("--read", sbx.program, "--", sbx.program, "doctor").ok()
    assert "inside a sandbox" in result.out and result.out.count("\n") == 1, result


@pytest.mark.parametrize("words", [["attempt"], ["attempt", "files"], ["attempt", "survive", "x"],
                                   ["attempt", "x", "y"], ["x"], ["--plan"]])
def test_bad_arguments(sbx, words):
    assert "doctor" in sbx("doctor", *words).refused().messages[0]


def test_doctor_without_bubblewrap(sbx):
    check = failed(sbx("doctor", "--json", prefix=cover("/dev/null", "/usr/bin/bwrap")), "bubblewrap")
    assert "not installed" in check["text"]
    wanted = "apt-get install bubblewrap" if os.geteuid() == 0 else "sudo apt-get install bubblewrap"
    with open("/etc/os-release") as file:
        if re.search(r"(?m)^ID(_LIKE)?=.*\b(debian|ubuntu)\b", file.read()):
            assert check["mend"] == wanted
    assert "bubblewrap" in check["mend"]


@pytest.mark.parametrize("system, mend", [
    ("ID=fedora", "dnf install bubblewrap"), ("ID=x\nID_LIKE=\"rhel fedora\"", "dnf install bubblewrap"),
    ("ID=arch", "pacman -S bubblewrap"), ("ID='alpine'", "apk add bubblewrap"),
    ("NAME=x", "install the package bubblewrap"),
])
def test_mend_is_for_the_distribution(sbx, project, system, mend):
    release = cover(project.write("../../os-release", system + "\n"), os.path.realpath("/etc/os-release"))
    result = sbx("doctor", "--json", prefix=[*release, *cover("/dev/null", "/usr/bin/bwrap")])
    assert mend in failed(result, "bubblewrap")["mend"]


def test_doctor_with_an_old_bubblewrap(sbx, project):
    old = project.write("../../old-bwrap", "#!/bin/sh\nprintf '  --args FD\\n  --json-status-fd FD\\n'\n", 0o755)
    check = failed(sbx("doctor", "--json", prefix=cover(old, "/usr/bin/bwrap")), "bubblewrap")
    assert "--block-fd" in check["text"] and "bubblewrap" in check["mend"]


REFUSED = refuse.prefix("unshare=EPERM", "clone=EPERM:namespaces", "clone3=ENOSYS")


def test_doctor_without_user_namespaces(sbx):
    check = failed(sbx("doctor", "--json", prefix=REFUSED), "user namespaces")
    assert "filter" in check["text"]


def test_doctor_with_namespaces_turned_off_by_a_setting(sbx, project):
    setting = project.write("../../setting", "0\n")
    result = sbx("doctor", "--json", prefix=[*cover(setting, "/proc/sys/user/max_user_namespaces"), *REFUSED])
    assert failed(result, "user namespaces")["mend"].endswith("sysctl -w user.max_user_namespaces=15000")


@pytest.mark.user
def test_doctor_with_apparmors_restriction(sbx, project):
    project.write("../../kernel/apparmor_restrict_unprivileged_userns", "1\n")
    result = sbx("doctor", "--json", prefix=[*cover(project.path("../../kernel"), "/proc/sys/kernel"), *REFUSED])
    mend = failed(result, "user namespaces")["mend"]
    assert f'"{sbx.program}" flags' in mend and mend.endswith("sudo apparmor_parser -r /etc/apparmor.d/sbx"), mend


def test_doctor_in_a_container(sbx, project):
    project.write("../../run/.containerenv")
    result = sbx("doctor", "--json", prefix=[*cover(project.path("../../run"), "/run"), *REFUSED])
    check = failed(result, "user namespaces")
    assert "of the container" in check["text"] and "--security-opt seccomp=unconfined" in check["mend"]


def test_doctor_with_a_masked_proc(sbx):
    result = sbx("doctor", "--json", prefix=cover("/dev/null", "/proc/version"))
    assert "systempaths=unconfined" in failed(result, "proc")["mend"]


@pytest.mark.parametrize("call, status", [
    ("openat2", "fail"), ("memfd_create", "fail"), ("seccomp", "fail"), ("pidfd_open", "warn"), ("close_range", "warn"),
    ("landlock_create_ruleset", "warn"),
])
def test_doctor_on_an_older_kernel(sbx, call, status):
    found = checks(sbx("doctor", "--json", prefix=refuse.prefix(f"{call}=ENOSYS")))
    name = {"landlock_create_ruleset": "Landlock", "seccomp": "seccomp filters"}.get(call, call)
    check, = [c for c in found["kernel"] + found["kernel: Landlock"] if name in c["text"] + c["name"]]
    assert check["status"] == status, check


def test_doctor_says_which_means_limits_will_use(sbx):
    """Each of the three is told; what it says is what a run does (test_limits.py)."""
    told = checks(sbx("doctor", "--json").ok())["limits"]
    assert [c["text"].split()[0] for c in told] == ["--memory", "--cpus", "--pids"]
    for check in told:
        option, value = check["text"].split()[0], {"--memory": "1g", "--cpus": "1", "--pids": "50"}
        result = sbx.run(option, value[option], "--", "true")
        assert (result.code == 125) == ("is refused" in check["text"]), (check, result)
        assert check["status"] == ("ok" if "holds by cgroup" in check["text"] else "warn"), check


def test_doctor_tries_the_cgroup_that_it_finds(sbx, project):
    """Files that can be written do not make a cgroup."""
    for name in ("cgroup.controllers", "cgroup.subtree_control", "cgroup.procs"):
        project.write(f"../../cgroup/{name}", "cpu memory pids\n")
    result = sbx("doctor", "--json", prefix=cover(project.path("../../cgroup"), "/sys/fs/cgroup")).ok()
    assert "memory.max" in checks(result)["limits"][0]["text"], result
    assert len(os.listdir(project.path("../../cgroup"))) == 3


@pytest.mark.user
def test_doctor_knows_how_systemd_gives_cgroups(sbx, project):
    os.makedirs(project.path("../../run/systemd/system"))
    limits = checks(sbx("doctor", "--json", prefix=cover(project.path("../../run"), "/run")).ok())["limits"]
    assert all(c["status"] == "ok" or "systemd" in c["mend"] for c in limits), limits


def test_doctor_tells_of_another_sbx_first_on_path(sbx, project):
    """DESIGN 4: another product ships a command of this name."""
    project.write("../../bin/sbx", "#!/bin/sh\ntouch $HOME/ran\necho other product\n", 0o755)
    own_place = os.path.dirname(sbx.program)
    for path, status in ((f"{project.home}/bin:{own_place}", "warn"), (f"{own_place}:{project.home}/bin", "ok")):
        check, = checks(sbx("doctor", "--json", env={"PATH": path + ":" + sbx.env["PATH"]}).ok())["PATH"]
        assert check["status"] == status, check
        assert status == "ok" or (f"{project.home}/bin/sbx" in check["text"] and own_place in check["mend"]), check
    assert not os.path.exists(project.home + "/ran")


def test_doctor_with_a_proxy_that_cannot_run(own):
    proxy = os.path.join(os.path.dirname(own.program), "sbx-proxy")
    with open(proxy, "w") as file:
        file.write("#!/nonexistent\n")
    assert proxy in failed(own("doctor", "--json"), "sbx-proxy")["text"]


def test_doctor_with_a_state_directory_open_to_others(sbx, project):
    os.makedirs(project.state)
    os.chmod(project.state, 0o777)
    check, = checks(sbx("doctor", "--json").ok())["state directory"]
    assert (check["status"], check["mend"]) == ("warn", f"chmod go-w '{project.state}'")


@pytest.mark.user
def test_doctor_with_a_state_directory_that_cannot_be_made(sbx, project):
    os.chmod(os.path.dirname(project.state), 0o500)
    check = failed(sbx("doctor", "--json"), "state directory")
    assert check["mend"] == f"sudo install -d -m 700 -o {os.geteuid()} -g {os.getegid()} '{project.state}'"


@pytest.mark.user
def test_doctor_without_a_home_says_nothing_that_does_harm(sbx):
    """Nothing but our own directory may stand in a command that changes owners."""
    check = failed(sbx("doctor", "--json", env={"HOME": "/nonexistent/it's\n"}), "state directory")
    place = "'/nonexistent/it'\\''s'?'/.local/state/sbx'"
    assert check["mend"].split(" -g ")[1] == f"{os.getegid()} {place}", check


def test_doctor_with_a_policy_that_is_not_sound(sbx, project):
    path = project.policy("../../.config/sbx/policy.json", netwrk={})
    assert path in failed(sbx("doctor", "--json"), "policy")["text"]


def test_colour_is_for_terminals(sbx, terminal):
    assert "\033" not in sbx("doctor").ok().out
    coloured, plain = terminal(sbx.program, "doctor"), terminal(sbx.program, "doctor", env={"NO_COLOR": "1"})
    assert coloured.wait() == 0 and plain.wait() == 0
    assert "\033[32mok" in coloured.seen and "\033" not in plain.seen


# The attempts, where nothing confines them: all that makes the self-test is that they tell.

@pytest.mark.parametrize("way, acts", [
    ("files", ["read", "open it for writing", "create a file beside it", "rename it"]),
    ("hidden", ["read", "open it for writing", "rename it", "replace it"]),
    ("protected", ["open it for writing", "rename it", "replace it", "rename its directory"]),
])
def test_attempts_on_files_without_a_sandbox(sbx, project, way, acts):
    project.write("x/file", "hunter2")
    before = snapshot(project.base)
    result = sbx("doctor", "attempt", way, project.path("x/file"))
    assert result.code == 1, result
    assert [re.match(r"BREACH ([^:/]*\w)", line).group(1) for line in result.out.splitlines()] == acts, result
    assert difference(before, snapshot(project.base)) == []


def test_attempts_on_the_network_without_a_sandbox(sbx):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0sbx-doctor-{port}")
        abstract.listen()
        result = sbx("doctor", "attempt", "network", str(port))
    assert result.code == 1
    for act in ("connect to 127.0.0.1", "connect to an abstract socket", f"request to 127.0.0.1:{port}",
                "request to sbx-doctor.invalid"):
        assert f"BREACH {act}" in result.out, result


def test_attempts_on_the_kernel_without_a_sandbox(sbx):
    bait = subprocess.Popen(["sleep", "1000"])
    result = sbx("doctor", "attempt", "kernel", str(bait.pid))
    assert bait.wait() == -signal.SIGUSR1
    assert result.code == 1
    for act in ("unshare the user", "clone into", "clone3 into", "reach mount", "reach open_tree", "reach TIOCSTI\n",
                "reach TIOCSTI with upper bits", "send a signal"):
        assert f"BREACH {act}" in result.out, (act, result)


def test_attempt_to_survive_without_a_sandbox(sbx):
    process = sbx.start("doctor", "attempt", "survive")
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    process.wait()
    left = descendants()
    assert len(left) == 2, left
    for each in left:
        os.kill(each.pid, signal.SIGKILL)
    assert process.communicate() == (b"", b"")


# Sandboxes that let one thing through, which the self-test must find.

@pytest.mark.parametrize("name, edit, told", [
    ("files", "options[at:at] = ['--bind', work[:-4] + 'outside', work[:-4] + 'outside'] if work else []", "read"),
    ("files", "options[at:at] = ['--ro-bind', work[:-4] + 'outside', work[:-4] + 'outside'] if work else []", "read"),
    ("protected", "options = ['--bind' if o == '--ro-bind' and work and options[i + 2].startswith(work + '/.git/')"
                  " else o for i, o in enumerate(options)]", "open it for writing"),
    ("hidden", "options = ['--dev-bind' if o == '--ro-bind' and options[i + 2].endswith('/work/.env') else o"
               " for i, o in enumerate(options)]", "read"),
    ("hidden", "options = [o for i, o in enumerate(options) if not any(options[j:j + 1] == ['--ro-bind'] and"
               " options[j + 2].endswith('/work/.env') for j in (i, i - 1, i - 2) if j >= 0)]", "no sandbox could"),
    ("kernel", "options = [o for i, o in enumerate(options) if '--seccomp' not in options[max(0, i - 1):i + 1]]",
     "BREACH"),
    ("death", "ctypes.CDLL(None).prctl(1, 0)", "outlived"),
], ids=lambda value: value if " " not in value else "")
def test_self_test_finds_a_wrong_sandbox(sbx, wrong_bwrap, name, edit, told):
    result = sbx("doctor", "--json", prefix=wrong_bwrap(edit))
    for each in descendants():  # those that outlived their sbx
        with contextlib.suppress(ProcessLookupError):  # one dies with another
            os.kill(each.pid, signal.SIGKILL)
    assert told in failed(result, f"self-test: {name}")["text"], result


def test_self_test_passes_with_a_bubblewrap_that_only_looks_different(sbx, wrong_bwrap):
    """The control: it is the edit that the tests above find."""
    sbx("doctor", "--json", prefix=wrong_bwrap("pass")).ok()


@pytest.mark.parametrize("answer, told", [
    ("connection.send(b'HTTP/1.1 200 OK\\r\\n\\r\\n')", "200 OK"),
    ("time.sleep(0)", "no answer"),
    ("port = re.search('127.0.0.1:([0-9]+)', request)\n"
     "    port and socket.create_connection(('127.0.0.1', int(port.group(1))))\n"
     "    connection.send(b'HTTP/1.1 403 Forbidden\\r\\n\\r\\n')", "a connection came"),
])
def test_self_test_finds_a_wrong_proxy(own, answer, told):
    with open(os.path.join(os.path.dirname(own.program), "sbx-proxy"), "w") as file:
        file.write(WRONG_PROXY.format(answer=answer))
    assert told in failed(own("doctor", "--json"), "self-test: network")["text"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_leaves_nothing(own, project, number):
    with open(os.path.join(os.path.dirname(own.program), "sbx-proxy"), "w") as file:
        file.write(WRONG_PROXY.format(answer=f"open('{project.path('waits')}', 'w').close()\n    time.sleep(1000)"))
    before = snapshot(project.base)
    process = own.start("doctor")
    wait_until(lambda: project.exists("waits"), "the request to the proxy")
    process.send_signal(number)
    assert process.communicate() == (b"", b"")
    assert process.returncode == -number
    os.unlink(project.path("waits"))
    assert difference(before, snapshot(project.base)) == []
