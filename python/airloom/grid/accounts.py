"""Users, tokens, projects and their members, and the audit log."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from airloom.grid import access, answers
from airloom.grid.access import Caller
from airloom.grid.messages import HOUR, SCOPES, Membership, NewProject, NewToken, NewUser, Quota, written
from airloom.grid.refused import Refused, absent
from airloom.grid.storage.database import Database
from airloom.grid.storage.tables import Audit, Member, Project, Token, User

FIRST_ADMIN = "admin"
ADMIN_HOURS = 720
MOST_ROWS = 1000

Clock = Callable[[], int]
"""The time in seconds since 1970."""


class Accounts:
    """Everything about who there is."""

    def __init__(self, database: Database, clock: Clock):
        self.database = database
        self.clock = clock

    def first_admin(self) -> str | None:
        """Makes the administrator of an empty database; returns the token, or None if there are users."""
        with self.database.reading() as session:
            if session.scalars(select(User.id).limit(1)).first() is not None:
                return None
        return self.admin_token()

    def admin_token(self) -> str:
        """Makes a token of the first administrator, for whoever has the database."""
        now = self.clock()
        with self.database.changing() as session:
            user = session.scalars(select(User).where(User.name == FIRST_ADMIN)).first()
            if user is None:
                user = User(name=FIRST_ADMIN, admin=True, disabled=False, created=now)
                session.add(user)
                session.flush()
            user.admin, user.disabled = True, False
            token, text = access.new_token(
                session, user, SCOPES, "made at the service", now, now + ADMIN_HOURS * HOUR
            )
            note(session, now, FIRST_ADMIN, "token.make", None, token.id, {"scopes": list(SCOPES)})
        return text

    def knows(self, token: str) -> bool:
        """Whether a token is valid."""
        try:
            self.caller(token)
        except Refused:
            return False
        return True

    def caller(self, token: str | None) -> Caller:
        """Returns who calls with a token."""
        with self.database.reading() as session:
            return access.caller(session, token, self.clock())

    def me(self, caller: Caller) -> answers.Me:
        """Returns the caller's name, scopes and roles."""
        caller.must("read")
        with self.database.reading() as session:
            members = session.scalars(select(Member).where(Member.user_id == caller.user)).all()
            projects = {member.project.name: member.role for member in members}
        scopes = tuple(scope for scope in sorted(SCOPES) if scope in caller.scopes)
        return answers.Me(user=caller.name, admin=caller.admin, scopes=scopes, projects=projects)

    def users(self, caller: Caller) -> list[answers.User]:
        """Returns all users."""
        caller.must("manage")
        caller.must_be_admin()
        with self.database.reading() as session:
            return [_user(one) for one in session.scalars(select(User).order_by(User.name))]

    def add_user(self, caller: Caller, body: NewUser) -> answers.User:
        """Makes a user."""
        caller.must("manage")
        caller.must_be_admin()
        now = self.clock()
        with self.database.changing() as session:
            if session.scalars(select(User).where(User.name == body.name)).first() is not None:
                raise Refused(409, "user.exists", f"there is a user {body.name!r} already")
            user = User(name=body.name, admin=body.admin, disabled=False, created=now)
            session.add(user)
            note(session, now, caller.name, "user.make", None, body.name, {"admin": body.admin})
        return _user(user)

    def set_disabled(self, caller: Caller, name: str, disabled: bool) -> answers.User:
        """Shuts a user out, or lets the user in again."""
        caller.must("manage")
        caller.must_be_admin()
        with self.database.changing() as session:
            user = _user_named(session, name)
            if user.id == caller.user:
                raise Refused(409, "user.self", "an administrator cannot shut itself out")
            user.disabled = disabled
            note(
                session, self.clock(), caller.name, "user.disable" if disabled else "user.enable", None, name
            )
        return _user(user)

    def tokens(self, caller: Caller) -> list[answers.Token]:
        """Returns the caller's tokens, without their secrets."""
        caller.must("read")
        with self.database.reading() as session:
            rows = session.scalars(select(Token).where(Token.user_id == caller.user).order_by(Token.created))
            return [_token(one) for one in rows]

    def add_token(self, caller: Caller, body: NewToken, name: str | None = None) -> answers.MadeToken:
        """Makes a token of the caller, or of a user named by an administrator.

        A token of the caller has no scope that the calling one lacks, and without the scope ``manage``
        it does not live longer.
        """
        if name is not None:
            caller.must("manage")
            caller.must_be_admin()
        elif not set(body.scopes) <= caller.scopes:
            raise Refused(403, "token.scope", "the calling token has not all of these scopes")
        now = self.clock()
        expires = now + body.hours * HOUR
        with self.database.changing() as session:
            user = _user_named(session, name) if name is not None else session.get_one(User, caller.user)
            if "manage" not in caller.scopes:
                expires = min(expires, session.get_one(Token, caller.token).expires)
            token, text = access.new_token(session, user, body.scopes, body.label, now, expires)
            note(session, now, caller.name, "token.make", None, token.id,
                 {"user": user.name, "scopes": token.scopes})  # fmt: skip
        return answers.MadeToken(**dict(_token(token)), user=user.name, token=text)

    def revoke_token(self, caller: Caller, identity: str) -> answers.Token:
        """Ends a token of the caller; an administrator may end any."""
        with self.database.changing() as session:
            token = session.get(Token, identity)
            if token is None or (token.user_id != caller.user and not caller.admin):
                raise absent("token", identity)
            if token.id != caller.token:
                caller.must("manage" if token.user_id != caller.user else "read")
            token.revoked = True
            note(
                session, self.clock(), caller.name, "token.revoke", None, token.id, {"user": token.user.name}
            )
        return _token(token)

    def projects(self, caller: Caller) -> list[answers.Project]:
        """Returns the projects that the caller may know of."""
        caller.must("read")
        with self.database.reading() as session:
            rows = session.scalars(select(Project).order_by(Project.name))
            return [_project(session, one) for one in rows if caller.sees(one.id)]

    def project(self, caller: Caller, name: str) -> answers.Project:
        """Returns a project with its members."""
        caller.must("read")
        with self.database.reading() as session:
            project = project_named(session, name)
            caller.must_have(project, "viewer")
            return _project(session, project)

    def add_project(self, caller: Caller, body: NewProject) -> answers.Project:
        """Makes a project."""
        caller.must("manage")
        caller.must_be_admin()
        now = self.clock()
        with self.database.changing() as session:
            if session.scalars(select(Project).where(Project.name == body.name)).first() is not None:
                raise Refused(409, "project.exists", f"there is a project {body.name!r} already")
            quota = body.quota.model_dump()
            project = Project(name=body.name, created=now, **quota)
            session.add(project)
            session.flush()
            note(session, now, caller.name, "project.make", body.name, body.name, quota)
            return _project(session, project)

    def set_quota(self, caller: Caller, name: str, quota: Quota) -> answers.Project:
        """Sets what a project may hold; what it holds already stays."""
        caller.must("manage")
        caller.must_be_admin()
        with self.database.changing() as session:
            project = project_named(session, name)
            for key, value in quota.model_dump().items():
                setattr(project, key, value)
            note(session, self.clock(), caller.name, "project.quota", name, name, quota.model_dump())
            return _project(session, project)

    def set_member(self, caller: Caller, name: str, user: str, body: Membership) -> answers.Project:
        """Gives a user a role in a project."""
        caller.must("manage")
        with self.database.changing() as session:
            project = project_named(session, name)
            caller.must_have(project, "lead")
            found = _user_named(session, user)
            member = session.get(Member, (project.id, found.id))
            if member is None:
                session.add(Member(project_id=project.id, user_id=found.id, role=body.role))
            else:
                member.role = body.role
            session.flush()
            note(session, self.clock(), caller.name, "member.set", name, user, {"role": body.role})
            return _project(session, project)

    def remove_member(self, caller: Caller, name: str, user: str) -> answers.Project:
        """Takes a user out of a project; the user's reservations stay."""
        caller.must("manage")
        with self.database.changing() as session:
            project = project_named(session, name)
            caller.must_have(project, "lead")
            found = session.scalars(select(User).where(User.name == user)).first()
            member = session.get(Member, (project.id, found.id)) if found is not None else None
            if member is None:
                raise absent("member", user)
            session.delete(member)
            session.flush()
            note(session, self.clock(), caller.name, "member.remove", name, user)
            return _project(session, project)

    def audit(self, caller: Caller, project: str | None, before: int | None = None) -> list[answers.AuditRow]:
        """Returns the newest rows of the log: of a project for its leads, all for administrators."""
        caller.must("read")
        with self.database.reading() as session:
            wanted = select(Audit).order_by(Audit.id.desc()).limit(MOST_ROWS)
            if project is None:
                caller.must_be_admin()
            else:
                caller.must_have(project_named(session, project), "lead")
                wanted = wanted.where(Audit.project == project)
            if before is not None:
                wanted = wanted.where(Audit.id < before)
            return [
                answers.AuditRow(
                    id=row.id, at=written(row.at), user=row.user, action=row.action, project=row.project,
                    subject=row.subject, detail=row.detail,
                )
                for row in session.scalars(wanted)
            ]  # fmt: skip


