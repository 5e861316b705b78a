"""Path sockets: the host's are out of reach, the command's own work (F10, F11, F12)."""
import os
import socket
import subprocess
import threading

import pytest

from harness.sbx import PYTHON

TRY = """
import json, os, socket, sys
answers = {}
for path in sys.argv[1:]:
    got = []
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        s = socket.socket(socket.AF_UNIX, kind)
        try: s.connect(path); got.append("connected")
        except OSError as error: got.append(error.strerror)
        try: socket.socket(socket.AF_UNIX, kind).sendto(b"x", path); got.append("sent")
        except OSError as error: got.append(error.strerror)
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for s in pair:
        try: s.sendto(b"x", path); got.append("sent by pair")
        except OSError as error: got.append(error.strerror)
        try: s.sendmsg([b"x"], [], 0, path); got.append("sent by pair")
        except OSError as error: got.append(error.strerror)
        try: s.connect(path); s.send(b"x"); got.append("pair reconnected")
        except OSError as error: got.append(error.strerror)
    answers[path] = got
print(json.dumps(answers))
"""
REACHED = {"connected", "sent", "sent by pair", "pair reconnected"}


class Host:
    """A server of the host on a path socket, as docker, ssh-agent or a desktop bus is. hits counts who got through."""

    def __init__(self, path, kind=socket.SOCK_STREAM):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.path, self.hits = path, 0
        self.server = socket.socket(socket.AF_UNIX, kind)
        self.server.bind(path)
        if kind != socket.SOCK_DGRAM:
            self.server.listen()
        threading.Thread(target=self.serve, args=(kind,), daemon=True).start()

    def serve(self, kind):
        while True:
            try:
                if kind == socket.SOCK_DGRAM:
                    self.server.recv(100)
                    self.hits += 1
                else:
                    connection, _ = self.server.accept()
                    self.hits += 1
                    connection.send(b"host\n")
                    connection.close()
            except OSError:
                return

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@pytest.fixture
def host():
    made = []

    def make(path, kind=socket.SOCK_STREAM):
        made.append(Host(path, kind))
        return made[-1]
    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET])
def test_server_in_the_workspace_is_unreachable(sbx, project, host, kind):
    """F10, F12: read-only or not, connect() and sendto() by its path fail, from a socketpair's ends as well."""
    server = host(project.path("run/server.sock"), kind)
    got = sbx.python(TRY, arguments=["run/server.sock", project.path("run/server.sock")]).json
    for path, answers in got.items():
        assert not REACHED & set(answers), (path, answers)
    assert server.hits == 0


def test_server_under_a_read_path_is_unreachable(sbx, plain, host):
    """F10: a read-only bind does not stop connect()."""
    server = host(plain.path("../shared/docker.sock"))
    plain.write("../shared/file", "shown\n")
    base = plain.path("../shared")
    got = sbx.python(TRY, "--read", base, arguments=[f"{base}/docker.sock"]).json
    assert not REACHED & set(got[f"{base}/docker.sock"]), got
    assert sbx.run("--read", base, "--", "cat", f"{base}/file").ok().out == "shown\n"
    assert server.hits == 0


def test_server_named_by_another_path_is_unreachable(sbx, project, host):
    """F26: the same socket through a link to its directory, a hard link, /proc/self/root."""
    server = host(project.path("run/server.sock"))
    os.symlink("run", project.path("alias"))
    os.link(project.path("run/server.sock"), project.path("hard.sock"))
    got = sbx.python(TRY, arguments=["alias/server.sock", "hard.sock", "/proc/self/cwd/run/server.sock",
                                     f"/proc/self/root{project.root}/run/server.sock"]).json
    for path in got:
        if path != "hard.sock":  # another name that the kernel's list of sockets does not have
            assert not REACHED & set(got[path]), (path, got)
    assert server.hits == 0 or "hard.sock" in got


def test_server_that_bound_a_relative_name_is_unreachable(sbx, project):
    """F10: the kernel's list has the name as it was given to bind(); it is looked for where its process stands."""
    os.makedirs(project.path("run"))
    code = """
import socket
s = socket.socket(socket.AF_UNIX); s.bind("server.sock"); s.listen(); print("ready", flush=True); s.accept()
print("reached", flush=True)
"""
    server = subprocess.Popen([PYTHON, "-c", code], cwd=project.path("run"), stdout=subprocess.PIPE)
    try:
        assert server.stdout.readline() == b"ready\n"
        got = sbx.python(TRY, arguments=["run/server.sock"]).json
    finally:
        server.kill()
        out, _ = server.communicate()
    assert not REACHED & set(got["run/server.sock"]) and out == b"", got


