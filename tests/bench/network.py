"""The measures of the network: through sbx, through other proxies, and directly, turn by turn.

A client outside connects directly and through the other proxies; a client inside a sandbox connects by CONNECT and
through a forwarded port, which is the transparent front without its look-up of names. The server is this process. Each
measure has a time to spend, so that the whole is bounded on a slow machine too, and at least three rounds. Clients and
proxies each have a session of their own, as sbx-proxy has: the scheduler shares processors among sessions (autogroups).
"""

import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import time

import peers
from server import Server

HERE = pathlib.Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
TUNNELS = 10_000
OWN_DESCRIPTORS = 256 + 2 * 1024  # that sbx-proxy keeps for itself and for listeners; each connection takes two
ROUNDS_MIN = 3


def raise_limit():
    """On open files: this process holds the server's ends, and its children inherit it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    want = 2 * TUNNELS + 2 * OWN_DESCRIPTORS
    if hard < want:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, want))
            hard = want
        except (ValueError, OSError):
            pass  # needs CAP_SYS_RESOURCE
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Client:
    """A client process, and what it is told to do."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        start_new_session=True, **options)

    def ask(self, via, measure, count):
        """The seconds that it took."""
        self.process.stdin.write(f"{via} {measure} {count}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"bench: the client failed at {measure} via {via}")
        return float(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)


def start_client(bench, port, *prefix):
    """client.py, in an empty directory."""
    shutil.copy(HERE / "client.py", f"{bench.top}/empty/client.py")
    environment = {name: value for name, value in bench.env.items() if "proxy" not in name.lower()}
    return Client(*prefix, "/usr/bin/python3", "client.py", str(port), cwd=f"{bench.top}/empty", env=environment)


class Way:
    """One way to the server: a client, how it goes, and the process in between (None: direct)."""

    def __init__(self, name, client, via, pid, keeps=True):
        self.name, self.client, self.via, self.pid, self.keeps = name, client, via, pid, keeps
        self.times = []
        self.cpu = 0.0

    def round(self, measure, count):
        before = cpu_of(self.pid)
        self.times.append(self.client.ask(self.via, measure, count))
        self.cpu += cpu_of(self.pid) - before


def cpu_of(pid):
    """Seconds of a processor that a process has used."""
    if pid is None:
        return 0.0
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pid):
    """KiB that are the process's own, and KiB resident."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    fields = dict(line.split(":", 1) for line in text.splitlines())
    return int(fields["RssAnon"].split()[0]), int(fields["VmRSS"].split()[0])


def child_named(pid, part):
    """The child of pid whose program's name has part in it."""
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                stat = pathlib.Path(f"/proc/{entry}/stat").read_text(encoding="ascii")
            except OSError:
                continue
            name, _, rest = stat.partition("(")[2].rpartition(")")
            if part in name and int(rest.split()[1]) == pid:
                return int(entry)
    raise SystemExit(f"bench: process {pid} has no child named {part}")


def interleave(ways, measure, count, seconds):
    """Rounds of all ways in turn, each first once in so many; the first round warms up."""
    for way in ways:
        way.round(measure, count)
    for way in ways:
        way.times, way.cpu = [], 0.0
    end = time.monotonic() + seconds
    turn = 0
    while turn < ROUNDS_MIN or time.monotonic() < end:
        for at in range(len(ways)):
            ways[(at + turn) % len(ways)].round(measure, count)
        turn += 1


