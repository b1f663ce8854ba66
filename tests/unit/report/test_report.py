"""Reports of made-up runs: the page is whole, fetches nothing, and says what the data say."""

from __future__ import annotations

import csv
import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from airloom import report
from airloom.errors import RunError, ScenarioError
from airloom.report import series, tables, topology
from airloom.results import Ledger, Measurement, RunReader, RunWriter, Verdict
from airloom.results.details import Topology, Vertex, Wire
from helpers import fake_results

VOID = {"meta", "br", "link", "img", "hr", "input", "path", "use", "rect"}


class WellFormed(HTMLParser):
    """Follows a page's elements; ``wrong`` is whatever does not nest."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.titles: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, dict(attrs))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._attributes(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"{tag} at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.titles.append(data)

    def _attributes(self, tag: str, attributes: dict[str, str | None]) -> None:
        if attributes.get("id"):
            self.ids.append(str(attributes["id"]))
        for value in attributes.values():
            self.references += re.findall(r"url\(([^)]*)\)", value or "")
        for name in ("href", "src", "action", "data", "srcset"):
            if attributes.get(name):
                self.references.append(str(attributes[name]))
        if tag == "svg":
            self.images.append(attributes)


def parsed(path: Path) -> WellFormed:
    parser = WellFormed()
    parser.feed(path.read_text())
    parser.close()
    return parser


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_results.run(tmp_path_factory.mktemp("report") / "run")


@pytest.fixture(scope="module")
def two_measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with few figures, for pages of several runs."""
    return fake_results.run(tmp_path_factory.mktemp("report") / "run", only=("rtt", "goodput"))


@pytest.fixture(scope="module")
def sweep_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fake_results.sweep(tmp_path_factory.mktemp("report") / "sweep", values=(2, 3, 5), repetitions=2)


Told = list[tuple[str, float]]


@pytest.fixture(scope="module")
def written(run_folder: Path) -> tuple[Path, Told]:
    """The page of the run, and the progress that was told while it was made."""
    told: Told = []
    return report.write([run_folder], progress=lambda what, share: told.append((what, share))), told


@pytest.fixture(scope="module")
def page(written: tuple[Path, Told]) -> Path:
    return written[0]


@pytest.fixture(scope="module")
def sweep_page(sweep_folder: Path) -> Path:
    return report.write([sweep_folder])


def test_the_page_is_well_formed_and_complete(page: Path) -> None:
    found = parsed(page)
    assert found.wrong == []
    assert found.open == []
    for title in ("Measurements", "Claims", "Topology", "Over time", "Distributions", "Ledger", "As run"):
        assert title in found.titles
    for title in ("Throughput over time", "Round-trip time, distribution", "Lateness of deliveries"):
        assert title in found.titles


@pytest.mark.slow
def test_the_page_fetches_nothing(page: Path, sweep_page: Path) -> None:
    for path in (page, sweep_page):
        text = path.read_text()
        assert "http://" not in text
        assert "https://" not in text
        assert "<script" not in text
        assert "@import" not in text
        assert "default-src 'none'" in text
        found = parsed(path)
        assert all(reference.startswith("#") for reference in found.references)


def test_every_id_is_its_own_and_every_reference_is_met(page: Path) -> None:
    found = parsed(page)
    assert len(found.ids) == len(set(found.ids))
    assert {reference[1:] for reference in found.references} <= set(found.ids)


def test_every_picture_says_in_words_what_it_shows(page: Path) -> None:
    images = parsed(page).images
    assert len(images) >= 10
    for image in images:
        assert image["role"] == "img"
        assert len(str(image["aria-label"])) > 20


def test_pictures_take_the_colours_of_the_page(page: Path) -> None:
    text = page.read_text()
    assert "var(--s1)" in text
    assert "#010a0" not in text
    assert "#010b0" not in text
    assert "DejaVu Sans'" not in text.partition("</style>")[2]


def test_verdict_and_reasons_are_on_the_page(page: Path) -> None:
    text = page.read_text()
    assert '<div class="verdict degraded"' in text
    assert "one of 100 by more than 1.62 ms" in text
    assert "126,060 = 126,060" in text


