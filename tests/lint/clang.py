"""clang compiles every source, with all warnings that configure turned on, without one."""

import concurrent.futures
import os
import subprocess

import compiler
import sources


def compile_one(flags, name):
    tool = f"clang-{os.environ['LLVM']}" if os.environ.get("LLVM") else "clang"
    result = subprocess.run([tool, "-fsyntax-only", "-Werror", "-Wno-unknown-warning-option", *flags, name],
                            cwd=sources.TOP, capture_output=True, text=True)
    return result.stderr.splitlines() if result.returncode else []


def run(report):
    flags = compiler.flags()
    names = [name for name in sources.c_files() if name.endswith(".c")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, faults in zip(names, pool.map(lambda name: compile_one(flags, name), names)):
            report.check(name, faults)
