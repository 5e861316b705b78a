"""System calls that the filter refuses (F3, F5, F6, F13), with arguments that an unfiltered kernel judges otherwise."""
import os
import platform

import pytest

from attack_probes import outside, probe

X86 = platform.machine() == "x86_64"
REFUSAL = {"EPERM", "ENOSYS", "EACCES"}

# Arguments are such that without a filter the call succeeds or fails for another reason (EFAULT, EBADF, EINVAL ...),
# wherever the kernel does not refuse it to everybody by itself.
REFUSED = {
    "unshare": "call('unshare', 0x10000000)",
    "unshare of mounts": "call('unshare', 0x10020000)",
    "unshare of net": "call('unshare', 0x50000000)",
    "unshare with high bits": "call('unshare', 0x10000000 | 1 << 32)",
    "clone of a user namespace": "in_child(lambda: call('clone', 0x10000000 | 17, 0, 0, 0, 0))",
    "setns": "call('setns', os.open('/proc/self/ns/user', os.O_RDONLY), 0)",
    "setns of net": "call('setns', os.open('/proc/self/ns/net', os.O_RDONLY), 0x40000000)",
    "mount": "call('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, 0)",
    "umount2": "call('umount2', b'/tmp', 2)",
    "pivot_root": "call('pivot_root', b'/tmp', b'/tmp')",
    "open_tree": "call('open_tree', -100, b'/tmp', 1)",
    "move_mount": "call('move_mount', -1, b'', -1, b'', 0)",
    "fsopen": "call('fsopen', b'tmpfs', 0)",
    "fsconfig": "call('fsconfig', -1, 0, 0, 0, 0)",
    "fsmount": "call('fsmount', -1, 0, 0)",
    "fspick": "call('fspick', -100, b'/tmp', 0)",
    "mount_setattr": "call('mount_setattr', -100, b'/tmp', 0, 0, 0)",
    "clone3": "call('clone3', 0, 0)",
    "io_uring_setup": "call('io_uring_setup', 1, 0)",
    "io_uring_enter": "call('io_uring_enter', -1, 0, 0, 0, 0, 0)",
    "io_uring_register": "call('io_uring_register', -1, 0, 0, 0)",
    "add_key": "call('add_key', b'user', b'lab', b'x', 1, -3)",
    "request_key": "call('request_key', b'user', b'lab', 0, 0)",
    "keyctl": "call('keyctl', 0, -3, 1)",
    "bpf": "call('bpf', 0, 0, 0)",
    "perf_event_open": "call('perf_event_open', 0, 0, -1, -1, 0)",
    "userfaultfd": "call('userfaultfd', 1)",
    "open_by_handle_at": "call('open_by_handle_at', -100, 0, 0)",
    "pidfd_getfd": "call('pidfd_getfd', -1, 0, 0)",
    "personality": "call('personality', 0x0040000)",
    "personality of 32 bits": "call('personality', 8)",
    "kexec_load": "call('kexec_load', 0, 0, 0, 0)",
    "kexec_file_load": "call('kexec_file_load', -1, -1, 0, 0, 0)",
    "init_module": "call('init_module', 0, 0, b'')",
    "finit_module": "call('finit_module', -1, b'', 0)",
    "delete_module": "call('delete_module', b'lab', 0)",
    "reboot": "call('reboot', 0, 0, 0, 0)",
    "swapon": "call('swapon', b'/none', 0)",
    "swapoff": "call('swapoff', b'/none')",
    "acct": "call('acct', b'/tmp/acct')",
    "quotactl": "call('quotactl', 0x80000100, 0, 0, 0)",
    "quotactl_fd": "call('quotactl_fd', -1, 0x80000100, 0, 0)",
    "syslog": "call('syslog', 3, b'x', 0)",
    "settimeofday": "call('settimeofday', 0, 0)",
    "clock_settime": "call('clock_settime', 0, 0)",
    "vhangup": "call('vhangup')",
    "chroot": "call('chroot', b'/tmp')",
    "sethostname": "call('sethostname', os.uname().nodename.encode(), len(os.uname().nodename))",
    "block device": "call('mknod', b'/tmp/block', 0o60600, 0x100) if platform.machine() == 'x86_64' else 'EPERM'",
}
if X86:
    REFUSED["modify_ldt"] = "call('modify_ldt', 0, 0, 0)"
    REFUSED["iopl"] = "call('iopl', 3)"
    REFUSED["ioperm"] = "call('ioperm', 0x80, 1, 1)"

FAMILIES = [n for n in range(1, 50) if n not in (1, 2, 10, 16)]


