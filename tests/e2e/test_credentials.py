"""Credentials (P3, F70 to F75): programs work with a placeholder, the service sees the secret, and inside there is no byte
of it. The presets are used as they are: the lab has github.com and its like."""
import json
import os

import pytest

from harness import procs
from harness.sbx import PYTHON
from harness.secrets import memory_of, no_secret, nobody_saw, processes_inside, saw
from lab.guarded import OTHER_SECRET, SECRET, digest, forms

GITHUB = ["--credential", "github=env:GH_TOKEN"]
TOKEN = {"GH_TOKEN": SECRET}
WITHOUT_PROXY = "unset $(env | sed -n 's/=.*//p' | grep -iE '_proxy$') NODE_USE_ENV_PROXY\n"
HOW = pytest.mark.parametrize("how", ["proxy", "bare"])
HELPER = "git -c credential.helper='!f() { echo username=x-access-token; echo password=$GH_TOKEN; }; f'"
CHECK = "https://api.github.com/check"

NODE = """
const https = require('https');
https.get(process.argv[1], {headers: {authorization: 'token ' + process.env.GITHUB_TOKEN}}, (answer) => answer.pipe(process.stdout))
  .on('error', (error) => { console.error(error); process.exitCode = 1; });
"""
FETCH = """
fetch(process.argv[1], {headers: {authorization: 'Bearer ' + process.env.GITHUB_TOKEN}})
  .then((answer) => answer.text()).then((text) => process.stdout.write(text))
  .catch((error) => { console.error(error.cause || error); process.exitCode = 1; });
"""
LIBRARIES = {
    "urllib": "import urllib.request as u; print(u.urlopen(u.Request(URL, headers=HEADERS)).read().decode())",
    "requests": "import requests; print(requests.get(URL, headers=HEADERS).text)",
    "requests, basic": "import requests; print(requests.get(URL, auth=('x', TOKEN)).text)",
    "httpx": "import httpx; print(httpx.get(URL, headers=HEADERS, timeout=None).text)",
}


def python(code):
    head = f"import os; URL = {CHECK!r}; TOKEN = os.environ['GH_TOKEN']; HEADERS = {{'Authorization': 'token ' + TOKEN}}; "
    return f'{PYTHON} -I -c "{head}{code}"'


def curl(*words):
    return " ".join(["curl -sS", *words, CHECK])


CLIENTS = {
    "curl, Bearer": curl('-H "Authorization: Bearer $GH_TOKEN"'),
    "curl, token": curl('-H "Authorization: token $GITHUB_TOKEN"'),
    "curl, bare": curl('-H "Authorization: $GH_TOKEN"'),
    "curl, user": curl('-u "$GH_TOKEN:x-oauth-basic"'),
    "curl, password": curl('-u "x-access-token:$GH_TOKEN"'),
    "curl, X-Api-Key": curl('-H "X-Api-Key: $GH_TOKEN"'),
    "wget": f'wget -nv -O- --header "Authorization: token $GH_TOKEN" {CHECK}',
    "node, https": f"node -e \"{NODE}\" {CHECK}",
    "node, fetch": f"node -e \"{FETCH}\" {CHECK}",
    **{f"python, {name}": python(code) for name, code in LIBRARIES.items()},
}


def run(sbx, script, *options, env=None, how="proxy", **more):
    return sbx.shell((WITHOUT_PROXY if how == "bare" else "") + script, *options, env=TOKEN if env is None else env, **more)


@HOW
@pytest.mark.parametrize("name", CLIENTS)
def test_clients(sbx, lab, guarded, project, name, how):
    """F72, F74, F78: each of them verifies for real, and is let in."""
    audit = f"{project.home}/audit.jsonl"
    result = run(sbx, CLIENTS[name], *GITHUB, "--audit", audit, how=how)
    assert result.ok().out.strip() == "hello, lab" and result.messages == [], result
    assert len(saw(lab, "api.github.com")) == 1
    with open(audit, "rb") as file:
        text = file.read()
    no_secret(result.out, result.err, text)
    ways = {line["via"] for line in map(json.loads, text.splitlines()) if line["verdict"] == "allow"}
    assert len(ways) == 1 and (how == "proxy" or ways == {"transparent"}), text


