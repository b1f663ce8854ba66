"""Captures: what is in them, read by a reader of the test's own and by tshark."""

import json
import os
import shutil
import struct
import subprocess
import threading

import pytest

_engine = pytest.importorskip("airloom._engine")

A, B = bytes.fromhex("020000000001"), bytes.fromhex("020000000002")


def frame(to: bytes, source: bytes, fill: int, length: int = 60) -> bytes:
    return (to + source + b"\x88\xb5").ljust(length, bytes([fill]))


def blocks(data: bytes):
    """(type, body) of every block; both lengths must agree."""
    while data:
        kind, length = struct.unpack_from("=II", data)
        assert struct.unpack_from("=I", data, length - 4) == (length,)
        yield kind, data[8 : length - 4]
        data = data[length:]


def options(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        code, length = struct.unpack_from("=HH", data)
        if code == 0:
            break
        found[code] = data[4 : 4 + length]
        data = data[4 + (length + 3) // 4 * 4 :]
    return found


def read(path) -> tuple[list[str], list[dict]]:
    interfaces, packets = [], []
    for kind, body in blocks(path.read_bytes()):
        if kind == 1:
            known = options(body[8:])
            assert known[9] == b"\x09", "nanoseconds"
            interfaces.append(known[2].decode())
        elif kind == 6:
            number, high, low, length, original = struct.unpack_from("=IIIII", body)
            known = options(body[20 + (length + 3) // 4 * 4 :])
            packets.append(
                {
                    "port": interfaces[number],
                    "at": high << 32 | low,
                    "octets": body[20 : 20 + length],
                    "length": original,
                    "direction": {b"\1": "in", b"\2": "out", None: None}[known.get(2, b"")[:1] or None],
                    "comment": known.get(1, b"").decode(),
                }
            )
    return interfaces, packets


def run(path, ports=None, **how):
    engine = _engine.Engine(1)
    for name in ("h1:eth0", "h2:eth0"):
        engine.add_memory_port(name)
    queue = {"packets": 1}
    engine.connect(
        "h1-h2",
        "h1:eth0",
        "h2:eth0",
        {"rate": {"bits-per-second": 1_000_000}, "delay_ns": 1_000, "queue": queue},
        {},
    )
    engine.capture(path, ports, **how)
    for fill in range(3):
        engine.offer("h1:eth0", 1_000_000 + fill, frame(B, A, fill))
    engine.step(10**9)
    engine.stop()


def test_a_capture_tells_port_time_direction_and_fate(tmp_path):
    path = tmp_path / "run.pcapng"
    run(path)
    interfaces, packets = read(path)
    assert interfaces == ["h1:eth0", "h2:eth0"]
    one = 84 * 8 * 1000
    assert [(p["port"], p["at"], p["octets"][14], p["direction"], p["comment"]) for p in packets] == [
        ("h1:eth0", 1_000_000, 0, "out", ""),
        ("h1:eth0", 1_000_001, 1, "out", ""),
        ("h1:eth0", 1_000_002, 2, "out", ""),
        ("h1:eth0", 1_000_002, 2, None, "dropped: queue-full on link h1-h2 forward"),
        ("h2:eth0", 1_001_000 + one, 0, "in", ""),
        ("h2:eth0", 1_001_000 + 2 * one, 1, "in", ""),
    ]


def test_a_capture_of_some_ports_has_only_those(tmp_path):
    path = tmp_path / "run.pcapng"
    run(path, ["h2:eth0"])
    interfaces, packets = read(path)
    assert interfaces == ["h2:eth0"]
    assert [p["direction"] for p in packets] == ["in", "in"]


def test_two_runs_with_one_seed_are_captured_alike_to_the_last_octet(tmp_path):
    for name in ("one", "two"):
        run(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_full_disk_is_refused_at_once():
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    with pytest.raises(_engine.EngineError, match="No space left") as caught:
        engine.capture("/dev/full")
    assert caught.value.args[0] == "run.capture"


def test_a_file_that_fails_later_is_an_error_of_the_run_and_of_nothing_else(tmp_path):
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.add_memory_port("b")
    engine.connect("wire", "a", "b", {}, {})
    path = tmp_path / "pipe"
    os.mkfifo(path)

    def read_a_little():
        with path.open("rb") as pipe:
            pipe.read(1)

    reader = threading.Thread(target=read_a_little)
    reader.start()
    engine.capture(path)
    reader.join()
    engine.offer("a", 0, frame(B, A, 1))
    assert len(engine.step(1)) == 1
    with pytest.raises(_engine.EngineError, match="Broken pipe") as caught:
        engine.stop()
    assert caught.value.args[0] == "run.capture"
    assert engine.ledger()["delivered"] == 1


def test_an_unknown_port_is_refused(tmp_path):
    engine = _engine.Engine(1)
    with pytest.raises(_engine.EngineError, match="nobody"):
        engine.capture(tmp_path / "run.pcapng", ["nobody"])
    assert not (tmp_path / "run.pcapng").exists()


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_reads_the_same(tmp_path):
    path = tmp_path / "run.pcapng"
    run(path)
    fields = ["frame.interface_name", "frame.time_epoch", "frame.packet_flags_direction", "frame.comment"]
    arguments = [argument for field in fields for argument in ("-e", field)]
    result = subprocess.run(
        ["tshark", "-r", path, "-T", "json", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    layers = [packet["_source"]["layers"] for packet in json.loads(result.stdout)]
    assert [layer["frame.interface_name"] for layer in layers] == [["h1:eth0"]] * 4 + [["h2:eth0"]] * 2
    assert layers[0]["frame.packet_flags_direction"][0].endswith("2")
    assert layers[3]["frame.comment"] == ["dropped: queue-full on link h1-h2 forward"]
    assert layers[3]["frame.time_epoch"][0].endswith("0.001000002")


def test_what_is_no_frame_is_captured_as_it_is(tmp_path):
    path = tmp_path / "run.pcapng"
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.capture(path)
    engine.offer("a", 7, b"short")
    engine.offer("a", 8, frame(B, A, 1))
    engine.step(10)
    engine.stop()
    _, packets = read(path)
    assert [(p["at"], len(p["octets"]), p["direction"], p["comment"]) for p in packets] == [
        (7, 5, "out", ""),
        (7, 5, None, "dropped: malformed at port a"),
        (8, 60, "out", ""),
        (8, 60, None, "dropped: nowhere at port a"),
    ]


def on_the_air(path, ports=None, **how):
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    for number, address in enumerate((A, B), 1):
        engine.add_memory_port(f"n{number}:wlan0")
        settings = {"mac": list(address), "rate": {"constant": 54_000_000}}
        place = {"static": {"x": 5.0 * number}}
        engine.add_radio("air", f"n{number}:wlan0", settings, place, f"n{number}")
    engine.capture(path, ports, **how)
    engine.offer("n1:wlan0", 0, frame(B, A, 7, 100))
    engine.step(10**7)
    engine.stop()
    return [] if how else read(path)


def test_the_air_is_captured_by_channel_and_by_radio(tmp_path):
    interfaces, packets = on_the_air(tmp_path / "air.pcapng")
    assert sorted(interfaces) == [
        "air, channel 36",
        "n1:wlan0",
        "n1:wlan0 on the air",
        "n2:wlan0",
        "n2:wlan0 on the air",
    ]
    channel = [packet["octets"] for packet in packets if packet["port"] == "air, channel 36"]
    # Behind the radiotap header a data frame and its acknowledgment.
    kinds = [octets[struct.unpack_from("<H", octets, 2)[0]] for octets in channel]
    assert kinds == [0x08, 0xD4]
    assert B in channel[0]
    assert bytes([7]) * 40 in channel[0]
    heard = [packet["octets"] for packet in packets if packet["port"] == "n2:wlan0 on the air"]
    assert [octets[struct.unpack_from("<H", octets, 2)[0]] for octets in heard][:1] == [0x08]


def test_the_air_of_one_radio_alone_may_be_captured(tmp_path):
    interfaces, _ = on_the_air(tmp_path / "air.pcapng", ["n2:wlan0"])
    assert sorted(interfaces) == ["n2:wlan0", "n2:wlan0 on the air"]


def test_each_port_has_a_file_of_its_own(tmp_path):
    run(tmp_path / "merged.pcapng")
    run(tmp_path / "apart", apart=True)
    assert sorted(path.name for path in (tmp_path / "apart").iterdir()) == [
        "h1.eth0.pcapng",
        "h2.eth0.pcapng",
    ]
    _, merged = read(tmp_path / "merged.pcapng")
    for node in ("h1", "h2"):
        interfaces, packets = read(tmp_path / "apart" / f"{node}.eth0.pcapng")
        assert interfaces == [f"{node}:eth0"]
        assert packets == [packet for packet in merged if packet["port"] == f"{node}:eth0"]


def test_a_snap_length_cuts_frames_and_keeps_their_length(tmp_path):
    run(tmp_path / "run.pcapng", snap=20)
    _, packets = read(tmp_path / "run.pcapng")
    assert {(len(packet["octets"]), packet["length"]) for packet in packets} == {(20, 60)}
    assert packets[0]["octets"] == frame(B, A, 0)[:20]


def test_the_size_is_that_of_the_file(tmp_path):
    path = tmp_path / "run.pcapng"
    engine = _engine.Engine(1)
    engine.add_memory_port("a")
    engine.capture(path)
    for at in range(100):
        engine.offer("a", at, frame(B, A, 1))
    engine.step(1000)
    engine.stop()
    counts = engine.lateness()["capture"]
    begin = 44  # the section header
    assert counts["written"] == 200
    assert path.stat().st_size == counts["octets"] + begin


def test_frames_of_radios_are_in_order_of_time(tmp_path):
    """A long frame ends after a short one that began later elsewhere."""
    path = tmp_path / "air.pcapng"
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    for number in range(4):
        address = bytes.fromhex(f"02000000000{number}")
        engine.add_memory_port(f"n{number}:wlan0")
        settings = {"mac": list(address), "rate": {"constant": 6_000_000 if number < 2 else 54_000_000}}
        far = 1e6 if number > 1 else 0.0
        engine.add_radio("air", f"n{number}:wlan0", settings, {"static": {"x": far + number}}, f"n{number}")
    engine.capture(path)
    for turn in range(50):
        for sender in (0, 2):
            to, source = (bytes.fromhex(f"02000000000{end}") for end in (sender + 1, sender))
            engine.offer(
                f"n{sender}:wlan0", turn * 5_000_000, frame(to, source, 7, 1400 if sender == 0 else 100)
            )
    engine.step(10**9)
    engine.stop()
    _, packets = read(path)
    times = [packet["at"] for packet in packets]
    assert len(times) > 400
    assert times == sorted(times)


def test_a_station_sees_its_own_transmissions(tmp_path):
    _, packets = on_the_air(tmp_path / "air.pcapng")

    def seen(port):
        octets = [packet["octets"] for packet in packets if packet["port"] == port]
        lengths = [struct.unpack_from("<H", one, 2)[0] for one in octets]
        own = [bool(struct.unpack_from("<I", one, 4)[0] & 1 << 15) for one in octets]
        return [(one[length], mine) for one, length, mine in zip(octets, lengths, own, strict=True)]

    assert seen("n1:wlan0 on the air") == [(0x08, True), (0xD4, False)]
    assert seen("n2:wlan0 on the air") == [(0x08, False), (0xD4, True)]
    assert seen("air, channel 36") == [(0x08, False), (0xD4, False)]


def test_the_air_by_file(tmp_path):
    on_the_air(tmp_path / "all", apart=True)
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "air.channel.36.pcapng",
        "n1.wlan0.on.the.air.pcapng",
        "n1.wlan0.pcapng",
        "n2.wlan0.on.the.air.pcapng",
        "n2.wlan0.pcapng",
    ]


def test_a_medium_stands_for_its_channels(tmp_path):
    interfaces, _ = on_the_air(tmp_path / "air.pcapng", ["air"])
    assert interfaces == ["air, channel 36"]
