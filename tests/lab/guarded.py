"""Origins that want to be told who is there, for the tests of credentials: some at the names of real services, so that
presets work as they are, and some with certificates that nobody should believe.

    github.com          git-http-backend(1) behind a Basic challenge, as GitHub has it
    api.github.com      the pages below; and the same at the other services and at key.svc.test
    signed.svc.test     storage: 200 for a signed URL without any other login, 400 for one with

What an API's pages do, beside what coding agents ask (agents.py):

    /check              200 for a request with the secret, 401 with a challenge for one without
    /reflect            what it got for Authorization, and the secret, in header fields and in the phrase in every form
    /mirror             the same in the body, in chunks of a few bytes, compressed where that is asked for
    /botTOKEN/send      200 where TOKEN is the secret, 401 else; the path in the body
    /login              200 where "token" of the body, a form or JSON, is the secret, 401 else
    /redirect?to=URL    302
    /ticks/N            N events (text/event-stream), a second apart
    /websocket          101, then every byte comes back; 401 without the secret
    /post               length and digest of the body, for a request with the secret; 401 without
    others              as at any origin (origin.py)
"""
import base64
import gzip
import hashlib
import json
import os
import time
import urllib.parse

from lab import agents, ca, origin, registry, space

ADDRESSES = {
    "github.com": "192.0.2.50", "api.github.com": "192.0.2.51", "uploads.github.com": "192.0.2.52",
    "api.anthropic.com": "192.0.2.53", "api.openai.com": "192.0.2.54", "chatgpt.com": "192.0.2.55",
    "untrusted.test": "192.0.2.61", "expired.test": "192.0.2.62", "wrongname.test": "192.0.2.63",
}
SERVICES = [name for name in ADDRESSES if name.endswith(".com")]

SECRET = "ghp_Lab0SecretThatNobodyInsideMaySee9Zq7"
OTHER_SECRET = "sk-ant-api03-second+secret/of=the~lab-8Xw4"
SECRETS = (SECRET, OTHER_SECRET)


