"""Speed of the radio medium's engine, beside ns-3.44: 10 and 50 saturated stations.

It also measures the cost of twice as many stations in one cell: saturated ones, and ones that share
the same frames.

The engine's example ``medium_speed``, built in release, measures the engine without Python and
ports. ns-3 is installed from PyPI in a separate environment, and the same scene is compiled against
it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from airloom.bench import BenchResult, Progress
from airloom.errors import HostError
from airloom.host import cache

PEER = "ns-3.44"
PACKAGE = "ns3==3.44.post0"
LEAST = 200.0
"""Required speedup over the peer with 50 stations."""
GROWTH = 1.5
"""Maximum factor in processor time for twice as many stations."""
DOUBLED = (("saturated", 50), ("shared", 50))
"""Scenes of the example, and the number of stations to double."""
ROUNDS, DOUBLED_ROUNDS = 3, 15
"""The least of their processor times counts: caches and clocks shared with other programs only add."""
STATIONS = (10, 50)
OWN_SECONDS, PEER_SECONDS = 20.0, 1.0
"""Simulated seconds of one round."""
TIMEOUT = 1800
"""Timeout in seconds for fetching or building."""
_MODULES = (
    "wifi", "internet", "mobility", "network", "core", "propagation", "spectrum", "stats", "antenna",
    "bridge", "traffic-control", "energy",
)  # fmt: skip
_FLAGS = (
    "-std=c++20", "-O2",
    # The wheel's class layout requires these definitions.
    "-DNS3_LOG_ENABLE", "-DNS3_ASSERT_ENABLE", "-DNS3_BUILD_PROFILE_RELEASE",
)  # fmt: skip


def run(progress: Progress) -> list[BenchResult]:
    """Measures processor seconds for each simulated second, alternating with the peer."""
    progress("building the engine's example")
    own = built()
    try:
        peer, missing = fetched(progress), ""
    except (OSError, subprocess.SubprocessError, HostError) as error:
        peer, missing = None, f"{PEER} cannot be had here: {_why(error)}"
        progress(missing)
    results = []
    for stations in STATIONS:
        costs: list[float] = []
        peers: list[float] = []
        frames = peer_frames = 0.0
        for turn in range(ROUNDS):
            progress(f"{stations} stations, round {turn + 1} of {ROUNDS}")
            cost, frames = asked(own, "saturated", stations, OWN_SECONDS)
            costs.append(cost)
            if peer is not None:
                cost, peer_frames = asked(peer, stations, PEER_SECONDS)
                peers.append(cost)
        mine = min(costs)
        what = f"{stations} saturated stations at 54 Mbit/s"
        if peers:
            theirs = min(peers)
            promised = stations == max(STATIONS)
            results += [
                BenchResult(
                    f"{what}: simulated seconds a processor second", "1", 1 / mine, PEER, 1 / theirs,
                    theirs / mine, f"at least {LEAST:g} times {PEER}" if promised else None,
                    theirs / mine >= LEAST if promised else None,
                ),
                BenchResult(
                    f"{what}: frames delivered", "1/s", frames, PEER, peer_frames, frames / peer_frames
                ),
            ]  # fmt: skip
        else:
            results.append(
                BenchResult(f"{what}: simulated seconds a processor second", "1", 1 / mine, missing)
            )
    for scene, stations in DOUBLED:
        results.append(doubled(scene, stations, progress))
    return results


def doubled(scene: str, stations: int, progress: Progress) -> BenchResult:
    """Measures the cost of twice as many stations in one cell, alternating with the fewer."""
    own = built()
    few: list[float] = []
    many: list[float] = []
    for turn in range(DOUBLED_ROUNDS):
        progress(f"{2 * stations} stations against {stations}, {scene}, round {turn + 1} of {DOUBLED_ROUNDS}")
        few.append(asked(own, scene, stations, OWN_SECONDS)[0])
        many.append(asked(own, scene, 2 * stations, OWN_SECONDS)[0])
    less, more = min(few), min(many)
    traffic = "all saturated" if scene == "saturated" else "that share 800 frames a second"
    return BenchResult(
        f"{2 * stations} stations of one cell, {traffic}: processor seconds a simulated second", "s", more,
        f"{stations} stations", less, more / less,
        f"at most {GROWTH:g} times what {stations} cost", more / less <= GROWTH,
    )  # fmt: skip


def asked(program: Path, *words: object) -> tuple[float, float]:
    """Returns a program's two numbers: processor seconds for a simulated second, and its yield."""
    done = subprocess.run(
        [str(program), *map(str, words)], capture_output=True, text=True, check=True, timeout=TIMEOUT
    )
    cost, yielded = done.stdout.split()
    return float(cost), float(yielded)


def built() -> Path:
    """Returns the engine's example ``medium_speed``, built in release from the source tree."""
    tree = Path(__file__).resolve().parents[3]
    cargo = shutil.which("cargo")
    if cargo is None or not (tree / "engine" / "examples").is_dir():
        raise HostError(
            "bench.source.missing",
            "this benchmark builds an example of the engine, and there is no source tree with cargo here",
            cure="run it from a clone of Airloom on a machine with Rust",
        )
    target = Path(os.environ.get("CARGO_TARGET_DIR", tree / "target"))
    command = [cargo, "build", "--release", "--locked", "--quiet", "-p", "airloom-engine"]
    subprocess.run([*command, "--example", "medium_speed"], cwd=tree, check=True, timeout=TIMEOUT)
    return target / "release" / "examples" / "medium_speed"


def fetched(progress: Progress) -> Path:
    """Returns our scene compiled against ns-3 in a separate environment, which is kept."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise HostError("bench.compiler.missing", "there is no g++", cure="install it: apt install g++")
    kept = cache.folder("bench-ns3")
    scene = Path(__file__).with_name("ns3") / "saturated.cc"
    program = kept / "saturated"
    if program.is_file() and program.stat().st_mtime >= scene.stat().st_mtime:
        return program
    python = kept / "venv" / "bin" / "python"
    if not python.exists():
        progress(f"fetching {PEER} (about 100 MB, once)")
        _quietly([sys.executable, "-m", "venv", str(kept / "venv")])
    # Without cppyy, which its Python bindings need: pip would compile LLVM for it.
    _quietly([str(python), "-m", "pip", "install", "--quiet", "--no-deps", PACKAGE])
    home = next((kept / "venv" / "lib").glob("python*/site-packages/ns3"), None)
    if home is None:
        raise HostError("bench.peer.missing", f"the package {PACKAGE} holds no ns-3")
    progress(f"compiling the scene for {PEER}")
    libraries = home / "lib64"
    _quietly(
        [
            compiler, *_FLAGS, f"-I{home / 'include'}", str(scene), "-o", str(program), f"-L{libraries}",
            *(f"-lns3.44-{module}" for module in _MODULES), f"-Wl,-rpath,{libraries}",
            "-Wl,--allow-shlib-undefined",
        ]
    )  # fmt: skip
    return program


def _quietly(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise HostError("bench.peer.failed", f"{Path(command[0]).name}: {last}")


def _why(error: Exception) -> str:
    return error.message if isinstance(error, HostError) else str(error)
