"""Style of the report's figures: for light and dark pages, and for exported files.

Figures on the page are drawn with placeholder colours, which are replaced by the page's CSS
variables, so that one drawing suits both schemes. Exported figures have fixed colours.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TITLE_CHARACTERS = 10
"""Characters of a title in one inch."""


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours by role. ``series`` colours are distinguishable with colour vision deficiency."""

    text: str
    faint: str
    grid: str
    paper: str
    good: str
    warn: str
    bad: str
    series: tuple[str, ...]


PAPER = Ink(
    text="#1c2430",
    faint="#5b6675",
    grid="#dde2e8",
    paper="#ffffff",
    good="#1a7f4b",
    warn="#b26a00",
    bad="#c0322b",
    series=("#1f6fb4", "#d95f02", "#15876b", "#a2478f", "#8a6d00", "#3aa0c9", "#6b5bb8", "#7a7f87"),
)

_VARIABLES = {
    "--ink": "#010a01",
    "--faint": "#010a02",
    "--grid": "#010a03",
    "--paper": "#010a04",
    "--good": "#010a05",
    "--warn": "#010a06",
    "--bad": "#010a07",
    **{f"--s{number}": f"#010b0{number}" for number in range(1, 9)},
}

PAGE = Ink(
    text=_VARIABLES["--ink"],
    faint=_VARIABLES["--faint"],
    grid=_VARIABLES["--grid"],
    paper=_VARIABLES["--paper"],
    good=_VARIABLES["--good"],
    warn=_VARIABLES["--warn"],
    bad=_VARIABLES["--bad"],
    series=tuple(_VARIABLES[f"--s{number}"] for number in range(1, 9)),
)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure that can be drawn in either ink.

    ``name`` is its file name, ``alt`` its text description, ``caption`` the text below it.
    """

    name: str
    title: str
    alt: str
    caption: str
    draw: Any
    size: tuple[float, float] = (5.0, 3.0)
    solved: bool = True
    """Whether matplotlib finds the places of the axes; else the figure sets them itself."""

    def figure(self, ink: Ink) -> Figure:
        """Draws the figure; sizes in inches at 100 dpi."""
        from matplotlib.figure import Figure

        with _settings(ink):
            figure = Figure(figsize=self.size, layout="constrained" if self.solved else None)
            self.draw(figure, ink)
            return figure

    def svg(self, prefix: str) -> str:
        """Returns an SVG element for the page; ``prefix`` makes its IDs unique on the page."""
        sink = io.StringIO()
        with _settings(PAGE):
            figure = self.figure(PAGE)
            _lay_out(figure)
            figure.savefig(sink, format="svg", transparent=True, metadata={"Date": None})
        return _inline(sink.getvalue(), prefix, self.alt)

    def path(self, folder: Path, form: str) -> Path:
        """Returns the path of its file."""
        return folder / f"{self.name}.{form}"

    def save(self, folder: Path, form: str) -> Path:
        """Saves a file, ``png`` or ``svg``, with its title."""
        path = self.path(folder, form)
        with _settings(PAPER):
            figure = self._titled(PAPER)
            figure.savefig(path, format=form, dpi=200, metadata={"Date": None} if form == "svg" else None)
        return path

    def _titled(self, ink: Ink) -> Figure:
        """Draws the figure below its title, which takes as many lines as it needs."""
        from matplotlib.figure import Figure

        width, height = self.size
        lines = textwrap.wrap(self.title, max(12, int(width * TITLE_CHARACTERS)))
        above = 0.12 + 0.19 * len(lines)
        figure = Figure(figsize=(width, height + above), layout="constrained" if self.solved else None)
        parts: Any = figure.subfigures(2, 1, height_ratios=(above, height))
        head, body = parts
        head.text(0.01, 0.5, "\n".join(lines), ha="left", va="center", fontsize=11, fontweight="bold")
        self.draw(body, ink)
        return figure


def _lay_out(figure: Figure) -> None:
    """Places the axes as `savefig` would, which draws the whole figure for it and once more for the file."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    engine = figure.get_layout_engine()
    if engine is None:
        return
    FigureCanvasSVG(figure)
    # To measure text for SVG sets the figure's resolution to that of SVG.
    resolution = figure.dpi
    engine.execute(figure)
    figure.dpi = resolution
    figure.set_layout_engine("none")


