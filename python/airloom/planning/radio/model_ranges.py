"""Notes on propagation models outside the range that they were made for."""

from __future__ import annotations

from airloom.scenario.model import Scenario

_OUTSIDE = {
    "cost231": "it was measured at 1.5 to 2 GHz, over 1 to 20 km, with one antenna 30 to 200 m high; all "
    "channels of a radio lie above, so its losses are extrapolated",
}
"""What a model was made for, if that does not include the bands of the radios."""


def notes(scenario: Scenario) -> list[str]:
    """Returns a note for each medium whose model is used outside its range."""
    return [
        f"media.{name}.propagation: {model}: {_OUTSIDE[model]}"
        for name, medium in scenario.media.items()
        if (model := medium.propagation.model) in _OUTSIDE and medium.access.model != "none"
    ]
