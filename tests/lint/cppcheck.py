"""cppcheck finds nothing in the programs."""

import collections
import os
import re
import subprocess

import allow
import compiler
import sources

# What would be noise here, and why.
SUPPRESS = {
    "missingInclude": "it is given no system headers",
    "missingIncludeSystem": "the same",
    "unmatchedSuppression": "versions differ",
    "unknownMacro": "attribute macros",
    "checkersReport": "a note, not a finding",
    "normalCheckLevelMaxBranches": "the same",
    "toomanyconfigs": "the same",
    "readdirCalled": "readdir_r is deprecated, and a DIR has one reader",
    "getpwuidCalled": "a program with one thread",
    "invalidFunctionArg": "it takes the -1 of an anonymous mmap for a mistake",
    "nullPointerArithmeticOutOfMemory": "it does not see that MAP_FAILED was looked for",
    "variableScope": "declarations stand at the top of a function",
    "constParameterCallback": "a callback's type is given",
    "constParameterPointer": "a matter of taste in callbacks and vtables",
    "constVariablePointer": "a matter of taste",
    "autoVariables": "a pointer to a local array is taken back before the function ends (h2_leg_write)",
    "memleak": "it does not know cleanup attributes; ASan does",
    "resourceLeak": "the same",
}


def run(report):
    includes = [flag for flag in compiler.flags(warnings=False) if flag.startswith(("-I", "-D")) and "/usr/" not in flag]
    command = ["cppcheck", "--quiet", "--std=c11", "--enable=warning,portability,performance", "--inline-suppr",
               "--template={file}:{line}: {id}: {message}", "--library=gnu,posix", f"-j{os.cpu_count()}",
               *(f"--suppress={name}" for name in SUPPRESS), "-D__linux__", "-D__x86_64__", *includes]
    names = [name for name in sources.program_files() if name.endswith(".c")]
    result = subprocess.run([*command, *names], cwd=sources.TOP, capture_output=True, text=True)
    found = collections.defaultdict(list)
    for line in result.stderr.splitlines():
        match = re.match(r"([^:]+):\d+: (\w+): ", line)
        if match and allow.allowed("cppcheck", match.group(1), match.group(2)):
            continue
        found[match.group(1) if match else "cppcheck"].append(line)
    for name in {*names, *found}:
        report.check(name, found[name])
