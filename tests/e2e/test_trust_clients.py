"""The client matrix for trust (F78): each program verifies for real, with the variables that sbx sets and nothing else.

Each one is led to three hosts, in one run: one that is bound, whose TLS is terminated with the run's CA; one that is not,
whose certificate is of a root that the host has and others have not, as those of companies are; and one whose
certificate is of nobody's root. The last it must refuse, by itself: the proxy only passes its bytes on.

Programs that read the system's files need no variable, and are led to the first two again with an empty environment.
"""
import re

import pytest

from harness.clients import APT, CARGO, CLIENTS, NPM, PIP, java, node, python
from harness.secrets import no_secret, saw
from lab import registry, services, space
from lab.guarded import SECRET

UNTRUSTED = "untrusted.test"
REFUSES = r"certificate|CERT|PKIX|unknown authority|UnknownIssuer|issuer"
NODE_TOLD = {"NODE_EXTRA_CA_CERTS": f"{space.BASE}/etc/ca/ca.pem"}
KINDS = ("pypi", "npm", "crates", "apt", "git")

OPENSSL = ("host={}; printf 'GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n' $host | openssl s_client -quiet "
           "-ignore_unexpected_eof -verify_return_error -verify_hostname $host -servername $host -connect $host:443")


class Client:
    """command  what a shell runs to get something from {}, a URL or a host; of a registry of this kind
    bare        whether it needs no variable
    told        variables of the caller: Node.js does not look at the system's roots, so whoever needs one beside its own
                has told it
    """

    def __init__(self, command, kind=None, expect=None, bare=False, told=()):
        self.command, self.kind, self.bare, self.told = command, kind, bare, dict(told)
        self.expect = expect or "lab page of "
        self.bound = services.HOSTS[kind] if kind else "origin.test"
        self.own = own_host(kind) if kind else "other.test"


def own_host(kind):
    return f"own-{kind}.svc.test"


MATRIX = {
    "curl": Client("curl -sS {}", bare=True),
    "wget": Client("wget -nv -O- {}", bare=True),
    "git": Client("git clone -q {}repo.git clone && ls clone/.git", "git", "HEAD", bare=True),
    "openssl": Client(OPENSSL),
    **{f"python, {kind}": Client(python(kind, "{}")) for kind in ("urllib", "requests", "httpx", "aiohttp")},
    "pip": Client(PIP, "pypi", f"{registry.NAME}-1.0.0-py3-none-any.whl"),
    "node, fetch": Client(node("fetch", "{}"), told=NODE_TOLD),
    "node, https": Client(node("https", "{}"), told=NODE_TOLD),
    "npm": Client(f"npm_config_cache=$PWD/cache {NPM}", "npm", registry.NAME),
    "java": Client(java("{}"), bare=True),
    "go": Client(f"{CLIENTS}/fetch-go {{}}", bare=True),
    "cargo": Client(CARGO, "crates", f"{registry.NAME}-1.0.0.crate"),
    "apt": Client(APT, "apt", f"{registry.NAME}_1.0.0_all.deb", bare=True),
}


@pytest.fixture(scope="session")
def registries(world, service):
    """Each of them a second time, at a name that is not bound."""
    sites = world.servers.sites
    for kind in KINDS:
        sites[own_host(kind)] = sites[services.HOSTS[kind]]
    sites[own_host("npm")] = registry.files(registry.npm(own_host("npm")))
    sites[own_host("crates")] = registry.files(registry.crates(own_host("crates")))


def url_of(client, host):
    """What stands for the host in the client's command."""
    return host if client.command in (OPENSSL, PIP, CARGO) or client.kind == "npm" else f"https://{host}/"


def script_of(client):
    """Each step in a directory and with a file of its own, so that one cannot live on what another has left."""
    lines = []
    for name, host in (("bound", client.bound), ("own", client.own), ("untrusted", UNTRUSTED)):
        lines += [f"mkdir {name}; cat >{name}.sh <<'END'", client.command.format(url_of(client, host)), "END",
                  f"(cd {name}; sh ../{name}.sh >../{name}.out 2>&1; echo {name} $?)"]
        if client.bare and name != "untrusted":
            lines.append(f"mkdir {name}-bare; (cd {name}-bare; env -i PATH=/usr/bin:/bin HOME=$HOME sh ../{name}.sh "
                         f">../{name}-bare.out 2>&1; echo {name}-bare $?)")
    return "\n".join(lines)


BOUND = {"source": {"env": "LAB_KEY"}, "inject": "attach", "place": {"header": "X-Own"}}


@pytest.mark.parametrize("name", MATRIX)
def test_client(sbx, lab, guarded, registries, project, name):
    client = MATRIX[name]
    policy = project.policy("../bound.json", credentials={
        "lab": {**BOUND, "bind": [client.bound]}})
    result = sbx.shell(script_of(client), "--policy", policy, "--allow", client.own, "--allow", UNTRUSTED, "--read", CLIENTS,
                       env={"LAB_KEY": SECRET, **client.told})
    codes = dict(line.split() for line in result.ok().out.splitlines())
    told = {step: open(f"{project.root}/{step}.out", errors="replace").read() for step in codes}
    assert len(codes) == (5 if client.bare else 3) and result.messages == [], result
    for step in set(codes) - {"untrusted"}:
        assert codes[step] == "0" and client.expect in told[step], (step, told[step], result)
    assert codes["untrusted"] != "0" and re.search(REFUSES, told["untrusted"]), (told["untrusted"], result)
    assert saw(lab, client.bound) and not [r for r in lab.requests if r.sni == UNTRUSTED]
    assert {client.bound, client.own} <= {r.sni for r in lab.requests}
    no_secret(result.out, result.err, *told.values())


def test_java_of_the_home(sbx, lab, guarded, service, project):
    """A store that is not JKS, as newer versions have it, in a toolchain of the home: the system's roots stand there."""
    store = ".sdkman/candidates/java/x/lib/security/cacerts"
    with open(project.write(f"../../{store}"), "wb") as file:
        file.write(b"0\x82\x01\x00 PKCS #12")
    policy = project.policy("../bound.json", credentials={"lab": {**BOUND, "bind": ["origin.test"]}})
    command = java("{}", f"-Djavax.net.ssl.trustStore=$HOME/{store}")
    script = "\n".join(command.format(f"https://{host}/") for host in ("origin.test", "other.test", UNTRUSTED))
    result = sbx.shell(script, "--policy", policy, "--allow", "other.test", "--allow", UNTRUSTED, "--read", CLIENTS,
                       env={"LAB_KEY": SECRET})
    assert result.code == 1 and result.out.count("lab page of ") == 2 and "PKIX" in result.err, result
    assert len(saw(lab, "origin.test")) == 1
