"""Coding agents as their packages have them: Claude Code and Codex, each with a login that it never sees, against a lab that
speaks as much of the services as they need (lab/agents.py). Each answers a prompt, after it has run a command in the
workspace. See README, "Claude Code and Codex".

run-suite fetches the packages; where there is no way to the npm registry it says so, and all of this is left out.
"""
import json
import os

import pytest

from harness import procs
from harness.sbx import PATIENCE, Result
from harness.secrets import memory_of, no_secret, processes_inside, saw
from lab import space
from lab.agents import ANSWER
from lab.guarded import SECRET

pytestmark = pytest.mark.agents

AGENTS = f"{space.BASE}/agents"
BIN = f"{AGENTS}/node_modules/.bin"
WITHOUT_PROXY = "unset $(env | sed -n 's/=.*//p' | grep -iE '_proxy$') NODE_USE_ENV_PROXY\n"
LOGIN = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_API_KEY": SECRET, "CLAUDE_CODE_OAUTH_TOKEN": SECRET}

# While its command waits, an agent stands there with its login in its memory.
WAITS = "touch waits; while ! [ -e go ]; do sleep 0.05; done; "
MADE = "echo made by an agent > made.txt; echo it is $((40 + 2))"
PROMPT = f"Please do <<{MADE}>>"
CODEX = ["codex", "exec", "--sandbox", "danger-full-access"]


def start(sbx, words, *options, how="proxy", look=None):
    """The Result of a run. look is called with the pids of the processes inside, while the agent's command waits."""
    script = f'PATH={BIN}:$PATH\n{WITHOUT_PROXY if how == "bare" else ""}exec "$@"'
    process = sbx.start("run", "--read", AGENTS, *options, "--", "sh", "-c", script, "sh", *words, env=LOGIN)
    try:
        if look:
            procs.wait_until(lambda: sbx.project.exists("waits") or process.poll() is not None, "the agent's command")
            look(processes_inside(process.pid))
            sbx.project.write("go")
    except BaseException:
        process.kill()
        raise
    finally:
        out, err = process.communicate(timeout=PATIENCE)
    return Result(process.returncode, out, err, process.args)


def looked_at(pids):
    """How many of the processes have a placeholder in their memory or environment, and none the secret. An agent may forbid
    that other programs of its user look at it; root still can."""
    having = 0
    for pid in pids:
        try:
            pieces = [*memory_of(pid), open(f"/proc/{pid}/environ", "rb").read()]
        except PermissionError:
            assert os.geteuid() != 0
            continue
        except (FileNotFoundError, ProcessLookupError):
            continue  # a sleep of the command, which has ended
        no_secret(*pieces)
        having += any(b"sk-" in piece for piece in pieces)
    return having


def written(project):
    """The bytes of each file that the run has left, in the workspace and in the private home."""
    for where in (project.root, f"{project.state}/home"):
        for top, _, names in os.walk(where):
            for path in (os.path.join(top, name) for name in names):
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as file:
                        yield path, file.read()


def worked(result, lab, guarded, project, host, *others):
    """The answer is there, and the file; only the host saw the secret, which is nowhere else, and the others were asked."""
    assert f"{ANSWER} " in result.ok().out and "it is 42" in result.out, result
    assert project.read("made.txt") == "made by an agent\n"
    assert saw(lab, host) and {r.sni for r in lab.requests} == {host, *others}
    files = dict(written(project))
    no_secret(result.out, result.err, *files.values(), *map(json.dumps, guarded.agents.messages))
    return files


def asked_for(lab, path):
    """The requests for the model, each of which had the secret."""
    found = [r for r in lab.requests if r.target.partition("?")[0] == path]
    assert all(r in saw(lab, r.sni) for r in found)
    return found


