"""What somebody types who meets sbx for the first time: each slip gets one line that names it and its mend."""
import json
import os
import shlex
import subprocess

import pytest


@pytest.mark.parametrize("option", ["--read", "--write", "--unix-socket"])
def test_root_cannot_be_shown(sbx, option):
    sbx.run(option, "/", "--", "true").refused(option, "/ cannot be shown", "name what you need below it")


def test_root_cannot_be_hidden_or_protected(sbx, project):
    """A protection that would not hold is not passed over in silence."""
    sbx.run("--hide", "/", "--", "true").refused("hide: / holds the workspace")
    for above in ("/", project.home):
        path = project.policy("../../p.json", filesystem={"protect": [above]})
        sbx.run("--policy", path, "--", "true").refused(f"protect: {above} holds the workspace")


def test_empty_shell_variable_is_as_none(sbx):
    assert sbx("shell", env={"SHELL": ""}, input=b"echo $0\n").ok().out == "/bin/sh\n"


@pytest.mark.parametrize("words, mend", [
    (["run", "--alow", "x.test", "--", "true"], "did you mean --allow?"),
    (["run", "--nonsense", "--", "true"], "see sbx run --help"),
    (["trust", "--allow", "x.test"], "see sbx trust --help"),
])
def test_unknown_option_names_the_way_on(sbx, words, mend):
    sbx(*words).refused(words[0] + ": " + words[1], "no such option", mend)


def test_version_as_a_word(sbx):
    assert sbx("version").ok().out == sbx("--version").ok().out


def answer(sbx, *words, **options):
    result = sbx("why", "--json", *words, **options)
    assert result.code in (0, 1) and not result.err, result
    found = json.loads(result.out)
    assert (found["answer"] == "yes") == (result.code == 0), result
    return found


def advised(found):
    """The options that an advice tells to type."""
    words = shlex.split(found["fix"])
    assert words[:2] == ["sbx", "run"] and words[-1] == "...", found
    return words[2:-1]


@pytest.mark.user
@pytest.mark.parametrize("words", [["--write", "/usr/bin/env"], ["/etc/shadow"]])
def test_why_of_what_the_host_refuses(sbx, words):
    """No option helps there, so none is named."""
    found = answer(sbx, *words)
    assert (found["answer"], found["fix"]) == ("no", "") and "the host itself refuses" in found["text"], found


def test_why_of_what_does_not_exist(sbx, project):
    found = answer(sbx, "/nope")
    assert (found["answer"], found["fix"]) == ("no", "") and "does not exist" in found["text"], found
    found = answer(sbx, "--write", "~/.cache/nope")
    assert found["fix"].startswith("create it first, then: sbx run --write " + project.home), found
    os.makedirs(project.home + "/.cache/nope")
    assert advised(answer(sbx, "--write", "~/.cache/nope")) == ["--write", project.home + "/.cache/nope"]


def test_why_gives_advice_that_works(sbx, project):
    """What is advised is typed, and the answer is the other one."""
    project.write("../../.ssh/id_rsa", "a key\n")
    project.write("../../it's here/a file", "text\n")
    project.write("../../other place/a file")
    for words, proof in ((["--home", "host", "~/.ssh/id_rsa"], "cat ~/.ssh/id_rsa"),
                         (["~/it's here/a file"], "cat \"$HOME/it's here/a file\""),
                         (["--write", "~/other place"], "echo x > ~/'other place/new'"),
                         (["--write", "./.git/hooks/pre-commit"], "echo x > .git/hooks/pre-commit"),
                         (["--write", "./.git/config"], "echo '# x' >> .git/config")):
        found = answer(sbx, *words)
        options = words[:2] if words[0] == "--home" else []
        assert found["answer"] == "no", found
        assert sbx.shell(proof, *options).code != 0
        assert sbx.shell(proof, *options, *advised(found)).code == 0, found


