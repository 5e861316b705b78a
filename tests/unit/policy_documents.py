#!/usr/bin/python3
"""The schema, sbx-policy(5) and the profiles say what the table of keys in policy/keys.c says.

Python's standard library only. Run by make check in the build directory, with $srcdir set.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(os.environ.get("srcdir", "."))
TOOL = os.path.abspath("tests/unit/policy_tool")
SCHEMA = json.loads((TOP / "policy/schema/sbx-policy.schema.json").read_text())
PAGE = (TOP / "man/sbx-policy.5").read_text()
PROFILES = sorted((TOP / "policy/profiles").glob("*.json"))

failures = []


def expect(condition, message):
    if not condition:
        failures.append(message)


def tool(*arguments):
    return subprocess.run([TOOL, *map(str, arguments)], check=True, capture_output=True, text=True).stdout.splitlines()


def without_comments(text):
    """JSON with comments to JSON; the comments in question stand in no string."""
    pattern = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.S)
    return json.loads(pattern.sub(lambda match: match.group(1) or " ", text))


# A validator for the part of JSON Schema that ours uses; an unknown keyword is an error, so that nothing passes unseen.

TYPES = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
}


def resolve(schema):
    while "$ref" in schema:
        schema = {**SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]], **{k: v for k, v in schema.items() if k != "$ref"}}
    return schema


def is_number(value):
    return TYPES["number"](value)


CHECKS = {
    "type": lambda want, value, _: TYPES[want](value),
    "enum": lambda want, value, _: value in want,
    "pattern": lambda want, value, _: not isinstance(value, str) or bool(re.search(want, value)),
    "minimum": lambda want, value, _: not is_number(value) or value >= want,
    "maximum": lambda want, value, _: not is_number(value) or value <= want,
    "exclusiveMinimum": lambda want, value, _: not is_number(value) or value > want,
    "anyOf": lambda want, value, _: any(valid(part, value) for part in want),
    "items": lambda want, value, _: not isinstance(value, list) or all(valid(want, item) for item in value),
    "propertyNames": lambda want, value, _: not isinstance(value, dict) or all(valid(want, name) for name in value),
    "minProperties": lambda want, value, _: not isinstance(value, dict) or len(value) >= want,
    "minItems": lambda want, value, _: not isinstance(value, list) or len(value) >= want,
    "maxItems": lambda want, value, _: not isinstance(value, list) or len(value) <= want,
    "required": lambda want, value, _: not isinstance(value, dict) or all(name in value for name in want),
    "properties": lambda want, value, _: not isinstance(value, dict)
    or all(valid(want[name], item) for name, item in value.items() if name in want),
    "additionalProperties": lambda want, value, schema: not isinstance(value, dict)
    or all(
        want if isinstance(want, bool) else valid(want, item)
        for name, item in value.items()
        if name not in schema.get("properties", {})
    ),
}
IGNORED = {"description", "title", "$schema", "$defs"}


def valid(schema, value):
    schema = resolve(schema)
    unknown = set(schema) - set(CHECKS) - IGNORED
    assert not unknown, f"keywords that this test does not know: {unknown}"
    return all(CHECKS[name](want, value, schema) for name, want in schema.items() if name in CHECKS)


def schema_keys(schema, prefix=""):
    """Path and schema of every key; objects that list their members are walked, those with free names are keys."""
    for name, part in schema["properties"].items():
        part = resolve(part)
        if name == "$schema":
            continue
        if part.get("type") == "object" and "properties" in part:
            expect(part.get("additionalProperties") is False, f"schema: {prefix}{name} lets unknown keys through")
            expect("description" in part, f"schema: {prefix}{name} has no description")
            yield from schema_keys(part, f"{prefix}{name}.")
        else:
            yield prefix + name, part


SAMPLES = {"string": "x", "number": 2000, "boolean": True, "null": None, "list": [], "map": {}}


def check_schema(keys):
    found = dict(schema_keys(SCHEMA))
    expect(SCHEMA["additionalProperties"] is False, "schema: unknown keys are let through at the top")
    expect(set(found) == set(keys), f"schema and keys.c differ: {sorted(set(found) ^ set(keys))}")
    for path, (merge, types, words, null, _) in keys.items():
        schema = found.get(path, {})
        expect("description" in schema, f"schema: {path} has no description")
        expect(valid(schema, None) == (null == "null"), f"schema: {path}: null")
        if merge == "list":
            expect(valid(schema, []) and not valid(schema, {}) and not valid(schema, "x"), f"schema: {path}: a list")
            schema = schema.get("items", {})
        elif merge == "map":
            expect(valid(schema, {}) and not valid(schema, []), f"schema: {path}: an object")
            schema = schema.get("additionalProperties", {})
        for word in filter(None, words.split(",")):
            sample = word == "true" if types == "boolean" else word
            expect(valid(schema, sample), f"schema: {path}: the word {word} is refused")
        for kind in ("number", "boolean"):
            expect(valid(schema, SAMPLES[kind]) == (kind in types.split(",")), f"schema: {path}: {kind}")
        if words and types == "string":
            expect(not valid(schema, "no-such-word"), f"schema: {path}: any word is taken")
    names = {path.stem for path in PROFILES}
    expect(set(found["extends"]["items"]["enum"]) == names, "schema: extends does not list the profiles")


def check_page(keys):
    body = PAGE.split(".Sh KEYS", 1)[1].split(".Ss Paths", 1)[0]
    entries = re.findall(r"^\.It Cm (\S+)$(.*?)(?=^\.It |^\.El)", body, re.M | re.S)
    expect([path for path, _ in entries] == list(keys), "sbx-policy.5: its keys, or their order, differ from keys.c")
    for path, text in entries:
        option = keys.get(path, ("",) * 5)[4]
        named = re.findall(r"^Option:\n\.Fl -([\w-]+)", text, re.M)
        expect([f"--{name}" for name in named] == ([option] if option else []), f"sbx-policy.5: {path}: its option")
        for word in filter(None, keys.get(path, ("",) * 5)[2].split(",")):
            expect(re.search(rf"\b{word}\b", text) or keys[path][1] == "boolean", f"sbx-policy.5: {path}: {word}")
    section = PAGE.split(".Sh PROFILES", 1)[1].split(".Sh", 1)[0]
    named = {name for line in re.findall(r"^\.It Cm (.*)$", section, re.M) for name in re.split(r"[ ,]+", line)}
    expect(named == {path.stem for path in PROFILES}, "sbx-policy.5: PROFILES does not list the profiles")


def documents():
    """Name and text of every policy that we show to somebody."""
    for path in PROFILES:
        yield path.name, path.read_text()
    for number, block in enumerate(re.findall(r"^\.Bd -literal.*?\n(\{.*?\n)\.Ed", PAGE, re.M | re.S), 1):
        yield f"sbx-policy.5 example {number}", block.replace("\\e", "\\")


# Texts that the program and the schema have to judge alike. The schema alone cannot know all of the grammar of rules.
BOTH_REFUSE = [
    '{"netwrok": {}}',
    '{"network": {"alow": []}}',
    '{"network": {"allow": "a.test"}}',
    '{"network": {"mode": "off"}}',
    '{"network": {"mode": null}}',
    '{"network": {"forward": [0]}}',
    '{"network": {"forward": [true]}}',
    '{"network": {"publish": [1023]}}',
    '{"network": {"publish": ["8080:80"]}}',
    '{"network": {"upstreamProxy": "auto"}}',
    '{"network": {"upstreamProxy": "h.test:3128"}}',
    '{"network": {"upstreamProxy": "https://h.test:3128"}}',
    '{"network": {"upstreamProxy": "socks4://h.test:1080"}}',
    '{"network": {"allow": [{"host": "a.test"}]}}',
    '{"network": {"allow": [{"methods": ["GET"]}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "methods": []}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "methods": "GET"}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "methods": ["G T"]}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "paths": ["x"]}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "paths": ["/x?y"]}]}}',
    '{"network": {"allow": [{"host": "a.test:80", "paths": ["/a%20b"]}]}}',
    '{"network": {"deny": [{"host": "a.test:80", "path": ["/x"]}]}}',
    '{"network": {"allow": ["{\\"host\\": \\"a.test:80\\", \\"paths\\": [\\"/x\\"]}"]}}',
    '{"network": {"allow": ["a b"]}}',
    '{"filesystem": {"read": ["*.x"]}}',
    '{"filesystem": {"home": "none"}}',
    '{"env": {"set": {"A-B": "x"}}}',
    '{"env": {"set": {"A": 1}}}',
    '{"env": {"pass": ["*"]}}',
    '{"limits": {"pids": "10"}}',
    '{"limits": {"memory": 0}}',
    '{"limits": {"cpus": 0}}',
    '{"limits": {"timeout": "1w"}}',
    '{"syscalls": {"nesting": "true"}}',
    '{"audit": {"file": "relative"}}',
    '{"extends": "node"}',
    '{"extends": ["no-such"]}',
    '{"credentials": []}',
    '{"credentials": {"a b": {}}}',
    '{"credentials": {"github": null}}',
    '{"credentials": {"github": {"sorce": {"env": "X"}}}}',
    '{"credentials": {"github": {"source": {}}}}',
    '{"credentials": {"github": {"source": {"ttl": 1}}}}',
    '{"credentials": {"github": {"source": {"env": "A B"}}}}',
    '{"credentials": {"github": {"source": {"file": "x"}}}}',
    '{"credentials": {"github": {"source": {"exec": []}}}}',
    '{"credentials": {"github": {"source": {"op": "a/b/c"}}}}',
    '{"credentials": {"github": {"source": {"pass": "-x"}}}}',
    '{"credentials": {"github": {"source": {"secretService": {}}}}}',
    '{"credentials": {"github": {"source": {"secretService": {"a": ""}}}}}',
    '{"credentials": {"github": {"source": {"secretService": {"-a": "b"}}}}}',
    '{"credentials": {"github": {"source": {"exec": ["x"], "timeout": 0}}}}',
    '{"credentials": {"github": {"bind": []}}}',
    '{"credentials": {"github": {"bind": ["*"]}}}',
    '{"credentials": {"github": {"bind": ["10.0.0.0/8"]}}}',
    '{"credentials": {"github": {"bind": [{"host": "a.test", "methods": ["GET"]}]}}}',
    '{"credentials": {"github": {"env": ["A-B"]}}}',
    '{"credentials": {"github": {"file": "x"}}}',
    '{"credentials": {"github": {"file": 1}}}',
    '{"credentials": {"github": {"inject": "sign"}}}',
    '{"credentials": {"github": {"place": "header"}}}',
    '{"credentials": {"github": {"place": {"header": ""}}}}',
    '{"credentials": {"github": {"place": {}}}}',
    '{"credentials": {"x": {"preset": "no-such"}}}',
    '{"credentials": {"aws": {"source": {"env": []}}}}',
    '{"credentials": {"aws": {"place": "sigv2"}}}',
    "[]",
]
BOTH_ACCEPT = [
    "{}",
    '{"credentials": {"github": {"source": {"op": "op://a/b/c"}}, "npm": {"source": {"pass": "a/b", "timeout": "2m"}}}}',
    '{"credentials": {"github": {"source": {"secretService": {"service": "x", "user": "a b"}, "ttl": 60}}}}',
    '{"network": {"allow": [{"host": "a.test:80", "methods": ["GET", "PURGE"], "paths": ["/", "/a b/*", "/caf\\u00e9"]}]}}',
    '{"network": {"deny": [{"host": "*:80", "methods": ["POST"]}, {"host": "10.0.0.0/8:8080", "paths": ["/x"]}]}}',
    '{"$schema": "x"}',
    '{"network": {"allow": ["*", "*.a.test:*", "[2001:db8::/32]:1-9", "localhost:5432"], "forward": [1, "2", "3:4"]}}',
    '{"network": {"publish": [1024, "3000", "80:1030", "1:65535"]}}',
    '{"network": {"upstreamProxy": "http://u:p@h.test:3128/"}}',
    '{"network": {"upstreamProxy": "socks5://h.test:1080"}}',
    '{"network": {"upstreamProxy": "SOCKS5H://[::1]:1080"}}',
    '{"network": {"upstreamProxy": null}}',
    '{"filesystem": {"hide": ["**/.env"], "read": ["~", ".", "/"], "tmp": "private"}}',
    '{"limits": {"memory": "4G", "cpus": 0.5, "pids": 1, "timeout": 60}}',
    '{"limits": {"memory": null, "cpus": "1.25", "pids": null, "timeout": "10ms"}}',
    '{"audit": {"file": "~"}}',
    '{"env": {"pass": ["A_*"], "set": {"A": ""}}}',
    '{"credentials": {}}',
    '{"credentials": {"github": {"scrub": "head", "place": "path"}, "npm": {"place": "body", "scrub": "body"}}}',
    '{"credentials": {"aws": {}, "x": {"source": {"env": ["A", "B", "C"]}, "bind": ["a.test"], "env": ["D", "E"], "place": "sigv4"}}}',
    '{"credentials": {"github": {}, "x": {"preset": "npm", "bind": ["a.test:*", {"host": "*.b.test"}], "env": "X"}}}',
    '{"credentials": {"github": {"preset": "github", "source": {"exec": ["a", ""], "timeout": "5s", "ttl": 60}}}}',
    '{"credentials": {"x": {"source": {"file": "~/x"}, "bind": ["192.0.2.1", "[::ffff:1]:8443"], "inject": "attach",'
    ' "place": {"basic": ""}}}}',
]


def check_texts():
    cases = [(name, text, True) for name, text in documents()]
    cases += [(text, text, False) for text in BOTH_REFUSE] + [(text, text, True) for text in BOTH_ACCEPT]
    expect(sum(name.startswith("sbx-policy.5") for name, _, _ in cases) >= 3, "sbx-policy.5: no examples found")
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for number, (_, text, _) in enumerate(cases):
            paths.append(Path(directory, f"{number}.json"))
            paths[-1].write_text(text)
            paths[-1].chmod(0o600)
        answers = tool("check", *paths)
    for (name, text, good), answer in zip(cases, answers, strict=True):
        expect((answer == "ok") == good, f"{name}: the program says {answer}")
        expect(valid(SCHEMA, without_comments(text)) == good, f"{name}: the schema {'refuses' if good else 'takes'} it")


def main():
    keys = {fields[0]: tuple(fields[1:]) for fields in (line.split("\t") for line in tool("keys"))}
    expect(len(keys) > 20, "no keys")
    check_schema(keys)
    check_page(keys)
    check_texts()
    for failure in failures:
        print(failure)
    print(f"{len(keys)} keys, {len(PROFILES)} profiles, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
