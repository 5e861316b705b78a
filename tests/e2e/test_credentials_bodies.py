"""Credentials and bodies (P3, F70): placeholders in a path or a body, values in what a service answers."""
import json
from urllib.parse import unquote

import pytest

from harness.sbx import PYTHON
from harness.secrets import no_secret, nobody_saw, saw
from lab.guarded import OTHER_SECRET, SECRET

HOST = "https://key.svc.test"
JSON = "-H 'Content-Type: application/json'"
LIBRARY = f"""{PYTHON} -I -c "
import os, requests
token = os.environ['LAB_KEY']
for body in ({{'data': {{'token': token}}}}, {{'json': {{'token': token}}}}):
    print(requests.post('{HOST}/login', **body).text.strip())
" """
FETCH = f"""node -e "
const token = process.env.LAB_KEY;
(async () => {{
  for (const body of [new URLSearchParams({{token}}), new Blob([JSON.stringify({{token}})], {{type: 'application/json'}}).stream()])
    console.log((await (await fetch('{HOST}/login', {{method: 'POST', body, duplex: 'half',
      headers: body instanceof URLSearchParams ? {{}} : {{'content-type': 'application/json'}}}})).text()).trim());
}})();
" """
LOGINS = {
    "curl, form": [f'curl -sS --data-urlencode "token=$LAB_KEY" {HOST}/login'] * 2,
    "curl, json": [f"""curl -sS {JSON} -d '{{"a": 1, "token": "'$LAB_KEY'"}}' {HOST}/login"""] * 2,
    "curl, chunked": [f'echo -n "token=$LAB_KEY" | curl -sS -T - -X POST -H "Content-Type: application/x-www-form-urlencoded" {HOST}/login'] * 2,
    "python, requests": [LIBRARY],
    "node, fetch": [FETCH],
}


def run(sbx, project, script, *options, secret=OTHER_SECRET, **members):
    """A run with one credential."""
    policy = project.policy("../bodies.json", credentials={
        "lab": {"source": {"env": "LAB_KEY"}, "bind": ["key.svc.test"], "env": "LAB_KEY", "inject": "replace", **members}})
    return sbx.shell(script, "--policy", policy, *options, env={"LAB_KEY": secret})


def audit(project):
    with open(f"{project.home}/audit.jsonl", encoding="utf-8") as file:
        text = file.read()
    no_secret(text)
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", LOGINS)
def test_body(sbx, lab, guarded, project, name):
    """Programs that write a login into a body, as a form, as JSON or as a stream."""
    result = run(sbx, project, "\n".join(LOGINS[name]), place="body")
    assert result.ok().out.split("\n") == ["hello, lab", "hello, lab", ""] and result.messages == [], result
    assert len(saw(lab, "key.svc.test", secret=OTHER_SECRET)) == 2
    assert all(r.get("content-length") == str(len(r.body)) and not r.get("transfer-encoding") for r in lab.requests)
    no_secret(result.out, result.err)


def test_path(sbx, lab, guarded, project):
    """As bots of a chat have it. What the service repeats of it is masked where that is asked for."""
    result = run(sbx, project, f'curl -sS "{HOST}/bot$LAB_KEY/send?x=1"', place="path", scrub="body")
    assert result.ok().out.startswith("you asked for /bot*") and result.out.endswith("/send?x=1\n"), result
    assert [unquote(r.target) for r in lab.requests] == [f"/bot{OTHER_SECRET}/send?x=1"]
    assert [message for message in result.messages if "took 1x a value" in message], result
    no_secret(result.out, result.err)


def test_body_is_not_its_place(sbx, lab, guarded, project):
    """The placeholder passes, is worth nothing, and is told of in the audit and in the summary."""
    result = run(sbx, project, f'curl -sS -d "token=$LAB_KEY" {HOST}/login; curl -sS -d "a=b" {HOST}/post', "--audit",
                 f"{project.home}/audit.jsonl")
    assert result.ok().out.startswith("who are you?\n"), result
    nobody_saw(lab)
    assert [line.get("placeholder_in_body") for line in audit(project) if line["event"] == "request"] == ["lab", None]
    assert [message for message in result.messages if "passed 1x a placeholder" in message], result


@pytest.mark.parametrize("secret", [SECRET, OTHER_SECRET])
def test_mirror(sbx, lab, guarded, project, secret):
    """F70: no byte of a value comes back in a body, though the service has it there in every form; without the search, and
    so in this very test, it would."""
    script = f'curl -sS --compressed -H "Authorization: Bearer $LAB_KEY" {HOST}/mirror'
    plain = run(sbx, project, script, secret=secret)
    assert secret in plain.ok().out, plain
    result = run(sbx, project, script, "--audit", f"{project.home}/audit.jsonl", scrub="body", secret=secret)
    found = json.loads(result.ok().out)
    assert found["mirrored"] == "*" * len(secret) and found["url"].startswith("/?t=*"), result
    no_secret(result.out, result.err)
    line, = [line for line in audit(project) if line["event"] == "request"]
    assert line["scrubbed"] == 6, line
    assert len(saw(lab, "key.svc.test", secret=secret)) == 2
