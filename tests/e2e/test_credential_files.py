"""Files of credentials: inside there is a copy with the placeholder in place of the value, in each form that such files
have it in; the real one is seen by nobody (P3)."""
import base64
import json
import os
import re
import urllib.parse

import pytest

from harness import procs
from harness.sbx import PYTHON, Result
from harness.secrets import no_secret, saw
from lab.guarded import OTHER_SECRET, SECRET

AWS = "wJalr+XUtn/FEMIK7MDENG=bPxRfiCYEXAMPLEKEY"
SHOW = f"{PYTHON} -I -c \"import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())\" FILE; echo; echo $LAB_KEY >&2"


def encoded(text):
    return base64.b64encode(text.encode()).decode()


def quoted(text):
    return urllib.parse.quote(text, safe="")


# The file, the value, and what stands in it: what is right inside is the same with the placeholder as the value.
SHAPES = {
    "alone": (".tracker-token", SECRET, lambda v: f"{v}\n"),
    "npm": (".npmrc", SECRET, lambda v: f"//registry.test/:_authToken={v}\nregistry=https://registry.test/\n"),
    "npm, Basic": (".npmrc", SECRET, lambda v: f"//registry.test/:_auth={encoded('me:' + v)}\n"),
    "npm, password": (".npmrc", SECRET, lambda v: f"//registry.test/:_password={encoded(v)}\n"),
    "gh": (".config/gh/hosts.yml", SECRET,
           lambda v: f"github.com:\n    oauth_token: {v}\n    users:\n        me:\n            oauth_token: {v}\n"),
    "netrc": (".netrc", SECRET, lambda v: f"machine key.svc.test\nlogin me password {v}\n"),
    "docker": (".docker/config.json", SECRET, lambda v: json.dumps({"auths": {"a.test": {"auth": encoded("user:" + v)},
                                                                             "b.test": {"auth": encoded("me:" + v)}}})),
    "aws": (".aws/credentials", AWS,
            lambda v: f"[default]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = {v}\n"),
    "git": (".git-credentials", AWS, lambda v: f"https://me:{quoted(v)}@key.svc.test\n"),
    "JSON": (".config/tool.json", AWS, lambda v: '{"key": "' + v.replace("/", "\\/") + '"}'),
}


def entry(value="LAB_KEY", **more):
    return {"source": {"env": value}, "env": "LAB_KEY", "bind": ["key.svc.test"], **more}


def policy_of(project, **credentials):
    return project.policy("../files.json", credentials=credentials)


def put(project, name, text, mode=0o600):
    return project.write(f"../../{name}", text, mode)


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(sbx, project, name):
    file, value, text = SHAPES[name]
    path = put(project, file, text(value))
    result = sbx.shell(SHOW.replace("FILE", path), "--policy", policy_of(project, lab=entry(file=f"~/{file}")),
                       env={"LAB_KEY": value})
    placeholder = result.ok().err.strip()
    assert placeholder.startswith("sbx_") and result.messages == [], result
    expected = text(placeholder)
    assert result.out == expected + "\n", result
    with open(path) as kept:
        assert kept.read() == text(value)


def test_used(sbx, lab, guarded, project):
    """Programs find their login in it, and the service sees the value."""
    put(project, ".netrc", f"machine key.svc.test login me password {SECRET}\n")
    put(project, ".git-credentials", f"https://x-access-token:{SECRET}@github.com\n")
    policy = policy_of(project, lab=entry(file="~/.netrc"),
                       github={"source": {"env": "GH_TOKEN"}, "file": ["~/.git-credentials"], "env": []})
    script = ("curl -sS --netrc https://key.svc.test/check && "
              "git -c credential.helper=store clone -q https://github.com/lab/repo.git clone && cat ~/.netrc ~/.git-credentials")
    result = sbx.shell(script, "--policy", policy, env={"LAB_KEY": SECRET, "GH_TOKEN": SECRET})
    assert result.ok().out.startswith("hello, lab\n") and "ghp_" in result.out, result
    assert saw(lab, "key.svc.test", "github.com")
    no_secret(result.out, result.err)


def test_two_in_one_file(sbx, project):
    """Each value is replaced by its own placeholder, also that of a credential that does not name the file."""
    path = put(project, ".npmrc", f"//a.test/:_authToken={SECRET}\n//b.test/:_authToken={OTHER_SECRET}\n"
                                  f"//c.test/:_auth={encoded(SECRET + ':' + OTHER_SECRET)}\n")
    for second in ({"file": "~/.npmrc"}, {}):
        policy = policy_of(project, one=entry("ONE", env="ONE", file="~/.npmrc"), two=entry("TWO", env="TWO", **second))
        result = sbx.shell(f"cat {path}; echo $ONE $TWO", "--policy", policy, env={"ONE": SECRET, "TWO": OTHER_SECRET})
        *lines, last = result.ok().out.splitlines()
        one, two = last.split()
        assert lines == [f"//a.test/:_authToken={one}", f"//b.test/:_authToken={two}",
                         f"//c.test/:_auth={encoded(one + ':' + two)}"], result
        no_secret(result.out, result.err)


