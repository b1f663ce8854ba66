"""Violations of grants over the API: what is kept, what may grow, and who sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airloom.grid import violations
from airloom.grid.holding import violations as of_results
from airloom.grid.laboratory.server import Reporter
from airloom.grid.messages import Violation
from airloom.planning.gate import check
from helpers.grid import ONE_NODE, Manager, at

FOUND = {
    "at": at(0.5),
    "until": at(0.5),
    "radio": "n:w0",
    "what": "channel",
    "amount": 20.0,
    "unit": "MHz",
    "frames": 3,
    "channel": 40,
}


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    one = Manager(tmp_path / "grid.db", ONE_NODE)
    yield one
    one.close()


def told(manager: Manager, identity: str, *found: dict[str, Any], token: str | None = None) -> dict[str, int]:
    answer: dict[str, int] = manager.must(
        "POST", f"/v1/reservations/{identity}/violations", {"found": list(found)}, token
    )
    return answer


def test_a_later_report_raises_numbers_and_lowers_none(manager: Manager) -> None:
    one = manager.book((0, 1), radios=1)["id"]
    assert told(manager, one, FOUND, {**FOUND, "what": "power", "unit": "dB"}) == {"new": 2, "refused": 0}
    assert told(manager, one, {**FOUND, "frames": 9, "until": at(0.75)}) == {"new": 0, "refused": 0}
    assert told(manager, one, {**FOUND, "frames": 1, "amount": 5.0}) == {"new": 0, "refused": 0}
    assert told(manager, one) == {"new": 0, "refused": 0}
    found = {row["what"]: row for row in manager.must("GET", "/v1/violations")}
    assert {key: found["channel"][key] for key in ("frames", "amount", "unit", "radio", "channel")} == {
        "frames": 9, "amount": 20.0, "unit": "MHz", "radio": "n:w0", "channel": 40,
    }  # fmt: skip
    assert found["channel"]["until"].startswith("2027-01-15T08:45:00")
    assert found["power"]["frames"] == 3


def test_members_see_those_of_their_projects_and_the_log_names_the_reporter(manager: Manager) -> None:
    holder, viewer = manager.user("holder", "member"), manager.user("viewer", "viewer")
    outsider = manager.user("outsider", "lead", "q")
    one = manager.book((0, 1), holder, radios=1)["id"]
    told(manager, one, FOUND, token=holder)
    for token in (viewer, manager.admin):
        (row,) = manager.must("GET", "/v1/violations", token=token)
        assert (row["slice"], row["project"], row["user"]) == ("s", "p", "holder")
    assert manager.must("GET", "/v1/violations", token=outsider) == []
    assert manager.refused("GET", "/v1/violations?project=p", token=outsider)["code"] == "project.unknown"
    assert manager.must("GET", "/v1/violations?project=q") == []
    last = manager.must("GET", "/v1/audit?project=p")[0]
    assert (last["user"], last["action"], last["detail"]) == (
        "holder", "reservation.violate", {"violations": 1},
    )  # fmt: skip


def test_the_number_of_those_without_a_record_is_in_the_log(manager: Manager) -> None:
    one = manager.book((0, 1), radios=1)["id"]
    for number in (0, 3, 3, 7, 5):
        body = {"found": [], "unrecorded": number}
        assert manager.must("POST", f"/v1/reservations/{one}/violations", body) == {"new": 0, "refused": 0}
    logged = [
        row["detail"] for row in manager.must("GET", "/v1/audit") if row["action"] == "reservation.violate"
    ]
    assert logged == [{"unrecorded": 7}, {"unrecorded": 3}]
    body = {"found": [], "unrecorded": -1}
    assert manager.refused("POST", f"/v1/reservations/{one}/violations", body)["code"]


class Told:
    """A manager that keeps what it is told, and a run of a tenant."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []
        self.lost = 0
        self.found: list[Violation] = []

    def report(self, token: str, reservation: str, found: Sequence[Violation], unrecorded: int) -> None:
        self.calls.append((len(found), unrecorded))

    def reported(self) -> list[Violation]:
        return self.found

    def unrecorded(self) -> int:
        return self.lost


