"""What of the host is out of reach: IPC, keyrings, names, processes, signals, privilege (P7, P8; F1, F3)."""
import ctypes
import os
import signal
import subprocess

import pytest

from attack_probes import GUARD, PRELUDE, outside, probe
from harness.procs import Process, descendants, wait_until
from harness.sbx import PYTHON


def test_no_capabilities_and_no_new_privileges(sbx):
    """P8: also when started by root, the bounding set included."""
    status = probe(sbx, "show(status())")
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, status
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2", status


def test_namespaces_are_its_own(sbx):
    """DESIGN 7.1: each one differs from the caller's."""
    code = "show({n: os.readlink('/proc/self/ns/' + n) for n in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup')})"
    inside, host = probe(sbx, code), outside(code)
    for name in inside:
        assert inside[name] != host[name], name


def test_network_host_keeps_the_other_namespaces(sbx):
    code = "show({n: os.readlink('/proc/self/ns/' + n) for n in ('user', 'mnt', 'pid', 'net', 'ipc', 'uts', 'cgroup')})"
    inside, host = probe(sbx, code, "--network", "host"), outside(code)
    assert [n for n in inside if inside[n] == host[n]] == ["net"]


def test_system_v_ipc_is_not_the_hosts(sbx):
    """P7, F3: shared memory, semaphores and message queues of the host have no key inside."""
    libc = ctypes.CDLL(None, use_errno=True)
    key, create = 0x5b0c0de, 0o1000 | 0o666
    segment, queue, semaphore = libc.shmget(key, 4096, create), libc.msgget(key, create), libc.semget(key, 1, create)
    assert min(segment, queue, semaphore) >= 0
    try:
        answers = probe(sbx,
                        f"show([call('shmget', {key}, 0, 0), call('msgget', {key}, 0), call('semget', {key}, 0, 0)])")
        assert outside(f"show(call('shmget', {key}, 0, 0))") == segment
        listed = sbx.shell("cat /proc/sysvipc/shm /proc/sysvipc/msg /proc/sysvipc/sem").ok().out
    finally:
        libc.shmctl(segment, 0, None)
        libc.msgctl(queue, 0, None)
        libc.semctl(semaphore, 0, 0)
    assert answers == ["ENOENT"] * 3
    assert str(key) not in listed


def test_posix_message_queues_are_not_the_hosts(sbx):
    """P7, F3"""
    librt = ctypes.CDLL(None, use_errno=True)
    queue = librt.mq_open(b"/lab-queue", os.O_CREAT | os.O_RDWR, 0o666, None)
    assert queue >= 0
    try:
        assert probe(sbx, "show(call('mq_open', b'lab-queue', 0, 0, 0))") == "ENOENT"
    finally:
        librt.mq_unlink(b"/lab-queue")


def test_shared_memory_files_are_not_the_hosts(sbx):
    """P7, F3: /dev/shm, where shm_open() and sem_open() put theirs."""
    with open("/dev/shm/lab-segment", "w") as file:
        file.write("hunter2")
    try:
        assert "hunter2" not in sbx.shell("cat /dev/shm/lab-segment").out
    finally:
        os.unlink("/dev/shm/lab-segment")


def test_host_name_change_is_not_seen_and_not_possible(sbx):
    """P7: the host's name is not told, and cannot be set."""
    before = os.uname().nodename
    result = probe(sbx, "name = os.uname().nodename\nshow([name, call('sethostname', name.encode(), len(name))])")
    assert result[1] == "EPERM"
    assert result[0] != before or before in ("localhost", "sbx")


def test_cgroup_path_is_not_visible(sbx):
    """P7"""
    lines = sbx.run("--", "cat", "/proc/self/cgroup").ok().out.split()
    assert all(line.split(":", 2)[2] == "/" for line in lines), lines


def test_keyrings_are_not_listed(sbx):
    """P7: nor is a key of the user's own, which the kernel would let it see."""
    outside("show([call('add_key', b'user', b'lab-key', b'x', 1, -4), call('keyctl', 11, -4, 0, 0)])")
    try:
        with open("/proc/keys") as file:
            assert "lab-key" in file.read()
        result = sbx.shell("cat /proc/keys /proc/key-users; echo end")
    finally:
        outside("show(call('keyctl', 9, call('keyctl', 10, -4, b'user', b'lab-key', 0), -4))")
    assert result.out == "end\n", result