@HOW
def test_git(sbx, lab, guarded, project, how):
    """F73: git asks without a login first; clone and push answer the challenge with the placeholder, whatever helper the
    user's own configuration names."""
    name = os.urandom(4).hex()
    project.write("../../.gitconfig", "[credential]\n\thelper = !echo quit=1; exit 1 #\n[user]\n\tname = a\n\temail = a@b.test\n")
    script = ("git clone -q https://github.com/lab/repo.git clone && cd clone && git commit -q --allow-empty -m x && "
              f"git push origin HEAD:refs/heads/{name} 2>&1")
    result = run(sbx, script, *GITHUB, how=how)
    assert "new branch" in result.ok().out and result.messages == [], result
    assert len(saw(lab, "github.com")) >= 3
    without = [r for r in lab.requests if r.get("authorization") is None]
    assert without and all(r.sni == "github.com" for r in lab.requests)
    no_secret(result.out, result.err, *(open(path, "rb").read() for path in tree_files(project.root)))


def test_git_with_a_helper_of_its_own(sbx, lab, guarded):
    """On its command line, which comes last."""
    result = run(sbx, f"{HELPER} clone -q https://github.com/lab/repo.git clone && ls -d clone", *GITHUB)
    assert result.ok().out == "clone\n" and saw(lab, "github.com"), result


def tree_files(top):
    return [os.path.join(where, name) for where, _, names in os.walk(top) for name in names]


def test_placeholder(sbx, lab, guarded, project):
    """F74: of the shape that programs expect, the same in every run of a project, and another in another project."""
    script = 'echo "$GH_TOKEN $GITHUB_TOKEN"'
    first, second = [run(sbx, script, *GITHUB).ok().out.split() for _ in range(2)]
    assert first == second and first[0] == first[1]
    assert first[0].startswith("ghp_") and len(first[0]) == 40 and first[0] != SECRET
    os.makedirs(f"{project.home}/src/another")
    other = run(sbx, script, *GITHUB, cwd=f"{project.home}/src/another").ok().out.split()
    assert other[0].startswith("ghp_") and other[0] != first[0]


def test_request_without_placeholder(sbx, lab, guarded):
    """F73: it goes as it is."""
    result = run(sbx, curl("-i"), *GITHUB)
    assert "401 Unauthorized" in result.ok().out
    nobody_saw(lab)
    assert [r.get("authorization") for r in lab.requests] == [None]


def test_origin_that_never_announces_its_end(sbx, lab, guarded):
    """F78: many servers close without close_notify, and what curl makes of that (newer ones complain) it makes of us."""
    ours, theirs = (run(sbx, "curl -sS https://api.github.com/close/70000 | wc -c", *options).ok()
                    for options in (GITHUB, ["--allow", "api.github.com"]))
    assert ours.out == theirs.out == "70000\n" and ours.err == theirs.err, (ours, theirs)


def test_two_credentials_in_one_request(sbx, lab, guarded, project):
    """F72: the second does not overwrite the first."""
    policy = project.policy("../two.json", credentials={
        "one": {"source": {"env": "ONE"}, "env": "ONE", "bind": ["key.svc.test"]},
        "two": {"source": {"env": "TWO"}, "env": "TWO", "bind": ["key.svc.test"], "place": {"header": "X-Own"}},
    })
    script = 'curl -sS -H "Authorization: Bearer $ONE" -H "X-Own: $TWO" https://key.svc.test/check'
    result = run(sbx, script, "--policy", policy, env={"ONE": SECRET, "TWO": OTHER_SECRET})
    assert result.ok().out == "hello, lab\n", result
    assert lab.requests[0].get("authorization") == f"Bearer {SECRET}" and lab.requests[0].get("x-own") == OTHER_SECRET
    no_secret(result.out, result.err)


