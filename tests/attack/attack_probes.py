"""Code that runs inside and tries what must not be possible. Every probe prints JSON."""

# call(NAME or NUMBER, arguments...) gives the name of the error, or the result where there is none.
PRELUDE = """
import ctypes, errno, json, os, platform, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X86 = dict(ptrace=101, personality=135, modify_ldt=154, pivot_root=155, acct=163, mount=165, umount2=166, swapon=167,
           swapoff=168, reboot=169, init_module=175, delete_module=176, quotactl=179, io_setup=206, kexec_load=246,
           add_key=248, request_key=249, keyctl=250, unshare=272, perf_event_open=298, name_to_handle_at=303,
           open_by_handle_at=304, clock_settime=227, setns=308, process_vm_readv=310, process_vm_writev=311, kcmp=312,
           finit_module=313, memfd_create=319, kexec_file_load=320, bpf=321, userfaultfd=323, uselib=134, syslog=103,
           settimeofday=164, iopl=172, ioperm=173, vhangup=153, clone=56, socket=41, socketpair=53, kill=62, ioctl=16,
           shmget=29, semget=64, msgget=68, mq_open=240, sethostname=170, setdomainname=171, setpriority=141,
           ioprio_set=251, mq_unlink=241, chroot=161, mknod=133, rt_sigqueueinfo=129, getpid=39, execveat=322,
           lookup_dcookie=212, _sysctl=156)
ARM = dict(ptrace=117, personality=92, pivot_root=41, acct=89, mount=40, umount2=39, swapon=224, swapoff=225,
           reboot=142, init_module=105, delete_module=106, quotactl=60, io_setup=0, kexec_load=104, add_key=217,
           request_key=218, keyctl=219, unshare=97, perf_event_open=241, name_to_handle_at=264, open_by_handle_at=265,
           clock_settime=112, setns=268, process_vm_readv=270, process_vm_writev=271, kcmp=272, finit_module=273,
           memfd_create=279, kexec_file_load=294, bpf=280, userfaultfd=282, syslog=116, settimeofday=170, vhangup=58,
           clone=220, socket=198, socketpair=199, kill=129, ioctl=29, shmget=194, semget=190, msgget=186, mq_open=180,
           sethostname=161, setdomainname=162, setpriority=140, ioprio_set=30, mq_unlink=181, chroot=51, mknod=33,
           rt_sigqueueinfo=138, getpid=172, execveat=281)
BOTH = dict(pidfd_send_signal=424, io_uring_setup=425, io_uring_enter=426, io_uring_register=427, open_tree=428,
            move_mount=429, fsopen=430, fsconfig=431, fsmount=432, fspick=433, pidfd_open=434, clone3=435,
            close_range=436, openat2=437, pidfd_getfd=438, mount_setattr=442, quotactl_fd=443,
            landlock_create_ruleset=444, memfd_secret=447, open_tree_attr=467)
NUMBERS = {**(X86 if platform.machine() == "x86_64" else ARM), **BOTH}

def call(name, *args):
    number = NUMBERS[name] if isinstance(name, str) else name
    args = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    return errno.errorcode[ctypes.get_errno()] if result < 0 else result

def in_child(function):
    # Runs function in a child: the name of the signal that killed it, or its exit code, or what it returned as text.
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(function()).encode())
        except BaseException as error:
            os.write(write, repr(error).encode())
        os._exit(0)
    os.close(write)
    text = b""
    while data := os.read(read, 9999): text += data
    os.close(read)
    status = os.waitpid(pid, 0)[1]
    return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else text.decode()

def status(pid="self"):
    lines = open(f"/proc/{pid}/status").read().splitlines()
    return dict(line.split(":\\t", 1) for line in lines if ":\\t" in line)

def show(value):
    print(json.dumps(value), flush=True)
"""

# In front of what would harm the machine if there were no sandbox round it.
GUARD = """
if os.getpid() > 20: raise SystemExit("no process namespace: nothing done")
"""


def probe(sbx, code, *options, **more):
    """Runs PRELUDE and code inside; what it showed."""
    return sbx.python(PRELUDE + code, *options, **more).json


def outside(code, **more):
    """The same outside of any sandbox: what the kernel says by itself."""
    import json
    import subprocess
    from harness.sbx import PYTHON
    done = subprocess.run([PYTHON, "-I", "-c", PRELUDE + code], capture_output=True, text=True, check=True, timeout=60,
                          **more)
    return json.loads(done.stdout)