def test_why_of_a_place_that_is_the_sandboxs_own(sbx):
    found = answer(sbx, "/proc/1/environ")
    assert (found["answer"], found["fix"]) == ("no", ""), found


def test_why_names_the_entry_that_hides(sbx, project):
    path = project.policy("../../p.json", filesystem={"hide": ["~/nothing", "**/.env"]})
    project.write("deep/.env", "secret\n")
    found = answer(sbx, "--policy", path, "./deep/.env")
    assert (found["rule"], found["place"]) == ("**/.env", path + ":1"), found
    assert found["fix"] == "take it out of filesystem.hide there", found
    found = answer(sbx, "--hide", "deep", "./deep/.env")
    assert (found["rule"], found["place"]) == (project.path("deep"), "--hide"), found
    assert found["fix"] == "leave that option out", found


def test_why_names_the_entry_that_protects_or_shows(sbx, project):
    project.write("deploy/run", "x\n")
    project.write("../../data/x", "x\n")
    path = project.policy("../../p.json", filesystem={"protect": ["deploy"], "read": ["~/data"]})
    assert answer(sbx, "--policy", path, "--write", "./deploy/run")["rule"] == "deploy"
    assert answer(sbx, "--policy", path, "~/data/x")["rule"] == "~/data"


def test_why_knows_what_trust_would_give(sbx, project):
    project.write("../../data/x", "x\n")
    path = project.policy(network={"allow": ["origin.test"]}, filesystem={"read": ["~/data"]})
    for target in ("origin.test", "http://origin.test/", "~/data/x"):
        found = json.loads(sbx("why", "--json", target).out)
        assert found["answer"] == "no" and found["fix"].startswith(path) and "sbx trust" in found["fix"], found
    assert "trust" not in json.loads(sbx("why", "--json", "other.test").out)["fix"]
    sbx("trust").ok()
    assert answer(sbx, "origin.test")["answer"] == "yes"


def test_advice_for_a_private_address_is_whole(sbx, lab):
    """Typed as it stands, without the option that allowed the name before."""
    result = sbx.shell("curl -s http://private.test/", "--allow", "private.test")
    line = next(line for line in result.messages if "address-private" in line)
    options = shlex.split(line.split("to allow it: ")[1])[2:-1]
    assert options[:2] == ["--allow", "private.test"] and len(options) == 4, line
    result = sbx.shell("curl -s -o /dev/null http://private.test/", *options)
    assert "address-private" not in result.err and "not-allowed" not in result.err, result


def test_check_finds_what_a_run_would(sbx, project):
    """Not "ok" first, and 125 then."""
    user = project.policy("../../.config/sbx/policy.json", filesystem={"write": ["~/nope"]})
    sbx.run("--", "true").refused(f"{user}:1", f"~/nope ({project.home}/nope) does not exist")
    result = sbx("check")
    assert result.code == 125 and f"~/nope ({project.home}/nope) does not exist" in result.messages[-1], result
    sbx("check", user).ok()  # it may be for another machine
    os.makedirs(project.home + "/nope")
    sbx("check").ok()
    sbx.run("--", "true").ok()


def test_check_names_the_files_that_it_read(sbx, project):
    assert sbx("check").messages == []
    files = [project.policy("../../.config/sbx/policy.json"), project.policy(),
             project.policy("../../p.json", filesystem={"read": ["other"]})]
    result = sbx("check", "--policy", files[2]).ok()
    assert [line[5:] for line in result.messages if line.startswith("read ")] == files
    missing = f"{files[2]}:1: filesystem.read[0]: other ({project.path('other')}) does not exist and is not shown"
    assert missing in result.messages
    found = sbx("check", "--json", "--policy", files[2]).json
    assert found["files"] == files and missing in found["notes"], found


