"""Hidden paths (F27, F29, F31): opening fails with EACCES or ENOENT, for reading and for writing."""
import os

import pytest

TRY = """
import errno, json, os, sys
def attempt(function, *args):
    try:
        function(*args)
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
answers = {}
for path in sys.argv[1:]:
    answers[path] = {
        "read": attempt(lambda p: os.close(os.open(p, os.O_RDONLY)), path),
        "write": attempt(lambda p: os.close(os.open(p, os.O_WRONLY)), path),
        "append": attempt(lambda p: os.close(os.open(p, os.O_WRONLY | os.O_APPEND)), path),
        "truncate": attempt(os.truncate, path, 0),
        "list": attempt(os.listdir, path),
        "create": attempt(lambda p: os.close(os.open(p + "/new", os.O_CREAT | os.O_WRONLY)), path),
        "below": attempt(lambda p: os.close(os.open(p + "/file", os.O_RDONLY)), path),
        "mkdir": attempt(os.mkdir, path + "/newdir"),
        "chmod": attempt(os.chmod, path, 0o777),
        "rename": attempt(os.rename, path, path + ".moved"),
        "unlink": attempt(os.unlink, path),
        "rmdir": attempt(os.rmdir, path),
    }
print(json.dumps(answers))
"""
CLOSED = {"EACCES", "ENOENT"}


def attempts(sbx, path, *options):
    return sbx.python(TRY, *options, arguments=[path]).json[path]


def test_hidden_file(sbx, project):
    """F27"""
    path = project.write("secret.env", "hunter2")
    got = attempts(sbx, path, "--hide", "secret.env")
    assert got["read"] in CLOSED and got["write"] in CLOSED and got["append"] in CLOSED, got
    for change in ("truncate", "rename", "unlink"):
        assert got[change] != "done", got
    assert project.read("secret.env") == "hunter2"


def test_hidden_directory(sbx, project):
    """F27: never an empty directory that swallows what is written to it."""
    project.write("private/file", "hunter2")
    got = attempts(sbx, project.path("private"), "--hide", "private")
    for key in ("list", "create", "below", "mkdir"):
        assert got[key] in CLOSED | {"EROFS"}, got
    assert got["list"] in CLOSED and got["below"] in CLOSED, got
    assert got["rename"] != "done" and got["rmdir"] != "done", got
    assert project.read("private/file") == "hunter2"
    assert sorted(os.listdir(project.path("private"))) == ["file"]


def test_hidden_stays_hidden_after_chmod_and_as_owner(sbx, project):
    project.write("private/file", "hunter2")
    result = sbx.shell("chmod -R 777 private; cat private/file private/*; cp -r private copy; grep -r hunter2 .",
                       "--hide", "private")
    assert "hunter2" not in result.out, result


def test_hidden_below_read_and_write_paths(sbx, plain):
    """The one that is named later and deeper does not open what is hidden."""
    plain.write("../data/private/file", "hunter2")
    base = plain.path("../data")
    for option in ("--read", "--write"):
        result = sbx.shell(f"cat {base}/private/file", option, base, "--hide", f"{base}/private")
        assert result.code != 0 and "hunter2" not in result.out, result


def test_hide_wins_over_show_of_the_same_path(sbx, plain):
    plain.write("../data/file", "hunter2")
    base = plain.path("../data")
    result = sbx.shell(f"cat {base}/file", "--read", base, "--hide", base)
    assert "hunter2" not in result.out, result


@pytest.mark.parametrize("pattern", ["**/.env", ".env", "conf/*.env", "**/*.env", "conf/?env", "conf/**"])
def test_patterns(sbx, project, pattern):
    """F31: a pattern hides what it says, also one that begins with a wildcard."""
    project.write(".env", "hunter2-top")
    project.write("conf/.env", "hunter2-conf")
    project.write("conf/x.env", "hunter2-x")
    project.write("a/b/c/.env", "hunter2-deep")
    expected = {
        "**/.env": {"x"}, ".env": {"conf", "x", "deep"}, "conf/*.env": {"top", "deep"}, "**/*.env": set(),
        "conf/?env": {"top", "x", "deep"}, "conf/**": {"top", "deep"},
    }[pattern]
    result = sbx.shell("cat .env conf/.env conf/x.env a/b/c/.env 2>/dev/null | tr -d '\\n'; true",
                       "--hide", pattern).ok()
    seen = {word.split("-")[1].strip() for word in result.out.replace("hunter2", " hunter2").split()}
    if pattern in ("conf/*.env", "**/*.env"):  # whether * takes a leading dot is sbx-policy(5)'s to say
        assert seen - {"conf", "top", "deep"} <= expected and expected <= seen | {"top", "deep"}, result
    else:
        assert seen == expected, result