@pytest.mark.parametrize("what", REFUSED)
def test_refused_call(sbx, what):
    """F6, P7"""
    assert probe(sbx, f"show({REFUSED[what]})") in REFUSAL


def test_refused_calls_all_have_a_reason_to_be_here(sbx):
    """The table above proves something only where the kernel by itself says otherwise: it does for most of it."""
    code = "show({" + ",".join(f"{name!r}: {REFUSED[name]}" for name in (
        "unshare", "io_uring_setup", "keyctl", "clone3", "personality", "pidfd_getfd")) + "})"
    answers = outside(code)
    assert not set(answers.values()) & {"EPERM"}, answers


def test_clone3_is_enosys_so_that_libc_falls_back(sbx):
    assert probe(sbx, "show(call('clone3', 0, 0))") == "ENOSYS"
    code = "import threading; t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()"
    assert sbx.python(code).ok().out == "thread\n"


@pytest.mark.parametrize("option", [(), ("--network", "host")])
def test_socket_families(sbx, option):
    """F6: VSOCK, ALG, PACKET, BLUETOOTH, CAN, XDP, TIPC, SMC and whatever comes: only UNIX, INET, INET6 and route
    netlink."""
    code = f"show({{f: call('socket', f, t, 0) for f in {FAMILIES} for t in (2, 5)}})"
    for family, answer in probe(sbx, code, *option).items():
        assert answer in ("EAFNOSUPPORT", "EPERM", "EACCES"), (family, answer)
    high = probe(sbx, "show([call('socket', 40 | 1 << 32, 1, 0), call('socket', 38 | 1 << 40, 5, 0)])", *option)
    assert set(high) <= {"EAFNOSUPPORT", "EPERM"}, high


def test_netlink_other_than_route(sbx):
    """F6"""
    answers = probe(sbx, "show({p: call('socket', 16, 3, p) for p in range(0, 32)})")
    assert isinstance(answers.pop("0"), int)
    assert set(answers.values()) <= {"EAFNOSUPPORT", "EPERM", "EPROTONOSUPPORT"}, answers
    high = probe(sbx, "show(call('socket', 16, 3, 4 | 1 << 32))")
    assert high in ("EAFNOSUPPORT", "EPERM"), high


@pytest.mark.parametrize("request_code",
                         [0x5412, 0x5412 | 1 << 32, 0x5412 | 0xffffffff << 32, 0x541c, 0x541c | 1 << 32])
def test_terminal_injection(terminal, sbx, project, request_code):
    """F5: compared in 32 bits, as the kernel does. On a real terminal, where an unfiltered kernel could accept it."""
    from attack_probes import PRELUDE
    project.write("push.py", PRELUDE + f"""
print("answer", call('ioctl', 0, {request_code}, ctypes.byref(ctypes.c_char(b'x'))), "end", flush=True)
""")
    term = terminal(sbx.program, "run", "--", "/usr/bin/python3", "push.py")
    assert term.expect(r"answer (\w+) end").group(1) in REFUSAL
    term.wait()


@pytest.mark.skipif(not X86, reason="x86-64 only")
@pytest.mark.parametrize("number", [39, 0, 59, 272, 520, 512, 546])
def test_x32_calls_are_killed(sbx, number):
    """F6: the second table of numbers does not pass the filter."""
    assert probe(sbx, f"show(in_child(lambda: call({number} | 0x40000000, 0, 0, 0, 0)))") == "SIGSYS"


I386 = """
import mmap
def i386(number, ebx=0):
    # mov eax, number; mov ebx, argument; int 0x80; ret
    code = b"\\x53\\xb8" + struct.pack("<I", number) + b"\\xbb" + struct.pack("<I", ebx) + b"\\xcd\\x80\\x5b\\xc3"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""


@pytest.mark.skipif(not X86, reason="x86-64 only")
def test_i386_calls_are_killed(sbx):
    """F6: int 0x80 is a foreign architecture; where the kernel knows it, the filter kills."""
    code = I386 + "show(in_child(lambda: i386(20)))"
    expected = "SIGSYS" if outside(code).isdigit() else outside(code)
    assert probe(sbx, code) == expected


@pytest.mark.skipif(not X86, reason="x86-64 only")
def test_i386_calls_as_an_option_are_filtered_too(sbx):
    """--syscalls i386 lets 32-bit programs run, under the same table: unshare (310) stays refused."""
    if not outside(I386 + "show(in_child(lambda: i386(20)))").isdigit():
        return  # a kernel without 32-bit calls: nothing to let through
    assert int(probe(sbx, I386 + "show(in_child(lambda: i386(20)))", "--syscalls", "i386")) > 0
    answer = probe(sbx, I386 + "show(in_child(lambda: i386(310, 0x10000000)))", "--syscalls", "i386")
    assert answer == "-1", answer


def test_ptrace_works_among_its_own(sbx):
    """DESIGN 7.2: debuggers work inside."""
    code = """
