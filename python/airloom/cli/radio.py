"""``airloom radio``: a node looks at its own radios and sets them, like ``iw``."""

from __future__ import annotations

import json
import socket
from typing import Annotated, Any

import typer

from airloom.errors import RunError

_ADDRESS = "\0airloom/radio"
"""As in :mod:`airloom.radio_door`, which a node has no need to load."""


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[info | link | scan | station | up | down | set KEY VALUE]",
            help="What to do; info if nothing.",
        ),
    ] = None,
    radio: Annotated[
        str | None, typer.Option("--radio", "-r", metavar="NAME", help="Which radio, if there are several.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Answer in JSON.")] = False,
) -> None:
    """Inside a node: show or set its radios. Keys: channel, power, rate, rts, ssid.

    Example: airloom exec n1 -- airloom radio set rate 12 Mbit/s
    """
    what, *rest = words or ["info"]
    request: dict[str, Any] = {"do": what, "radio": radio}
    if what in ("up", "down") and not rest:
        request |= {"do": "set", "key": "up", "value": what == "up"}
    elif what == "set" and len(rest) >= 2:
        request |= {"key": rest[0], "value": " ".join(rest[1:])}
    elif what not in _SHOW or rest not in ([], ["dump"]):
        raise typer.BadParameter("info, link, scan, station, up, down, or set KEY VALUE", param_hint="WORDS")
    answer = ask(request)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
    elif answer is not None:
        for line in _SHOW[what](answer):
            typer.echo(line)


def ask(request: dict[str, Any]) -> Any:
    """The laboratory's answer to the node that this process is in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        try:
            door.connect(_ADDRESS)
            door.sendall(json.dumps(request).encode() + b"\n")
            text = b"".join(iter(lambda: door.recv(1 << 16), b""))
        except OSError:
            text = b""
    if not text:
        raise RunError(
            "radio.none",
            "this is no node of a laboratory, or a node without a radio",
            cure="run it in a node: airloom exec NODE -- airloom radio",
        )
    found = json.loads(text)
    if "error" in found:
        raise RunError(found["error"]["code"], found["error"]["message"], cure=found["error"]["cure"])
    return found["answer"]


def _rate(bits: int | None) -> str:
    return "-" if bits is None else f"{bits / 1e6:g} Mbit/s"


def _signal(dbm: float | None) -> str:
    return "-" if dbm is None else f"{dbm:.1f} dBm"


def _info(radios: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in radios:
        rate = _rate(one["rate_bit_s"]) if one["rate"] == "fixed" else one["rate"]
        lines += [
            f"Interface {one['radio']}",
            f"\taddr {one['mac']}",
            *([f"\tssid {one['ssid']}"] if one["ssid"] else []),
            f"\ttype {one['mode']}",
            f"\tphy {one['phy']}, {'up' if one['up'] else 'down'}",
            f"\tchannel {one['channel']} ({one['mhz']} MHz), width: 20 MHz",
            f"\ttxpower {one['power_dbm']:.2f} dBm",
            f"\trate {rate}",
            f"\trts {'never' if one['rts_octets'] is None else one['rts_octets']}",
        ]
    return lines


def _link(radios: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in radios:
        if one["mode"] != "station":
            lines.append(f"{one['radio']}: mode {one['mode']}, no access point")
        elif one["connected"] is None:
            lines.append("Not connected.")
        else:
            lines += [
                f"Connected to {one['connected']} (on {one['radio']})",
                f"\tSSID: {one['ssid']}",
                f"\tfreq: {one['mhz']}",
                f"\tsignal: {_signal(one['signal_dbm'])}",
                f"\ttx bitrate: {_rate(one['rate_bit_s'])}",
            ]
    return lines


def _station(stations: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in stations:
        lines += [
            f"Station {one['mac']} (on {one['radio']})",
            f"\trx packets: {one['received']}",
            f"\ttx attempts: {one['attempts']}",
            f"\ttx unanswered: {one['unanswered']}",
            f"\tsignal: {_signal(one['signal_dbm'])}",
            f"\ttx bitrate: {_rate(one['rate_bit_s'])}",
        ]
    return lines


def _scan(found: list[dict[str, Any]]) -> list[str]:
    lines = []
    for one in found:
        lines += [
            f"BSS {one['mac']}",
            f"\tfreq: {one['mhz']}",
            f"\tsignal: {_signal(one['signal_dbm'])}",
            f"\tSSID: {one['ssid']}",
            f"\tchannel: {one['channel']}",
        ]
    return lines


_SHOW = {"info": _info, "link": _link, "station": _station, "scan": _scan}
