"""The lint tests find what they are there for: each is run over a small tree with one fault in it, and one without."""

import pathlib
import tempfile

import banned
import layers
import sizes
import sources
import text

GOOD = """#include "base/err.h"

#include <fcntl.h>

/* strcpy(a, b); in a comment, and "system(" in a string, are no calls. */
static const char *const words[] = { "system(x)", "popen(y)" };

static int helper(int fd, const char *path)
{
  if (!words[0] || openat(fd, path, O_RDONLY | O_CLOEXEC) < 0)
    return -1;
  return 0;
}
"""

LONG = "void f(void)\n{\n" + "  g();\n" * 99 + "}\n"
TANGLED = "void f(int a)\n{\n" + "  if (a)\n    g();\n" * 25 + "}\n"

# (module, file, content, a part of the fault that must be found)
BAD = [
    (layers, "policy/a.c", '#include "sys/scm.h"\n', "policy may not include"),
    (layers, "src/base/a.c", '#include "policy/addr.h"\n', "base may not include"),
    (layers, "src/base/a.c", "#include <uv.h>\n", "only libc"),
    (layers, "src/sys/a.h", '#include "policy/policy.h"\n', "sys may not include"),
    (layers, "proxy/a.c", '#include "run/launch.h"\n', "proxy may not include"),
    (layers, "src/engine/a.c", '#include "run/launch.h"\n', "engine may not include"),
    (layers, "src/run/a.c", '#include "cmd/opts.h"\n', "run may not include"),
    (layers, "src/run/a.c", 'static const char *const x = "bwrap";\n', "may not know an engine"),
    (layers, "src/plan/a.c", '#include "a.h"\n', "names no layer"),
    (banned, "src/sys/a.c", "void f(char *a)\n{\n  strcpy(a, b);\n}\n", "strcpy is banned"),
    (banned, "proxy/a.c", "void f(void)\n{\n  x = strtol(a, 0, 10);\n}\n", "strtol is banned"),
    (banned, "src/sys/a.c", "void f(void)\n{\n  open(a, O_RDONLY);\n}\n", "without O_CLOEXEC"),
    (banned, "src/sys/a.c", "void f(void)\n{\n  socket(AF_UNIX,\n    SOCK_STREAM, 0);\n}\n", "without SOCK_CLOEXEC"),
    (banned, "policy/a.c", "void f(void)\n{\n  exit(1);\n}\n", "only cmd"),
    (banned, "policy/a.h", "typedef struct a a;\n", "typedef struct"),
    (banned, "policy/a.h", "extern int count;\n", "extern"),
    (banned, "policy/a.c", "static int count;\n", "not const"),
    (banned, "policy/a.c", "static int table[] = { 1, 2 };\n", "not const"),
    (banned, "policy/a.c", "int count = 3;\n", "not static"),
    (banned, "policy/a.c", "static const char *const x = \"or\\nsbx trust\";\n", "SBX_NAME"),
    (sizes, "policy/a.c", "\n" * 601, "601 lines"),
    (sizes, "policy/a.c", LONG, "f has 102 lines"),
    (sizes, "policy/a.c", TANGLED, "complexity 26"),
    (sizes, "policy/a.c", "/* " + "x" * 116 + " */\n", "122 columns"),
    (text, "a.md", "a \n", "trailing white space"),
    (text, "a.md", "a\tb\n", "a tab"),
    (text, "a.md", "a", "exactly one newline"),
    (text, "a.md", "see /wor" + "k/main/x\n", "somebody's machine"),
]


def faults(module, name):
    if module is text:
        return list(text.faults_of(name, sources.read(name)))
    return list(module.faults_of(name))


def one(module, name, content):
    with tempfile.TemporaryDirectory() as top:
        path = pathlib.Path(top) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        kept, sources.TOP = sources.TOP, pathlib.Path(top)
        try:
            return faults(module, name)
        finally:
            sources.TOP = kept


def run(report):
    for module, name, content, wanted in BAD:
        found = one(module, name, content)
        report.check(f"{module.__name__} on {content[:40]!r}",
                     [] if any(wanted in fault for fault in found) else [f"does not find {wanted!r}, but {found}"])
    for module in (layers, banned, sizes, text):
        report.check(f"{module.__name__} on good code", one(module, "src/sys/good.c", GOOD))
