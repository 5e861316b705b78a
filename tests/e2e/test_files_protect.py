"""Protected names inside writable trees (F20, F22, F25, F26): read-only, and nothing above them can be moved."""
import os
import subprocess

import pytest

NAMES = [".git/hooks", ".git/config", ".husky", ".envrc", ".vscode", ".idea", ".zed", ".devcontainer", ".mcp.json",
         ".claude/settings.json", ".cursor", ".codex", ".gemini", ".sbx.json"]


def make(project, name):
    """The protected name as it would be in a project: a file, or a directory with one."""
    if name in (".envrc", ".mcp.json", ".claude/settings.json", ".sbx.json"):
        project.write(name, "{}")
        return name
    if name == ".git/config":
        return name
    project.write(f"{name}/file", "{}")
    return f"{name}/file"


@pytest.mark.parametrize("name", NAMES)
def test_protected_name_is_read_only(sbx, project, name):
    file = make(project, name)
    before, inode = project.read(file), os.stat(project.path(file)).st_ino
    result = sbx.shell(f"cat {file} > /dev/null && echo readable; echo evil >> {file}; rm -rf {file}; mv {name} moved; "
                       f"mv {os.path.dirname(name) or name} moved2; chmod 777 {file}; ln -f README {file}; "
                       f"cp README {file}; "
                       f"truncate -s 0 {file}; true").ok()
    assert result.out == "readable\n", result
    assert project.read(file) == before, result
    assert os.stat(project.path(file)).st_ino == inode, result


def test_new_file_in_a_protected_directory_is_refused(sbx, project):
    result = sbx.shell("echo '#!/bin/sh' > .git/hooks/pre-commit; mkdir .git/hooks/x; "
                       "ls .git/hooks | grep -v sample; true").ok()
    assert result.out == "", result
    assert not project.exists(".git/hooks/pre-commit")


def test_commit_works(sbx, project):
    """F22: objects, refs, index, logs and HEAD stay writable."""
    sbx.shell("echo x > new && git add new && git commit -qm 'from inside' && git branch side && "
              "git checkout -q side && git tag t1 && git stash list && git gc -q && git log --oneline").ok()
    assert "from inside" in project.git("log", "--oneline")
    assert "side" in project.git("branch")
    assert project.git("status", "--porcelain") == ""


def test_change_of_git_config_is_refused_and_explained(sbx, project):
    """F22, F34: git config cannot be changed, and git says so."""
    before = project.read(".git/config")
    result = sbx.shell("git config core.fsmonitor 'touch /tmp/x'; git config core.hooksPath evil; git remote add o u")
    assert result.code != 0, result
    assert project.read(".git/config") == before


def test_ancestors_cannot_be_moved(sbx, project):
    """F26"""
    project.write("deploy/prod/keys/file", "original")
    policy = project.policy("../../policy.json", filesystem={"protect": ["deploy/prod/keys"]})
    result = sbx.shell("mv deploy d2; mv deploy/prod deploy/p2; rm -rf deploy; mkdir -p deploy/prod/keys; "
                       "echo evil > deploy/prod/keys/file; true", "--policy", policy)
    assert project.read("deploy/prod/keys/file") == "original", result


def test_neighbours_of_a_protected_name_stay_writable(sbx, project):
    """The ancestors are held in place, not closed."""
    project.write("deploy/prod/keys/file", "original")
    policy = project.policy("../../policy.json", filesystem={"protect": ["deploy/prod/keys"]})
    sbx.shell("echo x > deploy/new && echo y > deploy/prod/new && mkdir deploy/prod/sub && mv deploy/new deploy/new2",
              "--policy", policy).ok()
    assert project.exists("deploy/new2") and project.exists("deploy/prod/new")


def test_unprotect_lifts_one_name(sbx, project):
    project.write(".envrc", "original")
    project.write(".vscode/settings.json", "original")
    sbx.shell("echo changed > .envrc; echo evil > .vscode/settings.json; true", "--unprotect", ".envrc").ok()
    assert project.read(".envrc") == "changed\n"
    assert project.read(".vscode/settings.json") == "original"


