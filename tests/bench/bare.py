"""The bubblewrap command with the same mounts and namespaces as a run of sbx has.

A stand-in that stands first on PATH writes down how sbx calls bubblewrap and then becomes the real one. What only sbx
needs (the filter, the descriptors by which it waits and listens) is left out, so that what remains is bubblewrap alone.
"""

import json
import os
import shutil
import subprocess

RECORDER = """#!/usr/bin/python3
import json, os, sys

def text(fd):
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).decode("utf-8", "surrogateescape")

argv = sys.argv[1:]
while "--args" in argv:
    at = argv.index("--args")
    argv[at:at + 2] = text(int(argv[at + 1])).split("\\0")[:-1]
links = {name: os.readlink("/proc/self/fd/" + name) for name in os.listdir("/proc/self/fd")
         if os.path.exists("/proc/self/fd/" + name)}
with open("@record@", "w") as out:
    json.dump({"argv": argv, "links": links}, out)
os.execv("@bwrap@", ["@bwrap@", *sys.argv[1:]])
"""

# Options whose descriptor is of no use without sbx, and flags of two kinds: how many words each takes.
DROPPED = {"--seccomp": 1, "--add-seccomp-fd": 1, "--info-fd": 1, "--block-fd": 1, "--json-status-fd": 1, "--sync-fd": 1,
           "--userns-block-fd": 1}
DATA = {"--file", "--bind-data", "--ro-bind-data"}
BY_FD = {"--bind-fd": "--bind", "--ro-bind-fd": "--ro-bind"}
WORDS = {"--setenv": 2, "--bind": 2, "--bind-try": 2, "--dev-bind": 2, "--dev-bind-try": 2, "--ro-bind": 2,
         "--ro-bind-try": 2, "--symlink": 2, "--chmod": 2, "--unsetenv": 1, "--chdir": 1, "--tmpfs": 1, "--proc": 1,
         "--dev": 1, "--mqueue": 1, "--dir": 1, "--remount-ro": 1, "--perms": 1, "--size": 1, "--uid": 1, "--gid": 1,
         "--hostname": 1, "--cap-add": 1, "--cap-drop": 1, "--lock-file": 1, "--argv0": 1, "--userns": 1,
         "--userns2": 1, "--pidns": 1, "--exec-label": 1, "--file-label": 1}


def recorded(sbx, directory, env, top):
    bwrap = shutil.which("bwrap")
    if not bwrap:
        raise SystemExit("bench: no bwrap on PATH")
    tools = f"{top}/tools"
    os.makedirs(tools, exist_ok=True)
    record = f"{top}/bwrap.json"
    with open(f"{tools}/bwrap", "w", encoding="utf-8") as script:
        script.write(RECORDER.replace("@bwrap@", bwrap).replace("@record@", record))
    os.chmod(f"{tools}/bwrap", 0o755)
    subprocess.run([sbx, "run", "-q", "--", "true"], cwd=directory, check=True, stdin=subprocess.DEVNULL,
                   env={**env, "PATH": f"{tools}:{env['PATH']}"})
    with open(record, encoding="utf-8") as text:
        return bwrap, json.load(text)


def without_descriptors(argv, links, top):
    """The options up to the command, none of them with a descriptor."""
    result = []
    at = 0
    while at < len(argv) and argv[at] != "--":
        option = argv[at]
        if not option.startswith("--"):
            break
        if option in DROPPED:
            at += 1 + DROPPED[option]
        elif option in DATA:
            empty = f"{top}/data"
            open(empty, "w", encoding="utf-8").close()
            if result[-2:-1] == ["--perms"]:
                del result[-2:]
            result += ["--ro-bind", empty, argv[at + 2]]
            at += 3
        elif option in BY_FD:
            result += [BY_FD[option], links[argv[at + 1]], argv[at + 2]]
            at += 3
        else:
            count = 1 + WORDS.get(option, 0)
            result += argv[at : at + count]
            at += count
    return result


def command(sbx, directory, env, top):
    bwrap, call = recorded(sbx, directory, env, top)
    argv = [bwrap, *without_descriptors(call["argv"], call["links"], top), "--", shutil.which("true")]
    subprocess.run(argv, cwd=directory, env=env, check=True, stdin=subprocess.DEVNULL)
    return argv
