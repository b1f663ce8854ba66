"""Radio media, radios, places and motions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from airloom.scenario.model.base import Count, File, Listed, Model, Name
from airloom.units import Angle, Duration, Fraction, Frequency, Length, Power, Rate, Ratio, Size, Speed


def _coordinates(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(value)
    raise PydanticCustomError(
        "value.form",
        "{message}",
        {
            "message": "a place is two or three lengths",
            "cure": "write it like [10 m, 20 m] or [10 m, 0 m, 1.5 m]",
        },
    )


Position = Annotated[
    tuple[Length, ...],
    BeforeValidator(_coordinates),
    WithJsonSchema(
        {
            "type": "array",
            "items": Length.json_schema(),
            "minItems": 2,
            "maxItems": 3,
            "title": "place",
        }
    ),
]
"""East, north and, if it is not 0, height."""


def _speeds(value: Any) -> Any:
    if isinstance(value, list | tuple) and len(value) in (2, 3):
        return tuple(value)
    raise PydanticCustomError(
        "value.form",
        "{message}",
        {"message": "a velocity is two or three speeds", "cure": "write it like [1.5 m/s, 0 m/s]"},
    )


Velocity = Annotated[
    tuple[Speed, ...],
    BeforeValidator(_speeds),
    WithJsonSchema(
        {"type": "array", "items": Speed.json_schema(), "minItems": 2, "maxItems": 3, "title": "velocity"}
    ),
]


class Propagation(Model):
    """Loss of a signal with distance, or for each pair of nodes; see docs/models.md for the formulas."""

    model: Literal["friis", "log-distance", "two-ray", "itu-indoor", "cost231", "matrix", "disk"] = Field(
        description="the law"
    )
    exponent: Annotated[float, Field(ge=0.1, le=10)] | None = Field(
        default=None, description="log-distance: 2 is free space; 3 by default"
    )
    reference: Length | None = Field(default=None, description="log-distance: distance of `loss`, 1 m")
    loss: Ratio | None = Field(
        default=None, description="log-distance: at `reference`, 46.7 dB; disk: within `range`, 60 dB"
    )
    lowest: Length | None = Field(default=None, description="two-ray: least antenna height, 1.5 m")
    building: Literal["residential", "office", "commercial"] | None = Field(
        default=None, description="itu-indoor: office by default"
    )
    storey: Length | None = Field(default=None, description="itu-indoor: height of a storey, 3 m")
    city: Literal["medium", "metropolitan"] | None = Field(
        default=None, description="cost231: medium by default"
    )
    range: Length | None = Field(default=None, description="disk: how far one hears; needed")
    file: File | None = Field(
        default=None,
        description="matrix: comma-separated; a line of node names, then a row for each sender; needed",
    )
    numbers: Literal["loss", "snr"] | None = Field(
        default=None, description="matrix: path loss in dB (default), or signal to noise in dB"
    )
    power: Power | None = Field(default=None, description="matrix of snr: power of the sender, 16 dBm")
    noise: Power | None = Field(default=None, description="matrix of snr: noise of the receiver, -94 dBm")


class Shadowing(Model):
    """Log-normal variation of the loss from place to place."""

    sigma: Ratio = Field(description="standard deviation, at most 30 dB")
    decorrelation: Length = Field(
        default=Length("20 m"), description="distance over which the correlation falls to 1/e"
    )


class Fading(Model):
    """Variation of the power from frame to frame."""

    model: Literal["rayleigh", "rician", "nakagami"] = Field(description="the distribution")
    k: Ratio | None = Field(default=None, description="rician: direct to scattered power, 6 dB")
    m: Annotated[float, Field(ge=0.5, le=100)] | None = Field(
        default=None, description="nakagami: the shape, 1.5"
    )


class Wall(Model):
    """A straight wall from floor to ceiling."""

    source: Position = Field(alias="from", description="one end")
    to: Position = Field(description="the other end")
    loss: Ratio = Field(description="of a signal that passes it")


class Errors(Model):
    """How bits fail."""

    model: Literal["standard", "table", "fixed"] = Field(
        default="standard",
        description="by signal to noise and interference, by measured curves, or always alike",
    )
    file: File | None = Field(
        default=None,
        description="table: comma-separated lines of phy, Mbit/s, octets, dB, frame error rate; needed",
    )
    bit_error: Fraction | None = Field(default=None, description="fixed: probability that a bit fails, 0")


class FrameError(Model):
    """Frames from one node to another that fail whatever the signal is like."""

    source: str = Field(alias="from", description="sending node, or `node:radio`")
    to: str = Field(description="receiving node, or `node:radio`")
    rate: Fraction = Field(description="share of the frames that fail")


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


def _rate(value: Any) -> str:
    return "<controller>" if value in CONTROLLERS else "<rate>"


RadioRate = Annotated[
    Annotated[Rate, Tag("<rate>")] | Annotated[Literal["arf", "aarf", "minstrel"], Tag("<controller>")],
    Discriminator(_rate),
]
"""A fixed rate, or how rates are chosen."""


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
    """What can change in a radio while the run goes on."""

    channel: Channel | None = Field(
        default=None, description="number or frequency; 36 (802.11a) or 1 by default"
    )
    power: Power | None = Field(default=None, description="transmit power, -30 to 60 dBm; 16 dBm")
    rate: RadioRate | None = Field(
        default=None, description="one of the PHY's, or `arf`, `aarf`, `minstrel` (default)"
    )
    rts: Threshold | None = Field(
        default=None, description="longer frames on the air are announced by RTS; never by default"
    )
    ssid: str | None = Field(
        default=None,
        description="name of the network, which is one subnet on a medium; access points keep it",
    )


class Radio(Tuning):
    """An IEEE 802.11 radio of a node. What is left out is taken from the medium's ``radio``."""

    medium: Name | None = Field(default=None, description="which medium; may be left out if there is one")
    phy: Literal["802.11a", "802.11b", "802.11g"] | None = Field(
        default=None, description="physical layer; 802.11a by default"
    )
    gain: Ratio | None = Field(default=None, description="of the antenna, -20 to 60 dBi; 0 dBi")
    noise_figure: Ratio | None = Field(default=None, description="of the receiver, 0 to 40 dB; 7 dB")
    carrier_sense: Power | None = Field(
        default=None, description="power from which the channel is busy whatever it carries; -62 dBm"
    )
    receive: Power | None = Field(
        default=None, description="least power of a frame that the receiver finds; -82 dBm"
    )
    detect: Margin | None = Field(
        default=None, description="least signal to noise of a preamble that is found; 4 dB"
    )
    capture: Margin | None = Field(
        default=None, description="a later frame that is so much stronger is followed instead; 10 dB"
    )
    capture_window: Window | None = Field(
        default=None,
        description="from a frame's first symbol; only within it the frame is left so; `none`, to its end",
    )
    basic_rates: Annotated[list[Rate], Listed] | None = Field(
        default=None, description="what answers are sent at; the mandatory rates by default"
    )
    control_rate: Rate | None = Field(default=None, description="of broadcast and RTS; by the basic rates")
    short_retries: Annotated[int, Field(ge=1, le=255, strict=True)] | None = Field(
        default=None, description="transmissions of a frame without RTS; 7"
    )
    long_retries: Annotated[int, Field(ge=1, le=255, strict=True)] | None = Field(
        default=None, description="transmissions of a frame after RTS; 4"
    )
    fragment: Threshold | None = Field(
        default=None, description="longer frames on the air go in pieces, 256 to 2346 B; never by default"
    )
    buffers: Count | None = Field(default=None, description="frames that the driver holds at all; 40")
    queue: Count | None = Field(default=None, description="frames in one hardware queue; 50")
    qos: bool | None = Field(default=None, description="four access categories by DSCP (EDCA)")
    coverage_class: Annotated[int, Field(ge=0, le=31, strict=True)] | None = Field(
        default=None, description="makes slots and time-outs longer, by 3 us each; 0"
    )
    preamble: Literal["long", "short"] | None = Field(default=None, description="802.11b; long by default")
    mode: Literal["ad-hoc", "ap", "station"] | None = Field(
        default=None, description="without access point (default), an access point, or a station of one"
    )
    scan: Annotated[list[Channel], Listed] | None = Field(
        default=None, description="station: channels it looks on; its own by default"
    )
    probe: bool | None = Field(
        default=None,
        description="station: asks on each channel for 30 ms instead of listening for 120 ms; false",
    )
    leave: Power | None = Field(
        default=None, description="station: looks for a better access point below this; -75 dBm"
    )
    up: bool = Field(default=True, description="switched on at the start")


