"""Radio media, radios and their cards."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from airloom.scenario.model.base import Count, File, Listed, Model, Name
from airloom.scenario.model.motion import Mobility, Position
from airloom.units.quantities import (
    Duration,
    Fraction,
    Frequency,
    Length,
    Power,
    Rate,
    Ratio,
    Size,
)


class Propagation(Model):
    """Path loss by distance, or for each pair of nodes. Formulas: docs/inside/models.md."""

    model: Literal["friis", "log-distance", "two-ray", "itu-indoor", "cost231", "matrix", "disk"] = Field(
        description="model of the path loss"
    )
    exponent: Annotated[float, Field(ge=0.1, le=10)] | None = Field(
        default=None, description="log-distance: path loss exponent; 2 is free space; 3 by default"
    )
    reference: Length | None = Field(
        default=None, description="log-distance: reference distance; 1 m by default"
    )
    loss: Ratio | None = Field(
        default=None,
        description="log-distance: loss at `reference`; by default that of free space at the frequency of "
        "the channel, 46.7 dB at 5.18 GHz and 40.1 dB at 2.412 GHz over 1 m; disk: loss within `range`, "
        "60 dB by default",
    )
    lowest: Length | None = Field(
        default=None, description="two-ray: smallest antenna height; 1.5 m by default"
    )
    building: Literal["residential", "office", "commercial"] | None = Field(
        default=None, description="itu-indoor: type of building; office by default"
    )
    storey: Length | None = Field(default=None, description="itu-indoor: height of a storey; 3 m by default")
    city: Literal["medium", "metropolitan"] | None = Field(
        default=None, description="cost231: size of the city; medium by default"
    )
    range: Length | None = Field(default=None, description="disk: range; required")
    file: File | None = Field(
        default=None,
        description="matrix: CSV file with a header of node names and a row for each sender; required",
    )
    numbers: Literal["loss", "snr"] | None = Field(
        default=None, description="matrix: path loss in dB (default), or signal-to-noise ratio in dB"
    )
    power: Power | None = Field(
        default=None, description="matrix of snr: transmit power; by default that of the medium's `radio`"
    )
    noise: Power | None = Field(
        default=None,
        description="matrix of snr: noise of the receiver; by default that of the medium's `radio`, -94 dBm "
        "with a noise figure of 7 dB",
    )


class Shadowing(Model):
    """Log-normal shadowing."""

    sigma: Ratio = Field(description="standard deviation, at most 30 dB")
    decorrelation: Length = Field(
        default=Length("20 m"), description="distance over which the correlation falls to 1/e"
    )


class Fading(Model):
    """Fading from frame to frame."""

    model: Literal["rayleigh", "rician", "nakagami"] = Field(description="distribution of the power")
    k: Ratio | None = Field(
        default=None, description="rician: ratio of direct to scattered power; 6 dB by default"
    )
    m: Annotated[float, Field(ge=0.5, le=100)] | None = Field(
        default=None, description="nakagami: shape; 1.5 by default"
    )


class Wall(Model):
    """A straight wall from floor to ceiling."""

    source: Position = Field(alias="from", description="one end")
    to: Position = Field(description="the other end")
    loss: Ratio = Field(description="loss of a signal that passes the wall")


class Errors(Model):
    """Model of bit errors."""

    model: Literal["standard", "table", "fixed"] = Field(
        default="standard",
        description="standard: from signal, noise and interference; table: measured curves; fixed: constant",
    )
    file: File | None = Field(
        default=None,
        description="table: CSV file with phy, Mbit/s, octets, dB, frame error rate; required",
    )
    bit_error: Fraction | None = Field(default=None, description="fixed: bit error rate; 0 by default")


class FrameError(Model):
    """Additional frame error rate from one node to another, independent of the signal."""

    source: str = Field(alias="from", description="sending node, or `node:radio`")
    to: str = Field(description="receiving node, or `node:radio`")
    rate: Fraction = Field(description="frame error rate")


def _channel(value: Any) -> str:
    if isinstance(value, Frequency) or not isinstance(value, int) or isinstance(value, bool):
        return "<frequency>"
    return "<number>"


Channel = Annotated[
    Annotated[Annotated[int, Field(ge=1, le=200, strict=True)], Tag("<number>")]
    | Annotated[Frequency, Tag("<frequency>")],
    Discriminator(_channel),
]
"""Number of a channel, or its centre frequency."""

CONTROLLERS = ("arf", "aarf", "minstrel")


SCHEME = "MCS "
"""What a modulation and coding scheme of 802.11n begins with."""
_SCHEMES = 32


def _rate(value: Any) -> str:
    if isinstance(value, str) and value.startswith(SCHEME.strip()):
        return "<scheme>"
    return "<controller>" if value in CONTROLLERS else "<rate>"


def _scheme(value: str) -> str:
    number = value.removeprefix(SCHEME)
    if number not in [str(each) for each in range(_SCHEMES)]:
        raise _refused("radio.rate", f"there is no scheme {value!r}", "MCS 0 to MCS 31")
    return value


def _refused(code: str, message: str, cure: str) -> PydanticCustomError:
    return PydanticCustomError(code, "{message}", {"message": message, "cure": cure})


RadioRate = Annotated[
    Annotated[Rate, Tag("<rate>")]
    | Annotated[Literal["arf", "aarf", "minstrel"], Tag("<controller>")]
    | Annotated[str, AfterValidator(_scheme), Tag("<scheme>")],
    Discriminator(_rate),
]
"""A fixed rate, or a rate control algorithm."""

_LATER = {
    "802.11ac": "VHT",
    "802.11ad": "DMG",
    "802.11ah": "S1G",
    "802.11ax": "HE",
    "802.11be": "EHT",
}


def _phy(value: Any) -> Any:
    if isinstance(value, str) and value in _LATER:
        raise _refused(
            "radio.phy",
            f"the medium does not model {value} ({_LATER[value]})",
            "802.11n has MCS 0 to 31 at 20 and 40 MHz",
        )
    return value


NARROW, WIDE = Frequency("20 MHz"), Frequency("40 MHz")
LONG_GUARD, SHORT_GUARD = Duration("800 ns"), Duration("400 ns")


def _width(value: Frequency) -> Frequency:
    if value not in (NARROW, WIDE):
        raise _refused("radio.width", f"no channel is {value.text} wide", "20 MHz, or 40 MHz with 802.11n")
    return value


def _guard(value: Duration) -> Duration:
    if value not in (LONG_GUARD, SHORT_GUARD):
        raise _refused(
            "radio.guard_interval", f"no guard interval is {value.text}", "800 ns, or 400 ns with 802.11n"
        )
    return value


def _limit(value: Any) -> str:
    return "<never>" if value == "never" else "<size>"


Threshold = Annotated[
    Annotated[Size, Tag("<size>")] | Annotated[Literal["never"], Tag("<never>")], Discriminator(_limit)
]
"""Octets of a frame on the air, or never."""


def _margin(value: Any) -> str:
    return "<none>" if value == "none" else "<ratio>"


Margin = Annotated[
    Annotated[Ratio, Tag("<ratio>")] | Annotated[Literal["none"], Tag("<none>")], Discriminator(_margin)
]


def _window(value: Any) -> str:
    return "<none>" if value == "none" else "<duration>"


Window = Annotated[
    Annotated[Duration, Tag("<duration>")] | Annotated[Literal["none"], Tag("<none>")], Discriminator(_window)
]


class Tuning(Model):
    """Settings of a radio that events can change."""

    channel: Channel | None = Field(
        default=None, description="channel number or frequency; 36 (802.11a, 802.11n) or 1 by default"
    )
    power: Power | None = Field(default=None, description="transmit power, -30 to 60 dBm; 16 dBm by default")
    rate: RadioRate | None = Field(
        default=None,
        description="a rate of the PHY, or rate control: `arf`, `aarf`, `minstrel` (default); with 802.11n "
        "`MCS 0` to `MCS 31`, a rate of 802.11a, or `minstrel`; any rate without channel access",
    )
    rts: Threshold | None = Field(default=None, description="RTS threshold; never by default")
    ssid: str | None = Field(
        default=None,
        description="name of the network; radios of one medium and name form one subnet; an access point "
        "keeps its name",
    )


class Radio(Tuning):
    """An IEEE 802.11 radio of a node. Omitted keys are taken from the medium's ``radio``."""

    medium: Name | None = Field(default=None, description="medium; optional if there is only one")
    device: Literal["ethernet", "wlan"] | None = Field(
        default=None,
        description="ethernet (default): an Ethernet interface, and the engine's own 802.11 stack; wlan: a "
        "wireless device (phy) of the node's kernel",
    )
    phy: (
        Annotated[
            Literal["802.11a", "802.11abg", "802.11b", "802.11bg", "802.11g", "802.11n"],
            BeforeValidator(_phy),
        ]
        | None
    ) = Field(
        default=None,
        description="physical layer; 802.11a by default. 802.11g has the rates of OFDM alone, 802.11bg those "
        "of 802.11b too; 802.11abg is 802.11bg at 2.4 GHz and 802.11a at 5 GHz: a wireless device has both "
        "bands, an Ethernet interface that of its channel; 802.11n is for Ethernet interfaces, at 5 GHz or "
        "2.4 GHz by its channel",
    )
    width: Annotated[Frequency, AfterValidator(_width)] | None = Field(
        default=None,
        description="802.11n: width of the channel, 20 MHz (default) or 40 MHz: `channel` and its other half "
        "(36 and 40, 44 and 48, and so on; at 2.4 GHz four above up to channel 7, then four below)",
    )
    guard_interval: Annotated[Duration, AfterValidator(_guard)] | None = Field(
        default=None, description="802.11n: guard interval of a symbol, 800 ns (default) or 400 ns"
    )
    streams: Annotated[int, Field(ge=1, le=4, strict=True)] | None = Field(
        default=None, description="802.11n: most spatial streams that rate control uses, 1 (default) to 4"
    )
    gain: Ratio | None = Field(default=None, description="antenna gain, -20 to 60 dBi; 0 dBi by default")
    noise_figure: Ratio | None = Field(default=None, description="noise figure, 0 to 40 dB; 7 dB by default")
    carrier_sense: Power | None = Field(
        default=None,
        description="energy-detection threshold; -62 dBm by default, with 802.11b -70 dBm up to 50 mW, "
        "-73 dBm up to 100 mW and -76 dBm above",
    )
    receive: Power | None = Field(
        default=None, description="receiver sensitivity: least power of a detected frame; -82 dBm by default"
    )
    detect: Margin | None = Field(
        default=None, description="least signal-to-noise ratio of a detected preamble; 4 dB by default"
    )
    capture: Margin | None = Field(
        default=None,
        description="capture threshold: the receiver switches to a later frame that is stronger by this; 10 "
        "dB by default",
    )
    capture_window: Window | None = Field(
        default=None,
        description="time from a frame's first symbol in which `capture` applies; `none` (default): always",
    )
    basic_rates: Annotated[list[Rate], Listed] | None = Field(
        default=None, description="basic rates, used for responses; the mandatory rates by default"
    )
    control_rate: Rate | None = Field(
        default=None, description="rate of broadcast and RTS; by default from the basic rates"
    )
    short_retries: Annotated[int, Field(ge=1, le=255, strict=True)] | None = Field(
        default=None, description="retry limit of frames without RTS; 7 by default"
    )
    long_retries: Annotated[int, Field(ge=1, le=255, strict=True)] | None = Field(
        default=None, description="retry limit of frames with RTS; 4 by default"
    )
    fragment: Threshold | None = Field(
        default=None, description="fragmentation threshold, 256 to 2346 B; never by default"
    )
    buffers: Count | None = Field(
        default=None, description="total transmit buffers of the driver; 40 by default"
    )
    queue: Count | None = Field(default=None, description="limit of one transmit queue; 50 by default")
    qos: bool | None = Field(default=None, description="EDCA: four access categories by DSCP")
    aggregation: Annotated[int, Field(ge=1, le=64, strict=True)] | None = Field(
        default=None,
        description="802.11n with `qos: true`: most frames of an A-MPDU, 1 to 64, answered by one block "
        "acknowledgment; by default each frame is sent alone",
    )
    coverage_class: Annotated[int, Field(ge=0, le=31, strict=True)] | None = Field(
        default=None, description="coverage class: adds 3 us to slots and time-outs for each; 0 by default"
    )
    preamble: Literal["long", "short"] | None = Field(
        default=None, description="802.11b: preamble; long by default"
    )
    mode: Literal["ad-hoc", "ap", "station"] | None = Field(
        default=None, description="ad-hoc (IBSS, default), access point, or station of an access point"
    )
    bridge: Annotated[bool, Field(strict=True)] | None = Field(
        default=None,
        description="ap: the node is a bridge of the radio and its wires, and not a router; by default if "
        "the wires of several access points with this ssid lead into one LAN and the node says nothing of "
        "`forwarding`",
    )
    scan: Annotated[list[Channel], Listed] | None = Field(
        default=None, description="station: channels to scan; its own by default"
    )
    probe: bool | None = Field(
        default=None,
        description="station: active scan, 30 ms per channel, instead of passive, 120 ms; false by default",
    )
    leave: Power | None = Field(
        default=None,
        description="station: looks for another access point below this signal; -75 dBm by default",
    )
    monitor: bool | None = Field(
        default=None,
        description="wlan: the node's kernel receives all frames that the radio can decode, for monitor "
        "interfaces; by default those to its addresses and to groups",
    )
    card: Name | None = Field(
        default=None,
        description="card of the medium whose physical radio this radio shares with others; its own by "
        "default",
    )
    up: bool = Field(default=True, description="the radio is on at the start")


