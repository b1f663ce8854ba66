"""``airloom radio``: shows and sets the radios of the node that it runs in, like ``iw``."""

from __future__ import annotations

import json
import socket
from typing import Annotated, Any

import typer

from airloom.cli import completing
from airloom.errors import RunError
from airloom.units.text import visible

_ADDRESS = "\0airloom/radio"
"""As in :mod:`airloom.runs.radio_control`, which a node does not need to load."""


def command(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[info | link | scan [passive] [CHANNEL ...] | station | up | down | set KEY VALUE]",
            help="What to do; info if nothing.",
            autocompletion=completing.radio_words,
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
    elif what == "scan" and _is_scan(rest):
        request |= {"passive": "passive" in rest, "channels": [int(word) for word in rest if word.isdigit()]}
    elif what not in _SHOW or rest not in ([], ["dump"]):
        raise typer.BadParameter(
            "info, link, scan [passive] [CHANNEL ...], station, up, down, or set KEY VALUE",
            param_hint="WORDS",
        )
    answer = ask(request)
    if as_json:
        typer.echo(json.dumps(answer, indent=1))
    elif answer is not None:
        for line in (line for one in answer for line in _SHOW[what](one)):
            typer.echo(visible(line))


def _is_scan(rest: list[str]) -> bool:
    channels = rest[1:] if rest[:1] == ["passive"] else rest
    return all(word.isascii() and word.isdigit() and len(word) < 10 for word in channels)


def ask(request: dict[str, Any]) -> Any:
    """Returns the laboratory's answer to a request of the node that this process is in."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as control:
        try:
            control.connect(_ADDRESS)
            control.sendall(json.dumps(request).encode() + b"\n")
            text = b"".join(iter(lambda: control.recv(1 << 16), b""))
        except OSError:
            text = b""
    if not text:
        raise RunError(
            "radio.none",
            "this is no node of a laboratory, a node without a radio, or one in virtual time",
            cure="run it in a node: airloom exec NODE -- airloom radio; in virtual time use events",
        )
    found = json.loads(text)
    if "error" in found:
        raise RunError(found["error"]["code"], found["error"]["message"], cure=found["error"]["cure"])
    return found["answer"]


def _rate(bits: int | None) -> str:
    return "-" if bits is None else f"{bits / 1e6:g} Mbit/s"


def _signal(dbm: float | None) -> str:
    return "-" if dbm is None else f"{dbm:.1f} dBm"


def _block(head: str, *rows: tuple[str, object]) -> list[str]:
    return [head, *(f"\t{name}: {value}" for name, value in rows)]


def _info(radio: dict[str, Any]) -> list[str]:
    rate = _rate(radio["rate_bit_s"]) if radio["rate"] == "fixed" else radio["rate"]
    if radio["mcs"] is not None:
        rate = f"MCS {radio['mcs']}"
    return _block(
        f"Interface {radio['radio']}",
        ("addr", radio["mac"]),
        *([("SSID", radio["ssid"])] if radio["ssid"] else []),
        ("type", radio["mode"]),
        ("phy", f"{radio['phy']}, {'up' if radio['up'] else 'down'}"),
        ("channel", f"{radio['channel']} ({radio['mhz']} MHz), width: {radio['width_mhz']} MHz"),
        ("txpower", f"{radio['power_dbm']:.2f} dBm"),
        ("rate", rate),
        ("rts", "never" if radio["rts_octets"] is None else radio["rts_octets"]),
    )


def _link(radio: dict[str, Any]) -> list[str]:
    if radio["mode"] != "station":
        return [f"{radio['radio']}: mode {radio['mode']}, no access point"]
    if radio["connected"] is None:
        return ["Not connected."]
    return _block(
        f"Connected to {radio['connected']} (on {radio['radio']})",
        ("SSID", radio["ssid"]),
        ("freq", radio["mhz"]),
        ("signal", _signal(radio["signal_dbm"])),
        ("tx bitrate", _rate(radio["rate_bit_s"])),
    )


def _station(station: dict[str, Any]) -> list[str]:
    return _block(
        f"Station {station['mac']} (on {station['radio']})",
        ("rx packets", station["received"]),
        ("tx attempts", station["attempts"]),
        ("tx unanswered", station["unanswered"]),
        ("signal", _signal(station["signal_dbm"])),
        ("tx bitrate", _rate(station["rate_bit_s"])),
    )


def _scan(found: dict[str, Any]) -> list[str]:
    return _block(
        f"BSS {found['mac']} (on {found['radio']})",
        ("freq", found["mhz"]),
        ("type", found["mode"]),
        ("signal", _signal(found["signal_dbm"])),
        *([("last seen", f"{found['age_ms']:.0f} ms ago")] if found["age_ms"] else []),
        ("SSID", found["ssid"]),
        ("channel", found["channel"]),
    )


_SHOW = {"info": _info, "link": _link, "station": _station, "scan": _scan}