def test_a_laboratory_tells_how_many_have_no_record() -> None:
    one = Told()
    report = Reporter(one, SimpleNamespace(token="t", reservation="r"), one)  # type: ignore[arg-type]
    report.send()
    one.found = [Violation.model_validate(FOUND)]
    report.send()
    one.lost = 4
    report.send()
    report.send()
    assert one.calls == [(1, 0), (0, 4)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"radio": "n:w1"}, "violation.radio"),
        ({"radio": "elsewhere:w0"}, "violation.radio"),
        ({"radio": "<b>:w0"}, "value.invalid"),
        ({"what": "colour"}, "value.invalid"),
        ({"frames": 0}, "value.invalid"),
        ({"amount": -1.0}, "value.invalid"),
        ({"unit": "furlong"}, "value.invalid"),
        ({"at": "2027-01-15T08:00:00"}, "value.invalid"),
        ({"more": 1}, "key.unknown"),
    ],
)
def test_what_is_no_violation_of_the_reservation_is_refused(
    manager: Manager, change: dict[str, Any], code: str
) -> None:
    one = manager.book((0, 1), radios=1)["id"]
    path = f"/v1/reservations/{one}/violations"
    assert manager.refused("POST", path, {"found": [FOUND, {**FOUND, **change}]})["code"] == code
    assert manager.must("GET", "/v1/violations") == []


def test_refused_settings_are_kept_also_those_of_radios_that_are_not_granted(manager: Manager) -> None:
    one = manager.book((0, 1), radios=1)["id"]
    refused = {**FOUND, "what": "setting", "unit": "", "amount": 0.0}
    assert told(manager, one, refused, {**refused, "radio": "n:w1"}) == {"new": 2, "refused": 0}
    found = manager.must("GET", "/v1/violations")
    assert {(row["what"], row["radio"]) for row in found} == {("setting", "n:w0"), ("setting", "n:w1")}


def test_a_reservation_keeps_a_limited_number(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(violations, "MOST_VIOLATIONS", 2)
    one = manager.book((0, 1), radios=1)["id"]
    many = [{**FOUND, "channel": channel} for channel in (1, 2, 3, 1)]
    assert told(manager, one, *many) == {"new": 2, "refused": 1}
    assert told(manager, one, {**FOUND, "channel": 4}, {**FOUND, "channel": 2, "frames": 5}) == {
        "new": 0, "refused": 1,
    }  # fmt: skip
    assert sorted(row["frames"] for row in manager.must("GET", "/v1/violations")) == [3, 5]


SCENARIO = """\
name: slivers
media: {air: {radio: {channel: 36}}}
nodes: {n: {position: [0 m, 0 m], radios: {w0: }}}
"""


def test_violations_of_results_have_the_names_and_times_of_the_testbed(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCENARIO)
    violation = {
        "t_ns": 1_500_000_000, "until_ns": 2_000_000_000, "slice": "s", "node": "n", "radio": "n:w0",
        "what": "power", "amount": 3.0, "unit": "dB", "frames": 7, "channel": 36,
    }  # fmt: skip
    verdict = {"status": "valid", "reasons": [], "codes": [], "notes": []}
    result = {
        "schema": 1, "scenario": "slivers", "seed": 1, "kinds": ["netns"], "wall_seconds": 3.0,
        "started": "2027-01-15T08:00:00+00:00", "verdict": verdict, "violations": [violation],
    }  # fmt: skip
    point = tmp_path / "out" / "points" / "p0000-r00"
    point.mkdir(parents=True)
    (point / "result.json").write_text(json.dumps(result))
    (found,) = of_results(check(tmp_path / "s.yaml"), tmp_path / "out")
    assert of_results(check(tmp_path / "s.yaml"), tmp_path / "out", refused=True) == []
    assert found == Violation.model_validate(
        {
            "at": "2027-01-15T08:00:01.500000+00:00", "until": "2027-01-15T08:00:02+00:00", "radio": "n:w0",
            "what": "power", "amount": 3.0, "unit": "dB", "frames": 7, "channel": 36,
        }
    )  # fmt: skip
