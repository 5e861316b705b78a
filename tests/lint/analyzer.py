"""gcc -fanalyzer finds nothing in the programs."""

import concurrent.futures
import os
import re
import subprocess

import allow
import compiler
import sources

# gcc 12's analyzer does not follow cleanup attributes, so what it says of leaks is noise; ASan watches those. Nor does it know
# that a function of another file sets its ret_ parameters when it succeeds.
QUIET = ["-Wno-analyzer-null-argument", "-Wno-analyzer-null-dereference", "-Wno-analyzer-possible-null-argument",
         "-Wno-analyzer-malloc-leak", "-Wno-analyzer-file-leak", "-Wno-analyzer-fd-leak", "-Wno-analyzer-too-complex",
         "-Wno-analyzer-use-of-uninitialized-value"]


def known(flag):
    """Whether this gcc knows a warning: newer ones know more."""
    result = subprocess.run(["gcc", "-Werror", flag.replace("-Wno-", "-W"), "-fsyntax-only", "-xc", "/dev/null"],
                            capture_output=True)
    return result.returncode == 0


def analyze(flags, name):
    command = ["gcc", "-fanalyzer", "-O1", "-c", "-o", "/dev/null", *flags, name]
    result = subprocess.run(command, cwd=sources.TOP, capture_output=True, text=True)
    if result.returncode:
        return result.stderr.splitlines()
    return [line for line in result.stderr.splitlines() if re.search(r"warning: .*\[-Wanalyzer", line)
            and not allow.allowed("analyzer", name, re.search(r"\[(-Wanalyzer[\w-]*)\]", line).group(1))]


def run(report):
    flags = compiler.flags(warnings=False) + [flag for flag in QUIET if known(flag)]
    names = [name for name in sources.program_files() if name.endswith(".c")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for name, faults in zip(names, pool.map(lambda name: analyze(flags, name), names)):
            report.check(name, faults)
