"""The man pages are clean under mandoc, say what is meant, and each page that they name with our prefix exists."""

import re
import subprocess

import sources


def lint(name):
    result = subprocess.run(["mandoc", "-Tlint", "-W", "warning", name], cwd=sources.TOP, capture_output=True, text=True)
    return [line.replace("mandoc: ", "") for line in result.stdout.splitlines()]


def macros(name):
    """What mandoc takes without a word and prints wrong."""
    for number, line in enumerate(sources.read(name).splitlines(), 1):
        if re.search(r"^\.(?:It|Sh|Ss)\b.* No\b", line):
            yield f"{name}:{number}: No is a macro here; write \\&No"
        if re.search(r"^\.(?:.* )?(?:Ql|Dq|Sq) .* [,;:] \S", line):
            yield f"{name}:{number}: the quotation goes on behind the comma; put each on a line of its own"


def references(name, pages):
    for number, line in enumerate(sources.read(name).splitlines(), 1):
        for page, section in re.findall(r"\bXr (sbx[\w-]*) (\d)", line):
            if f"man/{page}.{section}" not in pages:
                yield f"{name}:{number}: there is no page {page}({section})"


def installed(name):
    text = sources.read("man/local.mk")
    return [] if re.search(rf"(^|\s){re.escape(name)}(\s|$)", text) else [f"man/local.mk does not install {name}"]


def run(report):
    pages = set(sources.tracked("man/*.1", "man/*.5", "man/*.7", "man/*.8"))
    for name in sorted(pages):
        report.check(name, [*lint(name), *macros(name), *references(name, pages), *installed(name)])
    for wanted in ("sbx.1", "sbx-run.1", "sbx-policy.5", "sbx-security.7", "sbx-proxy.8"):
        report.check(wanted, [] if f"man/{wanted}" in pages else ["there is no such page"])
