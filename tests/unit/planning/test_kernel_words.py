"""Words for the command line of a guest's kernel."""

from __future__ import annotations

import pytest

from airloom.planning.gate import check
from airloom.planning.machine.kernel_words import LONGEST, MOST, flaw, words
from airloom.scenario import Scenario


def test_words_are_separated_as_the_kernel_does() -> None:
    assert words('a  b=1 c="x y" "d=e f"') == ["a", "b=1", 'c="x y"', '"d=e f"']


@pytest.mark.parametrize(
    ("kind", "text", "wrong"),
    [
        ("uml", "slub_debug mac80211_hwsim.channels=2 loglevel=7", None),
        ("qemu", 'mitigations=off dyndbg="file mlme.c +p"', None),
        ("uml", "mem=1G", "'mem'"),
        ("uml", "mac80211-hwsim.radios=4", "'mac80211-hwsim.radios'"),
        ("uml", '"mac80211_hwsim.radios=4"', "'mac80211_hwsim.radios'"),
        ("uml", "ubd1=/etc/shadow", "'ubd1'"),
        ("uml", "vec1:transport=raw", "'vec1'"),
        ("uml", "time-travel=ext:/x", "'time-travel'"),
        ("uml", "con1=port:9000", "'con1'"),
        ("qemu", "console=ttyS1", "'console'"),
        ("qemu", "init=/bin/sh", "'init'"),
        ("qemu", "a -- b", "'--'"),
        ("uml", "--help", "'--help'"),
        ("uml", 'a="b', "a quote"),
        ("uml", "a\nb", "printable"),
        ("uml", "ä", "printable"),
        ("uml", "x" * (LONGEST + 1), "too many"),
        ("uml", "x " * (MOST + 1), "too many"),
    ],
)
def test_words_of_airloom_itself_are_refused_by_name(kind: str, text: str, wrong: str | None) -> None:
    found = flaw(text, kind)
    assert (found is None) if wrong is None else (found is not None and wrong in found)


def test_a_node_overrides_the_words_of_all() -> None:
    scenario = {
        "name": "words",
        "kind": "uml",
        "guest": {"append": "a b"},
        "nodes": {"x": {}, "y": {"guest": {"append": "c"}}},
        "links": [{"ends": ["x", "y"]}],
    }
    (plan,) = check(Scenario.model_validate(scenario)).plans
    found = {name: node.guest.append for name, node in plan.nodes.items() if node.guest is not None}
    assert found == {"x": ("a", "b"), "y": ("c",)}
