"""Reads GML, the Graph Modelling Language, as the Topology Zoo, Shadow and yEd write it.

A list of keys and values in brackets, as in ``node [ id 0 label "Paris" ]``; text may span lines and
has HTML entities. ``label`` may be missing or appear twice, and several edges may join two nodes: ids
alone identify nodes. Values that are lists, such as ``graphics``, are not attributes.

Source: M. Himsolt, GML: A portable Graph File Format, University of Passau, 1997.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<comment>\#[^\n]*)|(?P<open>\[)|(?P<close>\])|"(?P<text>[^"]*)"
    |(?P<number>[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d+)?)(?![\w.])|(?P<key>[A-Za-z_]\w*)""",
    re.VERBOSE,
)
DEEPEST = 100
"""Deepest nesting of lists."""


class GmlError(ValueError):
    """A text is not GML; the message begins with the line."""


class _List(list[tuple[str, Any]]):
    """Keys with their values, in the order of the text, and the line in which the list begins."""

    def __init__(self, line: int):
        super().__init__()
        self.line = line

    def plain(self) -> dict[str, Any]:
        """Returns the values that are no lists; the first of several with one key."""
        found: dict[str, Any] = {}
        for key, value in self:
            if not isinstance(value, _List):
                found.setdefault(key, value)
        return found


def read(text: str) -> Any:
    """Returns the graph of a GML text as a multigraph of networkx; raises :class:`GmlError`."""
    graphs = [value for key, value in _parsed(text) if key == "graph" and isinstance(value, _List)]
    if not graphs:
        raise GmlError("it has no 'graph [ ... ]'")
    top = graphs[0]
    directed = top.plain().get("directed") == 1
    # The library takes long to load, and is of an extra.
    import networkx

    graph = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    for word, said in top:
        if word == "node" and isinstance(said, _List):
            plain = said.plain()
            if "id" not in plain:
                raise GmlError(f"line {said.line}: a node has no id")
            node = plain.pop("id")
            if node in graph:
                raise GmlError(f"line {said.line}: two nodes have the id {node}")
            graph.add_node(node, **plain)
    for word, said in top:
        if word == "edge" and isinstance(said, _List):
            plain = said.plain()
            ends = []
            for end in ("source", "target"):
                node = plain.pop(end, None)
                if node is None or node not in graph:
                    what = f"has no {end}" if node is None else f"ends at the node {node}, which is not there"
                    raise GmlError(f"line {said.line}: an edge {what}")
                ends.append(node)
            graph.add_edge(*ends, None, **{("edge_key" if k == "key" else k): v for k, v in plain.items()})
    return graph


def _parsed(text: str) -> _List:
    top = _List(1)
    stack = [top]
    key: str | None = None
    for line, kind, value in _tokens(text):
        if kind == "close":
            if key is not None or len(stack) == 1:
                raise GmlError(f"line {line}: a ']' that closes nothing, or stands in place of a value")
            stack.pop()
        elif key is None:
            if kind != "key":
                raise GmlError(f"line {line}: {value!r} stands where a key is expected")
            key = value
        else:
            if kind == "open":
                inner = _List(line)
                stack[-1].append((key, inner))
                stack.append(inner)
                if len(stack) > DEEPEST:
                    raise GmlError(f"line {line}: nested deeper than {DEEPEST} levels")
            elif kind == "key" and value.lower() not in ("nan", "inf"):
                raise GmlError(f"line {line}: the key {key!r} has no value")
            else:
                stack[-1].append((key, value))
            key = None
    if len(stack) > 1:
        raise GmlError(f"line {stack[-1].line}: the list that begins here has no ']'")
    return top


def _tokens(text: str) -> Iterator[tuple[int, str, Any]]:
    at, line = 0, 1
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise GmlError(f"line {line}: {text[at : at + 20].splitlines()[0]!r} is not GML")
        kind = found.lastgroup or ""
        word = found[kind]
        if kind == "number":
            yield line, kind, int(word) if re.fullmatch(r"[+-]?\d{1,18}", word) else float(word)
        elif kind == "text":
            yield line, kind, html.unescape(word)
        elif kind not in ("space", "comment"):
            yield line, kind, word
        line += found[0].count("\n")
        at = found.end()
