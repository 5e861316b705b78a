"""HTTP/2 on both ends of a terminated connection, never translated: what the origin speaks the client gets, and a request is
judged and gets its values as one of HTTP/1 is."""
import json

import pytest

from e2e_helpers import h2_bound, h2_inside
from harness.secrets import no_secret, saw
from lab import aws
from lab.guarded import SECRET, digest

TOKEN = {"LAB_KEY": SECRET}
BEARER = '-H "Authorization: Bearer $LAB_KEY"'
CURL = "curl -sS -w '%{http_version} %{http_code}\\n'" # both end what it prints


@pytest.fixture
def bound(project):
    return h2_bound(project)


def run(sbx, script, *options, **more):
    result = sbx.shell(script, *options, env=TOKEN, **more)
    no_secret(result.out, result.err)
    return result


@pytest.mark.parametrize("offer, speaks, spoken", [
    ("--http2", ("h2", "http/1.1"), "2"), ("--http1.1", ("h2", "http/1.1"), "1.1"), ("--http2", ("http/1.1",), "1.1"),
    ("--no-alpn", ("h2", "http/1.1"), "1.1"), ("--http2", (), "1.1"),
])
def test_mirrored(sbx, lab, http2, bound, offer, speaks, spoken):
    """What the client offers the origin is offered, and what that chooses the client gets."""
    if speaks:
        http2.place("h2.test", protocols=speaks)
    else:
        http2.servers.placed[("192.0.2.70", 443)] = http2.servers.tls(http2.certificate)
    result = run(sbx, f"{CURL} {offer} {BEARER} https://h2.test/check", *bound)
    http2.place("h2.test")
    assert result.ok().out == f"hello, lab\n{spoken} 200\n", result
    assert len(saw(lab, "h2.test")) == 1 and lab.requests[0].version == ("HTTP/2" if spoken == "2" else "HTTP/1.1")


def test_judged(sbx, lab, http2, bound, project):
    """F54, F71, F79: the secret goes to the host that was verified, in its place, or nothing goes; one line for each."""
    audit = f"{project.home}/audit.jsonl"
    answers, result = h2_inside(sbx, """
client = Client()
seen = [client.ask(), client.ask(login=False)]
for words in ({"authority": "evil.test"}, {"authority": "h2.test:8443"}, {"authority": "evil.test", "login": False},
              {"scheme": "http"}, {"path": "/check?q=" + TOKEN}, {"path": "/" + TOKEN}, {"method": "TRACE"}):
    seen.append(client.ask(**words))
for field in (("host", "evil.test"), ("accept", "TOKEN"), ("x-own", "TOKEN"), ("host", "h2.test")):
    seen.append(client.ask("/check", field))
seen.append(client.ask("/status/204", method="HEAD", authority="evil.test"))
seen.append(client.ask("/check", authority="h2.test:443"))
print(json.dumps([[a.status, a.body.decode(), a.reset] for a in seen]))
""", *bound, "--audit", audit)
    statuses = [status for status, _, _ in answers]
    assert statuses == [200, 401, 403, 403, 403, 400, 403, 403, 403, 403, 403, 403, 200, 403, 200], answers
    reasons = [json.loads(body)["reason"] for status, body, _ in answers if body.startswith("{")]
    assert reasons == ["identity-mismatch"] * 3 + ["bad-request"] + ["credential-misuse"] * 3 + ["identity-mismatch"] + ["credential-misuse"] * 2, answers
    assert answers[13][1] == "" and all("lab" in body for _, body, _ in answers if "misuse" in body)
    assert [r.target for r in lab.requests] == ["/check"] * 4 and len(saw(lab, "h2.test")) == 3
    assert all(r.get("authority") == "h2.test" and r.get("host") is None for r in lab.requests)
    with open(audit) as file:
        lines = [line for line in map(json.loads, file) if line["event"] == "request"]
    assert [line.get("reason") for line in lines if line["verdict"] != "allow"] == reasons + ["identity-mismatch"], lines
    assert all(line["path"] == "/check" and line["credential"] == "lab" for line in lines if line["verdict"] == "allow" and "credential" in line)
    assert any("lab" in message for message in result.messages), result


