"""Violations of grants that runs and shared laboratories report, for the members of their projects.

A report names each violation by the time of its first transmission, its radio and what was violated.
A later report of the same one can raise its numbers, and none can lower or remove them.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select

from airloom.grid import answers, messages
from airloom.grid.access import Caller
from airloom.grid.accounts import Clock, note, project_named
from airloom.grid.grants import Grant
from airloom.grid.messages import MOST_VIOLATIONS, written
from airloom.grid.refused import invalid
from airloom.grid.reservations import own
from airloom.grid.storage.database import Database
from airloom.grid.storage.tables import Reservation, Violation

SHOWN = 500
"""Violations that a call lists, the newest."""


class Violations:
    """What was reported about reservations."""

    def __init__(self, database: Database, clock: Clock):
        self.database = database
        self.clock = clock
        self._unrecorded: dict[str, int] = {}
        """Violations without a record that the log has, by reservation, since this service began."""

    def record(self, caller: Caller, identity: str, body: messages.Violations) -> answers.Recorded:
        """Keeps violations of a reservation; returns how many are ``new``, and ``refused`` as too many."""
        caller.must("reserve")
        with self.database.changing() as session:
            one = own(session, caller, identity)
            _must_be_of(one, body)
            kept = {
                (row.at, row.radio, row.what, row.channel): row
                for row in session.scalars(select(Violation).where(Violation.reservation_id == one.id))
            }
            before, refused = len(kept), 0
            for found in body.found:
                key = (_milliseconds(found.at), found.radio, found.what, found.channel)
                if key not in kept and len(kept) == MOST_VIOLATIONS:
                    refused += 1
                elif key not in kept:
                    kept[key] = _row(one, found)
                    session.add(kept[key])
                else:
                    _raise(kept[key], found)
            new = len(kept) - before
            if new:
                what = {"violations": new}
                note(
                    session, self.clock(), caller.name, "reservation.violate", one.project.name, one.id, what
                )
            if body.unrecorded > self._unrecorded.get(one.id, 0):
                self._unrecorded[one.id] = body.unrecorded
                what = {"unrecorded": body.unrecorded}
                note(
                    session, self.clock(), caller.name, "reservation.violate", one.project.name, one.id, what
                )
            return answers.Recorded(new=new, refused=refused)

    def listed(self, caller: Caller, project: str | None = None) -> list[answers.RecordedViolation]:
        """Returns the violations in the caller's projects, the newest first, at most 500."""
        caller.must("read")
        with self.database.reading() as session:
            wanted = select(Violation).join(Reservation).order_by(Violation.at.desc(), Violation.radio)
            if project is not None:
                found = project_named(session, project)
                caller.must_have(found, "viewer")
                wanted = wanted.where(Reservation.project_id == found.id)
            elif not caller.admin:
                wanted = wanted.where(Reservation.project_id.in_(list(caller.roles)))
            return [_view(one) for one in session.scalars(wanted.limit(SHOWN))]


def _must_be_of(one: Reservation, body: messages.Violations) -> None:
    granted = None if one.grant is None else Grant.of(one.grant)
    for number, found in enumerate(body.found):
        if found.what == "setting":
            continue  # also of a radio that was asked for and is not granted
        node, _, radio = found.radio.partition(":")
        if granted is None or granted.outside_radio(node, radio) is not None:
            place = f"found[{number}].radio"
            raise invalid("violation.radio", f"the reservation has no radio {found.radio}", place)


def _row(one: Reservation, found: messages.Violation) -> Violation:
    return Violation(
        reservation_id=one.id, at=_milliseconds(found.at), until=_milliseconds(found.until),
        radio=found.radio, what=found.what, channel=found.channel, amount=found.amount, unit=found.unit,
        frames=found.frames,
    )  # fmt: skip


def _raise(known: Violation, found: messages.Violation) -> None:
    """Raises the numbers of a violation to those of a later report."""
    known.until = max(known.until, _milliseconds(found.until))
    known.frames = max(known.frames, found.frames)
    known.amount = max(known.amount, found.amount)


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def _view(one: Violation) -> answers.RecordedViolation:
    whose = one.reservation
    return answers.RecordedViolation(
        reservation=whose.id, project=whose.project.name, user=whose.user.name, slice=whose.slice,
        at=written(one.at // 1000), until=written(-(-one.until // 1000)), radio=one.radio, what=one.what,
        amount=one.amount, unit=one.unit, frames=one.frames, channel=one.channel,
    )  # fmt: skip
