"""`sbx credential`, and what the other commands say of credentials: all of it without a value, and without a network."""
import json
import os

import pytest

VALUE = "ghp_" + "Zq7" * 12
GITHUB = "github=env:GH_TOKEN"


def test_list(sbx, project):
    project.policy("../../.config/sbx/policy.json", credentials={"tracker": {
        "source": {"file": "~/token"}, "bind": ["*.tracker.test:8443"], "inject": "attach", "place": {"header": "X-Token"}}})
    result = sbx("credential", "--credential", GITHUB, "list", env={"GH_TOKEN": VALUE}).ok()
    assert result.out == (
        "github\n"
        "  hosts   api.github.com, github.com, uploads.github.com\n"
        "  source  the variable GH_TOKEN\n"
        "  goes    where the placeholder stands\n"
        "  inside  a placeholder in GITHUB_TOKEN, GH_TOKEN\n"
        "  from    --credential\n"
        "tracker\n"
        "  hosts   *.tracker.test:8443\n"
        "  source  the file ~/token\n"
        "  goes    to X-Token:, on every request\n"
        f"  from    {project.home}/.config/sbx/policy.json:1\n")
    assert not os.path.exists(f"{project.state}/placeholders")


def test_keys(sbx, project):
    """Of a value that is made of several nothing is told but what there is; half of one is an error before anything runs."""
    option = ["--credential", "aws"]
    listed = sbx("credential", *option, "list").ok().out
    assert "the variables AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN" in listed and "signed anew" in listed
    assert "a placeholder in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY\n" in listed
    env = {"AWS_ACCESS_KEY_ID": "AKIAVALUE", "AWS_SECRET_ACCESS_KEY": VALUE}
    result = sbx("credential", *option, "test", "aws", env=env).ok()
    assert result.out.endswith("  value   a key id and its secret key, without a session's token\n") and result.err == "", result
    result = sbx("credential", *option, "test", "aws", env={**env, "AWS_SESSION_TOKEN": "t"}).ok()
    assert result.out.endswith("with the token of a session\n") and VALUE not in result.out and "AKIAVALUE" not in result.out
    result = sbx("credential", *option, "test", "aws", env={"AWS_SECRET_ACCESS_KEY": VALUE})
    assert result.code == 1 and "AWS_SECRET_ACCESS_KEY is set and AWS_ACCESS_KEY_ID is not; set both" in result.err, result
    result = sbx("credential", *option, "test", "aws")
    assert result.code == 1 and "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set" in result.err, result
    result = sbx("run", *option, "--env", "AWS_SESSION_TOKEN", "--", "env", env={**env, "AWS_SESSION_TOKEN": "t0ken"}).ok()
    assert "t0ken" not in result.out and VALUE not in result.out and "AWS_ACCESS_KEY_ID=AKIA" in result.out, result
    assert any("AWS_SESSION_TOKEN is not passed" in m for m in result.messages), result


def test_list_of_nothing(sbx):
    result = sbx("credential", "list").ok()
    assert result.out == "" and result.messages[0].startswith("no credentials here"), result


@pytest.mark.parametrize("value, told", [
    (VALUE, "of 32 to 63 bytes, and begins as values of github do"),
    ("gho_x", "of 4 to 7 bytes, and begins as values of github do"),
    ("x", "of 1 to 1 bytes, and begins otherwise than values of github do"),
])
def test_value_is_described(sbx, value, told):
    result = sbx("credential", "--credential", GITHUB, "test", "github", env={"GH_TOKEN": value}).ok()
    assert result.out.splitlines()[-1] == f"  value   {told}"
    assert result.err == "" and (len(value) < 5 or value not in result.out)


def test_program(sbx, project):
    """Run by test alone, and waited for."""
    program = project.write("../../give", f"#!/bin/sh\necho ran >> {project.home}/runs\nsleep 0.3\n"
                                          f"echo '{{\"value\": \"{VALUE}\", \"expires_at\": \"2999-01-01T00:00:00Z\"}}'\n", 0o755)
    option = ["--credential", f"github=exec:{program} a"]
    assert f"the output of {program} a" in sbx("credential", *option, "list").ok().out
    assert not os.path.exists(f"{project.home}/runs")
    result = sbx("credential", *option, "test", "github").ok()
    assert "begins as values of github do; it is asked for anew after " in result.out and VALUE not in result.out
    assert project.read("../../runs") == "ran\n"


