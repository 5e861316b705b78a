"""Processes as /proc shows them, and waiting."""
import os
import time

DEADLINE = 30.0


def wait_until(condition, what, deadline=DEADLINE):
    """Calls condition until it returns something true, and returns that; fails with what (a text, or a function that
    makes it) otherwise."""
    end = time.monotonic() + deadline
    while True:
        result = condition()
        if result:
            return result
        assert time.monotonic() < end, f"waited {deadline:.0f} s in vain: {what() if callable(what) else what}"
        time.sleep(0.01)


class Process:
    """One process at one moment."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("latin-1")
        fields = text[text.rindex(")") + 2:].split()
        self.pid = pid
        self.name = text[text.index("(") + 1:text.rindex(")")]
        self.state, self.parent, self.group, self.session = fields[0], *map(int, fields[1:4])

    def __repr__(self):
        return f"{self.name}[{self.pid}, {self.state}, parent {self.parent}]"

    def read(self, name):
        """Bytes of a file of /proc/PID; b"" where it is gone or not ours to read."""
        try:
            with open(f"/proc/{self.pid}/{name}", "rb") as file:
                return file.read()
        except OSError:
            return b""

    @property
    def argv(self):
        return [a.decode("latin-1") for a in self.read("cmdline").split(b"\0")[:-1]]


def processes():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.append(Process(int(name)))
            except OSError:
                pass  # gone meanwhile
    return found


def descendants(top=None):
    """Living processes below top (this process by default). The lab makes the tests a subreaper: what a run leaves
    behind ends up below them. Zombies do not count."""
    every = processes()
    below, grew = {top or os.getpid()}, True
    while grew:
        more = {p.pid for p in every if p.parent in below} - below
        below |= more
        grew = bool(more)
    below.discard(top or os.getpid())
    return [p for p in every if p.pid in below and p.state not in "ZX"]


def reap():
    """Collects the dead among the processes that came to us as orphans. For the end of a test: what subprocess itself
    still waits for is collected as well."""
    for process in processes():
        if process.parent == os.getpid() and process.state == "Z":
            try:
                os.waitpid(process.pid, os.WNOHANG)
            except ChildProcessError:
                pass


def mounts():
    """This namespace's mounts, to be compared before and after."""
    with open("/proc/self/mountinfo") as file:
        return sorted(line.split(" ", 2)[2] for line in file)
