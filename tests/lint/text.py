"""Every text file: no trailing space, no tab where spaces are the rule, one newline at the end, no CR, no machine path."""

import pathlib
import re

import sources

BINARY = (".bin", ".pem", ".der", ".png", ".gz")
TAB_OK = re.compile(r"(^|/)(Makefile(\.am)?|.*\.(mk|go))$")
# Paths and names that exist on one developer's machine only.
MACHINE = re.compile(r"(?<![\w.])(/work/(?:main|shared)|/root/\w|/home/(?!\w*(?:dev|user|me|you|ann|alice|bob|u)\b)\w+/)")
SKIP = re.compile(r"^(tests/wire/|tests/fuzz/corpus/|COPYING$)")


def faults_of(name, text):
    for number, line in enumerate(text.split("\n"), 1):
        if line.rstrip() != line:
            yield f"{name}:{number}: trailing white space"
        if "\t" in line and not TAB_OK.search(name):
            yield f"{name}:{number}: a tab"
        if name != "tests/lint/text.py" and MACHINE.search(line):
            yield f"{name}:{number}: a path of somebody's machine: {MACHINE.search(line).group(0)}"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{name}: must end in exactly one newline"


def run(report):
    for name in sources.tracked():
        path = pathlib.Path(sources.TOP / name)
        if SKIP.match(name) or path.suffix in BINARY or path.is_symlink():
            continue
        try:
            text = path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            report.check(name, ["is not UTF-8"])
            continue
        report.check(name, faults_of(name, text))
