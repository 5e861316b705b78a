"""make distcheck under another name: what is distributed builds from a read-only tree, passes its unit tests, is installed
as `box`, linked with shared libraries, runs a command (tests/installcheck), and is uninstalled without a trace."""

import os
import subprocess
import tempfile

import compiler
import sources

FLAGS = "DISTCHECK_CONFIGURE_FLAGS=--program-transform-name=s/^sbx/box/ --disable-static-sbx CFLAGS=-O0"


def told(lines):
    """The end, and what tests say of what failed."""
    return [line for line in lines[:-60] if "FAIL" in line or "Error" in line] + lines[-60:]


def run(report):
    jobs = f"-j{os.cpu_count()}"
    log = compiler.build_dir() / "log"
    log.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sbx-dist.") as build:
        configure = [str(sources.TOP / "configure"), "--quiet"]
        result = subprocess.run(configure, cwd=build, capture_output=True, text=True)
        report.check("configure", [] if result.returncode == 0 else [result.stderr])
        result = subprocess.run(["make", jobs, "distcheck", FLAGS], cwd=build, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL,
                                env={**os.environ, "VERBOSE": "1"})  # automake prints the logs of tests that failed
        (log / "distcheck").write_text(result.stdout)
        subprocess.run(["chmod", "-R", "u+w", build], check=False)
    lines = result.stdout.splitlines()
    report.check("make distcheck", [] if result.returncode == 0 else told(lines))
    for wanted in ("installcheck: box run", "installcheck: box-proxy answered",
                   "installcheck: box-proxy-tls answered", "installcheck: speaks of box", "installcheck: pages"):
        report.check(wanted, [] if any(line.startswith(wanted) for line in lines) else ["was not reached"])
