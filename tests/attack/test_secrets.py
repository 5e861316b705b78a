"""P3, as far as nothing is bound on purpose: what the user keeps outside is nowhere inside. A mark is planted in every
place where secrets lie, and a program inside looks for it in everything that it can open."""
import json
import os
import subprocess

import pytest

from harness.sbx import PYTHON, Sbx
from lab import space

MARK = "planted-6c1f"

# What a home holds that nobody but its owner should read; beside them, what tools put next to it and may be shown.
SECRETS = [".ssh/id_ed25519", ".ssh/config", ".gnupg/secring.gpg", ".aws/credentials", ".azure/tokens.json", ".kube/config",
           ".docker/config.json", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".my.cnf", ".vault-token",
           ".terraform.d/credentials.tfrc.json", ".password-store/site.gpg", ".mozilla/firefox/x/logins.json",
           ".thunderbird/x/logins.json", ".cargo/credentials", ".cargo/credentials.toml", ".config/gh/hosts.yml",
           ".config/gcloud/credentials.db", ".config/git/credentials", ".config/google-chrome/Default/Cookies",
           ".config/chromium/Default/Cookies", ".config/op/config", ".config/rclone/rclone.conf", ".config/sops/age/keys.txt",
           ".dotnet/corefx/cryptography/x509stores/my/x.pfx", ".local/share/keyrings/login.keyring",
           ".local/share/uv/credentials/token", ".bash_history", ".zsh_history", ".python_history", ".psql_history",
           ".claude/.credentials.json", ".codex/auth.json", ".npm-global/etc/npmrc"]
SHOWN = [".cargo/bin/cargo", ".dotnet/dotnet", ".config/git/ignore", ".local/share/uv/tools/x", ".local/bin/tool",
         ".local/share/claude/versions/2.0.0", ".npm-global/bin/tool", ".npm-global/lib/node_modules/x/cli.js"]
PRIVATE = ["secret.txt", "Documents/letter", ".config/tool/token", "src/other/.env", ".local/state/token", "bin/deploy-key"]

SEARCH = """
import json, os, stat, sys
mark = bytes.fromhex(sys.argv[1])
found, opened = [], 0
def look(path, limit=1 << 16):
    global opened
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError: return
    try:
        if mark in os.read(fd, limit): found.append(path)
        opened += 1
    except OSError: pass
    finally: os.close(fd)
tops = [os.environ["HOME"], "/home", "/root", "/tmp", "/var", "/run", "/dev/shm", "/srv", "/mnt", "/media", "/opt", "/etc"]
for top in tops:
    for directory, names, files in os.walk(top):
        for name in names + files:
            if mark in os.fsencode(name): found.append(os.path.join(directory, name))
        for name in files:
            path = os.path.join(directory, name)
            try:
                if stat.S_ISREG(os.lstat(path).st_mode): look(path)
            except OSError: pass
for name in os.listdir("/proc"):
    if name.isdigit():
        for file in ("environ", "cmdline", "comm", "mountinfo", "maps", "stat"): look(f"/proc/{name}/{file}", 1 << 20)
        for fd in (os.listdir(f"/proc/{name}/fd") if os.access(f"/proc/{name}/fd", os.R_OK) else []):
            if fd not in "012": look(f"/proc/{name}/fd/{fd}")
def memory(pid):
    global opened
    try:
        with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as file:
            for line in maps:
                low, high = (int(n, 16) for n in line.split()[0].split("-"))
                try:
                    file.seek(low)
                    if line.split()[1][0] == "r" and high - low < 1 << 24 and mark in file.read(high - low):
                        found.append(f"memory of {pid}: {line}")
                    opened += 1
                except (OSError, ValueError, OverflowError): pass
    except OSError: pass
memory(1)
if mark in json.dumps(dict(os.environ)).encode(): found.append("environment")
print(json.dumps([found, opened]))
"""


def search(sbx, *options, **more):
    """Where the mark is seen inside. The mark itself is told in another form."""
    script = f"curl -s http://evil.test/ > /dev/null; exec {PYTHON} -I -c \"$1\" {MARK.encode().hex()}"
    result = sbx.run(*options, "--", "sh", "-c", script, "sh", SEARCH, **more)
    found, opened = result.json
    assert opened > 50, result
    return found


@pytest.fixture
def planted(sbx, project, plain, program):
    for name in SECRETS + PRIVATE:
        project.write(f"../../{name}", f"{MARK} {name}\n")
    for name in SHOWN:
        project.write(f"../../{name}", "harmless\n", 0o755)
    for top in (f"{space.BASE}/tmp", f"{space.BASE}/run", "/dev/shm"):
        with open(f"{top}/{MARK}", "w") as file:
            file.write(MARK)
    # What another run keeps in its private home; and a process of the user's that was started carelessly.
    Sbx(program, plain).shell(f"echo {MARK} > ~/token", env={"HOME": project.home}, cwd=plain.root).ok()
    other = subprocess.Popen(["sh", "-c", f"read line # {MARK}"], env={"TOKEN": MARK, "PATH": os.environ["PATH"]},
                             stdin=subprocess.PIPE)
    yield project
    other.communicate()
    for top in (f"{space.BASE}/tmp", f"{space.BASE}/run", "/dev/shm"):
        os.unlink(f"{top}/{MARK}")


