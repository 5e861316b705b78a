"""What the command sees of the host's files (DESIGN 6)."""
import json
import os
import stat

import pytest

from harness.sbx import PYTHON, Sbx
from lab import space

WRITE = """
import json, os, sys
answers = {}
for path in sys.argv[1:]:
    try:
        with open(os.path.join(path, "written-by-test") if os.path.isdir(path) else path, "a"):
            answers[path] = "written"
    except OSError as error: answers[path] = error.strerror
print(json.dumps(answers))
"""


def test_same_absolute_paths(sbx, project):
    result = sbx.shell(f"pwd; cat {project.root}/README; readlink /proc/self/cwd").ok()
    assert result.out == f"{project.root}\na project\n{project.root}\n"


def test_workspace_is_the_git_work_tree(sbx, project):
    project.write("deep/down/file", "x")
    sbx.run("--", "touch", "../../at-the-top", cwd=project.path("deep/down")).ok()
    assert project.exists("at-the-top")


def test_workspace_without_git_is_the_directory(plain_sbx, plain):
    """The neighbours of a plain directory are not part of it."""
    plain.write("../neighbour/file", "x")
    plain_sbx.run("--", "touch", "here").ok()
    assert plain.exists("here")
    assert plain_sbx.run("--", "ls", plain.path("../neighbour")).code != 0


@pytest.mark.parametrize("where", ["home", "above", "root"])
def test_home_its_ancestors_and_root_are_no_workspace(sbx, project, where):
    """Bad input: workspace = home. Refused before anything starts, and the way out is named."""
    directory = {"home": project.home, "above": project.base, "root": "/"}[where]
    sbx.run("--", "true", cwd=directory).refused("--workspace")


def test_git_work_tree_at_home_is_no_workspace(sbx, project):
    """Dotfiles under git in $HOME must not make the whole home writable."""
    project.git("init", "-q", cwd=project.home)
    project.write("../../plain/file", "x")
    result = sbx.run("--", "cat", project.home + "/secret.txt", cwd=project.home + "/plain")
    assert "the real home" not in result.out, result


def test_workspace_by_name(sbx, plain):
    os.makedirs(plain.path("../elsewhere"))
    result = sbx.run("--workspace", plain.path("../elsewhere"), "--", "touch", plain.path("../elsewhere/x")).ok()
    assert plain.exists("../elsewhere/x"), result


def test_home_is_a_workspace_when_named(sbx, project):
    assert sbx.run("--workspace", project.home, "--", "cat", "secret.txt",
                   cwd=project.home).ok().out == "the real home\n"


def test_real_home_is_invisible(sbx, project):
    project.write("../../.ssh/id_ed25519", "PRIVATE KEY")
    project.write("../../.aws/credentials", "SECRET")
    project.write("../other-project/file", "x")
    result = sbx.shell("cd; cat secret.txt .ssh/id_ed25519 .aws/credentials src/other-project/file; find / -xdev -name "
                       "'id_ed25519' 2>/dev/null; grep -rs 'PRIVATE KEY' ~ && echo found")
    assert "found" not in result.out and "real home" not in result.out and "SECRET" not in result.out, result


def test_home_of_other_users_is_invisible(sbx):
    result = sbx.shell("ls -A /root /home 2>/dev/null | grep -v ':$' | grep -v '^$'")
    assert result.out == "", result


def test_home_lasts_per_project(sbx, project):
    """A cache that was written is there in the next run, and not in the real home."""
    sbx.shell("mkdir -p ~/.cache/tool && echo kept > ~/.cache/tool/x").ok()
    assert sbx.shell("cat ~/.cache/tool/x").ok().out == "kept\n"
    assert not os.path.exists(project.home + "/.cache/tool")


def test_home_is_separate_per_project(sbx, plain, program):
    sbx.shell("echo kept > ~/mine").ok()
    other = Sbx(program, plain)
    result = other.shell("cat ~/mine", env={"HOME": sbx.project.home}, cwd=plain.root)
    assert "kept" not in result.out, result


def test_home_tmpfs_is_forgotten(sbx):
    sbx.shell("echo kept > ~/mine", "--home", "tmpfs").ok()
    assert sbx.shell("cat ~/mine", "--home", "tmpfs").code != 0
    assert sbx.shell("cat ~/mine").code != 0


def test_home_host_is_read_only_without_secrets(sbx, project):
    project.write("../../.ssh/id_ed25519", "PRIVATE KEY")
    project.write("../../.config/tool/settings", "settings\n")
    result = sbx.shell("cat ~/.config/tool/settings; cat ~/.ssh/id_ed25519; echo x > ~/new; true",
                       "--home", "host").ok()
    assert result.out == "settings\n", result
    assert not os.path.exists(project.home + "/new")


