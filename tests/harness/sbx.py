"""sbx as a user starts it: a home, a project, an environment, and the results of runs."""
import json
import os
import shutil
import subprocess

from lab import space

PYTHON = "/usr/bin/python3"
RAN = "(the-command-has-started)\n"
PATIENCE = 60  # seconds until a run counts as hung


class Result:
    """How a run ended. out and err are text; raw holds stdout's bytes."""

    def __init__(self, code, out, err, argv):
        self.code, self.raw, self.argv = code, out, argv
        self.out = out.decode("utf-8", "replace")
        self.err = err.decode("utf-8", "replace")

    def __repr__(self):
        return f"{self.argv}\n  -> {self.code}\n--- stdout\n{self.out[-4000:]}\n--- stderr\n{self.err[-4000:]}\n---"

    @property
    def messages(self):
        """The lines that sbx itself wrote, without its prefix."""
        return [line[5:] for line in self.err.splitlines() if line.startswith("sbx: ")]

    @property
    def json(self):
        assert self.code == 0, self
        return json.loads(self.out)

    def ok(self):
        assert self.code == 0, self
        return self

    def refused(self, *words):
        """125 with one line that holds each of the words, and no output of a command."""
        assert self.code == 125, self
        assert len(self.messages) == 1, self
        assert self.err.count("\n") == 1, self
        assert self.raw == b"", self
        for word in words:
            assert word in self.messages[0], (word, self)
        return self


class Project:
    """A home with a project in it, on the lab's own tmpfs. Nothing else of a test's files lies in either."""

    def __init__(self, number):
        self.base = f"{space.BASE}/home/{number}"
        self.home = f"{self.base}/user"
        self.root = f"{self.home}/src/app"
        os.makedirs(self.root)
        os.makedirs(f"{self.home}/.local/state")  # as most homes have it; sbx makes its own place below
        with open(f"{self.home}/.gitconfig", "w") as file:
            file.write("[user]\n\tname = Lab\n\temail = lab@origin.test\n[init]\n\tdefaultBranch = main\n")
        self.write("../../secret.txt", "the real home\n")

    @property
    def state(self):
        return f"{self.home}/.local/state/sbx"

    def path(self, name):
        return os.path.normpath(os.path.join(self.root, name))

    def write(self, name, text="", mode=None):
        """A file, by its name within the project; directories are made. Returns its absolute path."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb" if isinstance(text, bytes) else "w") as file:
            file.write(text)
        if mode is not None:
            os.chmod(path, mode)
        return path

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def exists(self, name):
        return os.path.lexists(self.path(name))

    def policy(self, name=".sbx.json", **keys):
        """Writes a policy file. Returns its path."""
        return self.write(name, json.dumps(keys))

    def git(self, *args, cwd=None):
        done = subprocess.run(["git", *args], cwd=cwd or self.root, check=True, capture_output=True, text=True,
                              env={"HOME": self.home, "PATH": os.environ["PATH"], "LC_ALL": "C"})
        return done.stdout

    def make_repository(self):
        """A work tree of git with one commit. It is made once and copied from then on: most tests begin with one."""
        model = f"{space.BASE}/home/model"
        if not os.path.exists(model):
            self.git("init", "-q")
            self.write("README", "a project\n")
            self.git("add", "README")
            self.git("commit", "-qm", "first")
            shutil.copytree(self.root, model, symlinks=True)
        else:
            shutil.copytree(model, self.root, symlinks=True, dirs_exist_ok=True)


class Sbx:
    """Starts the sbx under test with a controlled environment, in a project."""

    def __init__(self, program, project):
        self.program, self.project = program, project
        self.env = {
            "HOME": project.home, "USER": "lab", "LOGNAME": "lab", "SHELL": "/bin/bash", "TERM": "xterm-256color",
            "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "XDG_RUNTIME_DIR": f"{space.BASE}/run",
        }

    def environment(self, changes):
        merged = {**self.env, **(changes or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def __call__(self, *args, **options):
        """`sbx ARGS`, to its end: a Result. Options: input, cwd, env (changes; None removes), stdin, pass_fds, prefix
        (words before the program)."""
        options.setdefault("timeout", PATIENCE)
        data = options.pop("input", None)
        timeout = options.pop("timeout")
        if data is not None:
            options["stdin"] = subprocess.PIPE
        process = self.start(*args, **options)
        try:
            out, err = process.communicate(data, timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"hung: {Result('hung', out, err, process.args)}") from None
        return Result(process.returncode, out, err, process.args)

    def start(self, *args, **options):
        """`sbx ARGS` as a Popen with stdout and stderr piped."""
        prefix = options.pop("prefix", [])
        options["env"] = self.environment(options.get("env"))
        for name, value in (("stdin", subprocess.DEVNULL), ("stdout", subprocess.PIPE), ("stderr", subprocess.PIPE),
                            ("cwd", self.project.root)):
            options.setdefault(name, value)
        return subprocess.Popen([*prefix, self.program, *args], **options)

    def run(self, *args, **options):
        return self("run", *args, **options)

    def checked(self, words, options, more):
        """Runs words and makes sure that they were run: else what must not happen would not happen either."""
        may_refuse = more.pop("may_refuse", False)
        result = self.run(*options, "--", *words, **more)
        ran = result.err.startswith(RAN) or f"\n{RAN}" in result.err
        assert ran or (may_refuse and result.code == 125), result
        result.err = result.err.replace(RAN, "", 1)
        return result

    def python(self, code, *options, arguments=(), **more):
        """Runs Python code with `sbx run OPTIONS -- python3 -c CODE ARGUMENTS`. It has run, unless may_refuse."""
        code = f"import sys; sys.stderr.write({RAN!r}); sys.stderr.flush()\n" + code
        return self.checked([PYTHON, "-I", "-c", code, *arguments], options, more)

    def shell(self, script, *options, **more):
        """Runs `sbx run OPTIONS -- sh -c SCRIPT`. It has run, unless may_refuse."""
        return self.checked(["/bin/sh", "-c", f"echo '{RAN.strip()}' >&2\n" + script], options, more)
