"""Proxies of objects that stay in a helper process, and errors that come from there."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from airloom.errors import HostError, LabError, RunError, ScenarioError
from airloom.lab.handles import LiveLink
from airloom.lab.lab import Lab
from airloom.rpc.references import Proxy, Stays, listener_of, proxy_class, stub
from airloom.runs.progress import Watcher
from airloom.runs.single import Interrupted


class Thing(Stays):
    """A thing."""

    @property
    def size(self) -> int:
        """Its size."""
        raise AssertionError("asked here")

    def grow(self, by: int, *, fast: bool = False) -> str:
        """Grows."""
        raise AssertionError("done here")


class Asked:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        self.calls.append((function.partition(":")[2], *args[1:]))
        return "answer"


def test_a_proxy_calls_the_object() -> None:
    made = proxy_class(Thing)
    thing: Any = object.__new__(made)
    thing._caller, thing._number = (asked := Asked()), 1
    assert isinstance(thing, Thing)
    assert thing.size == "answer"
    assert thing.grow(2, fast=True) == "answer"
    assert thing.other == "answer"
    assert asked.calls == [
        ("attribute", "size"),
        ("method", "grow", (2,), {"fast": True}),
        ("attribute", "other"),
    ]
    assert made.grow.__doc__ == "Grows."
    with pytest.raises(TypeError, match="cannot be copied"):
        pickle.dumps(thing)


@pytest.mark.parametrize("cls", [Lab, LiveLink])
def test_no_public_name_of_the_api_is_left_to_this_process(cls: type) -> None:
    made = proxy_class(cls)
    for name in dir(cls):
        # A function without an object asks nothing of the other process.
        if not name.startswith("_") and not isinstance(inspect.getattr_static(cls, name), staticmethod):
            assert name in vars(made), name
    assert issubclass(made, Proxy)


def test_a_listener_is_told_only_what_it_listens_to() -> None:
    class Mine(Watcher):
        def phase(self, text: str) -> None:
            """Listens."""

    declared, names = listener_of(Mine())
    assert (declared, names) == (Watcher, ["phase"])
    told: list[Any] = []
    one = stub(declared, names, lambda name, args: told.append((name, args)))
    one.phase("up")
    one.problem("not told")
    assert told == [("phase", ("up",))]


@pytest.mark.parametrize("kind", [LabError, ScenarioError, HostError, RunError])
def test_an_error_is_copied_whole(kind: type[LabError]) -> None:
    error = kind("a.code", "text", where="x.yaml:1", cure="do it")
    error.further = (RunError("b.code", "more"),)
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is kind
    assert str(copied) == str(error)
    assert copied.further[0].code == "b.code"


def test_an_error_with_other_arguments_is_copied(tmp_path: Any) -> None:
    copied = pickle.loads(pickle.dumps(Interrupted("SIGINT", tmp_path)))
    assert (copied.code, copied.exit_code) == ("run.stopped", 130)