def test_claude(sbx, lab, guarded, project):
    """As root it does without questions what it is asked for only where it knows that it is in a sandbox."""
    project.write("../../.claude/CLAUDE.md", "Be as the lab is.\n")
    words, having = ["claude", "-p", f"Please do <<{WAITS}{MADE}>>", "--dangerously-skip-permissions"], []
    result = start(sbx, words, "--profile", "claude", "--credential", "anthropic", "--read",
                   f"{project.home}/.claude/CLAUDE.md", look=lambda pids: having.append(looked_at(pids)))
    files = worked(result, lab, guarded, project, "api.anthropic.com")
    first, second = asked_for(lab, "/v1/messages")
    assert b"Be as the lab is." in first.body
    assert b"it is 42" not in first.body and b"it is 42" in second.body
    assert having[0] >= 2 and any("/.claude/" in path for path in files)  # the agent, and its command


def test_claude_with_a_subscription(sbx, lab, guarded, project):
    """The token that `claude setup-token` makes, by the policy that stands in the README; and without a proxy's variables."""
    policy = project.policy("../claude.json", credentials={
        "claude": {"source": {"env": "CLAUDE_CODE_OAUTH_TOKEN"}, "env": "CLAUDE_CODE_OAUTH_TOKEN",
                   "bind": ["api.anthropic.com"]}})
    result = start(sbx, ["claude", "-p", PROMPT, "--allowedTools", "Bash"], "--policy", policy, how="bare")
    worked(result, lab, guarded, project, "api.anthropic.com")
    requests = asked_for(lab, "/v1/messages")
    assert len(requests) == 2 and all(r.get("authorization") == f"Bearer {SECRET}" for r in requests)


@pytest.mark.parametrize("over, how", [("websocket", "proxy"), ("events", "bare")])
def test_codex(sbx, lab, guarded, project, how, over):
    """It asks for a WebSocket first, and goes on with POST where it is told that there is none. Whatever else it asks for
    is refused and told, and it works all the same."""
    guarded.agents.offer_websocket(over == "websocket")
    words, having = [*CODEX, f"Please do <<{WAITS}{MADE}>>"], []
    result = start(sbx, words, "--credential", "openai", how=how, look=lambda pids: having.append(looked_at(pids)))
    files = worked(result, lab, guarded, project, "api.openai.com")
    kinds = [r.method for r in asked_for(lab, "/v1/responses")]
    assert kinds == (["GET"] if over == "websocket" else ["GET", "POST", "POST"])
    assert len(guarded.agents.messages) == (3 if over == "websocket" else 0)  # the first only prepares
    assert any("/.codex/" in path for path in files)
    assert having[0] >= (2 if os.geteuid() == 0 else 1)
    assert any("chatgpt.com" in line and "--allow chatgpt.com" in line for line in result.messages), result


def test_codex_login_stays(sbx, lab, guarded, project):
    """What it writes down of a login is the placeholder, which is the same in the project's next run."""
    guarded.agents.offer_websocket(False)
    script = "printenv OPENAI_API_KEY | codex login --with-api-key"
    login = start(sbx, ["sh", "-c", script], "--credential", "openai").ok()
    result = start(sbx, ["env", "-u", "OPENAI_API_KEY", "-u", "CODEX_API_KEY", *CODEX, PROMPT], "--profile", "codex",
                   "--credential", "openai")
    files = worked(result, lab, guarded, project, "api.openai.com", "chatgpt.com")
    assert [r.method for r in asked_for(lab, "/v1/responses")] == ["GET", "POST", "POST"]
    auth, = (data for path, data in files.items() if path.endswith("/.codex/auth.json"))
    assert json.loads(auth)["OPENAI_API_KEY"].startswith("sk-")
    no_secret(login.out, login.err)


def test_codex_in_a_sandbox_of_its_own(sbx, lab, guarded, project):
    """Its own cannot be made inside: its commands fail, say why, and have done nothing."""
    result = start(sbx, ["codex", "exec", PROMPT], "--profile", "codex", "--credential", "openai")
    assert ANSWER in result.ok().out and "bwrap: " in result.out and "it is 42" not in result.out, result
    assert not project.exists("made.txt")
