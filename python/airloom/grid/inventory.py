"""The inventory of a testbed: its radio nodes, and on which terms they are lent.

It is a YAML file that is checked like a scenario: every error names file, line, path and cure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from airloom.errors import ScenarioError, translated
from airloom.grid.lengths import WindowLength
from airloom.planning.radio import media
from airloom.planning.radio.channels import HT, mhz_of
from airloom.planning.radio.radios import RadioEnd
from airloom.planning.rules.ask import refusal
from airloom.planning.rules.media import of_noise
from airloom.scenario import problems
from airloom.scenario.model import Medium, Noise
from airloom.scenario.model.base import Count, Listed, Mapped, Model, Name, by_name
from airloom.scenario.model.media import Slots
from airloom.scenario.model.motion import Position
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_, Source
from airloom.units.quantities import Length, Power, Ratio

MOST_NODES = 2000
SECOND = 1_000_000_000
_ANY_MAC = bytes((2, 0, 0, 0, 0, 1))
MEDIUM = "air"
"""Name of the testbed's medium."""

RadioNames = Annotated[list[Name], Field(min_length=1, max_length=16)]


class LentNode(Model):
    """A radio node."""

    position: Position = Field(description="place")
    radios: RadioNames = Field(default=["wlan0"], description="names of its radios")


class Rows(Model):
    """Nodes in rows and columns: ``n1x1``, ``n1x2``, ... (row x column)."""

    rows: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(description="rows, along y")
    columns: Annotated[int, Field(ge=1, le=1000, strict=True)] = Field(description="columns, along x")
    spacing: Length = Field(default=Length("1 m"), description="distance of neighbours")
    radios: RadioNames = Field(default=["wlan0"], description="names of each node's radios")
    prefix: Name = Field(default="n", description="first letters of the names")


class Terms(Model):
    """Limits of reservations."""

    longest: WindowLength = Field(default=WindowLength("7 d"), description="longest window")
    ahead: WindowLength = Field(
        default=WindowLength("90 d"), description="how long before its end one may book"
    )
    waiting: Count = Field(default=200, description="most requests in the queue")


class Inventory(Model):
    """The nodes of a testbed, its medium, and on which terms radios, channels and slots are lent."""

    name: Name = Field(description="name of the testbed")
    description: str = Field(default="", description="free text")
    medium: Medium = Field(
        default=Medium(),
        description="propagation between its radios, and sources of noise, as in a scenario's `media`",
    )
    channels: Annotated[
        list[Annotated[int, Field(ge=1, le=200, strict=True)]], Field(min_length=1, max_length=64)
    ] = Field(description="numbers of the channels that are lent")
    power: Power = Field(default=media.DEFAULT_POWER, description="largest transmit power")
    isolation: Ratio = Field(
        default=Ratio("10 dB"), description="interference between slices stays this far below the noise"
    )
    slots: Slots = Field(default=Slots(frame=1), description="frame of time division")
    terms: Terms = Field(default=Terms(), description="limits of reservations")
    grid: Rows | None = Field(default=None, description="nodes in rows and columns")
    nodes: Annotated[dict[Name, LentNode], Mapped] = Field(
        default={}, description="nodes by name, in addition to `grid`", json_schema_extra=by_name
    )
    closed: Annotated[list[Name], Listed] = Field(default=[], description="nodes that are not lent")


@dataclass(frozen=True, slots=True)
class Testbed:
    """A checked inventory with all its nodes."""

    inventory: Inventory
    nodes: dict[str, LentNode]
    """Nodes that are lent, by name, in the order of the inventory."""

    @property
    def phy(self) -> str:
        """The physical layer of all radios."""
        return media.phy_of(_said(self.inventory.medium))

    @property
    def frame(self) -> int:
        """Slots in a frame."""
        return self.inventory.slots.frame

    def place(self, node: str) -> tuple[float, float, float]:
        """Returns a node's position in metres."""
        return _metres(self.nodes[node].position)


def load(path: str | Path) -> Testbed:
    """Reads and checks an inventory; raises :class:`ScenarioError` with the places of all mistakes."""
    return checked(Source.of_file(Path(path)))


def checked(source: Source) -> Testbed:
    """Returns the testbed of a source."""
    if not isinstance(source.data, dict):
        raise ScenarioError(
            "value.type",
            "an inventory is a mapping",
            where=source.where(()),
            cure="begin with 'name:', then 'channels:' and 'grid:' or 'nodes:'",
        )
    if "noise" in source.data:
        raise ScenarioError(
            "inventory.noise",
            "the noise is computed, and not typed: from the noise figure of the medium's radio and from its "
            "sources of noise",
            where=source.where(("noise",), key=True),
            cure="leave it out, or put sources on the air: medium: {noise: [{position: ..., power: ..., "
            "channel: ...}]}",
        )
    try:
        inventory = Inventory.model_validate(source.data, context={"folder": source.folder.absolute()})
    except ValidationError as error:
        raise problems.of_shape(error, source) from None
    except RecursionError:
        raise ScenarioError("yaml.depth", "nested too deeply", where=source.where(())) from None
    nodes = dict(_rows(inventory.grid))
    problems.raise_first(_mistakes(inventory, nodes), source)
    nodes |= inventory.nodes
    lent = {name: node for name, node in nodes.items() if name not in inventory.closed}
    return Testbed(inventory, lent)


