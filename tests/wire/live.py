"""Tests of the running proxy that a case file cannot tell: many connections, memory, descriptors, death, confinement."""
import contextlib
import json
import os
import resource
import select
import socket
import struct
import subprocess
import sys
import threading
import time

import stage
from stage import CONFINED, Origin, Proxy, read_all, read_until

KIB, MIB = 1024, 1024 * 1024


@contextlib.contextmanager
def running(**options):
    proxy = Proxy(**options)
    try:
        assert proxy.ready, proxy.first
        yield proxy
        assert proxy.alive(), f"the proxy has died: {proxy.process.returncode}"
    finally:
        proxy.process.kill()
        proxy.process.wait()
        proxy.control.close()
        proxy.listener.close()


@contextlib.contextmanager
def origin(address="203.0.113.10", port=80):
    server = Origin(address, port)
    try:
        yield server
    finally:
        server.listener.close()


def serve(server, count):
    """Answers count connections of one request each, in a thread."""
    def work():
        for _ in range(count):
            with server.accept() as connection:
                read_until(connection, b"\r\n\r\n")
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def raise_descriptors():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def descriptors(proxy):
    return len(os.listdir(f"/proc/{proxy.process.pid}/fd"))


def wait_until(condition, what):
    end = time.monotonic() + stage.PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def assert_idle(proxy):
    """The proxy waits and does not spin (F57): half a second costs it next to nothing, once it has done what there was."""
    used = []
    while not used or used[-1] > 5:
        assert len(used) < 20, f"clock ticks in each half second: {used}"
        before = proxy.cpu()
        time.sleep(0.5)
        used.append(proxy.cpu() - before)


def assert_serves(proxy, server):
    thread = serve(server, 1)
    assert proxy.get("http://origin.test/").endswith(b"\r\n\r\nok")
    thread.join()


def test_confined():
    """What the kernel says about the process once it is ready; started here with every capability of the namespace."""
    with running() as proxy:
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(proxy.status(name), 16) == 0, f"{name} is {proxy.status(name)}"
        assert proxy.status("NoNewPrivs") == "1"
        if CONFINED:
            assert proxy.status("Seccomp") == "2"
        assert proxy.status("Threads") == "1"
        with open(f"/proc/{proxy.process.pid}/limits", encoding="ascii") as file:
            limits = file.read()
        for name in ("Max core file size", "Max processes"):
            line = next(line for line in limits.splitlines() if line.startswith(name))
            assert line.split()[-3:-1] == ["0", "0"] or line.split()[-2:] == ["0", "0"], line


def test_inherited_descriptors_are_closed():
    """F2: a descriptor that the caller left open is not there."""
    leaked = os.open("/", os.O_RDONLY)
    os.dup2(leaked, 77, inheritable=True)
    try:
        with running() as proxy:
            links = [os.readlink(f"/proc/{proxy.process.pid}/fd/{fd}")
                     for fd in os.listdir(f"/proc/{proxy.process.pid}/fd")]
            assert "/" not in links, links
    finally:
        os.close(77)
        os.close(leaked)


def test_memory():
    """Resident memory at rest, and of 1,000 idle tunnels."""
    raise_descriptors()
    with running() as proxy, origin() as server:
        accepted = []
        threading.Thread(target=lambda: [accepted.append(server.accept()) for _ in range(1100)], daemon=True).start()
        at_rest = proxy.memory()
        tunnels = [proxy.tunnel("origin.test:80") for _ in range(100)]
        first = proxy.memory()
        tunnels += [proxy.tunnel("origin.test:80") for _ in range(1000)]
        per_tunnel = (proxy.memory() - first) / 1000
        print(f"# resident: {at_rest} KiB at rest, {per_tunnel:.2f} KiB per idle tunnel")
        assert_idle(proxy)
        if CONFINED:
            assert at_rest <= 5 * KIB, f"{at_rest} KiB"
            assert per_tunnel <= 4, f"{per_tunnel} KiB per tunnel"
        for tunnel in tunnels + accepted:
            tunnel.close()


