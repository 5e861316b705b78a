"""The database (NSS) in which Chromium and its like look for who to trust: it has the run's CA, where a browser can be seen
inside and certutil(1) is there to make it. NSS's own tools stand in for browsers; a real one is too large."""
import os

import pytest

from harness.secrets import saw
from lab.guarded import SECRET

DATABASE = ".pki/nssdb"
FILES = ["cert9.db", "key4.db", "pkcs11.txt"]
LIST = f"/usr/bin/certutil -L -d sql:$HOME/{DATABASE}"
CONNECT = f"vfyserv -d sql:$HOME/{DATABASE} -p 443 HOST </dev/null 2>&1"
FAILED = "browsers inside will not trust the connections that are terminated"


def without_browsers(project, *programs):
    """A directory of the host that is all of PATH: the machine may have a browser in the usual ones."""
    directory = os.path.dirname(project.write("../../few/here"))
    for name in programs:
        if not os.path.lexists(f"{directory}/{name}"):
            os.symlink(f"/usr/bin/{name}", f"{directory}/{name}")
    return directory


@pytest.fixture
def start(sbx, project, guarded):
    """Runs a script in a sandbox where TLS to origin.test is terminated. browser: a name in a directory of PATH that the
    sandbox shows, or None. certutil: the text of one that comes first on the host, and that the sandbox does not show."""
    def run(script, *options, browser="chromium", certutil=None, mode=0o755, tools="../../tools", **keys):
        path = [sbx.env["PATH"]]
        if browser:
            path.insert(0, os.path.dirname(project.write(f"bin/{browser}", "#!/bin/sh\n", 0o755)))
        else:
            path = [without_browsers(project, "certutil")]
        if certutil is not None:
            path.insert(0, os.path.dirname(project.write(f"{tools}/certutil", certutil, mode)))
        keys.setdefault("credentials", {"lab": {"source": {"env": "LAB_KEY"}, "inject": "attach", "place": {"header": "X-Own"},
                                                "bind": ["origin.test"]}})
        return sbx.shell(script, "--policy", project.policy("../bound.json", **keys), "--allow", "untrusted.test", *options,
                         env={"LAB_KEY": SECRET, "PATH": ":".join(path)})
    return run


def test_trusted(start, lab):
    """NSS believes what the proxy shows for bound hosts, and not what others show; programs may write to the database."""
    bound, other = (CONNECT.replace("HOST", host) for host in ("origin.test", "untrusted.test"))
    result = start(f"ls -A ~/{DATABASE}; stat -c %a ~/{DATABASE} ~/{DATABASE}/*; echo END; {bound}; echo END; {other}; echo END; "
                   f"{LIST}; /usr/bin/certutil -D -d sql:$HOME/{DATABASE} -n sbx && {LIST}")
    files, believed, refused, listed = result.ok().out.split("END\n")
    assert files.split() == [*FILES, "700", "600", "600", "600"] and listed.count("C,,") == 1, result
    assert "SERVER CONFIGURED CORRECTLY" in believed and "CN=sbx run " in believed and len(saw(lab, "origin.test")) == 1, result
    assert "issuer is not recognized" in refused and "CORRECTLY" not in refused and result.messages == [], result


@pytest.mark.parametrize("browser", ["google-chrome-stable", "microsoft-edge", "brave-browser", "vivaldi"])
def test_browsers(start, browser):
    assert "C,," in start(LIST, browser=browser).ok().out


@pytest.mark.parametrize("name", ["ms-playwright", "puppeteer"])
def test_browser_of_a_test_tool(start, sbx, project, name):
    """It lies in the home that the sandbox has, whatever is in the caller's."""
    project.write(f"../../.cache/{name}/chrome")
    assert start("test -e ~/.pki", browser=None).code == 1
    sbx.run("--", "mkdir", "-p", f"{project.home}/.cache/{name}").ok()
    assert "C,," in start(LIST, browser=None).ok().out


WITHOUT = {
    "no browser": {"browser": None},
    "nothing terminated": {"credentials": {}},
    "home of the host": {"filesystem": {"home": "host"}},
}


@pytest.mark.parametrize("name", WITHOUT)
def test_not_wanted(start, project, name):
    """certutil is not even started."""
    result = start("test -e ~/.pki", certutil=f"#!/bin/sh\n: >{project.home}/started\n", **WITHOUT[name])
    assert result.code == 1 and "certutil" not in result.err and not project.exists("../../started"), result


def test_empty_home(start):
    assert "C,," in start(LIST, filesystem={"home": "tmpfs"}).ok().out