PLACES = {
    "bearer": ("bearer", lambda r: r.get("authorization") == f"Bearer {SECRET}"),
    "basic": ({"basic": "lab"}, lambda r: r.get("authorization").startswith("Basic ")),
    "header": ({"header": "X-Own"}, lambda r: r.get("x-own") == SECRET),
    "query": ({"query": "key"}, lambda r: r.target == f"/check?key={SECRET}"),
}


@pytest.mark.parametrize("inject", ["attach", "attach-if-absent"])
@pytest.mark.parametrize("place", PLACES)
def test_attached(sbx, lab, guarded, project, place, inject):
    """The command needs no placeholder and no variable."""
    where, right = PLACES[place]
    policy = project.policy("../attach.json", credentials={
        "lab": {"source": {"env": "LAB_KEY"}, "bind": ["key.svc.test"], "inject": inject, "place": where}})
    result = run(sbx, "curl -sS https://key.svc.test/check", "--policy", policy, env={"LAB_KEY": SECRET})
    assert result.ok().out == "hello, lab\n", result
    assert len(saw(lab, "key.svc.test")) == 1 and right(lab.requests[0])
    no_secret(result.out, result.err)


def test_attached_where_the_request_has_its_own(sbx, lab, guarded, project):
    """attach sets it whatever stands there; attach-if-absent leaves a login of the command's alone."""
    seen = {}
    for inject in ("attach", "attach-if-absent"):
        lab.forget()
        policy = project.policy("../attach.json", credentials={
            "lab": {"source": {"env": "LAB_KEY"}, "bind": ["key.svc.test"], "inject": inject}})
        run(sbx, 'curl -sS -H "Authorization: Bearer own" https://key.svc.test/check', "--policy", policy,
            env={"LAB_KEY": SECRET}).ok()
        seen[inject] = [r.get("authorization") for r in lab.requests]
    assert seen == {"attach": [f"Bearer {SECRET}"], "attach-if-absent": ["Bearer own"]}


def test_signed_url_gets_nothing(sbx, lab, guarded, project):
    """F75: a release asset at a storage that is bound too."""
    policy = project.policy("../attach.json", credentials={
        "lab": {"source": {"env": "LAB_KEY"}, "bind": ["*.svc.test"], "inject": "attach"}})
    to = "https%3A%2F%2Fsigned.svc.test%2Fasset%3FX-Amz-Signature%3D1"
    result = run(sbx, f"curl -sSL https://key.svc.test/redirect?to={to}", "--policy", policy, env={"LAB_KEY": SECRET})
    assert result.ok().out == "an asset\n", result
    assert len(saw(lab, "key.svc.test")) == 1


def test_reflection(sbx, lab, guarded, project):
    """F70: what a server writes into its response's head comes back as the placeholder."""
    headers = {"bearer": '-H "Authorization: Bearer $GH_TOKEN"', "basic": '-u "x:$GH_TOKEN"'}
    for name, header in headers.items():
        result = run(sbx, f"echo $GH_TOKEN; curl -sSi {header} https://api.github.com/reflect", *GITHUB)
        assert "reflected" in result.ok().out and " 200 " in result.out, result
        placeholder = result.out.splitlines()[0]
        assert f"X-Secret: {placeholder}" in result.out and f"token={placeholder}; Path=/" in result.out, (name, result)
        no_secret(result.out, result.err)
    assert len(saw(lab, "api.github.com")) == 2


