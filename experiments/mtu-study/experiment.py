"""The MTU study: bandwidth and jitter of three frame sizes, beside its real network and Mininet.

See README.md beside this file for what is compared with what.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from airloom.bench.peers import installed_mininet
from airloom.experiments import capacity_search
from airloom.experiments.extent import Extent
from airloom.host import binaries
from airloom.measure import captures, flow, records
from airloom.planning.capture import Capture
from airloom.report import figures
from airloom.report.figures import Figure, Line
from airloom.results import Measurement, Result, RunWriter, claims
from airloom.units.figures import Quantity


def _beside(name: str) -> Any:
    """A module of this folder, which is no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"airloom_mtu_study_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


cases = _beside("cases")
equipment = _beside("equipment")
tunnelled = _beside("tunnelled")

TUNNELLED = cases.NINE[6]
"""The case whose throughput in a tunnel is claimed."""

WIRE, AIRLOOM, TUNNEL = "airloom, on the wire", "airloom, at the receiver", "airloom, over GRE"
MININET, MODEL = "mininet here", "equipment model"
"""Where a series was seen: by the engine's capture, by the receiving kernel, by that of a second laboratory
beyond a tunnel, on Mininet, in memory."""
REAL, PUBLISHED = "real, published", "mininet, published"
MEAN_WITHIN = 0.005
SETTLED = "slip"
"""What links do here with time that the host lost."""


def run(folder: Path, *, extent: Extent, progress: Callable[[str], None]) -> Result:
    """All cases; finished runs are kept when it is run again."""
    seconds = extent.choose(full=9.0, quick=1.5, smoke=0.5)
    packets = extent.choose(full=6000, quick=1000, smoke=200)
    nine = extent.choose(full=cases.NINE, quick=cases.NINE, smoke=(TUNNELLED,))
    in_tunnel = extent.choose(full=cases.NINE, quick=(cases.NINE[0], TUNNELLED), smoke=(TUNNELLED,))
    seen: dict[tuple[str, str], Any] = {}
    invalid: set[str] = set()
    """Cases that no claim uses: this machine failed them."""
    others = extent.choose(full=cases.sizes(), quick=cases.sizes()[-2:-1], smoke=cases.sizes()[-2:-1])
    starts = extent.choose(full=cases.STARTS, quick=cases.STARTS[:1], smoke=())
    with RunWriter(folder, scenario="mtu-study", seed=1, kinds=("netns",), replace=True) as writer:
        lengths = dict.fromkeys((*nine, *others), seconds)
        lengths |= dict.fromkeys(starts, cases.START_SECONDS)
        for case, length in lengths.items():
            progress(f"{case.id}: {case.load} Mbit/s of {case.frame} B over {case.link} Mbit/s")
            seen[case.id, WIRE], seen[case.id, AIRLOOM], valid = _airloom(folder, case, length)
            if not valid:
                invalid.add(case.id)
        for case in in_tunnel:
            progress(f"{case.id} over GRE")
            reading, inner = tunnelled.measure(case, seconds, folder / "tunnel" / case.id, late=SETTLED)
            seen[case.id, TUNNEL] = cases.Series.of(reading, inner)
        if installed_mininet.python() is not None and os.geteuid() == 0:
            for case in (*nine, *starts):
                progress(f"{case.id} on Mininet")
                seen[case.id, MININET] = _mininet(case, lengths[case])
        fits = _fitted(packets, progress)
        best = {fit.link: fit.model for fit in reversed(fits)}
        for case in cases.NINE:
            reading = equipment.simulate(case, best[case.link], packets)
            seen[case.id, MODEL] = cases.Series.of(reading, case.frame)
        writer.measured(*_table(seen), *_fits(fits))
        believed = {
            key: one for key, one in seen.items() if key[0] not in invalid or key[1] not in (WIRE, AIRLOOM)
        }
        figures.save(folder, [*_curves(seen), *_overview(seen)])
        return writer.finish(*capacity_search.whole(folder), claims=_claims(believed))


def _airloom(folder: Path, case: Any, seconds: float) -> tuple[Any, Any, bool]:
    """The case as the wire had it, as the receiving kernel saw it, and whether the run may be believed."""
    name = case.id.lower()
    reader = capacity_search.point(
        folder, name, case.scenario(seconds, late=SETTLED), capture=Capture(merged=True)
    )
    capture = reader.folder / "capture.pcapng"
    wire = captures.flow(capture, capture, sender_port="h1:eth0", receiver_port="h2:eth0")
    measured = reader.folder / "measurements" / "flow"
    ends = [records.read(measured / f"{end}.out") for end in ("sender", "receiver")]
    receiver = flow.join(*ends)
    valid = capacity_search.believable([reader])
    return cases.Series.of(wire, case.frame), cases.Series.of(receiver, case.frame, case.full), valid


