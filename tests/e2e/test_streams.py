"""Streams through tunnels, long (F57), without an end, and idle: whole, counted, and at what cost."""
import json
import os
import subprocess
import time

import pytest

from harness.procs import descendants

MIB = 1 << 20

# A tunnel to HOST:PORT, by CONNECT or the transparent way. Nothing that is sent may look like a request.
CLIENT = """
import hashlib, os, socket, sys, threading, time, urllib.parse
def tunnel(way, host, port):
    if way == "transparent":
        return socket.create_connection((host, port))
    proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
    s = socket.create_connection((proxy.hostname, proxy.port))
    s.sendall(f"CONNECT {host}:{port} HTTP/1.1\\r\\nHost: {host}:{port}\\r\\n\\r\\n".encode())
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"): head += s.recv(1)
    assert b" 200 " in head, head
    return s
"""

# Sends MIB MiB that are all different, with the other direction full too, and compares what comes back.
ROUND = """
way, mib = sys.argv[1], int(sys.argv[2])
s = tunnel(way, "origin.test", 7)
sent, got, count = hashlib.sha256(), hashlib.sha256(), 0
def send():
    for n in range(mib):
        block = bytes(1) + n.to_bytes(4, "big") + os.urandom(4096 - 5)
        sent.update(block * 256); s.sendall(block * 256)
    s.shutdown(socket.SHUT_WR)
sender = threading.Thread(target=send); sender.start()
while data := s.recv(1 << 18):
    got.update(data); count += len(data)
    if count % 7 == 0: time.sleep(0.001)
sender.join()
print(count, got.digest() == sent.digest())
"""


@pytest.mark.parametrize("way", ["connect", "transparent"])
def test_100_mib_both_ways(sbx, project, way):
    """Every byte, the end, and the same count in the audit."""
    audit = project.path("audit")
    result = sbx.python(CLIENT + ROUND, "--allow", "origin.test:7", "--audit", audit, arguments=[way, "100"]).ok()
    assert result.out == f"{100 * MIB} True\n"
    line, = [line for line in map(json.loads, open(audit)) if line["event"] == "connect"]
    assert (line["up"], line["down"]) == (100 * MIB, 100 * MIB), line


# Streams without an end, to clients that go, that stop reading, and that have ended their own direction.
ENDLESS = """
held = []
for n in range(12):
    s = tunnel(("connect", "transparent")[n % 2], "origin.test", 19)
    if n % 4 == 1: s.shutdown(socket.SHUT_WR)
    left = 4 << 20
    while left > 0: left -= len(s.recv(1 << 18))
    if n % 4 < 2: held.append(s)
    else: s.close()
print("left", flush=True)
sys.stdin.readline()
for s in held: s.close()
print("gone", flush=True)
sys.stdin.readline()
"""


def cpu_seconds(process):
    fields = process.read("stat").rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def own_kib(process):
    """Of memory that is no file's."""
    lines = process.read("status").decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def test_stream_without_an_end(sbx, project):
    """F57: with the client gone it ends, and with one that does not read it rests, at a bounded cost of memory."""
    audit = project.path("audit")
    process = sbx.start("run", "--allow", "origin.test:19", "--audit", audit, "--", "/usr/bin/python3", "-c",
                        CLIENT + ENDLESS, stdin=-1)
    assert process.stdout.readline() == b"left\n", process.stderr.read1()
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    time.sleep(1)  # what is under way comes to rest
    before = cpu_seconds(proxy)
    time.sleep(2)
    assert cpu_seconds(proxy) - before < 1.0
    assert own_kib(proxy) < 32 * 1024
    assert len([line for line in open(audit) if '"connect"' in line]) == 6
    process.stdin.write(b"\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"gone\n"
    time.sleep(1)
    before = cpu_seconds(proxy)
    time.sleep(1)
    assert cpu_seconds(proxy) - before < 0.5
    assert len([line for line in open(audit) if '"connect"' in line]) == 12
    process.communicate(b"\n", timeout=60)


IDLE = """
held = [tunnel(("connect", "transparent")[n % 2], "origin.test", 7) for n in range(int(sys.argv[1]))]
for s in held:
    s.sendall(bytes(20000)); left = 20000
    while left: left -= len(s.recv(left))
print("idle", flush=True)
for line in sys.stdin:
    held += [tunnel(("connect", "transparent")[n % 2], "origin.test", 7) for n in range(int(line))]
    for s in held: s.sendall(bytes(1)); s.recv(1)
    print("idle", flush=True)
"""


def test_idle_tunnels_hold_little(sbx):
    """Whatever they have carried: 4 KiB of the proxy's own memory each, its allocator's share included."""
    process = sbx.start("run", "--allow", "origin.test:7", "--", "/usr/bin/python3", "-c", CLIENT + IDLE, "50",
                        stdin=-1)
    assert process.stdout.readline() == b"idle\n", process.stderr.read1()
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    before = own_kib(proxy)
    process.stdin.write(b"400\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"idle\n", process.stderr.read1()
    each = (own_kib(proxy) - before) / 400
    process.communicate(timeout=60)
    assert each <= 4, f"{each} KiB"


# More connections than a limit of 700 open files lets be: the last one asks.
OVER = """
held = [socket.create_connection(("127.0.0.1", 3128)) for _ in range(167)]
for s in held: s.sendall(b"G")
time.sleep(0.2)
s = socket.create_connection(("127.0.0.1", 3128))
s.sendall(b"GET http://origin.test/ HTTP/1.1\\r\\nHost: origin.test\\r\\nConnection: close\\r\\n\\r\\n")
answer = b""
while data := s.recv(4096): answer += data
print(answer.decode())
"""


def test_limit_on_open_files_is_told(sbx):
    """Where root may raise the limit the proxy does so; everybody else is told which limit it is."""
    limited = ["prlimit", "--nofile=700:700"]
    raises = subprocess.run([*limited, "prlimit", "--nofile=701:701", "true"], capture_output=True).returncode == 0
    result = sbx.python(CLIENT + OVER, "--allow", "origin.test", prefix=limited)
    if raises:
        assert "lab page of origin.test" in result.out, result
    else:
        assert result.out.startswith("HTTP/1.1 503 "), result
        assert "167 connections are open, and the limit on open files (ulimit -Hn) allows no more" in result.out, result
        assert "sbx: reached 1x limit-connections (" in result.err, result