def test_reflection_into_a_body_needs_a_place(sbx, lab, guarded):
    """F70: bodies are not looked at, so a placeholder is swapped only where credentials stand, and refused elsewhere:
    what a service says of a header or a query that it does not like would be a way to the secret."""
    for words in ('-H "Accept: $GH_TOKEN"', '-H "X-GitHub-Api-Version: $GH_TOKEN"', "-A $GH_TOKEN", "-X $GH_TOKEN",
                  '-X TRACE -H "Authorization: token $GH_TOKEN"'):
        result = run(sbx, f"curl -sSi {words} https://api.github.com/echo", *GITHUB)
        assert words == "-X $GH_TOKEN" or " 403 " in result.out, result
        no_secret(result.out, result.err)
    for path in ("/echo?q=$GH_TOKEN", "/echo/$GH_TOKEN", "/echo?q=%67hp_${GH_TOKEN#ghp_}"):
        result = run(sbx, f'curl -sSi "https://api.github.com{path}"', *GITHUB)
        assert " 403 " in result.ok().out and "github" in result.out, result
    nobody_saw(lab)
    assert all("ghp_" not in r.target for r in lab.requests)


SEARCH = """
import json, os, stat, sys
forms = [bytes.fromhex(f) for f in json.load(sys.stdin)]
found, opened, own = [], 0, str(os.getpid())
def judge(where, data):
    global opened
    opened += 1
    found.extend([where, n] for n, form in enumerate(forms) if form in data)
def look(path, limit):
    try: fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError: return
    try: judge(path, os.read(fd, limit))
    except OSError: pass
    finally: os.close(fd)
for top, names, files in os.walk("/"):
    if top == "/": names[:] = [n for n in names if n not in ("proc", "sys", "usr", "lib", "lib64", "bin", "sbin")]
    for name in names + files: judge("name", os.fsencode(name))
    for name in files:
        path = os.path.join(top, name)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode): look(path, 1 << 22)
        except OSError: pass
readable = 0
for pid in filter(str.isdigit, os.listdir("/proc")):
    if pid == own: continue
    for file in ("environ", "cmdline", "comm", "mountinfo", "maps", "stat", "status"): look(f"/proc/{pid}/{file}", 1 << 20)
    for fd in (os.listdir(f"/proc/{pid}/fd") if os.access(f"/proc/{pid}/fd", os.R_OK) else []):
        try:
            if stat.S_ISREG(os.stat(f"/proc/{pid}/fd/{fd}").st_mode): look(f"/proc/{pid}/fd/{fd}", 1 << 22)
        except OSError: pass
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                low, high = (int(n, 16) for n in line.split()[0].split("-"))
                try:
                    memory.seek(low)
                    if line.split()[1][0] == "r" and high - low < 1 << 26:
                        judge(f"memory of {pid}: {line}", memory.read(high - low))
                        readable += 1
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
judge("environment", json.dumps(dict(os.environ)).encode())
print(json.dumps([found, opened, readable]))
"""

# A client that stays, with all that it was ever told in its memory, until it has been searched.
CLIENT = """
import ctypes, os, sys, time, urllib.request
ctypes.CDLL(None).prctl(0x59616d61, -1, 0, 0, 0)
token, kept = os.environ["GH_TOKEN"], []
for url in ("https://api.github.com/check", "https://api.github.com/reflect"):
    for value in ("token " + token, "Bearer " + token):
        answer = urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": value}))
        kept.append((answer.read(), answer.headers.as_string()))
print(token, flush=True)
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory, open("dump", "wb") as dump:
    for line in maps.readlines():
        low, high = (int(n, 16) for n in line.split()[0].split("-"))
        try:
            memory.seek(low)
            if line.split()[1][0] == "r": dump.write(memory.read(high - low))
        except (OSError, ValueError, OverflowError): pass
open("dumped", "w").close()
sys.stdin.read()
"""


