"""Distances on the Earth, and the delay of light in fibre over them.

The distance of two places is that of the great circle on a sphere, by the haversine formula:
``a = sin((lat2 - lat1) / 2)^2 + cos(lat1) * cos(lat2) * sin((lon2 - lon1) / 2)^2``,
``distance = 2 * R * asin(sqrt(a))``. R is the mean radius of the Earth, 6371.0088 km (IUGG).
Light in fibre has 2/3 of its speed in vacuum: ``delay = distance / (2/3 * 299792458 m/s)``,
which is 5.003 us for a kilometre.
"""

from __future__ import annotations

import math

EARTH = 6_371_008.8
"""Mean radius of the Earth in metres."""
FIBRE = 299_792_458 * 2 / 3
"""Speed of light in fibre in m/s."""

Place = tuple[float, float]
"""Latitude and longitude in degrees: north and east are positive."""


def great_circle(a: Place, b: Place) -> float:
    """Returns the distance of two places in metres."""
    (lat1, lon1), (lat2, lon2) = ((math.radians(lat), math.radians(lon)) for lat, lon in (a, b))
    chord = (
        math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH * math.asin(math.sqrt(min(1.0, chord)))


def fibre_delay(a: Place, b: Place) -> int:
    """Returns the propagation delay of a fibre along the great circle, in ns."""
    return round(great_circle(a, b) / FIBRE * 1e9)
