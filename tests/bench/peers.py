"""Other proxies, to be measured beside sbx where they are installed: each on a port of its own, in the foreground."""

import atexit
import os
import shutil
import socket
import subprocess
import time

HELD = 2000  # connections that each must be able to hold

TINYPROXY = """\
Port {port}
Listen 127.0.0.1
Allow 127.0.0.1
ConnectPort {server}
MaxClients {held}
Timeout 600
LogLevel Critical
DisableViaHeader Yes
"""

SQUID = """\
http_port 127.0.0.1:{port}
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log /dev/null
pid_filename none
netdb_filename none
pinger_enable off
shutdown_lifetime 1 second
"""

HAPROXY = """\
global
  maxconn {held}
defaults
  mode tcp
  option splice-auto
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen bench
  bind 127.0.0.1:{port}
  server it 127.0.0.1:{server}
"""

# Name of the program: how a client speaks to it, its configuration, and its arguments.
KINDS = {
    "tinyproxy": ("http", TINYPROXY, ["-d", "-c", "{file}"]),
    "squid": ("http", SQUID, ["-N", "-n", "bench{port}", "-f", "{file}"]),
    "microsocks": ("socks5", "", ["-i", "127.0.0.1", "-p", "{port}"]),
    "haproxy": ("tcp", HAPROXY, ["-db", "-f", "{file}"]),
}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Peer:
    def __init__(self, name, program, top, server):
        kind, configuration, arguments = KINDS[name]
        port = free_port()
        words = {"port": port, "server": server, "held": HELD, "file": f"{top}/{name}.conf"}
        with open(words["file"], "w", encoding="ascii") as file:
            file.write(configuration.format(**words))
        self.name = name
        self.via = f"{kind}:127.0.0.1:{port}"
        self.keeps = name != "tinyproxy"  # that one closes after each request
        self.process = subprocess.Popen([program, *(argument.format(**words) for argument in arguments)], cwd=top,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        atexit.register(self.stop)  # also where the bench fails
        self.listens = self.wait(port)

    def wait(self, port):
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return True
            except OSError:
                time.sleep(0.05)
            if self.process.poll() is not None:
                break
        self.stop()
        return False

    def stop(self):
        """Not at once, where it can be helped: squid has shared memory to remove."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(top, server):
    """Those that are installed and start; and the names of the others."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    found = {name: shutil.which(name, path=path) for name in KINDS}
    peers = [Peer(name, program, top, server) for name, program in found.items() if program]
    running = [peer for peer in peers if peer.listens]
    return running, sorted(set(KINDS) - {peer.name for peer in running})