def radio(testbed: Testbed, node: str, number: int) -> tuple[dict[str, object], dict[str, object]]:
    """Returns settings and motion of a node's radio in the engine's encoding, at 0 dBm.

    It stands on the lowest channel, where the loss is least.
    """
    said = {**_said(testbed.inventory.medium), "channel": min(testbed.inventory.channels, key=mhz_of)}
    said |= {"power": Power("0 dBm"), "rate": "minstrel"}
    end = RadioEnd(node, testbed.nodes[node].radios[0], MEDIUM, (), said)
    mac = f"02:00:00:00:{number >> 8 & 255:02x}:{number & 255:02x}"
    return media.radio(end, mac), {"static": media.place(testbed.nodes[node].position)}


def noise_radio(testbed: Testbed, source: Noise, channel: int) -> tuple[dict[str, object], dict[str, object]]:
    """Returns settings and motion of a radio that sends 0 dBm without antenna gain from where a source
    of noise stands.
    """
    said = {"phy": testbed.inventory.medium.radio.phy or "802.11a", "channel": channel}
    end = RadioEnd("noise", "wlan0", MEDIUM, (), {**said, "power": Power("0 dBm"), "rate": "minstrel"})
    return media.radio(end, "02:00:00:01:00:00"), media.motion(source)


def gain_dbi(testbed: Testbed) -> float:
    """Returns the antenna gain of all radios in dBi."""
    return float(testbed.inventory.medium.radio.gain or 0)


def _said(medium: Medium) -> dict[str, object]:
    found = {key: getattr(medium.radio, key) for key in medium.radio.model_fields_set}
    return {key: value for key, value in found.items() if value is not None}


def _metres(position: Position) -> tuple[float, float, float]:
    x, y, z = (*(float(value) for value in position), 0.0)[:3]
    return x, y, z


def _rows(rows: Rows | None) -> Iterator[tuple[str, LentNode]]:
    for number in range(0 if rows is None else min(rows.rows * rows.columns, MOST_NODES + 1)):
        assert rows is not None
        row, column = divmod(number, rows.columns)
        place = [Length(column * float(rows.spacing)), Length(row * float(rows.spacing))]
        yield f"{rows.prefix}{row + 1}x{column + 1}", LentNode(position=place, radios=rows.radios)


def _mistakes(inventory: Inventory, generated: dict[str, LentNode]) -> Iterator[Problem]:
    """Yields what the shape alone does not show."""
    if not generated and not inventory.nodes:
        cure = "give `grid: {rows: 20, columns: 20}`, or nodes by name"
        yield Problem("inventory.empty", "there are no nodes", (), cure)
    if len(generated) + len(inventory.nodes) > MOST_NODES:
        yield Problem("inventory.size", f"more than {MOST_NODES} nodes", ("grid",), key=True)
    if inventory.grid is not None and inventory.grid.spacing <= 0:
        yield Problem("inventory.spacing", "the spacing must be above zero", ("grid", "spacing"))
    for name in inventory.nodes:
        if name in generated:
            yield Problem("name.duplicate", f"`grid` makes a node {name!r} too", ("nodes", name), key=True)
    known = {**generated, **inventory.nodes}
    for index, name in enumerate(inventory.closed):
        if name not in known:
            yield Problem("node.unknown", f"there is no node {name!r}", ("closed", index))
    if known and set(known) <= set(inventory.closed):
        yield Problem("inventory.empty", "all nodes are closed", ("closed",), key=True)
    named: dict[Path_, list[str]] = {("nodes", name): one.radios for name, one in inventory.nodes.items()}
    for path, radios in {**named, ("grid",): inventory.grid.radios if inventory.grid else []}.items():
        if len(set(radios)) < len(radios):
            yield Problem("name.duplicate", "a radio is named twice", (*path, "radios"))
    yield from _channels(inventory)
    for index, noise in enumerate(inventory.medium.noise):
        yield from of_noise(noise, ("medium", "noise", index))
    if inventory.slots.guard >= inventory.slots.length:
        yield Problem(
            "inventory.slots", "the guard takes the whole slot", ("slots", "guard"), "make it shorter"
        )
    else:
        radio = {"mac": _ANY_MAC, "slots": media.slots(inventory.slots, [0])}
        found = refusal(lambda engine: engine.check_radio("radios", radio))
        if found is not None:
            yield Problem(found[0], found[1].partition(": ")[2], ("slots", "length"))
    for key in ("longest", "ahead"):
        if getattr(inventory.terms, key) < SECOND:
            yield Problem("inventory.terms", "shorter than 1 s", ("terms", key))


def _channels(inventory: Inventory) -> Iterator[Problem]:
    phy = media.phy_of(_said(inventory.medium))
    if phy == HT:
        # Its isolation is computed for radios of any rate.
        yield Problem(
            "inventory.phy",
            "a testbed does not lend radios of 802.11n",
            ("medium", "radio", "phy"),
            "802.11a, 802.11b, 802.11g or 802.11bg",
        )
        return
    for index, channel in enumerate(inventory.channels):
        if channel in inventory.channels[:index]:
            yield Problem("name.duplicate", f"channel {channel} is given twice", ("channels", index))
        problem = unusable(phy, channel)
        if problem is not None:
            yield Problem(
                "radio.channel", problem, ("channels", index), "such as 36 with 802.11a, 1 with 802.11b"
            )


def unusable(phy: str, channel: int) -> str | None:
    """Returns why a physical layer cannot use a channel; None if it can. The engine decides."""
    from airloom import _engine

    end = RadioEnd("n", "wlan0", MEDIUM, (), {"phy": phy.removesuffix("-short"), "channel": channel})
    try:
        with translated():
            _engine.check_radio("n:wlan0", media.radio(end, "02:00:00:00:00:01"))
    except ScenarioError as error:
        return error.message
    return None
