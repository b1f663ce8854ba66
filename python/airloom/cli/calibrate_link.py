"""``airloom calibrate link``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airloom.calibration.path_clocks import Clocks
    from airloom.calibration.path_scenario import Fragment, Tested
    from airloom.report.tables import Table


def calibrate(a: Path, b: Path, out: Path, *, synchronized: bool, least: int | None) -> None:
    """Writes the scenario of a link whose packets fare as those of two captures, and says how well."""
    from airloom.calibration.paired import paired
    from airloom.calibration.path_clocks import aligned
    from airloom.calibration.path_scenario import fragment, tables
    from airloom.cli.console import Console, say
    from airloom.errors import writing
    from airloom.host import output
    from airloom.report.terminal import rich_table

    stem = _stem(out)
    for file in (out, *(out.parent / name for name in tables(stem))):
        output.refuse_others(file, output.SCENARIO, "name another file after --out")
    console = Console()
    with console.status("pairing packets"):
        pair, clocks = aligned(paired(a, b), synchronized=synchronized, least=least)
    with console.status("fitting, and sending the second half over the link"):
        made = fragment(pair, stem)
    notes = _notes(made, clocks, pair.ambiguous, pair.joined)
    with writing(out, "file.unwritable", "the scenario", "name another file after --out"):
        for name, content in made.files.items():
            (out.parent / name).write_text(f"{_origin(a, b)}\n# Deviations from the delay.\n{content}")
        out.write_text(f"{_origin(a, b)}\n{_comments(made, notes)}{made.text}")
    for table in _tables(made):
        console.print(rich_table(table))
    for note in notes:
        say(f"note: {note}")
    console.print(f"written to {out}", soft_wrap=True)


def _stem(out: Path) -> str:
    """Returns a name of a scenario for a file."""
    kept = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "-" for char in out.stem)
    return kept.strip("-_") or "path"


def _notes(made: Fragment, clocks: Clocks, ambiguous: int, joined: int) -> list[str]:
    from airloom.units.text import duration

    drift = f", drift {clocks.drift * 1e6:+.1f} us in a second" if clocks.drift else ""
    found = [f"clocks {clocks.how}: B ahead by {duration(clocks.offset)}{drift}"] if clocks.offset else []
    if ambiguous:
        found.append(f"{ambiguous:,} packets are left out: a capture has several of the same content")
    if joined:
        found.append(
            f"{joined:,} frames of more than 1514 octets are left out, which an offload had joined; without "
            "them the load is too small, and rate and queue are wrong (ethtool -K eth0 tso off gso off gro "
            "off before capturing)"
        )
    for word, tested in made.ways.items():
        if tested.model.rate is None:
            found.append(
                f"{word}: packets never waited for each other, so that they tell no rate and no queue"
            )
        elif tested.model.queue is None:
            found.append(f"{word}: the queue never was full; {tested.model.longest:,} octets were the most")
    missing = {"forward", "backward"} - made.ways.keys()
    found += [f"{word}: too few packets for a model; it has the defaults of a link" for word in missing]
    return found


def _origin(a: Path, b: Path) -> str:
    return " ".join(f"# From {a.name} and {b.name}, by `airloom calibrate link`.".split())


def _comments(made: Fragment, notes: list[str]) -> str:
    lines = ["Fitted to the first half, tested with the second, whose packets were sent over this link."]
    for word, tested in made.ways.items():
        figures = (
            f"{one.name} {_shown(one.measured, one.unit)}, here {_shown(one.model, one.unit)}"
            for one in tested.figures
        )
        lines.append(f"{word}: {'; '.join(figures)}; distributions {tested.distance:.3f} apart.")
    lines += [f"Note: {note}" for note in notes]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)


def _tables(made: Fragment) -> list[Table]:
    from airloom.report.tables import table

    return [
        table(
            f"path-{word}",
            f"{'A to B' if word == 'forward' else 'B to A'}: {_model(tested)}",
            ["held-out packets", "measured", "link", "error"],
            [
                [
                    one.name,
                    _shown(one.measured, one.unit),
                    _shown(one.model, one.unit),
                    "-" if one.error is None else f"{100 * one.error:+.1f} %",
                ]
                for one in tested.figures
            ],
            numeric=(1, 2, 3),
            note=f"Fitted to {tested.packets:,} packets, tested with {tested.held_out:,} later ones. The "
            f"distributions of delay are {tested.distance:.3f} apart (Kolmogorov and Smirnov).",
        )
        for word, tested in made.ways.items()
    ]


def _model(tested: Tested) -> str:
    model = tested.model
    parts = [
        "no rate" if model.rate is None else f"{model.rate / 1e6:.3f} Mbit/s",
        f"{model.delay / 1e6:.3f} ms",
    ]
    if model.queue is not None:
        parts.append(f"queue of {model.queue:,} octets")
    parts.append(f"loss {100 * model.loss:.3g} %" + (" in bursts" if model.bursts else ""))
    return ", ".join(parts)


def _shown(value: float, unit: str) -> str:
    return f"{100 * value:.3g} %" if unit == "1" else f"{value / 1e6:.3f} ms"