VIEWS = {"private": [], "empty": [("home", "tmpfs")], "of the host": [("home", "host")], "read": [("read", ["~"])]}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("link", [False, True])
def test_the_real_one_is_nowhere(sbx, project, view, link):
    """Whatever else shows the home: the name shows the copy, and no other name the file; nothing of it is written."""
    text = f"machine a.test password {SECRET}\n"
    real = put(project, "dotfiles/netrc" if link else ".aws/netrc", text)
    name = f"{project.home}/.netrc" if link else real
    if link:
        os.symlink(real, name)
    policy = project.policy("../files.json", credentials={"lab": entry(file=name.replace(project.home, "~"))},
                            filesystem=dict(VIEWS[view]))
    script = (f"cat {name}; cat {real}; grep -rs {SECRET[:20]} ~ /proc/self/environ; for file in {name} {real}; do "
              "echo x >>$file; rm -f $file; mv $file $file.x; done; find ~ -name '*.x'; echo end")
    if link and view in ("of the host", "read"): # the link can be replaced by a file, and what it leads to by another
        result = sbx.shell(script, "--policy", policy, env={"LAB_KEY": SECRET}, may_refuse=True)
        assert result.code == 125 and "would be seen inside as soon as" in result.err, result
        return
    result = sbx.shell(script, "--policy", policy, env={"LAB_KEY": SECRET})
    no_secret(result.out, result.err)
    assert "machine a.test password sbx_" in result.ok().out and result.out.endswith("\nend\n"), result
    with open(real) as file:
        assert file.read() == text
    assert os.path.islink(name) == link
    inside = sbx.shell(f"ls -A ~ ~/.aws; cat {name}", "--policy", project.policy("../none.json")).out
    assert ".netrc" not in inside and "machine" not in inside, inside


@pytest.mark.parametrize("view", VIEWS)
def test_changed_meanwhile(sbx, project, view):
    """What is inside stays as it was, also where the host's home is seen; and it is not told that it changed where the
    sandbox has a home of its own."""
    path = put(project, ".aws/credentials", f"_authToken={SECRET}\n")
    script = f"cat {path}; touch began; while ! [ -e changed ]; do sleep 0.05; done; cat {path}; grep -rs {OTHER_SECRET} ~"
    policy = project.policy("../files.json", credentials={"lab": entry(file="~/.aws/credentials")},
                            filesystem=dict(VIEWS[view]))
    process = sbx.start("run", "--policy", policy, "--", "sh", "-c", script, env={"LAB_KEY": SECRET})
    procs.wait_until(lambda: project.exists("began"), "the command")
    with open(path + ".new", "w") as file:
        file.write(f"_authToken={OTHER_SECRET}\n")
    os.rename(path + ".new", path)
    project.write("changed")
    out, err = process.communicate()
    result = Result(process.returncode, out, err, process.args)
    lines = result.out.splitlines()
    assert len(lines) == 2 and lines[0] == lines[1] and "sbx_" in lines[0], result
    assert result.messages == [] or view in ("of the host", "read"), result


@pytest.mark.parametrize("view", [("home", "host"), ("read", ["~"]), ("read", ["~/.cfg"])])
def test_what_a_rename_would_uncover(sbx, project, view):
    """A mount on the file is gone when the host saves it anew."""
    put(project, ".cfg/rc", SECRET)
    policy = project.policy("../files.json", credentials={"lab": entry(file="~/.cfg/rc")}, filesystem=dict([view]))
    result = sbx.shell("touch ran", "--policy", policy, env={"LAB_KEY": SECRET}, may_refuse=True)
    assert result.code == 125 and len(result.messages) == 1 and not project.exists("ran"), result
    assert re.search(r"credentials\.lab: file: \S+/rc would be seen inside as soon as .* \(filesystem\.hide\)", result.err), result


def test_value_of_a_program(sbx, project):
    """It is asked for at the start, and once only."""
    count = f"{project.home}/count"
    program = project.write("../../tool", f"#!/bin/sh\necho x >>{count}\necho {SECRET}\n", 0o755)
    path = put(project, ".npmrc", f"_authToken={SECRET}\n")
    policy = policy_of(project, lab=entry(file="~/.npmrc", source={"exec": [program]}))
    script = f"cat {path}; curl -sS -H 'Authorization: Bearer '$LAB_KEY https://key.svc.test/check"
    result = sbx.shell(script, "--policy", policy)
    assert result.ok().out.startswith("_authToken=sbx_"), result
    no_secret(result.out, result.err)
    with open(count) as file:
        assert file.read() == "x\n"