def test_process_group_of_the_caller_is_not_hit(sbx):
    """P7: kill(0), kill(-1) and their kin from inside hit neither sbx nor others of the caller's process group."""
    code = PRELUDE + GUARD + """
own = os.pidfd_open(os.getpid())
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
    for group in (0, -1): call('kill', group, int(number))
    call('kill', 1 << 32, int(number)); call('kill', 0, int(number) | 1 << 32)
    call('pidfd_send_signal', own, int(number), 0, 4)
    call('pidfd_send_signal', own, int(number), 0, 4 | 1 << 32)
    try: os.killpg(0, number)
    except OSError: pass
    try: os.killpg(os.getpgrp(), number)
    except OSError: pass
    call('rt_sigqueueinfo', 0, int(number), b'\\0' * 128)
print("tried", flush=True)
"""
    script = 'sleep 1000 & echo $!; "$@"; echo "status $?"; kill -0 $! && echo alive; kill -KILL $!'
    process = subprocess.Popen(["sh", "-c", script, "sh", sbx.program, "run", "--", PYTHON, "-c", code], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=sbx.project.root, env=sbx.env,
                               start_new_session=True)
    out, err = process.communicate(timeout=60)
    assert out.split()[1:] == ["tried", "status", "0", "alive"], (out, err)


def test_process_group_of_the_caller_is_not_hit_on_a_terminal(terminal, sbx, project):
    """P7: on a terminal the run is a job of the user's shell, and a bystander may be in the same job."""
    project.write("hit.py", PRELUDE + GUARD + """
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL):
    if number != signal.SIGKILL: signal.signal(number, signal.SIG_IGN)
    own = os.pidfd_open(os.getpid())
    call('kill', 1 << 32, int(number)); call('kill', 0, int(number) | 1 << 32)
    call('pidfd_send_signal', own, int(number), 0, 4)
    call('rt_sigqueueinfo', 0, int(number), b'\\0' * 128)
    call('kill', 0, int(number))
print("tried", flush=True)
""")
    term = terminal("sh", "-c",
                    f"(trap '' TTOU; sleep 7; echo by''stander) & {sbx.program} run -- {PYTHON} hit.py; wait; exit 0")
    term.expect("tried")
    term.expect("bystander")
    assert term.wait() == 0


def test_priority_of_the_callers_process_group_is_not_changed(sbx):
    """P7: setpriority and ioprio_set by process group or by user reach nobody outside."""
    code = PRELUDE + GUARD + """
for which in (1, 2): call('setpriority', which, 0, 15); call('setpriority', which | 1 << 32, 0, 15)
for which in (2, 3): call('ioprio_set', which, 0, 3 << 13 | 7)
print("tried", flush=True)
"""
    script = 'sleep 1000 & "$@"; cut -d" " -f19 /proc/$!/stat; ionice -p $!; kill -KILL $!'
    process = subprocess.Popen(["sh", "-c", script, "sh", sbx.program, "run", "--", PYTHON, "-c", code], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=sbx.project.root, env=sbx.env)
    out, err = process.communicate(timeout=60)
    lines = out.splitlines()
    assert lines[:2] == ["tried", str(os.nice(0))] and "idle" not in lines[2], (out, err)


def test_processes_of_the_host_have_no_number_inside(sbx):
    """P7"""
    code = f"""
pids = [{os.getpid()}, {os.getppid()}, 99999]
answers = []
for pid in pids:
    try: os.kill(pid, 0); answers.append("hit")
    except OSError as error: answers.append(errno.errorcode[error.errno])
    try: os.close(os.pidfd_open(pid)); answers.append("opened")
    except OSError as error: answers.append(errno.errorcode[error.errno])
show(answers)
"""
    assert set(probe(sbx, code)) == {"ESRCH"}


def test_first_process_inside_is_not_killable(sbx):
    """P6: signals from inside do not end the sandbox's init."""
    answers = probe(sbx, GUARD + "show([call('kill', 1, 9), call('kill', 1, 15), call('kill', 1, 19)])")
    assert len(answers) == 3


@pytest.mark.parametrize("path", [
    "/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/hostname", "/proc/sys/net/ipv4/ip_forward", "/proc/sys/fs/file-max",
    "/proc/sys/kernel/randomize_va_space", "/proc/sysrq-trigger", "/proc/sys/fs/binfmt_misc/register",
    "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/yama/ptrace_scope", "/proc/irq/default_smp_affinity",
    "/proc/mtrr",
])
def test_kernel_settings_are_not_writable(sbx, path):
    """F1, P8: sysctls look at the kernel's uid; for root the mount must stop it. (Opened, never written.)"""
    answer = probe(sbx, f"""
try: os.close(os.open({path!r}, os.O_WRONLY)); show("opened")
except OSError as error: show(errno.errorcode[error.errno])
""")
    assert answer in ("EROFS", "EACCES", "EPERM", "ENOENT", "ENXIO", "EIO"), answer


