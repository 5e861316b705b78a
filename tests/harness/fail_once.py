"""Makes one system call of a run fail: the n-th of its name in any process below, and no other.

    python3 fail_once.py REPORT [CALL NUMBER ERROR] -- COMMAND...

A filter stops each call of CALLS and tells a helper (seccomp_unotify(2)), which counts, and answers one of them with the
error. The helper is nobody's child and ends with the last process under the filter; then it writes to the descriptor
REPORT how many calls of each name there were, as JSON.
"""
import array
import ctypes
import errno
import fcntl
import json
import os
import platform
import select
import socket
import struct
import sys

X86 = {"bind": 49, "capset": 126, "chroot": 161, "clone": 56, "clone3": 435, "landlock_create_ruleset": 444,
       "landlock_restrict_self": 446, "listen": 50, "memfd_create": 319, "mount": 165, "openat2": 437, "pivot_root": 155,
       "prctl": 157, "prlimit64": 302, "sched_setaffinity": 203, "seccomp": 317, "sethostname": 170, "setns": 308,
       "setsid": 112, "socket": 41, "umount2": 166, "unshare": 272}
ARM = {"bind": 200, "capset": 91, "chroot": 51, "clone": 220, "clone3": 435, "landlock_create_ruleset": 444,
       "landlock_restrict_self": 446, "listen": 201, "memfd_create": 279, "mount": 40, "openat2": 437, "pivot_root": 41,
       "prctl": 167, "prlimit64": 261, "sched_setaffinity": 122, "seccomp": 277, "sethostname": 161, "setns": 268,
       "setsid": 157, "socket": 198, "umount2": 39, "unshare": 97}
CALLS = X86 if platform.machine() == "x86_64" else ARM
SECCOMP = CALLS["seccomp"]

USER_NOTIF, ALLOW = 0x7fc00000, 0x7fff0000
NEW_LISTENER, CONTINUE = 8, 1
RECEIVE, SEND = 0xc0502100, 0xc0182101  # SECCOMP_IOCTL_NOTIF_*: struct seccomp_notif has 80 bytes, its answer 24


def filter_program():
    code = struct.pack("HBBI", 0x20, 0, 0, 0)  # A = number
    for number in CALLS.values():
        code += struct.pack("HBBI", 0x15, 0, 1, number) + struct.pack("HBBI", 0x06, 0, 0, USER_NOTIF)
    code += struct.pack("HBBI", 0x06, 0, 0, ALLOW)
    return code


def install():
    """Returns the descriptor on which the stopped calls are told."""
    libc = ctypes.CDLL(None, use_errno=True)
    code = filter_program()
    buffer = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer)))
    if libc.prctl(38, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs")
    fd = libc.syscall(SECCOMP, 1, NEW_LISTENER, program)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "cannot install the filter")
    return fd


def serve(listener, chosen):
    """Answers until no process is left under the filter. chosen: (number of the call, which, errno) or None."""
    names = {number: name for name, number in CALLS.items()}
    counts = dict.fromkeys(CALLS, 0)
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    while poll.poll()[0][1] & select.POLLIN:
        told = bytearray(80)
        try:
            fcntl.ioctl(listener, RECEIVE, told)
            identity, number = struct.unpack("Q8xi", told[:20])
            counts[names[number]] += 1
            error = chosen[2] if chosen and chosen[:2] == (number, counts[names[number]]) else 0
            fcntl.ioctl(listener, SEND, struct.pack("QqiI", identity, 0, -error, 0 if error else CONTINUE))
        except OSError as fault:
            if fault.errno != errno.ENOENT:  # who made the call was killed meanwhile
                raise
    return counts


def helper(ours, report, chosen):
    """In a process that nobody waits for."""
    if os.fork() > 0:
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    _, ancillary, _, _ = ours.recvmsg(1, 64)
    ours.close()
    listener = array.array("i", ancillary[0][2])[0]
    os.write(report, json.dumps(serve(listener, chosen)).encode())
    os._exit(0)


def prefix(report, *failure):
    """Words to put before a command. failure: call, number, name of the error."""
    return ["/usr/bin/python3", "-I", os.path.abspath(__file__), str(report), *map(str, failure), "--"]


def main():
    split = sys.argv.index("--")
    report = int(sys.argv[1])
    chosen = None
    if split > 2:
        call, number, error = sys.argv[2:split]
        chosen = (CALLS[call], int(number), getattr(errno, error))
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        theirs.close()
        helper(ours, report, chosen)
    os.waitpid(child, 0)
    ours.close()
    os.close(report)
    socket.send_fds(theirs, [b"x"], [install()])
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
