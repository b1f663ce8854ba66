"""Contents of ``details.json``: the data of a report beyond the verdict.

Everything is optional, so a run on a bare machine, or one cut short, still has a report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from airloom.results import stored
from airloom.results.result import SCHEMA, Part

COMPONENTS = ("guest_user", "guest_kernel", "host_kernel", "engine")
"""Components of processor time (see :mod:`airloom.compare.attribution`)."""


class Bin(Part):
    """One bar of a lateness histogram; the bounds are in nanoseconds, the upper one excluded."""

    from_ns: int
    to_ns: int
    count: int


class NodeUse(Part):
    """Processor time of a node's programs, in seconds over the whole run.

    ``wait_s`` is the time during which they were runnable but not running.
    """

    node: str
    user_s: float = 0.0
    system_s: float = 0.0
    wait_s: float = 0.0
    resident_octets: int | None = None
    """Memory of its machine's largest process at the end, as top(1) shows it; null without a machine."""
    switches: int | None = None
    """Context switches of its tasks, or of its machine's, during the run; null if not known. Those of a
    thread that has ended count up to its last sample, at most a second before."""


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
    """Effect of the node kind on a figure (see :mod:`airloom.calibration.correct`)."""

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
    """A place where a component spent processor time (see :mod:`airloom.runs.profiler`)."""

    component: str
    place: str = ""
    """A function and its file; empty for the whole component."""
    share: float
    """Share of all samples."""


HappeningKind = Literal["event", "failure", "radio", "controller", "program"]


class Happening(Part):
    """An event of the scenario or of the run, at engine time ``t_ns``."""

    t_ns: int
    what: str
    kind: HappeningKind = "event"
    """``event`` of the scenario, ``failure`` of a program, ``radio``: a station has another access point
    or none, ``controller`` connected or lost, start or end of a ``program``."""


class Captured(Part):
    """The captures of a run: numbers of frames and octets."""

    frames: int
    """Frames in all files; the segments of a super-frame count one by one."""
    skipped: int = 0
    """Frames that are missing because the disk was too slow."""
    octets: int = 0


class ControlMessages(Part):
    """OpenFlow messages of one type in one direction of a control channel; times in engine ns."""

    switch: str
    controller: str
    sender: Literal["switch", "controller"]
    message: str
    """Such as ``PACKET_IN``."""
    version: str
    """Version of OpenFlow; a HELLO has the latest one of its sender."""
    count: int
    octets: int
    first_ns: int
    """Negative before time zero, like the handshake."""
    last_ns: int
    error: str = ""
    """Type and code of an ERROR."""


class ControlAnswers(Part):
    """Time from a PACKET_IN to the controller's answers of one type, in ns."""

    switch: str
    controller: str
    answer: Literal["PACKET_OUT", "FLOW_MOD"]
    asked: int
    """Number of PACKET_INs."""
    asked_per_s: float | None = None
    """Their mean rate from the first to the last one; null with fewer than two."""
    answered: int
    found_by: dict[str, int] = Field(default_factory=dict)
    """How many answers were found by ``buffer``, ``frame`` or ``addresses`` (see
    :mod:`airloom.measure.openflow`)."""
    median_ns: int | None = None
    p99_ns: int | None = None
    max_ns: int | None = None


class Vertex(Part):
    """A node, switch or hub in the topology picture."""

    name: str
    kind: str
    """``host``, ``router``, ``switch``, ``hub`` or ``tunnel``."""


class Wire(Part):
    """A link in the topology picture; null rate: unlimited; null ``backward``: as forward."""

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
    """Nodes and links of the topology picture."""

    vertices: tuple[Vertex, ...] = ()
    wires: tuple[Wire, ...] = ()


class RadioUse(Part):
    """One radio at the end of a run: position, airtime and counters."""

    name: str
    """Its port, ``node:interface``."""
    medium: str
    mhz: int
    """Centre frequency of its channel in MHz."""
    channel: int | None = None
    """The channel's number."""
    place_m: tuple[float, float, float] | None = None
    airtime_ns: dict[str, int] = Field(default_factory=dict)
    """Time in ns by state: ``idle``, ``transmitting``, ``receiving``, ``collided``, ``busy``; the sum
    is the whole run. ``busy`` is carrier sense without a decodable frame."""
    dozing_ns: int = 0
    """Time in which the station of the node's own 802.11 stack dozed; wake-ups for beacons are included."""
    counts: dict[str, int] = Field(default_factory=dict)
    """Frames by the engine's counters: ``sent``, ``unanswered``, ``given_up``, ``received`` etc."""


