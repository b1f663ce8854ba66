"""The scenario that an importer writes, part by part."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from airloom.errors import ScenarioError
from airloom.scenario.model.base import NAME_PATTERN
from airloom.units import foreign
from airloom.units.quantities import Duration, Rate
from airloom.units.reading import UnitError

_Quantity = TypeVar("_Quantity", Duration, Rate)
_ADDRESS = re.compile(
    r"(?:sudo\s+)?ip\s+(?:-[46]\s+)?a(?:d|dd|ddr|ddre|ddres|ddress)?\s+a(?:d|dd)?\s+(\S+/\d+)\s+dev\s+(\S+)\s*"
)


class Draft:
    """Nodes, switches, links and programs of a laboratory in the words of a scenario."""

    def __init__(self, path: Path, kind: str):
        self.path = path
        self.kind = kind
        self.nodes: dict[str, dict[str, Any]] = {}
        self.switches: dict[str, dict[str, Any]] = {}
        self.links: list[dict[str, Any]] = []
        self.programs: list[dict[str, Any]] = []
        self.top: dict[str, Any] = {"name": self.tidy(path.name.split(".")[0] or "lab")}
        self.notes: list[str] = []
        """What is the same in other words."""
        self.lost: list[str] = []
        """What is not carried over."""
        self._names: dict[str, str] = {}

    @property
    def data(self) -> dict[str, Any]:
        """Returns the scenario as plain data, without empty parts."""
        parts = {"nodes": self.nodes, "switches": self.switches, "links": self.links}
        return {**self.top, **{key: one for key, one in (parts | {"programs": self.programs}).items() if one}}

    def refuse(self, message: str, cure: str | None = None, code: str = "import.word") -> NoReturn:
        """Raises the error of a word that cannot be carried over."""
        raise ScenarioError(code, message, where=str(self.path), cure=cure)

    def note(self, text: str) -> None:
        """Adds a note once."""
        if text not in self.notes:
            self.notes.append(text)

    def lose(self, text: str) -> None:
        """Adds something that is not carried over, once."""
        if text not in self.lost:
            self.lost.append(text)

    def lose_keys(self, place: str, said: dict[str, Any], known: set[str]) -> None:
        """Lists the keys of a mapping that no importer reads."""
        for key in said:
            if key not in known:
                self.lose(f"{place}: {key}")

    @staticmethod
    def tidy(name: str) -> str:
        """Returns a name that a scenario allows."""
        if re.match(NAME_PATTERN, name):
            return name
        plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        return re.sub(r"[^A-Za-z0-9_-]+", "-", plain)[:63].strip("-_") or "n"

    def name(self, said: str) -> str:
        """Returns the name of a node of the file, the same for the same one; notes one that changes."""
        if said not in self._names:
            found, count = self.tidy(said), 1
            while found in self._names.values():
                count += 1
                found = f"{self.tidy(said)[:58]}-{count}"
            self._names[said] = found
            if found != said:
                self.note(f"{said!r} is called {found!r}")
        return self._names[said]

    def add_image(self, node: dict[str, Any], name: str, image: str | None) -> None:
        """Makes a node a container of an image in a registry, unless the kind is another."""
        if image is None or self.kind != "container":
            if image is not None:
                self.note(f"{name}: the programs are those of this machine, and not of the image {image}")
            return
        node["kind"] = "container"
        node["image"] = f"docker://{image}"
        self.note("images come from their registry; with --kind netns the programs are this machine's")

    def add_link(self, ends: Sequence[str], said: dict[str, Any] | None = None) -> None:
        """Adds a link between two ends, ``node`` or ``node:interface``."""
        self.links.append({"ends": list(ends), **(said or {})})

    def interface(self, node: str, name: str) -> dict[str, Any]:
        """Returns the settings of a node's interface, to be filled."""
        found: dict[str, Any] = self.nodes[node].setdefault("interfaces", {}).setdefault(name, {})
        return found

    def add_address(self, node: str, interface: str, address: str) -> None:
        """Gives an interface an address."""
        addresses: list[str] = self.interface(node, interface).setdefault("addresses", [])
        if address not in addresses:
            addresses.append(address)

    def address_of(self, line: str, interfaces: set[str]) -> tuple[str, str] | None:
        """Returns interface and address of a command that gives a link's end an address."""
        found = _ADDRESS.fullmatch(line.strip())
        return (found[2], found[1]) if found is not None and found[2] in interfaces else None

    def add_program(self, name: str, node: str, run: str | list[str] | None, **said: Any) -> str:
        """Adds a program; returns its name."""
        taken = {program["name"] for program in self.programs}
        name, count = self.tidy(name), 1
        stem = name
        while name in taken:
            count += 1
            name = f"{stem[:58]}-{count}"
        program = {"name": name, "node": node, **({} if run is None else {"run": run})}
        self.programs.append(program | {key: one for key, one in said.items() if one not in (None, {}, [])})
        return name

    def words(self, where: str, line: str) -> list[str]:
        """Returns the arguments of a command line."""
        try:
            return shlex.split(line)
        except ValueError as error:
            self.refuse(f"{where}: {line[:60]!r} is no command line: {error}")

    def duration(self, where: str, text: Any) -> str:
        """Returns a duration in a scenario's words."""
        return self._quantity(where, text, foreign.duration)

    def rate(self, where: str, text: Any) -> str:
        """Returns a rate in a scenario's words."""
        return self._quantity(where, text, foreign.rate)

    def _quantity(self, where: str, text: Any, read: Callable[[str], _Quantity]) -> str:
        try:
            return read(str(text)).text
        except UnitError as error:
            self.refuse(f"{where}: {error.message}", error.cure)

    def number(self, where: str, value: Any, least: float = 0, most: float = 1e15) -> float:
        """Returns a number in a range."""
        try:
            found = float(value)
        except (TypeError, ValueError):
            found = -1.0
        if isinstance(value, bool) or not least <= found <= most:
            self.refuse(f"{where}: {value!r} is not a number from {least:g} to {most:g}")
        return found

    def percent(self, where: str, value: Any) -> str:
        """Returns a share that the file gives in percent."""
        text = str(value).strip().removesuffix("%")
        return f"{self.number(where, text, 0, 100):.12g} %"

    def mapping(self, where: str, value: Any) -> dict[str, Any]:
        """Returns a mapping; nothing is an empty one."""
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.refuse(f"{where}: it is no mapping")
        return value

    def listing(self, where: str, value: Any) -> list[Any]:
        """Returns a list; nothing is an empty one."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(f"{where}: it is no list")
        return value
