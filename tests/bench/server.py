"""The server of the measures, on the host's loopback: one thread per connection, which its first byte gives a job.

    S<MiB>\\n   so many MiB, then end of file
    E          the same byte back
    GET        an empty 200 for every request head on the connection
"""

import os
import socket
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
CHUNK = 1 << 20


class Server:
    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.port = self.socket.getsockname()[1]
        self.zeros = os.memfd_create("zeros", os.MFD_CLOEXEC)
        os.truncate(self.zeros, CHUNK)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection:
                self.converse(connection, connection.recv(4096))
        except OSError:
            pass  # the client left

    def converse(self, connection, first):
        if first.startswith(b"S"):
            for _ in range(int(first[1:])):
                sent = 0
                while sent < CHUNK:
                    sent += os.sendfile(connection.fileno(), self.zeros, sent, CHUNK - sent)
        elif first.startswith(b"E"):
            connection.sendall(first)
            connection.recv(1)
        elif first:
            self.answer(connection, first)

    def answer(self, connection, data):
        while data:
            while b"\r\n\r\n" in data:
                _, _, data = data.partition(b"\r\n\r\n")
                connection.sendall(ANSWER)
            data += connection.recv(4096)
            if not data:
                return