def test_masked_socket_cannot_be_moved_into_reach(sbx, project, host):
    """F26"""
    server = host(project.path("run/server.sock"))
    code = """
import os, socket, subprocess
for move in (["mv", "run", "r2"], ["mv", "run/server.sock", "s"], ["ln", "run/server.sock", "s"],
             ["cp", "-a", "run", "r3"]):
    subprocess.run(move, stderr=subprocess.DEVNULL)
for path in ("r2/server.sock", "s", "r3/server.sock", "run/server.sock"):
    try: socket.socket(socket.AF_UNIX).connect(path); print("connected", path)
    except OSError: pass
"""
    assert sbx.python(code).ok().out == ""
    assert server.hits == 0


def test_directories_above_a_masked_socket_stay(sbx, project, host):
    """Nobody is told that a socket was replaced from outside: nothing inside can rename what is above it."""
    host(project.path("sub/deep/server.sock"))
    code = """
import os
for step in (lambda: os.rename("sub", "sub2"), lambda: os.rename("sub/deep", "sub/deep2"), lambda: os.mkdir("sub/new")):
    try: step(); print("done")
    except OSError as error: print(error.strerror)
"""
    result = sbx.python(code).ok()
    assert result.out == "Device or resource busy\n" * 2 + "done\n" and result.messages == [], result


def test_named_socket_is_reached(sbx, project, host):
    """--unix-socket opens that one, and no other beside it."""
    one, other = host(project.path("run/one.sock")), host(project.path("run/other.sock"))
    code = """
import socket, sys
for path in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); print(s.recv(9).decode().strip())
    except OSError as error: print("refused")
"""
    result = sbx.python(code, "--unix-socket", project.path("run/one.sock"),
                        arguments=["run/one.sock", "run/other.sock"])
    assert result.ok().out.split() == ["host", "refused"], result
    assert (one.hits, other.hits) == (1, 0)


def test_named_socket_outside_of_the_view_is_reached(sbx, plain, host):
    path = plain.path("../agent/agent.sock")
    host(path)
    plain.write("../agent/secret", "hunter2")
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); print(s.recv(9).decode().strip())"
    assert sbx.python(code, "--unix-socket", path).ok().out == "host\n"
    assert "hunter2" not in sbx.run("--unix-socket", path, "--", "cat", plain.path("../agent/secret")).out


def test_named_socket_of_a_secret_place_comes_alone(plain_sbx, plain, host):
    """The agent of gpg does not bring the keys along."""
    path = plain.home + "/.gnupg/S.gpg-agent"
    host(path)
    plain.write("../../.gnupg/secring.gpg", "hunter2")
    code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({path!r}); print(s.recv(9).decode().strip())"
    assert plain_sbx.python(code, "--home", "host", "--unix-socket", path).ok().out == "host\n"
    result = plain_sbx.shell("cd; ls .gnupg; cat .gnupg/*", "--home", "host", "--unix-socket", path)
    assert result.out == "S.gpg-agent\n", result


def test_named_socket_that_is_not_there_is_refused(sbx, plain):
    """P1"""
    sbx.run("--unix-socket", plain.path("../no.sock"), "--", "true").refused("no.sock")


@pytest.mark.parametrize("mode", ["proxy", "none", "host"])
def test_abstract_sockets_of_the_host_are_unreachable(sbx, mode):
    """P7, F10: with the host's network too, where the kernel can do that, and told where it cannot."""
    server = socket.socket(socket.AF_UNIX)
    server.bind("\0lab-abstract")
    server.listen()
    try:
        result = sbx.python("""
import socket
try: socket.socket(socket.AF_UNIX).connect("\\0lab-abstract"); print("connected")
except OSError as error: print(error.strerror)
""", "--network", mode).ok()
    finally:
        server.close()
    if mode != "host":
        assert result.out == "Connection refused\n", result
    else:
        told = any("also reaches the host's abstract sockets" in message for message in result.messages)
        assert result.out == ("connected\n" if told else "Operation not permitted\n"), result


