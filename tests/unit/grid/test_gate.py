"""Limits on calls: a valid token is not refused for what others do at its address."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from httpx2 import ASGITransport, AsyncClient

from airloom.errors import ScenarioError
from airloom.grid import inventory, service
from airloom.grid.storage.database import Database
from helpers import REPOSITORY

WRONG = "alg_0123456789abcdef_" + "x" * 43


def statuses(path: Path, tokens: list[str | None]) -> list[int]:
    """What calls with these tokens get, in order; ``valid`` stands for a valid one."""
    database = Database(str(path / "grid.db"))
    bed = inventory.load(REPOSITORY / "examples/grid/small.yaml")
    made = service.make(bed, database, rate=0.001, burst=5)
    valid = made.accounts.admin_token()

    async def ask() -> list[int]:
        async with AsyncClient(transport=ASGITransport(made.app), base_url="http://grid") as client:
            found = []
            for token in tokens:
                text = valid if token == "valid" else token
                headers = {} if text is None else {"authorization": f"Bearer {text}"}
                found.append((await client.get("/v1/me", headers=headers)).status_code)
            return found

    try:
        return asyncio.run(ask())
    finally:
        database.close()


def test_invalid_tokens_lock_nobody_else_out(tmp_path: Path) -> None:
    invalid = [f"{WRONG[:-2]}{number:02}" for number in range(20)]
    found = statuses(tmp_path, [*invalid, "valid", *invalid, "valid", None])
    assert found[:5] == [401] * 5
    assert set(found[5:20]) == {429}, "further ones are refused before they are looked up"
    assert found[20] == 200, "a valid one that was never seen before"
    assert set(found[21:41]) == {429}
    assert found[41] == 200


def test_a_token_without_its_form_has_no_bucket_of_its_own(tmp_path: Path) -> None:
    found = statuses(tmp_path, ["x" * 300, "junk", *["y" * 300] * 20, "valid"])
    assert found[-1] == 200
    assert 429 in found


def test_a_valid_token_has_its_own_limit(tmp_path: Path) -> None:
    assert statuses(tmp_path, ["valid"] * 8) == [200] * 5 + [429] * 3


@pytest.mark.parametrize("said", ["*", "proxy", "10.0.0.1/8x", "", "[/red]"])
def test_a_proxy_is_an_address_or_a_network(said: str) -> None:
    assert service.checked_proxies(["127.0.0.1", "10.1.0.0/16", "::1"])
    with pytest.raises(ScenarioError) as refused:
        service.checked_proxies([said])
    assert refused.value.code == "grid.proxy"
