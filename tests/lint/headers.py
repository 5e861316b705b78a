"""Each header compiles alone, twice in a row, and its guard has the name of its place."""

import re
import subprocess
import tempfile

import compiler
import sources


def guard_of(name):
    return "SBX_" + re.sub(r"[^A-Z0-9]", "_", re.sub(r"^src/", "", name).upper())


def compile_alone(flags, name):
    with tempfile.NamedTemporaryFile("w", suffix=".c") as unit:
        unit.write(f'#include "config.h"\n#include "{name}"\n#include "{name}"\nint sbx_lint_header;\n')
        unit.flush()
        result = subprocess.run(["gcc", "-fsyntax-only", "-Werror", *flags, unit.name], capture_output=True, text=True)
    return [] if result.returncode == 0 else [f"does not compile alone:\n{result.stderr}"]


def faults_of(flags, name):
    yield from compile_alone(flags, name)
    if f"#ifndef {guard_of(name)}\n#define {guard_of(name)}\n" not in sources.read(name):
        yield f"the guard must be {guard_of(name)}"


def run(report):
    flags = compiler.flags()
    for name in sources.tracked("*.h"):
        if sources.layer_of(name):
            report.check(name, faults_of(flags, name))
