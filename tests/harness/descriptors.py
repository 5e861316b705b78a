"""A program that has files open under chosen numbers, as a careless caller leaves them.

    python3 descriptors.py NUMBER=PATH... -- COMMAND...
"""
import os
import sys


def prefix(*numbers):
    """Words to put before a command."""
    return ["/usr/bin/python3", "-I", os.path.abspath(__file__), *numbers, "--"]


def main():
    split = sys.argv.index("--")
    opened = [(int(word.split("=", 1)[0]), os.open(word.split("=", 1)[1], os.O_RDWR | os.O_CREAT, 0o600))
              for word in sys.argv[1:split]]
    for number, fd in opened:
        os.dup2(fd, number)
        os.set_inheritable(number, True)  # also where both are one
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])


if __name__ == "__main__":
    main()