COMMON: Mapping[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "airloom",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
}
"""Settings of matplotlib for all figures: text in SVG stays text, and files are the same in each run."""


def _settings(ink: Ink) -> AbstractContextManager[None]:
    import matplotlib
    from cycler import cycler

    settings: Any = {
        **COMMON,
        "font.family": ["DejaVu Sans"],
        "font.size": 9.0,
        "axes.prop_cycle": cycler(color=list(ink.series)),
        "axes.edgecolor": ink.grid,
        "axes.facecolor": ink.paper,
        "axes.labelcolor": ink.faint,
        "axes.labelsize": 9.0,
        "axes.titlesize": 9.5,
        "axes.titlecolor": ink.text,
        "axes.titlelocation": "left",
        # Else each panel measures all of its tick labels to find its title's place, which is this one.
        "axes.titley": 1.0,
        "axes.formatter.useoffset": False,
        "grid.color": ink.grid,
        "grid.linewidth": 0.7,
        "xtick.color": ink.grid,
        "ytick.color": ink.grid,
        "xtick.labelcolor": ink.faint,
        "ytick.labelcolor": ink.faint,
        "text.color": ink.text,
        "figure.facecolor": ink.paper,
        "savefig.facecolor": ink.paper,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
        "lines.linewidth": 1.5,
        "lines.solid_capstyle": "round",
        "path.simplify": True,
    }
    return matplotlib.rc_context(settings)


_DECIMALS = re.compile(r"-?\d+\.\d{2,}(?![\w.])")
_GROUP = re.compile(r"(<g\b[^>]*>|</g>)")


def _rounded(text: str, decimals: int) -> str:
    return _DECIMALS.sub(lambda found: f"{round(float(found[0]), decimals):g}", text)


def _without_plain_groups(svg: str) -> str:
    """Removes groups without attributes, which are half of the elements of matplotlib's files."""
    kept: list[bool] = []
    parts = []
    for part in _GROUP.split(svg):
        if part == "</g>":
            if kept.pop():
                parts.append(part)
        elif _GROUP.fullmatch(part):
            kept.append(part != "<g>")
            if kept[-1]:
                parts.append(part)
        else:
            parts.append(part)
    return "".join(parts)


def _inline(svg: str, prefix: str, alt: str) -> str:
    """Returns an SVG file's text as a page element with unique IDs and the page's colours."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", body)
    body = body.replace("xlink:href=", "href=")
    # Nothing refers to groups, and their names are a tenth of the file.
    body = re.sub(r'<g id="[^"]*"', "<g", body)
    body = _without_plain_groups(re.sub(r"<g/>", "", body))
    body = re.sub(r"\s*\n\s*", "\n", body)
    # A twentieth of a point is invisible; six decimals are a third of the file.
    body = re.sub(r' d="[^"]*"', lambda found: _rounded(found[0], 1), body)
    body = re.sub(r"<[^>]*>", lambda found: _rounded(found[0], 2), body)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = re.sub(r"font-family: 'DejaVu Sans'[^;\"]*", "font-family: var(--font)", body)
    for variable, colour in _VARIABLES.items():
        body = body.replace(colour, f"var({variable})")
    start = re.match(r"<svg[^>]*>", body)
    assert start is not None
    box = re.search(r'viewBox="[^"]*"', start[0])
    view = box[0] if box else ""
    label = html.escape(alt, quote=True)
    return f'<svg {view} role="img" aria-label="{label}"><title>{label}</title>' + body[start.end() :]
