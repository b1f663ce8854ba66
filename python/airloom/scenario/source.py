"""Reads a scenario's YAML with the line and column of every value.

The reader accepts the data subset of YAML 1.2: mappings, sequences, scalars, anchors, aliases and
merge keys. Words such as ``on``, ``off``, ``yes`` and ``no`` are text, not booleans, and keys are
always text. Duplicate keys in a mapping are refused. The values of an alias count each time it is
used, so a small file cannot expand without limit.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from airloom.errors import ScenarioError
from airloom.host.files import content
from airloom.scenario import missing_file, slips

DEEPEST = 48
MOST_VALUES = 2_000_000
LARGEST_FILE = 64 * 2**20

Path_ = tuple[str | int, ...]

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_MERGE = "\0<<"
"""Represents the plain key ``<<``; no text can contain it."""

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,18})", re.ASCII)
_HEX = re.compile(r"0x[0-9A-Fa-f]{1,16}", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]{1,3})?", re.ASCII)


@dataclass(slots=True)
class _Scalar:
    mark: tuple[int, int]
    value: Any


@dataclass(slots=True)
class _List:
    mark: tuple[int, int]
    items: list[_Node] = field(default_factory=list)


@dataclass(slots=True)
class _Map:
    mark: tuple[int, int]
    pairs: dict[str, tuple[tuple[int, int], _Node]] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)
    """Keys from a merge; keys of the mapping itself override them."""


_Node = _Scalar | _List | _Map


def scalar(text: str) -> Any:
    """Parses a plain scalar: null, a boolean, a number or text."""
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _HEX.fullmatch(text):
        return int(text, 16)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def show(path: Path_) -> str:
    """Returns a path as text: ``links[3].rate``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


class Source:
    """A scenario's raw data, and the place of each value."""

    def __init__(self, data: Any, name: str | None, folder: Path, root: _Node | None = None):
        self.data = data
        self.name = name
        self.folder = folder
        self._root = root
        self._origins: dict[Path_, str | Path_] = {}

    @classmethod
    def of_file(cls, path: Path) -> Source:
        """Reads a file; relative paths in it start at its folder."""
        try:
            octets = content(path, LARGEST_FILE)
        except FileNotFoundError:
            raise ScenarioError(
                "file.missing", "there is no such file", where=str(path), cure=missing_file.cure(path)
            ) from None
        except (OSError, ValueError) as error:
            if getattr(error, "errno", None) == errno.EFBIG:
                raise ScenarioError(
                    "file.size", f"the file is larger than {LARGEST_FILE} octets", where=str(path)
                ) from None
            reason = getattr(error, "strerror", None) or str(error)
            raise ScenarioError(
                "file.unreadable", f"cannot be read: {reason}", where=repr(str(path))[1:-1]
            ) from None
        return cls.of_text(octets, str(path), path.parent)

    @classmethod
    def of_text(cls, text: str | bytes, name: str | None = None, folder: Path | None = None) -> Source:
        """Reads text; errors show ``name`` in front of line and column."""
        root = _Reader(text, name or "<text>").read()
        budget = [MOST_VALUES]
        return cls(_build(root, budget, name or "<text>"), name or "<text>", folder or Path(), root)

    def replaced(self, path: Path_, origin: str | Path_) -> None:
        """Records that the value at ``path`` comes from an option or from another path."""
        self._origins = {old: what for old, what in self._origins.items() if old[: len(path)] != path}
        self._origins[path] = origin

    def copy(self, data: Any) -> Source:
        """Returns a source of the same text with other data."""
        other = Source(data, self.name, self.folder, self._root)
        other._origins = dict(self._origins)
        return other

    def mark(self, path: Path_, key: bool = False) -> tuple[int, int] | None:
        """Returns line and column of a value or its key, or of the nearest enclosing value."""
        node, best = self._root, None if self._root is None else self._root.mark
        for index, part in enumerate(path):
            last = index == len(path) - 1
            if isinstance(node, _Map) and isinstance(part, str) and part in node.pairs:
                at, node = node.pairs[part]
                # Mark a nested collection at its key, and a scalar at its value.
                best = at if (key and last) or not isinstance(node, _Scalar) else node.mark
            elif isinstance(node, _List) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
                best = node.mark
            else:
                break
        return best

    def where(self, path: Path_, key: bool = False) -> str:
        """Returns the place of a value: ``net.yaml:12:11 links[3].rate``."""
        for length in range(len(path), 0, -1):
            origin = self._origins.get(path[:length])
            if isinstance(origin, str):
                rest = show(path)
                return f"{origin} {rest}" if rest and rest not in origin else origin
            if origin is not None:
                return f"{self._position(origin)}{show(path)}"
        if not self._stands(path):
            for place, origin in self._origins.items():
                if place[: len(path)] == path:  # a value from elsewhere created this part of the path
                    return f"{self._position(origin)}{show(path)}" if isinstance(origin, tuple) else origin
        return f"{self._position(path, key)}{show(path)}".rstrip()

    def _stands(self, path: Path_) -> bool:
        """True if the text has a value at a path."""
        node: _Node | None = self._root
        for part in path:
            if isinstance(node, _Map) and isinstance(part, str) and part in node.pairs:
                _, node = node.pairs[part]
            elif isinstance(node, _List) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
            else:
                return False
        return True

    def _position(self, path: Path_, key: bool = False) -> str:
        mark = self.mark(path, key)
        if mark is None:
            return ""
        return f"{self.name}:{mark[0] + 1}:{mark[1] + 1} "