def test_sockets_made_inside_work(sbx):
    """F11: stream, datagram, seqpacket, abstract, socketpair, and descriptors passed over them."""
    code = """
import array, os, socket, tempfile, threading
for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
    for name in (tempfile.mkdtemp() + "/s", "in-workspace.sock", "\\0abstract%d" % kind):
        server = socket.socket(socket.AF_UNIX, kind); server.bind(name); server.listen()
        client = socket.socket(socket.AF_UNIX, kind); client.connect(name); client.send(b"hello")
        print(server.accept()[0].recv(9).decode())
        if not name.startswith("\\0"): os.unlink(name)
a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); a.bind("datagram.sock")
b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)[0]; b.sendto(b"hello", "datagram.sock")
print(a.recv(9).decode())
os.unlink("datagram.sock")
left, right = socket.socketpair()
socket.send_fds(left, [b"x"], [os.open("/etc/passwd", os.O_RDONLY)])
print("hello" if os.read(socket.recv_fds(right, 9, 1)[1][0], 4) else "")
"""
    assert sbx.python(code).ok().out == "hello\n" * 8


def test_programs_that_need_path_sockets_work(sbx):
    """F11: asyncio servers, multiprocessing's managers and forkserver."""
    code = """
import asyncio, multiprocessing as mp
async def main():
    server = await asyncio.start_unix_server(lambda r, w: w.close(), path="asyncio.sock")
    reader, writer = await asyncio.open_unix_connection("asyncio.sock")
    print(await reader.read() == b""); writer.close()
    server.close()
if __name__ == "__main__":
    asyncio.run(main())
    context = mp.get_context("forkserver")
    manager = context.Manager(); print(manager.list([1, 2])[1]); manager.shutdown()
"""
    result = sbx.shell(f"cat > m.py && python3 m.py", input=code.encode())
    assert result.ok().out == "True\n2\n", result


NODE = """
const child = require("child_process"), net = require("net");
if (process.argv[2]) {
  process.on("message", m => process.send(m + " and back", () => process.disconnect()));
} else {
  child.fork(__filename, ["child"]).on("message", m => console.log(m)).send("to a child");
  const server = net.createServer(s => { s.end("by a path"); server.close(); });
  server.listen("/tmp/node.sock", () => net.connect("/tmp/node.sock").on("data", d => console.log(String(d))));
}
"""


def test_node_speaks_with_its_children_and_by_a_path(sbx, project):
    """F11: as tsx and Playwright do."""
    project.write("ipc.js", NODE)
    assert sorted(sbx.run("--", "node", "ipc.js").ok().out.splitlines()) == ["by a path", "to a child and back"]


def test_commit_is_signed_by_an_agent_inside(sbx, project):
    """F11: the agent's socket is the command's own."""
    result = sbx.shell("eval $(ssh-agent) >/dev/null && ssh-keygen -q -t ed25519 -N '' -f /tmp/k && ssh-add -q /tmp/k && "
                       "mv /tmp/k /tmp/gone && git -c gpg.format=ssh -c user.signingkey=/tmp/k.pub commit -q -S "
                       "--allow-empty -m signed; ssh-agent -k >/dev/null; git cat-file commit HEAD | grep -c SIGNATURE")
    assert result.ok().out == "2\n", result


def test_socket_made_by_one_run_is_reached_by_another_only_in_the_workspace(sbx, project):
    """What a run makes in the shared workspace is the workspace's; in /tmp it is the run's own."""
    first = sbx.start("run", "--", "/usr/bin/python3", "-c", """
import socket
s = socket.socket(socket.AF_UNIX); s.bind("/tmp/mine.sock"); s.listen(); print("ready", flush=True); s.accept()
""")
    assert first.stdout.readline() == b"ready\n"
    result = sbx.python("import os; print(os.path.exists('/tmp/mine.sock'))").ok()
    first.kill()
    first.communicate()
    assert result.out == "False\n"


def test_runtime_directory_of_the_user_is_not_there(sbx, host):
    """F10: D-Bus, systemd --user, Wayland, gpg-agent: $XDG_RUNTIME_DIR of the host is not visible."""
    path = sbx.env["XDG_RUNTIME_DIR"] + "/bus"
    server = host(path)
    try:
        got = sbx.python(TRY, arguments=[path], env={"DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}"}).json
        result = sbx.shell('echo "$DBUS_SESSION_BUS_ADDRESS$SSH_AUTH_SOCK"',
                           env={"DBUS_SESSION_BUS_ADDRESS": f"unix:path={path}", "SSH_AUTH_SOCK": path}).ok()
    finally:
        os.unlink(path)
    assert not REACHED & set(got[path]) and server.hits == 0, got
    assert result.out == "\n"