def test_database_of_the_user(start, project):
    """What the policy shows stays as it is."""
    project.write(f"../../{DATABASE}/cert9.db", "mine")
    assert start(f"cat ~/{DATABASE}/*", filesystem={"read": ["~/.pki"]}).ok().out == "mine"


PLANTED = {
    "directory above": "ln -s TARGET ~/.pki",
    "directory": "mkdir ~/.pki; ln -s TARGET ~/.pki/nssdb",
    "files": f"mkdir -p ~/.pki/nssdb; for file in {' '.join(FILES)}; do ln -s TARGET/$file ~/.pki/nssdb/$file; done",
    "file": "echo x >~/.pki",
    "other modules": "mkdir -p ~/.pki/nssdb; printf 'library=/evil.so\\nname=evil\\n' >~/.pki/nssdb/pkcs11.txt",
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted(start, sbx, project, name):
    """What an earlier command has left in the home leads nowhere, neither outside nor to another database."""
    target = os.path.dirname(project.write("../../victim/cert9.db", "mine"))
    sbx.run("--", "sh", "-c", PLANTED[name].replace("TARGET", target)).ok()
    result = start(f"{LIST}; cat ~/{DATABASE}/pkcs11.txt; ls -ld ~/.pki")
    assert "C,," in result.ok().out and "evil" not in result.out and "\nd" in result.out, result
    assert os.listdir(target) == ["cert9.db"] and project.read("../../victim/cert9.db") == "mine"


FAULTS = {
    "fails": ("#!/bin/sh\necho no such thing >&2; exit 3\n", "ended with status 3: no such thing"),
    "fails after the certificate": ("#!/bin/sh\ncat >/dev/null; echo x >${8#sql:}/cert9.db; exit 1\n", "ended with status 1"),
    "is killed": ("#!/bin/sh\nkill -9 $$\n", "was killed by signal 9"),
    "makes nothing": ("#!/bin/sh\ncat >/dev/null\n", "cert9.db"),
    "makes too much": ("#!/bin/sh\ncat >/dev/null; head -c 2000000 /dev/zero >${8#sql:}/cert9.db\n", "cert9.db"),
    "is no program": ("\x7fELF", "Exec format error"),
    "hangs": ("#!/bin/sh\ncat >/dev/null; echo x >${8#sql:}/cert9.db-journal; sleep 600 & exec sleep 600\n",
              "did not end within 3 s"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(start, lab, name):
    """One line tells, and the command runs; the browser finds a database that has nothing in it."""
    text, words = FAULTS[name]
    result = start(f"stat -c %s ~/{DATABASE}/*; {LIST}; curl -sS https://origin.test/", certutil=text)
    assert len([line for line in result.messages if words in line and FAILED in line]) == len(result.messages) == 1, result
    assert result.ok().out.startswith("0\n0\n0\n") and "C,," not in result.out and "lab page" in result.out, result
    assert saw(lab, "origin.test")


def test_not_executable(start):
    """It is passed by as any shell would, for the next one in PATH."""
    assert "C,," in start(LIST, certutil="#!/bin/sh\nexit 1\n", mode=0o644).ok().out


def test_writable_inside(start, project):
    """One that the command could have written is passed by as well."""
    evil = f"#!/bin/sh\n: >{project.home}/started\nexit 1\n"
    assert "C,," in start(LIST, certutil=evil, tools="tools").ok().out and not project.exists("../../started")


def test_absent(sbx, project, guarded):
    """Without certutil there is no database, and no word about it."""
    project.write("bin/chromium", "#!/bin/sh\n", 0o755)
    policy = project.policy("../bound.json", credentials={"lab": {"source": {"env": "LAB_KEY"}, "bind": ["origin.test"],
                                                                  "env": "LAB_KEY"}})
    result = sbx.shell("test -e ~/.pki", "--policy", policy, env={"LAB_KEY": SECRET,
                       "PATH": f"{project.root}/bin:{without_browsers(project)}"})
    assert result.code == 1 and result.messages == [], result


def test_what_certutil_gets(start, project):
    """A directory that nobody else can enter, no terminal, no variables of the caller's."""
    result = start("true", certutil=f"#!/bin/sh\n(stat -c '%a %n' ${{8#sql:}}; env; cat) >{project.home}/seen 2>&1; exit 1\n")
    assert FAILED in result.err, result
    seen = project.read("../../seen")
    mode, directory = seen.split("\n")[0].split()
    assert mode == "700" and directory.startswith("/dev/shm/") and "BEGIN CERTIFICATE" in seen and SECRET not in seen
    assert "LAB_KEY" not in seen and not os.path.exists(directory)
