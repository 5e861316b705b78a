"""One way out (P2): whatever does not go through the proxy is refused at once and reaches nobody."""
import errno
import os

import pytest

ATTEMPT = """
import errno, json, socket, sys, time
answers = {}
def attempt(name, function):
    begin = time.monotonic()
    try:
        function()
        answers[name] = "done"
    except OSError as error:
        answers[name] = errno.errorcode.get(error.errno, str(error))
def tcp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family); s.settimeout(40); s.connect((address, port))
def udp(address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(2)
    s.connect((address, port)); s.send(b"out"); s.send(b"out"); s.recv(10)
for item in sys.argv[1:]:
    kind, address, port = item.split("|")
    attempt(item, lambda: {"tcp": tcp, "udp": udp}[kind](address, int(port)))
print(json.dumps(answers))
"""

ADDRESSES = ["192.0.2.10", "192.0.2.53", "10.0.0.1", "169.254.169.254", "8.8.8.8", "2001:db8::10", "fe80::1%lo", "::ffff:192.0.2.10"]
# ENETUNREACH: the namespace has no route. ETIMEDOUT or EAGAIN would be a wait.
AT_ONCE = {"ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EINVAL", "EACCES", "EPERM"}


@pytest.mark.parametrize("port", [22, 25, 8080, 65535])
def test_direct_tcp_is_refused_at_once(sbx, lab, port):
    """P2: on a port of no rule."""
    answers = sbx.python(ATTEMPT, "--allow", "origin.test", arguments=[f"tcp|{a}|{port}" for a in ADDRESSES]).json
    for item, answer in answers.items():
        assert answer in AT_ONCE, (item, answer)
    assert lab.connections == []


@pytest.mark.parametrize("port", [80, 443, 53])
def test_direct_tcp_reaches_nobody(sbx, lab, port):
    """P2: a port with a listener takes the connection, and leads no further than the verdict."""
    sbx.python(ATTEMPT, "--allow", "origin.test", arguments=[f"tcp|{a}|{port}" for a in ADDRESSES]).ok()
    assert lab.connections == [] and lab.dns.queries == []


@pytest.mark.parametrize("port", [123, 443, 5353])
def test_direct_udp_is_refused_at_once(sbx, lab, port):
    """P2"""
    answers = sbx.python(ATTEMPT, "--allow", "*:*", arguments=[f"udp|{a}|{port}" for a in ADDRESSES]).json
    for item, answer in answers.items():
        assert answer in AT_ONCE, (item, answer)
    assert lab.datagrams == [] and lab.dns.queries == []


def test_loopback_of_the_host_is_not_reached(sbx, lab):
    """P2: 127.0.0.1 inside is the sandbox's own; `*` does not mean the host's loopback."""
    items = [f"tcp|{a}|{p}" for a in ("127.0.0.1", "127.0.0.2", "::1", "0.0.0.0") for p in (80, 8080, 7)]
    answers = sbx.python(ATTEMPT, "--allow", "*:*", arguments=items).json
    assert all(answer == "ECONNREFUSED" for item, answer in answers.items() if item.endswith("|8080")), answers
    assert lab.connections == []


def test_icmp_and_raw_sockets_are_refused(sbx, lab):
    """P2, F6; multipath TCP falls back to TCP, and is judged as that."""
    code = """
import socket
four, six, raw, datagram = socket.AF_INET, socket.AF_INET6, socket.SOCK_RAW, socket.SOCK_DGRAM
for args in ((four, raw, 1), (four, datagram, 1), (six, raw, 58), (six, datagram, 58), (four, raw, 255),
             (socket.AF_PACKET, raw, 0x300), (four, 10, 33), (four, socket.SOCK_SEQPACKET, 132),
             (four, socket.SOCK_STREAM, 132)):
    try: s = socket.socket(*args)
    except OSError: continue
    try: s.connect(("192.0.2.10" if args[0] == four else "2001:db8::10", 80)); s.send(b"x"); print("sent", args)
    except OSError: pass
try:
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262); s.connect(("192.0.2.10", 80)); s.send(b"x"); s.recv(1)
except OSError: pass
print("end")
"""
    assert sbx.python(code).ok().out == "end\n"
    assert lab.connections == []


