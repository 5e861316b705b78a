"""The C sources are as clang-format writes them."""

import os
import subprocess

import sources


def run(report):
    tool = f"clang-format-{os.environ['LLVM']}" if os.environ.get("LLVM") else "clang-format"
    for name in sources.c_files():
        result = subprocess.run([tool, "--dry-run", "-Werror", "--style=file", name], cwd=sources.TOP,
                                capture_output=True, text=True)
        lines = result.stderr.splitlines()
        report.check(name, [] if result.returncode == 0 else [f"not formatted; ./dev fmt: {lines[0] if lines else ''}"])