SHOWS_HOME = {"home host": ("--home", "host"), "read ~": ("--read", "~"), "write ~": ("--write", "~"),
              "write ~, home host": ("--write", "~", "--home", "host")}


@pytest.mark.parametrize("shows", SHOWS_HOME)
@pytest.mark.parametrize("option", ["--read", "--write"])
def test_of_a_secret_place_what_is_named_is_shown(sbx, project, shows, option):
    """One key of ~/.ssh, and nothing else there; nor may the place be moved or filled."""
    for name in (".ssh/id_ed25519", ".ssh/id_rsa", ".ssh/config", ".ssh/deep/key", ".config/gh/hosts.yml", ".config/gh/config.yml"):
        project.write("../../" + name, f"text of {name}\n")
    script = ("cd $HOME; ls -A .ssh .config/gh; cat .ssh/id_rsa .config/gh/config.yml;"
              " cat .ssh/id_ed25519 .ssh/config .ssh/deep/key .config/gh/hosts.yml; echo x > .ssh/new; mv .ssh .moved; mv .config .moved;"
              " echo more >> .ssh/id_rsa; true")
    result = sbx.shell(script, *SHOWS_HOME[shows], option, "~/.ssh/id_rsa", option, "~/.config/gh/config.yml").ok()
    assert result.out == ".config/gh:\nconfig.yml\n\n.ssh:\nid_rsa\ntext of .ssh/id_rsa\ntext of .config/gh/config.yml\n", result
    assert project.read("../../.ssh/id_rsa") == "text of .ssh/id_rsa\n" + ("more\n" if option == "--write" else "")
    assert sorted(os.listdir(project.home + "/.ssh")) == ["config", "deep", "id_ed25519", "id_rsa"]
    result = sbx.shell("cd; cat .ssh/id_ed25519 .ssh/deep/key", *SHOWS_HOME[shows], option, "~/.ssh/deep")
    assert result.out == "text of .ssh/deep/key\n", result
    whole = sbx.shell("cd; cat .ssh/id_ed25519", *SHOWS_HOME[shows], option, "~/.ssh")
    assert whole.out == "text of .ssh/id_ed25519\n", whole


def test_of_a_secret_place_nothing_is_shown_for_what_is_not_there(sbx, project):
    """A link, and a name of a file that does not exist."""
    project.write("../../keys/id_rsa", "text\n")
    project.write("../../.ssh/id_ed25519", "hunter2\n")
    os.symlink("../keys/id_rsa", project.home + "/.ssh/id_rsa")
    result = sbx.shell("cd; cat .ssh/*; ls -A .ssh", "--home", "host", "--read", "~/.ssh/id_rsa").ok()
    assert result.out == "text\nid_rsa\n", result
    path = project.write("policy.json", '{"filesystem": {"home": "host", "read": ["~/.ssh/absent"]}}')
    result = sbx.shell("cd; cat .ssh/*; ls -A .ssh", "--policy", path).ok()
    assert result.out == "", result


def test_a_secret_place_around_the_workspace(sbx, project):
    project.write("../../.config/op/other", "hunter2\n")
    project.write("../../.config/op/work/file", "mine\n")
    result = sbx.shell("cat file ../other; echo x > new; ls -A ..", "--home", "host", "--workspace", project.home + "/.config/op/work",
                       cwd=project.home + "/.config/op/work")
    assert result.out == "mine\nwork\n", result


@pytest.mark.parametrize("path",
                         ["/usr", "/usr/bin/env", "/etc", "/etc/passwd", "/bin", "/opt", "/sys", "/", "/usr/local"])
def test_system_is_read_only(sbx, path):
    answer = sbx.python(WRITE, arguments=[path]).json[path]
    assert answer != "written", path


def test_usual_programs_work(sbx):
    result = sbx.shell("git --version && python3 -c 'import ssl, json' && ls /etc/passwd && id -u && date").ok()
    assert str(os.geteuid()) in result.out.split()


@pytest.mark.parametrize("path", ["/tmp", "/var/tmp", "/dev/shm", "/run"])
def test_private_temporary_trees(sbx, path):
    """Writable, empty at the start, and nothing of it on the host."""
    result = sbx.shell(f"ls -A {path} | grep -v -e '^lock$' -e '^systemd$'; "
                       f"echo x > {path}/sbx-test-file && cat {path}/*file")
    if path != "/run":
        assert result.out.splitlines()[-1] == "x", result
    assert not os.path.exists(f"{path}/sbx-test-file")


def test_host_tmp_is_invisible(sbx):
    with open("/tmp/of-the-host", "w") as file:
        file.write("x")
    try:
        assert sbx.run("--", "cat", "/tmp/of-the-host").code != 0
    finally:
        os.unlink("/tmp/of-the-host")


