"""Reads networks of SNDlib, in its XML and in its native text.

Nodes have ``x`` and ``y``, which are longitude and latitude if the coordinates are geographical, and
links a ``capacity``: the one that is installed, else that of the smallest module. Demands and costs are
not part of a network here.

Source: S. Orlowski, M. Pioro, A. Tomaszewski, R. Wessaely: SNDlib 1.0, Networks 55(3), 2010; formats:
sndlib.zib.de.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    import networkx

# Of single lines, and possessive: what cannot match ends at once.
_NUMBER = r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d++)?"
_NODE = re.compile(rf"([^\s(]++)\s*+\(\s*+({_NUMBER})\s++({_NUMBER})\s*+\)")
_LINK = re.compile(
    rf"([^\s(]++)\s*+\(\s*+([^\s)]++)\s++([^\s)]++)\s*+\)((?:\s++{_NUMBER}){{4}})\s*+\(((?:\s*+{_NUMBER})*+)\s*+\)"
)
_SECTION = re.compile(r"([A-Z_]++)\s*+\(\s*+")


class SndlibError(ValueError):
    """A text is not a network of SNDlib."""


def read(text: str) -> tuple[networkx.MultiGraph, bool, list[str]]:
    """Returns the graph, whether its coordinates are geographical, and what is not read."""
    return _xml(text) if text.lstrip().startswith("<") else _native(text)


def _empty() -> networkx.MultiGraph:
    # The library takes long to load, and is of an extra.
    import networkx

    return networkx.MultiGraph()


def _xml(text: str) -> tuple[networkx.MultiGraph, bool, list[str]]:
    try:
        # The declaration names the encoding of the octets, which are decoded already.
        root = ElementTree.fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", text))
    except ElementTree.ParseError as error:
        raise SndlibError(str(error)) from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    structure = root.find("networkStructure")
    nodes = None if structure is None else structure.find("nodes")
    links = None if structure is None else structure.find("links")
    if nodes is None or links is None:
        raise SndlibError("it has no networkStructure with nodes and links")
    graph = _empty()
    for node in nodes.iter("node"):
        place = {axis: float(value) for axis in ("x", "y") if (value := node.findtext(f"coordinates/{axis}"))}
        graph.add_node(node.get("id", ""), **place)
    for link in links.iter("link"):
        source, target = (link.findtext("source") or "").strip(), (link.findtext("target") or "").strip()
        installed = [float(one.text or 0) for one in link.findall("preInstalledModule/capacity")]
        modules = [float(one.text or 0) for one in link.findall("additionalModules/addModule/capacity")]
        _add(graph, link.get("id", ""), source, target, sum(installed), modules)
    unread = sorted({child.tag for child in root if child.tag not in ("networkStructure", "meta")})
    return graph, nodes.get("coordinatesType", "geographical") == "geographical", unread


def _native(text: str) -> tuple[networkx.MultiGraph, bool, list[str]]:
    graph = _empty()
    sections = dict(_sections(text))
    for name, x, y in _rows(_NODE, sections.get("NODES", [])):
        graph.add_node(name, x=float(x), y=float(y))
    for name, source, target, said, modules in _rows(_LINK, sections.get("LINKS", [])):
        installed = float(said.split()[0])
        _add(graph, name, source, target, installed, [float(one) for one in modules.split()[::2]])
    if not graph:
        raise SndlibError("its section NODES has no node with coordinates")
    # The native text does not say what its coordinates are.
    world = all(abs(said["x"]) <= 180 and abs(said["y"]) <= 90 for _, said in graph.nodes(data=True))
    unread = sorted(name.lower() for name in sections if name not in ("NODES", "LINKS", "META"))
    return graph, world, unread


def _rows(form: re.Pattern[str], lines: list[str]) -> Iterator[tuple[str, ...]]:
    for line in lines:
        if found := form.fullmatch(line.strip()):
            yield found.groups()


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yields the lines of the sections ``NAME ( ... )``, whose last line is a lone bracket."""
    name, inside = "", list[str]()
    for line in text.splitlines():
        if line.lstrip().startswith(("#", "?")):
            continue
        if found := _SECTION.fullmatch(line):
            name, inside = found[1], []
        elif name and line.rstrip() == ")":
            yield name, inside
            name = ""
        else:
            inside.append(line)


def _add(
    graph: networkx.MultiGraph, name: str, source: str, target: str, installed: float, modules: list[float]
) -> None:
    for end in (source, target):
        if end not in graph:
            raise SndlibError(f"link {name}: there is no node {end!r}")
    capacity = installed if installed > 0 else min((one for one in modules if one > 0), default=0.0)
    graph.add_edge(source, target, **({"capacity": capacity} if capacity > 0 else {}))