@pytest.mark.parametrize("source, reason", [
    ("env:GH_TOKEN", "the variable GH_TOKEN is not set; set it, or name another source"),
    ("file:../../gone", "/user/gone: No such file or directory"),
    ("exec:false", "the program false: ended with status 1"),
    ("exec:true", "the program true: what it printed: is empty"),
])
def test_value_cannot_be_had(sbx, source, reason):
    result = sbx("credential", "--credential", f"github={source}", "test", "github")
    assert result.code == 1 and result.err.startswith("sbx: credential github: ") and result.err.endswith(f"{reason}\n"), result
    assert result.out.startswith("github\n"), result


def test_faults(sbx):
    for words in ([], ["list", "x"], ["test"], ["test", "a", "b"], ["forget", "x"]):
        sbx("credential", *words).refused("credential list", "credential test NAME")
    sbx("credential", "test", "x").refused("there are none here")
    sbx("credential", "--credential", GITHUB, "test", "x").refused("there is no x here; there are github")
    sbx("credential", "--credential", "tracker=env:X", "list").refused('no preset "tracker"', "described in a policy file")


def test_program_that_the_command_can_write(sbx, project):
    """A run could plant what the next one executes outside."""
    project.write("bin/gh", "#!/bin/sh\necho planted\n", 0o755)
    env = {"PATH": f"{project.root}/bin:{sbx.env['PATH']}"}
    result = sbx("credential", "--credential", "github=exec:gh auth token", "test", "github", env=env)
    assert result.code == 1 and "stands where the command inside may write" in result.err, result
    result = sbx("credential", "--credential", f"github=exec:{project.root}/bin/gh", "test", "github", env=env)
    assert result.code == 1 and "stands where the command inside may write" in result.err, result


def test_argument_that_the_command_can_write(sbx, project):
    project.write("get.py", "print('planted')")
    policy = project.policy("../own.json", credentials={"github": {"source": {"exec": ["cat", f"{project.root}/get.py"]}}})
    result = sbx("credential", "--policy", policy, "test", "github")
    assert result.code == 1 and "the program cat: its argument 1 names a place where the command inside may write" in result.err


def test_home_that_the_command_can_write(sbx, project):
    """Settings of programs are in it."""
    policy = project.policy("../own.json", filesystem={"write": ["~"]}, credentials={"github": {"source": {"exec": ["true"]}}})
    result = sbx("credential", "--policy", policy, "test", "github")
    assert result.code == 1 and "the whole home is where the command inside may write" in result.err, result


TOOLS = {
    "secret-service:service=gh,user=a b": ("secret-tool", ["lookup", "service", "gh", "user", "a b"]),
    "op:op://vault/item/field": ("op", ["read", "--no-newline", "op://vault/item/field"]),
    "pass:dev/github": ("pass", ["show", "dev/github"]),
}


@pytest.mark.parametrize("source", TOOLS)
def test_tools(sbx, project, source):
    """Run as a user would, and never the workspace's own; one that is not there is named."""
    name, argv = TOOLS[source]
    option = ["--credential", f"github={source}", "test", "github"]
    project.write(f"bin/{name}", "#!/bin/sh\necho planted\n", 0o755)
    env = {"PATH": f"{project.root}/bin:{project.home}/tools:{sbx.env['PATH']}"}
    result = sbx("credential", *option, env=env)
    assert result.code == 1 and f"the program {name} stands where the command inside may write" in result.err, result
    result = sbx("credential", *option, env={"PATH": "/nowhere"})
    assert result.code == 1 and f"the program {name} was not found; install it, or name another source" in result.err, result
    project.write(f"../../tools/{name}", f"#!/bin/sh\nprintf '%s\\n' \"$@\" $(wc -c) > {project.home}/asked\nprintf '{VALUE}'\n", 0o755)
    result = sbx("credential", *option, env=env).ok()
    assert "begins as values of github do" in result.out and VALUE not in result.out
    assert project.read("../../asked").splitlines() == [*argv, "0"]