class Noise(Model):
    """Source of white noise. It does not take part in contention."""

    position: Position | None = Field(default=None, description="position; with model velocity, the start")
    mobility: Mobility | None = Field(default=None, description="movement, as of a node")
    power: Power = Field(description="radiated power over the whole band, -100 to 100 dBm")
    channel: Annotated[int, Field(ge=1, le=200, strict=True)] | None = Field(
        default=None, description="occupies the 20 MHz of this channel, instead of a band"
    )
    band: tuple[Frequency, Frequency] | None = Field(
        default=None, description="lower and upper edge of the band"
    )
    at: Duration = Field(default=Duration(0), description="time of switching on")
    until: Duration | None = Field(default=None, description="time of switching off")
    on: Duration | None = Field(default=None, description="periodic: time on")
    off: Duration | None = Field(default=None, description="periodic: time off")


class Card(Model):
    """A physical radio that several radios share, each with a virtual MAC of its own."""

    virtual_macs: Annotated[int, Field(ge=1, le=64, strict=True)] = Field(
        default=4, description="number of virtual MACs that the card has: the most radios that can share it"
    )
    dwell: Duration = Field(
        default=Duration("40 ms"),
        description="radios on several channels: time on each in turn, 1 to 500 ms",
    )
    switch: Duration = Field(
        default=Duration("1 ms"), description="time that a change of the channel takes, at most 100 ms"
    )
    power_save: bool = Field(
        default=True,
        description="stations tell their access points that they doze before the card leaves their channel",
    )
    scan_age: Duration = Field(
        default=Duration("1 s"),
        description="results of scans up to this age answer the scan of a radio, at most 60 s; 0 s: none do",
    )
    merge_scans: bool = Field(
        default=True,
        description="radios that scan a channel at the same time share the results of one of them",
    )


