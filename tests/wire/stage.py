"""The stage for the wire tests: namespaces with a little internet of their own, and sbx-proxy started as sbx does it.

Everything runs on the loopback of a network namespace that only these tests are in; the names and addresses are those
that documents use. Works for root and for a plain user.
"""
import array
import ctypes
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from lab import ca, dns  # noqa: E402

BUILD = os.environ.get("SBX_WIRE_BUILD") or os.getcwd()  # make check runs at the top of the build
with open(os.path.join(BUILD, "config.h"), encoding="ascii") as file:
    CONFIG = file.read()
NAME = re.search(r'(?m)^#define SBX_NAME "(.*)"$', CONFIG).group(1)
CONFINED = "#define SBX_NO_SELF_CONFINE" not in CONFIG
PATIENCE = 60  # seconds until a step that waits has failed; nothing is asserted about time
CONTROL_START, CONTROL_READY, CONTROL_FAILED, CONTROL_DENIED = 1, 2, 3, 4
CONTROL_PARENTS, CONTROL_PLACEHOLDERS, CONTROL_WANT, CONTROL_SECRET, CONTROL_CA = 10, 12, 13, 14, 15
FRONT_HTTP = 1
FRONTS_MAX, RUN_ID_BYTES = 56, 24
DENIED = struct.Struct("=IIII256s192s512s")

V4 = ("203.0.113.10", "203.0.113.11", "203.0.113.12", "203.0.113.53", "10.9.8.7", "169.254.169.254", "100.64.0.1")
V6 = ("2001:db8::10", "2001:db8::11", "fd00:1::7")

HOSTS = """127.0.0.1 localhost
::1 localhost
203.0.113.10 fromhosts.test alias.fromhosts.test # in no zone
0.0.0.0 blocked.test
"""
RESOLV = "nameserver 203.0.113.53\nsearch search.test\noptions timeout:1\n"

POLICY = {
    "network": {
        "allow": ["origin.test", "other.test", "six.test", "both.test", "refused.test:81", "*.sub.test",
                  "fromhosts.test", "alias.fromhosts.test", "blocked.test", "nowhere.test", "servfail.test",
                  "truncated.test", "single", "dotted.single", "localhost:8080", "203.0.113.12:8081",
                  "[2001:db8::11]:8081", "rebind-loopback.test", "rebind-private.test", "rebind-metadata.test",
                  "rebind-mapped.test", "rebind-nat64.test", "rebind-zero.test", "rebind-cgnat.test",
                  "rebind-ula.test", "rebind-some.test", "rebind-later.test", "10.9.8.7:8082", "private-ok.test:8082"],
        "deny": ["denied.sub.test", "other.test:81"],
    },
}


AUTHORITIES = None  # of build()


def rebind_later(name, kind, count):
    """Public when asked first, the loopback afterwards."""
    if kind != "A":
        return []
    return dns.Answer(["203.0.113.10"] if count == 1 else ["127.0.0.1"], ttl=0)


ZONE = {
    "origin.test": ["203.0.113.10"],
    "other.test": ["203.0.113.11"],
    "six.test": ["2001:db8::10"],
    "both.test": ["2001:db8::10", "203.0.113.10"],
    "refused.test": ["203.0.113.10"],
    "a.sub.test": ["203.0.113.10"],
    "denied.sub.test": ["203.0.113.10"],
    "blocked.test": ["203.0.113.10"],
    "servfail.test": dns.Answer(rcode=dns.SERVFAIL),
    "truncated.test": dns.Answer(["203.0.113.10"], truncated=True),
    "single.search.test": ["203.0.113.10"],
    "dotted.single.search.test": ["203.0.113.10"],
    "rebind-loopback.test": ["127.0.0.1", "::1"],
    "rebind-private.test": ["10.9.8.7"],
    "rebind-metadata.test": ["169.254.169.254"],
    "rebind-mapped.test": ["::ffff:127.0.0.1"],
    "rebind-nat64.test": ["64:ff9b::7f00:1"],
    "rebind-zero.test": ["0.0.0.0"],
    "rebind-cgnat.test": ["100.64.0.1"],
    "rebind-ula.test": ["fd00:1::7"],
    "rebind-some.test": ["10.9.8.7", "203.0.113.10", "127.0.0.1"],
    "rebind-later.test": rebind_later,
    "private-ok.test": ["10.9.8.7"],
}


