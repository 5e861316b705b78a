"""P1: each step of the set-up fails once, in turn: the run is refused, or it is the same sandbox as ever."""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import cover, fail_once
from harness.procs import descendants

# What a sandbox is, as its command sees it: session, filter, capabilities, limits, mounts, network, names, and a hidden file.
SHOW = ["cat", "/proc/self/stat", "/proc/self/status", "/proc/self/limits", "/proc/self/mountinfo", "/proc/net/dev",
        "/proc/sys/kernel/hostname", "/proc/self/uid_map", "hidden"]
# And what it reaches: the addresses that are local, and who listens. Of the host's network it is the host's.
SHOW_NETWORK = ["/proc/net/fib_trie", "/proc/net/tcp", "/proc/net/tcp6", "/proc/net/udp", "/proc/net/udp6"]
STATUS = ("Seccomp:", "Seccomp_filters:", "NoNewPrivs:", "CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:")
LIMITS = ("--memory", "1g", "--cpus", "1")
# Failures of these are never made up for by another way. (What they did cannot be seen from inside.)
NEEDED = ("landlock_restrict_self", "listen", "sched_setaffinity", "setns", "setsid", "unshare")
EVERY = 12  # calls of one name that are all tried; of more, each fourth, and the last ones
ERROR = "EIO"  # none that bubblewrap, libc or sbx takes for a missing feature or an unreachable mount


def view(text):
    """The lines of SHOW's output that are the same in each run. Of a mount: root, place, options, kind, source."""
    lines, sockets = [], []
    for line in text.splitlines():
        words = line.split()
        if " (cat) " in line:
            lines.append(f"session {words[5]}")  # 0: the one of somebody outside
        elif " - " in line:
            lines.append(re.sub(r"/bindfile\w+", "/bindfile", " ".join(words[3:6] + words[-3:])))
        elif re.match(r" *(\+--|\|--|/\d+ )", line):
            lines.append(line.strip())
        elif re.match(r" *\d+: [0-9A-F]+:[0-9A-F]{4} ", line):
            sockets.append(f"socket {words[1]} {words[3]}")  # in no order
        elif line.startswith(STATUS + ("Max ",)) or (len(words) == 3 and words[0].isdigit()):
            lines.append(line)
        elif line.endswith(":") or ":" not in line or words[0] in ("lo:", "Cpus_allowed:"):
            lines.append(words[0] if words else "")
    return lines + sorted(sockets)


def differences(usual, found):
    return [f"- {line}" for line in usual if line not in found] + [f"+ {line}" for line in found if line not in usual]


def chosen(count):
    if count <= EVERY:
        return range(1, count + 1)
    return sorted({*range(1, count + 1, 4), *range(count - 8, count + 1)})


def is_refused(result):
    return result.code == 125 and result.raw == b"" and len(result.messages) == 1


def took_the_filter_too_late(result):
    """bubblewrap's pid 1 gives up its own capabilities and takes the filter after the command's process was made: when
    that fails, the kernel ends the command, complete as it is."""
    return result.code == 1 and any(text in result.err for text in ("bwrap: prctl(PR_SET_SECCOMP)", "bwrap: capset"))


@pytest.mark.parametrize("options", [LIMITS, ("--network", "host", "--home", "tmpfs"), ("--credential", "github")],
                         ids=["proxy", "host", "credentials"])
def test_each_step_that_fails_is_told_and_ends_the_run(sbx, project, failing, options):
    """P1, F7: 125 and one line of ours, and no output; or nothing of the sandbox is missing."""
    project.write("hidden", "hunter2\n")
    project.write(".envrc", "original")
    words = ("run", "--hide", "hidden", *options, "--", *SHOW, *([] if "host" in options else SHOW_NETWORK))
    whole, counts = failing((), *words)
    usual = view(whole.out)
    assert any(line.startswith("Seccomp:\t2") for line in usual) and f"{project.root}/.envrc" in whole.out, whole
    assert counts["mount"] > 20 and counts["prctl"] > 4 and counts["pivot_root"] == 2, counts
    failures = [(call, n, ERROR) for call in counts if call != "openat2" for n in chosen(counts[call])]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = [result for result, _ in pool.map(lambda failure: failing(failure, *words), failures)]
    assert any(is_refused(result) for result in results)
    wrong = [(result.argv[0], result.code, result.err, differences(usual, view(result.out))) for result in results
             if not is_refused(result) and not took_the_filter_too_late(result) and
             (view(result.out) != usual or result.argv[0][0] in NEEDED)]
    assert wrong == []
    assert not any("hunter2" in result.out for result in results)
    # Landlock is not to be seen from inside: where it is needed, a kernel that has none is told.
    bare = [result for result in results if result.argv[0][0].startswith("landlock") and not is_refused(result)]
    assert "host" not in options or all("abstract sockets" in result.err for result in bare), bare


