"""The shell completions parse, and know exactly the options of `sbx run` and the commands of sbx."""

import re
import subprocess

import options
import sources

DIR = "contrib/completions"


def parse(command, name):
    result = subprocess.run([*command, name], cwd=sources.TOP, capture_output=True, text=True)
    return [] if result.returncode == 0 else [f"does not parse: {result.stdout}{result.stderr}"]


def bash_options():
    text = re.search(r"_sbx_run_options='([^']*)'", sources.read(f"{DIR}/sbx.bash")).group(1)
    return set(text.split())


def zsh_options():
    text = re.search(r"_sbx_run_options=\((.*?)\n\)", sources.read(f"{DIR}/_sbx"), re.S).group(1)
    alone = set(re.findall(r"'\*?(--?[\w-]+)\[", text))
    return alone | {name for pair in re.findall(r"\{(-\w,--[\w-]+)\}", text) for name in pair.split(",")}


def fish_options():
    text = sources.read(f"{DIR}/sbx.fish")
    lines = [line for line in text.splitlines() if '"$policy"' in line or '"$run"' in line]
    return {"--" + name for line in lines for name in re.findall(r" -l ([\w-]+)", line)} | {
        "-" + name for line in lines for name in re.findall(r" -s (\w)", line)} | {"--help"}


def command_names():
    bash = set(re.search(r"_sbx_commands='([^']*)'", sources.read(f"{DIR}/sbx.bash")).group(1).split())
    zsh = set(re.findall(r"(?m)^  '(\w+):", sources.read(f"{DIR}/_sbx")))
    fish = set(re.search(r"(?m)^set -l commands (.*)$", sources.read(f"{DIR}/sbx.fish")).group(1).split())
    return {"sbx.bash": bash, "_sbx": zsh, "sbx.fish": fish}


def completed(words):
    """What bash offers after these words."""
    script = (f"source {DIR}/sbx.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); compopt() {{ :; }}; _sbx; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    result = subprocess.run(["bash", "-c", script, "bash", *words], cwd=sources.TOP, capture_output=True, text=True)
    return set(result.stdout.split())


def run(report):
    wanted = options.helped("run") | {"--help"}
    wanted -= {"-h"}
    for name, command, found in (("sbx.bash", ["bash", "-n"], bash_options()), ("_sbx", ["zsh", "-n"], zsh_options()),
                                 ("sbx.fish", ["fish", "-n"], fish_options())):
        report.check(f"{DIR}/{name}", [*parse(command, f"{DIR}/{name}"),
                                       *options.difference(wanted, found, "is missing"),
                                       *options.difference(found, wanted, "is no option")])
    _, described = options.commands()
    for name, found in command_names().items():
        report.check(f"{DIR}/{name}", [*options.difference(described, found, "is missing"),
                                       *options.difference(found, described, "is no command")])
    for words, offered in ((["sbx", "ru"], {"run"}), (["sbx", "run", "--network", ""], {"proxy", "none", "host"}),
                           (["sbx", "run", "--dry"], {"--dry-run"}), (["sbx", "run", "--profile", "of"], {"offline"})):
        report.check(" ".join(words), [] if completed(words) == offered else [f"bash offers {completed(words)}"])