child = os.fork()
if child == 0:
    signal.pause()
show([call('ptrace', 16, child, 0, 0), os.waitpid(child, 0)[1] & 0xff, call('ptrace', 17, child, 0, 0),
      os.kill(child, 9)])
"""
    assert probe(sbx, code) == [0, 0x7f, 0, None]


def test_ptrace_of_the_outside(sbx):
    """P7: nothing that has a number outside only."""
    code = f"""
show([call('ptrace', 0x4206, {os.getpid()}, 0, 0), call('kill', {os.getpid()}, 0),
      call('pidfd_open', {os.getpid()}, 0)])
"""
    assert set(probe(sbx, code)) == {"ESRCH"}


def test_first_process_inside_is_no_stronger_than_the_command(sbx):
    """P7: ptrace and /proc/1/mem reach the sandbox's own init: it is under the same filter, without a capability, in
    the same namespaces, so that there is nothing to be had from it."""
    first, own, links = probe(sbx, """
names = ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")
show([status(1), status(), {n: [os.readlink(f"/proc/{p}/ns/{n}") for p in (1, "self")] for n in names}])
""")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters"):
        assert first[name] == own[name], (name, first[name], own[name])
    for name, (a, b) in links.items():
        assert a == b, name


def test_parts_of_libc_that_must_go_on(sbx):
    """F11 and others: what honest programs need passes."""
    code = """
import multiprocessing, subprocess, threading, select, tempfile, asyncio
done = []
os.close(os.memfd_create("x")); done.append("memfd")
epoll = select.epoll(); done.append("epoll")
subprocess.run(["true"], check=True); done.append("subprocess")
pid = os.posix_spawn("/bin/true", ["true"], {}); os.waitpid(pid, 0); done.append("posix_spawn")
fd = os.pidfd_open(os.getpid()); os.close(fd); done.append("pidfd")
asyncio.run(asyncio.create_subprocess_exec("true")); done.append("asyncio")
p = multiprocessing.get_context("fork").Process(target=lambda: None); p.start(); p.join(); done.append("mp")
a, b = socket.socketpair(); a.send(b"x"); b.recv(1); done.append("socketpair")
lock = multiprocessing.Lock(); lock.acquire(); done.append("semaphore")
show(done)
"""
    assert len(probe(sbx, code)) == 9


def test_nesting_lets_user_namespaces_through_and_nothing_else(sbx):
    """F13: --syscalls nesting: unshare of user, pid, net and so on passes; mounts, keyrings, bpf and so on do not."""
    assert probe(sbx, "show(in_child(lambda: call('unshare', 0x10000000)))", "--syscalls", "nesting") == "0"
    assert probe(sbx, "show(in_child(lambda: call('unshare', 0x10000000 | 0x40000000 | 0x20000000)))", "--syscalls",
                 "nesting") == "0"
    assert probe(sbx, "show(in_child(lambda: call('unshare', 0x10000000)))") == "EPERM"
    names = [n for n in REFUSED if not n.startswith(("unshare", "clone of", "setns", "chroot", "sethostname"))]
    code = "call('unshare', 0x10000000)\nanswers = {}\n"
    code += "".join(f"answers[{name!r}] = {REFUSED[name]}\n" for name in names) + "show(answers)"
    answers = probe(sbx, code, "--syscalls", "nesting")
    assert {name: answer for name, answer in answers.items() if answer not in REFUSAL} == {}


def test_nesting_does_not_detach_what_is_mounted(sbx, project):
    """F13, F26: root of a user namespace of its own can neither unmask what is hidden nor lift protection."""
    project.write("hidden/file", "hunter2")
    project.write(".envrc", "original")
    code = """
call('unshare', 0x10000000 | 0x20000)
call('unshare', 0x10000000)
uid = os.geteuid()
answers = [call('umount2', b'hidden', 2), call('umount2', os.getcwd().encode() + b'/hidden', 2),
           call('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, 0)]
try: answers.append(open('hidden/file').read())
except OSError as error: answers.append(error.strerror)
try: open('.envrc', 'w').write('evil')
except OSError as error: answers.append(error.strerror)
show(answers)
"""
    answers = probe(sbx, code, "--syscalls", "nesting", "--hide", "hidden")
    assert "hunter2" not in answers, answers
    assert project.read(".envrc") == "original"
