"""Numbers and frequencies of channels, as in ``engine/src/medium/phy/channel.rs``.

The centre of channels 1 to 13 is 2407 MHz plus 5 MHz times their number, of channel 14 2484 MHz, of
channels at 5 GHz 5000 MHz plus 5 MHz times their number. The engine checks whether a physical layer
has a channel.
"""

from __future__ import annotations

from airloom.units.quantities import Frequency

_JAPAN, _JAPAN_MHZ = 14, 2484
BOTH = "802.11abg"
"""The physical layer of both bands."""
HT = "802.11n"
"""The physical layer whose channel decides on the band, and is at 5 GHz by default."""
_TWO, _FIVE = 2407, 5000
"""Centre frequency in MHz of channel 0 in each band."""


def mhz_of(number: int) -> int:
    """Returns the centre frequency of a channel in MHz."""
    if number == _JAPAN:
        return _JAPAN_MHZ
    return (_TWO if number < _JAPAN else _FIVE) + 5 * number


def number_of(channel: int | Frequency, phy: str) -> int:
    """Returns the number of a channel given by number or centre frequency; 0 if there is none."""
    if not isinstance(channel, Frequency):
        return int(channel)
    mhz, rest = divmod(int(channel), 1_000_000)
    five = phy == "802.11a" or (phy in (BOTH, HT) and mhz > _FIVE)
    if not five and mhz == _JAPAN_MHZ and not rest:
        return _JAPAN
    above = mhz - (_FIVE if five else _TWO)
    return 0 if rest or above % 5 else max(0, above // 5)


def default_number(phy: str) -> int:
    """Returns the channel of a radio without a ``channel``; that of both bands begins at 2.4 GHz."""
    return 36 if phy in ("802.11a", HT) else 1
