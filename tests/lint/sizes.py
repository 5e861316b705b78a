"""Hard limits of size: a file has at most 600 lines, a function 100, and no more than 25 paths through it."""

import allow
import sources

FILE_LINES = 600
FUNCTION_LINES = 100
COMPLEXITY = 25
COLUMNS = 120


def faults_of(name):
    text = sources.read(name)
    lines = text.splitlines()
    if len(lines) > FILE_LINES and not allow.allowed("sizes", name):
        yield f"{name}: {len(lines)} lines; at most {FILE_LINES}"
    for number, line in enumerate(lines, 1):
        if len(line) > COLUMNS:
            yield f"{name}:{number}: {len(line)} columns; at most {COLUMNS}"
    for function in sources.functions(name):
        if allow.allowed("sizes", name, function.name):
            continue
        if function.lines > FUNCTION_LINES:
            yield f"{name}:{function.line}: {function.name} has {function.lines} lines; at most {FUNCTION_LINES}"
        if function.complexity() > COMPLEXITY:
            yield f"{name}:{function.line}: {function.name} has complexity {function.complexity()}; at most {COMPLEXITY}"


def run(report):
    for name in sources.c_files():
        report.check(name, faults_of(name))
    report.check("tests/lint/allow.py", allow.unused("sizes"))