class Waypoint(Model):
    """A place at a time."""

    at: Duration = Field(description="counted from the start of the run")
    position: Position = Field(description="the place")


def _pair(value: Any) -> str:
    return "<two>" if isinstance(value, list | tuple) else "<one>"


Speeds = Annotated[
    Annotated[Speed, Tag("<one>")] | Annotated[tuple[Speed, Speed], Tag("<two>")], Discriminator(_pair)
]
Durations = Annotated[
    Annotated[Duration, Tag("<one>")] | Annotated[tuple[Duration, Duration], Tag("<two>")],
    Discriminator(_pair),
]


TRACES = ("ns-2", "bonnmotion", "bonnmotion-3d")
"""Motions that are read from a file."""


class Mobility(Model):
    """How a node moves; continuously, never in steps."""

    model: Literal[
        "velocity",
        "random-waypoint",
        "random-walk",
        "gauss-markov",
        "group",
        "path",
        "ns-2",
        "bonnmotion",
        "bonnmotion-3d",
    ] = Field(description="the motion")
    velocity: Velocity | None = Field(
        default=None, description="velocity: along each axis; the node starts at its `position`"
    )
    area: tuple[Length, Length] | None = Field(
        default=None, description="random models: width and depth of the ground"
    )
    corner: Position | None = Field(
        default=None, description="random models: south-west corner, and height; [0 m, 0 m]"
    )
    speed: Speeds | None = Field(
        default=None, description="random models: least and greatest; gauss-markov: mean and deviation"
    )
    pause: Durations | None = Field(default=None, description="random-waypoint: least and greatest rest; 0 s")
    interval: Duration | None = Field(
        default=None, description="random-walk, gauss-markov: between turns; 1 s"
    )
    memory: Fraction | None = Field(default=None, description="gauss-markov: 0 forgets at once; 0.75")
    turn: Angle | None = Field(default=None, description="gauss-markov: deviation of the direction; 30 deg")
    group: Name | None = Field(default=None, description="group: its name; members follow one reference")
    reference: Mobility | None = Field(default=None, description="group: how its reference moves")
    radius: Length | None = Field(default=None, description="group: how far a member may be from it")
    points: Annotated[list[Waypoint], Listed] | None = Field(
        default=None, description="path: places by time; straight lines between"
    )
    file: File | None = Field(default=None, description="traces: the file")
    node: Annotated[int, Field(ge=0, strict=True)] | None = Field(
        default=None, description="traces: number of the node in the file; by default in the scenario's order"
    )


