"""Servers of the protocols that programs without a proxy speak: PostgreSQL, Redis, SSH, WebSocket; and all of them,
with the registries, at the names *.svc.test.

PostgreSQL and Redis are as much of the protocol as psql(1) and redis-cli(1) need for one question; SSH is sshd(8).
"""
import os
import pwd
import ssl
import struct
import subprocess

from lab import registry, space, websocket

ADDRESSES = ("192.0.2.40", "2001:db8::40")
HOSTS = {name: f"{name}.svc.test" for name in ("pypi", "npm", "crates", "apt", "git", "ws", "db", "redis", "ssh")}


def read(stream, length):
    data = b""
    while len(data) < length:
        piece = stream.recv(length - len(data))
        if not piece:
            raise OSError("the client has left")
        data += piece
    return data


def secure(stream, certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context.wrap_socket(stream, server_side=True)


def postgres_message(kind, body):
    return kind + struct.pack(">I", len(body) + 4) + body


def postgres(certificate):
    """PostgreSQL's protocol 3.0: TLS where it is asked for, no password, and one row for each query."""
    def serve(stream):
        over = "in the clear"
        while True:
            length, code = struct.unpack(">II", read(stream, 8))
            if code == 80877103:  # SSLRequest
                stream.sendall(b"S")
                stream, over = secure(stream, certificate), "over TLS"
            elif code == 80877104:  # GSSENCRequest
                stream.sendall(b"N")
            else:
                read(stream, length - 8)
                break
        ready = postgres_message(b"Z", b"I")
        stream.sendall(postgres_message(b"R", bytes(4)) + postgres_message(b"S", b"client_encoding\0UTF8\0") + ready)
        while (kind := read(stream, 1)) == b"Q":
            query = read(stream, struct.unpack(">I", read(stream, 4))[0] - 4)[:-1]
            value = f"{query.decode()} {over}".encode()
            column = b"answer\0" + struct.pack(">IhIhih", 0, 0, 25, -1, -1, 0)
            stream.sendall(postgres_message(b"T", struct.pack(">h", 1) + column) +
                           postgres_message(b"D", struct.pack(">hi", 1, len(value)) + value) +
                           postgres_message(b"C", b"SELECT 1\0") + ready)
    return serve


def redis(stream):
    """RESP 2: GET answers with the key, everything else is unknown."""
    reader = stream.makefile("rb")
    while line := reader.readline():
        words = []
        for _ in range(int(line[1:])):
            words.append(reader.read(int(reader.readline()[1:]) + 2)[:-2])
        if words[0].upper() == b"GET":
            value = b"value of " + words[1]
            stream.sendall(b"$%d\r\n%s\r\n" % (len(value), value))
        else:
            stream.sendall(b"-ERR unknown command\r\n")


def echo_messages(connection, request):
    """Each message comes back."""
    websocket.accept(connection, request)
    while (message := websocket.read(connection)) is not None:
        websocket.send(connection, message)
    return False


class Ssh:
    """sshd(8), one process per connection, that lets one key in. Root's sshd would want directories of the machine;
    it runs as a plain user instead."""

    def __init__(self, directory, uid):
        self.user = space.GUEST if uid == 0 else uid
        self.login = pwd.getpwuid(self.user).pw_name
        self.directory = directory
        self.key = f"{directory}/id"
        os.makedirs(directory)
        for name in ("host", "id"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{directory}/{name}"], check=True)
        with open(f"{directory}/sshd_config", "w") as file:
            file.write(f"HostKey {directory}/host\nAuthorizedKeysFile {directory}/id.pub\nStrictModes no\nUsePAM no\n"
                       f"PasswordAuthentication no\nPidFile none\nSetEnv HOME={directory}\n")

    def give_away(self):
        """Everything of it to the user that it runs as."""
        if os.geteuid() == 0:
            subprocess.run(["chown", "-R", str(self.user), self.directory], check=True)

    def known_hosts(self):
        with open(f"{self.directory}/host.pub") as file:
            return f"{HOSTS['ssh']} {file.read()}"

    def serve(self, stream):
        become = {"user": self.user, "group": self.user, "extra_groups": []} if os.geteuid() == 0 else {}
        subprocess.run(["/usr/sbin/sshd", "-i", "-f", f"{self.directory}/sshd_config"], stdin=stream, stdout=stream,
                       stderr=subprocess.DEVNULL, **become)


def trust_java(certificate):
    """Debian's Java takes its roots from a store beside the bundle that everybody else has."""
    os.makedirs(f"{space.BASE}/etc/certs/java")
    subprocess.run(["/usr/lib/jvm/default-java/bin/keytool", "-importcert", "-noprompt", "-alias", "lab", "-storetype", "JKS",
                    "-storepass", "changeit", "-file", certificate, "-keystore", f"{space.BASE}/etc/certs/java/cacerts"], check=True,
                   capture_output=True)


class Services:
    """Puts all of it into a world.World."""

    def __init__(self, world):
        directory = f"{space.BASE}/services"
        os.makedirs(directory)
        environment = {"PATH": os.environ["PATH"], "HOME": directory, "GIT_AUTHOR_NAME": "lab",
                       "GIT_AUTHOR_EMAIL": "lab@origin.test", "GIT_COMMITTER_NAME": "lab",
                       "GIT_COMMITTER_EMAIL": "lab@origin.test"}
        registry.make_repository(f"{directory}/repo.git", environment)
        world.servers.sites.update({
            HOSTS["pypi"]: registry.files(registry.pypi()),
            HOSTS["npm"]: registry.files(registry.npm(HOSTS["npm"])),
            HOSTS["crates"]: registry.files(registry.crates(HOSTS["crates"])),
            HOSTS["apt"]: registry.files(registry.apt()),
            HOSTS["git"]: registry.git(directory, environment),
            HOSTS["ws"]: echo_messages,
        })
        self.ssh = Ssh(f"{directory}/ssh", os.geteuid())
        registry.make_repository(f"{self.ssh.directory}/repo.git", environment)
        self.ssh.give_away()
        for address in ADDRESSES:
            world.servers.placed[(address, 5432)] = postgres(world.certificate)
            world.servers.placed[(address, 22)] = self.ssh.serve
            world.servers.placed[(address, 6379)] = redis
        world.servers.listen(6379, world.servers.echo)
        trust_java(world.authority.certificate)
