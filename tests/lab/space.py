"""Namespaces, addresses and mounts of the lab.

Theory of operation
    enter() changes the calling process, which must have one thread, in this order:

    1. unshare. Root takes a network, a mount and an IPC namespace (labs stand side by side, and what System V's keys
       and message queues name must be each one's own) and no user namespace: root in the lab is the real root. A plain
       user takes a user namespace too, with its own uid mapped to itself and nothing else, as it would find itself in a
       rootless container; the capabilities last until step 5.
    2. lo is brought up; `local default dev lo` makes each address ours; ports below 1024 are opened to plain users,
       so that the servers need no privilege.
    3. A tmpfs is mounted at BASE; the programs under test and the tests themselves are copied to it, because the tree
       that they come from may be readable by root only. More tmpfs are laid over /tmp, /var/tmp and /dev/shm (the
       tests look for litter there), each only where nothing that is still needed lies below.
    4. BASE/etc/resolv.conf, hosts and certs are bound over the machine's. They stay writable to the tests.
    5. Root that was asked to become somebody else does so; a plain user drops every capability.
"""
import ctypes
import fcntl
import os
import shutil
import socket
import struct

# Places that every distribution has and that are seldom in use; the first that this checkout is not in.
PLACES = ("/srv", "/mnt", "/media")

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MS_BIND = 0x1000
MS_NOSUID = 2
MS_NODEV = 4
PR_SET_CHILD_SUBREAPER = 36

GUEST = 61235  # a user beside the one who runs the tests

RESOLVERS = ("192.0.2.53", "2001:db8::53")


def is_below(path, directory):
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def choose_base():
    """Where everything of the lab lies; what runs in the lab is told by SBX_LAB."""
    here = os.path.realpath(__file__)
    free = [place for place in PLACES if os.path.isdir(place) and not is_below(here, place)]
    return os.environ.get("SBX_LAB") or free[0] + "/lab"


BASE = choose_base()

libc = ctypes.CDLL(None, use_errno=True)
libc.mount.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p]
libc.umount2.argtypes = [ctypes.c_char_p, ctypes.c_int]


def check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source, target, kind=None, flags=0, data=None):
    """mount(2) with str arguments."""
    args = [None if a is None else os.fsencode(a) for a in (source, target, kind)]
    check(libc.mount(*args, flags, None if data is None else data.encode()), f"mount {target}")


def unmount(target):
    check(libc.umount2(os.fsencode(target), 2), f"umount {target}")  # MNT_DETACH


def unshare(kinds):
    """New namespaces of these kinds; for a plain user within a new user namespace, with its own uid."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        check(libc.unshare(kinds), "unshare")
        return
    check(libc.unshare(CLONE_NEWUSER | kinds), "unshare (user namespaces needed)")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def raise_interface(name):
    """Sets IFF_UP (netdevice(7)); by ioctl, since ip(8) would lose our capabilities with exec."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", name.encode(), 1))  # SIOCSIFFLAGS


def add_local_default(family, index):
    """`ip route add local default dev lo` (rtnetlink(7)): each address is this host's own."""
    new_route, flags = 24, 0x605  # RTM_NEWROUTE; NLM_F_REQUEST | ACK | CREATE | EXCL
    table_local, by_boot, scope_host, kind_local = 255, 3, 254, 2
    body = struct.pack("BBBBBBBBI", family, 0, 0, 0, table_local, by_boot, scope_host, kind_local, 0)
    body += struct.pack("HHI", 8, 4, index)  # RTA_OIF
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.send(struct.pack("IHHII", 16 + len(body), new_route, flags, 1, 0) + body)
        error, = struct.unpack("i", link.recv(4096)[16:20])
    if error:
        raise OSError(-error, f"adding a local default route: {os.strerror(-error)}")


def set_up_network():
    raise_interface("lo")
    add_local_default(socket.AF_INET, 1)
    if os.path.exists("/proc/sys/net/ipv6"):
        # Some machines turn IPv6 off for every interface that is to come.
        with open("/proc/sys/net/ipv6/conf/lo/disable_ipv6", "w") as file:
            file.write("0")
        add_local_default(socket.AF_INET6, 1)
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", "w") as file:
        file.write("0")


