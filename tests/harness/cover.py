"""Plays a machine on which a file is missing, or is another one: a program in a mount namespace where an empty one, or
SOURCE, lies over it; or on which a directory has what the directory SOURCE has as well.

    python3 cover.py [SOURCE=|SOURCE+=]PATH... -- COMMAND...
"""
import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lab import space  # noqa: E402


def prefix(*paths):
    """Words to put before a command."""
    return ["/usr/bin/python3", "-B", os.path.abspath(__file__), *paths, "--"]


def add(source, path):
    """Links to what was there, and to what is in source. (An overlay cannot have what is mounted below path.)"""
    before = f"{source}.before"
    os.mkdir(before)
    space.mount(path, before, None, space.MS_BIND | space.MS_REC)
    space.mount("lab", path, "tmpfs")
    for directory in (source, before):
        for name in os.listdir(directory):
            if not os.path.lexists(f"{path}/{name}"):
                os.symlink(f"{directory}/{name}", f"{path}/{name}")


def main():
    split = sys.argv.index("--")
    space.unshare(space.CLONE_NEWNS)
    space.mount("none", "/", None, space.MS_REC | space.MS_PRIVATE)
    for word in sys.argv[1:split]:
        source, _, path = word.rpartition("=")
        if source.endswith("+"):
            add(source[:-1], path)
        else:
            space.mount(source or "/dev/null", os.path.realpath(path), None, space.MS_BIND)
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