class Noise(Model):
    """A source of white noise that is no radio: it takes no part in contention."""

    position: Position | None = Field(
        default=None, description="where it stands, or where mobility: velocity starts"
    )
    mobility: Mobility | None = Field(default=None, description="how it moves, as a node may")
    power: Power = Field(description="radiated over the whole band, -100 to 100 dBm")
    channel: Annotated[int, Field(ge=1, le=200, strict=True)] | None = Field(
        default=None, description="fills the 20 MHz of this channel; instead of a band"
    )
    band: tuple[Frequency, Frequency] | None = Field(default=None, description="lower and upper edge")
    at: Duration = Field(default=Duration(0), description="when it is switched on first")
    until: Duration | None = Field(default=None, description="when it is switched off for good")
    on: Duration | None = Field(default=None, description="on and off in turns: how long it is on")
    off: Duration | None = Field(default=None, description="on and off in turns: how long it is off")


class Medium(Model):
    """Shared channels: who hears whom, how strongly, and who collides."""

    propagation: Propagation = Field(
        default=Propagation(model="friis"), description="loss; free space by default"
    )
    shadowing: Shadowing | None = Field(default=None, description="variation from place to place")
    fading: Fading | None = Field(default=None, description="variation from frame to frame")
    walls: Annotated[list[Wall], Listed] = Field(default=[], description="that signals pass")
    errors: Errors = Field(default=Errors(), description="how bits fail")
    frame_errors: Annotated[list[FrameError], Listed] = Field(
        default=[], description="failures of frames between pairs, beside all else"
    )
    noise: Annotated[list[Noise], Listed] = Field(default=[], description="sources of noise")
    floor: Power = Field(default=Power("-117 dBm"), description="weaker signals are ignored")
    radio: Radio = Field(default=Radio(), description="what its radios have in common")