def mount_scratch(needed, copies, binds):
    """BASE on a tmpfs with the copies in it, and what is bound; then tmpfs over the temporary trees that hold nothing of needed."""
    root = os.path.dirname(BASE)
    staged = {name: os.path.realpath(path) for name, path in copies.items()}
    for path in [*needed, *staged.values(), *binds.values()]:
        if is_below(os.path.realpath(path), root):
            raise SystemExit(f"lab: {path} lies below {root}, which the lab covers; move it")
    mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
    os.mkdir(BASE, 0o755)
    for name, path in binds.items():
        os.mkdir(f"{BASE}/{name}")
        mount(path, f"{BASE}/{name}", None, MS_BIND)
    for name, path in staged.items():
        target = f"{BASE}/{name}"
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isdir(path):
            shutil.copytree(path, target, symlinks=True)
        else:
            shutil.copy(path, target)
    for directory in ("/tmp", "/var/tmp", "/dev/shm"):
        if os.path.isdir(directory) and not any(is_below(os.path.realpath(p), directory) for p in needed):
            mount("tmpfs", directory, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")


def make_files(uid):
    """The lab's /etc files, as plain files that the tests may rewrite, and the places that tests use."""
    for name in ("etc", "etc/certs", "etc/ssh", "home", "tmp", "run", "bin"):
        os.makedirs(f"{BASE}/{name}", exist_ok=True)
    with open(f"{BASE}/etc/resolv.conf", "w") as file:
        file.write(f"nameserver {RESOLVERS[0]}\noptions timeout:1 attempts:2\n")
    with open(f"{BASE}/etc/hosts", "w") as file:
        file.write("127.0.0.1 localhost\n::1 localhost ip6-localhost\n192.0.2.20 hostsfile.test\n")
    # Whoever runs the tests has a name, as users have: ssh(1) demands it.
    with open("/etc/passwd") as file, open(f"{BASE}/etc/passwd", "w") as copy:
        lines = file.readlines()
        if not any(line.split(":")[2:3] == [str(uid)] for line in lines):
            lines.append(f"lab:x:{uid}:{uid}:lab:{BASE}/home:/bin/bash\n")
        lines.append(f"guest:x:{GUEST}:{GUEST}:guest:/nonexistent:/bin/sh\n")
        copy.writelines(lines)
    with open(f"{BASE}/etc/ssh/lab.conf", "w") as file:
        file.write("Host configured.test\n  Port 2222\n")


def bind_files():
    for name in ("resolv.conf", "hosts", "passwd"):
        # A link to a file that does not exist (a stub resolver that is not running) cannot be covered: its place is
        # made on a tmpfs over the directory that it should be in.
        target = os.path.realpath(f"/etc/{name}")
        if not os.path.exists(target):
            place = os.path.dirname(target)
            while not os.path.isdir(place):
                place = os.path.dirname(place)
            if place in ("/", "/etc"):
                raise SystemExit(f"lab: /etc/{name} does not exist; make an empty one")
            mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
            os.makedirs(os.path.dirname(target), exist_ok=True)
            open(target, "w").close()
        mount(f"{BASE}/etc/{name}", target, None, MS_BIND)
    if not os.path.isdir("/etc/ssl/certs"):
        raise SystemExit("lab: /etc/ssl/certs does not exist; install openssl")
    mount(f"{BASE}/etc/certs", "/etc/ssl/certs", None, MS_BIND)
    if os.path.isdir("/etc/ssh/ssh_config.d"):
        mount(f"{BASE}/etc/ssh", "/etc/ssh/ssh_config.d", None, MS_BIND)


def give_to(uid, gid):
    """All of BASE but what has to be root's, as it is on any machine, and what is bound."""
    for top, directories, files in os.walk(BASE):
        directories[:] = [name for name in directories if not os.path.ismount(os.path.join(top, name))]
        if top == f"{BASE}/etc" and "ssh" in directories:
            directories.remove("ssh")
        for name in [top] + [os.path.join(top, n) for n in files]:
            os.chown(name, uid, gid, follow_symlinks=False)


def drop_capabilities():
    """No capability left, also none to gain: uid 0 of this namespace is not mapped."""
    header = struct.pack("Ii", 0x20080522, 0)
    data = struct.pack("IIIIII", 0, 0, 0, 0, 0, 0)
    check(libc.capset(header, data), "capset")


def become(uid, gid):
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    libc.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: else our own /proc/self belongs to root


def enter(needed=(), copies=None, uid=None, binds=None):
    """Takes this process into the lab.

    needed   paths that must stay visible where they are
    copies   {name: path}: files and trees copied to BASE/name
    binds    {name: directory}: seen at BASE/name as they are, for what is too large to be copied
    uid      root only: who to be afterwards (uid and gid alike; it need not exist in passwd)
    """
    if os.geteuid() != 0 and uid not in (None, os.geteuid()):
        raise SystemExit("lab: only root can become another user")
    unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC)
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    set_up_network()
    mount_scratch(list(needed), copies or {}, binds or {})
    make_files(os.geteuid() if uid is None else uid)
    bind_files()
    if os.geteuid() != 0:
        drop_capabilities()
    elif uid:
        give_to(uid, uid)
        become(uid, uid)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # orphans of a run come to us, where the tests find them
    os.environ["SBX_LAB"] = BASE
