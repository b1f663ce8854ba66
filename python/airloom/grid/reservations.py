"""Reservations: booking, the queue, extension, release, quotas and the calendar.

A search takes up to two seconds, so it runs outside of any transaction, on the grants that were held
when it began. The transaction that books then checks its result against what is held by then, which
takes no time, and begins anew if the two do not fit. Bookings are therefore exact and do not wait for
the searches of others.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airloom.errors import ScenarioError
from airloom.grid import answers, requests
from airloom.grid.access import Caller
from airloom.grid.accounts import Clock, note, project_named
from airloom.grid.admission import LIMIT_S, Answer, Ask, Held, beside, conflicts, find, nearest
from airloom.grid.grants import Grant
from airloom.grid.inventory import SECOND, Testbed
from airloom.grid.isolation import Isolation
from airloom.grid.messages import Extension, Request, stamp, written
from airloom.grid.quotas import must_ever_fit, must_fit
from airloom.grid.refused import Refused, absent, invalid
from airloom.grid.storage.database import Database, touch, version
from airloom.grid.storage.tables import Project, Reservation

TRIES = 5
"""Searches beside the bookings of others, before one search excludes them."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was held when a search began."""

    version: int
    held: list[Held]


class Reservations:
    """Everything about who has what, and when."""

    def __init__(self, database: Database, testbed: Testbed, clock: Clock):
        self.database = database
        self.testbed = testbed
        self.isolation = Isolation(testbed)
        self.clock = clock
        self._queue = threading.Lock()
        self._queue_seen = -1
        """Version of the calendar at which nothing that waits was possible."""

    def warm_up(self) -> None:
        """Computes what the first search would otherwise wait for."""
        now = self.clock()
        find(self.isolation, Ask(now, now + 1, "warm-up"), [])

    def fits_inventory(self) -> None:
        """Raises an error if something is held that the inventory does not have."""
        lent = self.testbed.nodes
        with self.database.reading() as session:
            for one in _held(session, self.clock()):
                strange = [
                    f"{node}:{radio}"
                    for node, radios in one.grant.radios.items()
                    for radio in radios
                    if node not in lent or radio not in lent[node].radios
                ]
                strange += [
                    f"channel {each}"
                    for each in one.grant.channels
                    if each not in self.testbed.inventory.channels
                ]
                strange += [f"slot {each}" for each in one.grant.slots if each >= self.testbed.frame]
                if strange:
                    raise ScenarioError(
                        "grid.inventory",
                        f"the inventory lacks {strange[0]}, which the reservation {one.id} holds "
                        f"until {written(one.end)}",
                        cure="release it with the old inventory first, or keep what it holds",
                    )

    def book(self, caller: Caller, request: Request) -> answers.Booked | answers.Reservation:
        """Books a reservation, or puts it into the queue if it may wait.

        Raises :class:`Refused` if it is not possible, with the nearest window that is.
        """
        caller.must("reserve")
        self._must_be_member(caller, request.project)
        known = self._known(caller, request)
        if known is not None:
            return known
        ask = requests.ask(self.testbed, request, self.clock())
        with self.database.reading() as session:
            must_ever_fit(project_named(session, request.project), ask)
        self.serve_queue()
        for number in range(TRIES + 1):
            if number == TRIES:
                with self.database.changing() as session:
                    found = self._search(self._seen(session), ask, request)
                    return self._settle(session, caller, request, ask, *found)
            with self.database.reading() as session:
                seen = self._seen(session)
            start, answer = self._search(seen, ask, request)
            if answer.grant is None and not request.wait:
                break
            with self.database.changing() as session:
                if self._still(session, seen, ask.at(start), answer):
                    return self._settle(session, caller, request, ask, start, answer)
        raise self._impossible(seen.held, ask, answer, self._quota(request, ask))

    def check(self, caller: Caller, request: Request) -> answers.Possible:
        """Returns what a request would be granted now; changes nothing."""
        caller.must("reserve")
        self._must_be_member(caller, request.project)
        ask = requests.ask(self.testbed, request, self.clock())
        with self.database.reading() as session:
            seen = self._seen(session)
            project = project_named(session, request.project)
            must_ever_fit(project, ask)
            must_fit(session, project, ask, self.clock())
        start, answer = self._search(seen, ask, request)
        if answer.grant is None:
            raise self._impossible(seen.held, ask, answer)
        return answers.Possible(**dict(_window(ask.at(start))), grant=answer.grant, best=answer.best)

    def show(self, caller: Caller, identity: str) -> answers.Reservation:
        """Returns a reservation."""
        caller.must("read")
        with self.database.reading() as session:
            return self._view(_visible(session, caller, identity))

    def listed(
        self, caller: Caller, project: str | None = None, *, past: bool = False
    ) -> list[answers.Reservation]:
        """Returns the reservations of the caller's projects, by start; ``past`` includes what is over."""
        caller.must("read")
        with self.database.reading() as session:
            wanted = select(Reservation).order_by(Reservation.start, Reservation.number)
            if project is not None:
                found = project_named(session, project)
                caller.must_have(found, "viewer")
                wanted = wanted.where(Reservation.project_id == found.id)
            elif not caller.admin:
                wanted = wanted.where(Reservation.project_id.in_(list(caller.roles)))
            if not past:
                wanted = wanted.where(
                    Reservation.end > self.clock(), Reservation.state.in_(["waiting", "granted"])
                )
            return [self._view(one) for one in session.scalars(wanted)]

    def grant(self, caller: Caller, identity: str) -> answers.Lent:
        """Returns what the holder may use now; raises an error outside of the window.

        ``booked`` lists slices of other reservations whose names begin with this slice's: its radios may
        not announce them.
        """
        caller.must("reserve")
        with self.database.reading() as session:
            one = own(session, caller, identity)
            now = self.clock()
            if one.state != "granted" or not one.start <= now < one.end:
                state = self._state(one)
                when = f": it begins at {written(one.start)}" if state == "booked" else ""
                raise Refused(409, "reservation.inactive", f"the reservation is {state}{when}")
            assert one.grant is not None
            positions = {node: self.testbed.place(node) for node in one.grant["radios"]}
            held = (each.slice for each in _held(session, now) if each.id != identity)
            booked = tuple(sorted({name for name in held if name.startswith(one.slice)}))
            return answers.Lent(
                **dict(self._view(one)), now=written(now), remaining_s=one.end - now, positions=positions,
                booked=booked,
            )  # fmt: skip

    def extend(self, caller: Caller, identity: str, body: Extension) -> answers.Reservation:
        """Moves the end of a reservation to a later time, with the same grant."""
        caller.must("reserve")
        end = stamp(body.end)
        with self.database.changing() as session:
            one = own(session, caller, identity)
            now = self.clock()
            if one.state != "granted" or one.end <= now:
                raise Refused(409, "reservation.over", f"the reservation is {self._state(one)}")
            if end <= one.end:
                raise invalid(
                    "window.end", f"it ends at {written(one.end)} already", "end", "give a later end"
                )
            requests.limited(self.testbed, one.start, end, now)
            requests.window(self.testbed, one.end, end, now)
            assert one.grant is not None
            grant = Grant.of(one.grant)
            others = [held for held in _held(session, now) if held.id != one.id]
            disturbed = list(conflicts(self.isolation, one.slice, grant, beside(others, one.end, end)))
            if disturbed:
                last = min(held.start for held, _ in disturbed)
                raise Refused(
                    409,
                    "reservation.conflict",
                    f"what it holds is promised to others from {written(last)} on",
                    cure="extend it until then" if last > one.end else "book something else",
                    latest_end=written(last),
                )
            must_fit(session, one.project, _recalled(one, one.start, end), now, without=one.id)
            note(session, now, caller.name, "reservation.extend", one.project.name, one.id,
                 {"from": written(one.end), "to": written(end)})  # fmt: skip
            one.end = end
            touch(session)
            return self._view(one)

    def release(self, caller: Caller, identity: str) -> answers.Reservation:
        """Ends a reservation now, or takes a request out of the queue; serves the queue afterwards."""
        caller.must("reserve")
        with self.database.changing() as session:
            one = own(session, caller, identity)
            now = self.clock()
            if one.state not in ("granted", "waiting") or one.end <= now:
                raise Refused(409, "reservation.over", f"the reservation is {self._state(one)}")
            if one.state == "granted":
                one.end = max(one.start, now)
            one.state = "released"
            note(session, now, caller.name, "reservation.release", one.project.name, one.id)
            touch(session)
            view = self._view(one)
        self.serve_queue()
        return view

    def set_live(self, caller: Caller, identity: str, url: str | None) -> answers.Reservation:
        """Sets where the live page of the run in a reservation is served; None if nowhere any more."""
        caller.must("reserve")
        with self.database.changing() as session:
            one = own(session, caller, identity)
            if url is not None and self._state(one) != "active":
                raise Refused(409, "reservation.inactive", f"the reservation is {self._state(one)}")
            one.live = url
            return self._view(one)

    def calendar(self, caller: Caller, start: int, end: int) -> list[answers.OwnTaken | answers.Taken]:
        """Returns what is held in a window; of other projects only what is taken and when."""
        caller.must("read")
        if end <= start:
            raise invalid("window.empty", "the window ends before it begins", "to")
        with self.database.reading() as session:
            rows = session.scalars(
                select(Reservation)
                .where(Reservation.state.in_(["granted", "released"]))
                .where(Reservation.start < end, Reservation.end > start)
                .where(Reservation.end > Reservation.start)
                .order_by(Reservation.start, Reservation.number)
            )
            return [self._taken(caller, row) for row in rows if row.grant is not None]

    def serve_queue(self) -> int:
        """Grants what waits and has become possible, in the order of the queue; returns how many.

        Nothing becomes possible without a change of what is held, so the queue is searched once for
        each version of the calendar.
        """
        granted = 0
        with self._queue:
            now = self.clock()
            with self.database.reading() as session:
                seen = version(session)
                waiting = session.scalars(
                    select(Reservation).where(Reservation.state == "waiting").order_by(Reservation.number)
                ).all()
            late = [one.id for one in waiting if one.latest < now]
            if late:
                self._expire(late, now)
            if seen == self._queue_seen:
                return 0
            for one in waiting:
                if one.id not in late and self._try_waiting(one, now):
                    granted += 1
            if not granted:
                self._queue_seen = seen
        return granted

    def _try_waiting(self, one: Reservation, now: int) -> bool:
        """Grants a request that waits, if that is possible."""
        with self.database.reading() as session:
            seen = self._seen(session)
        first = max(one.start, now)
        ask = _recalled(one, first, first + one.end - one.start)
        start, answer = nearest(self.isolation, ask, seen.held, first, max(one.latest, first), LIMIT_S)
        if start is None or answer.grant is None:
            return False
        with self.database.changing() as session:
            row = session.get_one(Reservation, one.id)
            if row.state != "waiting" or not self._still(session, seen, ask.at(start), answer):
                return False
            row.state, row.start, row.end = "granted", start, start + ask.end - ask.start
            row.grant = answer.grant.plain()
            note(session, now, row.user.name, "reservation.grant", row.project.name, row.id, row.grant)
            touch(session)
        return True

    def _expire(self, late: Sequence[str], now: int) -> None:
        with self.database.changing() as session:
            for identity in late:
                row = session.get_one(Reservation, identity)
                if row.state == "waiting":
                    row.state = "expired"
                    note(session, now, row.user.name, "reservation.expire", row.project.name, row.id)

    def _known(self, caller: Caller, request: Request) -> answers.Reservation | None:
        """Returns the reservation that an earlier call with the same key made."""
        if request.key is None:
            return None
        with self.database.reading() as session:
            project = project_named(session, request.project)
            return self._repeated(session, project, request)

    def _repeated(self, session: Session, project: Project, request: Request) -> answers.Reservation | None:
        found = session.scalars(
            select(Reservation).where(Reservation.project_id == project.id, Reservation.key == request.key)
        ).first()
        if found is None:
            return None
        if found.slice != request.slice:
            raise Refused(409, "reservation.key", f"the key {request.key!r} was used for another request")
        return self._view(found)

    def _must_be_member(self, caller: Caller, project: str) -> None:
        with self.database.reading() as session:
            caller.must_have(project_named(session, project), "member")

    def _seen(self, session: Session) -> _Seen:
        # The version first: a change between the two reads shows as a newer version later.
        number = version(session)
        return _Seen(number, _held(session, self.clock()))

    def _search(self, seen: _Seen, ask: Ask, request: Request) -> tuple[int, Answer]:
        """Searches at the asked start, or up to the latest; returns the start, too."""
        if request.latest is None:
            return ask.start, find(self.isolation, ask, seen.held, LIMIT_S)
        start, answer = nearest(self.isolation, ask, seen.held, ask.start, stamp(request.latest), LIMIT_S)
        return ask.start if start is None else start, answer

    def _still(self, session: Session, seen: _Seen, ask: Ask, answer: Answer) -> bool:
        """Whether an answer holds beside what is held now."""
        if version(session) == seen.version:
            return True
        if answer.grant is None:
            return False
        held = beside(_held(session, self.clock()), ask.start, ask.end)
        return not any(conflicts(self.isolation, ask.slice, answer.grant, held))

    def _settle(
        self, session: Session, caller: Caller, request: Request, ask: Ask, start: int, answer: Answer
    ) -> answers.Booked | answers.Reservation:
        """Stores the outcome of a search in this transaction."""
        now = self.clock()
        project = project_named(session, request.project)
        if request.key is not None and (known := self._repeated(session, project, request)) is not None:
            return known
        if answer.grant is None and not request.wait:
            raise self._impossible(_held(session, now), ask, answer)
        if answer.grant is None:
            self._must_have_room(session)
        must_fit(session, project, ask.at(start), now)
        row = Reservation(
            id=secrets.token_hex(16),
            number=touch(session),
            project=project,
            user_id=caller.user,
            key=request.key,
            slice=ask.slice,
            state="waiting" if answer.grant is None else "granted",
            created=now,
            start=start,
            end=start + ask.end - ask.start,
            latest=ask.start if request.latest is None else stamp(request.latest),
            asked=requests.remembered(ask).model_dump(mode="json"),
            grant=None if answer.grant is None else answer.grant.plain(),
        )
        session.add(row)
        session.flush()
        action = "reservation.wait" if answer.grant is None else "reservation.grant"
        note(session, now, caller.name, action, project.name, row.id, row.grant or row.asked)
        return answers.Booked(**dict(self._view(row)), best=answer.best)

    def _must_have_room(self, session: Session) -> None:
        most = self.testbed.inventory.terms.waiting
        waiting = session.scalars(select(Reservation.id).where(Reservation.state == "waiting")).all()
        if len(waiting) >= most:
            raise Refused(409, "queue.full", f"{most} requests wait already", cure="try again later")

    def _quota(self, request: Request, ask: Ask) -> str:
        """Returns what the quota has against a request at its time, if anything."""
        try:
            with self.database.reading() as session:
                must_fit(session, project_named(session, request.project), ask, self.clock())
        except Refused as error:
            return f"; its quota does not allow it at that time either: {error.message}"
        return ""

    def _impossible(self, held: list[Held], ask: Ask, answer: Answer, quota: str = "") -> Refused:
        """Returns the error for a request that cannot be granted, with the nearest possible window.

        ``quota`` adds what else is against it.
        """
        now, terms = self.clock(), self.testbed.inventory.terms
        last = now + int(terms.ahead) // SECOND - (ask.end - ask.start)
        start, there = nearest(self.isolation, ask, held, now, max(now, last), LIMIT_S)
        offer = None if start is None else _window(ask.at(start))
        if start is not None:
            cure = f"the nearest possible start is {written(start)}; or let it wait"
        elif there.status == "impossible":
            cure = "no other time is possible either: ask for less"
        else:
            cure = "ask for less, or for another time"
        code = "reservation.undecided" if answer.status == "undecided" else "reservation.impossible"
        return Refused(
            409, code, answer.reason + quota, cure=cure, proven=answer.status == "impossible", nearest=offer
        )

    def _state(self, one: Reservation) -> answers.State:
        """Returns the state as users see it, which follows the clock."""
        if one.state != "granted":
            return one.state
        now = self.clock()
        return "booked" if now < one.start else "active" if now < one.end else "ended"

    def _view(self, one: Reservation) -> answers.Reservation:
        state = self._state(one)
        return answers.Reservation(
            id=one.id, project=one.project.name, user=one.user.name, slice=one.slice, state=state,
            start=written(one.start), end=written(one.end), latest=written(one.latest),
            created=written(one.created), asked=answers.Asked.model_validate(one.asked),
            grant=None if one.grant is None else Grant.of(one.grant),
            live=one.live if state == "active" else None,
        )  # fmt: skip

    def _taken(self, caller: Caller, one: Reservation) -> answers.OwnTaken | answers.Taken:
        assert one.grant is not None
        grant = Grant.of(one.grant)
        what: dict[str, Any] = {
            "start": written(one.start), "end": written(one.end), "radios": grant.radios,
            "channels": grant.channels, "slots": grant.slots,
        }  # fmt: skip
        if not caller.sees(one.project_id):
            return answers.Taken(**what)
        return answers.OwnTaken(
            **what, id=one.id, project=one.project.name, user=one.user.name, slice=one.slice
        )