def note(
    session: Session, at: int, user: str, action: str, project: str | None, subject: str,
    detail: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Adds a row to the audit log, in the transaction of what it tells."""
    session.add(Audit(at=at, user=user, action=action, project=project, subject=subject, detail=detail or {}))


def project_named(session: Session, name: str) -> Project:
    """Returns a project; raises an error if there is none."""
    found = session.scalars(select(Project).where(Project.name == name)).first()
    if found is None:
        raise absent("project", name)
    return found


def _user_named(session: Session, name: str) -> User:
    found = session.scalars(select(User).where(User.name == name)).first()
    if found is None:
        raise absent("user", name)
    return found


def _user(user: User) -> answers.User:
    return answers.User(
        name=user.name, admin=user.admin, disabled=user.disabled, created=written(user.created)
    )


def _token(token: Token) -> answers.Token:
    return answers.Token(
        id=token.id, label=token.label, scopes=tuple(token.scopes), created=written(token.created),
        expires=written(token.expires), revoked=token.revoked,
    )  # fmt: skip


def _project(session: Session, project: Project) -> answers.Project:
    members = session.scalars(select(Member).where(Member.project_id == project.id))
    return answers.Project(
        name=project.name,
        quota=Quota(nodes=project.nodes, radio_hours=project.radio_hours, reservations=project.reservations),
        members={member.user.name: member.role for member in members},
    )
