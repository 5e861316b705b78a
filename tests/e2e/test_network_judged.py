"""Names judged, addresses judged, and only what was judged is dialled (P2; F52, F53)."""
import json

import pytest

from harness.wire import connect, converse, get, talk
from lab.world import PUBLIC, TRAPS

FORBIDDEN = ("address-",)


@pytest.mark.parametrize("name", sorted(TRAPS))
def test_name_that_leads_to_a_place_that_is_not_public(sbx, lab, name):
    """F52: refused with the class of the address; nothing is dialled, by HTTP or by CONNECT."""
    plain, tunnel = converse(sbx, [[get(f"http://{name}/")], [connect(f"{name}:443")]], "--allow", name)
    for exchange in (plain, tunnel):
        assert exchange.status == 403, exchange
        assert exchange.denial["reason"].startswith("address-"), exchange
        assert exchange.denial["host"] == name, exchange
    assert lab.connections == []


def test_any_host_means_any_public_host(sbx, lab):
    """F52: `*` opens neither private places by name nor by address."""
    targets = ["http://private.test/", "http://metadata.test/", "http://127.0.0.1/", "http://10.0.0.1/",
               "http://169.254.169.254/", "http://[::1]/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::a00:1]/"]
    for exchange in converse(sbx, [[get(target)] for target in targets], "--allow", "*"):
        assert exchange.status == 403, exchange
    assert lab.connections == []


def test_alias_to_a_private_place(sbx, lab):
    """F52: it is the address that counts, not the name on the way."""
    exchange = talk(sbx, get("http://aliasprivate.test/"), options=["--allow", "aliasprivate.test"])
    assert exchange.status == 403, exchange
    assert lab.connections == []


def test_name_with_a_private_and_a_public_address(sbx, lab):
    """F52: the private one is never dialled."""
    talk(sbx, get("http://mixed.test/"), options=["--allow", "mixed.test"])
    assert {address for _, address, _ in lab.connections} <= {PUBLIC}


def test_rebinding(sbx, lab):
    """F52: resolved once per connection, and dialled what was judged, however the answer changes."""
    exchanges = converse(sbx, [[get("http://rebind.test/", "Connection: close")] for _ in range(6)], "--allow",
                         "rebind.test")
    assert exchanges[0].status in (200, 403), exchanges
    assert {address for _, address, _ in lab.connections} <= {PUBLIC}, lab.connections
    assert any(exchange.status == 403 for exchange in exchanges), exchanges


def test_rebinding_between_the_two_families(sbx, lab):
    """F52: the AAAA answer is judged as the A answer is."""
    lab.zone["twofaced.test"] = lambda _name, kind, _count: [PUBLIC] if kind == "A" else ["::1"]
    for _ in range(4):
        talk(sbx, get("http://twofaced.test/", "Connection: close"), options=["--allow", "twofaced.test"])
    assert {address for _, address, _ in lab.connections} <= {PUBLIC}


@pytest.mark.parametrize("rule, name, address", [
    ("10.0.0.0/8", "private.test", "10.0.0.1"), ("169.254.169.254", "metadata.test", "169.254.169.254"),
    ("fd00::/8", "ula.test", "fd12:3456::7"),
])
def test_address_rule_opens_a_private_place(sbx, lab, rule, name, address):
    """DESIGN 8: refused for names unless an address rule allows them."""
    exchange = talk(sbx, get(f"http://{name}/"), options=["--allow", name, "--allow", rule])
    assert exchange.status == 200, exchange
    assert [a for _, a, _ in lab.connections] == [address]


@pytest.mark.parametrize("form", [
    "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "127.1", "127.0.1", "017700000001", "127.0.0.1.",
    "127.000.0.1", "0", "00000000000", "0x0", "127.0.0.1:80:80", "[127.0.0.1]", "1.2.3.4.5", "256.0.0.1", "[::1%25lo]",
    "[::1%lo]", "[::127.0.0.1", "::1", "[fe80::1%25eth0]", "0300.0250.1.1", "3232235777", "%31%32%37.0.0.1",
    "127。0。0。1", "①②⑦.0.0.1",
])
def test_odd_forms_of_addresses(sbx, lab, form):
    """F52: whatever a resolver might make of it, it is neither an address nor a name."""
    host = form.encode("utf-8").decode("latin-1")
    exchanges = converse(sbx, [[get(f"http://{host}/", "Host: x")], [connect(f"{host}:443")]], "--allow", "*:*",
                         "--allow", "127.0.0.0/8:*", "--deny", "127.0.0.1", "--deny", "0.0.0.0/8", "--deny", "::1")
    for exchange in exchanges:
        assert exchange.status in (400, 403), exchange
    assert lab.connections == [] and lab.dns.queries == []


