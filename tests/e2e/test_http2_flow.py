"""HTTP/2 in quantity: many streams, large bodies, one that stands still beside others; values that are renewed; floods."""
import json
import os
import subprocess
import threading

import pytest

from e2e_helpers import h2_bound, h2_inside
from harness import procs
from harness.sbx import PYTHON
from harness.secrets import saw
from lab.guarded import SECRET, digest
from lab.origin import pattern

TOKEN = {"LAB_KEY": SECRET}


@pytest.fixture
def bound(project):
    return h2_bound(project)


def test_many_streams(sbx, lab, http2, bound):
    """100 at once, and as many again as soon as they have ended; a client that has been told so and begins more breaks the
    protocol."""
    answers, _ = h2_inside(sbx, """
client = Client()
client.until(lambda: client.h2.remote_settings.max_concurrent_streams < 1000)
streams = [client.begin("/check") for _ in range(100)]
seen = [client.finish(number).status for number in streams]
seen += [client.finish(number).status for number in [client.begin("/check") for _ in range(100)]]
for _ in range(100): client.begin("/silent")
client.h2.remote_settings[3] = 1000; client.h2.remote_settings.acknowledge()
client.begin("/check")
print(json.dumps([seen, client.drain()]))
""", *bound)
    assert answers == [[200] * 200, 1], answers
    assert len(saw(lab, "h2.test")) >= 200 # the last ones may not have gone


def test_large_bodies(sbx, lab, http2, bound, project):
    """Both directions, by curl, which widens its windows, and by a client with small ones."""
    data = os.urandom(5 << 20)
    project.write("data", data)
    script = ('curl -sS --http2 -H "Authorization: Bearer $LAB_KEY" --data-binary @data https://h2.test/trailers | sha256sum; '
              'curl -sS --http2 https://h2.test/large/5000000 | sha256sum')
    result = sbx.shell(script, *bound, env=TOKEN)
    there, back = [line.split()[0] for line in result.ok().out.splitlines()]
    assert there == digest(data).split()[1] and back == digest(pattern(5000000)).split()[1], result
    answer, _ = h2_inside(sbx, """
import hashlib
client, data = Client(), b"0123456789abcdef" * (3 << 16)
up = client.ask("/trailers", method="POST", body=data, login=False)
print(json.dumps([up.body == data, up.trailer]))
""", *bound)
    assert answer == [True, [["x-sum", "done"]]]


def test_stalled_stream(sbx, lab, http2, bound):
    """One whose client does not take its body, beside others that go on; and an upload that the origin does not take."""
    answer, _ = h2_inside(sbx, """
client = Client(taking=False)
stalled = client.begin("/large/3000000")
client.until(lambda: len(client.answers[stalled].body) >= 65535)
got = 0
for _ in range(20):
    # The connection's window is the client's to give; the stalled stream's is not given.
    client.h2.increment_flow_control_window(30000)
    got += len(client.ask("/large/20000").body)
print(json.dumps([len(client.answers[stalled].body), got, client.answers[stalled].ended]))
""", *bound)
    assert answer == [65535, 400000, False], answer


def test_renewed(sbx, lab, http2, bound, project):
    """A 401 where no byte of the request's body went: the newer value is asked for, and the request goes once more, on the
    same connection."""
    project.write("../value", "an-old-value-that-has-expired")
    with open(f"{project.home}/src/value") as file:
        assert file.read().startswith("an-old")
    script = f"cat {project.home}/src/value; printf %s '{SECRET}' > {project.home}/src/value"
    policy = project.policy("../renew.json", credentials={
        "lab": {"source": {"exec": ["/bin/sh", "-c", script]}, "env": "LAB_KEY", "bind": ["h2.test"]}})
    answers, _ = h2_inside(sbx, """
import time
client = Client()
seen = [client.ask("/status/200", login=True).status]
time.sleep(11)  # a value that came so lately would not be asked for anew
for words in ({}, {"method": "POST", "body": b"x"}, {"login": False}):
    answer = client.ask("/check", **words)
    seen.append([answer.status, answer.body.decode()])
print(json.dumps(seen))
""", "--policy", policy)
    assert answers == [200, [200, "hello, lab\n"], [200, "hello, lab\n"], [401, "who are you?\n"]], answers
    assert [r.target for r in lab.requests] == ["/status/200"] + ["/check"] * 4
    assert len({r.connection for r in lab.requests}) == 1 and len(saw(lab, "h2.test")) == 2


