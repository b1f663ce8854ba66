"""``airloom calibrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from airloom.cli import completing
from airloom.errors import ScenarioError


def command(
    kinds: Annotated[
        list[str],
        typer.Argument(metavar="KIND...", help="Such as netns, uml, qemu.", autocompletion=completing.kinds),
    ],
    rounds: Annotated[int, typer.Option(min=1, help="More rounds, narrower intervals.")] = 3,
) -> None:
    """Measure the effects of node kinds on packets on this machine, for the guidance of later runs.

    Finds each kind's ceiling in packets/s, its added delay and jitter compared to the host's own
    network stack, and the cost of a packet. Stores it below ~/.local/share/airloom/calibration;
    runs with nodes of that kind then report which figures are harmless, correctable or unusable.
    """
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