class SliceUse(Part):
    """Transmissions of a slice on one channel over the whole run."""

    slice: str
    channel: int
    mhz: int
    frames: int = 0
    sent_ns: int = 0
    """Sum of the lengths of its frames, acknowledgments included, in ns."""


class RadioLink(Part):
    """Frames from one radio to another."""

    sender: str
    receiver: str
    attempts: int = 0
    """Transmissions that expect a response, retries included."""
    unanswered: int = 0
    rate_bit_s: int | None = None
    """Rate of the next transmission in bit/s."""


class CardUse(Part):
    """Use of a card by its virtual MACs."""

    medium: str
    card: str
    switches: int
    """Changes of the channel."""
    switching_ns: int
    """Time spent on them."""
    visits: int
    """Turns on channels that only a scan or an association needed."""
    collisions: int
    """Internal collisions: a virtual MAC gave way to another one of the card."""
    scans_asked: int = 0
    """Requests of virtual MACs for the scan of a channel."""
    scans_merged: int = 0
    """Of these, those answered by the scan of another virtual MAC at the same time."""
    scans_cached: int = 0
    """Of these, those answered from the cache."""
    scan_results: int = 0
    """Beacons and probe responses passed on for requests that were not sent."""
    scan_age_ns: int = 0
    """Sum of the ages of these results."""
    scan_oldest_ns: int = 0
    """Greatest of their ages."""
    asleep_ns: int = 0
    """Time in which at least one virtual MAC was on and all of those dozed; wake-ups for beacons are
    included."""
    awake_ns: int = 0
    """The rest of the run."""


class DeviceUse(Part):
    """A device of the engine in a virtual machine: settings in force, and counters."""

    name: str
    """Its port, ``node:interface``; the wireless device of a machine has that of its first radio."""
    notifications: str
    """When the guest is notified of returned buffers: ``off``, ``count``, ``time`` or ``adaptive``."""
    frames: int | None = None
    """Buffers of one notification."""
    time_ns: int | None = None
    """Longest wait of a buffer for its notification."""
    translation: str
    """``direct``, ``bounce``, ``strict``, ``cached`` or ``merged``; ``stream`` without buffers."""
    entries: int | None = None
    """Pages in the cache of translations."""
    taken: int = 0
    """Entries that the guest sent; a super-frame, or a message of a wireless driver, is one."""
    put: int = 0
    """Entries that the guest received."""
    kicks: int = 0
    """Notifications by the guest."""
    calls: int = 0
    """Notifications to the guest."""
    spared: int = 0
    """Notifications that the guest did not want."""
    again: int = 0
    """Notifications repeated because the guest did not react."""
    longest_hold_ns: int = 0
    """Longest time from the return of a buffer to the decision to notify the guest of it."""
    mapped: int = 0
    """Mappings of buffers or pages that the translation made."""
    cache_hits: int = 0
    cache_misses: int = 0
    """Pages that were, and were not, in the cache of translations."""
    bounced_octets: int = 0
    """Octets that were copied once more."""


class Spun(Part):
    """A program in virtual time that called its kernel over and over without waiting."""

    guest: str
    program: str
    """Its name, at most 15 octets; empty for all others of a guest with very many."""
    calls: int
    """Calls that were charged time."""
    nanoseconds: int
    """Virtual time that they were charged."""


class ProcessorUse(Part):
    """What a guest has worked on a modelled processor in virtual time."""

    processor: str
    guest: str
    nanoseconds: int
    """Virtual time for which the processor worked for it."""
    interrupts: int
    """Instants at which it has acted."""
    context_switches: int
    """How often the processor switched to it from another guest."""
    frames: int
    """Frames that it has sent or received."""


class ChannelUse(Part):
    """One channel of a medium over the whole run, at all positions."""

    medium: str
    channel: int
    mhz: int
    frames: int = 0
    airtime_ns: dict[str, int] = Field(default_factory=dict)
    """``busy``: at least one sender; ``overlapped``: several; ``sent``: all frames; in ns."""