# What belongs to the sandbox's own IPC and PID namespaces: a plain user is their owner, and changes nothing outside.
OWN_SETTINGS = ("/proc/sys/fs/mqueue/", "/proc/sys/kernel/auto_msgmni", "/proc/sys/kernel/msg", "/proc/sys/kernel/sem",
                "/proc/sys/kernel/shm", "/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/pid_max")


def test_no_setting_of_the_kernel_is_writable(sbx):
    """F1, P8: every file below /proc/sys, and what stands beside it; for root, whose uid sysctls look at, without
    exception."""
    code = """
opened = []
for top in ("/proc/sys", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/driver", "/proc/scsi", "/proc/acpi", "/proc/tty"):
    for directory, _, names in os.walk(top):
        for name in names:
            path = os.path.join(directory, name)
            try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); opened.append(path)
            except OSError: pass
show(opened)
"""
    opened = probe(sbx, code)
    assert [p for p in opened if os.geteuid() == 0 or not p.startswith(OWN_SETTINGS)] == []


def test_files_of_proc_that_are_masked(sbx):
    """P8: the paths that container runtimes mask."""
    code = """
answers = {}
for path in ("acpi", "asound", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug", "scsi",
             "sysrq-trigger"):
    path = "/proc/" + path
    if not os.path.lexists(path): continue
    try: answers[path] = len(os.listdir(path)) if os.path.isdir(path) else len(open(path, "rb").read(10))
    except OSError as error: answers[path] = errno.errorcode[error.errno]
show(answers)
"""
    for path, answer in probe(sbx, code).items():
        assert answer in (0, "EACCES", "EPERM", "EIO", "ENOENT"), (path, answer)


def test_sysfs_cannot_be_written(sbx):
    """P8"""
    code = """
opened = []
for directory, names, files in os.walk("/sys"):
    if directory.count("/") > 5: names.clear()
    for name in files:
        path = os.path.join(directory, name)
        try:
            if os.stat(path).st_mode & 0o222: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK)); opened.append(path)
        except OSError: pass
show(opened)
"""
    assert probe(sbx, code) == []


def test_cgroup_tree_cannot_be_written(sbx):
    """P8: leaving a limit by writing cgroup.procs."""
    result = sbx.shell("find /sys/fs/cgroup -name cgroup.procs 2>/dev/null | "
                       "while read f; do echo $$ > $f && echo wrote; done")
    assert "wrote" not in result.out, result


@pytest.mark.root
def test_core_pattern_stays_as_root(sbx):
    """F1, P8: an attempt in earnest, with a value that changes nothing where it succeeds."""
    with open("/proc/sys/kernel/core_pattern") as file:
        before = file.read()
    result = sbx.shell(f"printf '%s' '{before.strip()}' > /proc/sys/kernel/core_pattern && echo wrote")
    assert "wrote" not in result.out, result


@pytest.mark.root
def test_files_of_others_are_not_readable_as_root(sbx):
    """P8: root inside is root without capabilities: what belongs to others with mode 600 stays closed."""
    path = sbx.project.write("theirs", "hunter2", 0o600)
    os.chown(path, 4242, 4242)
    result = sbx.shell("cat theirs; chown 0:0 theirs; chmod 666 theirs")
    assert "hunter2" not in result.out and result.code != 0, result
    assert os.stat(path).st_uid == 4242


@pytest.mark.root
def test_root_may_not_change_what_is_the_systems(sbx):
    """P8. Attempts that would change nothing if they succeeded."""
    code = """
answers = []
for attempt in (lambda: os.close(os.open("/etc/passwd", os.O_WRONLY | os.O_APPEND)),
                lambda: os.chmod("/etc/passwd", os.stat("/etc/passwd").st_mode & 0o7777),
                lambda: os.chown("/etc/passwd", 0, 0), lambda: os.utime("/usr/bin/env", (0, 0)),
                lambda: os.close(os.open("/usr/bin/env", os.O_WRONLY)), lambda: os.mkdir("/usr")):
    try: attempt(); answers.append("done")
    except OSError as error: answers.append(errno.errorcode[error.errno])
show(answers)
"""
    assert set(probe(sbx, code)) <= {"EROFS", "EACCES", "EPERM", "EEXIST"}