def test_tools_are_never_the_workspaces(sbx, project):
    """P11: no source is taken from a file that the command can write, trusted or not."""
    project.policy(credentials={"github": {"source": {"pass": "x"}}})
    assert sbx("credential", "list").ok().out == ""


@pytest.mark.parametrize("there", [False, True])
def test_source_file_that_would_be_seen(sbx, project, there):
    """A mask is gone when the host saves the file anew; so its directory is not to be seen at all."""
    path = project.write("keys/token", VALUE) if there else f"{project.root}/keys/token"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    result = sbx.shell("touch ran", "--credential", "github=file:keys/token", may_refuse=True)
    assert result.code == 125 and f"--credential github: source: {path} would be seen inside as soon as" in result.err, result
    assert f"shows the directory {project.root}/keys;" in result.err and not project.exists("ran"), result
    result = sbx.shell("cat keys/token; echo end", "--hide", "keys", "--credential", "github=file:keys/token")
    assert result.out == "end\n" and VALUE not in result.err, result
    result = sbx("why", "--hide", "keys", "--credential", "github=file:keys/token", path)
    assert result.code == 1, result
    assert sbx.run("--credential", "github=file:../../token", "--", "true").ok().messages == []


def test_why_and_show(sbx, project):
    """What is bound may be reached, by a rule that says why; the deny rules have their say as ever."""
    policy = project.policy("../own.json", credentials={"github": {}})
    result = sbx("why", "--policy", policy, "api.github.com").ok()
    assert "credentials.github" in result.out and policy in result.out, result
    assert sbx("why", "--policy", policy, "--deny", "api.github.com", "api.github.com").code == 1
    assert sbx("why", "--policy", policy, "api.github.com:80").code == 1
    shown = json.loads(sbx("show", "--policy", policy).ok().out)
    assert shown["credentials"]["github"]["source"] == {"env": "GITHUB_TOKEN"}
    # It implies its rules anew where the text is read; written out they would be the user's own.
    assert "github.com" not in str(shown["network"]["allow"])
    again = project.write("../again.json", json.dumps(shown))
    assert "credentials.github" in sbx("why", "--policy", again, "api.github.com").ok().out


def test_dry_run_leaves_nothing(sbx, project):
    result = sbx("run", "--dry-run", "--credential", GITHUB, "--", "true", env={"GH_TOKEN": VALUE}).ok()
    assert "env      GH_TOKEN\n" in result.out and "(trust)" in result.out and VALUE not in result.out
    assert not os.path.exists(f"{project.state}/placeholders")


def test_run_needs_its_proxy(sbx, project, program):
    """P1: no sandbox without the program that keeps the values out of it."""
    own = project.write("../../bin/sbx", open(program, "rb").read(), 0o755)
    project.write("../../bin/sbx-proxy", open(f"{os.path.dirname(program)}/sbx-proxy", "rb").read(), 0o755)
    sbx.program = own
    sbx("run", "--", "true").ok()
    sbx("run", "--credential", GITHUB, "--", "echo", "ran", env={"GH_TOKEN": VALUE}).refused("sbx-proxy-tls")
    sbx("run", "--deny", '{"host": "a.test", "methods": ["PUT"]}', "--", "echo", "ran").refused("sbx-proxy-tls")
    project.write("../../bin/sbx-proxy-tls", "#!/bin/sh\nexit 1\n", 0o755)
    sbx("run", "--credential", GITHUB, "--", "echo", "ran", env={"GH_TOKEN": VALUE}).refused("ended before it was ready")


@pytest.mark.parametrize("mode", ["none", "host"])
def test_without_proxy(sbx, mode):
    """F81: the value never takes the place of what cannot be had."""
    result = sbx("run", "--network", mode, "--credential", GITHUB, "--", "env", env={"GH_TOKEN": VALUE}).ok()
    assert VALUE not in result.out and "GH_TOKEN=ghp_" in result.out and "SSL_CERT_FILE" not in result.out
    assert any("credential" in line for line in result.messages), result