def closings(proxy, server, request):
    """Closes, and resets, after every byte of request; then lets it be served byte by byte."""
    for count in range(len(request)):
        for reset in (False, True):
            client = proxy.connect()
            client.sendall(request[:count])
            if reset:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
    with proxy.connect() as client:
        for place in range(len(request)):
            client.sendall(request[place:place + 1])
        with server.accept() as connection:
            if not request.startswith(b"CONNECT"):
                read_until(connection, b"\r\n\r\n")
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            connection.shutdown(socket.SHUT_WR)
            assert read_until(client, b"ok")


def test_close_at_every_byte():
    """A client that leaves after any byte of a request leaves nothing behind."""
    with running() as proxy, origin() as server:
        before = descriptors(proxy)
        closings(proxy, server, b"CONNECT origin.test:80 HTTP/1.1\r\nHost: origin.test:80\r\nX: y\r\n\r\n")
        closings(proxy, server, b"GET http://origin.test/a HTTP/1.1\r\nHost: origin.test\r\nX: y\r\n\r\n")
        wait_until(lambda: descriptors(proxy) == before, "descriptors were left open")
        assert not proxy.denials()


def test_leave_while_connecting():
    """A client that leaves right after its request, before the origin answers."""
    with running() as proxy, origin() as server:
        before = descriptors(proxy)
        for request in (b"CONNECT origin.test:80 HTTP/1.1\r\nHost: x\r\n\r\n",
                        b"GET http://origin.test/ HTTP/1.1\r\nHost: x\r\n\r\n"):
            for _ in range(50):
                client = proxy.connect()
                client.sendall(request)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.close()
                server.pending()  # takes what has come; a dial may also have been given up in time
        wait_until(lambda: descriptors(proxy) == before, "descriptors were left open")
        assert_idle(proxy)


