"""Calls and constructs that the house style bans (HACKING.md), each with what to use instead."""

import re

import allow
import sources

CALLS = {
    "strcpy strcat stpcpy strncpy strncat sprintf vsprintf gets": "use a bounded buf or snprintf",
    "sscanf scanf fscanf strtok strtok_r": "use span_split and num_parse_*",
    "atoi atol atoll atof strtol strtoll strtoul strtoull strtod": "use num_parse_*",
    "alloca": "use a buffer with a ceiling",
    "system popen wordexp": "no shell as glue",
    "signal": "use sigaction",
    "gethostbyname gethostbyaddr getaddrinfo getnameinfo": "use c-ares, in the proxy",
    "tmpnam mktemp tempnam tmpfile": "use memfd or mkostemp",
    "inet_addr inet_aton inet_network": "use addr_parse",
    "dup accept pipe": "use the form that sets close-on-exec from birth",
}
# A test may have an oracle of libc's, and descriptors that are inherited on purpose.
PROGRAMS_ONLY = ("dup accept pipe", "atoi atol atoll atof strtol strtoll strtoul strtoull strtod")

# A descriptor is close-on-exec from birth: the call, and the flag that must stand in its arguments.
CLOEXEC = {
    "open": "O_CLOEXEC",
    "openat": "O_CLOEXEC",
    "openat2": None,
    "socket": "SOCK_CLOEXEC",
    "socketpair": "SOCK_CLOEXEC",
    "accept4": "SOCK_CLOEXEC",
    "pipe2": "O_CLOEXEC",
    "dup3": "O_CLOEXEC",
    "memfd_create": "MFD_CLOEXEC",
    "epoll_create1": "EPOLL_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC",
    "eventfd": "EFD_CLOEXEC",
    "signalfd": "SFD_CLOEXEC",
    "timerfd_create": "TFD_CLOEXEC",
}

# Only these print or end the program.
SPEAKERS = re.compile(r"^(src/cmd/.*|proxy/main\.c|src/base/log\.c|tests/.*)$")
SPEAKING = re.compile(r"(?<![\w.>])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|psignal|exit|abort)\s*\(")


def call_pattern(names):
    return re.compile(r"(?<![\w.>])(" + "|".join(names.split()) + r")\s*\(")


PATTERNS = [(call_pattern(names), advice, names in PROGRAMS_ONLY) for names, advice in CALLS.items()]


def arguments(code, opened):
    depth = 0
    for at in range(opened, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return code[opened : at + 1]
    return code[opened:]


def call_faults(name, code):
    for pattern, advice, programs_only in PATTERNS:
        if programs_only and not sources.layer_of(name):
            continue
        for match in pattern.finditer(code):
            if name == "src/base/num.c" and match.group(1).startswith("strto"):
                continue
            yield match.start(), f"{match.group(1)} is banned; {advice}"


def cloexec_faults(code):
    for match in re.finditer(r"(?<![\w.>])(" + "|".join(CLOEXEC) + r")\s*\(", code):
        flag = CLOEXEC[match.group(1)]
        earlier = code[code.rfind("\n}\n", 0, match.start()) + 1 : match.start()]  # a variable may hold the flags
        if flag and flag not in arguments(code, match.end() - 1) and flag not in earlier:
            yield match.start(), f"{match.group(1)} without {flag}"


def construct_faults(name, code):
    for match in re.finditer(r"\btypedef\s+(struct|union|enum)\b", code):
        yield match.start(), f"typedef {match.group(1)}; write the tag out"
    for match in re.finditer(r"(?m)^\s*extern\b(?!\s+char \*\*environ\b)", code):
        yield match.start(), "extern; globals are file-static, functions are declared without it"
    for match in re.finditer(r"\bgoto\s+(?!out\b|fail\b|again\b)\w+", code):
        yield match.start(), "goto to something other than out, fail or again"
    if not SPEAKERS.match(name):
        for match in SPEAKING.finditer(code):
            yield match.start(), f"{match.group(1)}: only cmd, the main files and log print or end the program"


# The program can be installed under another name; the names of files and directories stay.
OWN_NAME = re.compile(r"(?<![./\w-])sbx(?![\w/-]|\.json)|(?<![./\w-])sbx-(?:proxy|policy\(|doctor\(|run\(|security\()")


def name_faults(name, code):
    for match in re.finditer(r'"((?:[^"\\\n]|\\.)*)"', code):
        text = re.sub(r"\\[abfnrtv]", " ", match.group(1))
        directive = code[code.rfind("\n", 0, match.start()) + 1 : match.start()].lstrip().startswith("#")
        if OWN_NAME.search(text) and not directive and not allow.allowed("names", name):
            yield match.start(), f"\"{match.group(1)}\" says a name of the program; put it together with SBX_NAME"


def global_faults(name):
    """Variables at file level are static, and const but for the log's level."""
    for line, head, body, _ in sources.top_level(name):
        if body is not None or re.match(r"(struct|union|enum)\s+\w+\s*($|\{)", head):
            continue
        declared = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head.split("=")[0], flags=re.S)
        if "(" in declared or re.match(r"(typedef|extern|_Static_assert)\b", declared) or not declared:
            continue
        if not declared.startswith("static "):
            yield f"{name}:{line}: a global variable that is not static"
        elif not re.search(r"\bconst\b", declared) and not re.search(r"\b_?Thread_local\b", declared):
            if not allow.allowed("globals", name):
                yield f"{name}:{line}: a variable at file level that is not const"


def faults_of(name):
    code = sources.strip(sources.read(name))
    found = [*call_faults(name, code), *construct_faults(name, code)]
    if sources.layer_of(name):
        found += cloexec_faults(code)
        found += name_faults(name, sources.strip(sources.read(name), strings=False))
    for at, fault in sorted(found):
        if not allow.allowed("banned", name, fault.split()[0].rstrip(":;")):
            yield f"{name}:{code.count(chr(10), 0, at) + 1}: {fault}"
    if sources.layer_of(name) and name.endswith(".c"):
        yield from global_faults(name)


def run(report):
    for name in sources.c_files():
        report.check(name, faults_of(name))
    report.check("tests/lint/allow.py", allow.unused("banned") + allow.unused("globals") + allow.unused("names"))