def _mininet(case: Any, seconds: float) -> Any:
    words = ["--frame", f"{case.frame} B", "--rate", f"{case.load} Mbit/s", "--rate-of", "frame"]
    words += ["--duration", f"{seconds} s"]
    with tempfile.TemporaryDirectory(prefix="airloom-mtu-study-") as place:
        installed_mininet.on_mininet(
            "stream", binaries.find("airloom-traffic"), case.link, case.mtu, place, case.family, *words
        )
        ends = [records.read(Path(place) / f"{end}.rec") for end in ("sender", "receiver")]
        return cases.Series.of(flow.join(*ends), case.frame)


def _fitted(packets: int, progress: Callable[[str], None]) -> list[Any]:
    published = cases.published()
    jitters = {case.id: published[case.id, "real"].jitter[0] for case in cases.NINE}
    bandwidths = {case.id: published[case.id, "real"].bandwidth[0] for case in cases.NINE}
    return equipment.fit(cases.NINE, jitters, bandwidths, packets, progress)


def _table(seen: dict[tuple[str, str], Any]) -> Iterable[Measurement]:
    published = cases.published()
    for (case, network), series in seen.items():
        rows = [
            ("bandwidth", "mean", "bit/s", series.mean * 1e6),
            ("bandwidth", "mean_uninterrupted", "bit/s", series.running * 1e6),
            ("bandwidth", f"max_{cases.WINDOW}", "bit/s", series.top * 1e6),
            ("bandwidth", "max", "bit/s", series.peak * 1e6),
            ("bandwidth", f"min_{cases.WINDOW}", "bit/s", series.low * 1e6),
            *(
                ("jitter", metric, "ns", value * 1e6)
                for metric, value in zip(("mean", "max", "min"), series.jitter, strict=True)
            ),
        ]
        for name, metric, unit, value in rows:
            if value != float("inf"):
                yield _measurement(case, network, name, metric, unit, value)
    for (case, network), cell in published.items():
        where = REAL if network == "real" else PUBLISHED
        for name, values, unit, scale in (
            ("bandwidth", cell.bandwidth, "bit/s", 1e6),
            ("jitter", cell.jitter, "ns", 1e6),
        ):
            for metric, value in zip(("mean", "max", "min"), values, strict=True):
                if value is not None:
                    yield _measurement(case, where, name, metric, unit, value * scale)


def _measurement(case: str, network: str, name: str, metric: str, unit: str, value: float) -> Measurement:
    return Measurement(
        name=name, metric=metric, unit=unit, mean=value, labels={"case": case, "network": network}
    )


def _fits(fits: list[Any]) -> Iterable[Measurement]:
    for fit in fits:
        labels = {"link": f"{fit.link} Mbit/s", "model": fit.model.word}
        yield Measurement(
            name="fit", metric="parameter", unit="ns", mean=fit.model.value * 1000, labels=labels
        )
        yield Measurement(name="fit", metric="gap", unit="ns", mean=fit.model.gap * 1000, labels=labels)
        yield Measurement(name="fit", metric="misses_by_factor", unit="1", mean=fit.factor, labels=labels)


_ROLES: dict[str, figures.Role] = {
    WIRE: "measured",
    AIRLOOM: "measured",
    TUNNEL: "measured",
    MININET: "reference",
    MODEL: "reference",
}


def _curves(seen: dict[tuple[str, str], Any]) -> Iterable[Figure]:
    for case in (*cases.NINE, *(case for case in cases.STARTS if (case.id, WIRE) in seen)):
        shown = {network: seen[case.id, network] for network in _ROLES if (case.id, network) in seen}
        what = f"{case.id}: {case.load} Mbit/s of {case.frame} B over {case.link} Mbit/s"
        for name, unit in (("bandwidth", "Mbit/s"), ("jitter", "ms")):
            lines = [
                Line(
                    label=network,
                    role=_ROLES[network],
                    x=series.packets,
                    y=series.bandwidths if name == "bandwidth" else series.jitters,
                )
                for network, series in shown.items()
            ]
            if name == "bandwidth":
                ends = (float(cases.WINDOW), max(line.x[-1] for line in lines))
                lines.insert(0, Line(label="ideal", role="ideal", x=ends, y=(case.ideal, case.ideal)))
            yield Figure(
                name=f"{name}-{case.id.lower()}",
                title=f"{name.capitalize()}, {what}",
                x_label="packet number",
                y_label=f"{name} of the last {cases.WINDOW} packets",
                unit=unit,
                lines=tuple(lines),
                log_x=True,
                log_y=name == "jitter" and all(value for line in lines for value in line.y),
            )


