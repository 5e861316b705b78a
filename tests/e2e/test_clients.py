"""The client matrix (F50, F62): real programs, each with the variables that sbx sets and again without them.

With them a program that knows proxies uses ours, and one that knows none goes on by name; without them every one goes
by name. The audit tells which way it was. A host that no rule names is refused at once, in words that the program
shows: what a program would wait for, it would wait for longer than a run of these tests may take.
"""
import json
import re

import pytest

from harness.clients import APT, CARGO, CLIENTS, NPM, PIP, java, node as node_command, python as python_command
from lab import registry, services

HOSTS = services.HOSTS
PAGE = "lab page of origin.test"
NAME = registry.NAME
WITHOUT = "unset $(env | sed -n 's/=.*//p' | grep -iE '_proxy$') NODE_USE_ENV_PROXY\n"
HOW = pytest.mark.parametrize("how", ["proxy", "bare"])

# What programs say of a name that the stub does not know, and of a proxy's refusal.
TELLS = {
    "transparent": r"not resolve|not known|unable to resolve|ENOTFOUND|no such host|not translate|UnresolvedAddress",
    "http": r"403|Blocked by sbx",
    "socks5": r"not allowed|SOCKS",
}


class Client:
    """good   what a shell runs to get something from the host that is allowed
    expect    a part of what that prints
    bad       the same for evil.test, which is not
    allow     the rule
    proxy     the front that it comes to with the variables
    bare      and without them
    """

    def __init__(self, good, expect=PAGE, bad=None, allow="origin.test", proxy="http", bare="transparent"):
        self.good, self.expect, self.allow, self.ways = good, expect, allow, {"proxy": proxy, "bare": bare}
        self.bad = bad or good.replace(allow.partition(":")[0], "evil.test")


def python(kind, **more):
    return Client(python_command(kind, "https://origin.test/"), **more)


def node(kind, url="https://origin.test/", **more):
    return Client(f"NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt {node_command(kind, url)}", proxy="transparent", **more)


SSH = "ssh -F /dev/null -i id -o UserKnownHostsFile=known -o IdentitiesOnly=yes -o BatchMode=yes"
PSQL = "psql -XAt 'host={} user=lab dbname=lab sslmode={} sslrootcert=/etc/ssl/certs/ca-certificates.crt' -c question"

