"""Coding agents from the npm registry, for tests/e2e/test_agents.py: fetched once per build directory, before the suites
enter the lab. What is fetched stands in tests/clients/agents.json, with the digests that it must have."""
import base64
import concurrent.futures
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile

# What npm says where there is no way to a registry, or one that it cannot trust (a company's proxy that it has not been
# told of); anything else is a failure.
OUT_OF_REACH = (r"\bcode (ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT"
                r"|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT_LOCALLY"
                r"|UNABLE_TO_VERIFY_LEAF_SIGNATURE)\b")
PATIENCE = 240  # seconds, for one package


class OutOfReach(Exception):
    """There is no way to the registry from here."""


def wanted(pins):
    """{name: (what to ask npm for, digest)} of the packages for this machine."""
    with open(pins) as file:
        data = json.load(file)
    found = {**data["packages"], **data.get(platform.machine(), {})}
    named = {}
    for spec, digest in found.items():
        name, version = re.fullmatch(r"(@[^@]+)@(.+)", spec).groups()
        named[name] = (version.removeprefix("npm:") if version.startswith("npm:") else spec, digest)
    return named


def pack(spec, digest, directory):
    """The package's archive, as it was when its digest was written down."""
    command = ["npm", "pack", "--json", "--ignore-scripts", "--fetch-timeout", "60000", "--fetch-retries", "1",
               "--cache", f"{directory}/cache", "--pack-destination", directory, spec]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise OutOfReach(f"{spec}: it has not come within {PATIENCE} s") from None
    if done.returncode != 0:
        raise (OutOfReach if re.search(OUT_OF_REACH, done.stderr) else RuntimeError)(f"{spec}: {done.stderr}")
    path, = (os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".tgz"))
    with open(path, "rb") as file:
        found = "sha512-" + base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
    if found != digest:
        raise RuntimeError(f"{spec} is not what it was: {found} instead of {digest}")
    return path


def unpack(path, target):
    """Archives of npm have one directory on top, and files."""
    with tarfile.open(path) as archive:
        for member in filter(tarfile.TarInfo.isfile, archive):
            parts = member.name.split("/")[1:]
            if not parts or not all(parts) or ".." in parts:
                raise RuntimeError(f"{path}: {member.name} is no place for a file")
            place = os.path.join(target, *parts)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                shutil.copyfileobj(archive.extractfile(member), file)
            os.chmod(place, member.mode & 0o755)


def install(name, target):
    """What npm does after unpacking: the package's own step, and links to its programs."""
    package = f"{target}/node_modules/{name}"
    with open(f"{package}/package.json") as file:
        data = json.load(file)
    if "postinstall" in data.get("scripts", {}):
        subprocess.run(data["scripts"]["postinstall"].split(), cwd=package, check=True, stdout=subprocess.DEVNULL)
    for program, path in data.get("bin", {}).items():
        os.chmod(f"{package}/{path}", 0o755)
        os.symlink(f"../{name}/{path}", f"{target}/node_modules/.bin/{program}")


def place(name, spec, digest, making):
    """One package, in its place."""
    directory = f"{making}/packed/{name}"
    os.makedirs(directory)
    unpack(pack(spec, digest, directory), f"{making}/node_modules/{name}")
    shutil.rmtree(directory)


def fetch(build, pins):
    """The directory with the agents in node_modules. Raises OutOfReach. It is megabytes by the hundred: who comes while
    another fetches waits for that one."""
    os.makedirs(build, exist_ok=True)
    with open(f"{build}/.agents", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return fetch_alone(build, pins)


def fetch_alone(build, pins):
    target, making = f"{build}/agents", f"{build}/agents.new"
    with open(pins) as file:
        text = file.read()
    stamp = f"{target}/pins.json"
    if os.path.exists(stamp) and open(stamp).read() == text:
        return target
    shutil.rmtree(making, ignore_errors=True)
    os.makedirs(f"{making}/node_modules/.bin")
    packages = wanted(pins)
    with concurrent.futures.ThreadPoolExecutor(len(packages)) as pool:
        list(pool.map(lambda name: place(name, *packages[name], making), packages))
    shutil.rmtree(f"{making}/packed")
    for name in packages:
        install(name, making)
    with open(f"{making}/pins.json", "w") as file:
        file.write(text)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(making, target)
    return target
