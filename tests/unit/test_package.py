from __future__ import annotations

import subprocess
import sys

import grimp
import networkx
import pytest

import airloom

pytestmark = pytest.mark.slow

HEAVY = ("pandas", "matplotlib", "scipy", "pyarrow", "numpy")


def test_everything_promised_is_there():
    for name in airloom.__all__:
        assert getattr(airloom, name) is not None
    assert set(airloom.__all__) <= set(dir(airloom))
    assert sorted(airloom.__all__) == airloom.__all__


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(airloom, "nonsense")


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_the_package_itself_loads_nothing_heavy():
    assert loaded_after("import airloom") == set()


def test_check_and_help_load_nothing_heavy(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text("name: two\nnodes: {a: {}, b: {}}\nlinks: [{ends: [a, b]}]\n")
    code = (
        "from typer.testing import CliRunner\n"
        "from airloom.cli import app\n"
        f"print(CliRunner().invoke(app, ['check', {str(file)!r}], catch_exceptions=False).exit_code)\n"
        "print(CliRunner().invoke(app, ['run', '--help'], catch_exceptions=False).exit_code)"
    )
    assert loaded_after(code) == set()


def test_measuring_does_not_load_scipy():
    """It takes a second, which every run would pay."""
    assert "scipy" not in loaded_after("import airloom.measure.flow, airloom.runs.batch")


# The importing module, the imported one: both directions are of one subject.
KNOWN_CIRCLES = {
    # A run tells its watcher that it is up, and hands itself over; watchers use all of it.
    ("airloom.runs.progress", "airloom.runs.single"),
}


def test_modules_import_each_other_in_one_direction():
    """Imports for types count too, and those within functions."""
    graph = grimp.build_graph("airloom", cache_dir=None)
    # The package itself imports what it offers lazily.
    modules = graph.modules - {"airloom"}
    every = {
        (module, imported)
        for module in modules
        for imported in graph.find_modules_directly_imported_by(module) & modules
    }
    assert len(every) > len(modules)
    assert every >= KNOWN_CIRCLES
    parts = networkx.strongly_connected_components(networkx.DiGraph(every - KNOWN_CIRCLES))
    assert [sorted(circle) for circle in parts if len(circle) > 1] == []
