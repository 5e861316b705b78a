"""The examples of the README and of the man pages run.

A line "$ sbx ..." of a `sh` block is run in a project and a home made for it; what stands below it is what it prints. One
that would need a host of the internet is planned instead (--dry-run). A `json` block is a policy that a run takes, on
a machine that has nothing of what it names.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile

import compiler
import sources

# Commands that need more than a bare machine has: their plan is made, the command is not run.
PLANNED = re.compile(r"--allow|--credential|--publish|--dry-run|~/")
# Programs that a machine need not have stand in for by /bin/true.
STAND_INS = ("npm", "pip", "cargo", "cmake", "ccache", "gh", "claude", "codex")


class Place:
    """A home with a project in it, and an environment in which `sbx` is the one that was built."""

    def __init__(self, top):
        self.home = pathlib.Path(top) / "home"
        self.project = self.home / "project"
        for directory in (self.project, self.home / "datasets", self.home / ".cache" / "ccache"):
            directory.mkdir(parents=True)
        (self.project / "Makefile").write_text("all check:\n\t@echo built\n")
        tools = self.project / "tools"
        tools.mkdir()
        for name in STAND_INS:
            (tools / name).symlink_to("/bin/true")
        (self.project / ".env").write_text("TOKEN=1\n")
        self.env = {"HOME": str(self.home), "LANG": "C.UTF-8", "TERM": "dumb",
                    "PATH": f"{compiler.build_dir().resolve()}:/usr/local/bin:/usr/bin:/bin:{tools}"}

    def run(self, line):
        return subprocess.run(["sh", "-c", line], cwd=self.project, env=self.env, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)


def blocks(text, kind):
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```$", text)


def shell_examples(text):
    """(command, expected output or None) of each example of a block."""
    for block in blocks(text, "sh"):
        for example in re.split(r"(?m)^\$ ", block)[1:]:
            command, _, output = example.partition("\n")
            yield command, output or None


def man_examples(page):
    for line in sources.read(page).splitlines():
        if line.startswith(".Dl $ sbx "):
            yield line[len(".Dl $ ") :].replace("\\-", "-"), None


def faults_of(command, output):
    with tempfile.TemporaryDirectory(prefix="sbx-readme.") as top:
        place = Place(top)
        words = shlex.split(command)
        if words[:2] == ["sbx", "run"] and PLANNED.search(command) and "cat ~" not in command:
            command = command.replace("sbx run", "sbx run --dry-run", 1) if "--dry-run" not in command else command
            if " -- sbx " in command:  # the one that was built has to be visible inside
                command = command.replace("sbx run", f"sbx run --read {compiler.build_dir().resolve()}", 1)
            result = place.run(command)
            return [] if result.returncode == 0 and result.stdout else [f"{result.returncode}: {result.stderr}"]
        result = place.run(command)
        printed = (result.stdout + result.stderr).replace(str(place.home), "/home/you")
    if output is not None:
        return [] if printed == output else [f"prints {printed!r}, not {output!r}"]
    expected = (0, 1) if words[1] in ("why", "doctor") else (0,)
    return [] if result.returncode in expected else [f"exit status {result.returncode}: {printed}"]


def policy_faults(text):
    with tempfile.TemporaryDirectory(prefix="sbx-readme.") as top:
        place = Place(top)
        shutil.rmtree(place.home / ".cache")
        shutil.rmtree(place.home / "datasets")
        policy = place.home / ".config" / "sbx" / "policy.json"
        policy.parent.mkdir(parents=True)
        policy.write_text(text)
        results = [place.run(line) for line in ("sbx check", "sbx run --dry-run -- true")]
    return [result.stderr for result in results if result.returncode]


def package_faults():
    """What the README has installed is what ./dev installs to build, less what only tests need."""
    wanted = set(re.search(r"packages_build=\((.*?)\)", sources.read("dev"), re.S).group(1).split())
    named = re.search(r"apt-get install (.*?)\n\n", sources.read("README.md"), re.S).group(1)
    odd = (wanted - {"libcmocka-dev", "python3"}) ^ set(named.replace("\\", " ").split())
    return [f"apt-get install: {name} stands in one of README.md and dev" for name in sorted(odd)]


def run(report):
    report.check("README.md: packages", package_faults())
    os.umask(0o022)
    count = 0
    for name in ("README.md", *sources.tracked("man/*")):
        text = sources.read(name)
        examples = shell_examples(text) if name.endswith(".md") else man_examples(name)
        for command, output in examples:
            report.check(f"{name}: {command}", faults_of(command, output))
            count += 1
    for policy in blocks(sources.read("README.md"), "json"):
        report.check("README.md: policy", policy_faults(policy))
    report.check("README.md", [] if count >= 6 else [f"only {count} examples found"])