def test_of_very_many_reasons_the_first_are_seen_at_once(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "many", scenario="many", seed=1, kinds=["netns"])
    reasons = tuple(f"reason {number}" for number in range(30))
    notes = tuple(f"note {number}" for number in range(9))
    writer.finish(Verdict(status="degraded", reasons=reasons, notes=notes), Ledger())
    page = report.write([tmp_path / "many"])
    assert parsed(page).wrong == []
    assert "26 more reasons" in page.read_text()
    assert "8 more notes" in page.read_text(), "they differ by numbers only"
    console = Console(width=80, color_system=None, record=True, file=io.StringIO())
    console.print(report.on_terminal(tmp_path / "many"))
    assert "and 26 more in result.json" in console.export_text()


def test_of_very_many_reasons_one_of_each_code_is_seen_at_once(tmp_path: Path) -> None:
    reasons = (*(f"run {number}: late" for number in range(9)), "run 3: lost")
    codes = (*["delivery.late"] * 9, "host.lost")
    verdict = Verdict(status="invalid", reasons=reasons, codes=codes)
    shown, others = tables.reasons(verdict)
    assert shown == ["run 0: late (and 8 more like it)", "run 3: lost"]
    assert others == list(reasons[1:9])
    few = Verdict(status="degraded", reasons=reasons[:3], codes=codes[:3])
    assert tables.reasons(few) == (list(reasons[:3]), []), "few are all seen"
    mixed = Verdict(status="degraded", reasons=reasons[:3], codes=("a", "b", "a"))
    assert tables.reasons(mixed) == (list(reasons[:3]), []), "in the verdict's own order, the worst first"
    writer = RunWriter(tmp_path / "many", scenario="many", seed=1, kinds=["netns"])
    writer.finish(verdict, Ledger())
    page = report.write([tmp_path / "many"])
    assert parsed(page).wrong == []
    assert "8 more reasons" in page.read_text()
    console = Console(width=80, color_system=None, record=True, file=io.StringIO())
    console.print(report.on_terminal(tmp_path / "many"))
    text = console.export_text()
    assert "run 3: lost" in text
    assert "and 8 more in result.json" in text


def test_of_very_many_notes_the_first_of_those_alike_are_seen_at_once(tmp_path: Path) -> None:
    notes = (*(f"slice one: {number} % of a rate" for number in range(9)), "the pace was lost", "a third")
    writer = RunWriter(tmp_path / "many", scenario="many", seed=1, kinds=["netns"])
    writer.finish(Verdict(notes=notes), Ledger())
    text = report.write([tmp_path / "many"]).read_text()
    assert "Note: slice one: 0 % of a rate (and 8 more like it)" in text
    assert "Note: the pace was lost<" in text
    assert "9 more notes" in text
    console = Console(width=80, color_system=None, record=True, file=io.StringIO())
    console.print(report.on_terminal(tmp_path / "many"))
    shown = console.export_text()
    assert "note: slice one: 0 % of a rate (and 8 more like it)" in shown
    assert "and 9 more notes in result.json" in shown


def test_what_programs_wrote_cannot_become_markup(page: Path) -> None:
    text = page.read_text()
    assert "&lt;&amp;&gt;" in text
    assert "\x1b" not in text


@pytest.mark.slow
def test_the_same_run_gives_the_same_page(run_folder: Path, page: Path) -> None:
    before = page.read_text()
    assert report.write([run_folder]).read_text() == before


@pytest.mark.slow
def test_a_sweep_shows_curves_and_its_runs(sweep_page: Path) -> None:
    found = parsed(sweep_page)
    assert found.wrong == []
    assert "Round-trip time against topology.nodes" in found.titles
    assert "Throughput against topology.nodes" in found.titles
    labels = " ".join(str(image["aria-label"]) for image in found.images)
    # 2 ms for every link, there and back, and about 0.1 ms of noise
    assert re.search(r"avg: from 2\.1\d* to 8\.1\d* ms", labels)
    # Figures and pivot tables come first, the flat table of all figures last.
    assert found.titles.index("Throughput") < found.titles.index("Runs") < found.titles.index("All figures")
    assert "Topology" in found.titles


@pytest.mark.slow
def test_several_runs_share_one_page(two_measured: Path, sweep_folder: Path, tmp_path: Path) -> None:
    path = report.write([two_measured, sweep_folder], tmp_path / "both.html")
    found = parsed(path)
    assert found.wrong == []
    assert "Overview" in found.titles
    # A sweep and a single run have no points in common, and the page says so.
    assert "swept over different paths" in path.read_text()
    assert len(found.ids) == len(set(found.ids))