REFUSED = {
    "not there": (lambda p: None, {}, r"file: ~/\.npmrc: does not exist; create it"),
    "a directory": (lambda p: os.mkdir(p), {}, "is not a regular file"),
    "a pipe": (lambda p: os.mkfifo(p), {}, "is not a regular file"),
    "too large": (lambda p: put_text(p, SECRET + "x" * 262144), {}, "is larger than 262144 bytes"),
    "without the value": (lambda p: put_text(p, "_authToken=another-value\n"), {},
                          "the value of the source does not stand in it"),
    "in lines": (lambda p: put_text(p, f"{encoded('me:' + SECRET)[:21]}\n{encoded('me:' + SECRET)[21:]}\n{SECRET}\n"), {},
                 "in a form that cannot be replaced"),
    "without a value": (lambda p: put_text(p, SECRET), {"source": {"env": "UNSET"}},
                        "the value is needed at the start, and there is none: the variable UNSET is not set"),
    "a program that fails": (lambda p: put_text(p, SECRET), {"source": {"exec": ["false"]}},
                             "the value is needed at the start, and there is none: the program false: ended with status 1"),
    "too short": (lambda p: put_text(p, SECRET), {"source": {"env": "SHORT"}}, "less than 8 bytes"),
}


def put_text(path, text):
    with open(path, "w") as file:
        file.write(text)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(sbx, project, name):
    """One line that names the place and the mend, and the command does not run."""
    make, more, words = REFUSED[name]
    make(f"{project.home}/.npmrc")
    result = sbx.shell("touch ran", "--policy", policy_of(project, lab=entry(file="~/.npmrc", **more)),
                       env={"LAB_KEY": SECRET, "SHORT": "abc"}, may_refuse=True)
    assert result.code == 125 and len(result.messages) == 1, result
    assert re.search(r"files\.json:\d+: credentials\.lab: file: ~/\.npmrc: .*", result.messages[0]), result
    assert re.search(words, result.messages[0]) and not os.path.exists(f"{project.root}/ran"), result
    no_secret(result.out, result.err)


@pytest.mark.user
def test_unreadable(sbx, project):
    put(project, ".npmrc", SECRET, 0)
    result = sbx.shell("touch ran", "--policy", policy_of(project, lab=entry(file="~/.npmrc")), env={"LAB_KEY": SECRET},
                       may_refuse=True)
    assert result.code == 125 and "cannot be read: Permission denied" in result.err, result


@pytest.mark.parametrize("place", ["workspace", "link out of it", "write", "link to a written place"])
def test_where_the_command_may_write(sbx, project, place):
    """It could make it another file, and a file of the workspace is to be seen there anyway."""
    put(project, "out/x", SECRET)
    project.write(".npmrc", SECRET)
    os.symlink(f"{project.home}/out/x", f"{project.root}/link")
    os.symlink(f"{project.home}/out/x", f"{project.home}/link")
    file = {"workspace": f"{project.root}/.npmrc", "link out of it": f"{project.root}/link", "write": "~/out/x",
            "link to a written place": "~/link"}[place]
    policy = project.policy("../files.json", credentials={"lab": entry(file=file)}, filesystem={"write": ["~/out"]})
    result = sbx.shell("touch ran", "--policy", policy, env={"LAB_KEY": SECRET}, may_refuse=True)
    assert result.code == 125 and "lies where the command may write" in result.err, result


def test_never_from_the_workspace(sbx, project):
    """KEY_NEVER: a repository cannot have a file of the home shown, not even with a placeholder."""
    path = put(project, ".npmrc", SECRET)
    project.write(".sbx.json", json.dumps({"credentials": {"lab": entry(file="~/.npmrc")}}))
    for trust in (False, True):
        if trust:
            sbx("trust").ok()
        result = sbx.shell(f"cat {path}", env={"LAB_KEY": SECRET})
        assert result.code != 0 and "No such file" in result.err, result


def test_another_value_that_is_not_there(sbx, project):
    """It is said that nobody looked for it."""
    path = put(project, ".npmrc", SECRET)
    policy = policy_of(project, lab=entry(file="~/.npmrc"), other=entry("UNSET", env="OTHER"))
    result = sbx.shell(f"cat {path}", "--policy", policy, env={"LAB_KEY": SECRET})
    assert result.ok().out.startswith("sbx_") and len(result.messages) == 1, result
    assert "credential other: its value could not be had, so it was not looked for in" in result.messages[0], result


def test_told(sbx, project):
    """`credential list`, `why` and `show --plan` name it, and ask no source."""
    path = put(project, ".npmrc", SECRET)
    policy = policy_of(project, lab=entry(file="~/.npmrc", source={"exec": ["false"]}))
    assert "a placeholder in LAB_KEY, ~/.npmrc" in sbx("credential", "--policy", policy, "list").ok().out
    assert re.search(rf"cover +{path} .*a copy with placeholders", sbx("show", "--policy", policy, "--plan").ok().out)
    why = sbx("why", "--policy", policy, path)
    assert "read-only: a copy with placeholders" in why.out, why
