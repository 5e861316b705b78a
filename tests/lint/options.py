"""The options of `sbx run` stand once in the program; its help, its man page and the policy's keys agree with them."""

import pathlib
import re
import subprocess

import compiler
import sources

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z0-9-]*|-[a-zA-Z])(?![\w-])")


def help_text(*words):
    program = str(pathlib.Path(compiler.build_dir()) / "sbx")
    result = subprocess.run([program, *words, "--help"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if result.returncode:
        raise SystemExit(f"lint: sbx {' '.join(words)} --help: exit status {result.returncode}: {result.stderr}")
    return result.stdout


def helped(*words):
    """The options that help lists: those that begin a line."""
    found = set()
    for line in help_text(*words).splitlines():
        match = re.match(r"\s+((?:-\w|--[\w-]+)(?:[ =][\w\[\]:=|.*]+)?(?:,\s*--?[\w-]+)*)", line)
        if match:
            found.update(OPTION.findall(match.group(1)))
    return found


def documented(page):
    """The options that have an entry of their own in a man page: `.It Fl -name` or `.It Fl n`."""
    entries = re.findall(r"(?m)^\.It (Fl .*)$", sources.read(page))
    return {"-" + name for entry in entries for name in re.findall(r"\bFl (-?[\w-]+)", entry)}


def commands():
    """The commands that `sbx --help` lists, and those that sbx(1) has an entry for."""
    shown = set(re.findall(r"(?m)^\s+sbx ([a-z]+)\b", help_text()))
    described = set(re.findall(r"(?m)^\.It Cm (\w+)", sources.read("man/sbx.1")))
    return shown, described


def key_options():
    return set(re.findall(r'"(--[a-z-]+)"', sources.strip(sources.read("policy/keys.c"), strings=False)))


def difference(one, other, text):
    return [f"{name} {text}" for name in sorted(one - other)]


def run(report):
    options = helped("run") - {"--help", "-h"}
    for name in sorted(options):
        report.check(name, difference({name}, documented("man/sbx-run.1"), "has no entry in man/sbx-run.1"))
    extra = documented("man/sbx-run.1") - {"--help", "-h"}
    report.check("man/sbx-run.1", difference(extra, options, "is not in `sbx run --help`"))
    report.check("policy/keys.c", difference(key_options(), options, "is not in `sbx run --help`"))
    shown, described = commands()
    report.check("man/sbx.1", difference(described, shown, "is not in `sbx --help`"))
    report.check("sbx --help", difference(shown, described, "has no entry in man/sbx.1"))
    report.check("sbx --help", [] if options and described else ["lists nothing"])
    keys_documented(report)


def keys_documented(report):
    """Every key of the policy has an entry in sbx-policy(5) and a place in the schema."""
    keys = re.findall(r'\{ KEY_\w+, "([\w.]+)"', sources.read("policy/keys.c"))
    page = sources.read("man/sbx-policy.5")
    schema = sources.read("policy/schema/sbx-policy.schema.json")
    for key in keys:
        leaf = key.split(".")[-1]
        faults = []
        if not re.search(rf"\.It .*\b{re.escape(key)}\b|\.It .*\b{re.escape(leaf)}\b", page):
            faults.append("has no entry in man/sbx-policy.5")
        if f'"{leaf}"' not in schema:
            faults.append("is not in the schema")
        report.check(f"key {key}", faults)
    report.check("policy/keys.c", [] if keys else ["no keys found"])
