"""The C sources as the lint tests see them: which files there are, and their text without comments and strings."""

import os
import pathlib
import re
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]

# The directories that hold the programs, and the layer that each belongs to.
LAYERS = {
    "src/base": "base",
    "src/sys": "sys",
    "policy": "policy",
    "src/plan": "plan",
    "src/engine": "engine",
    "src/run": "run",
    "src/cmd": "cmd",
    "proxy": "proxy",
}


def tracked(*patterns):
    """Paths relative to the top of all files, also new ones that git does not ignore; without git, of all files."""
    try:
        out = subprocess.run(
            ["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard", "-z", "--", *patterns],
            check=True, capture_output=True, env={**os.environ, "GIT_CONFIG_COUNT": "1",
                                                  "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"},
        ).stdout
        names = sorted(set(filter(None, out.decode().split("\0"))))
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"lint: git ls-files: {error}") from error
    return [name for name in names if (TOP / name).is_file()]


def read(name):
    return (TOP / name).read_text(encoding="utf-8")


def layer_of(name):
    """The layer of a file of the programs; None for tests and the rest."""
    return LAYERS.get(str(pathlib.PurePosixPath(name).parent))


def program_files():
    return [name for name in tracked("*.c", "*.h") if layer_of(name)]


def c_files():
    return tracked("*.c", "*.h")


_TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])*')""", re.S)


def strip(text, strings=True):
    """The text with comments blanked and, unless strings is false, the contents of literals too; same line numbers."""

    def blank(match):
        token = match.group(0)
        if match.lastgroup == "comment":
            return re.sub(r"[^\n]", " ", token)
        return token[0] + " " * (len(token) - 2) + token[-1] if strings else token

    return _TOKEN.sub(blank, text)


def includes(name):
    """(line, kind, header) of each include; kind is '"' or '<'."""
    for number, line in enumerate(strip(read(name), strings=False).splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if match:
            yield number, match.group(1), match.group(2)


def without_directives(code):
    """Stripped code with preprocessor directives blanked, continuation lines included."""
    return re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code)


class Function:
    def __init__(self, name, line, body, lines):
        self.name, self.line, self.body, self.lines = name, line, body, lines

    def complexity(self):
        """Decisions + 1; a switch counts once, however many cases it has."""
        return 1 + len(re.findall(r"\b(?:if|for|while|switch)\b|&&|\|\||\?", self.body))


_HEAD = re.compile(r"([A-Za-z_]\w*)\s*\(")


def _function_name(head):
    """The name of the function that a top-level head defines, or None (a struct, an initializer, an enum)."""
    if "=" in re.sub(r"\([^()]*\)", "", head) or not head.rstrip().endswith(")"):
        return None
    names = [name for name in _HEAD.findall(re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head, flags=re.S))]
    return names[0] if names else None


def top_level(name):
    """(line, head, body or None) of each thing at file level: text up to ';' or '{', and the braces' contents."""
    code = without_directives(strip(read(name)))
    start, depth, opened = 0, 0, 0
    for at, char in enumerate(code):
        if char == "{":
            if depth == 0:
                opened = at
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0 and _function_name(code[start:opened].strip()):
                yield _item(code, start, opened, at)
                start = at + 1
        elif char == ";" and depth == 0:
            yield _item(code, start, at, None)
            start = at + 1


def _item(code, start, opened, end):
    head = code[start:opened]
    first = start + len(head) - len(head.lstrip())
    line = code.count("\n", 0, first) + 1
    body = None if end is None else code[opened : end + 1]
    last = code.count("\n", 0, opened if end is None else end) + 1
    return line, head.strip(), body, last


def functions(name):
    for line, head, body, last in top_level(name):
        if body is not None:
            yield Function(_function_name(head), line, body, last - line + 1)
