"""Proxies for the lab that a host may have to use: HTTP (CONNECT and absolute-form) and SOCKS 5, each with or without a
login. They resolve names by themselves, from a dictionary, and write down what they are asked."""
import base64
import ipaddress
import socket
import threading
from urllib.parse import quote

from lab.origin import Connection, Request


class Refused(Exception):
    """The target is not to be reached; code is an HTTP status or a SOCKS reply."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def relay(client, origin, held):
    with origin:
        if held:
            origin.sendall(held)
        upward = threading.Thread(target=pump, args=(client, origin), daemon=True)
        upward.start()
        pump(origin, client)
        upward.join(20)


class Parent:
    """names: {name: address}. login: (user, password) or None. asked: (kind, target) of every request that was let in;
    logins: what came as one. say: bytes to answer instead of anything else. tunnel_ports: CONNECT to others is a 403.
    An HTTP parent answers TRACE, and what must not go further, with what it was asked, and shows it on its error pages."""

    def __init__(self, servers, address, port, names, login=None):
        self.names, self.login = names, login
        self.asked, self.logins = [], []
        self.say, self.tunnel_ports, self.greet = None, None, b""
        self.listener = servers.listen(port, self.serve, address)
        self.where = f"{f'[{address}]' if ':' in address else address}:{port}"

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def dial(self, host, port, failed):
        try:
            address = str(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            address = self.names.get(host)
        if address is None:
            raise Refused(failed)
        return socket.create_connection((address, port), timeout=20)


class HttpParent(Parent):
    def serve(self, stream):
        connection = Connection(stream, 0)
        while (raw := connection.until(b"\r\n\r\n")) is not None:
            if self.say is not None:
                stream.sendall(self.say)
                return
            request = Request(raw, connection)
            try:
                if not self.answer(connection, request):
                    return
            except Refused as refused:
                connection.answer(quote(raw).encode(), f"{refused.code} No", ["X-Squid-Error: ERR_LAB 0"])

    def admit(self, request):
        given = request.get("proxy-authorization")
        self.logins.append(given)
        wanted = self.login and "Basic " + base64.b64encode(":".join(self.login).encode()).decode()
        if self.login and given != wanted:
            raise Refused("407")

    def answer(self, connection, request):
        self.admit(request)
        if request.method == "CONNECT":
            host, _, port = request.target.rpartition(":")
            self.asked.append(("CONNECT", request.target))
            if self.tunnel_ports and int(port) not in self.tunnel_ports:
                raise Refused("403")
            origin = self.dial(host, int(port), "503")
            connection.stream.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 lab\r\n\r\n" + self.greet)
            relay(connection.stream, origin, connection.held)
            return False
        self.asked.append((request.method, request.target))
        if request.method.upper() in ("TRACE", "TRACK") or request.get("max-forwards") == "0":
            connection.answer(request.raw, kind="message/http")
            return True
        authority, slash, path = request.target.removeprefix("http://").partition("/")
        host, _, port = authority.partition(":")
        origin = self.dial(host, int(port or 80), "503")
        fields = "".join(f"{k}: {v}\r\n" for k, v in request.fields if not k.lower().startswith("proxy-"))
        head = f"{request.method} {slash}{path} HTTP/1.0\r\n{fields}Connection: close\r\n\r\n".encode()
        relay(connection.stream, origin, head + connection.body(request))
        return False


class SocksParent(Parent):
    def serve(self, stream):
        connection = Connection(stream, 0)
        version, count = connection.exactly(2)
        methods = connection.exactly(count)
        if self.say is not None:
            stream.sendall(self.say)
            return
        method = 2 if self.login else 0
        if version != 5 or method not in methods:
            stream.sendall(b"\x05\xff")
            return
        stream.sendall(bytes([5, method]))
        if self.login and not self.admit(connection):
            return
        _, command, _, kind = connection.exactly(4)
        if kind == 3:
            host = connection.exactly(connection.exactly(1)[0]).decode()
        else:
            host = str(ipaddress.ip_address(connection.exactly(4 if kind == 1 else 16)))
        port = int.from_bytes(connection.exactly(2), "big")
        self.asked.append((command, f"{host}:{port}"))
        try:
            origin = self.dial(host, port, 4)
        except Refused as refused:
            stream.sendall(bytes([5, refused.code, 0, 1]) + bytes(6))
            return
        except ConnectionRefusedError:
            stream.sendall(bytes([5, 5, 0, 1]) + bytes(6))
            return
        stream.sendall(b"\x05\x00\x00\x03\x05proxy\x12\x34" + self.greet)
        relay(stream, origin, connection.held)

    def admit(self, connection):
        _, length = connection.exactly(2)
        user = connection.exactly(length)
        password = connection.exactly(connection.exactly(1)[0])
        self.logins.append((user.decode(), password.decode()))
        good = self.logins[-1] == self.login
        connection.stream.sendall(b"\x01\x00" if good else b"\x01\x01")
        return good
