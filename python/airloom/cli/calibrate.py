"""``airloom calibrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airloom.cli import completing
from airloom.errors import ScenarioError


def command(
    kinds: Annotated[
        list[str],
        typer.Argument(
            metavar="KIND... | link A.pcap B.pcap",
            help="Such as netns, uml, qemu; or two captures of a path.",
            autocompletion=completing.kinds,
        ),
    ],
    rounds: Annotated[int, typer.Option(min=1, help="More rounds, narrower intervals.")] = 3,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="link: file of the scenario; path.yaml.")
    ] = None,
    synchronized: Annotated[
        bool, typer.Option("--synchronized", help="link: one clock has stamped both captures.")
    ] = False,
    least_delay: Annotated[
        str | None, typer.Option("--least-delay", metavar="DURATION", help="link: known least delay A to B.")
    ] = None,
) -> None:
    """Measure the effects of node kinds on packets on this machine, for the guidance of later runs.

    Finds each kind's ceiling in packets/s, its added delay and jitter compared to the host's own
    network stack, and the cost of a packet. Stores it below ~/.local/share/airloom/calibration;
    runs with nodes of that kind then report which figures are harmless, correctable or unusable.

    With `link`: finds the packets of capture A in capture B, taken at both ends of a path, and writes the
    scenario of a link with its rate, delay and jitter, loss and queue. It is fitted to the first half of
    the packets; the second half is sent over it, and the error printed.

    Example: airloom calibrate link client.pcap server.pcap --out path.yaml
    """
    if kinds[0] == "link":
        _link(kinds[1:], out, synchronized, least_delay)
        return
    for name, given in (("--out", out), ("--least-delay", least_delay), ("--synchronized", synchronized)):
        if given:
            raise ScenarioError("option.unused", f"{name} goes with 'airloom calibrate link'", where=name)
    from airloom.bench.calibrate import calibrate
    from airloom.calibration import model
    from airloom.cli.console import Console
    from airloom.nodes import doctor
    from airloom.nodes.all_nodes import KINDS
    from airloom.report.calibration import overview
    from airloom.report.terminal import rich_table

    for kind in kinds:
        if kind not in KINDS or kind == "native":
            known = ", ".join(name for name in KINDS if name != "native")
            raise ScenarioError(
                "kind.unknown", f"no kind {kind!r} can be calibrated", where="KIND", cure=f"kinds: {known}"
            )
    # Each laboratory checks the further requirements of its own nodes.
    doctor.require_basics(restart=True, taps=False)
    console = Console()
    with console.status("") as status:
        made = [calibrate(kind, status.update, rounds=rounds) for kind in kinds]
    console.print(rich_table(overview(made)))
    for one in made:
        console.print(f"kept in {model.keep(one)}", soft_wrap=True)


def _link(words: list[str], out: Path | None, synchronized: bool, least_delay: str | None) -> None:
    from airloom.cli.calibrate_link import calibrate
    from airloom.units.quantities import Duration
    from airloom.units.reading import UnitError

    if len(words) != 2:
        raise ScenarioError(
            "calibrate.captures",
            f"{len(words)} captures are named, one of each end is needed",
            where="link",
            cure="airloom calibrate link A.pcap B.pcap",
        )
    if synchronized and least_delay is not None:
        raise ScenarioError(
            "option.both", "--synchronized and --least-delay, not both", where="--least-delay"
        )
    try:
        least = None if least_delay is None else int(Duration(least_delay))
    except UnitError as error:
        raise ScenarioError(error.code, error.message, where="--least-delay", cure=error.cure) from None
    a, b = (Path(word) for word in words)
    calibrate(a, b, Path("path.yaml") if out is None else out, synchronized=synchronized, least=least)
