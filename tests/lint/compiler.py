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


def flags(warnings=True):
    """Preprocessor flags, and with warnings those too; never hardening or optimisation."""
    values = variables()
    build = build_dir()
    result = ["-std=gnu17", f"-I{build}", f"-I{build}/src", f"-I{sources.TOP}/src", f"-I{sources.TOP}",
              "-DHAVE_CONFIG_H", *configured_defines(values)]
    for name, value in sorted(values.items()):
        if name.endswith("_CFLAGS") and name != "SBX_CFLAGS" and "$" not in value:
            result += [flag for flag in shlex.split(value) if flag.startswith(("-I", "-D")) and flag not in result]
    if warnings:
        result += [flag for flag in shlex.split(values["SBX_CFLAGS"]) if flag.startswith("-W") and flag != "-Werror"]
    return result


def configured_defines(values):
    """-D flags that the local.mk files add, with make's variables expanded."""

    def expand(text, depth=0):
        if depth > 8:
            return text
        return re.sub(r"\$[({](\w+)[)}]", lambda m: expand(values.get(m.group(1), ""), depth + 1), text)

    found = []
    for name, value in sorted(values.items()):
        if name.endswith("_CPPFLAGS") and name != "SBX_CPPFLAGS":
            try:
                words = shlex.split(expand(value))
            except ValueError:
                continue
            found += [flag for flag in words if flag.startswith("-D") and flag not in found and "FORTIFY" not in flag]
    return found