def test_symlinked_protected_file(sbx, project):
    """F25: a link of a dotfile manager neither aborts the run nor leaves its target writable."""
    project.write("dotfiles/envrc", "original")
    os.symlink("dotfiles/envrc", project.path(".envrc"))
    result = sbx.shell("echo evil > .envrc; echo evil > dotfiles/envrc; rm -f dotfiles/envrc; mv dotfiles d; true").ok()
    assert project.read("dotfiles/envrc") == "original", result


@pytest.mark.parametrize("way", [
    "ln -sfn README .envrc", "rm -f .envrc; echo evil > .envrc", "mv .envrc x; echo evil > .envrc",
    "echo evil > new; mv new .envrc",
])
def test_symlink_at_a_protected_name_that_is_replaced_is_told(sbx, project, way):
    """F25, F26: nothing can be mounted on a link; that it leads elsewhere when the run is over is said by name."""
    project.write("dotfiles/envrc", "original")
    os.symlink("dotfiles/envrc", project.path(".envrc"))
    result = sbx.shell(way)
    assert any(project.path(".envrc") in message for message in result.messages), result
    assert sbx.run("--", "true").ok().messages == []


def test_symlinked_protected_directory_outside(sbx, project):
    """F25: the target lies outside the workspace (Nix, stow): no abort, and it is not writable through the link."""
    project.write("../../store/vscode/settings.json", "original")
    os.symlink(project.home + "/store/vscode", project.path(".vscode"))
    sbx.shell("echo evil > .vscode/settings.json; true").ok()
    assert os.readlink(project.path(".vscode")) == project.home + "/store/vscode"
    assert project.read("../../store/vscode/settings.json") == "original"


def test_dangling_and_looping_links(sbx, project):
    """F25"""
    os.symlink("nowhere", project.path(".envrc"))
    os.symlink(".idea", project.path(".idea"))
    sbx.run("--", "true").ok()


def test_absent_protected_names_leave_no_trace(sbx, project):
    """P4, F20: they stay invisible."""
    assert set(sbx.run("--", "ls", "-A").ok().out.split()) == {".git", "README"}
    assert set(os.listdir(project.root)) == {".git", "README"}


def test_tools_meet_no_placeholder(sbx, project):
    """F20: git, grep and cp go over a project in which protected names are absent as they do without sbx."""
    result = sbx.shell("git status --porcelain && git add -A && ! grep -r nowhere . && cp -r . /tmp/copy && ls -A /tmp/copy")
    assert result.ok().out.split() == [".git", "README"] and result.err == "", result


def test_protection_holds_below_a_subdirectory_start(sbx, project):
    project.write(".envrc", "original")
    project.write("sub/file", "x")
    sbx.shell("echo evil > ../.envrc; echo evil > ../.git/hooks/x; true", cwd=project.path("sub")).ok()
    assert project.read(".envrc") == "original" and not project.exists(".git/hooks/x")


def test_workspace_itself_cannot_be_moved(sbx, project):
    result = sbx.shell("cd ..; mv app app2; rmdir app; ls -A")
    assert project.exists("README"), result


def test_hard_link_to_a_protected_file(sbx, project):
    """F26: a second name made inside leads to the same file; through it nothing may be written."""
    project.write(".envrc", "original")
    sbx.shell("ln .envrc other; echo evil > other; echo evil >> .envrc; true").ok()
    assert project.read(".envrc") == "original"