@pytest.mark.parametrize("value", [None, "/tmp", "/no/such/directory", "{home}/tmp"])
def test_temporary_directory_works(sbx, project, value):
    """F28: whatever TMPDIR is outside, mktemp works inside, and $TMPDIR names a directory that exists."""
    value = value and value.format(home=project.home)
    result = sbx.shell('d=$(mktemp -d) && echo "$d" && echo x > "$d/file" && test -d "${TMPDIR:-/tmp}" && '
                       'rm -rf "$d/.."/x', env={"TMPDIR": value}).ok()
    assert result.out.startswith("/"), result
    assert project.exists("README")


def test_device_directory_is_minimal(sbx):
    names = set(sbx.run("--", "ls", "/dev").ok().out.split())
    usual = {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout", "stderr", "shm", "pts"}
    assert usual <= names <= usual | {"ptmx", "core", "console"}, names


def test_devices_work(sbx):
    result = sbx.shell("echo x > /dev/null && head -c 3 /dev/zero | wc -c && head -c 3 /dev/urandom | wc -c && "
                       "echo y | cat /dev/stdin && python3 -c 'import pty, os; print(os.ttyname(pty.openpty()[1]))'")
    assert result.ok().out.split()[:3] == ["3", "3", "y"], result
    assert "/dev/pts/" in result.out


def test_proc_shows_only_its_own_processes(sbx):
    """P7"""
    code = """
import os, json
print(json.dumps({p: open(f"/proc/{p}/comm").read().strip() for p in os.listdir("/proc") if p.isdigit()}))
"""
    found = sbx.python(code).json
    assert len(found) <= 3, found
    assert set(found.values()) <= {"bwrap", "python3", "sbx-init"}, found
    assert str(os.getpid()) not in found


def test_sys_is_read_only_and_masked(sbx):
    result = sbx.shell("ls /sys/firmware /sys/dev/block /sys/devices/virtual/powercap 2>/dev/null; "
                       "echo x > /sys/kernel/profiling; echo status $?")
    assert result.out.splitlines()[-1] != "status 0", result
    assert "acpi" not in result.out


def test_read_option_shows_and_write_option_lets_write(sbx, plain):
    data, out = plain.path("../data"), plain.path("../out")
    plain.write("../data/file", "data\n")
    os.makedirs(out)
    result = sbx.shell(f"cat {data}/file; echo x > {data}/new; echo y > {out}/new; ls {out}", "--read", data,
                       "--write", out).ok()
    assert result.out == "data\nnew\n", result
    assert not plain.exists("../data/new") and plain.read("../out/new") == "y\n"


def test_write_below_read_and_read_below_write(sbx, plain):
    plain.write("../data/rw/file", "x")
    plain.write("../data/rw/ro/file", "x")
    base = plain.path("../data")
    result = sbx.shell(f"cd {base}; echo 1 > a; echo 2 > rw/b; echo 3 > rw/ro/c; true", "--read", base, "--write",
                       f"{base}/rw", "--read", f"{base}/rw/ro").ok()
    assert not plain.exists("../data/a"), result
    assert plain.exists("../data/rw/b"), result
    assert not plain.exists("../data/rw/ro/c"), result


def test_home_relative_paths_of_options(sbx, project):
    project.write("../../datasets/file", "data\n")
    assert sbx.run("--read", "~/datasets", "--", "cat", project.home + "/datasets/file").ok().out == "data\n"


def test_single_file_can_be_shown(sbx, project):
    project.write("../../one", "one\n")
    project.write("../../two", "two\n")
    result = sbx.shell(f"cat {project.home}/one {project.home}/two", "--read", project.home + "/one")
    assert result.out == "one\n", result


@pytest.mark.parametrize("option", ["--write", "--read"])
def test_absent_path_is_refused_and_not_made(sbx, project, option):
    """F31, bad input: 125, one line that names the path, nothing created."""
    path = project.home + "/not/there"
    sbx.run(option, path, "--", "touch", "started").refused(path)
    assert not os.path.exists(project.home + "/not")
    assert not project.exists("started")


@pytest.mark.parametrize("where", ["..", "link-out"])
def test_symlink_to_a_directory_in_an_option(sbx, project, where):
    """What the path led to when it was judged is what is mounted, under the name that was given."""
    project.write("../data/file", "data\n")
    os.symlink(project.path("../data"), project.path("../../link"))
    assert sbx.run("--read", "~/link", "--", "cat", project.path("../data/file")).ok().out == "data\n"
    assert sbx.run("--read", "~/link", "--", "cat", project.home + "/link/file").ok().out == "data\n"


def test_ownership_of_system_files(sbx):
    """F32: ssh refuses configuration files that seem to belong to neither root nor the user."""
    owners = sbx.shell("stat -c '%n %u' /etc/ssh/ssh_config /etc/ssh/ssh_config.d/* /usr/bin/env").ok()
    result = sbx.shell("ssh -G configured.test | grep -i '^port'")
    assert "Bad owner" not in result.err, (result, owners)
    assert result.ok().out == "port 2222\n", owners


def test_own_files_belong_to_the_user(sbx, project):
    result = sbx.shell("touch mine; stat -c '%u %g' mine README; id -u; id -g").ok()
    uid, gid = os.geteuid(), os.getegid()
    assert result.out.splitlines()[:2] == [f"{uid} {gid}"] * 2, result
    status = os.stat(project.path("mine"))
    assert (status.st_uid, status.st_gid) == (uid, gid)


def test_setuid_programs_gain_nothing(sbx):
    assert sbx.run("--", "grep", "NoNewPrivs", "/proc/self/status").ok().out == "NoNewPrivs:\t1\n"


def test_mount_points_of_the_host_are_not_listed(sbx):
    """P7: mountinfo tells no more of the host than the view needs: no other project, no state of other runs."""
    listed = sbx.run("--", "cat", "/proc/self/mountinfo").ok().out
    assert "secret.txt" not in listed


def test_policy_and_state_of_sbx_are_out_of_reach(sbx, project):
    """P11: a run cannot write the policy of the next one, nor trust records, audit files or other homes."""
    project.policy("../../.config/sbx/policy.json", network={"allow": ["origin.test"]})
    sbx.run("--", "true").ok()
    result = sbx.python(WRITE, arguments=[project.home + "/.config/sbx/policy.json", project.state,
                                          project.state + "/trust"]).json
    for path, answer in result.items():
        if answer == "written":  # a file of the private home under the same name is not the host's
            assert not os.path.exists(os.path.join(path, "written-by-test"))
    with open(project.home + "/.config/sbx/policy.json") as file:
        assert json.load(file) == {"network": {"allow": ["origin.test"]}}


def test_write_to_the_state_directory_is_refused(sbx, project):
    """P11: naming sbx's own state or configuration with --write would let a run widen the next one."""
    sbx.run("--", "true").ok()
    os.makedirs(project.home + "/.config/sbx", exist_ok=True)
    result = sbx.shell(f"echo '{{}}' > {project.home}/.config/sbx/policy.json; echo x > {project.state}/planted",
                       "--write", project.home + "/.config", "--write", project.home + "/.local")
    assert not os.path.exists(project.home + "/.config/sbx/policy.json"), result
    assert not os.path.exists(project.state + "/planted"), result


def test_toolchains_of_the_home_are_shown_read_only(sbx, project):
    project.write("../../.local/bin/mytool", "#!/bin/sh\necho tool\n", 0o755)
    project.write("../../.cargo/bin/cargo", "#!/bin/sh\necho cargo\n", 0o755)
    path = f"{project.home}/.local/bin:{project.home}/.cargo/bin:" + sbx.env["PATH"]
    result = sbx.shell("mytool; cargo; echo x >> ~/.local/bin/mytool; rm -f ~/.cargo/bin/cargo; true",
                       env={"PATH": path}).ok()
    assert result.out == "tool\ncargo\n", result
    assert os.path.exists(project.home + "/.cargo/bin/cargo")
    assert "x" not in project.read("../../.local/bin/mytool")[-3:]


def test_git_identity_is_known(sbx):
    assert sbx.run("--", "git", "config", "user.email").ok().out == "lab@origin.test\n"


def test_unreadable_directory_in_the_workspace(sbx, project):
    """A directory that the user itself cannot enter is no reason to fail."""
    os.makedirs(project.path("locked"))
    os.chmod(project.path("locked"), 0)
    try:
        sbx.run("--", "true").ok()
    finally:
        os.chmod(project.path("locked"), stat.S_IRWXU)


def test_odd_names_in_paths(sbx, plain, program):
    """Spaces, quotes, newlines, bytes that are no UTF-8, and a leading dash."""
    for name in (b"a b", b"it's", b'"', b"line\nbreak", b"\xff\xfe", b"-dash", b"$x", b"*", b"{}", b"a,b:c=d"):
        directory = os.path.join(os.fsencode(plain.base), b"odd", name)
        os.makedirs(directory)
        result = Sbx(program, plain).run("--", "sh", "-c", "echo x > new; cat new", cwd=directory)
        assert result.ok().out == "x\n", (name, result)
        assert os.path.exists(os.path.join(directory, b"new"))


def test_lab_is_not_visible_inside(sbx):
    """The tests' own server keys lie beside the home: nothing that was not named is visible."""
    assert sbx.run("--", "ls", f"{space.BASE}/etc").code != 0


def test_python_is_the_one_that_is_named(sbx):
    assert sbx.run("--", PYTHON, "-c", "import sys; print(sys.executable)").ok().out.strip() == PYTHON
