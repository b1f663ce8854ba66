"""Scripts for extensions of Mininet end in one line that names the extension and the way on."""

from __future__ import annotations

import pytest

from helpers import REPOSITORY

PAGE = REPOSITORY / "docs" / "guide" / "coming-from.md"


@pytest.mark.parametrize(
    ("line", "tool", "section"),
    [
        ("from mn_iot.net import Mininet_IoT", "Mininet-WiFi", "mininet-wifi"),
        ("from mininet.net import Fogbed", "Containernet", "containernet"),
        ("from mininet.node import LibvirtHost", "Containernet", "containernet"),
        ("from ipmininet.ipnet import IPNet", "IPMininet", "ipmininet"),
    ],
)
def test_the_extension_is_named_with_the_line_and_the_page(shell, line, tool, section):
    (shell.folder / "script.py").write_text(f"from mininet.log import setLogLevel\n\n{line}\n")
    done = shell.run("mn-run", "script.py")
    assert done.returncode == 2
    (said,) = done.stderr.splitlines()
    assert said.startswith("airloom: script.py:3: ")
    assert f"is of {tool}, which extends Mininet" in said
    assert f"docs/guide/coming-from.md#{section}" in said
    headings = [text[3:].strip().lower() for text in PAGE.read_text().splitlines() if text.startswith("## ")]
    assert section in headings


def test_what_mininet_has_not_is_missing_as_in_python(shell):
    (shell.folder / "script.py").write_text("from mininet.net import Nothing\n")
    done = shell.run("mn-run", "script.py")
    assert done.returncode == 1
    assert "ImportError" in done.stderr


def test_a_module_of_mininet_wifi_without_counterpart_is_named(shell):
    (shell.folder / "script.py").write_text("from mn_wifi.sumo.runner import sumo\n")
    done = shell.run("mn-run", "script.py")
    assert done.returncode != 0
    assert "script.py:1: import mn_wifi.sumo" in done.stderr
    assert "there are: cli, link, net, node" in done.stderr
