"""Names judged, addresses judged, and only what was judged is dialled (F52, F53)."""
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
