"""Who may do what: tokens, callers and the rules of authorization.

A token is ``alg_ID_SECRET``. The secret has 256 random bits, so its SHA-256 cannot be searched for,
and only that is stored. It is compared in constant time; an unknown ID costs the same comparison.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from airloom.grid.messages import Role, Scope
from airloom.grid.refused import Refused, absent
from airloom.grid.storage.tables import Member, Project, Token, User

_FORM = re.compile(r"alg_([0-9a-f]{16})_([A-Za-z0-9_-]{43})", re.ASCII)
_NOBODY = hashlib.sha256(b"").hexdigest()
_RANKS: dict[str, int] = {"viewer": 1, "member": 2, "lead": 3}


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated user, with the scopes of the token and the roles in projects."""

    user: int
    name: str
    admin: bool
    token: str
    scopes: frozenset[str]
    roles: dict[int, Role] = field(default_factory=dict)
    """Role by project."""

    def must(self, scope: Scope) -> None:
        """Raises an error if the token has not this scope."""
        if scope not in self.scopes:
            cure = f"use a token with the scope {scope!r}"
            raise Refused(403, "token.scope", f"the token is not for this: it lacks {scope!r}", cure=cure)

    def must_be_admin(self) -> None:
        """Raises an error for anyone but an administrator."""
        if not self.admin:
            raise Refused(403, "role.admin", "only an administrator may do this")

    def sees(self, project: int) -> bool:
        """Whether the caller may know what a project does."""
        return self.admin or project in self.roles

    def may(self, project: int, least: Role) -> bool:
        """Whether the caller has at least this role in a project; administrators have every role."""
        return self.admin or _RANKS.get(self.roles.get(project, ""), 0) >= _RANKS[least]

    def must_have(self, project: Project, least: Role) -> None:
        """Raises an error if the role is lower; a project of others does not exist for the caller."""
        if not self.sees(project.id):
            raise absent("project", project.name)
        if not self.may(project.id, least):
            raise Refused(403, "role.project", f"only a {least} of {project.name!r} may do this")


def new_token(
    session: Session, user: User, scopes: Iterable[Scope], label: str, now: int, expires: int
) -> tuple[Token, str]:
    """Makes a token; returns it and its text, which is not stored."""
    identity, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    token = Token(
        id=identity,
        user_id=user.id,
        digest=_digest(secret),
        scopes=sorted(set(scopes)),
        label=label,
        created=now,
        expires=expires,
        revoked=False,
    )
    session.add(token)
    return token, f"alg_{identity}_{secret}"


def caller(session: Session, text: str | None, now: int) -> Caller:
    """Returns who calls with a token; raises an error if it is not valid. It does not say why."""
    form = _FORM.fullmatch(text or "")
    token = session.get(Token, form[1]) if form is not None else None
    same = hmac.compare_digest(token.digest if token else _NOBODY, _digest(form[2] if form else ""))
    if token is None or not same or token.revoked or token.user.disabled or token.expires <= now:
        raise Refused(401, "token.invalid", "this needs a valid token", cure="airloom grid login")
    rows = session.scalars(select(Member).where(Member.user_id == token.user_id))
    roles: dict[int, Role] = {row.project_id: row.role for row in rows}
    return Caller(token.user_id, token.user.name, token.user.admin, token.id, frozenset(token.scopes), roles)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
