"""The bubblewrap command with the same mounts and namespaces as a run of sbx: its plan, without all that only sbx does (the
guard, the filter, waiting, listeners, the look at what was mounted)."""

import json
import os
import shutil
import subprocess

NAMESPACES = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup", "--unshare-net",
              "--cap-drop", "ALL", "--hostname", "sbx"]


class Bare:
    """argv, and the descriptors that it inherits: one per file that is made inside, all of them empty."""

    def __init__(self, sbx, directory, env, top):
        plan = json.loads(subprocess.run([sbx, "run", "--dry-run", "--json", "--", "true"], cwd=directory, env=env,
                                         check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout)
        bwrap = shutil.which("bwrap")
        if not bwrap:
            raise SystemExit("bench: no bwrap on PATH")
        self.closed = f"{top}/closed"
        os.makedirs(self.closed, mode=0, exist_ok=True)
        self.descriptors = []
        self.argv = [bwrap, *NAMESPACES]
        for operation in plan["operations"]:
            self.argv += self.option(operation)
        self.argv += ["--chdir", directory, "--", shutil.which("true")]

    def option(self, operation):
        kind, target, source = operation["kind"], operation["target"], operation["source"]
        if kind in ("file", "cover"):
            descriptor = os.open("/dev/null", os.O_RDONLY)
            os.set_inheritable(descriptor, True)
            self.descriptors.append(descriptor)
            return ["--file" if kind == "file" else "--ro-bind-data", str(descriptor), target]
        return {
            "read-only": ["--ro-bind", source, target],
            "writable": ["--bind", source, target],
            "link": ["--symlink", source, target],
            "tmpfs": ["--tmpfs", target],
            "directory": ["--dir", target],
            "proc": ["--proc", target],
            "dev": ["--dev", target],
            "hidden-file": ["--ro-bind", "/dev/null", target],
            "hidden-directory": ["--ro-bind", self.closed, target],
            "seal": ["--remount-ro", target],
        }[kind]