@pytest.mark.parametrize("options, words", [
    (["--network", "none", "--allow", "x.test"], ["--allow", 'network.mode is "none"', "--network proxy"]),
    (["--profile", "offline", "--allow", "x.test"], ["--allow", 'network.mode is "none"', "--network proxy"]),
    (["--network", "host", "--deny", "x.test"], ["--deny", 'network.mode is "host"']),
    (["--hide", "nope"], ["--hide", "/src/app/nope does not exist", "nothing is hidden"]),
    (["--hide", "*.c"], ["--hide", "nothing matches *.c", "**/"]),
    (["--unprotect", ".git/hookz"], ["--unprotect", ".git/hookz is none of the protected names"]),
    (["--unprotect", ".git"], ["--unprotect", ".git is none of the protected names"]),
    (["--env", "UNSET"], ["--env", "UNSET is not set here", "--env UNSET=VALUE"]),
])
def test_option_that_changes_nothing_is_told(sbx, project, options, words):
    project.write("deep/x.c")
    result = sbx.run(*options, "--", "true").ok()
    about = [line for line in result.messages if line.startswith(words[0] + ": ")]
    assert len(about) == 1 and all(word in about[0] for word in words), result


def test_option_that_changes_something_is_not_told(sbx, project):
    project.write("deep/x.c")
    project.write(".envrc")
    for options in (["--allow", "x.test"], ["--network", "none", "--deny", "x.test"], ["--hide", "deep"],
                    ["--hide", "**/*.c"], ["--unprotect", ".git/hooks"], ["--unprotect", ".husky"], ["--env", "TERM"],
                    ["--env", "NO_SUCH_*"], ["--profile", "strict"]):
        assert sbx.run(*options, "--", "true").ok().err == "", options
    project.policy("../../.config/sbx/policy.json", network={"allow": ["x.test"]},
                   filesystem={"hide": ["nope", "*.nope"]}, env={"pass": ["UNSET"]})
    assert sbx.run("--network", "none", "--", "true").ok().err == ""


def test_json_of_a_run_is_the_plans(sbx):
    sbx.run("--json", "--", "true").refused("--json goes with --dry-run")
    assert json.loads(sbx.run("--json", "--dry-run", "--", "true").ok().out)


def private(project):
    """The project's private home, as the host sees it."""
    return f"{project.state}/home/" + os.path.realpath(project.root)[1:].replace("/", "!")


def test_what_is_shown_leaves_nothing_in_the_private_home(sbx, project):
    """A file shown once is not an empty file in each later run."""
    project.write("../../.ssh/id_rsa", "a key\n")
    project.write("../../data/x", "x\n")
    shown = ["--read", "~/.ssh/id_rsa", "--write", "~/data"]
    assert sbx.shell("cat ~/.ssh/id_rsa ~/data/x", *shown).out == "a key\nx\n"
    assert sbx.shell("cat ~/.ssh/id_rsa").code == 1
    assert sbx.shell("ls -d ~/data").code == 2
    assert not os.path.lexists(private(project) + "/.ssh/id_rsa")


def test_what_the_command_made_there_stays(sbx, project):
    project.write("../../data", "the host's\n")
    sbx.shell("echo mine > ~/data; mkdir ~/dir; echo mine > ~/dir/x")
    project.write("../../dir/y", "the host's\n")
    assert sbx.shell("cat ~/data ~/dir/y", "--read", "~/data", "--read", "~/dir").out == "the host's\n" * 2
    assert sbx.shell("cat ~/data ~/dir/x").out == "mine\n" * 2


def test_end_of_a_run_does_not_uncover_another(sbx, project):
    """P5: what one run shows is shown in it to its end, whatever other runs of the project do."""
    project.write("../../data", "the host's\n")
    shown = ["--read", "~/data"]
    script = "cat ~/data && echo ready && read line; cat ~/data"
    first = sbx.start("run", *shown, "--", "/bin/sh", "-c", script, stdin=subprocess.PIPE)
    assert first.stdout.readline() == b"the host's\n" and first.stdout.readline() == b"ready\n"
    assert sbx.shell("cat ~/data", *shown).out == "the host's\n"
    out, err = first.communicate(b"\n", timeout=60)
    assert (first.returncode, out, err) == (0, b"the host's\n", b"")
    assert not os.path.lexists(private(project) + "/data")  # the last one has put it away