def forms(secret):
    """The bytes of a secret in every form that a search must not find."""
    data = secret.encode()
    found = [data, urllib.parse.quote(secret, safe="").encode(), secret.encode("utf-16-le"), data[::-1], data.hex().encode()]
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + data)
        # Digits that stand for bytes of the secret and for nothing else.
        found.append(whole[(before * 8 + 5) // 6:(before + len(data)) * 8 // 6])
    return list(dict.fromkeys(found))


def presented(request):
    """What the request says who it is, as [(where, text)]."""
    found = []
    value = request.get("authorization") or ""
    scheme, _, rest = value.partition(" ")
    if scheme.lower() == "basic":
        user, _, password = base64.b64decode(rest).decode("latin-1").partition(":")
        found += [("basic user", user), ("basic password", password)]
    elif value:
        found += [("bare", value), (scheme.lower(), rest)]
    for name in ("x-api-key", "x-own"):
        if request.get(name):
            found.append((name, request.get(name)))
    query = urllib.parse.parse_qs(request.target.partition("?")[2])
    return found + [("query", value) for value in query.get("key", [])]


def is_known(request):
    return any(text in SECRETS for _, text in presented(request))


def refuse(connection):
    connection.answer(b"who are you?\n", "401 Unauthorized", ["WWW-Authenticate: Basic realm=\"lab\""])


def reflect(connection, request):
    """Each form that a server might write what it was told in."""
    value = request.get("authorization") or "nothing"
    secret = value.split()[-1]
    if value.lower().startswith("basic "):
        secret = base64.b64decode(secret).decode("latin-1").partition(":")[2]
    quoted = urllib.parse.quote(secret, safe="")
    each = "".join(f"%{byte:02x}" for byte in secret.encode())
    fields = [f"X-Authorization: {value}", f"X-Secret: {secret}", f"Set-Cookie: token={secret}; Path=/", f"X-Quoted: {quoted}",
              f"Location: https://other.test/?next={urllib.parse.quote('/?t=' + quoted, safe='')}&e={each}",
              f'WWW-Authenticate: Basic realm="{secret}"', f"X-{secret.replace('/', '').replace('=', '')}: x"]
    for before in ("", "a", "ab"):
        encoded = base64.b64encode((before + secret + "z").encode()).decode()
        fields += [f"X-Base64: {encoded}", f"X-Base64-Url: {encoded.replace('+', '-').replace('/', '_')}"]
    connection.answer(b"reflected\n", f"200 OK {secret}", fields)


def mirror(connection, request):
    secret = (request.get("authorization") or "nothing").split()[-1]
    quoted = urllib.parse.quote(secret, safe="")
    encoded = [base64.b64encode((before + secret + "z").encode()).decode() for before in ("", "a", "ab")]
    body = json.dumps({"mirrored": secret, "url": f"/?t={quoted}", "twice": quoted.replace("%", "%25"), "base64": encoded}).encode()
    if "gzip" in (request.get("accept-encoding") or ""):
        connection.answer(gzip.compress(body), fields=["Content-Encoding: gzip"])
        return
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    for at in range(0, len(body), 7):
        connection.send(b"%x\r\n%s\r\n" % (len(body[at:at + 7]), body[at:at + 7]))
    connection.send(b"0\r\n\r\n")


def bot(connection, request):
    path = request.target.encode()
    known = urllib.parse.unquote(request.target)[len("/bot"):].rpartition("/")[0] in SECRETS
    connection.answer(b"you asked for " + path + b"\n", "200 OK" if known else "401 Unauthorized")


def login(connection, request):
    if "json" in (request.get("content-type") or ""):
        token = json.loads(request.body)["token"]
    else:
        token = urllib.parse.parse_qs(request.body.decode())["token"][0]
    connection.answer(b"hello, lab\n" if token in SECRETS else b"who are you?\n", "200 OK" if token in SECRETS else "401 Unauthorized")


def ticks(connection, count):
    connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for number in range(count):
        data = f"data: {number} {time.monotonic()}\n\n".encode()
        connection.send(b"%x\r\n%s\r\n" % (len(data), data))
        time.sleep(1)
    connection.send(b"0\r\n\r\n")


def api(connection, request):
    action, _, argument = request.target.split("?")[0].lstrip("/").partition("/")
    if action == "check":
        connection.answer(b"hello, lab\n") if is_known(request) else refuse(connection)
    elif action == "reflect":
        reflect(connection, request)
    elif action == "mirror":
        mirror(connection, request)
    elif action.startswith("bot"):
        bot(connection, request)
    elif action == "login":
        login(connection, request)
    elif action == "redirect":
        to = urllib.parse.parse_qs(request.target.partition("?")[2])["to"][0]
        connection.answer(b"elsewhere\n", "302 Found", [f"Location: {to}"])
    elif action == "ticks":
        ticks(connection, int(argument))
    elif action == "post" and not is_known(request):
        refuse(connection)
    else:
        return origin.answer_request(connection, request, action, argument)
    return (request.get("connection") or "").lower() != "close"


def signed(connection, request):
    """Storage that takes one way of being told who asks (F75)."""
    query = urllib.parse.parse_qs(request.target.partition("?")[2])
    if request.get("authorization"):
        connection.answer(b"Only one auth mechanism allowed\n", "400 Bad Request")
    elif "X-Amz-Signature" in query:
        connection.answer(b"an asset\n")
    else:
        connection.answer(b"not signed\n", "403 Forbidden")
    return True


def challenged(serve):
    """The site, for those who say who they are."""
    def guard(connection, request):
        if ("basic password", SECRET) in presented(request):
            return serve(connection, request)
        refuse(connection)
        return True
    return guard


class Guarded:
    """Puts all of it into a world.World."""

    def __init__(self, world):
        self.directory = f"{space.BASE}/guarded"
        os.makedirs(self.directory)
        environment = {"PATH": os.environ["PATH"], "HOME": self.directory, "GIT_AUTHOR_NAME": "lab",
                       "GIT_AUTHOR_EMAIL": "lab@origin.test", "GIT_COMMITTER_NAME": "lab",
                       "GIT_COMMITTER_EMAIL": "lab@origin.test"}
        registry.make_repository(f"{self.directory}/lab/repo.git", environment)
        servers = world.servers
        servers.sites.update({name: api for name in [*SERVICES, "key.svc.test"]})
        servers.sites["github.com"] = challenged(registry.git(self.directory, environment))
        servers.sites["signed.svc.test"] = signed
        self.agents = agents.Agents(world, is_known)
        certificate = world.authority.issue("services", SERVICES)
        for name in SERVICES:
            servers.placed[(ADDRESSES[name], 443)] = servers.tls(certificate)
        stranger = ca.Authority(f"{space.BASE}/etc/stranger")
        for name, certificate in (("untrusted.test", stranger.issue("untrusted", ["untrusted.test"])),
                                  ("expired.test", world.authority.issue("expired", ["expired.test"], days=-1)),
                                  ("wrongname.test", world.authority.issue("wrongname", ["other.test"]))):
            servers.placed[(ADDRESSES[name], 443)] = servers.tls(certificate)

    @staticmethod
    def sees(request, secret=SECRET):
        """Whether the secret is anywhere in what the origin got."""
        return any(form in request.raw + request.body for form in forms(secret))


def digest(data):
    """What /post answers."""
    return f"{len(data)} {hashlib.sha256(data).hexdigest()}\n"