class Network:
    def __init__(self, bench):
        raise_limit()
        self.table, self.quick = bench.table, bench.quick
        self.server = Server()
        port = self.server.port
        self.peers, absent = peers.start(bench.top, port)
        if absent:
            print("not installed or not starting, so not measured beside sbx:", ", ".join(absent), flush=True)
        self.outside = start_client(bench, port)
        self.inside = start_client(bench, port, bench.sbx, "run", "-q", "--allow", f"localhost:{port}", "--")
        self.sbx = self.inside.process.pid
        self.inside.ask("http:127.0.0.1:3128", "hold", 1)
        self.proxy = child_named(self.sbx, "proxy")
        self.direct = Way("direct", self.outside, "direct", None)
        self.connect = Way("CONNECT", self.inside, "http:127.0.0.1:3128", self.proxy)
        self.forward = Way("a forwarded port", self.inside, "direct", self.proxy)
        self.others = [Way(peer.name, self.outside, peer.via, peer.process.pid, peer.keeps) for peer in self.peers]

    def close(self):
        for client in (self.inside, self.outside):
            client.close()

    def seconds(self, whole):
        return whole / 5 if self.quick else whole

    def ratio(self, way):
        return statistics.median(a / b for a, b in zip(self.direct.times, way.times))

    def memory(self):
        for what, pid, budget in (("sbx", self.sbx, 2), ("sbx-proxy", self.proxy, 5)):
            own, whole = memory_of(pid)
            self.table.row(f"memory of {what}, one tunnel open", f"<= {budget} MiB", f"{whole / 1024:.2f} MiB",
                           whole <= budget * 1024, f"resident; {own / 1024:.2f} MiB of it its own")
        for way in self.others:
            self.table.row(f"memory of {way.name}", "-", f"{memory_of(way.pid)[1] / 1024:.2f} MiB", None)

    def streams(self):
        size = 256
        interleave([self.direct, self.connect, self.forward, *self.others], "stream", size, self.seconds(20))
        for way in (self.connect, self.forward, *self.others):
            ours = way.client is self.inside
            value = self.ratio(way)
            fastest = min(way.times)
            self.table.row(f"one stream through {way.name} : direct", ">= 0.70" if ours else "-", f"{value:.2f}",
                           value >= 0.7 if ours else None,
                           f"best {size / fastest:.0f} : {size / min(self.direct.times):.0f} MiB/s; "
                           f"{way.cpu / len(way.times) / size * 1024:.2f} s of CPU per GiB")

    def requests(self):
        number = 200
        ways = [self.direct, self.connect, *(way for way in self.others if way.keeps)]
        interleave(ways, "request", number, self.seconds(8))
        for way in ways[1:]:
            ours = way is self.connect
            added = statistics.median((b - a) / number for a, b in zip(self.direct.times, way.times)) * 1e6
            self.table.row(f"added to a kept-alive request by {'sbx' if ours else way.name}", "<= 80 us" if ours else "-",
                           f"{added:.0f} us", added <= 80 if ours else None,
                           f"best {(min(way.times) - min(self.direct.times)) / number * 1e6:.0f} us")

    def connections(self):
        number = 100
        interleave([self.direct, self.connect, self.forward, *self.others], "connect", number, self.seconds(10))
        for way in (self.connect, self.forward, *self.others):
            ours = way.client is self.inside
            value = self.ratio(way)
            self.table.row(f"new connections through {way.name} : direct", ">= 0.40" if ours else "-", f"{value:.2f}",
                           value >= 0.4 if ours else None,
                           f"best {number / min(way.times):.0f} : {number / min(self.direct.times):.0f} /s; "
                           f"{way.cpu / len(way.times) / number * 1e6:.0f} us of CPU each")

    def hold(self, way, number):
        """KiB of memory for each of so many idle tunnels."""
        way.client.ask(way.via, "hold", 1)
        before = memory_of(way.pid)[0]
        way.client.ask(way.via, "hold", number)
        return (memory_of(way.pid)[0] - before) / (number - 1)

    def idle(self):
        number = 1000
        for way in (self.connect, *self.others):
            each = self.hold(way, number)
            ours = way is self.connect
            self.table.row(f"memory of an idle tunnel of {'sbx' if ours else way.name}", "<= 4 KiB" if ours else "-",
                           f"{each:.2f} KiB", each <= 4 if ours else None, f"over {number} tunnels")
            way.client.ask(way.via, "hold", 0)

    def many(self):
        """As many as are to be possible at once, or as the limit on open files lets be."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        number = min(TUNNELS, (hard - OWN_DESCRIPTORS) // 2 - 32)
        each = self.hold(self.connect, number)
        taken = self.inside.ask(self.connect.via, "use", 500)
        self.table.row("tunnels at once", f"{TUNNELS:,}", f"{number:,}", True if number == TUNNELS else None,
                       f"{each:.2f} KiB each, {memory_of(self.proxy)[1] / 1024:.1f} MiB resident; a line on 500 of them "
                       f"in {taken:.2f} s" + ("" if number == TUNNELS else f"; only {hard} open files allowed here"))
        self.inside.ask(self.connect.via, "hold", 0)


def measure(bench):
    network = Network(bench)
    try:
        network.memory()
        network.idle()  # before memory has been used and given back
        network.many()
        network.requests()
        network.connections()
        network.streams()
    finally:
        network.close()