class _Reader:
    """Builds nodes from the parser's events, without recursion and with limits."""

    def __init__(self, text: str | bytes, name: str):
        self.name = name
        if isinstance(text, bytes):
            try:
                text = text.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                line = error.object.count(b"\n", 0, error.start) + 1
                raise ScenarioError(
                    "yaml.encoding", "the text is not UTF-8", where=f"{name}:{line}"
                ) from None
        self.text = text

    def read(self) -> _Node:
        try:
            return self._compose()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
            context, begun = error.context, error.context_mark
            slip = mark and slips.explained(
                self.text, error.problem or "", mark.line, mark.column, begun.line if begun else None
            )
            if slip:
                message, cure, *there = slip
                raise self._refuse("yaml.syntax", message, (there[0], there[1]), cure) from None
            if context and begun and mark and begun.line != mark.line:
                context += f" that begins in line {begun.line + 1}"
            what = ", ".join(part for part in (context, error.problem) if part)
            raise ScenarioError("yaml.syntax", f"not YAML: {what}", where=self.name + place) from None
        except (yaml.YAMLError, UnicodeError, ValueError) as error:
            first = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ScenarioError("yaml.syntax", f"not YAML: {first}", where=self.name) from None

    def _refuse(
        self, code: str, message: str, mark: tuple[int, int], cure: str | None = None
    ) -> ScenarioError:
        return ScenarioError(code, message, where=f"{self.name}:{mark[0] + 1}:{mark[1] + 1}", cure=cure)

    def _events(self) -> Iterator[Any]:
        loader = _Parser(self.text)
        try:
            while loader.check_event():
                yield loader.get_event()
        finally:
            loader.dispose()

    def _compose(self) -> _Node:
        root: _Node | None = None
        anchors: dict[str, _Node] = {}
        # A stack of open collections, each with the key whose value comes next.
        stack: list[tuple[_List | _Map, str | None, tuple[int, int]]] = []
        opened: set[int] = set()
        documents = 0
        for event in self._events():
            mark = (event.start_mark.line, event.start_mark.column)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refuse(
                        "yaml.documents", "a second document begins", mark, "one scenario a file"
                    )
                continue
            if isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                opened.discard(id(stack.pop()[0]))
                continue
            node: _Node
            if isinstance(event, yaml.AliasEvent):
                if event.anchor not in anchors:
                    raise self._refuse("yaml.alias", f"there is no anchor {event.anchor!r}", mark)
                node = anchors[event.anchor]
                if id(node) in opened:
                    raise self._refuse("yaml.alias", f"the anchor {event.anchor!r} contains itself", mark)
            elif isinstance(event, yaml.ScalarEvent):
                plain = event.style is None or event.style == ""
                node = _Scalar(mark, scalar(event.value) if plain and event.tag is None else event.value)
            elif isinstance(event, yaml.SequenceStartEvent):
                node = _List(mark)
            elif isinstance(event, yaml.MappingStartEvent):
                node = _Map(mark)
            else:
                continue
            tag = getattr(event, "tag", None)
            if tag is not None and tag != "!" and not isinstance(event, yaml.AliasEvent):
                raise self._refuse("yaml.tag", f"the tag {tag!r} is not used in scenarios", mark)
            is_key = self._place(stack, node, event, mark)
            if not stack and root is None:
                root = node
            anchor = getattr(event, "anchor", None)
            if anchor is not None and not isinstance(event, yaml.AliasEvent):
                anchors[anchor] = node
            if not is_key and isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                if len(stack) >= DEEPEST:
                    raise self._refuse("yaml.depth", f"nested deeper than {DEEPEST} levels", mark)
                assert isinstance(node, _List | _Map)
                stack.append((node, None, mark))
                opened.add(id(node))
        return root if root is not None else _Scalar((0, 0), None)

    def _place(
        self,
        stack: list[tuple[_List | _Map, str | None, tuple[int, int]]],
        node: _Node,
        event: Any,
        mark: tuple[int, int],
    ) -> bool:
        """Adds a node to its parent; returns True if it is a key."""
        if not stack:
            return False
        parent, key, key_mark = stack[-1]
        if isinstance(parent, _List):
            parent.items.append(node)
            return False
        if key is None:
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refuse("yaml.key", "a key must be plain text", mark)
            # Keys are always text: a node may be called 1.
            word = _MERGE if event.value == "<<" and not event.style else event.value
            if word in parent.pairs and word not in parent.merged:
                first = parent.pairs[word][0][0] + 1
                raise self._refuse(
                    "key.duplicate",
                    f"the key {word!r} is given twice",
                    mark,
                    f"the first is in line {first}",
                )
            stack[-1] = (parent, word, mark)
            return True
        stack[-1] = (parent, None, mark)
        if key == _MERGE:
            self._merge(parent, node, mark)
        else:
            parent.merged.discard(key)
            parent.pairs[key] = (key_mark, node)
        return False

    def _merge(self, parent: _Map, node: _Node, mark: tuple[int, int]) -> None:
        parts = node.items if isinstance(node, _List) else [node]
        for part in parts:
            if not isinstance(part, _Map):
                raise self._refuse("yaml.merge", "'<<' takes a mapping, or a list of them", mark)
            for key, value in part.pairs.items():
                if key not in parent.pairs:
                    parent.pairs[key] = value
                    parent.merged.add(key)


def _build(node: _Node, budget: list[int], name: str) -> Any:
    budget[0] -= 1
    if budget[0] < 0:
        raise ScenarioError("yaml.size", f"more than {MOST_VALUES} values", where=name)
    if isinstance(node, _Scalar):
        return node.value
    if isinstance(node, _List):
        return [_build(item, budget, name) for item in node.items]
    return {key: _build(value, budget, name) for key, (_, value) in node.pairs.items()}


class _Writer(_Dumper):  # type: ignore[misc]
    """Writes YAML that the reader reads back unchanged."""


def _text(writer: Any, value: str) -> Any:
    # Quote text that this reader (YAML 1.2) or a YAML 1.1 reader would parse as another type.
    plain = scalar(value) == value and isinstance(scalar(value), str)
    style = "|" if "\n" in value else None if plain else "'"
    return writer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Writer.add_representer(str, _text)


def write(data: Any) -> str:
    """Returns plain data as YAML, keys in their order."""
    text: str = yaml.dump(data, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=100)
    return text
