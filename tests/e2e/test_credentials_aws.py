"""Requests that are signed (AWS Signature Version 4): programs sign with a placeholder, and the service, where botocore
checks with the real key, finds what the key would have signed. Inside there is no byte of the key."""
import json
import re

import pytest

from harness.sbx import PYTHON
from lab.aws import KEY_ID, OWN, SECRET_KEY, TOKEN, source
from lab.guarded import forms

AWS = ["--credential", "aws"]
HEAD = """
import os, boto3
from botocore.config import Config
def client(service, region="us-east-1", **more):
    config = dict(retries={"total_max_attempts": 1}, **more.pop("config", {}))
    return boto3.client(service, region_name=region, config=Config(**config), **more)
def told(call, **more):
    try: call(**more)
    except Exception as error: return getattr(error, "response", {}).get("ResponseMetadata", {}).get("HTTPStatusCode"), str(error)
    return 200, ""
s3 = client("s3")
"""


def no_key(*texts):
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode()
        for secret in (SECRET_KEY, TOKEN, KEY_ID):
            found = [form for form in forms(secret) if form in data]
            assert not found, (found, data[:4000])


def boto(sbx, code, *options, env=None, ok=True, **more):
    env = {"AWS_EC2_METADATA_DISABLED": "true", **(source() if env is None else env)}
    result = sbx.run(*(options or AWS), "--env", "AWS_EC2_METADATA_DISABLED", "--", PYTHON, "-I", "-c", HEAD + code, env=env,
                     **more)
    no_key(result.out, result.err)
    return result.ok() if ok else result


def denials(path):
    with open(path, encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["verdict"] == "deny"]


ODD = ["plain", "a b+c", "höhe/✓", "x//y", "a/./b/../c", "~tilde.-_", "per%20cent", "(a)!*'&=?#", "=;:@,$"]


def test_objects(sbx, lab, aws):
    """Names that are encoded in one way by one part of the world and otherwise by another."""
    code = f"""
for key in {ODD!r}:
    s3.put_object(Bucket="lab-bucket", Key=key, Body=key.encode())
    assert s3.get_object(Bucket="lab-bucket", Key=key)["Body"].read() == key.encode(), key
for prefix in ("", "a b+c", "h", "a/./b"):
    print(sorted(o["Key"] for o in s3.list_objects_v2(Bucket="lab-bucket", Prefix=prefix).get("Contents", [])))
"""
    result = boto(sbx, code)
    expected = [sorted(key for key in ODD if key.startswith(prefix)) for prefix in ("", "a b+c", "h", "a/./b")]
    assert result.out.splitlines() == [str(keys) for keys in expected] and aws.faults == [], (result, aws.faults)
    assert aws.objects == {key: key.encode() for key in ODD} and all("took 18x" in message for message in result.messages)


def test_inside(sbx, lab, aws):
    """Placeholders of the right shape; and what comes back in a head is one again, the answer to a PUT has it all."""
    aws.forget(TOKEN)
    result = boto(sbx, """
fields = s3.put_object(Bucket="lab-bucket", Key="k", Body=b"")["ResponseMetadata"]["HTTPHeaders"]
print(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"], "AWS_SESSION_TOKEN" in os.environ)
print(fields["x-key"], fields["x-secret"], fields["x-token"])
print(open("/proc/self/environ").read(), open("/proc/1/environ").read())
""", env={**source(), "AWS_SESSION_TOKEN": TOKEN})
    lines = result.out.splitlines()
    key_id, secret, token = lines[0].split()
    assert re.fullmatch("AKIA[A-Z2-7]{16}", key_id) and re.fullmatch("[A-Za-z0-9]{40}", secret) and token == "False"
    assert lines[1].split() == [key_id, secret, secret] and aws.faults == [], (lines, aws.faults)


def test_services(sbx, lab, aws):
    """Paths that are encoded twice, and bodies whose hash is in no header."""
    code = """
print(client("sts").get_caller_identity()["Account"])
print(client("lambda").get_function(FunctionName="arn:aws:lambda:us-east-1:1:function:a b")["Configuration"]["FunctionName"])
print(client("dynamodb").list_tables(Limit=3)["ResponseMetadata"]["HTTPStatusCode"])
"""
    lines = boto(sbx, code).out.splitlines()
    assert lines[0] == "123456789012" and "%3Aus-east-1%3A" in lines[1] and lines[2] == "200" and aws.faults == [], lines
    assert [r.get("x-amz-content-sha256") for r in lab.requests] == [None] * 3