FLOODS = {
    "settings": "frame(4) * 200000",
    "pings": "frame(6, 0, 0, bytes(8)) * 200000",
    "empty data": "frame(1, 4, 1, HEAD) + frame(0, 0, 1) * 200000",
    "priorities": "frame(2, 0, 1, bytes([0, 0, 0, 3, 1])) * 200000",
    "continuations": "frame(1, 1, 1, HEAD) + frame(9, 0, 1, b'\\0\\1a\\1b' * 3000) * 300",
    "empty continuations": "frame(1, 1, 1, HEAD) + frame(9, 0, 1) * 200000",
    "header bomb": "frame(1, 1, 1, HEAD + b'\\x40\\x01b\\x7f\\x91\\x1e' + b'v' * 4000) + frame(9, 4, 1, b'\\xbe' * 16000)",
    "resets": "b''.join(frame(1, 5, n, HEAD) + frame(3, 0, n, bytes([0, 0, 0, 8])) for n in range(1, 40001, 2))",
    "resets that it asks for": "b''.join(frame(1, 5, n, HEAD) + frame(8, 0, n, bytes(4)) for n in range(1, 40001, 2))",
    "heads that are not whole": "b''.join(frame(1, 5, n, HEAD + b'\\0\\1A\\1b') for n in range(1, 40001, 2))",
}
FLOOD = """
import threading
HEAD = b"\\x82\\x87\\x84\\x01\\x07h2.test"
client = Client()
client.until(lambda: client.h2.remote_settings.max_concurrent_streams < 1000)
flood = FLOOD
def send():
    try: client.stream.sendall(flood)
    except OSError: pass
thread = threading.Thread(target=send); thread.start()
code, held = None, b""
try:
    while data := client.stream.recv(65536):
        held += data
        while len(held) >= 9 and len(held) >= (size := 9 + int.from_bytes(held[:3], "big")):
            piece, held = held[:size], held[size:]
            if piece[3] == 7: code = int.from_bytes(piece[13:17], "big")
except OSError: pass
client.stream.close(); thread.join()
print(json.dumps([code, Client().ask("/check").status]))
"""


def held(line):
    """KiB that the sbx-proxy-tls below us holds by that line of its status."""
    lines = [text for process in procs.descendants() if process.name == "sbx-proxy-tls"
             for text in process.read("status").splitlines() if text.startswith(line.encode())]
    return max((int(text.split()[1]) for text in lines), default=0)


@pytest.mark.parametrize("kind", FLOODS)
def test_floods(sbx, lab, http2, bound, kind):
    """The connection ends, with ENHANCE_YOUR_CALM, the proxy's memory stays where it was, and others are served."""
    seen, ended = [], threading.Event()

    def look():
        while not ended.wait(0.05):
            seen.append(held("VmHWM"))
    thread = threading.Thread(target=look)
    thread.start()
    try:
        answer, _ = h2_inside(sbx, FLOOD.replace("FLOOD", FLOODS[kind]), *bound)
    finally:
        ended.set()
        thread.join()
    # Those that nghttp2 resets are streams at once, and then too many, until the resets are out.
    # Who goes on sending may be reset before it has read why.
    assert answer in ([11, 200], [None, 200], [1 if "that" in kind else 11, 200]), answer
    assert 4000 < max(seen) < 32000, max(seen)


IDLE = """
def plain():
    raw = socket.create_connection(("h2.test", 443))
    stream = ssl.create_default_context().wrap_socket(raw, server_hostname="h2.test")
    stream.sendall(b"GET /check HTTP/1.1\\r\\nHost: h2.test\\r\\nAuthorization: Bearer " + TOKEN.encode() + b"\\r\\n\\r\\n")
    while not stream.recv(65536).endswith(b"lab\\n"): pass
    return stream
def second():
    client = Client(); assert client.ask().status == 200
    return client
kept = []
for make in (plain, second):
    for count in (20, 200):
        while len(kept) % 1000 < count: kept.append(make())
        print(count, flush=True)
        sys.stdin.readline()
    kept += [None] * (1000 - len(kept))
"""


def test_memory_of_idle_connections(sbx, lab, http2, bound):
    """One of HTTP/2 that has been used takes at most 40 KiB more than one of HTTP/1.1, which is mostly OpenSSL's."""
    code = "import sys\nsys.path.append('.')\nfrom h2_client import *\n" + IDLE
    process = sbx.start("run", *bound, "--", PYTHON, "-I", "-c", code, env=TOKEN, stdin=subprocess.PIPE)
    seen = []
    for count in (20, 200) * 2:
        assert process.stdout.readline() == b"%d\n" % count
        seen.append(held("VmRSS"))
        process.stdin.write(b"\n")
        process.stdin.flush()
    process.communicate(timeout=60)
    plain, second = [(seen[i + 1] - seen[i]) / 180 for i in (0, 2)]
    print(seen, plain, second)
    assert second - plain < 40, seen