def _overview(seen: dict[tuple[str, str], Any]) -> Iterable[Figure]:
    """Means of all nine cases: published, measured, and by the models of equipment."""
    published = cases.published()
    numbers = tuple(float(number) for number, _ in enumerate(cases.NINE, 1))

    def line(label: str, role: figures.Role, values: Iterable[float | None]) -> Line:
        return Line(label=label, role=role, x=numbers, y=tuple(values))

    def column(network: str, pick: Callable[[Any], float]) -> list[Line]:
        if not any((case.id, network) in seen for case in cases.NINE):
            return []
        found = (seen.get((case.id, network)) for case in cases.NINE)
        return [line(network, _ROLES[network], (one and pick(one) for one in found))]

    for name, pick in (("bandwidth", lambda one: one.mean), ("jitter", lambda one: max(one.jitter[0], 1e-6))):
        per_load = name == "bandwidth"
        scale = [case.load if per_load else 1 for case in cases.NINE]
        known = {
            network: [getattr(published[case.id, key], name)[0] for case in cases.NINE]
            for network, key in ((REAL, "real"), (PUBLISHED, "mininet"))
        }
        lines = [
            line(
                network, "published", ((value / by) or None for value, by in zip(values, scale, strict=True))
            )
            for network, values in known.items()
        ]
        for network in _ROLES:
            lines += [
                one.model_copy(
                    update={"y": tuple(value and value / by for value, by in zip(one.y, scale, strict=True))}
                )
                for one in column(network, pick)
            ]
        yield Figure(
            name=f"{name}-means",
            title=f"Mean {name} of the nine cases",
            x_label="case E-MTU-n",
            y_label="part of the offered load" if per_load else "mean jitter",
            unit="" if per_load else "ms",
            lines=tuple(lines),
            log_y=not per_load,
            caption="The equipment's parameters were fitted to the published means of the real network.",
        )


def _claims(seen: dict[tuple[str, str], Any]) -> list:
    nine = [case for case in cases.NINE if (case.id, WIRE) in seen]

    values: dict[str, Quantity] = {}

    def most(name: str, network: str, pick: Callable[[Any, Any], float], some: Iterable[Any] = nine) -> None:
        found = [pick(case, seen[case.id, network]) for case in some if (case.id, network) in seen]
        if found:
            values[name] = Quantity.of(max(found), "1")

    def peak(case: Any, series: Any) -> float:
        return float(series.peak / case.link)

    def top(case: Any, series: Any) -> float:
        return float(series.top / case.link)

    def off(case: Any, series: Any) -> float:
        return float(abs(series.mean / case.ideal - 1))

    def off_running(case: Any, series: Any) -> float:
        return float(abs(series.running / case.ideal - 1))

    others = [case for case in (*cases.sizes(), *cases.STARTS) if (case.id, WIRE) in seen]
    every = [*nine, *others]
    most("wire.peak", WIRE, peak, every)
    most("receiver.top", AIRLOOM, top, every)
    most("receiver.peak", AIRLOOM, peak, every)
    most("receiver.off", AIRLOOM, off)
    most("receiver.off_running", AIRLOOM, off_running)
    most("others.off", AIRLOOM, off, others)
    octets = TUNNELLED.frame - tunnelled.OVERHEAD
    packet = octets - cases.HEADER_AND_CHECK
    whole = (octets / packet) * (TUNNELLED.mtu / TUNNELLED.frame) * TUNNELLED.ideal
    most("tunnel.packets", TUNNEL, lambda _, series: float(series.mean / whole), [TUNNELLED])
    most("mininet.start", MININET, peak, cases.STARTS)
    known = claims.from_measurements((), values)
    wanted = [
        ("wire", "On the wire no window of any length, from the first packet on, is faster than the link.",
         "wire.peak <= 1.000", None),
        ("receiver", f"Nor is any of {cases.WINDOW} packets or more, as the receiver's kernel stamps them.",
         "receiver.top <= 1.000", "receiver.top <= 1.01"),
        ("packets", "Nor are two packets that follow each other, as the receiver's kernel stamps them.",
         "receiver.peak <= 1.000", "receiver.peak <= 1.2"),
        ("mean", "The mean bandwidth is within 0.5 % of the ideal for the frame size, at the receiver.",
         f"receiver.off <= {MEAN_WITHIN}", f"receiver.off <= {2 * MEAN_WITHIN}"),
        ("running", "So it is less interruptions of more than 1 ms, for which a full link stood still.",
         f"receiver.off_running <= {MEAN_WITHIN}", f"receiver.off_running <= {2 * MEAN_WITHIN}"),
    ]  # fmt: skip
    wanted += [
        ("others", "So it is within 1 % for other sizes, for IPv6, and for a sender that begins too fast.",
         "others.off <= 0.01", None),
    ]  # fmt: skip
    share = f"{packet / TUNNELLED.mtu:.4f}"
    wanted += [
        ("tunnel", f"Over GRE a full link carries {packet} octets of each packet of {TUNNELLED.mtu}.",
         f"tunnel.packets within 1 % of {share}", f"tunnel.packets within 3 % of {share}"),
    ]  # fmt: skip
    if "mininet.start" in values:
        wanted += [
            ("mininet", "Mininet lets packets follow each other faster than its link (published: to 3.15).",
             "mininet.start >= 2.08", "mininet.start > 1.000"),
        ]  # fmt: skip
    return [
        claims.evaluate(
            name, statement, check, known,
            source="E-MTU-1 to E-MTU-9, P-30", shape=shape, unmeasured="undecided",
        )
        for name, statement, check, shape in wanted
    ]  # fmt: skip
