"""P5: runs that share a directory, a home and a state directory, and nothing else."""
import json
import os
import signal
import subprocess

import pytest

from harness.sbx import PYTHON, Sbx

# Says that it runs, waits for a line, and shows what it is kept from, and what it has.
WAITS = "echo ready; read line; cat hidden/file; ls hidden && echo opened; echo x > .envrc; cat ~/.cache/mine /tmp/mine"
HOSTS = ["origin.test", "other.test", "one.wild.test", "two.wild.test"]
FETCH = """
import sys, urllib.request, urllib.error
print("ready", flush=True); sys.stdin.readline()
def get(host):
    try: return urllib.request.urlopen(f"http://{host}/", timeout=60).status
    except urllib.error.HTTPError as error: return error.code
print(*[get(host) for host in sys.argv[1:]])
"""


def wait_ready(process):
    assert process.stdout.readline() == b"ready\n", process.stderr.read()
    return process


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_end_of_one_run_takes_nothing_from_the_other(sbx, project, end):
    """F21: masks, protection, the home that both have, and what is each one's own."""
    project.write("hidden/file", "hunter2")
    project.write(".envrc", "original")
    script = f"mkdir -p ~/.cache; echo kept | tee ~/.cache/mine > /tmp/mine; {WAITS}"
    first = wait_ready(sbx.start("run", "--hide", "hidden", "--", "sh", "-c", script, stdin=subprocess.PIPE))
    other = wait_ready(sbx.start("run", "--hide", "hidden", "--", "sh", "-c", "echo ready; exec sleep 1000"))
    other.send_signal(end)
    other.communicate(timeout=60)
    sbx.run("--hide", "hidden", "--", "true").ok()
    out, err = first.communicate(b"\n", timeout=60)
    assert out == b"kept\nkept\n", (out, err)
    assert project.read(".envrc") == "original"


def test_each_run_has_the_network_of_its_own_policy(sbx):
    """Runs with different rules at the same time, in the same directory: no verdict and no listener is another's."""
    runs = [sbx.start("run", "--allow", host, "--", PYTHON, "-I", "-c", FETCH, *HOSTS, stdin=subprocess.PIPE)
            for host in HOSTS]
    for process in runs:
        wait_ready(process)
    for process in runs:
        process.stdin.write(b"\n")
        process.stdin.flush()
    for host, process in zip(HOSTS, runs):
        out, err = process.communicate(timeout=120)
        assert out.split() == [b"200" if h == host else b"403" for h in HOSTS], (host, out, err)
        assert err.count(b"denied 1x") == len(HOSTS) - 1 and b"denied 1x " + host.encode() not in err, err


def test_audit_tells_the_runs_apart(sbx, project):
    """One file, lines whole, each with its run; and what was there before stays."""
    for host in ("before-one.test", "before-two.test"):
        sbx.run("--", "curl", "-s", f"http://{host}/").ok()
    runs = [sbx.start("run", "--", PYTHON, "-I", "-c", FETCH, *[f"{name}{n}.test" for n in range(20)],
                      stdin=subprocess.PIPE) for name in ("a", "b", "c")]
    for process in runs:
        wait_ready(process)
    for process in runs:
        process.communicate(b"\n", timeout=120)
    with open(project.state + "/audit.jsonl") as file:
        lines = [json.loads(line) for line in file]
    hosts = {}
    for line in lines:
        hosts.setdefault(line["run"], set()).add(line["host"])
    assert sorted(hosts.values(), key=sorted) == sorted(
        [{f"{name}{n}.test" for n in range(20)} for name in ("a", "b", "c")] + [{"before-one.test"}, {"before-two.test"}],
        key=sorted)
    run = next(name for name, names in hosts.items() if "a7.test" in names)
    shown = sbx("log", "--json", run).ok().out
    assert {json.loads(line)["host"] for line in shown.splitlines()} == hosts[run]


def test_projects_of_one_name_have_homes_of_their_own(sbx, project, program):
    """The home is kept by the project's path, not by what its last part happens to be."""
    for name in ("one/app", "two/app"):
        project.write(f"../../{name}/file")
        Sbx(program, project).shell(f"echo {name} >> ~/mine; cat ~/mine", cwd=f"{project.home}/{name}").ok()
    for name in ("one/app", "two/app"):
        result = Sbx(program, project).shell("cat ~/mine", cwd=f"{project.home}/{name}").ok()
        assert result.out == f"{name}\n", result
    assert not os.path.exists(f"{project.home}/mine")
