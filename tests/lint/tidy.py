"""clang-tidy finds nothing in the programs; .clang-tidy names the checks. Of a function's paths the analyzer looks at a
quarter as many as it would: all of them take three quarters of the time of all lint tests."""

import concurrent.futures
import os
import re
import subprocess

import allow
import compiler
import sources

PATHS = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=56000"]


def tidy(flags, name):
    tool = f"clang-tidy-{os.environ['LLVM']}" if os.environ.get("LLVM") else "clang-tidy"
    result = subprocess.run([tool, "--quiet", name, "--", *flags, *PATHS], cwd=sources.TOP, capture_output=True, text=True)
    lines = [line for line in result.stdout.splitlines() if re.search(r": (warning|error): ", line)]
    if result.returncode and not lines:
        lines = result.stderr.splitlines()[-5:]
    return [line.replace(f"{sources.TOP}/", "") for line in lines if not excused(name, line)]


def excused(name, line):
    check = re.search(r"\[([\w.-]+)", line)
    return check is not None and allow.allowed("tidy", name, check.group(1))


def run(report):
    flags = compiler.flags(warnings=False)
    names = [name for name in sources.program_files() if name.endswith(".c")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, faults in zip(names, pool.map(lambda name: tidy(flags, name), names)):
            report.check(name, faults)
