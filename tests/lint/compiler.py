"""The flags that the sources are compiled with, as configure found them, for tools that parse C."""

import os
import pathlib
import re
import shlex

import sources


def build_dir():
    build = os.environ.get("BUILD")
    if not build or not (pathlib.Path(build) / "Makefile").exists():
        raise SystemExit("lint: BUILD must name a configured build directory; run ./dev lint")
    return pathlib.Path(build)


def variables():
    """Plain variables of the Makefile."""
    text = (build_dir() / "Makefile").read_text().replace("\\\n", " ")
    return dict(re.findall(r"(?m)^(\w+) = (.*)$", text))


def expand(values, text, depth=0):
    """The text with make's variables put in; one that is unknown, or a function of make's, becomes nothing."""
    if depth > 8:
        return ""
    return re.sub(r"\$[({]([^(){}]+)[)}]", lambda m: expand(values, values.get(m.group(1), ""), depth + 1), text)


def preprocessor_flags(values):
    """-I, -D and -include of all targets together."""
    values = {**values, "top_srcdir": str(sources.TOP), "srcdir": str(sources.TOP), "top_builddir": str(build_dir()),
              "builddir": str(build_dir())}
    result = []
    for name, value in sorted(values.items()):
        if not re.search(r"(^DEFS|_CPPFLAGS|_CFLAGS|^DEFAULT_INCLUDES)$", name):
            continue
        words = shlex.split(expand(values, value))
        for at, word in enumerate(words):
            kept = words[at : at + 2] if word == "-include" else [word] if word.startswith(("-I", "-D")) else []
            if kept and "FORTIFY" not in word and kept[-1] not in result:
                result += kept
    return result


def flags(warnings=True):
    """Preprocessor flags, and with warnings those too; never hardening or optimisation."""
    values = variables()
    result = ["-std=gnu17", f"-I{build_dir()}", *preprocessor_flags(values)]
    if warnings:
        result += [flag for flag in shlex.split(values["SBX_CFLAGS"]) if flag.startswith("-W") and flag != "-Werror"]
    return result
