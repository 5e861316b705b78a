"""Long streams through tunnels (F57): whole, counted, and without an end. They go by splice(2) where there is a pipe."""
import json
import os
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


def resident_kib(process):
    lines = process.read("status").decode().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


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
    assert resident_kib(proxy) < 32 * 1024
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
