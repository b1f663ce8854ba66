"""What holds for all tests."""

import gc
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from _pytest.nodeid import coerce_node_id
from _pytest.unraisableexception import collect_unraisable
from hypothesis import settings

from helpers.order import expected, limit_of, ordered
from helpers.stalls import Stalls
from helpers.tries import configure, register

BESIDE_EACH_OTHER = {"unit", "engine", "refused"}
"""Folders of tests that do not measure the machine, so that they may share it."""

ROOT_ALONE = "needs root: pytest has threads, so that it cannot move into a user namespace for its nodes"
"""Why an ordinary user skips tests that make nodes in this process; those of the API and the command have
processes that can (`tests/e2e/test_ordinary_user.py`)."""

# A test's time limit is pytest's; a limit for each example would fail whenever the machine is busy.
# Failed examples are not kept in the folder of the sources, which may be read-only.
settings.register_profile("airloom", deadline=None, database=None)
settings.load_profile("airloom")

# Python's collector would look through all tests and modules again and again while they are collected.
gc.disable()
_COLLECT_AFTER = (100_000, 20, 20)
"""Thresholds of Python's collector during tests; with its own it takes a fifth of their processor time."""

# In the background of a script Ctrl-C is ignored, which programs that tests start would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option that ``tools/run-tests`` uses."""
    register(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Runs each test by the rule of its class; describes those that reach their limit."""
    configure(config)
    config.pluginmanager.register(Stalls(), "airloom-stalls")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Marks as quick what needs no world, unless it is slow; tests of a world are marked one by one."""
    folder = folder_of(item)
    if folder == "world" and os.geteuid() != 0:
        item.add_marker(pytest.mark.skip(reason=ROOT_ALONE))
    if folder in BESIDE_EACH_OTHER and item.get_closest_marker("slow") is None:
        item.add_marker(pytest.mark.quick)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps tests that share a fixture in one process, so that it is made once, and starts long ones first.

    With `--dist loadgroup`, pytest-xdist finds a test's group behind `@` in its ID. Its own way to write
    it there, which the mark `xdist_group` asks for, has no effect in pytest 9.2.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        if (shared := shared_by(item)) is not None:
            item._id = coerce_node_id(f"{item.nodeid}@{shared}")  # type: ignore[attr-defined]
            assert item.nodeid.endswith(f"@{shared}"), "tests that share a fixture would each make it"
    items[:] = ordered(items, group=group_of, waits=waits, seconds=seconds)


def pytest_collection_finish() -> None:
    """Lets Python's collector look at what tests make, not at the tests and the modules that stay."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Collects what a test made, so that what it left open fails this test and not a later one.

    Older objects, of fixtures of the session, are not looked at, which would take too long.
    """
    yield
    gc.collect(1)
    collect_unraisable(item.config)


def group_of(item: pytest.Item) -> str:
    """Returns the name of the tests that run in one process: the end of an ID, as pytest-xdist reads it."""
    at = item.nodeid.rfind("@")
    return item.nodeid[at + 1 :] if at > item.nodeid.rfind("]") else item.nodeid


def waits(item: pytest.Item) -> bool:
    """Returns whether a test mostly waits: for nodes or for processes that it starts."""
    return folder_of(item) not in BESIDE_EACH_OTHER


def seconds(item: pytest.Item) -> float:
    """Returns the seconds that a test is expected to take."""
    slow = item.get_closest_marker("slow") is not None
    return expected(limit_of(item), waits(item), slow)


def folder_of(item: pytest.Item) -> str:
    """Returns the folder of tests that a test is in."""
    return _folder(item.path)


@cache
def _folder(path: Path) -> str:
    return path.relative_to(Path(__file__).parent).parts[0]


def shared_by(item: pytest.Item) -> str | None:
    """Returns what a test shares with others of its module: fixtures of the module, with their parameters."""
    assert isinstance(item, pytest.Function)
    fixtures = item._fixtureinfo.name2fixturedefs
    names = sorted(name for name, found in fixtures.items() if found[-1].scope == "module")
    if not names:
        return None
    made = [str(item.callspec.indices.get(name, "")) for name in names] if hasattr(item, "callspec") else []
    return "-".join([item.path.stem, *filter(None, made)])