def _held(session: Session, now: int) -> list[Held]:
    """Returns what is held now or later."""
    rows = session.execute(
        select(Reservation.id, Reservation.slice, Reservation.start, Reservation.end, Reservation.grant)
        .where(Reservation.state == "granted", Reservation.end > now)
        .order_by(Reservation.number)
    )
    return [Held(identity, name, start, end, Grant.of(grant)) for identity, name, start, end, grant in rows]


def _visible(session: Session, caller: Caller, identity: str) -> Reservation:
    """Returns a reservation of the caller's projects; those of others do not exist for the caller."""
    one = session.get(Reservation, identity)
    if one is None or not caller.sees(one.project_id):
        raise absent("reservation", identity)
    return one


def own(session: Session, caller: Caller, identity: str) -> Reservation:
    """Returns a reservation that is the caller's own, or of a project that the caller leads."""
    one = _visible(session, caller, identity)
    caller.must_have(one.project, "member")
    if one.user_id != caller.user:
        caller.must_have(one.project, "lead")
    return one


def _recalled(one: Reservation, start: int, end: int) -> Ask:
    return requests.recalled(answers.Asked.model_validate(one.asked), one.slice, start, end)


def _window(ask: Ask) -> answers.Window:
    return answers.Window(start=written(ask.start), end=written(ask.end))