@pytest.mark.parametrize("target", [
    "http://evil.test\\@origin.test/", "http://origin.test@evil.test/", "http://origin.test:80@evil.test/",
    "http://user:password@evil.test/", "http://origin.test%00.evil.test/", "http://origin.test\x00.evil.test/",
    "http://origin.test%2eevil.test/", "http://evil.test#origin.test/", "http://evil.test?origin.test/",
    "http://origin.test:80x/", "http://origin.test:/../", "http://origin.test:0/", "http://origin.test:65536/",
    "http://origin.test:+80/", "http://origin.test:-80/", "http://origin.test:00000000000000000080/",
    "http://origin.test:4294967376/", "http:///", "http://", "http:origin.test/", "https://evil.test/",
    "ftp://origin.test/", "file:///etc/passwd", "http://*.test/", "http://.origin.test/", "http://origin..test/",
    "http://-/", "http://origin.test../", "http:// origin.test/", "origin.test/", "//origin.test/",
    "http://" + "a" * 64 + ".test/", "http://" + "a." * 130 + "test/",
])
def test_odd_targets_never_reach_another_host(sbx, lab, target):
    """F53: what is not one well-formed host is refused; never is evil.test dialled, nor anything asked for it."""
    exchange = talk(sbx, get(target, "Host: origin.test"), options=["--allow", "origin.test"])
    assert exchange.status in (400, 403), exchange
    assert all(request.host == "origin.test" for request in lab.requests)
    assert lab.connections == []


@pytest.mark.parametrize("target", [
    "origin.test", "origin.test:", "origin.test:443x", "origin.test:0", "origin.test:65536", "origin.test:-443",
    "origin.test: 443", "origin.test:443:443", "user@origin.test:443", "origin.test\x00:443", "http://origin.test:443",
    "origin.test/x:443", ":443", "2001:db8::10:443", "[2001:db8::10]443", "[2001:db8::10", "origin.test:0x1bb",
    "origin.test:443#", "*:443", "[]:443",
])
def test_odd_targets_of_connect(sbx, lab, target):
    """F53: `443x` as a port, an IPv6 address that is split at its colons, and the like."""
    exchange = talk(sbx, connect(target), options=["--allow", "*:*"])
    assert exchange.status in (400, 403), exchange
    assert lab.connections == []


@pytest.mark.parametrize("name",
                         ["evil.test", "EVIL.TEST", "evil.test.", "Evil.Test.", "sub.evil.test", "SUB.evil.TEST."])
def test_spellings_of_a_denied_name(sbx, lab, name):
    """F53: a final dot or upper case does not slip past a deny."""
    options = ["--allow", "*", "--deny", "evil.test", "--deny", "*.evil.test"]
    for exchange in converse(sbx, [[get(f"http://{name}/")], [connect(f"{name}:443")]], *options):
        assert exchange.status == 403 and exchange.denial["reason"] == "deny-rule", exchange
    assert lab.connections == []


def test_connect_to_a_port_that_no_rule_names(sbx, lab):
    exchange = talk(sbx, connect("origin.test:22"), options=["--allow", "origin.test"])
    assert exchange.status == 403 and exchange.denial["reason"] == "port-not-allowed", exchange
    assert "--allow origin.test:22" in exchange.denial["fix"], exchange
    assert lab.connections == []


def test_fix_of_a_denial_is_what_helps(sbx):
    """P10: what the denial says to type makes the request pass."""
    for target in ("http://origin.test/", "http://origin.test:8080/", "http://[2001:db8::10]/"):
        denial = talk(sbx, get(target)).denial
        words = denial["fix"].split()
        rule = words[words.index("--allow") + 1].strip("'\"")
        assert talk(sbx, get(target), options=["--allow", rule]).status == 200, denial


def test_denial_has_a_telling_status_and_json(sbx):
    exchange = talk(sbx, connect("evil.test:443"))
    line = exchange.all.split(b"\r\n")[0].decode()
    assert line.startswith("HTTP/1.1 403 ") and "evil.test" in line, line
    assert b"application/json" in exchange.all.lower()
    assert json.loads(exchange.body)["host"] == "evil.test"


def test_address_that_was_judged_is_dialled_also_when_the_first_fails(sbx, lab):
    """The next address of a name is tried, and it was judged as well."""
    lab.zone["several.test"] = ["203.0.113.1", "10.0.0.1", "127.0.0.1"]
    talk(sbx, get("http://several.test:81/"), options=["--allow", "several.test:81"])
    assert lab.connections == []


