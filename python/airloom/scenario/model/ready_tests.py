"""Ready tests: several programs that measure one path together, after those of flent."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from airloom.scenario.model.base import Model
from airloom.units.given import given
from airloom.units.quantities import Duration, Size

TestKind = Literal["rrul", "rrul_be", "tcp_nup", "voip", "web_page"]
MOST_STREAMS = 32
"""Maximum number of TCP connections of ``tcp_nup``."""
_RRUL = 4
"""TCP connections of RRUL in each direction."""
_VOIP_PACKETS = 100.0
"""Packets per second of two calls: 50 in each direction."""


class Test(Model):
    """Ready test of one path; the words are those of flent.

    rrul (Realtime Response Under Load): four TCP connections in each direction, marked BE, BK (CS1),
    CS5 and EF, and pings marked BE, BK and EF. rrul_be: the same, all BE. tcp_nup: `streams` TCP
    connections and a ping. voip: a G.711 call in each direction. web_page: loads of a page over HTTP.
    """

    kind: TestKind = Field(description="which test")
    source: str = Field(alias="from", description="node that starts the measurement, or `$first`, `$last`")
    to: str = Field(description="node that responds, or `$first`, `$last`")
    duration: Duration = Field(
        default=Duration("60 s"), description="duration of the load, the call or the loads of the page"
    )
    idle: Duration = Field(
        default=Duration("5 s"), description="rrul, tcp_nup: time of pings before and after the load"
    )
    streams: Annotated[int, Field(ge=1, le=MOST_STREAMS, strict=True)] | None = Field(
        default=None, description="tcp_nup: number of TCP connections; 4 by default"
    )
    congestion: str | None = Field(
        default=None, description="rrul, tcp_nup: TCP congestion control, such as cubic"
    )
    objects: Annotated[int, Field(ge=1, le=200, strict=True)] | None = Field(
        default=None, description="web_page: objects of the page beside its document; 10 by default"
    )
    size: Size | None = Field(default=None, description="web_page: octets of each object; 50 kB by default")
    sample: Duration = Field(
        default=Duration("200 ms"),
        description="rrul, tcp_nup: time between samples of TCP sockets (`ss`) and queueing disciplines "
        "(`tc`) in both nodes; 0 s for none",
    )
    family: Literal["ipv4", "ipv6"] | None = Field(
        default=None, description="address family; by default that of the first address"
    )
    resolution: Literal["before", "during"] | None = Field(
        default=None,
        description="address resolution on the path: before (default) knows the neighbours from the start; "
        "during leaves it to the nodes",
    )
    at: Duration = Field(default=Duration(0), description="start, from time zero of the run")

    @property
    def loads(self) -> bool:
        """True if it loads the path by TCP."""
        return self.kind in ("rrul", "rrul_be", "tcp_nup")

    @property
    def ports(self) -> int:
        """Returns the number of transport ports that it needs."""
        streams = given(self.streams, _RRUL)
        known = {"rrul": 2 * _RRUL, "rrul_be": 2 * _RRUL, "tcp_nup": streams, "voip": 2}
        return known.get(self.kind, 1)

    @property
    def least(self) -> int:
        """Returns the shortest duration in ns."""
        return self.duration + (2 * self.idle if self.loads else 0)

    @property
    def expected(self) -> int:
        """Returns the duration in ns if it succeeds."""
        return self.least

    @property
    def offered(self) -> float | None:
        """Returns the packets per second that it sends; None: as many as the path carries."""
        return _VOIP_PACKETS if self.kind == "voip" else None
