"""Limits of a run: a clear answer when one is reached, service to the others, one line in the audit, what to do in the
summary."""
import json
import re
import socket
import subprocess

import pytest

from harness.procs import descendants
from harness.wire import get, talk

# Of what the limit on open files leaves, a quarter is for listeners and two descriptors are for each connection
# (proxy/main.c): 129 connections.
FEW_FILES = ["prlimit", "--nofile=600:600"]
if subprocess.run([*FEW_FILES, "prlimit", "--nofile=601:601", "true"], capture_output=True).returncode == 0:
    FEW_FILES += ["setpriv", "--bounding-set=-sys_resource"]  # root, who could raise it again
ROOM = ((600 - 256) - (600 - 256) // 4 // 2 * 2) // 2

CODE = """
import json, os, socket, struct, sys, time, urllib.request, urllib.error
def slow(n, data=b"G", port=3128):
    held = []
    for _ in range(n):
        s = socket.create_connection(("127.0.0.1", port)); s.settimeout(40)
        try: s.sendall(data)
        except OSError: pass
        held.append(s)
    return held
def read(s, n=65536):
    try: return s.recv(n)
    except OSError as error: return type(error).__name__.encode()
def everything(s):
    got = b""
    while True:
        data = read(s)
        got += data
        if not data or data.endswith(b"Error"): return got
def page():
    try: return urllib.request.urlopen("http://origin.test/").status
    except urllib.error.HTTPError as e: return e.code, e.headers.get("Retry-After"), json.loads(e.read())["reason"]
def socks(host=b"origin.test", port=80):
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(40)
    s.sendall(b"\\5\\1\\0\\5\\1\\0\\3" + bytes([len(host)]) + host + struct.pack(">H", port))
    got = b""
    while len(got) < 12 and (data := s.recv(12 - len(got))): got += data
    return got[3]
"""


def audit(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def resident(proxy):
    lines = proxy.read("status").decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_too_many_connections(sbx, lab, project):
    """503 with Retry-After, SOCKS code 1, the same 503 or a reset on the transparent front; service again afterwards."""
    path = project.home + "/audit.jsonl"
    code = CODE + """
before = page()
held = slow(int(sys.argv[1]) - 1) + [socket.create_connection(("127.0.0.1", 3128))]
answers = [page() for _ in range(5)] + [socks()]
s = socket.create_connection(("origin.test", 80)); s.settimeout(40)
s.sendall(b"GET / HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"); text = everything(s)
answers.append([int(text.split()[1]), b"limit-connections" in text])
s = socket.create_connection(("origin.test", 80)); s.settimeout(40); s.sendall(b"\\0\\1\\2"); answers.append(read(s).decode())
s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(40); answers.append(read(s).split()[1].decode())
for s in held: s.close()
for _ in range(100):
    after = page()
    if after == 200: break
    time.sleep(0.1)
print(json.dumps([before, answers, after]))
"""
    result = sbx.python(code, "--allow", "origin.test", "--audit", path, arguments=[str(ROOM)], prefix=FEW_FILES)
    before, answers, after = result.json
    assert before == 200 and after == 200, result
    full = [503, "5", "limit-connections"]
    assert answers == [full] * 5 + [1, [503, True], "ConnectionResetError", "503"], result
    lines = [a for a in audit(path) if a["reason"] == "limit-connections"]
    assert len(lines) == 1 and lines[0]["verdict"] == "deny", lines
    told, = [m for m in result.messages if "limit" in m]
    assert re.match(r"reached (9|[1-9]\d+)x limit-connections \(too many connections are open\); let the command open fewer", told), told


def test_others_are_answered_while_thousands_are_slow(sbx):
    """10,000 slow connections from one hostile program: the proxy lives, its memory is bounded, another client gets service
    or the clear answer, and service when they are gone."""
    code = CODE + """
import resource
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
count, held = min(10000, hard - 100), []
for n in range(count): held += slow(1, b"GET http://origin.test/ HTTP/1.1\\r\\nX: ")
print(count, page(), flush=True); input()
for s in held: s.close()
print(page(), flush=True); input()
"""
    process = sbx.start("run", "--allow", "origin.test", "--", "/usr/bin/python3", "-I", "-c", code, stdin=-1)
    count, answer = process.stdout.readline().decode().split(" ", 1)
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    size = resident(proxy)
    process.stdin.write(b"\n")
    process.stdin.flush()
    after = process.stdout.readline()
    _, err = process.communicate(b"\n", timeout=60)
    assert answer.strip() in ("200", "(503, '5', 'limit-connections')"), (count, answer, err)
    assert int(count) > 500, "the limit on open files leaves no room for this test"
    assert after == b"200\n", (after, err)
    assert size < 64 * 1024, f"{size} KiB for {count} connections"


def test_more_than_the_queue_holds(sbx):
    """Far more slow clients than there is room for: each one too many is told, and none keeps the next from its answer."""
    code = CODE + """
held, answers = [], []
for _ in range(400):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(40); held.append(s)
    try: s.sendall(b"G")
    except OSError: pass
print(json.dumps([s.recv(12).decode() for s in held[int(sys.argv[1]):]] + [page()]))
"""
    result = sbx.python(code, "--allow", "origin.test", arguments=[str(ROOM)], prefix=FEW_FILES)
    assert result.json == ["HTTP/1.1 503"] * (400 - ROOM) + [[503, "5", "limit-connections"]], result


def test_too_many_dials(sbx, lab, project):
    """Connections that are being made: hosts that do not answer take a share, not all."""
    path = project.home + "/audit.jsonl"
    lab.zone["*.hole.test"] = lab.zone["silent.test"]
    code = CODE + """
def begin(n):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(40)
    s.sendall(f"CONNECT n{n}.hole.test:443 HTTP/1.1\\r\\nHost: n{n}.hole.test:443\\r\\n\\r\\n".encode())
    return s
share = int(sys.argv[1]) // 4
held = [begin(n) for n in range(share)]
time.sleep(0.5)
print(json.dumps([page(), socks(), page(), [int(s.recv(9999).split()[1]) for s in held[:3]]]))
"""
    options = ["--allow", "*.hole.test", "--allow", "origin.test", "--audit", path]
    result = sbx.python(code, *options, arguments=[str(ROOM)], prefix=FEW_FILES)
    first, second, third, holes = result.json
    assert first == [503, "5", "limit-dials"] and second == 1 and third == [503, "5", "limit-dials"], result
    assert set(holes) <= {502, 504}, result
    assert len([a for a in audit(path) if a["reason"] == "limit-dials"]) == 1
    told, = [m for m in result.messages if "limit-dials" in m]
    assert told.startswith("reached 3x limit-dials") and "fewer" in told, told
    assert lab.requests == []


@pytest.mark.parametrize("fields", [[f"X-{n}: 1" for n in range(300)], ["X: " + "x" * 70000]])
def test_large_heads(sbx, lab, project, fields):
    """431 each time; the audit has the first."""
    path = project.home + "/audit.jsonl"
    exchanges = [talk(sbx, get("http://origin.test/", *fields), options=["--allow", "origin.test", "--audit", path])]
    code = CODE + """
for _ in range(3):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(40)
    s.sendall(b"GET http://origin.test/ HTTP/1.1\\r\\nHost: origin.test\\r\\n" + sys.stdin.read().encode() + b"X: y\\r\\n" * 300 + b"\\r\\n")
    print(everything(s).split(b" ", 2)[1].decode())
"""
    result = sbx.python(code, "--allow", "origin.test", "--audit", path)
    assert exchanges[0].status == 431 and exchanges[0].denial["reason"] == "limit-head", exchanges
    assert result.ok().out == "431\n" * 3, result
    assert [a["reason"] for a in audit(path)] == ["limit-head"] * 2  # one for each run
    assert any(m.startswith("reached 3x limit-head") and "64 KiB" in m for m in result.messages), result
    assert lab.connections == []


def test_bodies_have_no_limit(sbx, lab):
    """What is limited is heads and counts: a body larger than all that the proxy may hold goes through."""
    size = 160 * 1024 * 1024

    def count(stream):
        left = size
        while not stream.recv(65536, socket.MSG_PEEK).count(b"\r\n\r\n"):
            pass
        stream.recv(stream.recv(65536, socket.MSG_PEEK).index(b"\r\n\r\n") + 4)
        while left and (data := stream.recv(min(left, 1048576))):
            left -= len(data)
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%d" % (len(str(left)), left))
    server = lab.servers.listen(8081, count)
    code = CODE + """
size = int(sys.argv[1])
def pieces():
    for _ in range(size // 1048576): yield b"x" * 1048576
request = urllib.request.Request("http://origin.test:8081/", data=pieces(), headers={"Content-Length": str(size)}, method="POST")
print(urllib.request.urlopen(request).read().decode())
"""
    try:
        result = sbx.python(code, "--allow", "origin.test:8081", arguments=[str(size)])
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
    assert result.ok().out == "0\n", result


def test_too_many_clients_of_the_stub(sbx, project):
    """Over TCP: what is too many is closed at once, and UDP is served all the same."""
    path = project.home + "/audit.jsonl"
    code = CODE + """
held = slow(64, b"\\0", 53)
late = slow(5, b"\\0", 53)
print(json.dumps([[read(s).decode() for s in late], socket.gethostbyname("origin.test").startswith("198.18.")]))
"""
    result = sbx.python(code, "--allow", "origin.test", "--audit", path)
    late, served = result.json
    assert set(late) <= {"", "ConnectionResetError"} and served, result
    assert [a["reason"] for a in audit(path)] == ["limit-lookups"]
    assert any(m.startswith("reached 5x limit-lookups") for m in result.messages), result


def test_too_many_ports_of_names(sbx, project):
    """Ports from 1024 on are listened on for each name; beyond the limit they are told, not silently missing."""
    path = project.home + "/audit.jsonl"
    code = CODE + """
for n in range(70): socket.gethostbyname(f"n{n}.wild.test")
print("done")
"""
    result = sbx.python(code, "--allow", "*.wild.test:5000-5015", "--audit", path)
    assert result.ok().out == "done\n", result
    assert [a["reason"] for a in audit(path)] == ["limit-ports"]
    assert any(m.startswith("reached") and "limit-ports" in m and "fewer ports" in m for m in result.messages), result
