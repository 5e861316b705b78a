"""Published ports (F63): a server inside is reached from the host's loopback, and nothing else comes of it."""
import contextlib
import json
import os
import socket
import subprocess
import threading
import urllib.request

import pytest

from harness.procs import descendants, wait_until
from harness.sbx import PYTHON

# Each answers a line with itself, and tells when it listens. ADDRESS PORT
ECHO = """
import socket, sys, threading
def serve(s):
    while data := s.recv(65536): s.sendall(data)
    s.shutdown(socket.SHUT_WR)
address, port = sys.argv[1], int(sys.argv[2])
server = socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=128)
print("ready", flush=True)
while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""
WEB = """
import http.server, sys
server = http.server.ThreadingHTTPServer(("127.0.0.1", 3000), http.server.SimpleHTTPRequestHandler)
print("ready", flush=True); server.serve_forever()
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def port():
    return free_port()


@pytest.fixture
def start(sbx):
    """Starts a run that prints "ready", and ends it afterwards."""
    started = []

    def begin(*options, code=ECHO, arguments=("127.0.0.1", "3000"), ready=True):
        process = sbx.start("run", *options, "--", PYTHON, "-I", "-c", code, *arguments, stdin=subprocess.PIPE)
        started.append(process)
        if ready:
            assert process.stdout.readline() == b"ready\n", process.communicate()
        return process
    yield begin
    for process in started:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=60)


def exchange(port, data=b"hello", host="127.0.0.1"):
    """What comes back for data and a half-close; what the reset is called."""
    try:
        with socket.create_connection((host, port), timeout=40) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            got = b""
            while piece := s.recv(65536):
                got += piece
            return got
    except (ConnectionResetError, ConnectionRefusedError) as error:
        return type(error).__name__


def is_free(port):
    return exchange(port) == "ConnectionRefusedError"


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_server_inside(start, port, address):
    """Wherever it listens, by both families of the host."""
    start("--publish", f"{port}:3000", arguments=(address, "3000"))
    assert exchange(port) == b"hello"
    assert exchange(port, host="::1") == b"hello"


def test_web_server_and_same_port(start, project):
    port = free_port()
    start("--publish", str(port), code=WEB.replace("3000", str(port)))
    with urllib.request.urlopen(f"http://localhost:{port}/README", timeout=40) as answer:
        assert answer.read() == b"a project\n"


def test_server_that_comes_later(start, port):
    """Until then a connection ends at once, and the run is none the worse for it."""
    process = start("--publish", f"{port}:3000", code="input()\n" + ECHO, ready=False)
    wait_until(lambda: exchange(port) == "ConnectionResetError", "the port is there, and nobody behind it")
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"
    assert exchange(port) == b"hello"


def test_server_that_speaks_first(start, port):
    code = """
import socket
server = socket.create_server(("127.0.0.1", 3000)); print("ready", flush=True)
s = server.accept()[0]; s.sendall(b"220 hello\\r\\n"); s.recv(10)
"""
    start("--publish", f"{port}:3000", code=code)
    with socket.create_connection(("127.0.0.1", port), timeout=40) as s:
        assert s.recv(100) == b"220 hello\r\n"


def test_long_streams_both_ways(start, port):
    """F57: as a WebSocket would: both directions at once, then one ends and the other goes on."""
    start("--publish", f"{port}:3000")
    sent, got = bytes(range(256)) * 20000, bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=40) as s:
        def read():
            while piece := s.recv(65536):
                got.extend(piece)
        reader = threading.Thread(target=read)
        reader.start()
        for place in range(0, len(sent), 100000):
            s.sendall(sent[place:place + 100000])
        s.shutdown(socket.SHUT_WR)
        reader.join(60)
    assert got == sent


def test_many_connections_at_once(start, port):
    start("--publish", f"{port}:3000")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=40)) for _ in range(50)]
        for number, client in enumerate(clients):
            client.sendall(b"number %d" % number)
        answers = [client.recv(100) for client in clients]
    assert answers == [b"number %d" % n for n in range(50)]


