"""Queues in front of a wire, and policers before them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import Listed, Model
from airloom.units.quantities import Duration, Fraction, Rate, Size

Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Dscp = Annotated[int, Field(ge=0, le=63, strict=True)]
"""Differentiated services code point (RFC 2474)."""


class Policer(Model):
    """A token bucket that drops what does not conform."""

    rate: Rate = Field(description="rate of the tokens; frames count with the Ethernet header")
    burst: Size = Field(description="octets of the bucket, which is full at first")


class QueueClass(Model):
    """A class of a queue by the DSCP of its packets."""

    dscp: Annotated[list[Dscp], Listed] = Field(
        default=[], description="code points, 0 to 63: expedited forwarding is 46"
    )
    quantum: Annotated[Size, Field(ge=64, le=1 << 20)] = Field(
        default=Size("1514 B"), description="drr: octets of the class in each round, 64 B to 1 MiB"
    )
    packets: Annotated[int, Field(ge=1, le=2**32 - 1, strict=True)] | None = Field(
        default=None, description="limit in frames, beside those of the whole queue"
    )


class Queue(Model):
    """Queue in front of a wire; 1000 packets if no limit is given."""

    packets: Annotated[int, Field(ge=1, le=2**32 - 1, strict=True)] | None = Field(
        default=None, description="limit in frames"
    )
    size: Size | None = Field(default=None, description="limit in octets")
    time: Duration | None = Field(
        default=None,
        description="limit in time: serialization time of the waiting frames at the present rate",
    )
    discipline: Literal[
        "drop-tail", "red", "codel", "fq-codel", "cake", "pie", "dualpi2", "step", "priority", "drr"
    ] = Field(default="drop-tail", description="queueing discipline")
    ecn: bool = Field(
        default=False,
        description="mark ECN-capable packets (RFC 3168) instead of an early drop; always with step, "
        "dualpi2, cake",
    )
    red_min: Size | None = Field(default=None, description="RED: lower threshold of the mean queue")
    red_max: Size | None = Field(default=None, description="RED: upper threshold of the mean queue")
    red_probability: Fraction = Field(default=0.1, description="RED: drop probability at red_max")
    red_weight: Fraction = Field(default=0.002, description="RED: weight of the newest sample in the mean")
    red_packet: Size = Field(
        default=Size("500 B"), description="RED: typical packet, by which idle time is measured"
    )
    red_above: Literal["drop", "mark"] = Field(
        default="drop",
        description="RED: from red_max on, drop all packets, or mark ECN-capable ones as Linux does; mark "
        "needs `ecn`",
    )
    target: Duration = Field(default=Duration("5 ms"), description="CoDel, CAKE: acceptable standing delay")
    interval: Duration = Field(
        default=Duration("100 ms"), description="CoDel: sliding window; CAKE: usual RTT"
    )
    quantum: Size = Field(default=Size("1514 B"), description="FQ-CoDel: octets of a flow in each round")
    flows: Annotated[int, Field(ge=1, le=65536, strict=True)] = Field(
        default=1024, description="FQ-CoDel: number of flow queues"
    )
    cake_isolation: Literal["flows", "dual-srchost", "dual-dsthost", "triple-isolate"] = Field(
        default="triple-isolate",
        description="CAKE: what shares alike: flows; or source hosts, destination hosts or both, then flows",
    )
    cake_tins: Literal["besteffort", "diffserv3", "diffserv4"] = Field(
        default="diffserv3", description="CAKE: classes by DSCP, as in tc-cake(8)"
    )
    pie_target: Duration = Field(default=Duration("15 ms"), description="PIE: delay to be reached")
    pie_update: Duration = Field(
        default=Duration("15 ms"), description="PIE: time between two updates of the drop probability"
    )
    pie_burst: Duration = Field(
        default=Duration("150 ms"), description="PIE: time for which a burst passes after an idle time"
    )
    pie_alpha: Weight = Field(default=0.125, description="PIE: weight of the deviation from the target, 1/s")
    pie_beta: Weight = Field(default=1.25, description="PIE: weight of the trend of the delay, 1/s")
    dualpi2_target: Duration = Field(
        default=Duration("15 ms"), description="DualPI2: delay of the classic queue to be reached"
    )
    dualpi2_update: Duration = Field(
        default=Duration("15 ms"), description="DualPI2: time between two updates of the probability"
    )
    dualpi2_alpha: Weight = Field(
        default=0.15, description="DualPI2: weight of the deviation from the target, 1/s"
    )
    dualpi2_beta: Weight = Field(default=3.0, description="DualPI2: weight of the trend of the delay, 1/s")
    dualpi2_coupling: Annotated[float, Field(ge=0.01, le=100, allow_inf_nan=False)] = Field(
        default=2.0, description="DualPI2: factor from the base probability to that of low-latency packets"
    )
    dualpi2_step: Duration = Field(
        default=Duration("800 us"),
        description="DualPI2: time in the low-latency queue from which packets are marked; at least that of "
        "a packet of 1500 octets on the wire",
    )
    dualpi2_ramp: Duration = Field(
        default=Duration("400 us"),
        description="DualPI2: further time in which the share of marked ones grows to all; 0 s for a step",
    )
    dualpi2_classic: Annotated[Fraction, Field(lt=1)] = Field(
        default=0.0625, description="DualPI2: least share of the classic queue while both wait"
    )
    step_packets: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = Field(
        default=None, description="step: ECN-capable packets are marked above so many frames in the queue"
    )
    step_size: Size | None = Field(default=None, description="step: the threshold in octets")
    step_time: Duration | None = Field(
        default=None, description="step: the threshold in time at the present rate"
    )
    classes: Annotated[list[QueueClass], Listed, Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="priority, drr: the classes in the order of priority; a packet belongs to the first that "
        "names its DSCP, otherwise to the last",
    )