def test_reflection(sbx, lab, http2, bound):
    """F70: in a 103, the head and the trailer."""
    answer, _ = h2_inside(sbx, """
answer = Client().ask("/reflect")
print(json.dumps([answer.heads, answer.trailer, answer.body.decode(), TOKEN]))
""", *bound)
    heads, trailer, body, placeholder = answer
    assert [dict(head)[":status"] for head in heads] == ["103", "200"] and body == "reflected\n"
    assert dict(heads[0])["x-early"] == dict(heads[1])["x-secret"] == dict(trailer)["x-late"] == placeholder, answer
    assert len(saw(lab, "h2.test")) == 1


def test_placeholder_in_body(sbx, lab, http2, bound, project):
    """It passes as it is, is worth nothing, and is told of, wherever the body is cut; a part of one is none."""
    audit = f"{project.home}/audit.jsonl"
    answers, result = h2_inside(sbx, """
client, token = Client(), TOKEN.encode()
seen = [client.ask("/check", login=False, method="POST", body=b'{"token":"' + token + b'"}')]
stream = client.begin("/check", login=False, method="POST", end=False)
for at in range(len(token)): client.send(stream, token[at:at + 1])
client.send(stream, b"", end=True)
seen += [client.finish(stream), client.ask("/check", method="POST", body=token[:-1] + b"!"), client.ask("/check")]
print(json.dumps([a.status for a in seen]))
""", *bound, "--audit", audit)
    assert answers == [401, 401, 200, 200], answers
    with open(audit) as file:
        lines = [line for line in map(json.loads, file) if line["event"] == "request"]
    assert [line.get("placeholder_in_body") for line in lines] == ["lab", "lab", None, None], lines
    assert [message for message in result.messages if "passed 2x a placeholder" in message], result


def test_path_is_its_place(sbx, lab, http2, project):
    policy = project.policy("../h2.json", credentials={
        "lab": {"source": {"env": "LAB_KEY"}, "env": "LAB_KEY", "bind": ["h2.test"], "place": "path"}})
    result = run(sbx, f"{CURL} -o /dev/null --http2 https://h2.test/bot$LAB_KEY/send?x=1", "--policy", policy)
    assert result.ok().out.startswith("2 ") and [r.target for r in lab.requests] == [f"/bot{SECRET}/send?x=1"], result


def test_messages(sbx, lab, http2, bound):
    """Each part of a message passes as what it is."""
    answers, _ = h2_inside(sbx, """
client = Client()
seen = [client.ask("/hints"), client.ask("/status/204"), client.ask("/status/304"), client.ask("/large/100", method="HEAD"),
        client.ask("/trailers"), client.ask("/trailers", method="POST", body=b"x" * 100, trailer=[("x-end", "1"), ("x-more", "2")]),
        client.ask("/echo", ("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-empty", ""), ("proxy-x", "1"),
                   login=False, method="POST", body=b"", trailer=[("x-end", "1")]),
        client.ask("/echo", ("te", "gzip")), client.ask("/check", ("connection", "close")), client.ask("/check", ("X-Upper", "1")),
        client.ask("/large/300000")]
print(json.dumps([[a.heads, a.body.decode("latin-1"), a.trailer, a.reset] for a in seen]))
""", *bound)
    assert all(a[0] or a[3] for a in answers), answers
    hints, empty, unchanged, head, trailer, both, echo, te, connection, upper, large = answers
    assert [dict(h)[":status"] for h in hints[0]] == ["103", "200"] and hints[1] == "after hints\n" and "link" in dict(hints[0][0])
    assert dict(empty[0][0])[":status"] == "204" and dict(unchanged[0][0])[":status"] == "304" and empty[1] == unchanged[1] == ""
    assert dict(head[0][0])[":status"] == "200" and trailer[1:3] == ["with a trailer\n", [["x-sum", "done"]]]
    assert both[1:3] == ["x" * 100, [["x-sum", "done"]]]
    seen = json.loads(echo[1])
    assert seen["trailer"] == [["x-end", "1"]] and seen["body"] == digest(b"")
    fields = [tuple(field) for field in seen["fields"]]
    assert ("cookie", "a=1; b=2") in fields and ("te", "trailers") in fields
    assert ("x-empty", "") in fields and "proxy-x" not in dict(fields) and fields[3] == (":path", "/echo")
    assert [each[3] for each in (te, connection, upper)] == [1, 1, 1], answers
    assert len(large[1]) == 300000 and large[3] is None


