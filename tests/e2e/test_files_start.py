"""What a start does not do: read the tree (P12, F29), touch slow mounts (F30)."""
import ctypes
import os
import select
import struct
import subprocess
import threading

import pytest

from harness import procs
from lab import space

IN_ACCESS, IN_OPEN, IN_ONLYDIR = 0x1, 0x20, 0x01000000


class Watch:
    """inotify on every directory below top: which of them were opened, and which listed."""

    def __init__(self, top):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK)
        self.paths = {}
        for directory in [directory for directory, _, _ in os.walk(top)]:  # listed whole before the first watch
            number = self.libc.inotify_add_watch(self.fd, os.fsencode(directory), IN_ACCESS | IN_OPEN | IN_ONLYDIR)
            assert number >= 0, directory
            self.paths[number] = directory

    def events(self):
        """The directories of which anything was seen, with all that was."""
        found = {}
        while select.select([self.fd], [], [], 0)[0]:
            data = os.read(self.fd, 65536)
            while data:
                number, mask, _, length = struct.unpack("iIII", data[:16])
                name = data[16:16 + length].rstrip(b"\0").decode()
                data = data[16 + length:]
                if mask & 0x40000000:  # IN_ISDIR
                    path = os.path.join(self.paths[number], name) if name else self.paths[number]
                    found[path] = found.get(path, 0) | mask
        return found

    def opened(self):
        return set(self.events())

    def close(self):
        os.close(self.fd)


@pytest.fixture
def watch():
    made = []

    def make(top):
        made.append(Watch(top))
        return made[-1]
    yield make
    for each in made:
        each.close()


@pytest.mark.parametrize("options", [(), ("--hide", "secret"), ("--allow", "origin.test"), ("--read", "~/data")])
def test_start_does_not_list_the_tree(sbx, project, watch, options):
    """P12, F29: of 300 directories of a project not one is opened, let alone listed; nor is anything of the home's."""
    for number in range(300):
        project.write(f"src/{number % 20}/{number}/file", "x")
        if number < 50:
            project.write(f"../../data/{number}/file", "x")
            project.write(f"../../other/{number}/file", "x")
    project.write("secret/file", "x")
    seen = watch(project.home)
    sbx.run(*options, "--", "true").ok()
    events = {os.path.relpath(path, project.home): mask for path, mask in seen.events().items()}
    below = {path for path in events if path.startswith(("src/app/src", "data/", "other", "src/app/secret/"))}
    assert below == set(), below
    # Nor are the names in the project's own directory read; bubblewrap 0.11 opens what it mounts.
    assert not events.get("src/app", 0) & IN_ACCESS


def test_watch_would_see_it(project, watch):
    """The test above is able to fail."""
    project.write("src/deep/file", "x")
    seen = watch(project.home)
    subprocess.run(["ls", "-R", project.root], check=True, stdout=subprocess.DEVNULL)
    assert seen.events()[project.path("src/deep")] & IN_ACCESS


def test_start_takes_the_same_steps_in_a_large_tree(sbx, project, watch):
    """P12: opens of directories seen in a tree of 20 and of 2,000 directories are the same."""
    counts = []
    for top in (20, 2000):
        for number in range(top):
            os.makedirs(project.path(f"tree/{number % 50}/{number}"), exist_ok=True)
        seen = watch(project.root)
        sbx.run("--", "true").ok()
        counts.append(len(seen.opened()))
    assert counts[0] == counts[1]


def pending(path):
    """A mount whose daemon never answers: whoever looks below path hangs. Of autofs; where the kernel has none, of FUSE.
    Returns descriptors: what the kernel asks comes from the first, and with the second the mount dies."""
    os.makedirs(path, exist_ok=True)
    with open("/proc/filesystems") as file:
        has_autofs = "\tautofs\n" in file.read()
    if not has_autofs:
        device = os.open("/dev/fuse", os.O_RDWR)
        space.mount("lab", path, "fuse", 0, f"fd={device},rootmode=40000,user_id=0,group_id=0")
        return os.dup(device), device
    read, write = os.pipe()
    os.set_inheritable(write, True)
    space.mount("lab", path, "autofs", 0, f"fd={write},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct")
    return read, write


@pytest.mark.root
@pytest.mark.parametrize("where", ["sibling", "opt", "inside"])
def test_dead_automount_does_not_hang_the_start(sbx, project, where):
    """F30: neither one beside the workspace, nor one under /opt, nor one in the workspace is looked into."""
    path = {"sibling": project.path("../dead/mount"), "opt": "/opt/lab-dead",
            "inside": project.path("dead/mount")}[where]
    existed = os.path.exists(path)
    read, write = pending(path)
    # The process group that mounted it is the daemon's and does not hang itself: sbx needs another one.
    try:
        threading.Thread(target=lambda: os.read(read, 1 << 17), daemon=True).start()
        result = sbx.run("--", "echo", "started", start_new_session=True, timeout=40)
        assert result.ok().out == "started\n"
    finally:
        os.close(write)
        space.unmount(path)
        if not existed:
            os.rmdir(path)


def test_fifo_and_odd_files_at_protected_names_do_not_hang(sbx, project):
    """F30's kin: opening a FIFO blocks, opening a device may do anything: a start does neither."""
    for name in (".envrc", ".mcp.json", "some-fifo"):
        os.mkfifo(project.path(name))
    assert sbx.run("--hide", "some-fifo", "--", "echo", "started", timeout=40).ok().out == "started\n"


def test_fifo_as_policy_is_refused(sbx, project):
    """P11: not waited for."""
    os.mkfifo(project.path(".sbx.json"))
    sbx.run("--", "true", timeout=40).refused(".sbx.json")


def test_many_masks_start(sbx, project):
    """P12, F29: 2,000 hidden paths are set up, whatever bubblewrap's limit of arguments is."""
    policy = {"filesystem": {"hide": []}}
    for number in range(2000):
        os.makedirs(project.path(f"m/{number}"))
        policy["filesystem"]["hide"].append(f"m/{number}")
    path = project.policy("../../policy.json", **policy)
    result = sbx.run("--policy", path, "--", "ls", "m/1999")
    assert result.code not in (0, 125), result
    assert procs.descendants() == []


def test_each_mask_costs_the_same_steps(project, failing):
    """P12: at most linearly: looks and mounts of a run, bubblewrap's included. (What a mount costs is the kernel's.)"""
    counts, options = [], []
    for count in (10, 20, 40):
        for number in range(len(options) // 2, count):
            project.write(f"m/{number}", "x")
            options += ["--hide", f"m/{number}"]
        result, calls = failing((), "run", *options, "--", "true")
        result.ok()
        counts.append(calls)
    few, some, many = counts
    assert some["mount"] > few["mount"] and some["openat2"] > few["openat2"], counts
    for call in many:
        assert many[call] - some[call] <= 2 * max(some[call] - few[call], 0) + 2, (call, counts)
