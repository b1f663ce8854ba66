"""Rules of cards: physical radios that several radios share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airloom.planning.network import Network
from airloom.planning.radio import media as words
from airloom.planning.radio.channels import default_number
from airloom.planning.radio.radios import RadioEnd
from airloom.planning.rules.ask import asked
from airloom.scenario.model import Medium, Scenario
from airloom.scenario.problems import Problem
from airloom.scenario.source import Path_
from airloom.scenario.suggest import nearest
from airloom.units.quantities import Duration

_KEYS = {
    "virtual_macs": "virtual_macs",
    "dwell_ns": "dwell",
    "switch_ns": "switch",
    "scan_age_ns": "scan_age",
}
"""The engine's name of a setting: the scenario's key."""


def problems(scenario: Scenario, network: Network) -> Iterator[Problem]:
    """Yields what is wrong with cards and the radios that share them."""
    for end in network.radios:
        known = scenario.media[end.medium].cards
        name = end.said.get("card")
        if name is not None and name not in known:
            yield Problem(
                "card.unknown",
                f"the medium {end.medium!r} has no card {name!r}",
                end.said_at("card"),
                nearest(name, known) if known else f"describe it: cards: {{{name}: {{}}}} at the medium",
            )
    for name, medium in scenario.media.items():
        for card, ends in words.cards(name, medium, network.radios).items():
            yield from _together(card, ends, network)
            yield from _settings(name, medium, card, ends)


def _together(card: str, ends: list[RadioEnd], network: Network) -> Iterator[Problem]:
    """Checks that the nodes of a card stand at one place and move alike."""
    for end in ends[1:]:
        first, node = network.nodes[ends[0].node], network.nodes[end.node]
        for key in ("position", "mobility"):
            if getattr(first, key) != getattr(node, key):
                yield Problem(
                    "card.position",
                    f"{end.node!r} and {ends[0].node!r} share the card {card!r}, but not their {key}",
                    end.said_at("card"),
                    f"give both the same {key}",
                )
                break


def _settings(name: str, medium: Medium, card: str, ends: list[RadioEnd]) -> Iterator[Problem]:
    """Asks the engine whether it accepts the card."""
    settings, path = words.card(medium.cards[card]), ("media", name, "cards", card)
    if not ends:
        yield Problem(
            "card.unused", f"no radio shares the card {card!r}", path, f"card: {card} at its radios", key=True
        )
        return

    def check(module: Any) -> None:
        engine = module.Engine(1)
        engine.add_medium(name, {})
        for number, end in enumerate(ends):
            engine.add_memory_port(end.port)
            phy = words.phy_of(end.said)
            radio = {"mac": [2, 0, 0, 0, *divmod(number, 256)], "phy": phy, "channel": default_number(phy)}
            engine.add_radio(name, end.port, radio, {"static": {"x": 0.0, "y": 0.0, "z": 0.0}}, end.node)
        engine.add_card(name, card, settings, [end.port for end in ends])

    error = asked(check)
    # The settings of a radio have a check of their own.
    if error is not None and str(error.args[0]) == "card.range":
        yield _objection(str(error.args[1]), path, ends, settings)


def _objection(message: str, path: Path_, ends: list[RadioEnd], settings: dict[str, Any]) -> Problem:
    """Returns the engine's error on a card, at the place of the setting."""
    setting, _, rest = message.partition(": ")[2].partition(" = ")
    value, _, range = rest.partition(" is outside ")
    if setting in _KEYS:
        text = Duration(int(value)).text if setting.endswith("_ns") else value
        allowed = range.partition(",")[0]
        return Problem("card.range", f"{text} is outside {allowed}", (*path, _KEYS[setting]))
    if setting == "phy":
        other = next(end for end in ends if words.phy_of(end.said) == value)
        return Problem(
            "card.phy",
            f"the radios of the card {path[-1]!r} have several physical layers",
            other.said_at("card"),
            f"the same phy for all, such as phy: {words.phy_of(ends[0].said)}",
        )
    most = int(settings["virtual_macs"])
    return Problem(
        "card.virtual_macs",
        f"{len(ends)} radios share the card {path[-1]!r}, whose limit is {most}",
        ends[most].said_at("card"),
        f"at most {most}, or more virtual_macs of the card",
    )