UPLOADS = {
    "hash": ('', 'Config(s3={"payload_signing_enabled": True})'),
    "unsigned": ('', 'Config(s3={"payload_signing_enabled": False})'),
    "trailer": (', ChecksumAlgorithm="CRC32"', "Config()"),
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_upload(sbx, lab, aws, kind):
    """Streamed: larger than what is kept of a body."""
    argument, config = UPLOADS[kind]
    size = (17 if kind == "hash" else 3) << 20
    code = f"""
import io
s3 = boto3.client("s3", region_name="us-east-1", config={config})
s3.put_object(Bucket="lab-bucket", Key="k", Body=io.BytesIO(b"0123456789abcdef" * {size // 16}){argument})
print(len(s3.get_object(Bucket="lab-bucket", Key="k")["Body"].read()))
"""
    result = boto(sbx, code)
    sums = {r.get("x-amz-content-sha256") for r in lab.requests if r.method == "PUT"}
    assert result.out == f"{size}\n" and aws.faults == [] and len(sums) == 1, (result, aws.faults)
    assert aws.objects["k"] == b"0123456789abcdef" * (size // 16)
    wanted = {"hash": "[0-9a-f]{64}", "unsigned": "UNSIGNED-PAYLOAD", "trailer": "STREAMING-UNSIGNED-PAYLOAD-TRAILER"}[kind]
    # The SDK of one release takes for granted what that of another has to be told.
    assert re.fullmatch(f"{wanted}|STREAMING-UNSIGNED-PAYLOAD-TRAILER", sums.pop())


def test_region_redirect(sbx, lab, aws):
    """F75: the SDK goes to the other region and signs for it."""
    result = boto(sbx, 'print(s3.list_objects_v2(Bucket="moved.bucket")["ResponseMetadata"]["HTTPStatusCode"])\n')
    hosts = [r.host for r in lab.requests]
    assert result.out == "200\n" and aws.faults == [], (result, aws.faults)
    assert hosts[0] == "s3.amazonaws.com" and hosts[-1] == "s3.eu-west-1.amazonaws.com"


def test_other_host(sbx, lab, guarded, aws, project):
    """F71: a host that the key is not bound to gets no signature of it."""
    audit = f"{project.home}/audit.jsonl"
    policy = project.policy("../two.json", credentials={
        "aws": {}, "lab": {"source": {"env": "LAB"}, "env": "LAB", "bind": ["key.svc.test"]}}, network={
            "allow": ["other.svc.test", "s3.amazonaws.com:80", "lab-bucket.s3.amazonaws.com:80"]})
    code = """
for url in ("https://key.svc.test", "http://s3.amazonaws.com", "https://other.svc.test"):
    print(told(client("s3", endpoint_url=url).get_object, Bucket="lab-bucket", Key="k"))
"""
    result = boto(sbx, code, "--policy", policy, "--audit", audit)
    assert result.out.count("(403,") == 2, result
    assert [line["reason"] for line in denials(audit)] == ["credential-misuse"] * 2
    # A tunnel that nobody looks into: what goes there is signed with the placeholder, and worth nothing.
    assert [r.host for r in lab.requests] == ["other.svc.test"] and aws.fault(lab.requests[0]).startswith("key AKIA")
    no_key(lab.requests[0].raw)


REFUSED = {
    "presigned": ("print(fetch_presigned(s3))", "presigned URL"),
    "presigned, 4": ("print(fetch_presigned(client('s3', config=dict(signature_version='s3v4'))))", "presigned URL"),
}
RAW = """
import http.client, ssl, time, urllib.error, urllib.parse, urllib.request as u
from botocore import auth, awsrequest, credentials
def send(method, url, body=None, keys=(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]), kind=auth.S3SigV4Auth,
         service="s3", fields={}, change=lambda fields: None, more={}, chunks=None):
    request = awsrequest.AWSRequest(method, url, data=body, headers=fields)
    kind(credentials.Credentials(*keys), service, "us-east-1").add_auth(request)
    fields = dict(request.headers.items())
    change(fields)
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, timeout=60, context=ssl.create_default_context())
    connection.set_tunnel(parts.hostname, 443)
    connection.host, connection.port = "127.0.0.1", 3128
    target = parts.path + ("?" + parts.query if parts.query else "")
    connection.putrequest(method, target, skip_host="Host" in fields or "host" in fields, skip_accept_encoding=True)
    for name, value in {**fields, **more}.items(): connection.putheader(name, value)
    if body is not None and chunks is None: connection.putheader("Content-Length", str(len(body)))
    if chunks: connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    if "Expect" in more: assert connection.sock.recv(65536) == b"HTTP/1.1 100 Continue\\r\\n\\r\\n"
    try:
        if chunks:
            for at in range(0, len(body), chunks): connection.send(b"%x\\r\\n%s\\r\\n" % (len(body[at:at + chunks]), body[at:at + chunks]))
            connection.send(b"0\\r\\n\\r\\n")
        elif body is not None: connection.send(body)
    except OSError: pass
    answer = connection.getresponse()
    return answer.status, answer.read().decode("latin-1")
class Later(auth.S3SigV4Auth):
    def _modify_request_before_signing(self, request):
        request.context["timestamp"] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + 3600))
        super()._modify_request_before_signing(request)
def fetch_presigned(s3):
    url = s3.generate_presigned_url("get_object", Params=dict(Bucket="lab-bucket", Key="k"))
    try: return u.urlopen(url).read()
    except urllib.error.HTTPError as error: return error.read().decode()
def edit(name, old, new):
    def change(fields): fields[name] = fields[name].replace(old, new)
    return change
def move(fields): fields["X-Amz-Date"] = fields["X-Amz-Date"][:-2] + ("1Z" if fields["X-Amz-Date"][-2] == "0" else "0Z")
URL = "https://lab-bucket.s3.amazonaws.com/k"
LAMBDA = "https://lambda.us-east-1.amazonaws.com/a"
"""
CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
REFUSED.update({
    "several regions": ('print(send("GET", URL, change=edit("Authorization", "AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256")))', "SigV4A"),
    "chunks": (f'print(send("PUT", URL, b"0;chunk-signature=0", change=lambda fields: fields.update({{"X-Amz-Content-SHA256": "{CHUNKS}"}})))',
               "chunk by chunk"),
    "changed on its way": ('print(send("GET", URL, change=move))', "signature is not right"),
    "for later": ('print(send("GET", URL, kind=Later))', "another time"),
    "another secret": ('print(send("GET", URL, keys=(os.environ["AWS_ACCESS_KEY_ID"], "guessed")))', "signature is not right"),
    "host unsigned": ('print(send("GET", URL, change=edit("Authorization", "host;", "")))', "not signed as"),
    "signed twice": ('print(send("GET", URL, more={"authorization": "AWS4-HMAC-SHA256 Credential=" + os.environ["AWS_ACCESS_KEY_ID"]}))', "not signed as"),
    "key id in the path": ('print(send("GET", URL + os.environ["AWS_ACCESS_KEY_ID"]))', "not its signature"),
    "secret in a field": ('print(send("GET", URL, fields={"x-amz-meta-a": os.environ["AWS_SECRET_ACCESS_KEY"]}))', "not its signature"),
    "large body": ('print(send("POST", LAMBDA, b"x" * (16 << 20) + b"x", kind=auth.SigV4Auth, service="lambda"))', "larger than 16 MiB"),
    "large body in chunks": ('print(send("POST", LAMBDA, b"x" * (16 << 20) + b"x", kind=auth.SigV4Auth, service="lambda", chunks=1 << 20))',
                             "larger than 16 MiB"),
})


@pytest.mark.parametrize("name", REFUSED)
def test_refused(sbx, lab, aws, project, name):
    """With a reason and with what to do, and nothing of it goes out."""
    code, word = REFUSED[name]
    audit = f"{project.home}/audit.jsonl"
    result = boto(sbx, RAW + code, *AWS, "--audit", audit)
    reason = "limit-body" if "large" in name else "credential-signature"
    assert word in result.out and f'"reason":"{reason}"' in result.out and '"fix":"' in result.out, result
    assert [line["reason"] for line in denials(audit)] == [reason] and lab.requests == []


KEPT = {
    "length": '',
    "chunks": ', chunks=70000',
    "expect": ', more={"Expect": "100-continue"}',
}


@pytest.mark.parametrize("kind", KEPT)
def test_body_is_hashed(sbx, lab, aws, kind):
    """A body whose hash is nowhere: kept, and two requests on after the other."""
    code = f"""
for size in (0, 1, 300000, (15 << 20)):
    print(send("POST", LAMBDA, os.urandom(size), kind=auth.SigV4Auth, service="lambda"{KEPT[kind]})[0])
"""
    result = boto(sbx, RAW + code)
    assert result.out == "200\n" * 4 and aws.faults == [], (result, aws.faults)
    assert [len(r.body) for r in lab.requests] == [0, 1, 300000, 15 << 20]


OWN_KEY = {
    "plain": ({}, ""),
    "spelling of the host": ({"Host": "LAB-bucket.s3.amazonaws.com:443"}, ""),
    "hop-by-hop": ({}, ', more={"Connection": "keep-alive", "TE": "trailers", "Keep-Alive": "timeout=5"}'),
}


@pytest.mark.parametrize("kind", OWN_KEY)
def test_key_of_its_own(sbx, lab, aws, kind):
    """Signed with a key that is no placeholder: not a byte of what is signed changes."""
    fields, more = OWN_KEY[kind]
    fields = {"x-amz-meta-b": "two  spaces", "X-Amz-Meta-A": "a", **fields}
    code = f'print(send("PUT", URL + "%20%2B//~?b=2&a=1", b"body", keys={OWN!r}, fields={fields}{more}))'
    result = boto(sbx, RAW + code)
    assert result.out.startswith("(200,") and aws.faults == [], (result, aws.faults)
    request = lab.requests[0]
    assert f"Credential={OWN[0]}/" in request.get("authorization") and request.target == "/k%20%2B//~?b=2&a=1"
    assert request.get("x-amz-meta-b") == "two  spaces" and ("spelling" not in kind or request.get("host").startswith("LAB"))


GIVE = f'{{{{"Version": 1, "AccessKeyId": "{KEY_ID}", "SecretAccessKey": "{SECRET_KEY}"{{more}}}}}}'
SOURCES = {
    "exec": GIVE.format(more=f', "SessionToken": "{TOKEN}", "Expiration": "2999-01-01T00:00:00+00:00"'),
    "file": f"[other]\naws_access_key_id = X\n[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key={SECRET_KEY}\n"
            f"aws_session_token = {TOKEN}\n[later]\naws_access_key_id = Y\n",
}


@pytest.mark.parametrize("kind", SOURCES)
def test_sources(sbx, lab, aws, project, kind):
    """What `aws configure export-credentials` prints, and what ~/.aws/credentials holds."""
    aws.forget(TOKEN)
    path = project.write("../../.aws/credentials", SOURCES[kind])
    option = ["--credential", f"aws=file:{path}" if kind == "file" else f"aws=exec:cat {path}"]
    code = 'print(client("sts").get_caller_identity()["Account"])'
    assert boto(sbx, code, *option, env={}).out == "123456789012\n" and aws.faults == []
    told = sbx("credential", *option, "test", "aws").ok().out
    assert "with the token of a session" in told and ("anew after" in told) == (kind == "exec"), told
    no_key(told)


def test_key_in_a_file_of_another(sbx, lab, project):
    """A file that is shown with placeholders has those of each word of the key as well."""
    path = project.write("../../.tools", f"token = lab-value-of-the-tool\nid = {KEY_ID}\nsecret = {SECRET_KEY}\nsession = {TOKEN}\n")
    policy = project.policy("../files.json", credentials={
        "aws": {}, "lab": {"source": {"env": "LAB"}, "bind": ["key.svc.test"], "file": path}})
    env = {**source(), "AWS_SESSION_TOKEN": TOKEN, "LAB": "lab-value-of-the-tool"}
    result = sbx.shell("cat ~/.tools; echo $AWS_ACCESS_KEY_ID $AWS_SECRET_ACCESS_KEY", "--policy", policy, env=env).ok()
    *lines, last = result.out.splitlines()
    key_id, secret = last.split()
    assert [line.partition(" = ")[2] for line in lines[1:]] == [key_id, secret, secret], result
    no_key(result.out, result.err)


def test_expiry(sbx, lab, aws, project):
    """Asked for again before the old ones end."""
    count = f"{project.home}/count"
    program = project.write("../../give", f"#!/bin/sh\necho x >> {count}\ncat <<END\n" + GIVE.format(
        more=', "Expiration": "$(date -u -d +2sec +%Y-%m-%dT%H:%M:%SZ)"') + "\nEND\n", 0o755)
    code = """
import time
for _ in range(3):
    print(client("sts").get_caller_identity()["Account"])
    time.sleep(2.1)
"""
    result = boto(sbx, code, "--credential", f"aws=exec:{program}", env={})
    with open(count, encoding="utf-8") as file:
        assert result.out == "123456789012\n" * 3 and file.read() == "x\n" * 3 and aws.faults == []


PARTIAL = {
    "no secret": ({"AWS_ACCESS_KEY_ID": KEY_ID}, "AWS_ACCESS_KEY_ID is set and AWS_SECRET_ACCESS_KEY is not"),
    "no id": ({"AWS_SECRET_ACCESS_KEY": SECRET_KEY}, "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not"),
}


@pytest.mark.parametrize("name", PARTIAL)
def test_half_a_key(sbx, lab, project, name):
    env, word = PARTIAL[name]
    result = sbx.run(*AWS, "--", "touch", "started", env=env)
    result.refused("credential aws", word)
    assert not project.exists("started")
    no_key(result.err)
