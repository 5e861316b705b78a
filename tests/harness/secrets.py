"""What the tests of credentials share: who saw a secret, and who did not."""
import array
import itertools
import os

from harness import procs
from lab.guarded import SECRETS, Guarded, forms


def no_secret(*texts):
    """None of the texts holds a secret of the lab, in any form."""
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode()
        for secret in SECRETS:
            found = [form for form in forms(secret) if form in data]
            assert not found, (found, data[:4000])


def saw(lab, *hosts, secret=SECRETS[0]):
    """Requests to the hosts that had the secret. Nobody else may have seen any."""
    others = [(r.sni, r.raw) for r in lab.requests if r.sni not in hosts and any(Guarded.sees(r, each) for each in SECRETS)]
    assert others == []
    return [r for r in lab.requests if r.sni in hosts and Guarded.sees(r, secret)]


def nobody_saw(lab):
    assert [(r.sni, r.raw) for r in lab.requests if any(Guarded.sees(r, each) for each in SECRETS)] == []


def depth_of(pid):
    """In how many pid namespaces a process has a number."""
    with open(f"/proc/{pid}/status") as file:
        return next(len(line.split()) for line in file if line.startswith("NSpid:"))


def pages_of(pagemap, low, high):
    """The runs of pages in a range that are there (present or swapped out, pagemap in proc(5)): what was reserved only is
    large."""
    page = os.sysconf("SC_PAGESIZE")
    pagemap.seek(low // page * 8)
    there = [entry >> 62 != 0 for entry in array.array("Q", pagemap.read((high - low) // page * 8))]
    for is_there, run in itertools.groupby(enumerate(there), key=lambda entry: entry[1]):
        numbers = [number for number, _ in run]
        if is_there:
            yield low + numbers[0] * page, len(numbers) * page


def memory_of(pid):
    """What a process has written in its memory, in pieces. The rest is files, which are searched as such."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory, \
            open(f"/proc/{pid}/pagemap", "rb", 0) as pagemap:
        for line in maps:
            low, high = (int(n, 16) for n in line.split()[0].split("-"))
            for start, length in pages_of(pagemap, low, high) if "rw" in line.split()[1] else ():
                memory.seek(start)
                yield memory.read(length)


def processes_inside(pid):
    """Those of the sandbox that sbx with this pid has started."""
    return [p.pid for p in procs.descendants(pid) if depth_of(p.pid) > depth_of("self")]
