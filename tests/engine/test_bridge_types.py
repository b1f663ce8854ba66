"""What the engine returns has the types that the stub of the extension module declares."""

from __future__ import annotations

import ast
import socket
import types
import typing
from os import PathLike
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest

from helpers.nodes import eventually

_engine = pytest.importorskip("airloom._engine")

STUB = ast.parse(Path(_engine.__file__).with_name("_engine.pyi").read_text())


def declared() -> dict[str, Any]:
    """The classes of the stub that are dictionaries, and the classes ``Engine`` and ``Tap``."""
    classes = (one for one in STUB.body if isinstance(one, ast.ClassDef))
    wanted: list[ast.stmt] = [
        one
        for one in classes
        if one.name in ("Engine", "Tap") or [ast.unparse(base) for base in one.bases] == ["TypedDict"]
    ]
    names = vars(typing) | {"PathLike": PathLike}
    names |= {name: getattr(_engine, name) for name in ("WlanDevice", "Handling")}
    exec(compile(ast.Module(wanted, []), "_engine.pyi", "exec", dont_inherit=True), names)
    return names


DECLARED = declared()


def differences(value: Any, wanted: Any, place: str) -> list[str]:
    """Where a value differs from a type: missing and further keys included."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if wanted is Any:
        return []
    if origin in (typing.Union, types.UnionType):
        tried = [differences(value, one, place) for one in inner]
        return [] if [] in tried else tried[0]
    if typing.is_typeddict(wanted):
        hints = get_type_hints(wanted)
        keys = {key: hint for key, hint in hints.items() if key in value}
        missing = [f"{place}.{key} is missing" for key in sorted(wanted.__required_keys__ - set(value))]
        further = [f"{place}.{key} is not declared" for key in sorted(set(value) - set(hints))]
        found = [one for key, hint in keys.items() for one in differences(value[key], hint, f"{place}.{key}")]
        return missing + further + found
    if not isinstance(value, origin or wanted) or (isinstance(value, bool) and wanted is int):
        return [f"{place} is {type(value).__name__}, not {wanted}"]
    if origin is dict:
        return [one for key in value for one in differences(value[key], inner[1], f"{place}.{key}")]
    if origin is list:
        return [one for each in value for one in differences(each, inner[0], f"{place}[]")]
    if origin is tuple:
        if len(value) != len(inner):
            return [f"{place} has {len(value)} values, not {len(inner)}"]
        return [
            one for each, hint in zip(value, inner, strict=True) for one in differences(each, hint, place)
        ]
    return []


def wrong(value: Any, method: str) -> list[str]:
    hints = get_type_hints(getattr(DECLARED["Engine"], method))
    return differences(value, hints["return"], method)


def air() -> Any:
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    for number in (1, 2):
        engine.add_memory_port(f"n{number}:wlan0")
        settings = {
            "mac": [2, 0, 0, 0, 0, number],
            "channel": 36,
            "membership": {"ad-hoc": {"ssid": "mesh", "beacon_ns": 102_400_000}},
        }
        motion = {"static": {"x": 5.0 * number}}
        engine.add_radio("air", f"n{number}:wlan0", settings, motion, f"n{number}")
    return engine


def test_a_difference_is_found() -> None:
    count = {"written": 1, "skipped": 0, "octets": 9, "failed": False}
    counts = DECLARED["CaptureCounts"]
    assert differences(count, counts, "x") == []
    assert differences(count | {"failed": 1}, counts, "x") == ["x.failed is int, not <class 'bool'>"]
    assert differences(count | {"more": 1}, counts, "x") == ["x.more is not declared"]
    assert differences({"written": 1, "octets": 9, "failed": True}, counts, "x") == ["x.skipped is missing"]
    assert differences((1, 2.0), tuple[int, int], "x") == ["x is float, not <class 'int'>"]


def test_radios_channels_and_scans() -> None:
    engine = air()
    frame = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]) + b"\x08\x00" + bytes(100)
    engine.offer("n1:wlan0", 0, frame)
    engine.step(10**9)
    engine.set_radio("n1:wlan0", {"scan": {"channels": [36], "active": False, "dwell_ns": 200_000_000}})
    engine.step(2 * 10**9)
    radios = engine.radios()
    assert radios[0]["peers"]["n2:wlan0"]["signal_dbm"] is not None
    assert wrong(radios, "radios") == []
    assert engine.channels()
    assert wrong(engine.channels(), "channels") == []
    scanned = engine.scanned("n1:wlan0")
    assert [one["port"] for one in scanned["found"]] == ["n2:wlan0"]
    assert wrong(scanned, "scanned") == []


def test_ledger_and_guests(tmp_path: Path) -> None:
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_switch("s1", "hub")
    engine.connect("a-s1", "a", "s1", {}, {})
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / "vhost"))
        listener.listen(1)
        engine.add_vhost_port("guest", listener.fileno(), "02:00:00:00:00:01", 1500)
    engine.offer("a", 0, bytes(60))
    engine.step(10**6)
    ledger = engine.ledger()
    assert set(ledger["links"]["a-s1"]) == {"forward", "backward"}
    assert wrong(ledger, "ledger") == []
    assert list(engine.guests()) == ["guest"]
    assert wrong(engine.guests(), "guests") == []


def test_lateness(tmp_path: Path) -> None:
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("a-b", "a", "b", {}, {})
    engine.capture(tmp_path / "all.pcapng")
    engine.start()
    engine.offer("a", 0, bytes(60))
    eventually(lambda: bool(engine.received()), "the frame has not arrived")
    engine.stop()
    lateness = engine.lateness()
    assert lateness["delivery"]["count"] == 1
    assert lateness["capture"]["written"] == 2
    assert wrong(lateness, "lateness") == []