@pytest.mark.parametrize("where", ["127.0.0.1", "0.0.0.0", "::1"])
def test_taken_port(sbx, project, where):
    """P1: nothing starts; the line names the port and the mend."""
    family = socket.AF_INET6 if ":" in where else socket.AF_INET
    with socket.create_server((where, 0), family=family) as server:
        port = server.getsockname()[1]
        result = sbx.run("--publish", f"{port}:3000", "--", "touch", "started")
    result.refused("network.publish", f"port {port} is taken", "--publish OTHER:3000")
    assert not project.exists("started")


def test_second_run_with_the_same_port(start, sbx, port):
    """P5: the first goes on."""
    start("--publish", f"{port}:3000")
    sbx.run("--publish", f"{port}:3001", "--", "true").refused(f"port {port} is taken")
    assert exchange(port) == b"hello"


@pytest.mark.parametrize("how", ["kill", "terminate"])
def test_port_is_free_afterwards(start, port, how):
    """P4: also after SIGKILL of sbx, with the proxy running and a connection open."""
    process = start("--publish", f"{port}:3000")
    with socket.create_connection(("127.0.0.1", port), timeout=40) as s:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        getattr(process, how)()
        process.communicate(timeout=60)
        wait_until(lambda: is_free(port), "the port is given back")
    start("--publish", f"{port}:3000")
    assert exchange(port) == b"hello"


def test_listens_on_the_loopback_alone(start, port):
    """Not for the host's neighbours."""
    start("--publish", f"{port}:3000", arguments=("0.0.0.0", "3000"))
    assert exchange(port) == b"hello"
    for host in ("192.0.2.77", "10.0.0.1", "127.0.0.2", "2001:db8::77"):
        assert exchange(port, host=host) == "ConnectionRefusedError", host


def test_no_way_out(sbx, lab, port):
    """P2: from inside neither the host's end of the port nor anything else of the host is there."""
    code = f"""
import socket
def attempt(host, port):
    try: socket.create_connection((host, port), timeout=40); return "connected"
    except OSError as error: return type(error).__name__
print({{attempt(h, p) for h in ("127.0.0.1", "::1", "localhost", "192.0.2.10") for p in ({port}, 3000, 8080)}})
"""
    assert sbx.python(code, "--publish", f"{port}:3000").ok().out == "{'ConnectionRefusedError'}\n"
    assert lab.connections == []


def test_nothing_of_it_is_inside(sbx, port):
    """P7: neither the command nor what it stands in holds a descriptor of the host's listener."""
    result = sbx.shell("cat /proc/self/net/tcp; ls -l /proc/[0-9]*/fd | grep socket; true", "--publish", f"{port}:3000")
    assert "socket:" not in result.out and f":{port:04X} " not in result.out, result


def test_proxy_starts_with_the_first_connection(start, port):
    process = start("--publish", f"{port}:3000")
    assert not [p for p in descendants(process.pid) if p.name == "sbx-proxy"]
    assert exchange(port) == b"hello"
    proxy, = (p for p in descendants(process.pid) if p.name == "sbx-proxy")
    os.kill(proxy.pid, 9)
    wait_until(lambda: exchange(port) == b"hello", "another proxy takes over")


def test_several_ports(start):
    code = ECHO.replace("while True:", "second = socket.create_server(('127.0.0.1', 3001)); "
                        "threading.Thread(target=lambda: second.accept()[0].sendall(b'second')).start()\nwhile True:")
    first, second = free_port(), free_port()
    start("--publish", f"{first}:3000", "--publish", f"{second}:3001", code=code)
    assert exchange(first) == b"hello"
    with socket.create_connection(("127.0.0.1", second), timeout=40) as s:
        assert s.recv(10) == b"second"


