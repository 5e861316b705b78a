"""python3 -m lab [--uid N] [--need PATH]... [--copy NAME=PATH]... [--bind NAME=PATH]... [--world] -- COMMAND...

Runs COMMAND in the lab and exits with its status. With --world the servers run too; the test suite starts them itself.
For looking round by hand: (cd tests && python3 -m lab --world -- bash).
"""
import argparse
import os
import subprocess
import sys

from lab import space


def main():
    parser = argparse.ArgumentParser(prog="lab", description="run a command in the fake internet of the tests")
    parser.add_argument("--uid", type=int, help="whom to become (root only)")
    parser.add_argument("--need", action="append", default=[], help="a path that has to stay visible")
    parser.add_argument("--copy", action="append", default=[], help=f"NAME=PATH: copied to {space.BASE}/NAME")
    parser.add_argument("--bind", action="append", default=[], help=f"NAME=DIRECTORY: to be seen at {space.BASE}/NAME")
    parser.add_argument("--world", action="store_true", help="start name server and origins")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    copies, binds = (dict(item.split("=", 1) for item in items) for items in (arguments.copy, arguments.bind))
    space.enter([*arguments.need, os.getcwd()] if not copies else arguments.need, copies, arguments.uid, binds)
    if not arguments.world:
        os.execvp(arguments.command[0], arguments.command)
    from lab import world
    world.World()
    status = subprocess.run(arguments.command).returncode
    sys.exit(128 - status if status < 0 else status)


if __name__ == "__main__":
    main()
