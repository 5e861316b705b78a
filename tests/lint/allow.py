"""What may pass a lint test all the same: (test, file, word or None): why.

An entry that nothing needs is a fault, but for those of the analyzers, whose versions differ in what they see.
"""

ALLOWED = {
    ("globals", "src/base/log.c", None): "the program's name and the level are the one piece of state",
    ("banned", "src/cmd/main.c", "open"): "it takes the place of a standard descriptor that was closed",
    ("names", "src/engine/bwrap_args.c", None): "the host name inside",
    ("names", "src/plan/facts.c", None): "a directory's name",
    ("names", "src/plan/build_system.c", None): "what stands in the marker of a sandbox",
    ("cppcheck", "proxy/listener.c", "nullPointer"): "accept4 takes NULL for the address",
    ("tidy", "proxy/conn.c", "clang-analyzer-unix.Malloc"): "it loses track of a list's links",
}

_used = set()


def allowed(test, name, word=None):
    key = (test, name, word)
    if key in ALLOWED:
        _used.add(key)
        return True
    return False


def unused(test):
    return [f"{name} {word or ''}: this entry of {kind} is not needed" for kind, name, word in ALLOWED
            if kind == test and (kind, name, word) not in _used]