# What a host, by every front, comes to: "open", or why not.
FRONTS = """
import errno, json, socket, struct, sys
def read(s):
    got = b""
    try:
        while data := s.recv(65536): got += data
    except OSError as error: return errno.errorcode[error.errno].encode()
    return got
def outcome(got):
    if got.startswith(b"HTTP/1.1 403"): return json.loads(got.partition(b"\\r\\n\\r\\n")[2])["reason"]
    return "open" if got.startswith(b"HTTP/1.1 200") else got.decode()
def literal(host): return f"[{host}]" if ":" in host else host
def front(line, host):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(40)
    s.sendall(f"{line} HTTP/1.1\\r\\nHost: {literal(host)}\\r\\nConnection: close\\r\\n\\r\\n".encode()); s.shutdown(socket.SHUT_WR); return outcome(read(s))
def http(host): return front(f"GET http://{literal(host)}/", host)
def connect(host): return front(f"CONNECT {literal(host)}:80", host)
def socks(host, packed):
    s = socket.create_connection(("127.0.0.1", 1080)); s.settimeout(40)
    s.sendall(b"\\5\\1\\0\\5\\1\\0" + packed + struct.pack(">H", 80)); s.shutdown(socket.SHUT_WR)
    return {0: "open"}.get(read(s)[3], "socks")
def socks_name(host): return socks(host, b"\\3" + bytes([len(host)]) + host.encode())
def socks_address(host): return socks(host, b"\\4" + socket.inet_pton(socket.AF_INET6, host)) if ":" in host else "no address"
def transparent(host):
    try:
        s = socket.create_connection((host, 80)); s.settimeout(40)
        s.sendall(f"GET / HTTP/1.1\\r\\nHost: {literal(host)}\\r\\nConnection: close\\r\\n\\r\\n".encode()); return outcome(read(s))
    except OSError as error: return errno.errorcode.get(error.errno, str(error))
print(json.dumps({host: {f.__name__: f(host) for f in (http, connect, socks_name, socks_address, transparent)} for host in sys.argv[1:]}))
"""

# IPv4 addresses in IPv6 ones: mapped, compatible, translated (RFC 2765), NAT64 and its local prefix, 6to4.
CARRIERS = ["::ffff:{}", "::{}", "::ffff:0:{}", "64:ff9b::{}", "64:ff9b:1::{}", "2002:{}::", "2002:{}::1"]


def carried(address):
    """All IPv6 addresses that carry an IPv4 address."""
    first, second, third, fourth = (int(byte) for byte in address.split("."))
    return [form.format(f"{first << 8 | second:x}:{third << 8 | fourth:x}") for form in CARRIERS]


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254"])
def test_ipv4_inside_ipv6_on_every_front(sbx, lab, address):
    """F52: as an address, and as what a name leads to: judged as the IPv4 address, and never dialled."""
    names = {f"carrier{number}.test": form for number, form in enumerate(carried(address))}
    lab.zone.update({name: [form] for name, form in names.items()})
    allow = [word for host in ["*", *names] for word in ("--allow", host)]
    results = sbx.python(FRONTS, *allow, arguments=[*names.values(), *names]).json
    for host, fronts in results.items():
        assert fronts.pop("socks_name") == "socks" and fronts.pop("socks_address") in ("socks", "no address"), (host, fronts)
        # The kernel makes an IPv4 connection of a mapped one: to the loopback, that is the sandbox's own.
        mapped = host.startswith("::ffff:") and not host.startswith("::ffff:0:")
        if mapped and address == "127.0.0.1":
            assert fronts.pop("transparent") == "not-allowed", (host, fronts)
        assert all(outcome.startswith("address-") for outcome in fronts.values()), (host, fronts)
    assert lab.connections == [], lab.connections


def test_rules_for_ipv4_and_the_addresses_that_carry_it(sbx, lab):
    """To deny an IPv4 address is to deny its carriers; to allow it is not to allow them, but for the mapped one, which is
    the same address."""
    forms = carried("192.0.2.10")
    lab.zone.update({"carrier.test": forms[3:]})
    denied = sbx.python(FRONTS, "--allow", "*", "--deny", "192.0.2.10", arguments=[*forms, "carrier.test"]).json
    for host, fronts in denied.items():
        assert set(fronts.values()) <= {"deny-rule", "socks", "no address"} or "address-" in str(fronts), (host, fronts)
    assert lab.connections == [], lab.connections
    allowed = sbx.python(FRONTS, "--allow", "192.0.2.10", arguments=forms).json
    mapped = allowed.pop("::ffff:c000:20a")
    # An IPv4 connection by then, for which Host names another literal.
    assert mapped.pop("transparent") == "identity-mismatch" and set(mapped.values()) == {"open"}, mapped
    for host, fronts in allowed.items():
        assert "open" not in fronts.values(), (host, fronts)
    assert {where for _, where, _ in lab.connections} == {"192.0.2.10"}, lab.connections
