"""``airloom grid user``, ``project``, ``member``, ``token`` and ``audit``: who may reserve what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from airloom.grid.answers import Part
    from airloom.grid.client import Client

Name = Annotated[str, typer.Argument(metavar="NAME")]


def add_to(app: typer.Typer) -> None:
    """Adds the commands to ``airloom grid``."""
    app.command("user")(user_command)
    app.command("project")(project_command)
    app.command("member")(member_command)
    app.command("token")(token_command)
    app.command("audit")(audit_command)


def user_command(
    name: Name,
    admin: Annotated[bool, typer.Option("--admin", help="An administrator.")] = False,
    disable: Annotated[bool, typer.Option("--disable", help="Shut the user out.")] = False,
    enable: Annotated[bool, typer.Option("--enable", help="Let the user in again.")] = False,
) -> None:
    """Make a user, or shut one out; for administrators."""
    with _client() as client:
        if disable or enable:
            _say(client.set_disabled(name, disable))
        else:
            _say(client.add_user(name, admin=admin))


def project_command(
    name: Name,
    nodes: Annotated[int | None, typer.Option("--nodes", min=0, help="Most nodes at one time.")] = None,
    hours: Annotated[
        int | None, typer.Option("--radio-hours", min=0, help="Most radio-hours that are booked.")
    ] = None,
    reservations: Annotated[
        int | None, typer.Option("--reservations", min=0, help="Most reservations at one time.")
    ] = None,
    quota: Annotated[bool, typer.Option("--quota", help="Set the quota of a project that exists.")] = False,
) -> None:
    """Make a project with a quota, or set its quota; for administrators."""
    said = {"nodes": nodes, "radio_hours": hours, "reservations": reservations}
    with _client() as client:
        _say(client.set_quota(name, said) if quota else client.add_project(name, said))


def member_command(
    project: Annotated[str, typer.Argument(metavar="PROJECT")],
    user: Annotated[str, typer.Argument(metavar="USER")],
    role: Annotated[str, typer.Argument(metavar="ROLE", help="lead, member, viewer, or none.")],
) -> None:
    """Give a user a role in a project; for its leads."""
    with _client() as client:
        if role == "none":
            _say(client.remove_member(project, user))
        else:
            _say(client.set_member(project, user, role))


def token_command(
    user: Annotated[
        str | None, typer.Argument(metavar="USER", help="For administrators; yourself by default.")
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="read, reserve or manage. Repeatable.")
    ] = None,
    hours: Annotated[int, typer.Option("--hours", min=1, max=8784, help="How long it lives.")] = 720,
    label: Annotated[str, typer.Option("--label", help="What it is for.")] = "",
    revoke: Annotated[
        str | None, typer.Option("--revoke", metavar="ID", help="End this token instead.")
    ] = None,
) -> None:
    """Make a token, or end one. Its text is shown only now."""
    with _client() as client:
        if revoke is not None:
            _say(client.revoke_token(revoke))
        else:
            _say(client.add_token(scope or ["read", "reserve"], hours, label, user))


def audit_command(
    project: Annotated[str | None, typer.Option("--project", help="Only this project.")] = None,
) -> None:
    """Show who did what, newest first; for leads of the project and administrators."""
    from airloom.cli.console import say

    with _client() as client:
        for row in client.audit(project):
            about = f"{row.project or '-':12} {row.subject}"
            say(f"{row.at}  {row.user:12} {row.action:20} {about}")


def _client() -> Client:
    from airloom.grid.client import Client, remembered

    return Client(remembered())


def _say(said: Part) -> None:
    from airloom.cli.console import say
    from airloom.scenario.source import write

    say(write(said.model_dump(mode="json")).rstrip())
