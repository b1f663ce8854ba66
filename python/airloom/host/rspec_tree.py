"""Reads an RSpec of GENI, XML that others wrote, into a small tree, with the line of each element.

The reader is the standard library's expat, with limits. A document type declaration is refused, so
there are no entities to expand and nothing to fetch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from airloom.errors import ScenarioError

LARGEST = 4 * 2**20
"""Largest document in octets."""
MOST = 50_000
"""Most elements."""
DEEPEST = 32
"""Deepest nesting of elements."""
LONGEST = 1024
"""Longest value of an attribute that is read, in characters."""
_SEPARATOR = "\n"
"""Between namespace and name: it occurs in neither."""


@dataclass(slots=True)
class Element:
    """An element: its namespace, name and attributes; attributes of other namespaces are left out."""

    namespace: str
    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)

    def each(self, name: str) -> Iterator[Element]:
        """Yields the children with a name in the element's own namespace."""
        return (one for one in self.children if (one.namespace, one.name) == (self.namespace, name))

    def first(self, name: str) -> Element | None:
        """Returns the first of them, if there is one."""
        return next(self.each(name), None)

    def refusal(self, source: str, message: str, cure: str | None = None) -> ScenarioError:
        """Returns an error that names the element."""
        own = self.attributes.get("client_id")
        shown = f"<{self.name}>" if own is None else f"<{self.name} client_id={own[:40]!r}>"
        return ScenarioError("rspec.wrong", f"{shown}: {message}", where=f"{source}:{self.line}", cure=cure)

    def must(self, source: str, key: str) -> str:
        """Returns an attribute; raises an error if it is missing or empty."""
        value = self.get(source, key)
        if value is None:
            raise self.refusal(source, f"it has no {key}", f'{key}="..."')
        return value

    def get(self, source: str, key: str) -> str | None:
        """Returns an attribute without white space around it; None if it is missing or empty."""
        value = self.attributes.get(key, "").strip()
        if len(value) > LONGEST:
            raise self.refusal(source, f"{key} is longer than {LONGEST} characters")
        return value or None


def parse(octets: bytes, source: str) -> Element:
    """Returns the root element; raises :class:`ScenarioError` with the line of what is wrong."""
    if len(octets) > LARGEST:
        raise ScenarioError("rspec.size", f"it is larger than {LARGEST} octets", where=source)
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    open_elements: list[Element] = []
    roots: list[Element] = []
    count = 0

    def wrong(code: str, message: str, cure: str | None = None) -> ScenarioError:
        return ScenarioError(code, message, where=f"{source}:{parser.CurrentLineNumber}", cure=cure)

    def start(full: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST:
            raise wrong("rspec.size", f"there are more than {MOST} elements")
        if len(open_elements) >= DEEPEST:
            raise wrong("rspec.size", f"elements are nested more than {DEEPEST} deep")
        namespace, _, name = full.rpartition(_SEPARATOR)
        own = {key: value for key, value in attributes.items() if _SEPARATOR not in key}
        element = Element(namespace, name, own, parser.CurrentLineNumber)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def doctype(*_: object) -> None:
        raise wrong("rspec.doctype", "it has a document type declaration", "remove <!DOCTYPE ...>")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: open_elements.pop()
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(octets, True)
    except expat.ExpatError as error:
        message = f"it is no XML: {expat.ErrorString(error.code)}"
        raise ScenarioError("rspec.xml", message, where=f"{source}:{error.lineno}") from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        raise ScenarioError("rspec.xml", f"it is no XML: {error}", where=source) from None
    return roots[0]