VARIABLES = {"GITHUB_TOKEN": MARK, "ANTHROPIC_API_KEY": MARK, "AWS_SECRET_ACCESS_KEY": MARK, "NPM_TOKEN": MARK,
             "DATABASE_URL": f"postgres://u:{MARK}@db/", "http_proxy": f"http://u:{MARK}@proxy.corp.test:3128",
             "SSH_AUTH_SOCK": f"/tmp/{MARK}"}


@pytest.mark.parametrize("options", [(), ("--home", "tmpfs"), ("--network", "none")], ids=["default", "tmpfs", "none"])
def test_what_the_user_keeps_is_nowhere_inside(sbx, planted, options):
    """P3: files of the home, variables, other processes, other runs; and also in pid 1 inside, and in its memory."""
    assert search(sbx, *options, env=VARIABLES) == []


def test_search_is_able_to_find(sbx, planted):
    """What is shown on purpose is found, by each of the ways."""
    found = search(sbx, "--read", planted.home + "/Documents", "--env", "NPM_TOKEN", env=VARIABLES)
    assert f"{planted.home}/Documents/letter" in found and "environment" in found, found
    assert any(place.endswith("/environ") for place in found), found


def test_home_of_the_host_is_shown_without_its_secrets(sbx, planted):
    """P3: `home: host` shows the home, but for the places where tools are known to keep secrets."""
    shown = search(sbx, "--home", "host", env=VARIABLES)
    names = {os.path.relpath(place, planted.home) for place in shown}
    assert set(PRIVATE) - {".local/state/token"} <= names, "the search sees the home"
    assert not names & set(SECRETS), names & set(SECRETS)


def test_helpers_outside_hold_no_variable_of_the_caller(sbx):
    """P3: whoever takes over sbx-proxy or bubblewrap's guard finds no token there."""
    from harness.procs import descendants
    process = sbx.start("run", "--", "sh", "-c", "curl -s http://evil.test/ > /dev/null; echo ready; exec sleep 1000",
                        env=VARIABLES)
    assert process.stdout.readline() == b"ready\n"
    names = {p.name: p.read("environ") for p in descendants(process.pid) if p.pid != process.pid}
    process.kill()
    process.communicate()
    assert "sbx-proxy" in names and "bwrap" in names, names
    if os.geteuid() == 0:  # not dumpable: nobody else may look
        assert not any(MARK.encode() in environment for environment in names.values()), names


ETC = ["shadow", "gshadow-", "sudoers", "sudoers.d/x", "security/opasswd", "ssl/private/key.pem", "pki/tls/private/key.pem",
       "krb5.keytab", "NetworkManager/system-connections/x", "wpa_supplicant/x", "wireguard/wg0.conf", "openvpn/key",
       "ppp/chap-secrets", "cups/ssl/key", "docker/key.json", "credstore/x", "credstore.encrypted/x", "apt/auth.conf.d/x",
       "ssh/ssh_host_ed25519_key", "kubernetes/admin.conf", "rancher/k3s/k3s.yaml", "letsencrypt/archive/x/privkey1.pem",
       "mysql/debian.cnf", "netplan/wifi.yaml", "ipsec.secrets", "sssd/sssd.conf", "exim4/passwd.client"]


@pytest.fixture
def etc_with_secrets():
    """/etc of this lab, with a marked file of mode 600 in every place that only root may read."""
    upper, work = f"{space.BASE}/etc-upper", f"{space.BASE}/etc-work"
    os.makedirs(upper)
    os.makedirs(work)
    space.mount("overlay", "/etc", "overlay", 0, f"lowerdir=/etc,upperdir={upper},workdir={work}")
    try:
        for name in ETC + ["shown"]:
            os.makedirs(os.path.dirname(f"/etc/{name}"), exist_ok=True)
            with open(f"/etc/{name}", "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(MARK)
        yield
    finally:
        space.unmount("/etc")
        subprocess.run(["rm", "-rf", upper, work], check=True)


@pytest.mark.root
def test_what_only_root_may_read_in_etc(sbx, etc_with_secrets):
    """P3, P8: of /etc, root's run sees what a user's run would."""
    assert search(sbx) == ["/etc/shown"]  # the search does find what lies in no such place
    named = "/etc/NetworkManager/system-connections/x"
    assert sorted(search(sbx, "--read", named)) == [named, "/etc/shown"]  # what is asked for, and not what lies beside it
    with open("/etc/NetworkManager/system-connections/y", "w") as file:
        file.write(MARK)
    assert sorted(search(sbx, "--read", named)) == [named, "/etc/shown"]
