"""Methods of a laboratory that is in this process, or in its helper process (:mod:`airloom.rpc`)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


def where_it_is(method: Method) -> Method:
    """Makes a method run in the process that has the laboratory: this one, or its helper."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self._there is not None:
            return getattr(self._there, method.__name__)(*args, **kwargs)
        return method(self, *args, **kwargs)

    return cast(Method, call)


def read_where_it_is(method: Method) -> Method:
    """Does the same for the method of a property."""

    @functools.wraps(method)
    def get(self: Any) -> Any:
        return method(self) if self._there is None else getattr(self._there, method.__name__)

    return cast(Method, get)
