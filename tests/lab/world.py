"""The names, addresses and servers that the tests know, on top of space.enter()."""
import resource

from lab import aws, ca, dns, guarded, origin, space

PUBLIC = "192.0.2.10"

# Names that lead to places where no name may lead (F52), each with what is recorded when it was dialled all the same.
TRAPS = {
    "loop.test": "127.0.0.1",
    "loop2.test": "127.66.66.66",
    "loop6.test": "::1",
    "zero.test": "0.0.0.0",
    "zero6.test": "::",
    "private.test": "10.0.0.1",
    "private172.test": "172.16.5.5",
    "private192.test": "192.168.1.1",
    "cgnat.test": "100.64.0.7",
    "linklocal.test": "169.254.7.7",
    "linklocal6.test": "fe80::7",
    "metadata.test": "169.254.169.254",
    "metadata6.test": "fd00:ec2::254",
    "ula.test": "fd12:3456::7",
    "multicast.test": "224.0.0.251",
    "broadcast.test": "255.255.255.255",
    "benchmark.test": "198.18.0.5",
    "mapped.test": "::ffff:127.0.0.1",
    "mappedprivate.test": "::ffff:10.0.0.1",
    "mappedmetadata.test": "::ffff:169.254.169.254",
    "nat64.test": "64:ff9b::a00:1",
    "nat64loop.test": "64:ff9b::7f00:1",
    "sixtofour.test": "2002:a00:1::1",
    "compatible.test": "::10.0.0.1",
}

PLACES = {
    "origin.test": [PUBLIC, "2001:db8::10"],
    "www.origin.test": [PUBLIC],
    "other.test": ["192.0.2.11"],
    "v6only.test": ["2001:db8::16"],
    "evil.test": ["198.51.100.66"],
    "sub.evil.test": ["198.51.100.66"],
    "evilorigin.test": ["198.51.100.67"],
    "refused.test": ["203.0.113.1"],
    "*.wild.test": ["192.0.2.30"],
    "wild.test": ["192.0.2.31"],
    "*.svc.test": ["192.0.2.40", "2001:db8::40"],
    "alias.test": ["CNAME origin.test"],
    "aliasprivate.test": ["CNAME private.test"],
    "mixed.test": ["10.0.0.1", PUBLIC],
    "upper.test": [PUBLIC],
    "h2.test": ["192.0.2.70"],
    "h2grpc.test": ["192.0.2.71"],
    "h2tools.test": ["192.0.2.72"],
    "h2untrusted.test": ["192.0.2.73"],
}

TLS_NAMES = ["origin.test", "www.origin.test", "other.test", "evil.test", "alias.test", "hostsfile.test",
             "v6only.test", "mixed.test", "*.svc.test", PUBLIC]


def rebind(_name, kind, count):
    """The first question gets a public address, every later one the loopback (F52)."""
    if kind != "A":
        return []
    return dns.Answer([PUBLIC if count == 1 else "127.0.0.1"], ttl=0)


class World:
    """Zone, servers and records. One of them is alive for all tests of a session; forget() is called between them."""

    def __init__(self):
        # The servers are this process: a connection of a flood is a descriptor here, and some users may have few.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.zone = {}
        self.restore()
        self.dns = dns.Server(space.RESOLVERS, self.zone)
        self.authority = ca.Authority(f"{space.BASE}/etc/ca")
        self.authority.install(f"{space.BASE}/etc/certs")
        self.servers = origin.Servers()
        self.certificate = certificate = self.authority.issue("leaf", TLS_NAMES)
        for port in (80, 8080):
            self.servers.listen(port, self.servers.http)
        for port in (443, 8443):
            self.servers.listen(port, self.servers.tls(certificate))
        for port in (7, 22, 5432):
            self.servers.listen(port, self.servers.echo)
        self.servers.listen(19, self.servers.endless)
        for port in (7, 123, 443, 5353):
            self.servers.listen_datagrams(port)

    def restore(self):
        """The zone as the constants above have it."""
        self.zone.clear()
        self.zone.update(PLACES)
        self.zone.update({name: [address] for name, address in [*TRAPS.items(), *guarded.ADDRESSES.items()]})
        self.zone.update({name: [aws.ADDRESS] for name in aws.NAMES})
        self.zone.update({
            "rebind.test": rebind,
            "servfail.test": dns.Answer(rcode=dns.SERVFAIL),
            "silent.test": dns.Answer(silent=True),
            "truncated.test": dns.Answer([PUBLIC], truncated=True),
        })

    def forget(self):
        self.restore()
        self.servers.forget()
        with self.dns.lock:
            self.dns.queries.clear()

    @property
    def requests(self):
        with self.servers.lock:
            return list(self.servers.requests)

    @property
    def connections(self):
        """(kind, address, port) of every connection that reached an origin."""
        with self.servers.lock:
            return list(self.servers.connections)

    @property
    def datagrams(self):
        with self.servers.lock:
            return list(self.servers.datagrams)
