"""The shell completions parse, and know exactly the commands of sbx and the options of each."""

import re
import subprocess

import options
import sources

DIR = "contrib/completions"


def parse(command, name):
    result = subprocess.run([*command, name], cwd=sources.TOP, capture_output=True, text=True)
    return [] if result.returncode == 0 else [f"does not parse: {result.stdout}{result.stderr}"]


def bash_options(command):
    """What bash offers after `sbx COMMAND -`."""
    return completed(["sbx", command, "-"])


def zsh_array(name):
    text = re.search(rf"(?s)\n{name}=\((.*?)\n\)", sources.read(f"{DIR}/_sbx")).group(1)
    return zsh_expand(text)


def zsh_expand(text):
    return re.sub(r"\$(_sbx_\w+_options)", lambda match: zsh_array(match.group(1)), text)


def zsh_options(command):
    """What _arguments gets for the command."""
    cases = re.findall(r"(?s)\n    (\w+(?: \| \w+)*)\)(.*?);;", sources.read(f"{DIR}/_sbx"))
    text = next(body for names, body in cases if command in names.split(" | "))
    text = zsh_expand(text)
    alone = set(re.findall(r"'\*?(--?[\w-]+)\[", text))
    return alone | {name for pair in re.findall(r"\{(-\w,--[\w-]+)\}", text) for name in pair.split(",")}


def fish_options(command):
    """What fish offers after `sbx COMMAND -` and `--`."""
    found = set()
    for begun in ("-", "--"):
        script = f"source {DIR}/sbx.fish; complete -C 'sbx {command} {begun}'"
        result = subprocess.run(["fish", "-N", "-c", script], cwd=sources.TOP, capture_output=True, text=True)
        found |= {line.split("\t")[0] for line in result.stdout.splitlines() if line.startswith("-")}
    return {word for word in found if not re.fullmatch(r"-\w{2,}", word)}


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
    for name, command in (("sbx.bash", ["bash", "-n"]), ("_sbx", ["zsh", "-n"]), ("sbx.fish", ["fish", "-n"])):
        report.check(f"{DIR}/{name}", parse(command, f"{DIR}/{name}"))
    shown, described = options.commands()
    for command in sorted(shown):
        wanted = (options.helped(command) | {"--help"}) - {"-h"}
        for name, offered in (("sbx.bash", bash_options), ("_sbx", zsh_options), ("sbx.fish", fish_options)):
            found = offered(command) - {"-h"}
            report.check(f"{DIR}/{name} {command}", [*options.difference(wanted, found, "is missing"),
                                                     *options.difference(found, wanted, "is no option")])
    for name, found in command_names().items():
        report.check(f"{DIR}/{name}", [*options.difference(described, found, "is missing"),
                                       *options.difference(found, described, "is no command")])
    for words, offered in ((["sbx", "ru"], {"run"}), (["sbx", "run", "--network", ""], {"proxy", "none", "host"}),
                           (["sbx", "run", "--dry"], {"--dry-run"}), (["sbx", "run", "--profile", "of"], {"offline"})):
        report.check(" ".join(words), [] if completed(words) == offered else [f"bash offers {completed(words)}"])