def test_limits_of_heads(sbx, lab, http2, bound):
    """As HTTP/1 has them; the connection goes on."""
    answers, _ = h2_inside(sbx, """
client = Client()
seen = [client.ask("/check", *fields) for fields in ([("x-a", "a" * 1000)] * 60, [("x-a", "a" * 1000)] * 70, [("x-a", "b")] * 252,
                                                     [("x-a", "b")] * 256)]
seen += [client.ask("/large-head/60"), client.ask("/large-head/70"), client.ask("/check")]
print(json.dumps([[a.status, json.loads(a.body)["reason"] if a.body.startswith(b"{") else ""] for a in seen]))
""", *bound)
    assert answers == [[200, ""], [431, "limit-head"], [200, ""], [431, "limit-head"], [200, ""], [502, "bad-response"], [200, ""]], answers


def test_ends(sbx, lab, http2, bound):
    """Early answers, resets with their codes, GOAWAY and lost connections pass as what they are."""
    answers, _ = h2_inside(sbx, """
client, seen = Client(), []
early = client.begin("/early", method="POST", end=False)
seen.append(client.finish(early))
client.until(lambda: client.answers[early].reset is not None)
seen += [client.ask("/reset/7"), client.ask("/reset/0"), client.ask("/reset-late/8"), client.ask("/check")]
late = client.begin("/silent")
client.ask("/check")
client.h2.reset_stream(late, 8); client.flush()
seen.append(client.ask("/check"))
silent = client.begin("/silent")
going = client.ask("/goaway")
seen.append(going)
client.h2.reset_stream(silent, 8); client.flush()
code = client.drain()
for path in ("/hangup", "/hangup-late"):
    other = Client()
    kept = other.begin("/silent")
    seen.append(other.ask(path)); seen.append(other.finish(kept)); other.drain()
last = Client()
large = last.begin("/large/100000")
last.h2.close_connection(); last.flush()
last.h2.state_machine.state = h2.connection.ConnectionState.CLIENT_OPEN
assert len(last.finish(large).body) == 100000 and last.drain() == 0 # what it has asked for still comes
print(json.dumps([code, [[a.status, a.body.decode(), a.reset] for a in seen]]))
""", *bound)
    code, (early, refused, nothing, cut, after, again, going, *lost) = answers
    assert early == [200, "early\n", 0], answers
    assert [refused, nothing, cut, after] == [[None, "", 7], [None, "", 0], [200, "half", 8], [200, "hello, lab\n", None]] or cut[2] == 8, answers
    assert again == [200, "hello, lab\n", None] and 8 in http2.servers.resets
    assert code == 0 and going == [200, "going\n", None], answers
    gone, kept, half, kept_too = lost
    assert gone[0] == 502 and json.loads(gone[1])["reason"] == "upstream-closed" and kept[0] == kept_too[0] == 502, answers
    assert half[0] == 200 and half[2] == 2, answers


def test_unverified_origin(sbx, lab, http2, bound):
    """Who offers HTTP/2 first is told in HTTP/2, others in HTTP/1.1; nothing goes to the origin."""
    url = "https://h2untrusted.test/check"
    result = run(sbx, f"{CURL} --http2 {BEARER} {url}; {CURL} --http1.1 {BEARER} {url}; {CURL} --http2 -I {url}", *bound)
    second, first, head = result.ok().out.replace("1.1 502\n", "1.1 502\n|").partition("2 502\n")[0], result.out, result.out
    assert first.count("2 502\n") == 2 and first.count("1.1 502\n") == 1 and json.loads(second)["reason"] == "upstream-tls", result
    assert "content-length: " in head and lab.requests == [] and any("h2untrusted.test" in m for m in result.messages), result


