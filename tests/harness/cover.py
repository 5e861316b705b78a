"""Plays a machine on which a file is missing, or is another one: a program in a mount namespace where an empty one, or
SOURCE, lies over it.

    python3 cover.py [SOURCE=]PATH... -- COMMAND...
"""
import os
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from lab import space  # noqa: E402


def prefix(*paths):
    """Words to put before a command."""
    return ["/usr/bin/python3", "-B", os.path.abspath(__file__), *paths, "--"]


def main():
    split = sys.argv.index("--")
    space.unshare(space.CLONE_NEWNS)
    space.mount("none", "/", None, space.MS_REC | space.MS_PRIVATE)
    for word in sys.argv[1:split]:
        source, _, path = word.rpartition("=")
        space.mount(source or "/dev/null", os.path.realpath(path), None, space.MS_BIND)
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