@pytest.mark.parametrize("options, word", [
    (["--publish", "5432", "--forward", "5432"], "leads to the host already"),
    (["--publish", "9999:8080", "--allow", "localhost:8080"], "leads to the host already"),
    (["--publish", "8080", "--allow", "127.0.0.1:8080"], "listened on for a rule"),
    (["--publish", "8080", "--allow", "10.0.0.0/8:8000-8100", "--allow", "192.0.2.0/24:8080"], "listened on for a rule"),
    (["--publish", "3000", "--publish", "3000:3001"], "port 3000 of the host cannot lead to port 3000 and to port 3001"),
    (["--publish", "80"], "nothing inside can listen on port 80"),
    (["--publish", "8080:1023"], "nothing inside can listen on port 1023"),
    ([word for port in range(2000, 2029) for word in ("--publish", str(port))], "more than 56 listeners"),
])
def test_ports_that_cannot_be_published(sbx, options, word):
    """P1: a port that is sbx's own inside, or leads to the host, or has two meanings."""
    sbx.run(*options, "--", "true").refused(word)
    sbx("show", "--plan", *options).refused(word)


def test_place_of_the_fault(sbx, project):
    """P11"""
    path = project.policy("p.json", network={"publish": [8080], "forward": [8080]})
    sbx.run("--policy", path, "--", "true").refused(f"{path}:1: network.publish[0]: port 8080")
    path = project.policy("p.json", network={"publish": [80]})
    sbx("check", path).refused(f"{path}:1: network.publish[0]", "nothing inside can listen on port 80")


@pytest.mark.parametrize("rule", ["db.test:3000", "*.wild.test:2990-3004", "192.0.2.10:3000"])
def test_port_that_a_rule_names_too(start, port, rule):
    """The loopback is free for the server; that every address may not be is said."""
    process = start("--publish", f"{port}:3000", "--allow", rule)
    assert exchange(port) == b"hello"
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert err.count(b"port 3000 is one of") == 1 and b"127.0.0.1" in err, err


@pytest.mark.parametrize("mode", ["none", "host"])
def test_other_networks(sbx, port, mode):
    """Without the proxy nothing is published, and that is said."""
    result = sbx.run("--network", mode, "--publish", f"{port}:3000", "--", "true").ok()
    assert len([m for m in result.messages if f"network.mode is {mode}: network.publish has no effect" in m]) == 1, result


def test_audit_and_log(start, sbx, project, port):
    """P10"""
    process = start("--publish", f"{port}:3000", code="input()\n" + ECHO, ready=False)
    wait_until(lambda: exchange(port) == "ConnectionResetError", "the port is there")
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"
    exchange(port, b"12345")
    process.terminate()
    _, err = process.communicate(timeout=60)
    with open(f"{project.state}/audit.jsonl") as file:
        lines = [json.loads(line) for line in file]
    assert {(n["event"], n["via"], n["verdict"], n["host"], n["port"], n["reason"]) for n in lines} == {
        ("connect", "publish", "error", "localhost", 3000, "connect-refused"),
        ("connect", "publish", "allow", "localhost", 3000, "allowed")}
    last, = (n for n in lines if n["verdict"] == "allow")
    assert last["up"] == last["down"] == 5 and last["ip"] == "127.0.0.1", last
    assert b"denied" not in err, err
    shown = sbx("log").ok().out
    assert "published localhost:3000 (allowed)" in shown and "published localhost:3000 (connect-refused)" in shown


def test_show(sbx):
    options = ["--publish", "3000", "--publish", "9000:3001"]
    assert sbx("show", *options).json["network"]["publish"] == [3000, "9000:3001"]
    assert sbx("show", "--plan", "--json", *options).json["publish"] == [{"hostPort": 3000, "port": 3000},
                                                                         {"hostPort": 9000, "port": 3001}]
    assert "network  port 9000 of the host's loopback leads to port 3001 inside\n" in sbx("show", "--plan", *options).ok().out


def test_workspace_cannot_publish(sbx, project, port):
    """P11: a file that came with the project opens no port of the host."""
    project.policy(network={"publish": [f"{port}:3000"]})
    result = sbx.run("--", "true").ok()
    assert any("ignored: network.publish" in m for m in result.messages), result


def test_nested(sbx):
    """F9"""
    result = sbx.run("--read", os.path.dirname(sbx.program), "--", sbx.program, "run", "--publish", "3000", "--", "true")
    result.refused("--publish")
