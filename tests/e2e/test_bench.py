"""``airloom bench`` when it is told to end."""

from __future__ import annotations

import signal

import pytest

pytestmark = pytest.mark.world


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_benchmark_that_is_stopped_leaves_nothing(shell, number, code):
    process = shell.start("bench", "delay")
    shell.wait_until(
        lambda: any("airloom-traffic" in command for command in shell.leftovers().values()), "it measures"
    )
    assert list(shell.temporary.iterdir()), "its results are kept while it runs"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == code
    shell.gone()
