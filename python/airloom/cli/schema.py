"""``airloom schema``."""

from __future__ import annotations

import json

import typer


def command() -> None:
    """Print the JSON schema of scenarios, for editors that complete and check YAML.

    In VS Code: airloom schema > airloom.schema.json, and name it in the setting yaml.schemas.
    """
    from airloom.scenario import Scenario

    typer.echo(json.dumps(Scenario.model_json_schema(by_alias=True), indent=2))