def test_only_loopback_exists(sbx):
    """P2, P7"""
    result = sbx.python("import socket; print(socket.if_nameindex())").ok()
    assert result.out == "[(1, 'lo')]\n"


def heard(sbx, kind):
    """How many sockets hear what the kernel refuses, of the kinds that the kernel keeps a list of."""
    return len(sbx.shell(f"cat /proc/net/{kind}").out.splitlines()) - 1


def test_no_packet_socket_is_held(sbx):
    """The end of a run would wait for each of them, until every processor has passed through the kernel's scheduler."""
    old = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2]) < (6, 3)
    assert (heard(sbx, "packet"), heard(sbx, "raw")) == ((2, 0) if old else (0, 1))


REFUSED = """
import socket
four, six = socket.AF_INET, socket.AF_INET6
for family, address in ((four, "192.0.2.7"), (six, "2001:db8::7"), (four, "127.0.0.1"), (six, "::1")):
    try: socket.socket(family).connect((address, 2222))
    except OSError as error: print(error.errno)
"""


@pytest.mark.parametrize("prefix", [[], ["setarch", "--uname-2.6"]], ids=["raw", "packets"])
def test_what_the_kernel_refuses_is_told(sbx, prefix):
    """P10: by a raw socket, and by packet sockets where a kernel says that it is too old for that."""
    result = sbx.python(REFUSED, prefix=prefix).ok()
    assert result.out == f"{errno.ECONNREFUSED}\n" * 4
    denied = [line for line in result.messages if line.startswith("denied")]
    assert len(denied) == 2 and " 192.0.2.7:2222 " in denied[0] and " [2001:db8::7]:2222 " in denied[1], result


def test_own_servers_work(sbx):
    """Programs inside talk to each other on loopback, also past the proxy variables."""
    code = """
import http.server, threading, urllib.request
for host in ("127.0.0.1", "localhost"):
    server = http.server.ThreadingHTTPServer((host, 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(urllib.request.urlopen(f"http://{host}:{server.server_port}/README").read().decode().strip())
import socket
s = socket.create_server(("::1", 0), family=socket.AF_INET6)
c = socket.create_connection(s.getsockname()[:2]); c.send(b"six"); print(s.accept()[0].recv(9).decode())
"""
    assert sbx.python(code).ok().out == "a project\na project\nsix\n"


def test_proxy_port_is_there_on_loopback_only(sbx):
    code = """
import socket
for address in ("127.0.0.1",):
    socket.create_connection((address, 3128)).close()
print("fine")
"""
    assert sbx.python(code).ok().out == "fine\n"


def test_sandbox_cannot_take_over_the_proxys_port(sbx, lab):
    """A program inside that binds the port again, or closes it, does not weaken the verdict."""
    code = """
import socket
for option in (socket.SO_REUSEADDR, socket.SO_REUSEPORT):
    for address in ("127.0.0.1", "0.0.0.0"):
        s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, option, 1)
        try: s.bind((address, 3128)); s.listen(); print("bound", option, address)
        except OSError: pass
"""
    sbx.python(code).ok()
    assert lab.connections == []


def test_two_runs_do_not_share_a_network(sbx):
    """P5, P7: a server of one run is not reached from the other."""
    first = sbx.start("run", "--", "/usr/bin/python3", "-c", """
import socket
s = socket.create_server(("127.0.0.1", 4567)); print("ready", flush=True); s.accept(); print("reached", flush=True)
""")
    assert first.stdout.readline() == b"ready\n"
    answers = sbx.python(ATTEMPT, arguments=["tcp|127.0.0.1|4567"]).json
    first.kill()
    out, _ = first.communicate()
    assert answers == {"tcp|127.0.0.1|4567": "ECONNREFUSED"} and out == b""
