"""Variables (DESIGN 6): an allow-list, and what the policy adds."""
import json
import os
import pwd

import pytest

ALL = "import json, os; print(json.dumps(dict(os.environ)))"


def test_only_what_is_listed_is_passed(sbx):
    """P3, P7"""
    given = {"AWS_SECRET_ACCESS_KEY": "hunter2", "GITHUB_TOKEN": "hunter2", "DATABASE_URL": "hunter2", "LC_TIME": "C",
             "EDITOR": "vi", "CI": "1", "NO_COLOR": "1", "TZ": "UTC", "SSH_AUTH_SOCK": "/x",
             "DBUS_SESSION_BUS_ADDRESS": "x",
             "DISPLAY": ":0", "LD_PRELOAD": "", "BASH_ENV": "/x", "PYTHONPATH": "/x", "GIT_DIR": "/x",
             "BASH_FUNC_ls%%": "() { :; }"}
    shown = sbx.python(ALL, env=given).json
    for name in ("LC_TIME", "EDITOR", "CI", "NO_COLOR", "TZ"):
        assert shown[name] == given[name], shown
    for name in set(given) - {"LC_TIME", "EDITOR", "CI", "NO_COLOR", "TZ"}:
        assert name not in shown, name
    assert "hunter2" not in json.dumps(shown)


def test_usual_variables_are_there(sbx):
    shown = sbx.python(ALL).json
    assert shown["HOME"] == sbx.project.home
    for name in ("PATH", "USER", "SHELL", "TERM", "LANG"):
        assert shown[name] == sbx.env[name], name


def test_home_of_passwd_where_the_variable_is_missing(sbx):
    try:
        expected = os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        expected = "/nonexistent"
    plan = json.loads(sbx("show", "--plan", "--json", env={"HOME": None}).ok().out)
    assert expected in [operation["target"] for operation in plan["operations"] if operation["stage"] == "home"], plan


def test_env_option_passes_and_sets(sbx):
    shown = sbx.python(ALL, "--env", "PASSED", "--env", "SET=a=b c", "--env", "PRE_*", "--env", "ABSENT",
                       env={"PASSED": "one", "PRE_A": "two", "PRE_B": "", "OTHER": "x"}).json
    assert (shown["PASSED"], shown["SET"], shown["PRE_A"], shown["PRE_B"]) == ("one", "a=b c", "two", "")
    assert "OTHER" not in shown and "ABSENT" not in shown


def test_env_of_the_policy(sbx, project):
    policy = project.policy("../../policy.json", env={"pass": ["PASSED"], "set": {"SET": "value", "EMPTY": ""}})
    shown = sbx.python(ALL, "--policy", policy, env={"PASSED": "one"}).json
    assert (shown["PASSED"], shown["SET"], shown["EMPTY"]) == ("one", "value", "")


def test_untrusted_workspace_passes_no_variable(sbx, project):
    """P11: a cloned repository must not ask for the caller's token."""
    project.policy(env={"pass": ["GITHUB_TOKEN"], "set": {"LD_PRELOAD": "/evil.so"}})
    result = sbx.python(ALL, env={"GITHUB_TOKEN": "hunter2"})
    assert "GITHUB_TOKEN" not in result.json and "LD_PRELOAD" not in result.json
    assert any(".sbx.json" in message for message in result.messages), result


def test_verbose_lists_what_was_left_out(sbx):
    """Names, not values."""
    result = sbx.run("-v", "--", "true", env={"GITHUB_TOKEN": "hunter2", "MYAPP_MODE": "x"}).ok()
    assert "GITHUB_TOKEN" in result.err and "MYAPP_MODE" in result.err, result
    assert "hunter2" not in result.err


def test_quiet_by_default_about_variables(sbx):
    assert sbx.run("--", "true", env={"GITHUB_TOKEN": "x"}).ok().err == ""


def test_odd_values_arrive_unchanged(sbx):
    values = {"LC_A": "line\nbreak", "LC_B": " spaces ", "LC_C": "'\"\\$`", "LC_D": "ä", "LC_E": "=" * 1000}
    shown = sbx.python(ALL, env=values).json
    assert {name: shown[name] for name in values} == values


def test_large_environment(sbx):
    shown = sbx.python(ALL, "--env", "BIG_*", env={f"BIG_{n}": "x" * 10000 for n in range(60)}).json
    assert len([n for n in shown if n.startswith("BIG_")]) == 60


def test_home_and_temporary_directory_exist(sbx):
    names = ("HOME", "TMPDIR", "XDG_RUNTIME_DIR")
    code = f"import os; print([os.path.isdir(os.environ[n]) for n in {names} if n in os.environ])"
    assert "False" not in sbx.python(code, env={"TMPDIR": "/no/such"}).ok().out


@pytest.mark.parametrize("mode", ["proxy", "none", "host"])
def test_own_host_name_resolves(sbx, mode):
    """http.server, hostname -f and many others ask for it; it is nobody to allow."""
    code = "import socket; name = socket.gethostname(); print(name, socket.gethostbyname(name), socket.getfqdn())"
    result = sbx.python(code, "--network", mode)
    assert result.out == "sbx 127.0.1.1 sbx\n", result
    assert "denied" not in result.err, result


def test_hosts_file_is_the_sandbox_s_own(sbx):
    """Names of the host's are asked for by name, or the policy's names would not meet them."""
    with open("/etc/hosts", encoding="utf-8") as file:
        hosts = file.read()
    assert sbx.run("--", "cat", "/etc/hosts").ok().out.count("\n") == 3
    assert sbx.run("--network", "host", "--", "cat", "/etc/hosts").ok().out.endswith(hosts)
    assert sbx.run("--", "sh", "-c", "echo 192.0.2.1 origin.test >>/etc/hosts").code != 0