def test_secrets_of_the_system_are_not_shown(sbx):
    """P8: what only root could read is not readable inside, whoever started it."""
    for path in ("/etc/shadow", "/etc/gshadow", "/etc/sudoers"):
        if os.path.exists(path):
            assert sbx.run("--", "head", "-c1", path).code != 0, path


def test_exposed_terminal_is_not_reopened_for_others(sbx):
    """P7: no other terminal of the machine has a name inside."""
    result = sbx.shell("ls /dev/pts /dev/tty1 /dev/ttyS0 /dev/console 2>/dev/null; true")
    assert [n for n in result.out.split() if n.isdigit() and n != "0"] == [], result


def test_memory_of_the_host_processes_is_not_reachable_by_descriptor(sbx):
    """P7: a descriptor that is passed with --fd leads nowhere but to its own file."""
    fd = os.open("/proc/self", os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(fd, True)
    try:
        result = sbx.python(f"import os; print(os.path.exists('/proc/self/fd/{fd}/mem'))", pass_fds=(fd,))
    finally:
        os.close(fd)
    assert result.ok().out == "False\n"


def test_confinement_of_the_proxy(sbx):
    """DESIGN 2: before it reads a byte from the sandbox: a filter, no new privileges, no capabilities, not dumpable."""
    process = sbx.start("run", "--allow", "origin.test", "--", "sh", "-c",
                        "curl -s http://origin.test/ >/dev/null; echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    proxy, = [p for p in descendants() if p.name == "sbx-proxy"]
    status = dict(line.split(":\t", 1) for line in proxy.read("status").decode().splitlines() if ":\t" in line)
    owner = os.stat(f"/proc/{proxy.pid}/environ").st_uid
    process.kill()
    process.communicate()
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", status
    assert int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, status
    assert owner != os.geteuid() or os.geteuid() == 0, "dumpable: its files in /proc belong to the user"


@pytest.mark.parametrize("where", ["--fd", "stdin"])
def test_directory_on_a_descriptor_is_refused(sbx, where):
    """P7: from a directory of the host openat() leads to everything beside and above it."""
    fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        if where == "stdin":
            result = sbx.run("--", "true", stdin=fd)
        else:
            result = sbx.run("--fd", str(fd), "--", "true", pass_fds=(fd,))
    finally:
        os.close(fd)
    result.refused("directory", "--read")


def test_proxy_cannot_be_reached_but_by_its_port(sbx):
    """P7: no socket of sbx or of its proxy stands in the file system or in the abstract space."""
    process = sbx.start("run", "--allow", "origin.test", "--", "sh", "-c",
                        "curl -s http://origin.test/ >/dev/null; cat /proc/net/unix; echo ready; exec sleep 1000")
    lines = []
    while (line := process.stdout.readline()) != b"ready\n":
        assert line, process.stderr.read()
        lines.append(line.decode())
    with open("/proc/net/unix") as file:
        host = file.read()
    process.kill()
    process.communicate()
    assert [line for line in lines[1:] if len(line.split()) > 7] == [], lines
    assert "sbx" not in host, host


def test_stopping_and_continuing_leaves_no_hole(sbx):
    """P6: SIGSTOP of sbx does not let the command outlive a following SIGKILL."""
    process = sbx.start("run", "--", "sh", "-c", "echo ready; exec sleep 1000")
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: Process(process.pid).state == "T", "sbx stops")
    process.kill()
    process.communicate()
    wait_until(lambda: not descendants(), lambda: f"left: {descendants()}", 10)


def test_caller_with_ambient_capabilities(sbx):
    """FACTS: bubblewrap refuses to start with ambient capabilities; sbx clears them first."""
    if os.geteuid() != 0:
        prefix = []
    else:
        prefix = ["setpriv", "--inh-caps", "+net_bind_service", "--ambient-caps", "+net_bind_service"]
    result = sbx("run", "--", "grep", "Cap", "/proc/self/status", prefix=prefix).ok()
    assert all(int(line.split()[1], 16) == 0 for line in result.out.splitlines()), result


def test_bytes_of_a_run_are_escaped_on_the_terminal(sbx):
    """P10: names of hosts from inside reach the caller's terminal escaped."""
    code = r"""
import os, socket, urllib.parse
p = urllib.parse.urlsplit(os.environ["http_proxy"])
s = socket.create_connection((p.hostname, p.port))
s.sendall(b"CONNECT a\x1b[31mb.test:443 HTTP/1.1\r\n\r\n"); s.recv(999)
"""
    assert "\x1b" not in sbx.python(code).err
