"""Arrows of inclusion point down only, and each third-party header stands behind one module."""

import collections
import pathlib

import sources

# What a layer may include besides itself.
BELOW = {
    "base": set(),
    "sys": {"base"},
    "policy": {"base"},
    "plan": {"base", "sys", "policy"},
    "engine": {"base", "sys", "policy", "plan"},
    "run": {"base", "sys", "policy", "plan", "engine"},
    "cmd": {"base", "sys", "policy", "plan", "engine", "run"},
    "proxy": {"base", "sys", "policy"},
}

# The prefix of a third-party header, by library.
LIBRARIES = {
    "libseccomp": ("seccomp.h",),
    "libnl": ("netlink/",),
    "c-ares": ("ares.h", "ares_"),
    "OpenSSL": ("openssl/",),
    "nghttp2": ("nghttp2/",),
    "json-c": ("json-c/", "json.h", "json_", "json/"),
    "libuv": ("uv.h", "uv/"),
}

# A library whose use is too much for one module, and the modules that share it.
SHARED = {"OpenSSL": {"proxy/ca", "proxy/digest", "proxy/tls"},
          "nghttp2": {f"proxy/h2_{part}" for part in ("state", "leg", "head", "mem")}}

# Below the engine's interface nobody else may know how a sandbox is made.
ENGINE_WORDS = ("bwrap", "bubblewrap")
ENGINE_FREE = ("plan", "run")


def library_of(header):
    for library, prefixes in LIBRARIES.items():
        if header.startswith(prefixes):
            return library
    return None


def included_layer(header):
    """The layer of a header of ours, as it is named in an include ("base/err.h", "proxy/conn.h")."""
    first = header.split("/")[0]
    return first if first in BELOW else None


def faults_of(name):
    layer = sources.layer_of(name)
    for line, kind, header in sources.includes(name):
        target = included_layer(header) if kind == '"' else None
        if kind == '"' and header == "config.h":
            continue
        if kind == '"' and target is None:
            yield f"{name}:{line}: include \"{header}\" names no layer; write \"layer/file.h\""
        elif target and target != layer and target not in BELOW[layer]:
            yield f"{name}:{line}: {layer} may not include {header}"
        if kind == "<" and layer == "base" and library_of(header):
            yield f"{name}:{line}: base includes only libc, not {header}"
    if layer in ENGINE_FREE:
        code = sources.strip(sources.read(name), strings=False).lower()
        for number, line in enumerate(code.splitlines(), 1):
            if any(word in line for word in ENGINE_WORDS):
                yield f"{name}:{number}: {layer} may not know an engine"


def run(report):
    users = collections.defaultdict(set)
    for name in sources.program_files():
        report.check(name, faults_of(name))
        for _, kind, header in sources.includes(name):
            if kind == "<" and library_of(header):
                users[library_of(header)].add(str(pathlib.PurePosixPath(name).with_suffix("")))
    for library, modules in sorted(users.items()):
        single = len(modules) == 1 or modules <= SHARED.get(library, set())
        faults = [] if single else [f"included by {' '.join(sorted(modules))}; one module only"]
        report.check(library, faults)