class Leakage(Model):
    """Reception of signals on other channels at 5 GHz, as interference and as energy on the channel."""

    adjacent: Ratio = Field(
        default=Ratio("23 dB"), description="how much weaker they are on the two neighbouring channels"
    )
    alternate: Ratio = Field(default=Ratio("39 dB"), description="how much weaker they are on all others")


class Slots(Model):
    """Frame of time division: a slice with slots in its grant sends in these slots only."""

    frame: Annotated[int, Field(ge=1, le=256, strict=True)] = Field(description="slots in a frame")
    length: Duration = Field(default=Duration("10 ms"), description="length of a slot")
    guard: Duration = Field(
        default=Duration("100 us"), description="silence at the end of the last of adjacent slots"
    )


class HopSet(Model):
    """Hopping sequences that never meet. Sequence k is on channel (k + step * n) mod N in dwell n."""

    channels: Annotated[list[Channel], Field(min_length=2, max_length=79)] = Field(
        description="the N channels, which do not overlap; each sequence is on each of them once in N dwells"
    )
    step: Annotated[int, Field(ge=1, le=78, strict=True)] = Field(
        default=1,
        description="places in the list from dwell to dwell, below N and without a common divisor with it; "
        "sequences of sets with different steps meet",
    )


class Hops(Model):
    """Frequency hopping: a slice with a sequence in its grant changes the channel from dwell to dwell."""

    sets: Annotated[dict[Name, HopSet], Field(min_length=1)] = Field(description="sets of sequences by name")
    dwell: Duration = Field(default=Duration("20 ms"), description="time on each channel, at most 10 s")
    switch: Duration = Field(
        default=Duration("1 ms"),
        description="silence at the end of each dwell, for the change of the channel",
    )