MATRIX = {
    "curl": Client("curl -sS https://origin.test/"),
    "curl, http": Client("curl -sSf http://origin.test/"),
    "curl, IPv4": Client("curl --noproxy '*' -4 -sS https://origin.test/", proxy="transparent"),
    "curl, IPv6": Client("curl --noproxy '*' -6 -sS https://origin.test/", proxy="transparent"),
    # Clients that try one family first, or know one alone: the stub has both for every name, whatever the host has.
    "curl, IPv6 to a host of IPv4": Client("curl --noproxy '*' -6 -sS https://other.test/", "lab page of other.test",
                                           allow="other.test", proxy="transparent"),
    "curl, IPv4 to a host of IPv6": Client("curl --noproxy '*' -4 -sS https://v6only.test/", "lab page of v6only.test",
                                           allow="v6only.test", proxy="transparent"),
    "wget": Client("wget -nv -O- https://origin.test/"),
    "wget, http": Client("wget -nv -O- http://origin.test/"),
    "git": Client(f"git clone -q https://{HOSTS['git']}/repo.git clone && cd clone && git commit -q --allow-empty -m x"
                  " && git push origin HEAD:refs/heads/$(basename $(mktemp -u)) 2>&1", "new branch", allow=HOSTS["git"]),
    "ssh through SOCKS": Client(f"{SSH} -o ProxyCommand='nc.openbsd -X 5 -x 127.0.0.1:1080 %h %p' "
                                f"LOGIN@{HOSTS['ssh']} echo hello from there", "hello from there",
                                allow=HOSTS["ssh"] + ":22", proxy="socks5", bare="socks5"),
    "git over ssh": Client(f"GIT_SSH_COMMAND='{SSH}' git ls-remote ssh://LOGIN@{HOSTS['ssh']}DIRECTORY/repo.git",
                           "refs/heads/main", allow=HOSTS["ssh"] + ":22", proxy="transparent"),
    "ssh": Client(f"{SSH} LOGIN@{HOSTS['ssh']} echo hello from there", "hello from there",
                  allow=HOSTS["ssh"] + ":22", proxy="transparent"),
    "python, urllib": python("urllib"),
    "python, requests": python("requests"),
    "python, httpx": python("httpx"),
    "python, aiohttp": python("aiohttp", proxy="transparent"),
    "python, aiohttp with trust_env": python("aiohttp_env"),
    "pip": Client(PIP.format(HOSTS["pypi"]), f"{NAME}-1.0.0-py3-none-any.whl", allow=HOSTS["pypi"]),
    "npm": Client("npm_config_cafile=/etc/ssl/certs/ca-certificates.crt " + NPM.format(HOSTS["npm"]), NAME, allow=HOSTS["npm"]),
    "node, fetch": node("fetch"),
    "node, https": node("https"),
    "node, ws": node("ws", f"wss://{HOSTS['ws']}/", expect="through a socket", allow=HOSTS["ws"]),
    "java": Client(java("https://origin.test/"), proxy="transparent"),
    "java, told of the proxy": Client(java("https://origin.test/", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128"),
                                      bare="http"),
    "go": Client(f"{CLIENTS}/fetch-go https://origin.test/"),
    "cargo": Client(CARGO.format(HOSTS["crates"]), f"{NAME}-1.0.0.crate", allow=HOSTS["crates"]),
    "psql": Client(PSQL.format(HOSTS["db"], "disable"), "question in the clear", allow=HOSTS["db"] + ":5432",
                   proxy="transparent"),
    "psql, TLS": Client(PSQL.format(HOSTS["db"], "verify-full"), "question over TLS", allow=HOSTS["db"] + ":5432",
                        proxy="transparent"),
    "redis-cli": Client(f"redis-cli -e -h {HOSTS['redis']} GET it", "value of it", allow=HOSTS["redis"] + ":6379",
                        proxy="transparent"),
    "nc": Client("echo over a pipe | nc.openbsd -N origin.test 7", "over a pipe", allow="origin.test:7", proxy="transparent"),
    "nc through CONNECT": Client("echo over a pipe | nc.openbsd -N -X connect -x 127.0.0.1:3128 origin.test 7",
                                 "over a pipe", allow="origin.test:7", bare="http"),
    "apt": Client(APT.format(f"https://{HOSTS['apt']}"), f"{NAME}_1.0.0_all.deb", allow=HOSTS["apt"]),
    "apt, http": Client(APT.format(f"http://{HOSTS['apt']}"), f"{NAME}_1.0.0_all.deb", allow=HOSTS["apt"]),
}


@pytest.fixture
def place(project, service):
    """The project, with the key of the lab's sshd in it."""
    with open(service.ssh.key) as file:
        project.write("id", file.read(), 0o600)
    project.write("known", service.ssh.known_hosts())
    return project


def ways(path):
    """Fronts that let something through, by the audit."""
    with open(path) as file:
        return {line["via"] for line in map(json.loads, file) if line["verdict"] == "allow"}


def visit(sbx, service, script, how, allow):
    script = script.replace("LOGIN", service.ssh.login).replace("DIRECTORY", service.ssh.directory)
    path = sbx.project.home + "/audit.jsonl"
    result = sbx.shell((WITHOUT if how == "bare" else "") + script, "--read", CLIENTS, "--allow", allow, "--audit", path)
    return result, ways(path)


@HOW
@pytest.mark.parametrize("name", MATRIX)
def test_allowed_host(sbx, lab, place, service, name, how):
    """F50: it works, and on the way that it is said to take."""
    client = MATRIX[name]
    result, way = visit(sbx, service, client.good, how, client.allow)
    assert client.expect in result.ok().out and result.messages == [], result
    assert way == {client.ways[how]}, result


@HOW
@pytest.mark.parametrize("name", MATRIX)
def test_host_that_is_not_allowed(sbx, lab, place, service, name, how):
    """P2, P10: at once, in the program's own words and in the summary; nobody hears of it."""
    client = MATRIX[name]
    result, way = visit(sbx, service, client.bad, how, client.allow)
    assert result.code != 0 and re.search(TELLS[client.ways[how]], result.out + result.err), result
    assert any("evil.test" in m and "--allow evil.test" in m for m in result.messages), result
    assert way == set() and lab.connections == [] and lab.dns.queries == [], result
