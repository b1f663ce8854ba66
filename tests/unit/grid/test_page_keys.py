"""The web page reads no key of an answer that the description of the API does not have.

Names of variables in the page's scripts are either of the page itself or of an answer, whose schema is
stated here; a name that is neither fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.grid.api.app import WEB
from helpers.grid import Manager
from helpers.openapi import answer_of, missing

ROUTES = {
    "GET /me": ("Me",),
    "GET /inventory": ("Inventory",),
    "GET /projects": ("Project",),
    "GET /calendar": ("OwnTaken", "Taken"),
    "GET /reservations": ("Reservation",),
    "GET /violations": ("RecordedViolation",),
    "POST /reservations": ("Booked", "Reservation"),
    "POST /reservations/check": ("Possible",),
    "POST /reservations/{identity}/extend": ("Reservation",),
    "POST /reservations/{identity}/release": ("Reservation",),
}
"""What the page calls, and the schemas of the answers."""
ANSWERS = {
    ("app.js", "call", "said"): ("Error",),
    ("app.js", "attempt", "nearest"): ("Window",),
    ("app.js", "enter", "me"): ("Me",),
    ("app.js", "enter", "testbed"): ("Inventory",),
    ("app.js", "enter", "one"): ("Project",),
    ("app.js", "listed", "one"): ("Reservation",),
    ("app.js", "listed", "grant"): ("Grant",),
    ("app.js", "violated", "one"): ("RecordedViolation",),
    ("app.js", "", "said"): ("Booked", "Reservation", "Possible"),
    ("calendar.js", "drawCalendar", "one"): ("OwnTaken", "Taken"),
    ("calendar.js", "told", "one"): ("OwnTaken",),
}
"""Variables that hold answers, or parts of them, by file and function, with their schemas."""
OWN = frozenset(
    re.findall(
        r"\w+",
        """CSS Date JSON Math Object Promise answer asked bar body button channels chart choice crypto
        document does error event form found made name nodes place projects radios row rows sessionStorage
        shown start state taken text""",
    )
)
"""Variables that hold none: objects of the browser, forms, arrays, and what is made of them."""
CHAIN = re.compile(r"(?<![\w.)\]$])([A-Za-z_]\w*)((?:\??\.[A-Za-z_]\w*)+)")


def code(file: str) -> str:
    """A script without comments and without the texts of strings; what templates insert is kept."""
    text = re.sub(r"//[^\n]*", "", (WEB / file).read_text().replace("http://", ""))
    text = re.sub(r'"[^"\n]*"', '""', text)
    return re.sub(r"`((?:[^`\\]|\\.)*)`", lambda found: " ".join(re.findall(r"\$\{(.*?)\}", found[1])), text)


def functions(file: str) -> Iterator[tuple[str, str]]:
    """Name and code of each function of a script; all that is outside of them has no name."""
    rest = code(file)
    for found in re.finditer(r"^(?:async )?function (\w+)\(.*?^\}$", rest, re.DOTALL | re.MULTILINE):
        yield found[1], found[0]
        rest = rest.replace(found[0], "")
    yield "", rest


def reads(file: str) -> Iterator[tuple[str, str, list[str]]]:
    """Function, variable and keys of every read of a property."""
    for function, text in functions(file):
        for found in CHAIN.finditer(text):
            yield function, found[1], re.findall(r"\w+", found[2])


@pytest.fixture
def description(manager: Manager) -> dict[str, Any]:
    found: dict[str, Any] = manager.call("GET", "/openapi.json", token="").json()
    return found


@pytest.mark.parametrize("file", ["app.js", "calendar.js"])
def test_every_key_that_the_page_reads_is_described(description: dict[str, Any], file: str) -> None:
    schemas = description["components"]["schemas"]
    seen = set()
    for function, variable, keys in reads(file):
        if variable in OWN:
            continue
        assert (file, function, variable) in ANSWERS, f"{file}: {function}: what is {variable}.{keys[0]}?"
        seen.add((file, function, variable))
        for name in ANSWERS[file, function, variable]:
            lost = missing(schemas, schemas[name], keys)
            assert lost is None, f"{file}: {function}: {variable}.{'.'.join(keys)}: {name} has no {lost!r}"
    assert seen == {key for key in ANSWERS if key[0] == file}, "a variable is not there any more"
    assert not re.findall(r"[\w)\]]\[[^\]]*\w[^\]]*\]", code(file)), "a key is computed"


def test_every_call_of_the_page_has_the_stated_answer(description: dict[str, Any]) -> None:
    text = (WEB / "app.js").read_text()
    named = {
        re.sub(r"\$\{.*?\}", "{identity}", path) for path in re.findall(r'["`](/(?!v1)[a-z][^"`?]*)', text)
    }
    assert named == {route.split()[1] for route in ROUTES}
    for route, names in ROUTES.items():
        method, path = route.split()
        schema = answer_of(description, method, f"/v1{path}")
        schema = schema.get("items", schema)
        found = [one["$ref"].rpartition("/")[2] for one in schema.get("anyOf", [schema])]
        assert sorted(found) == sorted(names)
    parts = {"Error", "Window", "Grant"}
    assert {name for names in ANSWERS.values() for name in names} <= {
        name for names in ROUTES.values() for name in names
    } | parts
    # What a call answers has a name: it is not read in passing.
    calls = re.findall(r"(.{0,16})\bcall\(", text)
    assert len(calls) == 6
    for before in calls:
        assert re.search(r"(= await |^ +await |=> |async function )$", before), before


def test_a_key_that_is_not_described_is_found(
    description: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    schemas = description["components"]["schemas"]
    assert missing(schemas, schemas["Reservation"], ["slcie"]) == "slcie"
    assert missing(schemas, schemas["Inventory"], ["slots", "frames"]) == "frames"
    assert missing(schemas, schemas["Booked"], ["grant", "radio"]) == "radio"
    assert missing(schemas, schemas["Booked"], ["grant", "channels", "join"]) is None
    (tmp_path / "app.js").write_text((WEB / "app.js").read_text().replace("one.live", "one.page"))
    monkeypatch.setattr(f"{__name__}.WEB", tmp_path)
    with pytest.raises(AssertionError, match="Reservation has no 'page'"):
        test_every_key_that_the_page_reads_is_described(description, "app.js")