@pytest.mark.slow
def test_runs_stand_side_by_side(two_measured: Path, tmp_path: Path) -> None:
    other = fake_results.run(tmp_path / "other", nodes=6, seed=2, only=("rtt", "goodput"))
    path = report.write([two_measured, other], tmp_path / "both.html")
    found = parsed(path)
    assert found.wrong == []
    assert found.titles.index("Overview") < found.titles.index("Side by side")
    labels = [str(image["aria-label"]) for image in found.images]
    both = next(label for label in labels if label.startswith("Round-trip time, distribution"))
    assert "run: median" in both
    assert "other: median" in both
    console = Console(width=80, color_system=None, record=True, file=io.StringIO())
    console.print(report.together_on_terminal([two_measured, other]))
    text = console.export_text()
    row = next(line for line in text.splitlines() if "throughput" in line)
    assert row.count("Mbit/s") >= 2
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_export_of_several_runs_has_their_joint_figures(two_measured: Path, tmp_path: Path) -> None:
    same = fake_results.run(tmp_path / "run", nodes=6, seed=2, only=("rtt", "goodput"))
    assert same.name == two_measured.name
    written = report.export_together([two_measured, same], tmp_path / "out", ["svg", "csv"])
    names = {str(path.relative_to(tmp_path / "out")) for path in written}
    assert {"together.csv", "run/topology.svg", "run-2/topology.svg"} <= names
    with (tmp_path / "out" / "together.csv").open() as source:
        row = next(row for row in csv.DictReader(source) if row["metric"] == "throughput")
    assert len([one for name, one in row.items() if str(same) in name or str(two_measured) in name]) == 2
    joint = next(path for path in written if path.name.startswith("distribution-rtt"))
    assert joint.parent == tmp_path / "out"
    assert str(same) in joint.read_text()


def test_a_run_cut_short_has_a_report(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "cut", scenario="cut", seed=1, kinds=["netns"])
    writer.record("rtt", "rtt", "ns", [1, 2], [5e6, 6e6])
    writer.flush()
    text = report.write([tmp_path / "cut"]).read_text()
    assert "has not finished" in text
    assert "Round-trip time over time" in text
    assert "Not known: the run ended before it could write its account" in text
    assert "No frame was lost" not in text


def test_an_empty_run_has_a_report(tmp_path: Path) -> None:
    writer = RunWriter(tmp_path / "empty", scenario="empty", seed=1, kinds=["netns"])
    writer.finish(Verdict(status="valid"), Ledger())
    found = parsed(report.write([tmp_path / "empty"]))
    assert found.wrong == []
    assert "Ledger" in found.titles


def test_progress_goes_from_nothing_to_everything(written: tuple[Path, Told]) -> None:
    shares = [share for _, share in written[1]]
    assert shares == sorted(shares)
    assert shares[0] == 0.0
    assert shares[-1] == 1.0


def test_an_unwritable_place_is_an_error_with_a_cure(run_folder: Path) -> None:
    with pytest.raises(RunError) as caught:
        report.write([run_folder], Path("/proc/nowhere/report.html"))
    assert caught.value.code == "report.unwritable"
    assert caught.value.cure


@pytest.mark.slow
def test_a_million_samples_make_a_page_of_ordinary_size(tmp_path: Path) -> None:
    folder = fake_results.run(tmp_path / "big", packets=1_000_000, only=("flow",))
    page = report.write([folder])
    assert page.stat().st_size < 1_500_000
    assert "1,000,000 samples are joined to 1,000 intervals" in page.read_text()


