"""Numbers and frequencies of channels, as in ``engine/src/medium/phy/channel.rs``.

Channels 1 to 13 lie every 5 MHz from 2412 MHz, channel 14 at 2484 MHz, those at 5 GHz at 5000 MHz and 5 MHz
times their number. Whether a radio has a channel is the engine's to say.
"""

from __future__ import annotations

from airloom.units.quantities import Frequency

_JAPAN, _JAPAN_MHZ = 14, 2484
_TWO, _FIVE = 2407, 5000
"""MHz of the number 0 in each band."""


def mhz_of(number: int) -> int:
    """The centre of a channel."""
    if number == _JAPAN:
        return _JAPAN_MHZ
    return (_TWO if number < _JAPAN else _FIVE) + 5 * number


def number_of(channel: int | Frequency, phy: str) -> int:
    """The number of a channel that may be given by its centre frequency; 0 if no channel is there."""
    if not isinstance(channel, Frequency):
        return int(channel)
    mhz, rest = divmod(int(channel), 1_000_000)
    if phy != "802.11a" and mhz == _JAPAN_MHZ and not rest:
        return _JAPAN
    above = mhz - (_FIVE if phy == "802.11a" else _TWO)
    return 0 if rest or above % 5 else max(0, above // 5)


def default_number(phy: str) -> int:
    """The channel of a radio of which none is given."""
    return 36 if phy == "802.11a" else 1