def enter(argv):
    """Starts this program again in new user, network and mount namespaces, unless it is in them already."""
    if os.environ.get("SBX_WIRE_STAGE") != "1":
        environment = dict(os.environ, SBX_WIRE_STAGE="1", PYTHONDONTWRITEBYTECODE="1")
        os.execvpe("unshare", ["unshare", "-Urnm", "--", sys.executable] + argv, environment)
    # Dies with the program that started it.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def configure_loopback():
    """Brings lo up and gives it the addresses (netdevice(7)). Buffers are small, so that a test of back-pressure need not
    fill what the host's settings let a socket grow to."""
    for name in ("tcp_rmem", "tcp_wmem"):
        with open(f"/proc/sys/net/ipv4/{name}", "w", encoding="ascii") as file:
            file.write("4096 131072 2097152")
    v4 = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    v6 = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    up = struct.pack("16sH14x", b"lo", 0x1 | 0x40)
    fcntl.ioctl(v4, 0x8914, up)  # SIOCSIFFLAGS
    for number, address in enumerate(V4):
        name = f"lo:{number + 1}".encode()
        packed = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address))
        fcntl.ioctl(v4, 0x8916, packed)  # SIOCSIFADDR
    index = socket.if_nametoindex("lo")
    for address in V6:
        fcntl.ioctl(v6, 0x8916, struct.pack("16sIi", socket.inet_pton(socket.AF_INET6, address), 128, index))


def configure_etc(authority):
    """Covers /etc with what a resolver reads, and with the authorities that the host trusts."""
    cache = "/etc/ld.so.cache"
    kept = open(cache, "rb").read() if os.path.exists(cache) else None
    subprocess.run(["mount", "-t", "tmpfs", "wire", "/etc"], check=True)
    os.makedirs("/etc/ssl/certs")
    with open(authority.certificate, encoding="ascii") as file:
        bundle = file.read()
    for name, text in (("ssl/certs/ca-certificates.crt", bundle), ("hosts", HOSTS), ("resolv.conf", RESOLV)):
        with open(f"/etc/{name}", "w", encoding="ascii") as file:
            file.write(text)
    if kept is not None:
        with open(cache, "wb") as file:
            file.write(kept)


class Authorities:
    """The one that the host trusts and one that it does not, and certificates of theirs for origins."""

    def __init__(self):
        self.directory = tempfile.TemporaryDirectory()
        trusted = ca.Authority(f"{self.directory.name}/trusted")
        self.trusted = trusted
        self.good = trusted.issue("good", ["origin.test", "other.test", "203.0.113.12"])
        self.expired = trusted.issue("expired", ["origin.test"], days=-1)
        self.wrong_name = trusted.issue("wrong", ["wrong.test", "*.origin.test", "or*.test"])
        self.untrusted = ca.Authority(f"{self.directory.name}/untrusted").issue("leaf", ["origin.test"])


def build():
    """Makes the stage. Returns the DNS server."""
    configure_loopback()
    global AUTHORITIES
    AUTHORITIES = Authorities()
    configure_etc(AUTHORITIES.trusted)
    return dns.Server(["203.0.113.53"], ZONE)


def canonical(policy):
    """What sbx hands to its proxy for this policy."""
    program = os.path.join(BUILD, "tests/wire/canon")
    return subprocess.run([program], input=json.dumps(policy).encode(), stdout=subprocess.PIPE, check=True).stdout


def start_message_of(front=FRONT_HTTP, count=1, parents=0, generation=0):
    """struct control_start of sys/control.h, with one front."""
    message = struct.pack("=II", CONTROL_START, count) + struct.pack(f"={FRONTS_MAX}I", front, *[0] * (FRONTS_MAX - 1))
    message += bytes(2 * FRONTS_MAX) + struct.pack("=IIII", 1, parents, generation, 0)  # ports, has_v6 ... ask
    return message + b"run-wire".ljust(RUN_ID_BYTES, b"\0")


def placeholders_message(placeholders):
    """struct control_placeholders, in the order of the policy's credentials."""
    return struct.pack("=II", CONTROL_PLACEHOLDERS, len(placeholders)) + b"".join(
        text.ljust(257, b"\0") for text in placeholders + [b""] * (32 - len(placeholders)))


