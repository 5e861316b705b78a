"""Small things that several end-to-end tests do."""
from harness import h2_client
from harness.secrets import no_secret
from harness.wire import get, talk
from lab.guarded import SECRET


def status_of(sbx, url, *options):
    """Status that a request for the URL gets inside."""
    return talk(sbx, get(url, "Connection: close"), options=list(options)).status


def h2_bound(project):
    """Options of a run with a credential that is bound to the origins of HTTP/2; there is the client of h2_client.py."""
    with open(h2_client.__file__) as file:
        project.write("h2_client.py", file.read())
    return ["--policy", project.policy("../h2.json", credentials={
        "lab": {"source": {"env": "LAB_KEY"}, "env": "LAB_KEY", "bind": ["h2.test", "h2grpc.test:8445", "h2tools.test:8444", "h2untrusted.test"]}})]


def h2_inside(sbx, code, *options, **more):
    """Runs code with that client; what it prints as JSON."""
    code = "import json, sys\nsys.path.append('.')\nfrom h2_client import *\n" + code
    result = sbx.python(code, *options, env={"LAB_KEY": SECRET}, **more)
    no_secret(result.out, result.err)
    return result.json, result
