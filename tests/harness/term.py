"""A terminal with a program on it, driven as a person would."""
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

from harness.procs import DEADLINE


class Terminal:
    """argv as session leader on a new pseudo-terminal (setsid(1) --ctty)."""

    def __init__(self, argv, cwd, env, size=(24, 80)):
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.process = subprocess.Popen(["setsid", "--ctty", *argv], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
                                        env=env)
        os.close(slave)
        self.seen = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def send(self, text):
        os.write(self.master, text.encode())

    def expect(self, pattern, deadline=DEADLINE):
        """Reads until pattern matches what has not been matched yet; returns the match."""
        end = time.monotonic() + deadline
        while not (match := re.search(pattern, self.seen, re.S | re.M)):
            left = end - time.monotonic()
            assert left > 0, f"terminal: no {pattern!r} in {self.seen!r}"
            if select.select([self.master], [], [], left)[0]:
                try:
                    data = os.read(self.master, 65536)
                except OSError:
                    data = b""
                assert data, f"terminal closed: no {pattern!r} in {self.seen!r}"
                self.seen += data.decode("utf-8", "replace")
        self.seen = self.seen[match.end():]
        return match

    @property
    def foreground(self):
        """Process group in the foreground of the terminal."""
        return os.tcgetpgrp(self.master)

    def modes(self):
        return termios.tcgetattr(self.master)

    def wait(self):
        """Exit status of argv. Reads on, so that it cannot block on a full terminal."""
        end = time.monotonic() + DEADLINE
        while self.process.poll() is None:
            assert time.monotonic() < end, f"terminal: does not end; {self.seen!r}"
            if select.select([self.master], [], [], 0.02)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    time.sleep(0.02)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