def test_rules_on_requests(sbx, lab, http2, bound, project):
    """Each stream is judged by its own method and path, with a credential that is bound and without one."""
    options = ["--allow", json.dumps({"host": "h2.test", "methods": ["GET"], "paths": ["/check", "/large/*"]})]
    code = """
client = Client()
asked = [client.begin(path, method=method, login=False) for method, path in
         (("GET", "/large/10"), ("POST", "/large/10"), ("GET", "/status/200"), ("GET", "/check?x=1"), ("GET", "/large/../x"))]
asked.append(client.begin("/large/10", ("x-http-method-override", "PUT"), login=False))
seen = [client.finish(number) for number in asked]
print(json.dumps([[a.status, json.loads(a.body)["reason"] if a.status == 403 else ""] for a in seen]))
"""
    expected = [[200, ""], [403, "method-not-allowed"], [403, "path-not-allowed"], [401, ""], [403, "ambiguous-request"],
                [403, "ambiguous-request"]]
    for words in (options, [*bound, *options]):
        lab.forget()
        answers, _ = h2_inside(sbx, code, *words)
        assert answers == expected, answers
        assert sorted(r.target for r in lab.requests) == ["/check?x=1", "/large/10"]


def test_names_that_come_with_an_address(sbx, lab, http2, bound):
    """F54: CONNECT, SNI and :authority agree, or nothing goes."""
    answers, _ = h2_inside(sbx, """
seen = []
for words in ({"connect": "192.0.2.70"}, {"host": "other.test", "connect": "h2.test"}):
    try: seen.append(Client(**words).ask().status)
    except OSError as error: seen.append("refused")
print(json.dumps(seen))
""", *bound, "--allow", "192.0.2.70:443", "--allow", "other.test")
    assert answers == [200, "refused"], answers
    assert len(saw(lab, "h2.test")) == 1


SIGNED = """
from botocore import auth, awsrequest, credentials
keys = credentials.Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
def ask(method, body=None, **fields):
    request = awsrequest.AWSRequest(method, "https://h2.test/status/200", data=body, headers=fields)
    auth.SigV4Auth(keys, "execute-api", "us-east-1").add_auth(request)
    fields = [(name.lower(), value) for name, value in request.headers.items()]
    return client.ask("/status/200", *fields, method=method, body=body, login=False)
client = Client()
hashed = {"x-amz-content-sha256": __import__("hashlib").sha256(b"body").hexdigest()}
seen = [ask("GET"), ask("POST", b"body", **hashed), ask("POST", b"body")]
print(json.dumps([[a.status, json.loads(a.body)["reason"] if a.body else ""] for a in seen]))
"""


def test_signed(sbx, lab, http2, bound, project):
    """AWS Signature Version 4: the origin gets what the key would have signed. A body is not kept to make its hash."""
    policy = project.policy("../aws.json", credentials={"aws": {"bind": ["h2.test"]}})
    code = "import sys, json\nsys.path.append('.')\nfrom h2_client import *\n" + SIGNED
    result = sbx.python(code, "--policy", policy, env=aws.source())
    assert result.json == [[200, ""], [200, ""], [403, "credential-signature"]], result
    assert [r.method for r in lab.requests] == ["GET", "POST"]
    for request in lab.requests:
        request.fields.append(("host", request.get("authority")))
        key, _, region, service, names, signature = aws.AUTHORIZATION.fullmatch(request.get("authorization")).groups()
        assert key == aws.KEY_ID, request.raw
        assert signature == aws.sign(request, key, aws.SECRET_KEY, None, region, service, names.split(";")), request.raw