def test_mount_point_of_a_killed_run(sbx, project):
    """It cannot be taken for the real file, and the next run that shows the file puts it away."""
    project.write("../../data", "the host's\n")
    run = sbx.start("run", "--read", "~/data", "--", "/bin/sh", "-c", "echo ready; read line", stdin=subprocess.PIPE)
    assert run.stdout.readline() == b"ready\n"
    run.kill()
    run.communicate()
    assert sbx.shell("test -e ~/data").code == 0
    if os.geteuid():  # root reads its own files whatever their mode
        assert sbx.shell("cat ~/data").code == 1
    assert sbx.shell("cat ~/data", "--read", "~/data").out == "the host's\n"
    assert sbx.shell("test -e ~/data").code == 1


def visit(sbx, host):
    """A run that asks for a host. Its name in the audit."""
    result = sbx.shell(f"curl -s -o /dev/null http://{host}/", "--summary", "always")
    return next(line for line in result.messages if "exit status" in line).split()[1].rstrip(":")


def test_log_of_one_run(sbx, lab):
    names = [visit(sbx, "first.test"), visit(sbx, "second.test")]
    assert names[0] != names[1]
    assert "first.test" in sbx("log", names[0]).ok().out and "second" not in sbx("log", names[0]).out
    assert sbx("log", "last").ok().out == sbx("log", names[1]).ok().out != ""
    sbx("log", "nope").refused("nothing of a run nope", "sbx log")


def test_log_of_a_run_without_any(sbx):
    assert "no run has used the network" in sbx("log").ok().err
    sbx("log", "last").refused("No such file")


def test_log_follows_from_the_end(sbx, lab, project):
    """Not from the beginning of all that there ever was."""
    visit(sbx, "first.test")
    line = sbx("log", "--json").ok().out.splitlines()[0]
    path = project.state + "/audit.jsonl"
    with open(path, "a") as file:
        for number in range(30):
            file.write(line.replace("first.test", f"n{number}.test") + "\n")
    follow = sbx.start("log", "-f")
    lines = [follow.stdout.readline().decode() for _ in range(10)]
    with open(path, "a") as file:
        file.write(line.replace("first.test", "new.test") + "\n")
    lines.append(follow.stdout.readline().decode())
    follow.kill()
    follow.communicate()
    hosts = [f"n{number}.test" for number in range(20, 30)] + ["new.test"]
    assert all(host in line for host, line in zip(hosts, lines)), lines


def test_init_says_what_comes_next(sbx, project):
    messages = sbx("init").ok().messages
    assert messages[-1].endswith("then: sbx trust"), messages
    told = sbx.run("--", "true").ok().messages
    assert len(told) == 1 and told[0].count("profile git") == 1 and "network.allow" not in told[0], told


def test_home_is_told_with_its_place(sbx, project):
    assert any(private(project) in line and line.startswith("home: ") for line in sbx.run("-v", "--", "true").messages)
    assert sbx.run("--", "true").ok().err == ""


def make_venv(project, place):
    project.write(f"../../{place}/pyvenv.cfg", "home = /usr/bin\n")
    project.write(f"../../{place}/bin/tool", "#!/bin/sh\necho of the venv\n", mode=0o755)
    project.write(f"../../{place}/bin/ls", "#!/bin/sh\necho of the venv\n", mode=0o755)
    return f"{project.home}/{place}"


def test_activated_environment_is_a_toolchain(sbx, project):
    venv = make_venv(project, "venvs/one")
    env = {"VIRTUAL_ENV": venv, "PATH": f"{venv}/bin:{sbx.env['PATH']}"}
    result = sbx.run("--", "ls", env=env).ok()
    assert (result.out, result.err) == ("of the venv\n", "")
    assert sbx.shell(f"echo x > {venv}/new", env=env).code != 0


