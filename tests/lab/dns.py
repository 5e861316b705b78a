"""A DNS server for the lab: UDP and TCP, RFC 1035 with the few record types that resolvers ask for.

The zone is a dictionary from a lower-case name (or "*.parent") to an Answer, a list of records, or a function that is
called with (name, type, count) for each query and returns one of these. A record is a text: an IPv4 address, an IPv6
address, or "CNAME name".
"""
import ipaddress
import socket
import struct
import threading

TYPES = {1: "A", 5: "CNAME", 28: "AAAA"}
NUMBERS = {name: number for number, name in TYPES.items()}
NXDOMAIN, SERVFAIL = 3, 2
IP_FREEBIND = 15


class Answer:
    """What to say beyond a list of records.

    rcode      0 or an error code
    silent     do not answer at all
    truncated  set TC on UDP, so that the resolver has to come by TCP
    ttl        seconds
    """

    def __init__(self, records=(), rcode=0, silent=False, truncated=False, ttl=60):
        self.records = list(records)
        self.rcode = rcode
        self.silent = silent
        self.truncated = truncated
        self.ttl = ttl


def pack_name(name):
    labels = [label for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def unpack_question(message):
    labels, place = [], 12
    while message[place]:
        length = message[place]
        labels.append(message[place + 1:place + 1 + length].decode("latin-1"))
        place += 1 + length
    kind, = struct.unpack(">H", message[place + 1:place + 3])
    return ".".join(labels).lower(), kind, message[12:place + 5]


def pack_record(owner, text, ttl):
    if text.startswith("CNAME "):
        kind, data = NUMBERS["CNAME"], pack_name(text[6:])
    else:
        address = ipaddress.ip_address(text)
        kind, data = NUMBERS["A" if address.version == 4 else "AAAA"], address.packed
    return kind, pack_name(owner) + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


class Server:
    """Answers from zone on each address, port 53. queries is a list of (name, type name) in the order of arrival."""

    def __init__(self, addresses, zone):
        self.zone = zone
        self.queries = []
        self.lock = threading.Lock()
        for address in addresses:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            datagram = socket.socket(family, socket.SOCK_DGRAM)
            stream = socket.socket(family, socket.SOCK_STREAM)
            for server in (datagram, stream):
                server.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)  # no interface has these addresses
                server.bind((address, 53))
            stream.listen(64)
            threading.Thread(target=self.serve_datagrams, args=(datagram,), daemon=True).start()
            threading.Thread(target=self.serve_streams, args=(stream,), daemon=True).start()

    def serve_datagrams(self, server):
        while True:
            message, peer = server.recvfrom(4096)
            reply = self.reply(message, True)
            if reply is not None:
                server.sendto(reply, peer)

    def serve_streams(self, server):
        while True:
            connection, _ = server.accept()
            threading.Thread(target=self.serve_stream, args=(connection,), daemon=True).start()

    def serve_stream(self, connection):
        with connection, connection.makefile("rb") as reader:
            while len(head := reader.read(2)) == 2:
                reply = self.reply(reader.read(struct.unpack(">H", head)[0]), False)
                if reply is not None:
                    connection.sendall(struct.pack(">H", len(reply)) + reply)

    def find(self, name, kind):
        """The answer of the zone; None where the name does not exist."""
        with self.lock:
            self.queries.append((name, TYPES.get(kind, str(kind))))
            count = sum(1 for n, k in self.queries if n == name and k == TYPES.get(kind))
        answer = self.zone.get(name)
        parent = name
        while answer is None and "." in parent:
            parent = parent.partition(".")[2]
            answer = self.zone.get("*." + parent)
        if callable(answer):
            answer = answer(name, TYPES.get(kind, str(kind)), count)
        return Answer(answer) if isinstance(answer, (list, tuple)) else answer

    def collect(self, name, kind, answer):
        """Records of the wanted type, following aliases within the zone as a resolver does."""
        packed, owner = [], name
        for _ in range(8):
            aliases = [r[6:] for r in answer.records if r.startswith("CNAME ")]
            for record in answer.records:
                number, data = pack_record(owner, record, answer.ttl)
                if number == kind or number == NUMBERS["CNAME"]:
                    packed.append(data)
            target = self.zone.get(aliases[0]) if aliases else None
            if not isinstance(target, list):
                break
            owner, answer = aliases[0], Answer(target, ttl=answer.ttl)
        return packed

    def reply(self, message, datagram):
        try:
            name, kind, question = unpack_question(message)
        except (IndexError, struct.error):
            return None
        answer = self.find(name, kind)
        if answer is not None and answer.silent:
            return None
        records, rcode, flags = [], NXDOMAIN, 0x8180
        if answer is not None:
            rcode = answer.rcode
            if answer.truncated and datagram:
                flags |= 0x0200
            elif rcode == 0:
                records = self.collect(name, kind, answer)
        head = message[:2] + struct.pack(">HHHHH", flags | rcode, 1, len(records), 0, 0)
        return head + question + b"".join(records)

    def asked(self, name):
        """Whether anybody asked for this name, of whatever type."""
        with self.lock:
            return any(n == name for n, _ in self.queries)
