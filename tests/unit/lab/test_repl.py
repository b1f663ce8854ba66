"""The prompt of a live laboratory: no line ends it, whatever it says."""

from __future__ import annotations

import contextlib
import io
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airloom.errors import LabError, RunError
from airloom.lab.conversation import converse
from airloom.lab.handles import direction_of
from airloom.lab.repl import Misuse, Prompt, settings_of


class Link:
    name, a, b, is_up = "h1-s1", "h1:eth0", "s1", True

    def describe(self) -> str:
        return "unlimited"

    def set(self, /, *, direction: str = "both", **properties: Any) -> None:
        direction_of(properties)

    def up(self) -> None: ...

    down = up


class Lab:
    """One that does nothing, with the checks of the real one."""

    nodes, switches, addresses = ["h1", "h2"], ["s1"], {}
    links = [Link()]  # noqa: RUF012
    slices = ["one", "two"]  # noqa: RUF012
    plan = SimpleNamespace(virtual=False)

    def link(self, first: str, second: str) -> Link:
        return self.links[0]

    def change_grants(self, changes: dict[str, dict[str, Any]]) -> int:
        assert all(changes.values())
        self.changes = changes
        return 2_500_000_000

    def control(self, node: str, action: str) -> None: ...

    def verdict(self) -> Any:
        return SimpleNamespace(status="valid", reasons=[], notes=[])

    def add(self, name: str, *, links: Any = (), **properties: Any) -> Any:
        return SimpleNamespace(name=name, address=None)

    def measure(self, **tool: Any) -> Any:
        raise RunError("x", "no")

    def __getitem__(self, name: str) -> Any:
        raise RunError("node.unknown", name)


def said(line: str) -> str:
    prompt = Prompt(Lab(), interactive=False, stdout=io.StringIO())  # type: ignore[arg-type]
    assert prompt.onecmd(line) is False
    return prompt.stdout.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize(
    "line",
    [
        "link h1 h2 set queue={",
        "link h1 h2 set delay=[",
        "link h1 h2 set queue=}",
        "link h1 h2 set self=3",
        "link h1 h2 set rate=0bit/s",
        "link h1 h2 set delay=*a",
        "link h1 h2 set 'delay=!!python/object:os.system x'",
        "add h9 s1 image={",
        "add h9 s1 name=h8",
        "add h9 s1 links=[]",
        "sleep nan",
        "sleep 1e400",
        "sleep -1",
        "source /dev/zero",
        "source .",
        "source \0",
        "iperf h1 h2 inf",
        "h1 'open",
        "slice",
        "slice one",
        "slice one set",
        "slice one set channels",
        "slice one set channels=[40] and",
        "slice one set channels=[40] and one set channels=[36]",
        "py raise RecursionError",
        "py (",
        "no such",
    ],
)
def test_a_line_that_is_wrong_is_answered(line):
    assert said(line).startswith("*** ")


@pytest.mark.parametrize(
    "line",
    [
        "link h1 h2 set queue={discipline: fq-codel}",
        "link h1 h2 set queue={ discipline: fq-codel, size: 100 kB } delay=5ms",
        "link h1 h2 set queue.discipline=fq-codel queue.quantum='300 B'",
        "link h1 h2 set 'queue={discipline: fq-codel}' loss={good_to_bad: 1 %, bad_to_good: 10 %}",
    ],
)
def test_a_queue_is_written_as_in_a_scenario(line):
    assert said(line) == ""


def test_settings_are_read_as_in_a_scenario():
    assert settings_of(["a=1", "b={c:", "[x,", "y]}", "q.r.s=on", "q.r.t=2"]) == {
        "a": 1,
        "b": {"c": ["x", "y"]},
        "q": {"r": {"s": "on", "t": 2}},
    }
    for words in (["a"], ["=1"], ["a="], ["a..b=1"], ["a=1", "a=2"], ["a=1", "a.b=2"]):
        with pytest.raises(Misuse):
            settings_of(words)


def test_radios_are_handed_over():
    prompt = Prompt(lab := Lab(), interactive=False, stdout=io.StringIO())  # type: ignore[arg-type]
    prompt.onecmd("slice one set nodes=[] and two set nodes=[n1:wlan0,n2]")
    assert lab.changes == {"one": {"nodes": []}, "two": {"nodes": ["n1:wlan0", "n2"]}}


def test_grants_are_changed_together():
    prompt = Prompt(lab := Lab(), interactive=False, stdout=io.StringIO())  # type: ignore[arg-type]
    prompt.onecmd("slice one set channels=[40, 44] and two set channels=[36] power='3 dBm'")
    assert lab.changes == {"one": {"channels": [40, 44]}, "two": {"channels": [36], "power": "3 dBm"}}
    assert prompt.stdout.getvalue() == "from 2.500 s on\n"  # type: ignore[attr-defined]


_SIGNS = "link h1 h2 s1 set add queue={ discipline: fq-codel } [ ] delay= delay=5ms queue.discipline=codel"
_MORE = (
    "slice one and node pause iperf pingall air verdict dump links net nodes help source & | ' \" = . {} []"
)
_WORDS = st.sampled_from([*_SIGNS.split(), *_MORE.split()])
_NOT_MEANT = ("exit", "quit", "EOF", "sh", "py", "sleep", "h1", "h2", "!")


@given(line=st.text(max_size=60) | st.lists(_WORDS | st.text(max_size=6), max_size=8).map(" ".join))
def test_no_line_ends_the_prompt(line):
    if line.strip().partition(" ")[0].startswith(_NOT_MEANT):
        return
    said(line)


@given(words=st.lists(_WORDS | st.text(max_size=10), max_size=6))
def test_settings_are_read_or_refused(words):
    with contextlib.suppress(Misuse, LabError):
        settings_of(words)


def test_octets_that_are_no_text_end_nothing(capsys):
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\nnodes\n"), encoding="utf-8")
    assert converse(Lab(), stdin) is False  # type: ignore[arg-type]
    assert "nodes:    h1 h2" in capsys.readouterr().out


def test_files_of_commands_that_name_each_other_come_to_an_end(tmp_path):
    (tmp_path / "loop").write_text(f"source {tmp_path}/loop\nsource {tmp_path}/loop\n")
    assert "files name each other" in said(f"source {tmp_path}/loop")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("link ", ["h1", "s1"]),
        ("link h", ["h1"]),
        ("link h1 ", ["s1"]),
        ("link h1 h2 se", ["set"]),
        ("link h1 h2 ", ["down", "set", "up"]),
        ("link h1 h2 set del", ["delay="]),
        ("link h1 h2 set delay=5ms l", ["late=", "loss="]),
        ("link h1 h2 set delay=", []),
        ("link h1 h2 down ", []),
        ("node h", ["h1", "h2"]),
        ("node h1 st", ["start", "stop"]),
        ("slice o", ["one"]),
        ("slice one ", ["set"]),
        ("slice one set ch", ["channels="]),
        ("slice one set n", ["nodes="]),
        ("slice one set channels=[40] and t", ["two"]),
        ("slice one set channels=[40] and two set p", ["power="]),
        ("add h9 ", ["s1"]),
        ("add h9 s1 ki", ["kind="]),
        ("iperf h1 h", ["h1", "h2"]),
    ],
)
def test_arguments_are_completed(line, offered):
    prompt = Prompt(Lab(), interactive=False, stdout=io.StringIO())  # type: ignore[arg-type]
    begin = max(line.rfind(" "), line.rfind("=")) + 1
    complete = getattr(prompt, f"complete_{line.split()[0]}", prompt.completedefault)
    assert complete(line[begin:], line, begin, len(line)) == offered