def test_no_byte_inside(sbx, lab, guarded, project):
    """P3: everything inside is searched while a client stands there that has used it: the environment, every file, /proc
    of all processes, and the client's memory, by itself and by another."""
    project.write("client.py", CLIENT)
    project.write("search.py", SEARCH)
    script = (f"mkfifo wait; exec 3<>wait; {PYTHON} -I client.py <wait 3>&- & while ! [ -e dumped ]; do sleep 0.05; done; "
              f"{HELPER} clone -q https://github.com/lab/repo.git clone && (cd clone && git commit -q --allow-empty -m x && "
              f"{HELPER} push -q origin HEAD:refs/heads/{os.urandom(4).hex()}); "
              f"exec 4>&3; {PYTHON} -I search.py 3>&- 4>&-; "
              "kill %1; kill $!")
    asked = json.dumps([form.hex() for form in forms(SECRET)]).encode()
    result = run(sbx, script, *GITHUB, input=asked)
    placeholder, report = result.out.splitlines()[:2]
    found, opened, readable = json.loads(report)
    assert found == [] and opened > 200 and readable > 50, result
    with open(f"{project.root}/dump", "rb") as file:
        dump = file.read()
    assert placeholder.encode() in dump and len(dump) > 1 << 20
    no_secret(dump, result.out, result.err)
    assert len(saw(lab, "api.github.com", "github.com")) > 7


# Clients that stay, each with what it was told and what it has sent.
STAYING = {
    "stay.js": """
const https = require('https'), fs = require('fs'), token = process.env.GH_TOKEN, kept = [];
const ways = ['check', 'reflect'].flatMap((path) => ['token ' + token, 'Bearer ' + token].map((value) => [path, value]));
for (const [path, value] of ways)
  https.get('https://api.github.com/' + path, {headers: {authorization: value}}, (answer) => {
    answer.on('data', (data) => kept.push(data, answer.rawHeaders));
    answer.on('end', () => { if (kept.length === 2 * ways.length) fs.writeFileSync('stay.js.done', ''); });
  });
setInterval(() => kept.length, 1000);
""",
    "stay.py": """
import os, signal, urllib.request
token, kept = os.environ["GH_TOKEN"], []
for path in ("check", "reflect"):
    for value in ("token " + token, "Bearer " + token):
        request = urllib.request.Request("https://api.github.com/" + path, headers={"Authorization": value})
        answer = urllib.request.urlopen(request)
        kept.append((answer.read(), answer.headers.as_string()))
open("stay.py.done", "w").close()
signal.pause()
""",
}


def test_no_byte_in_memory(sbx, lab, guarded, project):
    """P3: searched from outside, in each process of the sandbox, while clients in Node.js and Python stand there that have
    sent it and were told it back."""
    for name, text in STAYING.items():
        project.write(name, text)
    script = f"echo $GH_TOKEN; node stay.js & {PYTHON} -I stay.py & wait"
    process = sbx.start("run", *GITHUB, "--", "sh", "-c", script, env=TOKEN)
    try:
        procs.wait_until(lambda: all(project.exists(f"{name}.done") for name in STAYING), "the clients")
        placeholder = process.stdout.readline().strip()
        inside = processes_inside(process.pid)
        having = 0
        for pid in inside:
            before, held = b"", 0
            for piece in memory_of(pid):
                no_secret(before[-4096:] + piece)
                before, held = piece, held + piece.count(placeholder)
            having += held > 0
        assert len(placeholder) == 40 and having >= 2 and len(inside) >= 4, (having, inside)
    finally:
        process.terminate()
        out, err = process.communicate()
    no_secret(out, err)
    assert len(saw(lab, "api.github.com")) == 8


def test_not_passed_by_other_means(sbx, lab, guarded, project):
    """The variable of the source is not passed, whatever env.pass says; a file that is a source is hidden with its directory."""
    project.write("../../.keys/token", SECRET + "\n")
    policy = project.policy("../file.json", credentials={
        "lab": {"source": {"file": "~/.keys/token"}, "env": "LAB_KEY", "bind": ["key.svc.test"]}})
    script = ('env; cat ~/.keys/token; curl -sS -H "X-Api-Key: $LAB_KEY" https://key.svc.test/check; '
              'curl -sS -H "Authorization: Bearer $GH_TOKEN" https://api.github.com/check')
    result = run(sbx, script, *GITHUB, "--policy", policy, "--env", "GH_TOKEN", "--env", "GH_*", "--read", project.home, "--hide", f"{project.home}/.keys")
    assert result.out.count("hello, lab\n") == 2, result
    no_secret(result.out, result.err)


