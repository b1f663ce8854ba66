"""Objects that stay in their process, and the proxies that the other process has of them.

Everything else is copied by ``pickle``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any, Protocol


class Stays:
    """Base class of objects that stay in the helper process. The caller has a proxy of each."""


class Listener:
    """Base class of objects that stay in the calling process and are told what happens.

    The helper process has a stub of each, whose methods return at once.
    """


class Caller(Protocol):
    """What a proxy needs of its connection."""

    def call(self, function: str, *args: Any, **kwargs: Any) -> Any:
        """Calls a function ``module:name`` in the helper process."""


class Proxy:
    """Base class of all proxies."""

    _caller: Caller
    _number: int

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_caller", "_number"):
            raise AttributeError(name)
        return self._caller.call(f"{__name__}:attribute", self, name)

    def __reduce__(self) -> Any:
        raise TypeError(f"{self!r} is an object of a helper process and cannot be copied")


def attribute(owner: Any, name: str) -> Any:
    """Returns an attribute of an object in the helper process."""
    return getattr(owner, name)


def method(owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of an object in the helper process."""
    return getattr(owner, name)(*args, **kwargs)


def name_of(made: Any) -> str:
    """Returns a function or class as ``module:name``."""
    return f"{made.__module__}:{made.__qualname__}"


def named(name: str) -> Any:
    """Returns the function or class called ``module:name``."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for word in path.split("."):
        found = getattr(found, word)
    return found


_OPERATORS = ("__repr__", "__getitem__", "_repr_html_")


@functools.cache
def proxy_class(cls: type) -> type:
    """Returns the class of proxies of a class: a subclass whose methods and properties call the object."""
    body: dict[str, Any] = {"__module__": cls.__module__, "__doc__": cls.__doc__}
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        if name.startswith("_") and (
            name not in _OPERATORS or found is inspect.getattr_static(object, name, 0)
        ):
            continue
        if isinstance(found, property):
            body[name] = property(_getter(name), doc=found.__doc__)
        elif inspect.isfunction(found):
            body[name] = _method(found)
    return type(cls.__name__, (Proxy, cls), body)


def _getter(name: str) -> Callable[[Proxy], Any]:
    def get(self: Proxy) -> Any:
        return self._caller.call(f"{__name__}:attribute", self, name)

    return get


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(self: Proxy, *args: Any, **kwargs: Any) -> Any:
        return self._caller.call(f"{__name__}:method", self, function.__name__, args, kwargs)

    return call


def listener_of(listener: Listener) -> tuple[type, list[str]]:
    """Returns the class that declares a listener's methods, and the names of those that it overrides."""
    declared = next(cls for cls in type(listener).__mro__ if Listener in cls.__bases__)
    names = [
        name
        for name, found in vars(declared).items()
        if inspect.isfunction(found)
        and not name.startswith("_")
        and getattr(type(listener), name) is not found
    ]
    return declared, names


def stub(declared: type, names: list[str], tell: Callable[[str, tuple[Any, ...]], None]) -> Any:
    """Returns a listener whose methods call ``tell`` with their name and arguments."""

    def telling(name: str) -> Callable[..., None]:
        return lambda self, *args: tell(name, args)

    return type(declared.__name__, (declared,), {name: telling(name) for name in names})()