@pytest.mark.parametrize("code", [
    "os.rename('.git', 'g')",
    "os.link('.git/config', 'other'); open('other', 'w').write('evil')",
    "fd = os.open('.', os.O_RDONLY); os.rename('.git', 'g', src_dir_fd=fd, dst_dir_fd=fd)",
    "open('/proc/self/root' + os.getcwd() + '/.git/config', 'w')",
    "open('/proc/self/cwd/.git/config', 'w')",
    "open('/proc/1/root' + os.getcwd() + '/.git/config', 'w')",
    "os.symlink('.git/config', 's'); open('s', 'w')",
    "os.symlink('.git', 's'); open('s/config', 'w')",
    "fd = os.open('.git/config', os.O_RDONLY); open(f'/proc/self/fd/{fd}', 'w')",
    "fd = os.open('.git/config', os.O_PATH); open(f'/proc/self/fd/{fd}', 'w')",
    "os.truncate('.git/config', 0)",
    "os.chmod('.git/config', 0)",
    "os.utime('.git/config', (0, 0))",
    "os.setxattr('.git/config', 'user.x', b'y')",
    "os.rmdir('.git/hooks')",
    "import shutil; shutil.rmtree('.git/hooks')",
    "import ctypes; check(ctypes.CDLL(None).renameat2(-100, b'.git', -100, b'README', 2))",
    "import ctypes; check(ctypes.CDLL(None).renameat2(-100, b'.git/config', -100, b'README', 2))",
    "import ctypes; check(ctypes.CDLL(None).mount(b'tmpfs', b'.git', b'tmpfs', 0, None))",
    "import ctypes; check(ctypes.CDLL(None).umount2(b'.git/config', 2))",
    "os.mknod('.git/hooks/x', 0o100755)",
])
def test_ways_round_protection(sbx, project, code):
    """F26: each way fails with an error, and the file is as it was."""
    before = project.read(".git/config")
    script = f"""
import os
def check(result):
    if result != 0: raise OSError("refused")
try:
    exec({code!r})
    print("no error")
except OSError as error:
    print("refused")
"""
    result = sbx.python(script).ok()
    assert project.read(".git/config") == before
    assert os.stat(project.path(".git/config")).st_mtime > 0 and os.path.isdir(project.path(".git/hooks"))
    assert result.out == "refused\n", result


@pytest.mark.parametrize("name",
                         [".envrc", ".vscode", ".git/hooks", ".mcp.json", ".claude", ".husky", ".sbx.json", ".git"])
@pytest.mark.parametrize("target", ["secret.txt", ".ssh", ""])
def test_planted_link_at_a_protected_name_shows_nothing(sbx, project, name, target):
    """F25, F26: protection must not become a way to read: an earlier run plants .envrc as a link to something of the
    real home, and the next run binds what it leads to."""
    project.write("../../.ssh/id", "the real home")
    if project.exists(name):
        os.rename(project.path(name), project.path("away"))
    os.symlink(os.path.join(project.home, target), project.path(name))
    result = sbx.shell(f"cat {name} {name}/id {name}/secret.txt {project.home}/secret.txt {project.home}/.ssh/id",
                       may_refuse=True)
    assert "the real home" not in result.out + result.err, result


def test_swap_of_a_path_while_runs_start(sbx, project):
    """F26: what was judged is what is mounted. Names that sbx mounts something on are exchanged, all the time, with
    links to the home; it must not become visible through one of them, nor a hidden file because its name was
    elsewhere."""
    project.write("../../.ssh/id", "the real home")
    project.write("hidden/file", "the real home")
    script = f"""
import os
home = {project.home!r}
names = {{".envrc": home + "/secret.txt", ".vscode": home + "/.ssh", "hidden": home + "/.ssh", ".husky": home}}
for name in names: os.makedirs("real" + name, exist_ok=True)
print("ready", flush=True)
while True:
    for name, target in names.items():
        try: os.symlink(target, "l"); os.rename("l", name)
        except OSError: pass
        try: os.unlink(name); os.rename("real" + name, name); os.rename(name, "real" + name)
        except OSError: pass
"""
    os.rename(project.path("hidden"), project.path("kept"))
    swapper = subprocess.Popen(["/usr/bin/python3", "-c", script], cwd=project.root, stdout=subprocess.PIPE)
    assert swapper.stdout.readline() == b"ready\n"
    try:
        for _ in range(60):
            result = sbx.shell("cat .envrc .vscode/id hidden/id .husky/secret.txt 2>/dev/null; true",
                               "--hide", "hidden", may_refuse=True)
            assert "the real home" not in result.out, result
    finally:
        swapper.kill()
        swapper.communicate()


def test_swap_of_a_protected_ancestor_while_it_runs(sbx, project):
    """F26"""
    result = sbx.python("""
import os
for n in range(2000):
    for source, target in ((".git", "g"), (".git/hooks", ".git/h"), (".git/config", ".git/c")):
        try: os.rename(source, target); print("moved", source)
        except OSError: pass
    try: open(".git/config", "a"); print("opened")
    except OSError: pass
""").ok()
    assert result.out == "", result
