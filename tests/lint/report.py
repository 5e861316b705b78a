"""How a lint test tells what it found: one check per file or thing, so that the count says how much was looked at."""

import sys


class Report:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, what, faults):
        """Counts one check; prints each fault ("place: what is wrong") of one that failed."""
        faults = list(faults)
        if not faults:
            self.passed += 1
            return
        self.failed += 1
        for fault in faults:
            print(f"{what}: {fault}" if not str(fault).startswith(f"{what}:") else fault, file=sys.stderr)
