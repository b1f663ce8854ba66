"""``airloom mn`` on a terminal."""

from __future__ import annotations

import re

import pytest

from helpers.terminal import talk

pytestmark = pytest.mark.world


def test_ctrl_d_ends_the_input_of_a_hosts_program_and_not_the_prompt(shell):
    code, heard = talk(
        shell,
        ["mn", "--topo", "single,2", "-v", "output"],
        [
            ("mininet> ", "intfs\r"),
            ("s1: lo,s1-eth1,s1-eth2", ""),
            ("mininet> ", "h1 echo st''arts; cat; echo be''hind\r"),
            ("starts", "one line\r"),
            ("one line\r\none line", "\x04"),
            ("behind", ""),
            ("mininet> ", "h1 python3 -i -c 'print(6 * 7)'\r"),
            # The line editor changes the terminal's mode before it prompts: keys typed before are lost.
            (">>> ", "\x04"),
            ("mininet> ", "h1 ping -c 1 h2\r"),
            ("1 received", ""),
            ("mininet> ", "\x04"),
        ],
    )
    assert code == 0, heard
    assert heard.startswith("mininet> "), "it is as quiet as it was told"
    shell.gone()


def test_at_level_debug_it_tells_what_was_made_and_what_passed(shell):
    told = {}
    for level in ("info", "debug"):
        code, told[level] = talk(shell, ["mn", "--test", "pingall", "-v", level], [])
        assert code == 0, told[level]
    made = "h1-eth0: address 10.0.0.1/8, up"
    passed = r"link h1-eth0-s1-eth1\S* forward: entered [1-9]\d* frames, [1-9]\d* octets"
    assert made in told["debug"]
    assert re.search(passed, told["debug"])
    assert made not in told["info"]
    assert "entered" not in told["info"]
    shell.gone()
