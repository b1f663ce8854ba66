"""What the report of a test that reached its time limit says about its processes."""

from __future__ import annotations

import pytest

from helpers import REPOSITORY

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

CONFTEST = f"""
import sys
sys.path.insert(0, {str(REPOSITORY / "tests")!r})
from helpers.stalls import Stalls
def pytest_configure(config):
    config.pluginmanager.register(Stalls())
"""


def test_a_test_at_its_limit_says_what_its_processes_do(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("""
import subprocess, pytest
@pytest.mark.timeout(2)
def test_it(tmp_path):
    tmp_path.joinpath("console.log").write_text("first\\n" * 20 + "the kernel\'s last line\\n")
    subprocess.run(["sh", "-c", "sleep 1234; true"])
@pytest.mark.timeout(60)
def test_other():
    subprocess.run(["sleep", "0"], check=True)
""")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(failed=1, passed=1)
    done.stdout.fnmatch_lines(
        [
            "*processes at the time limit*",
            "* sh -c sleep 1234; true *",
            "* sh: state S, * s of processor time*",
            "* sleep 1234 *",
            "*console.log:",
            "the kernel's last line",
        ]
    )
    assert done.outlines.count("first") == 14, "only the end of the console"
