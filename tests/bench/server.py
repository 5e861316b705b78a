"""The server of the measures, on the host's loopback: a connection's first line gives it a job.

    S<MiB>   so many MiB, then end of file; in a thread of its own
    E        the same line back
    GET ...  an empty 200 for every request head on the connection

A connection that says nothing costs nothing but its descriptor: 10,000 of them are one of the measures.
"""

import os
import selectors
import socket
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNK = 1 << 20


class Server:
    def __init__(self):
        self.selector = selectors.EpollSelector()
        self.port = self.listen(("127.0.0.1", 0), socket.AF_INET)
        if socket.has_ipv6:  # whoever resolves localhost tries it first
            self.listen(("::1", self.port), socket.AF_INET6)
        self.zeros = os.memfd_create("zeros", os.MFD_CLOEXEC)
        os.truncate(self.zeros, CHUNK)
        threading.Thread(target=self.loop, daemon=True).start()

    def listen(self, address, family):
        listener = socket.create_server(address, family=family, backlog=4096)
        self.selector.register(listener, selectors.EVENT_READ, self.accept)
        return listener.getsockname()[1]

    def loop(self):
        while True:
            for key, _ in self.selector.select():
                try:
                    key.data(key.fileobj)
                except OSError:
                    self.end(key.fileobj)  # the client left

    def accept(self, listener):
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.selector.register(connection, selectors.EVENT_READ, self.serve)

    def end(self, connection):
        self.selector.unregister(connection)
        connection.close()

    def serve(self, connection):
        """One request; the client sends each whole and waits for the answer, so one read has it."""
        line = connection.recv(4096)
        if line.startswith(b"S"):
            self.selector.unregister(connection)
            threading.Thread(target=self.stream, args=(connection, int(line[1:])), daemon=True).start()
        elif line.startswith(b"E"):
            connection.sendall(line)
        elif line:
            connection.sendall(ANSWER)
        else:
            self.end(connection)

    def stream(self, connection, mebibytes):
        try:
            with connection:
                for _ in range(mebibytes):
                    sent = 0
                    while sent < CHUNK:
                        sent += os.sendfile(connection.fileno(), self.zeros, sent, CHUNK - sent)
        except OSError:
            pass  # the client left
