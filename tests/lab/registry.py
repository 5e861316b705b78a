"""What package managers fetch, made at set-up: one tiny package each, and functions that serve the files.

A registry is a dictionary from a path to its bytes. files() makes a site (origin.Servers.sites) of one; git() one that
runs git's own http-backend.
"""
import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

NAME, VERSION = "tinylab", "1.0.0"


def digest(data, kind="sha256"):
    return hashlib.new(kind, data)


def archive(members, mode):
    """A tar file of {name: text}."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as tar:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(text), 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def pypi():
    """The simple index (PEP 503) with one wheel (PEP 427)."""
    out, info = io.BytesIO(), f"{NAME}-{VERSION}.dist-info"
    with zipfile.ZipFile(out, "w") as wheel:
        wheel.writestr(f"{NAME}.py", "HELLO = 'from the lab'\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {NAME}\nVersion: {VERSION}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    name, data = f"{NAME}-{VERSION}-py3-none-any.whl", out.getvalue()
    page = f'<!DOCTYPE html><a href="/files/{name}#sha256={digest(data).hexdigest()}">{name}</a>'
    return {f"/simple/{NAME}/": page.encode(), f"/files/{name}": data}


def npm(host):
    """The metadata of a package and its tarball."""
    package = {"name": NAME, "version": VERSION, "main": "index.js"}
    data = archive({"package/package.json": json.dumps(package), "package/index.js": "module.exports = 1\n"}, "w:gz")
    dist = {"tarball": f"https://{host}/{NAME}/-/{NAME}-{VERSION}.tgz", "shasum": digest(data, "sha1").hexdigest(),
            "integrity": "sha512-" + base64.b64encode(digest(data, "sha512").digest()).decode()}
    page = {"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: {**package, "dist": dist}}}
    return {f"/{NAME}": json.dumps(page).encode(), f"/{NAME}/-/{NAME}-{VERSION}.tgz": data}


def crates(host):
    """A sparse index and one crate."""
    top = f"{NAME}-{VERSION}"
    manifest = f'[package]\nname = "{NAME}"\nversion = "{VERSION}"\nedition = "2018"\n'
    data = archive({f"{top}/Cargo.toml": manifest, f"{top}/src/lib.rs": ""}, "w:gz")
    line = {"name": NAME, "vers": VERSION, "deps": [], "cksum": digest(data).hexdigest(), "features": {},
            "yanked": False}
    return {"/index/config.json": json.dumps({"dl": f"https://{host}/dl"}).encode(),
            f"/index/{NAME[:2]}/{NAME[2:4]}/{NAME}": json.dumps(line).encode() + b"\n",
            f"/dl/{NAME}/{VERSION}/download": data}


def apt():
    """A flat repository. apt compares the size and the digest of what it downloads, and unpacks nothing."""
    data = b"!<arch>\nnot to be installed\n"
    packages = (f"Package: {NAME}\nVersion: {VERSION}\nArchitecture: all\nMaintainer: Lab <lab@origin.test>\n"
                f"Description: tiny\nFilename: ./{NAME}.deb\nSize: {len(data)}\nSHA256: {digest(data).hexdigest()}\n\n")
    packages = packages.encode()
    release = f"Date: Thu, 02 Jan 2020 00:00:00 UTC\nSHA256:\n {digest(packages).hexdigest()} {len(packages)} Packages\n"
    return {"/Release": release.encode(), "/Packages": packages, f"/{NAME}.deb": data}


def files(pages):
    """A site of {path: bytes}."""
    def serve(connection, request):
        data = pages.get(request.target.split("?")[0].replace("/./", "/"))
        if data is None:
            connection.answer(b"no such file\n", "404 Not Found")
        else:
            connection.answer(data, kind="text/html" if request.target.endswith("/") else "application/octet-stream")
        return True
    return serve


def make_repository(path, environment):
    """A bare repository with one commit that may be pushed to."""
    def git(*args):
        subprocess.run(["git", "-C", path, *args], check=True, capture_output=True, env=environment)
    os.makedirs(path)
    git("init", "-q", "--bare", "-b", "main")
    git("config", "http.receivepack", "true")
    tree = subprocess.run(["git", "-C", path, "mktree"], input=b"", check=True, capture_output=True, env=environment)
    commit = subprocess.run(["git", "-C", path, "commit-tree", "-m", "first", tree.stdout.decode().strip()], check=True,
                            capture_output=True, env=environment)
    git("update-ref", "refs/heads/main", commit.stdout.decode().strip())


def git(directory, environment):
    """A site that runs git-http-backend(1) over the repositories of the directory."""
    def serve(connection, request):
        path, _, query = request.target.partition("?")
        variables = {**environment, "GIT_PROJECT_ROOT": directory, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
                     "QUERY_STRING": query, "REQUEST_METHOD": request.method, "REMOTE_USER": "lab",
                     "REMOTE_ADDR": "192.0.2.1", "CONTENT_TYPE": request.get("content-type") or "",
                     "CONTENT_LENGTH": str(len(request.body)), "SERVER_PROTOCOL": "HTTP/1.1"}
        for name in ("content-encoding", "git-protocol"):
            if request.get(name):
                variables["HTTP_" + name.upper().replace("-", "_")] = request.get(name)
        done = subprocess.run(["git", "http-backend"], input=request.body, capture_output=True, env=variables)
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        connection.answer(body, fields.pop("Status", "200 OK"), kind=fields.pop("Content-Type", "text/plain"))
        return True
    return serve
