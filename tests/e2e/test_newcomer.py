"""What somebody types who meets sbx for the first time: each slip gets one line that names it and its mend."""
import pytest


@pytest.mark.parametrize("option", ["--read", "--write", "--unix-socket"])
def test_root_cannot_be_shown(sbx, option):
    sbx.run(option, "/", "--", "true").refused(option, "/ cannot be shown", "name what you need below it")


def test_root_cannot_be_hidden_or_protected(sbx, project):
    """A protection that would not hold is not passed over in silence."""
    sbx.run("--hide", "/", "--", "true").refused("hide: / holds the workspace")
    for above in ("/", project.home):
        path = project.policy("../../p.json", filesystem={"protect": [above]})
        sbx.run("--policy", path, "--", "true").refused(f"protect: {above} holds the workspace")


def test_empty_shell_variable_is_as_none(sbx):
    assert sbx("shell", env={"SHELL": ""}, input=b"echo $0\n").ok().out == "/bin/sh\n"


@pytest.mark.parametrize("words, mend", [
    (["run", "--alow", "x.test", "--", "true"], "did you mean --allow?"),
    (["run", "--nonsense", "--", "true"], "see sbx run --help"),
    (["trust", "--allow", "x.test"], "see sbx trust --help"),
])
def test_unknown_option_names_the_way_on(sbx, words, mend):
    sbx(*words).refused(words[0] + ": " + words[1], "no such option", mend)


def test_version_as_a_word(sbx):
    assert sbx("version").ok().out == sbx("--version").ok().out