@pytest.mark.slow
def test_export_writes_every_figure_and_table(two_measured: Path, tmp_path: Path) -> None:
    written = report.export(two_measured, tmp_path / "out", ["png", "svg", "csv"])
    names = {path.name for path in written}
    assert {"topology.png", "time-throughput.svg", "distribution-rtt.png", "measurements.csv"} <= names
    assert (tmp_path / "out" / "topology.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "out" / "measurements.csv").open() as source:
        rows = list(csv.DictReader(source))
    throughput = next(row for row in rows if row["metric"] == "throughput")
    assert throughput["unit"] == "bit/s"
    assert 80e6 < float(throughput["mean"]) < 96e6
    with pytest.raises(ScenarioError, match="pdf is not a form"):
        report.export(two_measured, tmp_path, ["pdf"])


@pytest.mark.slow
def test_checking_does_not_import_the_plotting(tmp_path: Path) -> None:
    code = (
        "import sys; import airloom.report, airloom.results; "
        "heavy = {'matplotlib', 'scipy', 'networkx', 'jinja2', 'pandas'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_terminal_shows_the_same_tables(run_folder: Path) -> None:
    console = Console(width=110, color_system=None, record=True, file=io.StringIO())
    console.print(report.on_terminal(run_folder))
    text = "\n".join(line.rstrip() for line in console.export_text().splitlines()) + "\n"
    expected = Path(__file__).parent / "snapshots" / "report-terminal.txt"
    assert text == expected.read_text()


def test_an_envelope_hides_no_extreme() -> None:
    random = np.random.default_rng(1)
    t = np.arange(100_000) * 1_000
    values = random.normal(0, 1, 100_000)
    values[77_777] = 50.0
    values[5] = -60.0
    shape = series.envelope(t, values)
    assert len(shape.t_s) <= series.COLUMNS
    assert shape.high.max() == 50.0
    assert shape.low.min() == -60.0
    assert shape.samples == 100_000
    assert np.all(shape.low <= shape.mean)
    assert np.all(shape.mean <= shape.high)
    # The mean of the means over equally full columns is the mean of all.
    assert shape.mean.mean() == pytest.approx(values.mean(), abs=1e-3)


def test_short_series_are_drawn_as_they_are() -> None:
    shape = series.envelope(np.array([2, 1]), np.array([20.0, 10.0]))
    assert not shape.joined
    assert list(shape.mean) == [10.0, 20.0]


def test_a_distribution_keeps_its_ends() -> None:
    values = np.random.default_rng(1).exponential(1.0, 50_000)
    drawn, share = series.distribution(values)
    assert len(drawn) <= series.COLUMNS
    assert drawn[0] == values.min()
    assert drawn[-1] == values.max()
    assert share[-1] == 1.0
    middle = np.searchsorted(share, 0.5)
    assert drawn[middle] == pytest.approx(np.median(values), rel=0.01)


@pytest.mark.parametrize(
    ("metric", "unit", "kind"),
    [
        ("throughput", "bit/s", "throughput"),
        ("rtt_p99", "ns", "rtt"),
        ("delay", "s", "delay"),
        ("jitter_rfc3550", "ns", "jitter"),
        ("delay_jitter", "ns", "jitter"),
        ("loss", "1", "loss"),
        ("lost", "packets", "lost"),
        ("window", "octets", "window"),
    ],
)
def test_kinds(metric: str, unit: str, kind: str) -> None:
    assert series.kind_of(metric, unit) == kind


def shape_of(vertices: int, wires: list[tuple[int, int]]) -> Topology:
    return Topology(
        vertices=tuple(Vertex(name=f"n{number}", kind="host") for number in range(vertices)),
        wires=tuple(Wire(name=f"{a}-{b}", a=f"n{a}", b=f"n{b}", rate_bit_s=10_000_000) for a, b in wires),
    )


@pytest.mark.parametrize(
    "shape",
    [
        shape_of(1, []),
        shape_of(3, []),
        shape_of(60, [(one, one + 1) for one in range(59)]),
        shape_of(9, [(one, (one + 1) % 9) for one in range(9)]),
        shape_of(15, [(one, 2 * one + side) for one in range(7) for side in (1, 2)]),
        shape_of(20, [(0, one) for one in range(1, 20)]),
        shape_of(400, [(one, one + 1) for one in range(399)] + [(one, one + 20) for one in range(380)]),
    ],
)
def test_every_topology_has_a_picture(shape: Topology) -> None:
    drawing = topology.picture(shape)
    assert drawing is not None
    assert "<svg" in drawing.svg("t")
    assert f"{len(shape.wires)} link" in drawing.alt


def test_nodes_do_not_cover_each_other() -> None:
    import networkx as nx

    for graph in (nx.path_graph(60), nx.cycle_graph(30), nx.balanced_tree(3, 3), nx.grid_2d_graph(8, 8)):
        named = nx.relabel_nodes(graph, str)
        places = list(topology.layout(named).values())
        across = max(max(x for x, _ in places) - min(x for x, _ in places), 1e-9)
        nearest = min(np.hypot(a[0] - b[0], a[1] - b[1]) for i, a in enumerate(places) for b in places[:i])
        assert nearest > 0.02 * across


def test_a_graph_in_parts_fills_its_frame() -> None:
    """A station without a wire stood alone in a corner, far from everything else."""
    shape = Topology(
        vertices=tuple(Vertex(name=name, kind="host") for name in ("server", "ap1", "ap2", "sta1", "sta2")),
        wires=(Wire(name="l1", a="server", b="ap1"), Wire(name="l2", a="server", b="ap2")),
    )
    import networkx as nx

    graph = nx.Graph([("server", "ap1"), ("server", "ap2")])
    graph.add_nodes_from(["sta1", "sta2"])
    places = topology.layout(graph)
    nearest = [
        min(np.hypot(a[0] - b[0], a[1] - b[1]) for other, b in places.items() if other != name)
        for name, a in places.items()
    ]
    assert max(nearest) < 2.5 * min(nearest)
    drawing = topology.picture(shape, [("sta1", "ap1"), ("ap1", "sta1"), ("sta2", "ap2"), ("sta2", "nobody")])
    assert drawing is not None
    assert "Dashed: by radio." in drawing.caption


def test_the_directions_of_an_asymmetric_link_are_named() -> None:
    line = Wire(
        name="l",
        a="home",
        b="server",
        rate_bit_s=2_000_000,
        backward_rate_bit_s=16_000_000,
        backward_delay_ns=0,
    )
    shape = Topology(
        vertices=(Vertex(name="home", kind="host"), Vertex(name="server", kind="host")), wires=(line,)
    )
    drawing = topology.picture(shape)
    assert drawing is not None
    svg = drawing.svg("t")
    assert "home \u2192 server: 2 Mbit/s" in svg
    assert "server \u2192 home: 16 Mbit/s" in svg


def test_counters_are_folded_and_a_column_of_ones_is_gone(tmp_path: Path) -> None:
    figures = [
        Measurement(name="rtt", metric="rtt_mean", unit="ms", mean=8.1),
        Measurement(name="rtt", metric="transmitted", unit="packets", mean=50),
        Measurement(name="rtt", metric="loss", unit="1", mean=0.0),
        Measurement(name="flow", metric="cpu_client", unit="1", mean=0.2),
    ]
    with RunWriter(tmp_path / "run", scenario="x", seed=1, kinds=["netns"]) as writer:
        writer.measured(*figures)
        writer.finish(Verdict(), Ledger())
    shown, counters = tables.figures_and_counters(RunReader(tmp_path / "run"))
    assert [row[1].text for row in shown.rows] == ["rtt mean", "loss"]
    assert "n" not in shown.columns
    assert shown.note == ""
    assert not shown.folded
    assert counters.folded
    assert [row[1].text for row in counters.rows] == ["transmitted", "cpu client"]
    text = report.write([tmp_path / "run"]).read_text()
    assert text.index("Counters <small>") > text.index("Measurements")


def test_the_page_begins_with_verdict_and_one_picture(page: Path) -> None:
    text = page.read_text()
    places = [text.index(word) for word in ('role="status"', "<figure", '<dl class="facts"', "<table")]
    assert places == sorted(places)
    begin = text[places[1] : places[2]]
    assert begin.count("<figure") == 2  # one of them for narrow screens
    assert begin.count("<h3>Throughput over time</h3>") == 2


def test_links_are_told_with_rate_and_delay() -> None:
    same = Wire(name="l", a="a", b="b", rate_bit_s=100_000_000, delay_ns=5_000_000)
    assert topology.describe(same) == "100 Mbit/s, 5 ms"
    other = same.model_copy(update={"backward_rate_bit_s": 1_000_000, "backward_delay_ns": 0})
    assert topology.describe(other) == "100 Mbit/s, 5 ms forward, 1 Mbit/s backward"
    assert topology.describe(Wire(name="l", a="a", b="b")) == "unlimited"
    traced = Wire(name="l", a="a", b="b", delay_ns=5_000_000, trace=True, backward_delay_ns=0)
    assert topology.describe(traced) == "a trace, 5 ms forward, unlimited backward"


def test_readers_of_a_run_get_frames(run_folder: Path) -> None:
    run = RunReader(run_folder)
    assert len(run.samples("flow", "delay")) == 20_000
    assert set(run.measurements["name"]) == {"rtt", "goodput", "flow"}