@pytest.mark.parametrize("place", ["", "venvs", "src", "src/app/.."])
def test_variable_of_an_environment_shows_nothing_else(sbx, project, place):
    """VIRTUAL_ENV=~ is no way to the whole home."""
    make_venv(project, "venvs/one")
    project.write("../../pyvenv.cfg")
    project.write("../pyvenv.cfg")
    env = {"VIRTUAL_ENV": f"{project.home}/{place}".rstrip("/")}
    assert sbx.shell("cat ~/secret.txt ~/venvs/one/pyvenv.cfg ~/src/pyvenv.cfg", env=env).code != 0


def test_other_program_than_on_the_host_is_told(sbx, project):
    venv = make_venv(project, "venvs/one")
    env = {"PATH": f"{venv}/bin:{sbx.env['PATH']}"}
    result = sbx.run("--", "ls", "/", env=env).ok()
    assert result.messages == [f"ls: /usr/bin/ls runs, not {venv}/bin/ls, which your PATH has first and the sandbox does "
                               f"not show; to show it: --read {venv}"], result
    assert sbx.run("--read", venv, "--", "ls", env=env).ok().out == "of the venv\n"
    result = sbx.run("--", "tool", env=env)
    assert result.code == 127 and result.messages[0].endswith(f"to show it: sbx run --read {venv} -- tool ..."), result
    assert sbx.run("--read", venv, "--", "tool", env=env).ok().out == "of the venv\n"


def test_program_is_named_as_it_was_typed(sbx, project):
    project.write("noexec.sh", "#!/bin/sh\n", mode=0o644)
    result = sbx.run("--", "./noexec.sh")
    assert result.code == 126 and result.messages[0].startswith("./noexec.sh: not executable"), result


def test_command_line_in_one_word(sbx):
    result = sbx.run("echo hi")
    assert result.code == 127 and "sbx run -- sh -c" in result.messages[0], result
    assert "sh -c" not in sbx.run("--", "no-such-program").err


@pytest.mark.user
def test_limit_above_the_users_own(sbx):
    result = sbx.run("--pids", "1000000", "--", "true", prefix=["/usr/bin/prlimit", "--nproc=5000:5000"])
    result.refused("limits.pids", "is more than your own hard limit", "ask for less")


def test_limit_that_nothing_can_start_with(sbx):
    assert "limits.memory: 1024 bytes are less" in sbx.run("--memory", "1k", "--", "true").err


def test_names_are_shown_as_they_are(sbx, project):
    project.write("caf\u00e9", "x")
    assert project.path("caf\u00e9") in sbx("why", "./caf\u00e9").ok().out
    assert "\\x1b" in sbx("why", "./a\x1b[31m").out


def test_linked_worktree_is_told(sbx, project):
    """git works there with the option that the line names, and not without."""
    tree_dir = os.path.dirname(project.root) + "/linked"
    project.git("worktree", "add", "-q", tree_dir)
    repository = project.root + "/.git"
    result = sbx.shell("git log -1", cwd=tree_dir)
    told = [line for line in result.messages if line.startswith("git: ")]
    assert result.code != 0 and len(told) == 1 and f"--read {repository} " in told[0], result
    result = sbx.shell("git log -1 --format=%s", "--read", repository, cwd=tree_dir)
    assert (result.code, result.out, result.messages) == (0, "first\n", []), result
    result = sbx.shell("echo x > x && git add x && git commit -qm inside", "--write", repository, cwd=tree_dir)
    assert (result.code, result.messages) == (0, []), result
    assert project.git("log", "-1", "--format=%s", "linked") == "inside\n"


@pytest.mark.parametrize("text", ["", "gitdir:", "nonsense\n", "gitdir: \x1b[31m/x\n", "gitdir: " + "x" * 5000])
def test_git_file_of_anybody(sbx, plain_sbx, plain, text):
    plain.write(".git", text)
    result = plain_sbx.run("--", "true").ok()
    assert "\x1b" not in result.err
