"""Puts the grid manager together and serves it: ``airloom grid serve``."""

from __future__ import annotations

import ipaddress
import os
import ssl
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from socket import socket as Socket
from typing import TYPE_CHECKING

from airloom.errors import ScenarioError
from airloom.grid.accounts import Accounts, Clock
from airloom.grid.inventory import Testbed
from airloom.grid.reservations import Reservations
from airloom.grid.storage.database import Database

if TYPE_CHECKING:
    from fastapi import FastAPI

RATE, BURST = 20.0, 100
"""Calls of one caller: a second, and at once."""


def now() -> int:
    """Returns the time in seconds since 1970."""
    return int(time.time())


@dataclass(frozen=True, slots=True)
class Service:
    """A grid manager with its database."""

    accounts: Accounts
    reservations: Reservations
    app: FastAPI


def make(
    testbed: Testbed, database: Database, *, rate: float = RATE, burst: int = BURST, clock: Clock = now
) -> Service:
    """Opens the database, checks it against the inventory, and makes the application."""
    from airloom.grid.api.app import create
    from airloom.grid.api.gate import Rate

    database.upgrade()
    accounts = Accounts(database, clock)
    reservations = Reservations(database, testbed, clock)
    reservations.fits_inventory()
    return Service(accounts, reservations, create(accounts, reservations, Rate(rate, burst)))


def checked_proxies(said: Collection[str]) -> tuple[str, ...]:
    """Returns the addresses and networks of trusted proxies; raises an error for anything else."""
    for one in said:
        try:
            ipaddress.ip_network(one)
        except ValueError:
            raise ScenarioError(
                "grid.proxy", f"{one[:80]!r} is no address and no network", where="--proxy",
                cure="such as 127.0.0.1 or 10.1.0.0/16: where the proxy's own connections come from",
            ) from None  # fmt: skip
    return tuple(said)


def check_certificate(certificate: Path | None, key: Path | None) -> None:
    """Raises an error unless both files are there and belong together."""
    for option, path in (("--certificate", certificate), ("--key", key)):
        if path is not None and not path.is_file():
            raise ScenarioError("file.missing", f"there is no file {str(path)!r}", where=option)
    if certificate is None:
        if key is not None:
            raise ScenarioError("grid.certificate", "there is a key without a certificate", where="--key")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, "")
    except (ssl.SSLError, OSError) as error:
        raise ScenarioError(
            "grid.certificate",
            f"certificate and key cannot be used together: {error}",
            where="--certificate",
            cure="give a certificate as PEM, and the private key that it was made for, without password",
        ) from None


def serve(
    service: Service,
    host: str,
    port: int,
    ready: Callable[[str], None],
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: Collection[str] = (),
) -> None:
    """Serves until SIGINT or SIGTERM; ``ready`` gets the URL once calls are accepted.

    Port 0 is a free one. What a call's header ``X-Forwarded-For`` says is believed from ``proxies`` only,
    which are addresses and networks.
    """
    import uvicorn

    from airloom.host.http_protocol import PatientProtocol, allow_descriptors, quick_handshakes

    allow_descriptors()
    config = uvicorn.Config(
        service.app, host=host, port=port, log_level="warning", access_log=False, server_header=False,
        timeout_keep_alive=15, limit_concurrency=2000, loop="asyncio", http=PatientProtocol,
        proxy_headers=bool(proxies), forwarded_allow_ips=list(proxies),
        ssl_certfile=certificate and os.fspath(certificate), ssl_keyfile=key and os.fspath(key),
    )  # fmt: skip
    service.reservations.warm_up()
    socket = config.bind_socket()
    bound = socket.getsockname()
    shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    url = f"{'https' if certificate else 'http'}://{shown}:{bound[1]}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[Socket] | None = None) -> None:
            with quick_handshakes(self.config.ssl):
                await super().startup(sockets)
            ready(url)

    Server(config).run(sockets=[socket])
