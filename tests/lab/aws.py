"""Services of AWS that check signatures, at their real names. What a signature has to be is botocore's word and not ours.

    storage     objects in memory: PUT, GET, DELETE, and a list of the bucket; a bucket that moved answers 301
    others      JSON with what was asked, for a request that is signed right

A request that is not signed right is answered 403 and kept in Services.faults with the reason.
"""
import hashlib
import html
import json
import re
import urllib.parse

ADDRESS = "192.0.2.70"
STORAGE = ("s3.amazonaws.com", "lab-bucket.s3.amazonaws.com", "s3.eu-west-1.amazonaws.com", "lab-bucket.s3.eu-west-1.amazonaws.com")
OTHERS = ("sts.amazonaws.com", "sts.us-east-1.amazonaws.com", "lambda.us-east-1.amazonaws.com",
          "dynamodb.us-east-1.amazonaws.com")
NAMES = STORAGE + OTHERS

KEY_ID = "ASIALABREALKEYIDQ7Z4"
SECRET_KEY = "Lab1/Real+Secret9Key/ofTheAccount8zXw3Qv"
TOKEN = "LabSession//Token+of=the/Account" * 8 + "=="
# A key of somebody who has one inside.
OWN = ("AKIAOWNKEYOFTHEINSID", "own+secret/key-of-the-inside-000000000000")

STORAGE_SERVICES = ("s3", "s3express", "s3-outposts", "s3-object-lambda")
AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, "
                           r"SignedHeaders=([^,]+), Signature=([0-9a-f]{64})")


def sign(request, key_id, secret, token, region, service, names):
    """The signature that botocore makes of what the origin got."""
    from botocore import auth, awsrequest, credentials
    kind = auth.S3SigV4Auth if service in STORAGE_SERVICES else auth.SigV4Auth
    signer = kind(credentials.Credentials(key_id, secret, token), service, region)
    again = awsrequest.AWSRequest(request.method, f"https://{request.get('host')}{request.target}", data=request.body)
    for name, value in request.fields:
        if name.lower() in names:
            again.headers[name] = value
    again.context["timestamp"] = request.get("x-amz-date")
    return signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)


class Services:
    """Puts them into a world.World."""

    def __init__(self, world):
        self.objects = {}
        self.faults = []
        self.token = None # that requests have to have beside the key
        servers = world.servers
        servers.sites.update({name: self.storage for name in STORAGE})
        servers.sites.update({name: self.other for name in OTHERS})
        servers.placed[(ADDRESS, 443)] = servers.tls(world.authority.issue("aws", list(NAMES)))

    def forget(self, token=None):
        self.objects.clear()
        self.faults.clear()
        self.token = token

    def fault(self, request):
        """Why the request is not signed right, or None."""
        match = AUTHORIZATION.fullmatch(request.get("authorization") or "")
        if not match:
            return f"no signature: {request.get('authorization')}"
        key_id, date, region, service, names, signature = match.groups()
        secret, token = {KEY_ID: (SECRET_KEY, self.token), OWN[0]: (OWN[1], None)}.get(key_id, (None, None))
        names = names.split(";")
        given = request.get("x-amz-content-sha256")
        if secret is None or request.get("x-amz-security-token") != token:
            return f"key {key_id}, token {request.get('x-amz-security-token')}"
        if names != sorted(names) or "host" not in names or not request.get("x-amz-date").startswith(date):
            return f"signed: {names}"
        if (token is not None) != ("x-amz-security-token" in names):
            return "the token is not signed"
        if given and re.fullmatch("[0-9a-f]{64}", given) and given != hashlib.sha256(request.body).hexdigest():
            return "the hash is not that of the body"
        if signature != sign(request, key_id, secret, token, region, service, names):
            return f"signature of {request.raw}"
        return None

    def is_refused(self, connection, request):
        fault = self.fault(request)
        if fault:
            self.faults.append(fault)
            connection.answer(b"<Error><Code>SignatureDoesNotMatch</Code></Error>", "403 Forbidden", kind="application/xml")
        return fault is not None

    def storage(self, connection, request):
        path, _, query = request.target.partition("?")
        if self.is_refused(connection, request):
            return True
        # A region's bucket at the old name of all regions.
        if request.host == "s3.amazonaws.com" and path.startswith("/moved.bucket"):
            connection.answer(b"<Error><Code>PermanentRedirect</Code><Endpoint>s3.eu-west-1.amazonaws.com</Endpoint></Error>",
                              "301 Moved Permanently", ["x-amz-bucket-region: eu-west-1"], "application/xml")
            return True
        if not request.host.lower().startswith("lab-bucket."):
            path = "/" + path.lstrip("/").partition("/")[2]
        key = urllib.parse.unquote(path[1:])
        if request.method == "PUT":
            self.objects[key] = unchunked(request)
            connection.answer(b"", fields=[f'ETag: "{hashlib.md5(self.objects[key]).hexdigest()}"', f"X-Key: {KEY_ID}",
                                           f"X-Secret: {SECRET_KEY}", f"X-Token: {self.token}"])
        elif request.method == "GET" and key in self.objects:
            connection.answer(self.objects[key], kind="binary/octet-stream")
        elif request.method == "GET" and "list-type=2" in query:
            wanted = urllib.parse.parse_qs(query).get("prefix", [""])[0]
            keys = "".join(f"<Contents><Key>{urllib.parse.quote(key)}</Key><Size>{len(data)}</Size></Contents>"
                           for key, data in sorted(self.objects.items()) if key.startswith(wanted))
            connection.answer(f"<ListBucketResult><EncodingType>url</EncodingType><Prefix>{html.escape(wanted)}</Prefix>"
                              f"{keys}</ListBucketResult>".encode(), kind="application/xml")
        else:
            connection.answer(b"<Error><Code>NoSuchKey</Code></Error>", "404 Not Found", kind="application/xml")
        return True

    def other(self, connection, request):
        if self.is_refused(connection, request):
            return True
        if request.host.startswith("sts"):
            connection.answer(b"<GetCallerIdentityResponse><GetCallerIdentityResult><Account>123456789012</Account>"
                              b"</GetCallerIdentityResult></GetCallerIdentityResponse>", kind="text/xml")
        else:
            told = {"path": request.target, "bytes": len(request.body), "Configuration": {"FunctionName": request.target}}
            connection.answer(json.dumps(told).encode(), kind="application/json")
        return True


def unchunked(request):
    """The content of a body that is in chunks of the service's own kind, with a checksum behind them."""
    if request.get("x-amz-content-sha256") != "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
        return request.body
    content, rest = b"", request.body
    while True:
        size, _, rest = rest.partition(b"\r\n")
        if int(size, 16) == 0:
            return content
        content, rest = content + rest[:int(size, 16)], rest[int(size, 16) + 2:]


def source():
    """The host's variables."""
    return {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
