"""What ``details.json`` says: whatever a report shows beyond the verdict.

Everything in it is optional, so a run on a bare machine, or one cut short, still has a report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from airloom.errors import RunError
from airloom.results.result import SCHEMA, Part

COMPONENTS = ("guest_user", "guest_kernel", "host_kernel", "engine")
"""What processor time is divided among (see :mod:`airloom.compare.attribution`)."""


class Bin(Part):
    """One bar of a lateness histogram; the bounds are in nanoseconds, the upper one excluded."""

    from_ns: int
    to_ns: int
    count: int


class NodeUse(Part):
    """What a node's programs used of the processors, in seconds over the whole run.

    ``wait_s`` is the time they were runnable and waited for a processor.
    """

    node: str
    user_s: float = 0.0
    system_s: float = 0.0
    wait_s: float = 0.0


class ProgramEnd(Part):
    """How a program ended: ``exit`` or ``signal``; neither if the run ended it."""

    node: str
    name: str
    command: str
    exit: int | None = None
    signal: str | None = None
    expected: bool = True
    log: str | None = None
    """Path of its output, relative to the run's folder."""


class Advice(Part):
    """What the kind of its nodes did to a figure (see :mod:`airloom.calibration.correct`)."""

    measurement: str
    metric: str
    unit: str
    value: float
    verdict: str
    """``harmless``, ``correctable`` or ``unusable``."""
    corrected: float | None = None
    half_width: float | None = None
    """Half of the corrected value's 95 % interval."""
    why: str = ""


class Hotspot(Part):
    """Where a component spent its processor time (see :mod:`airloom.runs.profiler`)."""

    component: str
    place: str = ""
    """A function and the file that it is in; empty for the whole component."""
    share: float
    """Of all samples."""


class Happening(Part):
    """An event of the scenario, or one that befell the run, at engine time ``t_ns``."""

    t_ns: int
    what: str


class Vertex(Part):
    """A node, switch or hub in the topology picture."""

    name: str
    kind: str
    """``host``, ``router``, ``switch``, ``hub`` or ``tunnel``."""


class Wire(Part):
    """A link in the topology picture; null rate is unlimited. Backward is null when it is the same."""

    name: str
    a: str
    b: str
    rate_bit_s: int | None = None
    delay_ns: int = 0
    backward_rate_bit_s: int | None = None
    backward_delay_ns: int | None = None
    trace: bool = False
    """The rate follows a trace; ``rate_bit_s`` is null then too."""
    backward_trace: bool = False


class Topology(Part):
    """What was joined to what."""

    vertices: tuple[Vertex, ...] = ()
    wires: tuple[Wire, ...] = ()


class RadioUse(Part):
    """One radio at the end of a run: where it was, where its time went, what it counted."""

    name: str
    """Its port, ``node:interface``."""
    medium: str
    mhz: int
    """Centre of its channel."""
    channel: int | None = None
    """The channel's number."""
    place_m: tuple[float, float, float] | None = None
    airtime_ns: dict[str, int] = Field(default_factory=dict)
    """By what it heard or did: ``idle``, ``transmitting``, ``receiving``, ``collided``, ``busy``; together
    the whole run. ``busy`` is carrier sense without a frame that it could follow."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Frames, in the engine's words: ``sent``, ``unanswered``, ``given_up``, ``received`` and so on."""


class RadioLink(Part):
    """What one radio sent to another."""

    sender: str
    receiver: str
    attempts: int = 0
    """Transmissions that asked for an answer, repeated ones included."""
    unanswered: int = 0
    rate_bit_s: int | None = None
    """The rate that it would use next."""


class ChannelUse(Part):
    """One channel of a medium over the whole run, wherever its radios are."""

    medium: str
    channel: int
    mhz: int
    frames: int = 0
    airtime_ns: dict[str, int] = Field(default_factory=dict)
    """``busy``: somebody sent; ``overlapped``: several did at once; ``sent``: the sum of all frames."""


class Details(Part):
    """The whole of ``details.json``."""

    version: int = SCHEMA
    versions: dict[str, str] = Field(default_factory=dict)
    """Software: name, version. ``airloom``, ``kernel``, ``python``, ``iperf3`` and the like."""
    machine: dict[str, str | int | float] = Field(default_factory=dict)
    """Processor, cores, memory and what else describes the machine."""
    limits: dict[str, str] = Field(default_factory=dict)
    """What the verdict was held to, in words with units."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """The engine's whole ledger as it came: offered, copies, in_flight, links, ports."""
    host_lost: dict[str, int] = Field(default_factory=dict)
    """Frames that this machine lost, by reason."""
    lateness: tuple[Bin, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    inputs: dict[str, str] | None = None
    """Digest of everything that the scenario took from files, by path."""
    length_ns: int = 0
    """Engine time when it ended."""
    processors: dict[str, float] = Field(default_factory=dict)
    """``guest_user``, ``guest_kernel``, ``host_kernel``, ``engine``: processors kept busy on average."""
    programs: tuple[ProgramEnd, ...] = ()
    profile: tuple[Hotspot, ...] = ()
    """Of each component its whole, then the places with most samples; only where it was asked for."""
    happenings: tuple[Happening, ...] = ()
    guidance: tuple[Advice, ...] = ()
    """For figures between nodes whose kinds were calibrated on this machine."""
    topology: Topology = Topology()
    radios: tuple[RadioUse, ...] = ()
    """All radios. Their ways are in the samples of ``radio``: metrics ``x``, ``y``, ``z`` in m, the radio's
    name in the place of the node; one sample for a radio that never moves."""
    channels: tuple[ChannelUse, ...] = ()
    radio_links: tuple[RadioLink, ...] = ()
    """Over time they are in the samples of ``radio-link``: metrics ``rate`` in bit/s and ``retries`` (the
    share of attempts in the interval without an answer), ``sender>receiver`` in the place of the node."""

    def to_json(self) -> str:
        """The text of ``details.json``."""
        raw = self.model_dump(mode="json")
        raw = {"schema": raw.pop("version"), **raw}
        # Without indentation: with thousands of nodes that takes seconds.
        return json.dumps(raw, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> Details:
    """Reads a ``details.json``; a run without one has empty details."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return Details.model_validate(raw | {"version": raw.get("schema", SCHEMA)})
    except FileNotFoundError:
        return Details()
    except (OSError, ValueError, ValidationError) as error:
        raise RunError(
            "results.unreadable", f"details.json cannot be read: {error}", where=str(path)
        ) from error
