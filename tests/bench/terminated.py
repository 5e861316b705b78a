"""The measures of terminated TLS: through sbx with a credential, through mitmproxy where it is installed, and directly,
turn by turn. Everything runs in the lab, whose authority all sides trust; clients and server are https.go.

    measure(bench)     called by the bench: builds https.go and runs this file in the lab
"""

import atexit
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TESTS = HERE.parent
sys.path.insert(0, str(HERE))
sys.path.insert(0, str(TESTS))

from network import Client, Way, child_named, interleave, memory_of, raise_limit  # noqa: E402

HOST, ADDRESS, PORT = "bench.test", "192.0.2.10", 443
FRONT = "http://127.0.0.1:3128"
HELD = 1000


def wait_for(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"bench: nothing listens on port {port}")


class Terminated:
    """Inside the lab."""

    def __init__(self, table, base, quick):
        from lab import ca, dns, space
        raise_limit()
        self.table, self.quick, self.base = table, quick, base
        self.dns = dns.Server(space.RESOLVERS, {HOST: [ADDRESS]})
        authority = ca.Authority(f"{base}/etc/ca")
        authority.install(f"{base}/etc/certs")
        leaf = authority.issue("leaf", [HOST])
        program, url = f"{base}/bin/https", f"https://{HOST}:{PORT}"
        self.start(program, "serve", leaf, str(PORT))
        wait_for(PORT)
        os.makedirs(f"{base}/work", exist_ok=True)
        environment = {"PATH": os.environ["PATH"], "HOME": f"{base}/home", "BENCH_TOKEN": "a" * 40}
        with open(f"{base}/policy.json", "w", encoding="ascii") as file:
            json.dump({"credentials": {"bench": {"source": {"env": "BENCH_TOKEN"}, "env": ["BENCH_TOKEN"],
                                                 "bind": [HOST], "inject": "attach", "place": "bearer"}}}, file)
        shutil.copy(program, f"{base}/work/https")
        self.inside = Client(f"{base}/bin/sbx", "run", "-q", "--policy", f"{base}/policy.json", "--", "./https", "ask",
                             url, cwd=f"{base}/work", env=environment)
        mitm = self.start_mitmproxy(authority.certificate)
        roots = {"BENCH_ROOTS": mitm[2]} if mitm else {}
        self.outside = Client(program, "ask", url, env={**environment, **roots})
        self.inside.ask(FRONT, "request", 1)
        self.proxy = child_named(self.inside.process.pid, "proxy")
        self.direct = Way("direct", self.outside, "direct", None)
        self.sbx = Way("sbx", self.inside, FRONT, self.proxy)
        self.others = [Way("mitmproxy", self.outside, mitm[1], mitm[0].pid)] if mitm else []

    def start(self, *command, **options):
        """A process that ends with us, also where the bench fails."""
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
                                   **options)
        atexit.register(process.wait)
        atexit.register(process.terminate)
        return process

    def start_mitmproxy(self, authority):
        """(its process, how clients reach it, the file with its authority), or None where there is none."""
        program = shutil.which("mitmdump")
        if not program:
            return None
        process = self.start(program, "-q", "-p", "8081", "--set", f"confdir={self.base}/mitm",
                             "--set", f"ssl_verify_upstream_trusted_ca={authority}", cwd=self.base)
        wait_for(8081)
        return process, "http://127.0.0.1:8081", f"{self.base}/mitm/mitmproxy-ca-cert.pem"

    def close(self):
        self.inside.close()
        self.outside.close()

    def ways(self, suffix):
        return [Way(way.name, way.client, way.via + suffix, way.pid) for way in (self.direct, self.sbx, *self.others)]

    def ratios(self, what, suffix, measure, count, seconds):
        """A row for each way but the direct one; its speed, in units of what is counted."""
        ways = self.ways(suffix)
        interleave(ways, measure, count, seconds / 5 if self.quick else seconds)
        for way in ways[1:]:
            value = statistics.median(a / b for a, b in zip(ways[0].times, way.times))
            best = count / min(way.times)
            self.table.row(f"{what} through {way.name} : direct", "-", f"{value:.2f}", None,
                           f"best {best:.0f} : {count / min(ways[0].times):.0f} /s; "
                           f"{way.cpu / len(way.times) / count * 1e6:.0f} us of CPU each")

    def latency(self, what, suffix):
        number = 200
        ways = self.ways(suffix)
        interleave(ways, "request", number, 2 if self.quick else 8)
        for way in ways[1:]:
            added = statistics.median((b - a) / number for a, b in zip(ways[0].times, way.times)) * 1e6
            self.table.row(f"added to a kept-alive request by {way.name}, {what}", "-", f"{added:.0f} us", None,
                           f"of {statistics.median(ways[0].times) / number * 1e6:.0f} us direct")

    def memory(self):
        self.inside.ask(FRONT, "hold", 1)
        before = memory_of(self.proxy)[0]
        self.inside.ask(FRONT, "hold", HELD)
        own, whole = memory_of(self.proxy)
        self.table.row("memory of an idle terminated connection", "-", f"{(own - before) / (HELD - 1):.1f} KiB", None,
                       f"over {HELD}, OpenSSL's part for both ends included; {whole / 1024:.1f} MiB resident")
        self.inside.ask(FRONT, "hold", 0)

    def all(self):
        self.memory()
        for what, suffix in (("HTTP/1.1", ""), ("HTTP/2", "+h2")):
            self.latency(what, suffix)
            self.ratios(f"requests, 16 at a time, {what}", suffix, "load", 800, 10)
            self.ratios(f"a stream's MiB, {what}", suffix, "stream", 32, 10)
        self.ratios("new connections", "", "connect", 50, 10)


def measure(bench):
    if not shutil.which("go") or not shutil.which("openssl"):
        print("terminated: go and openssl are needed, and not both are here", flush=True)
        return
    subprocess.run(["go", "build", "-o", f"{bench.top}/https", str(HERE / "https.go")], check=True,
                   env={**os.environ, "GO111MODULE": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0",
                        "GOCACHE": f"{bench.top}/cache"})
    build = pathlib.Path(bench.sbx).parent
    copies = {"bin/https": f"{bench.top}/https", "dist/tests": TESTS,
              **{f"bin/{name}": build / name for name in ("sbx", "sbx-proxy", "sbx-proxy-tls")}}
    words = [word for name, path in copies.items() for word in ("--copy", f"{name}={path}")]
    from lab.space import BASE
    subprocess.run([sys.executable, "-B", "-m", "lab", *words, "--", sys.executable, "-B",
                    f"{BASE}/dist/tests/bench/terminated.py", "quick" if bench.quick else "whole"],
                   check=True, cwd="/", env={**os.environ, "PYTHONPATH": str(TESTS)})


def main():
    from table import Table
    terminated = Terminated(Table(heading=False), os.environ["SBX_LAB"], sys.argv[1] == "quick")
    try:
        terminated.all()
    finally:
        terminated.close()


if __name__ == "__main__":
    main()