def test_each_look_that_fails_is_told_or_narrows(sbx, project, failing):
    """P1: paths that cannot be looked at (openat2) may hide a toolchain; never do they lift a mask or a protection."""
    project.write("hidden/file", "hunter2\n")
    project.write(".envrc", "original")
    words = ("run", "--hide", "hidden", "--", "sh", "-c", "cat hidden/file; echo x > .envrc; echo x > .git/hooks/new")
    _, counts = failing((), *words)
    assert counts["openat2"] > 40, counts
    failures = [("openat2", n, ERROR) for n in range(1, counts["openat2"] + 1)]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = [result for result, _ in pool.map(lambda failure: failing(failure, *words), failures)]
    assert not any("hunter2" in result.out for result in results)
    assert project.read(".envrc") == "original" and not project.exists(".git/hooks/new"), \
        [result for result in results if not is_refused(result)]
    for word in ("cannot be verified", "hide ", "protect: "):
        assert any(word in result.err and is_refused(result) for result in results), word


CONFINED = ("Seccomp:", "Seccomp_filters:", "NoNewPrivs:", "CapPrm:", "CapEff:")
CONFINING = ("prctl", "seccomp", "capset", "prlimit64", "landlock_create_ruleset", "landlock_restrict_self")


def confinement(sbx, failure, report):
    """(what the command got of the page, how the proxy is confined or None, stderr)."""
    process = sbx.start("run", "--allow", "origin.test", "--", "sh", "-c",
                        "curl -s -m 20 http://origin.test/; echo; read line", stdin=subprocess.PIPE,
                        prefix=fail_once.prefix(report, *failure), pass_fds=(report,))
    os.close(report)
    page = process.stdout.readline()
    found = None
    for proxy in [p for p in descendants(process.pid) if p.name == "sbx-proxy"]:
        lines = [line for line in proxy.read("status").decode().splitlines() if line.startswith(CONFINED)]
        owner = os.stat(f"/proc/{proxy.pid}/environ").st_uid  # root's once it is not dumpable
        found = (lines, owner, [line.split()[3] for line in proxy.read("limits").decode().splitlines()
                                if line.startswith("Max processes")])
    _, err = process.communicate(b"\n", timeout=60)
    return page, found, err.decode()


def test_proxy_that_cannot_confine_itself_serves_nobody(sbx):
    """P1: no byte of the sandbox is read by a proxy that could not give up what it should."""
    def run(*failure):
        read, write = os.pipe()
        answer = confinement(sbx, failure, write)
        with os.fdopen(read) as file:
            return (*answer, json.loads(file.read()))

    page, usual, err, counts = run()
    assert page == b"lab page of origin.test\n" and usual, err
    results = [(call, n, *run(call, n, ERROR)) for call in CONFINING for n in range(1, counts[call] + 1)
               if counts[call] <= EVERY or n > counts[call] - EVERY]
    # One that gave up is replaced at the next connection, and that one fails at nothing.
    assert sum("sbx-proxy: system call filter" in err for _, _, _, _, err, _ in results) >= 2
    for call, number, page, found, err, _ in results:
        if page == b"lab page of origin.test\n":
            assert found == usual, (call, number, found, err)
            # Landlock is not to be seen.
            assert call != "landlock_restrict_self" or "sbx-proxy: landlock" in err, (number, err)
        else:
            assert "sbx: " in err or "bwrap: " in err, (call, number, err)


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_object_that_is_exchanged_after_the_look_is_not_shown(sbx, project, option):
    """P1, F26: between sbx's look and bubblewrap's mount somebody puts a link to a secret under the name."""
    path = project.write("../../data", "harmless")
    shutil.copy("/usr/bin/bwrap", project.path("../../bwrap"))
    # bubblewrap is started before sbx looks, and gets its options, by the descriptor of --args, when it has looked.
    late = project.write("../../late", f"#!/usr/bin/python3\nimport os, select, sys\n"
                                       f"select.select([int(sys.argv[2])], [], [])\nos.unlink({path!r})\n"
                                       f"os.symlink({project.home + '/secret.txt'!r}, {path!r})\n"
                                       f"os.execv({project.home + '/bwrap'!r}, sys.argv)\n", 0o755)
    result = sbx("run", option, "~/data", "--", "cat", path, prefix=cover.prefix(f"{late}=/usr/bin/bwrap"))
    result.refused("exchanged", path)


def test_failure_after_the_release_is_no_fault_of_the_program(sbx, failing):
    """P1, P9: bubblewrap changes its root last; that it cannot is not 126, which would blame the command."""
    for call, number in (("pivot_root", 2), ("umount2", 1)):
        result, _ = failing((call, number, ERROR), "run", "--", "true")
        result_line, = result.messages
        assert result.code == 125 and "isolation" in result_line, result


def test_program_that_cannot_be_executed_is_explained(sbx, project):
    """P9: 126 and what is wrong with the program."""
    project.write("script", "#! /no/such/interpreter -x\n", 0o755)
    result = sbx.run("--", "./script")
    assert result.code == 126 and "/no/such/interpreter" in result.messages[0], result
    loader = b"/lib64/ld-linux-x86-64.so.2\0" if os.path.exists("/lib64/ld-linux-x86-64.so.2") else b"/lib/ld-linux"
    with open("/usr/bin/true", "rb") as file:
        own = file.read()
    assert loader in own
    project.write("foreign", own.replace(loader, b"/no" + loader[3:]), 0o755)
    result = sbx.run("--", "./foreign")
    assert result.code == 126 and "its interpreter /no" in result.messages[0], result
