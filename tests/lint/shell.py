"""Shell scripts are clean under shellcheck, Python ones compile."""

import subprocess

import sources


def interpreter(name):
    first = (sources.TOP / name).read_bytes()[:80].split(b"\n")[0]
    return first.decode("ascii", "replace") if first.startswith(b"#!") else ""


def shell_faults(name):
    result = subprocess.run(["shellcheck", "--format=gcc", name], cwd=sources.TOP, capture_output=True, text=True)
    return result.stdout.splitlines() + result.stderr.splitlines() if result.returncode else []


def python_faults(name):
    try:
        compile(sources.read(name), name, "exec")
    except SyntaxError as error:
        return [f"{name}:{error.lineno}: {error.msg}"]
    return []


def run(report):
    for name in sources.tracked():
        line = interpreter(name)
        if line.endswith(("bash", "/sh")):
            report.check(name, shell_faults(name))
        elif "python" in line or name.endswith(".py"):
            faults = python_faults(name)
            if line and line != "#!/usr/bin/python3":
                faults.append("the first line must be #!/usr/bin/python3")
            report.check(name, faults)