class Codes(Model):
    """Code division: orthogonal codes, numbered from 0, that grants of slices can have."""

    spreading: Literal[2, 4, 8, 16, 32, 64, 128] = Field(
        description="spreading factor: number of codes; frames are as many times longer"
    )
    synchronous: bool = Field(
        default=False,
        description="the chips of all radios arrive aligned: other codes are not heard; by default they "
        "interfere, 10 log10(1.5 * spreading) dB weaker",
    )


class LossPoint(Model):
    """Frame loss at a distance."""

    distance: Length = Field(description="distance between sender and receiver")
    rate: Fraction = Field(description="share of frames that are lost")


class Access(Model):
    """Channel access of the radios of a medium."""

    model: Literal["dcf", "none"] = Field(
        description="dcf: as in IEEE 802.11; none: every radio sends at once at its own fixed `rate`, full "
        "duplex, without headers, acknowledgments and collisions",
    )
    loss: Annotated[list[LossPoint], Listed] | None = Field(
        default=None,
        description="none: frame loss by distance, ascending, linear in between; everything is lost beyond "
        "the last distance; required",
    )
    overhead: Size | None = Field(
        default=None, description="none: octets that each frame takes beside its own; 0 B by default"
    )


class Medium(Model):
    """Radio medium: path loss, errors, noise and defaults of its radios."""

    access: Access = Field(
        default=Access.model_construct(model="dcf"), description="channel access; that of 802.11 by default"
    )
    propagation: Propagation = Field(
        default=Propagation.model_construct(model="friis"), description="path loss; free space by default"
    )
    shadowing: Shadowing | None = Field(default=None, description="variation of the loss from place to place")
    fading: Fading | None = Field(default=None, description="variation of the power from frame to frame")
    walls: Annotated[list[Wall], Listed] = Field(default=[], description="walls that attenuate signals")
    errors: Errors = Field(default=Errors.model_construct(), description="model of bit errors")
    frame_errors: Annotated[list[FrameError], Listed] = Field(
        default=[], description="additional frame error rates of node pairs"
    )
    noise: Annotated[list[Noise], Listed] = Field(default=[], description="noise sources")
    floor: Power = Field(default=Power("-117 dBm"), description="weaker signals are ignored")
    leakage: Leakage | None = Field(
        default=None,
        description="leakage between channels; none by default, `{}` is a receiver of the standard",
    )
    antenna_isolation: Ratio | None = Field(
        default=None, description="loss between radios at one place, such as those of one node; 0 to 200 dB"
    )
    radio: Radio = Field(default=Radio.model_construct(), description="default settings of its radios")
    slots: Slots | None = Field(default=None, description="time slots that grants of slices can have")
    hops: Hops | None = Field(default=None, description="hopping sequences that grants of slices can have")
    codes: Codes | None = Field(default=None, description="codes that grants of slices can have")
    cards: dict[Name, Card] = Field(
        default={}, description="physical radios that several radios share, see `card` of a radio"
    )