class _Flow(Part):
    """Frames of one direction of a link."""

    left: int | None = None
    queue_highest: int | None = None
    duplicated: int = 0
    corrupted: int = 0
    reordered: int = 0
    marked: int = 0
    dropped: dict[str, int] | None = None


class _Account(Part):
    """What is read of the engine's ledger."""

    offered: int = 0
    missed: int = 0
    copies: int = 0
    in_flight: int = 0
    links: dict[str, dict[str, _Flow | list[Any] | str | float | bool | None]] = Field(default_factory=dict)


def _as_account(raw: dict[str, Any]) -> dict[str, Any]:
    _Account.model_validate(raw)
    return raw


EngineLedger = Annotated[dict[str, Any], AfterValidator(_as_account)]
"""The engine's ledger as it is; what reports need of it has the right types."""


class Details(Part):
    """Contents of ``details.json``."""

    version: int = SCHEMA
    versions: dict[str, str] = Field(default_factory=dict)
    """Software versions by name: ``airloom``, ``kernel``, ``python``, ``iperf3`` and the like."""
    machine: dict[str, str | int | float] = Field(default_factory=dict)
    """Description of the machine: processor, cores, memory and so on."""
    limits: dict[str, str] = Field(default_factory=dict)
    """Limits of the verdict, in words with units."""
    engine: EngineLedger = Field(default_factory=dict)
    """The engine's complete ledger: offered, copies, in_flight, links, ports."""
    host_lost: dict[str, int] = Field(default_factory=dict)
    """Frames lost by this machine, by reason."""
    lateness: tuple[Bin, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    inputs: dict[str, str] | None = None
    """Digests of all input files of the scenario, by path."""
    length_ns: int = 0
    """Engine time at the end in ns."""
    calendar_ns: int = 0
    """In virtual time: the calendar's time at time zero, in ns since it began at 2020-01-01 00:00:00 UTC."""
    processors: dict[str, float] = Field(default_factory=dict)
    """``guest_user``, ``guest_kernel``, ``host_kernel``, ``engine``: busy processors on average."""
    programs: tuple[ProgramEnd, ...] = ()
    profile: tuple[Hotspot, ...] = ()
    """Whole components first, then the functions with most samples; only with profiling enabled."""
    happenings: tuple[Happening, ...] = ()
    captured: Captured | None = None
    """Only with captures."""
    control: tuple[ControlMessages, ...] = ()
    """Messages of the control channels of Open vSwitches; only with captures. Samples of ``control``
    contain their rates: the metric is the type, the node ``SWITCH`` and its slice."""
    control_answers: tuple[ControlAnswers, ...] = ()
    guidance: tuple[Advice, ...] = ()
    """Advice for figures between nodes of kinds that were calibrated on this machine."""
    topology: Topology = Topology()
    radios: tuple[RadioUse, ...] = ()
    """All radios. Samples of ``radio`` contain their trajectories: metrics ``x``, ``y``, ``z`` in m,
    with the radio's name as node; one sample for a radio that never moves."""
    channels: tuple[ChannelUse, ...] = ()
    slices: tuple[SliceUse, ...] = ()
    """Samples of ``slice`` contain the time series: metric ``airtime``, the share of the interval in
    which the slice's radios transmitted, with ``SLICE:CHANNEL`` as node."""
    cards: tuple[CardUse, ...] = ()
    """Physical radios that several radios share."""
    devices: tuple[DeviceUse, ...] = ()
    """Devices of the engine in virtual machines."""
    spun: tuple[Spun, ...] = ()
    """In virtual time: programs that were charged time because they did not wait."""
    processor_use: tuple[ProcessorUse, ...] = ()
    """In virtual time: what guests have worked on modelled processors."""
    radio_links: tuple[RadioLink, ...] = ()
    """Samples of ``radio-link`` contain the time series: metrics ``rate`` in bit/s and ``retries``
    (share of the interval's attempts without a response), with ``sender>receiver`` as node."""

    def to_json(self) -> str:
        """Returns the text of ``details.json``."""
        raw = self.model_dump(mode="json")
        raw = {"schema": raw.pop("version"), **raw}
        # Without indentation, which takes seconds with thousands of nodes.
        return json.dumps(raw, ensure_ascii=False, allow_nan=False) + "\n"


def read(path: Path) -> Details:
    """Reads a ``details.json``; empty details for a run without one."""
    try:
        return stored.model(path, Details, version="version")
    except FileNotFoundError:
        return Details()
