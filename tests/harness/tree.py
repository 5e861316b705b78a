"""Snapshots of directory trees: what is there, not when it was touched."""
import hashlib
import os
import stat


def describe(path):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    what = (oct(status.st_mode), status.st_uid, status.st_gid)
    if kind == stat.S_IFLNK:
        return what + (os.readlink(path),)
    if kind == stat.S_IFREG:
        with open(path, "rb") as file:
            return what + (status.st_nlink, hashlib.sha256(file.read()).hexdigest())
    return what


def snapshot(*tops, without=()):
    """{path: description} of everything below the tops; what lies below a path of without is left out."""
    found = {}
    for top in tops:
        for directory, names, files in os.walk(top):
            names[:] = [n for n in names if os.path.join(directory, n) not in without]
            for name in names + files:
                path = os.path.join(directory, name)
                if path not in without:
                    try:
                        found[path] = describe(path)
                    except FileNotFoundError:
                        pass
    return found


def difference(before, after):
    """Lines that say what came, went and changed; [] when nothing did."""
    lines = [f"+ {p}" for p in sorted(set(after) - set(before))]
    lines += [f"- {p}" for p in sorted(set(before) - set(after))]
    lines += [f"! {p}: {before[p]} -> {after[p]}" for p in sorted(set(before) & set(after)) if before[p] != after[p]]
    return lines