class Proxy:
    """A running sbx-proxy. address is where its HTTP front listens."""

    def __init__(self, policy=None, descriptors=None, audit_start=b"", start_message=None, more=(), tls=False):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.address = self.listener.getsockname()
        self.audit = tempfile.NamedTemporaryFile()
        self.audit.write(audit_start)
        self.audit.flush()
        self.seen = len(audit_start)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(PATIENCE)
        self.process = self.spawn(theirs, descriptors, "sbx-proxy-tls" if tls else "sbx-proxy")
        theirs.close()
        self.send_start(canonical(POLICY if policy is None else policy), start_message, more)
        self.authority = None  # the certificate of its CA
        if tls and self.first and struct.unpack_from("=I", self.first)[0] == CONTROL_CA:
            length, = struct.unpack_from("=I", self.first, 4)
            self.authority = self.first[8:8 + length].decode()
            self.first = self.control.recv(65536)

    @staticmethod
    def spawn(theirs, descriptors, name):
        """sbx's way: an empty environment, the control socket as descriptor 3, nothing else."""
        def child():
            if descriptors:
                import resource
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
            os.dup2(theirs.fileno(), 3, inheritable=True)

        program = os.path.join(BUILD, name)
        environment = {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        with open("/proc/self/uid_map", encoding="ascii") as file:
            root_of_the_machine = os.geteuid() == 0 and file.read().split() == ["0", "0", "4294967295"]
        if not root_of_the_machine:
            # LeakSanitizer makes a thread at the end, which the proxy has forbidden itself (RLIMIT_NPROC; root is exempt).
            environment["ASAN_OPTIONS"] = environment.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        wrapper = os.environ.get("SBX_WIRE_WRAPPER", "").split()
        return subprocess.Popen(wrapper + [program], stdin=subprocess.DEVNULL, env=environment, close_fds=False,
                                preexec_fn=child)

    def send_start(self, policy, message, more):
        memfd = os.memfd_create("policy", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(memfd, policy)
        os.lseek(memfd, 0, os.SEEK_SET)
        audit = os.open(self.audit.name, os.O_WRONLY | os.O_APPEND)
        if message is None:
            message = start_message_of()
        fds = array.array("i", [memfd, audit, self.listener.fileno()])
        self.control.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        os.close(memfd)
        os.close(audit)
        for each in more:
            self.control.send(each)
        self.first = self.control.recv(65536)

    @property
    def ready(self):
        return struct.unpack_from("=I", self.first)[0] == CONTROL_READY if self.first else False

    def connect(self):
        client = socket.create_connection(self.address)
        client.settimeout(PATIENCE)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return client

    def tunnel(self, target):
        client = self.connect()
        client.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode())
        head = read_until(client, b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return client

    def get(self, url, host="x"):
        """One request on a connection of its own; the whole answer."""
        with self.connect() as client:
            client.sendall(f"GET {url} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return read_all(client)

    def audit_lines(self, count):
        """The next count lines of the audit; waits for them."""
        end = time.monotonic() + PATIENCE
        while True:
            with open(self.audit.name, "rb") as file:
                file.seek(self.seen)
                text = file.read()
            lines = text.splitlines(keepends=True)
            if len(lines) >= count and all(line.endswith(b"\n") for line in lines[:count]):
                break
            assert time.monotonic() < end, f"the audit has {lines}, {count} lines are due"
            time.sleep(0.005)
        self.seen += sum(len(line) for line in lines[:count])
        return [json.loads(line) for line in lines[:count]]

    def audit_rest(self):
        """What stands in the audit beyond the lines that have been read."""
        with open(self.audit.name, "rb") as file:
            file.seek(self.seen)
            return file.read()

    def denials(self):
        """The notices that have come, as (reason number, port, host, fix)."""
        found = []
        self.control.setblocking(False)
        try:
            while message := self.control.recv(4096):
                kind, reason, port, count, host, _, fix = DENIED.unpack(message)
                assert kind == CONTROL_DENIED
                found += [(reason, port, host.split(b"\0")[0].decode(), fix.split(b"\0")[0].decode())] * count
        except BlockingIOError:
            pass
        self.control.settimeout(PATIENCE)
        return found

    def status(self, field):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith(field + ":"))

    def memory(self):
        """Resident KiB."""
        return int(self.status("VmRSS").split()[0])

    def cpu(self):
        """Clock ticks used."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def alive(self):
        return self.process.poll() is None

    def stop(self):
        """Ends it as sbx does; its exit status."""
        self.control.close()
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.listener.close()


def read_until(sock, mark):
    got = b""
    while mark not in got:
        data = sock.recv(65536)
        if not data:
            raise EOFError(f"the connection ended after {got!r}")
        got += data
    return got


def read_all(sock):
    got = b""
    while True:
        data = sock.recv(65536)
        if not data:
            return got
        got += data


class Origin:
    """A listening socket that the tests speak for."""

    def __init__(self, address, port):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, port), family=family, backlog=4096)
        self.listener.settimeout(PATIENCE)

    def accept(self):
        connection, _ = self.listener.accept()
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def pending(self):
        """Whether a connection waits to be accepted."""
        self.listener.setblocking(False)
        try:
            self.listener.accept()[0].close()
            return True
        except BlockingIOError:
            return False
        finally:
            self.listener.settimeout(PATIENCE)
