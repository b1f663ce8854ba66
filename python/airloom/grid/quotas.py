"""What a project may hold: nodes at one time, radio-hours that are booked, and reservations."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from airloom.grid.admission import Ask
from airloom.grid.messages import HOUR
from airloom.grid.refused import Refused
from airloom.grid.storage.tables import Project, Reservation


def must_fit(session: Session, project: Project, ask: Ask, now: int, *, without: str | None = None) -> None:
    """Raises an error if a project would hold more than it may; ``without`` is not counted."""
    rows = [
        row
        for row in session.scalars(
            select(Reservation)
            .where(Reservation.project_id == project.id, Reservation.end > now)
            .where(Reservation.state.in_(["waiting", "granted"]))
        )
        if row.id != without
    ]
    if project.reservations is not None and len(rows) + 1 > project.reservations:
        raise _over(project, "reservations", project.reservations, len(rows) + 1)
    if project.nodes is not None:
        most = max(_nodes_at(rows, at) for at in _moments(rows, ask)) + ask.count
        if most > project.nodes:
            raise _over(project, "nodes at one time", project.nodes, most)
    if project.radio_hours is not None:
        seconds = sum(_radios(row) * (row.end - max(row.start, now)) for row in rows)
        seconds += ask.count * ask.radios * (ask.end - max(ask.start, now))
        if seconds > project.radio_hours * HOUR:
            raise _over(project, "radio-hours", project.radio_hours, -(-seconds // HOUR))


def must_ever_fit(project: Project, ask: Ask) -> None:
    """Raises an error for a request that is more than a project may hold, whenever it begins."""
    if project.reservations == 0:
        raise _over(project, "reservations", 0, 1)
    if project.nodes is not None and ask.count > project.nodes:
        raise Refused(
            409, "quota.exceeded",
            f"{ask.count} nodes are more than the {project.nodes} that {project.name!r} may hold at one time",
            cure=f"ask for {project.nodes} or fewer, or have the quota raised",
        )  # fmt: skip
    seconds = ask.count * ask.radios * (ask.end - ask.start)
    if project.radio_hours is not None and seconds > project.radio_hours * HOUR:
        hours = -(-seconds // HOUR)
        raise Refused(
            409, "quota.exceeded",
            f"it takes {hours} radio-hours, and {project.name!r} may hold {project.radio_hours}",
            cure="ask for fewer nodes or radios or a shorter time, or have the quota raised",
        )  # fmt: skip


def _moments(rows: list[Reservation], ask: Ask) -> list[int]:
    """Returns the times in the window at which the number of nodes may be largest."""
    return [ask.start, *(row.start for row in rows if ask.start < row.start < ask.end)]


def _nodes_at(rows: list[Reservation], at: int) -> int:
    return sum(row.asked["count"] for row in rows if row.start <= at < row.end)


def _radios(row: Reservation) -> int:
    return int(row.asked["count"] * row.asked["radios"])


def _over(project: Project, what: str, allowed: int, wanted: int) -> Refused:
    return Refused(
        409, "quota.exceeded", f"{project.name!r} may hold {allowed} {what}, and this makes it {wanted}",
        cure="release something, ask for less, or have the quota raised",
    )  # fmt: skip