def test_hide_of_an_absent_path_is_no_error_and_leaves_nothing(sbx, project):
    """P4"""
    result = sbx.shell("ls -A", "--hide", "not-there", "--hide", "not/there/either").ok()
    assert "not" not in result.out.split(), result
    assert not project.exists("not-there") and not project.exists("not")


def test_hidden_by_link_hides_the_target(sbx, project):
    """F25: hiding a link hides what it leads to, by either name."""
    project.write("real/file", "hunter2")
    os.symlink("real", project.path("link"))
    result = sbx.shell("cat link/file real/file", "--hide", "link")
    assert "hunter2" not in result.out, result


def test_hidden_target_is_not_reached_by_another_link(sbx, project):
    project.write("real/file", "hunter2")
    os.symlink("real", project.path("link"))
    assert "hunter2" not in sbx.shell("cat link/file", "--hide", "real").out


def test_parent_cannot_be_renamed_to_unhide(sbx, project):
    """F26"""
    project.write("a/b/private/file", "hunter2")
    result = sbx.shell("mv a/b a/c; mv a z; cat a/c/private/file z/b/private/file a/b/private/file; "
                       "mkdir -p n && mv a/b/private n/; cat n/private/file", "--hide", "a/b/private")
    assert "hunter2" not in result.out, result
    assert project.read("a/b/private/file") == "hunter2"


def test_strict_profile_hides_environment_files(sbx, project):
    project.write(".env", "hunter2")
    project.write("sub/.env", "hunter2")
    assert "hunter2" in sbx.shell("cat .env").out
    result = sbx.shell("cat .env sub/.env", "--profile", "strict")
    assert "hunter2" not in result.out, result


def test_many_hidden_paths(sbx, project):
    """F29: no limit of arguments, and each one holds."""
    options = []
    for number in range(600):
        project.write(f"many/{number}", "hunter2")
        options += ["--hide", f"many/{number}"]
    result = sbx.shell("cat many/*; ls many | wc -l", *options)
    assert "hunter2" not in result.out, result


def test_tools_cope_with_hidden_paths(sbx, project):
    """F20: git status and add work, with a hidden file that git tracks and one that it does not."""
    project.write("tracked.env", "hunter2")
    project.git("add", ".")
    project.git("commit", "-qm", "tracked")
    project.write("untracked/file", "hunter2")
    project.write("new", "x")
    result = sbx.shell("git status --porcelain; git add new && git commit -qm new && git log --oneline | wc -l", "--hide",
                       "untracked", "--hide", "tracked.env").ok()
    assert "?? new" in result.out and result.out.split()[-1] == "3", result
    assert project.git("show", "--name-only", "--format=") == "new\n" and project.git("show", "HEAD:tracked.env") == "hunter2"


def test_secret_of_the_home_keeps_its_name(sbx, project):
    """In a home that is writable: from another name the next run would show it."""
    project.write("../../.cargo/credentials.toml", "hunter2\n")
    script = "mv ~/.cargo ~/.moved; cat ~/.moved/credentials.toml ~/.cargo/credentials.toml; true"
    result = sbx.shell(script, "--write", project.home, "--home", "host")
    assert "busy" in result.err and "hunter2" not in result.out and result.messages == [], result


def test_file_that_a_pattern_hides_may_move_with_its_directory(sbx, project):
    """It is masked there as well, and nobody is blamed."""
    project.write("sub/.env", "hunter2\n")
    moved = "mv sub sub2; cat sub2/.env; true"
    result = sbx.shell(moved, "--hide", "**/.env")
    assert "hunter2" not in result.out and result.messages == [], result
    result = sbx.shell("mv sub2 sub3; mkdir sub2; echo mine > sub2/.env; cat sub2/.env sub3/.env; true",
                       "--hide", "**/.env")
    assert result.out == "mine\n", result
    message, = result.messages
    assert "sub2/.env is another file" in message and "unless a directory above it was renamed inside" in message