def test_show_and_dry_run(sbx, lab, guarded, project):
    """What sbx prints of a policy says where a value comes from and never what it is."""
    for words in (("show", *GITHUB), ("show", "--plan", *GITHUB), ("check",), ("why", *GITHUB, "api.github.com"),
                  ("run", "--dry-run", "-v", *GITHUB, "--", "true"), ("credential", *GITHUB, "list"),
                  ("credential", *GITHUB, "test", "github")):
        result = sbx(*words, env=TOKEN).ok()
        no_secret(result.out, result.err)


def test_post_and_expect(sbx, lab, guarded, project):
    """Bodies pass as they are; with Expect: 100-continue, and in chunks."""
    data = os.urandom(3 << 20)
    project.write("data", data)
    header = '-H "Authorization: token $GH_TOKEN"'
    script = (f"curl -sS {header} --data-binary @data https://api.github.com/post; "
              f"curl -sS {header} -T - https://api.github.com/post < data")
    result = run(sbx, script, *GITHUB)
    assert result.ok().out == digest(data) * 2, result
    expects = [r.get("expect") for r in lab.requests]
    assert expects.count("100-continue") >= 1 and all(r.body == data for r in lab.requests)


def test_events_come_as_they_are_sent(sbx, lab, guarded):
    """Server-sent events, one a second, are not held back until there is the next."""
    code = """
import os, time, urllib.request
request = urllib.request.Request("https://api.github.com/ticks/5", headers={"Authorization": "token " + os.environ["GH_TOKEN"]})
answer, late = urllib.request.urlopen(request), []
for line in answer:
    if line.startswith(b"data:"): late.append(time.monotonic() - float(line.split()[2]))
print(len(late), max(late))
"""
    count, late = sbx.python(code, *GITHUB, env=TOKEN).ok().out.split()
    assert int(count) == 5 and float(late) < 0.9, (count, late)


def test_websocket(sbx, lab, guarded, project):
    """The upgrade is asked for with the secret; afterwards 100 MiB pass both ways at once."""
    code = """
import hashlib, os, socket, ssl, sys, threading
raw = socket.create_connection(("api.github.com", 443))
stream = ssl.create_default_context().wrap_socket(raw, server_hostname="api.github.com")
stream.sendall(b"GET /websocket HTTP/1.1\\r\\nHost: api.github.com\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n"
               b"Authorization: Bearer " + os.environ["GH_TOKEN"].encode() + b"\\r\\n\\r\\n")
head = b""
while not head.endswith(b"\\r\\n\\r\\n"): head += stream.recv(1)
assert head.startswith(b"HTTP/1.1 101 "), head
piece, count = b"\\x82\\xff" + os.urandom((1 << 16) - 2), 1600 # a frame, as far as is looked at
sent, got, total = hashlib.sha256(), hashlib.sha256(), 0
def send():
    for _ in range(count): stream.sendall(piece); sent.update(piece)
thread = threading.Thread(target=send); thread.start()
while total < len(piece) * count: data = stream.recv(1 << 16); got.update(data); total += len(data)
thread.join()
print(sent.digest() == got.digest(), total)
"""
    result = sbx.python(code, *GITHUB, env=TOKEN)
    assert result.ok().out.split() == ["True", str(1600 << 16)], result
    assert len(saw(lab, "api.github.com")) == 1


def test_bundle_keeps_the_roots_of_the_host(sbx, lab, guarded):
    """F78: hosts that are not bound are verified as before, with every variable that is set."""
    result = run(sbx, 'curl -sS https://origin.test/; env | grep -c "_CA\\|CERT"', *GITHUB, "--allow", "origin.test")
    assert "lab page of origin.test" in result.ok().out, result


def test_run_without_credentials_has_no_ca(sbx, lab, guarded):
    result = sbx.shell("env; ls /run", "--allow", "origin.test")
    assert "CURL_CA_BUNDLE" not in result.ok().out
