"""Plays another kernel: a program under a filter that answers chosen system calls with an error.

    python3 refuse.py CALL=ERROR[:namespaces]... -- COMMAND...

`namespaces` (clone and unshare) refuses only calls that ask for a new namespace. The filter is classic BPF, laid down
here by hand so that nothing needs to be installed; no_new_privs is what allows it without privilege.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

X86 = {"access": 21, "clone": 56, "clone3": 435, "close_range": 436, "faccessat2": 439, "io_uring_setup": 425,
       "landlock_create_ruleset": 444, "memfd_create": 319, "mount_setattr": 442, "open_tree": 428, "openat2": 437,
       "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "ptrace": 101, "seccomp": 317, "setns": 308, "statx": 332,
       "unshare": 272, "renameat2": 316, "copy_file_range": 326, "getrandom": 318, "fsopen": 430, "move_mount": 429}
ARM = {"clone": 220, "clone3": 435, "close_range": 436, "faccessat2": 439, "io_uring_setup": 425,
       "landlock_create_ruleset": 444, "memfd_create": 279, "mount_setattr": 442, "open_tree": 428, "openat2": 437,
       "pidfd_open": 434, "pidfd_send_signal": 424, "pidfd_getfd": 438, "ptrace": 117, "seccomp": 277, "setns": 268, "statx": 291,
       "unshare": 97, "renameat2": 276, "copy_file_range": 285, "getrandom": 278, "fsopen": 430, "move_mount": 429}
NAMESPACES = 0x7e020000  # CLONE_NEW*, but CLONE_NEWTIME, which lies among the exit signal's bits


def instruction(code, jump_true, jump_false, value):
    return struct.pack("HBBI", code, jump_true, jump_false, value)


def build(rules):
    """rules: (number, errno, whether only for namespaces)."""
    program = [instruction(0x20, 0, 0, 0)]  # A = number
    for number, error, namespaces in rules:
        answer = instruction(0x06, 0, 0, 0x00050000 | error)
        if namespaces:
            program += [instruction(0x15, 0, 4, number), instruction(0x20, 0, 0, 16),
                        instruction(0x45, 0, 1, NAMESPACES), answer,
                        instruction(0x20, 0, 0, 0)]
        else:
            program += [instruction(0x15, 0, 1, number), answer]
    program.append(instruction(0x06, 0, 0, 0x7fff0000))
    return b"".join(program), len(program)


def install(rules):
    libc = ctypes.CDLL(None, use_errno=True)
    code, length = build(rules)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", length, ctypes.addressof(buffer))
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot install the filter")


def parse(text):
    name, _, answer = text.partition("=")
    answer, _, condition = answer.partition(":")
    numbers = X86 if platform.machine() == "x86_64" else ARM
    return numbers[name], getattr(errno, answer), condition == "namespaces"


def prefix(*rules):
    """Words to put before a command."""
    return ["/usr/bin/python3", "-I", os.path.abspath(__file__), *rules, "--"]


def main():
    split = sys.argv.index("--")
    install([parse(text) for text in sys.argv[1:split]])
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
