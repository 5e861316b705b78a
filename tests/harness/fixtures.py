"""Fixtures of both suites. Each conftest.py takes all of them with a star import."""
import contextlib
import functools
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from harness import fail_once, procs, sbx as harness_sbx, term, tree
from lab import aws as lab_aws, guarded as lab_guarded, http2 as lab_http2, services as lab_services, space, world as lab_world

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_PATIENCE = 300  # seconds
SCRATCH = ("/tmp", "/var/tmp", "/dev/shm")

numbers = itertools.count(1)


def pytest_configure(config):
    config.addinivalue_line("markers", "root: is about a run started by root; left out for a plain user")
    config.addinivalue_line("markers", "user: is about a run started by a plain user; left out for root")
    config.addinivalue_line("markers", "agents: needs coding agents; left out where run-suite could not get them")


def pytest_collection_modifyitems(config, items):
    """Tests of the other kind of user are left out, not skipped: a skip would look like a test that could not run."""
    unwanted = "user" if os.geteuid() == 0 else "root"
    agents = os.path.isdir(f"{space.BASE}/agents")
    left_out = [item for item in items if item.get_closest_marker(unwanted) or
                (item.get_closest_marker("agents") and not agents)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def find_program():
    program = os.environ.get("SBX")
    if not program:
        pytest.exit("set SBX to the sbx under test (absolute path)", 2)
    if not os.access(program, os.X_OK):
        pytest.exit(f"SBX={program} is not a program", 2)
    return os.path.realpath(program)


@functools.cache
def make_world():
    """One for both suites, each of which has its own fixtures."""
    if "SBX_LAB" not in os.environ:
        needed = [TESTS, os.path.dirname(find_program()), os.getcwd(), sys.prefix, os.path.dirname(TESTS)]
        space.enter(needed)
    return lab_world.World()


@pytest.fixture(scope="session")
def world():
    """The lab. Enters it unless the tests were started in it."""
    return make_world()


@functools.cache
def make_guarded():
    return lab_guarded.Guarded(make_world())


@pytest.fixture(scope="session")
def guarded(world):
    """The lab's origins that want a login."""
    return make_guarded()


@functools.cache
def make_service():
    return lab_services.Services(make_world())


@pytest.fixture(scope="session")
def service(world):
    """The lab's registries, and its servers of other protocols."""
    return make_service()


@functools.cache
def make_aws():
    return lab_aws.Services(make_world())


@pytest.fixture
def aws(world):
    """The lab's services that check signatures, with no record of what was before this test."""
    make_aws().forget()
    return make_aws()


@functools.cache
def make_http2():
    return lab_http2.Http2(make_world())


@pytest.fixture
def http2(world):
    """The lab's origins of HTTP/2, with no record of what was before this test."""
    origins = make_http2()
    origins.forget()
    return origins


@pytest.fixture(scope="session")
def program(world):
    return find_program()


@pytest.fixture
def lab(world):
    """The lab, with no record of what was before this test."""
    world.forget()
    return world


def litter():
    """What lies in the trees where a careless program leaves its things."""
    own = [d for d in SCRATCH if os.path.ismount(d) and os.stat(d).st_dev != os.stat("/").st_dev]
    return tree.snapshot(*own, f"{space.BASE}/tmp", f"{space.BASE}/run")


def hung(_number, _frame):
    raise AssertionError(f"hung; still there: {procs.descendants()}")


@pytest.fixture(autouse=True)
def watchdog():
    """No test waits for ever, whatever it reads from."""
    signal.signal(signal.SIGALRM, hung)
    signal.alarm(TEST_PATIENCE)
    yield
    signal.alarm(0)


@pytest.fixture(autouse=True)
def nothing_left(world, watchdog):
    """Holds for every test (P4, P6, F40): afterwards there is no process, no mount and no file that was not before."""
    before, mounts = litter(), procs.mounts()
    yield
    try:
        procs.wait_until(lambda: not procs.descendants(), lambda: f"processes left: {procs.descendants()}", 10)
    finally:
        for process in procs.descendants():
            with contextlib.suppress(ProcessLookupError):  # one may die with another
                os.kill(process.pid, signal.SIGKILL)
        procs.reap()
    assert procs.mounts() == mounts
    assert tree.difference(before, litter()) == []


@pytest.fixture
def project(lab, nothing_left):
    """A home with a git repository in it."""
    project = harness_sbx.Project(next(numbers))
    project.make_repository()
    yield project
    remove(project)


@pytest.fixture
def plain(lab, nothing_left):
    """A home with a project directory that is in no git work tree."""
    project = harness_sbx.Project(next(numbers))
    yield project
    remove(project)


def remove(project):
    """Also what has mode 0, of tests and of sbx's own."""
    subprocess.run(["chmod", "-R", "u+rwX", project.base], stderr=subprocess.DEVNULL)
    shutil.rmtree(project.base)


@pytest.fixture
def sbx(program, project):
    return harness_sbx.Sbx(program, project)


@pytest.fixture
def plain_sbx(program, plain):
    return harness_sbx.Sbx(program, plain)


@pytest.fixture
def terminal(sbx):
    """A function that puts a program on a new terminal."""
    opened = []

    def start(*argv, **options):
        env = sbx.environment({"PS1": "outer> ", "HISTFILE": "/dev/null", **options.pop("env", {})})
        opened.append(term.Terminal(argv, sbx.project.root, env, **options))
        return opened[-1]
    yield start
    for each in opened:
        each.close()


@pytest.fixture
def failing(sbx):
    """Runs sbx with one call that fails, or none: (Result, {call: how often})."""
    def run(failure, *words):
        read, write = os.pipe()
        try:
            process = sbx.start(*words, prefix=fail_once.prefix(write, *failure), pass_fds=(write,))
        finally:
            os.close(write)
        out, err = process.communicate(timeout=60)
        with os.fdopen(read) as file:
            return harness_sbx.Result(process.returncode, out, err, (failure, *words)), json.loads(file.read())
    return run