def test_junk_connections():
    """10,000 connections that send junk and stay: the proxy lives, its memory is bounded, and all comes back."""
    count = min(10000, raise_descriptors() - 500)
    junk = [b"GET http://origin.test/ HTTP/1.1\r\nX: " + b"a" * 200, b"A", b"CONNECT a", b"GET http://x/ HTTP/1.1\r\n"]
    with running() as proxy, origin() as server:
        before, clients = descriptors(proxy), []
        for number in range(count):
            clients.append(socket.create_connection(proxy.address))
            with contextlib.suppress(OSError):
                clients[-1].sendall(junk[number % len(junk)])
        wait_until(lambda: descriptors(proxy) - before > count * 9 // 10, "they were not all accepted")
        print(f"# resident with {count} junk connections: {proxy.memory()} KiB")
        if CONFINED:
            assert proxy.memory() < 64 * KIB
        assert_idle(proxy)
        for client in clients:
            client.close()
        wait_until(lambda: descriptors(proxy) == before, "descriptors were left open")
        assert_serves(proxy, server)


def test_large_junk():
    """Heads of 60 KiB that never end, more than the proxy may hold altogether."""
    count = min(3000, raise_descriptors() - 500)
    with running() as proxy, origin() as server:
        clients, refused = [], 0
        for _ in range(count):
            clients.append(socket.create_connection(proxy.address))
            with contextlib.suppress(OSError):
                clients[-1].sendall(b"GET http://origin.test/ HTTP/1.1\r\nX: " + b"a" * 60000)
        for client in clients:
            client.setblocking(False)

        def answers():
            nonlocal refused
            for client in clients:
                with contextlib.suppress(OSError):
                    refused += b"503 " in client.recv(100)
            return refused
        wait_until(answers, "none was refused")
        time.sleep(0.5)
        answers()
        print(f"# resident with {count} large heads: {proxy.memory()} KiB, {refused} refused")
        if CONFINED:
            assert proxy.memory() < 320 * KIB
        for client in clients:
            client.close()
        assert_serves(proxy, server)


def test_connection_ceiling():
    """Beyond the ceiling a client is told so; a place that becomes free serves again."""
    with running(descriptors=600) as proxy, origin() as server:
        spare = 600 - 256  # of which a quarter is kept for listeners
        ceiling = (spare - spare // 4 // 2 * 2) // 2
        clients = [proxy.connect() for _ in range(ceiling)]
        answer = proxy.get("http://origin.test/")
        assert answer.startswith(b"HTTP/1.1 503 ") and b'"reason":"limit-connections"' in answer, answer
        assert proxy.audit_lines(1)[0]["reason"] == "limit-connections"
        full = descriptors(proxy)
        clients.pop().close()
        clients.pop().close()
        wait_until(lambda: descriptors(proxy) <= full - 2, "connections that have ended stay")
        assert_serves(proxy, server)
        for client in clients:
            client.close()


def test_no_descriptors_left():
    """EMFILE: accepting pauses without spinning, and goes on when a descriptor becomes free."""
    with running(descriptors=24) as proxy, origin() as server:
        clients = [proxy.connect() for _ in range(40)]
        time.sleep(0.3)
        assert_idle(proxy)
        for client in clients:
            client.close()
        assert_serves(proxy, server)


def test_half_closed_is_idle():
    """F57: connections of which one side has ended cost no CPU."""
    with running() as proxy, origin() as server:
        keep = []
        for side in (0, 1):
            client = proxy.tunnel("origin.test:80")
            connection = server.accept()
            (client, connection)[side].shutdown(socket.SHUT_WR)
            keep += [client, connection]
        client = proxy.connect()
        client.sendall(b"GET http://origin.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        keep += [client, server.accept()]
        assert_idle(proxy)


def test_bulk_and_back_pressure():
    """32 MiB each way through a tunnel, whole; a side that does not read stops the other, and costs no memory."""
    block = b"\0" + os.urandom(MIB - 1)  # nothing that could begin as TLS or HTTP does
    with running() as proxy, origin() as server:
        client = proxy.tunnel("origin.test:80")
        connection = server.accept()
        before = proxy.memory()
        for sender, receiver in ((client, connection), (connection, client)):
            sender.settimeout(1)
            sent = 0
            with contextlib.suppress(socket.timeout):
                while sent < 32 * MIB:
                    sent += sender.send(block[sent % MIB:])
            assert sent < 32 * MIB, "nothing held the sender back"
            assert proxy.memory() - before < 2 * KIB or not CONFINED, f"{proxy.memory() - before} KiB more"
            sender.settimeout(stage.PATIENCE)

            def rest(sender=sender, sent=sent):
                while sent < 32 * MIB:
                    sent += sender.send(block[sent % MIB:])
                sender.shutdown(socket.SHUT_WR)
            thread = threading.Thread(target=rest)
            thread.start()
            got = read_all(receiver)
            thread.join()
            assert got == block * 32, f"{len(got)} bytes, or not the same"
        line = proxy.audit_lines(1)[0]
        assert (line["up"], line["down"]) == (32 * MIB, 32 * MIB)


def test_bulk_request_and_response():
    """16 MiB up as a chunked body and down as a body with a length, on one kept connection, twice."""
    block = os.urandom(MIB)
    with running() as proxy, origin() as server, proxy.connect() as client:
        connection = None
        for _ in range(2):
            def send():
                client.sendall(b"POST http://origin.test/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
                for _ in range(16):
                    client.sendall(b"100000\r\n" + block + b"\r\n")
                client.sendall(b"0\r\n\r\n")
            thread = threading.Thread(target=send)
            thread.start()
            connection = connection or server.accept()
            got = read_until(connection, b"\r\n0\r\n\r\n")
            thread.join()
            assert got.partition(b"\r\n\r\n")[2] == (b"100000\r\n" + block + b"\r\n") * 16 + b"0\r\n\r\n"
            thread = threading.Thread(target=lambda: connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (16 * MIB) + block * 16))
            thread.start()
            head = read_until(client, b"\r\n\r\n")
            body = head.partition(b"\r\n\r\n")[2]
            while len(body) < 16 * MIB:
                body += client.recv(MIB)
            thread.join()
            assert body == block * 16
        connection.close()


def test_response_then_reset():
    """What an origin sent before it reset the connection still reaches a tunnel's client."""
    with running() as proxy, origin() as server:
        client = proxy.tunnel("origin.test:80")
        with server.accept() as connection:
            client.sendall(b"unread\r\n")
            time.sleep(0.1)
            connection.sendall(b"goodbye")
            # Closing with bytes unread is a reset.
        got = b""
        with contextlib.suppress(ConnectionResetError):
            got = read_all(client)
        assert got in (b"goodbye", b""), got
        assert proxy.audit_lines(1)[0]["event"] == "connect"


def test_end_of_run():
    """When sbx closes the control socket, connections that are still open get their line, and the proxy exits with 0."""
    proxy = Proxy()
    with origin() as server:
        client = proxy.tunnel("origin.test:80")
        connection = server.accept()
        client.sendall(b"12345")
        assert connection.recv(10) == b"12345"
        request = proxy.connect()
        request.sendall(b"GET http://origin.test/slow HTTP/1.1\r\nHost: x\r\n\r\n")
        server.accept()
        assert proxy.stop() == 0
        lines = {line["event"]: line for line in proxy.audit_lines(2)}
        assert lines["connect"]["up"] == 5 and lines["request"]["path"] == "/slow"


def test_dies_with_sbx():
    """SIGKILL of the process that started it."""
    code = ("import sys, time; sys.path.insert(0, sys.argv[1]); import stage; p = stage.Proxy(); "
            "print(p.process.pid, flush=True); import os; os.dup(p.control.fileno()); time.sleep(1000)")
    parent = subprocess.Popen([sys.executable, "-B", "-c", code, stage.HERE], stdout=subprocess.PIPE)
    pid = int(parent.stdout.readline())
    assert os.path.exists(f"/proc/{pid}")
    parent.kill()
    parent.wait()

    def gone():
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                return file.read().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            return True
    wait_until(gone, "it outlived the process that started it")


def failure(**options):
    proxy = Proxy(**options)
    status = proxy.process.wait(stage.PATIENCE)
    assert status != 0
    kind, = struct.unpack_from("=I", proxy.first)
    assert kind == stage.CONTROL_FAILED, kind
    return proxy.first[4:].split(b"\0")[0].decode()


def test_bad_start():
    """A START that is none, and a front that this program does not have."""
    assert "START" in failure(start_message=b"x")
    assert "front 99" in failure(start_message=stage.start_message_of(front=99))
    for message in (stage.start_message_of(count=2), stage.start_message_of(generation=5),
                    stage.start_message_of()[:-1]):
        assert "START" in failure(start_message=message)


def test_bad_parents():
    """START announces parents, and what follows is none, or names one that cannot be used."""
    start = stage.start_message_of(parents=1)
    url = b"http://user:secretword@parent.test:3128".ljust(1024, b"\0")
    good = struct.pack("=I", stage.CONTROL_PARENTS) + url + url + bytes(8192)
    assert "PARENTS" in failure(start_message=start, more=[b"x"])
    assert "PARENTS" in failure(start_message=start, more=[good[:-1]])
    message = failure(start_message=start, more=[good.replace(b"http:", b"ftp:/")])
    assert message.startswith("parent proxy: ") and "secretword" not in message, message


def test_bad_policy():
    """A policy that is not the canonical text is refused: nothing is served."""
    good, stage.canonical = stage.canonical, lambda policy: b'{"network": 5}'
    try:
        assert failure().startswith("policy: ")
    finally:
        stage.canonical = good


def test_F59_empty_allow_list():
    """F59: an empty list allows nothing."""
    with running(policy={"network": {"allow": []}}) as proxy:
        for target in ("http://origin.test/", "http://203.0.113.10/", "http://localhost/", "http://127.0.0.1:8080/"):
            assert proxy.get(target).startswith(b"HTTP/1.1 403 ")


def test_F59_address_rule():
    """F59: a rule ADDRESS:PORT is honoured, for a name that leads there too, and on that port only."""
    with running() as proxy, origin("203.0.113.12", 8081) as public, origin("10.9.8.7", 8082) as private:
        thread = serve(public, 1)
        assert proxy.get("http://203.0.113.12:8081/").endswith(b"ok")
        thread.join()
        thread = serve(private, 2)
        assert proxy.get("http://10.9.8.7:8082/").endswith(b"ok")
        assert proxy.get("http://private-ok.test:8082/").endswith(b"ok")
        thread.join()
        assert proxy.get("http://10.9.8.7:8083/").startswith(b"HTTP/1.1 403 ")
        with origin("2001:db8::11", 8081) as six:
            thread = serve(six, 1)
            assert proxy.get("http://[2001:DB8:0::11]:8081/").endswith(b"ok")
            thread.join()
        assert [line["ip"] for line in proxy.audit_lines(5) if "ip" in line] == [
            "203.0.113.12", "10.9.8.7", "10.9.8.7", "2001:db8::11"]


def test_F52_no_second_question(server):
    """F52: one question per request and family; what was judged is what is dialled."""
    with running() as proxy, origin() as web:
        server.queries.clear()
        assert_serves(proxy, web)
        asked = sorted(kind for name, kind in server.queries if name == "origin.test")
        assert asked == ["A", "AAAA"], asked


def test_refused_name_is_not_asked_for(server):
    """A name that no rule allows never leaves the machine."""
    with running() as proxy:
        assert proxy.get("http://secret-in-a-name.evil.test/").startswith(b"HTTP/1.1 403 ")
        assert not server.asked("secret-in-a-name.evil.test")


def test_audit_is_bounded():
    """At the limit of a run a last line says so; requests go on."""
    request = b"HEAD http://evil.test/" + 2000 * b"x" + b" HTTP/1.1\r\nHost: x\r\n\r\n"  # a line has 1,000 of them
    with running(audit_start=b"x" * MIB) as proxy, origin() as server:
        with proxy.connect() as client:
            for _ in range(8 * MIB // 1000):
                client.sendall(request)
                read_until(client, b"\r\n\r\n")
        assert_serves(proxy, server)
        text = proxy.audit_rest()
        assert 8 * MIB - 8192 < len(text) <= 8 * MIB + 128, f"the audit has {len(text)} bytes"
        assert json.loads(text.splitlines()[-1])["event"] == "audit-full"


def test_unread_notices():
    """Nobody reads the notices of denials: they are kept, equal ones as one, and the proxy does not wait."""
    with running() as proxy, origin() as server:
        with proxy.connect() as client:
            for _ in range(3000):
                client.sendall(b"HEAD http://evil.test/ HTTP/1.1\r\nHost: x\r\n\r\n")
                read_until(client, b"\r\n\r\n")
        assert_serves(proxy, server)
        found = proxy.denials()
        while len(found) < 3000:
            assert select.select([proxy.control], [], [], stage.PATIENCE)[0], "notices are missing"
            found += proxy.denials()
        assert len(found) == 3000 and len(set(found)) == 1
        reason, port, host, fix = found[0]
        assert (reason, port, host) == (2, 80, "evil.test") and "--allow evil.test" in fix


def fill_backlog(address, port):
    """A port whose queue is full, so that a connection to it gets no answer."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.create_server((address, port), family=family, backlog=1)
    keep = [listener]
    for _ in range(4):
        keep.append(socket.socket(family))
        keep[-1].setblocking(False)
        with contextlib.suppress(BlockingIOError):
            keep[-1].connect((address, port))
    return keep


def test_happy_eyeballs_silent():
    """An IPv6 address that does not answer does not keep the IPv4 address from being tried."""
    with running() as proxy, origin() as server:
        keep = fill_backlog("2001:db8::10", 80)
        thread = serve(server, 1)
        assert proxy.get("http://both.test/").endswith(b"ok")
        thread.join()
        assert proxy.audit_lines(1)[0]["ip"] == "203.0.113.10"
        for sock in keep:
            sock.close()


def test_connection_to_itself():
    """A loopback port without a server, which the kernel may choose for our own end: refused, never an echo."""
    def choose(first, last):
        with open("/proc/sys/net/ipv4/ip_local_port_range", "w", encoding="ascii") as file:
            file.write(f"{first} {last}")

    ports = range(40000, 40004)
    with running(policy={"network": {"allow": ["localhost:40000-40003"]}}) as proxy:
        for port in [*ports] * 8:
            client = proxy.connect()
            choose(ports[0], ports[-1])
            client.sendall(f"CONNECT localhost:{port} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = client.recv(65536)
            choose(32768, 60999)
            client.close()
            assert answer.startswith(b"HTTP/1.1 502 ") and b"connect-refused" in answer, (port, answer)


@contextlib.contextmanager
def slow_parent():
    """A proxy behind a SOCKS parent that finds each address unreachable, after a while. Yields it and what was asked for."""
    url = b"socks5://203.0.113.12:1080".ljust(1024, b"\0")
    start = struct.pack("=II", stage.CONTROL_START, 1) + struct.pack("=56I", 1, *[0] * 55) + bytes(2 * 56)
    start += struct.pack("=IIII", 1, 1, 0, 0) + b"run-wire".ljust(24, b"\0")
    asked = []

    def serve(server):
        with contextlib.suppress(OSError):
            while connection := server.accept():
                connection.recv(100)
                connection.sendall(b"\5\0")
                asked.append(connection.recv(100))
                time.sleep(8)
                connection.sendall(b"\5\4\0\1" + bytes(6))

    with origin("203.0.113.12", 1080) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        with running(start_message=start, more=[struct.pack("=I", stage.CONTROL_PARENTS) + url + url + bytes(8192)]) as proxy:
            yield proxy, asked


def test_deadlines():
    """A head that does not come, a name server that does not answer, an origin that does not: each its own answer. All
    steps together have a deadline, too."""
    stage.ZONE["sub.sub.test"] = stage.dns.Answer(silent=True)
    stage.ZONE["many.sub.test"] = [f"203.0.113.{n}" for n in range(100, 116)]
    with running() as proxy, slow_parent() as (behind, asked):
        adding_up = behind.connect()
        adding_up.settimeout(2 * stage.PATIENCE)
        adding_up.sendall(b"GET http://many.sub.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        keep = fill_backlog("203.0.113.11", 80)
        slow, resolving, dialling = proxy.connect(), proxy.connect(), proxy.connect()
        for client in (slow, resolving, dialling):
            client.settimeout(2 * stage.PATIENCE)
        slow.sendall(b"GET http://origin.test/ HTTP/1.1\r\nX: ")
        resolving.sendall(b"GET http://sub.sub.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        dialling.sendall(b"GET http://other.test/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = read_all(resolving)
        assert answer.startswith(b"HTTP/1.1 502 ") and b'"resolve-failed"' in answer, answer
        answer = read_all(dialling)
        assert answer.startswith(b"HTTP/1.1 504 ") and b'"connect-timeout"' in answer, answer
        answer = read_all(slow)
        assert answer.startswith(b"HTTP/1.1 408 ") and b'"limit-time"' in answer, answer
        for sock in keep:
            sock.close()
        answer = read_all(adding_up)
        assert answer.startswith(b"HTTP/1.1 502 ") and b'"parent-unreachable"' in answer, answer
        assert 2 < len(asked) < 16, asked
