"""``airloom mn`` on a terminal."""

from __future__ import annotations

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
