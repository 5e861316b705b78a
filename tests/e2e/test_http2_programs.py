"""HTTP/2 with programs of others at both ends: nghttpd, nghttp, h2load, gRPC. Their origins listen on ports of their own."""
import contextlib
import json
import os
import socket
import subprocess
from concurrent import futures

import grpc
import pytest

from e2e_helpers import h2_bound
from harness import procs
from harness.secrets import no_secret
from lab import space
from lab.guarded import SECRET
from lab.http2 import ADDRESSES
from lab.origin import pattern

TOKEN = {"LAB_KEY": SECRET}
TOOLS, GRPC = ("h2tools.test", 8444), ("h2grpc.test", 8445)


@pytest.fixture
def bound(project):
    return h2_bound(project)


@pytest.fixture
def nghttpd(http2):
    """nghttpd(1) at https://h2tools.test:8444, with a page and a large one."""
    root = f"{space.BASE}/nghttpd"
    os.makedirs(root, exist_ok=True)
    with open(f"{root}/page", "wb") as file:
        file.write(b"a page\n")
    with open(f"{root}/large", "wb") as file:
        file.write(pattern(3 << 20))
    words = ["nghttpd", "-d", root, "-a", ADDRESSES[TOOLS[0]], "--echo-upload", str(TOOLS[1]), http2.certificate, http2.certificate]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_there():
        with contextlib.suppress(OSError):
            socket.create_connection((ADDRESSES[TOOLS[0]], TOOLS[1])).close()
            return True
    procs.wait_until(is_there, "nghttpd")
    yield f"https://{TOOLS[0]}:{TOOLS[1]}"
    process.kill()
    process.wait()


def test_nghttp(sbx, lab, nghttpd, bound, project):
    """A large page, its time-out and window as nghttp has them; an upload; with a large window and with padding."""
    project.write("data", pattern(1 << 20))
    script = (f'nghttp -H "authorization: Bearer $LAB_KEY" {nghttpd}/large | sha256sum; nghttp -w 20 -W 20 {nghttpd}/large | sha256sum; '
              f'nghttp -b 255 -d data {nghttpd}/page | sha256sum; nghttp -m 20 {nghttpd}/page | sort | uniq -c')
    result = sbx.shell(script, *bound, env=TOKEN)
    digests = subprocess.run("head -c 3145728 data | sha256sum; head -c 1048576 data | sha256sum", shell=True, check=True,
                             capture_output=True, text=True, cwd=write_pattern(project)).stdout.splitlines()
    assert result.ok().out.splitlines() == [digests[0], digests[0], digests[1], "     20 a page"], result


def write_pattern(project):
    directory = f"{project.home}/pattern"
    os.makedirs(directory)
    with open(f"{directory}/data", "wb") as file:
        file.write(pattern(3 << 20))
    return directory


def test_h2load(sbx, lab, nghttpd, bound):
    """Many connections with many streams, and each request is answered."""
    result = sbx.shell(f'h2load -n 5000 -c 10 -m 100 -H "authorization: Bearer $LAB_KEY" {nghttpd}/page; '
                       f'h2load -n 40 -c 4 -m 10 {nghttpd}/large', *bound, env=TOKEN)
    lines = [line for line in result.ok().out.splitlines() if line.startswith(("requests:", "status codes:"))]
    assert "5000 succeeded, 0 failed, 0 errored" in lines[0] and "5000 2xx" in lines[1], lines
    assert "40 succeeded, 0 failed, 0 errored" in lines[2], lines


class Handler(grpc.GenericRpcHandler):
    """/lab.Lab/Echo: each message comes back; with the login it was asked with in its trailer."""

    def service(self, details):
        def echo(messages, context):
            metadata = dict(context.invocation_metadata())
            context.send_initial_metadata((("x-first", "1"),))
            for message in messages:
                if message == b"fail":
                    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "as asked")
                yield message
            context.set_trailing_metadata((("x-login", metadata.get("authorization", "")),))
        return grpc.stream_stream_rpc_method_handler(echo) if details.method == "/lab.Lab/Echo" else None


@pytest.fixture
def grpc_server(http2):
    with open(http2.certificate, "rb") as file:
        pem = file.read()
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Handler()])
    credentials = grpc.ssl_server_credentials([(pem, pem)])
    assert server.add_secure_port(f"{ADDRESSES[GRPC[0]]}:{GRPC[1]}", credentials)
    server.start()
    yield f"{GRPC[0]}:{GRPC[1]}"
    server.stop(None).wait()


CALLS = """
import grpc, json, os, queue, sys
channel = grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials())
call = channel.stream_stream("/lab.Lab/Echo")
login = (("authorization", "Bearer " + os.environ["LAB_KEY"]),)
to_send, seen = queue.Queue(), []
answers = call(iter(to_send.get, None), metadata=login)
for number in range(50):
    # In turns: neither side knows what comes next.
    to_send.put(b"%d" % number)
    seen.append(int(next(answers)))
to_send.put(None)
assert next(answers, None) is None
trailer = dict(answers.trailing_metadata())
large = list(call(iter([bytes(1 << 20)] * 3), metadata=login))
failed = call(iter([b"fail"]), metadata=login)
try: list(failed)
except grpc.RpcError as error: code = [error.code().name, error.details()]
try: list(channel.stream_stream("/lab.Lab/Nothing")(iter([]), metadata=login))
except grpc.RpcError as error: code.append(error.code().name)
print(json.dumps([seen, dict(answers.initial_metadata())["x-first"], trailer["x-login"], [len(m) for m in large], code,
                  os.environ["LAB_KEY"]]))
"""


def test_grpc(sbx, lab, grpc_server, bound, project):
    """A stream in both directions, its trailer, errors; the login is the secret there and the placeholder here."""
    audit = f"{project.home}/audit.jsonl"
    result = sbx.python(CALLS, *bound, "--audit", audit, env=TOKEN, arguments=[grpc_server])
    no_secret(result.out, result.err)
    seen, first, login, large, code, placeholder = result.json
    assert seen == list(range(50)) and first == "1" and large == [1 << 20] * 3
    assert login == f"Bearer {placeholder}" and code == ["FAILED_PRECONDITION", "as asked", "UNIMPLEMENTED"]
    with open(audit) as file:
        lines = [line for line in map(json.loads, file) if line["event"] == "request"]
    assert [line["path"] for line in lines] == ["/lab.Lab/Echo"] * 3 + ["/lab.Lab/Nothing"]
    assert all(line["credential"] == "lab" and line["verdict"] == "allow" for line in lines) and lines[0]["scrubbed"] == 1, lines
