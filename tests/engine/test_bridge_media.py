"""Radio media through the engine's memory ports: exact, and the same every time."""

import json
import shutil
import subprocess

import pytest

_engine = pytest.importorskip("airloom._engine")

RATES = {"802.11a": (6, 9, 12, 18, 24, 36, 48, 54), "802.11b": (1, 2, 5.5, 11)}


def mac(number: int) -> bytes:
    return bytes([2, 0, 0, 0, 0, number])


def data(to: int, source: int, payload: int = 1470) -> bytes:
    """An IPv4 UDP datagram in an Ethernet frame."""
    return mac(to) + mac(source) + b"\x08\x00" + b"\x45".ljust(28, b"\0") + bytes(payload)


def air(count: int, laws: dict | None = None, seed: int = 1, **settings: object) -> object:
    # Room for what a test offers at once.
    settings = {"transmit_buffers": 1000, "tail_drop": 1000, **settings}
    engine = _engine.Engine(seed)
    engine.add_medium("air", laws or {})
    for number in range(1, count + 1):
        engine.add_memory_port(f"n{number}")
        given = {"mac": list(mac(number)), **settings}
        engine.add_radio("air", f"n{number}", given, {"static": {"x": 5.0 * number}}, f"n{number}")
    return engine


def ideal(phy: str, mbit: float, payload: int = 1470) -> float:
    """Seconds of one exchange of a saturated sender alone (IEEE Std 802.11-2020, clauses 10, 16, 17)."""
    octets = 24 + 8 + 28 + payload + 4
    if phy == "802.11a":
        bits = mbit * 4
        frame = 20 + 4 * -(-(16 + 8 * octets + 6) // bits)
        answer = next(rate for rate in (24, 12, 6) if rate <= mbit)
        ack = 20 + 4 * -(-(16 + 8 * 14 + 6) // (answer * 4))
        return (34 + 7.5 * 9 + frame + 16 + ack) * 1e-6
    frame = 192 + -(-8 * octets // mbit)
    # The mandatory rates are all four; the answer comes at the highest that is not above the data's.
    ack = 192 + -(-8 * 14 // mbit)
    return (50 + 15.5 * 20 + frame + 10 + ack) * 1e-6


@pytest.mark.parametrize(("phy", "mbit"), [(phy, mbit) for phy, rates in RATES.items() for mbit in rates])
def test_a_saturated_sender_reaches_the_closed_form(phy: str, mbit: float) -> None:
    channel = 36 if phy == "802.11a" else 1
    engine = air(2, phy=phy, channel=channel, rate={"constant": int(mbit * 1e6)})
    frame, sent = data(2, 1), 900
    for _ in range(sent):
        engine.offer("n1", 0, frame)
    received = engine.step(60 * 10**9)
    assert len(received) == sent
    each = (received[-1][1] - received[0][1]) / (sent - 1) / 1e9
    assert each == pytest.approx(ideal(phy, mbit), rel=0.02)


def run(seed: int) -> tuple[list[object], list[object]]:
    laws = {
        "loss": {"log-distance": {"exponent": 3.0, "reference_m": 1.0, "reference_db": 46.7}},
        "fading": "rayleigh",
        "shadowing": {"sigma_db": 4.0, "decorrelation_m": 10.0},
    }
    engine = air(6, laws, seed, rate="minstrel")
    for burst in range(200):
        for number in range(1, 7):
            engine.offer(f"n{number}", burst * 2_000_000, data(number % 6 + 1, number, 400))
    engine.schedule_radio(100_000_000, "n1", {"channel": 40})
    engine.schedule_radio(200_000_000, "n1", {"channel": 36})
    engine.schedule_radio(150_000_000, "n2", {"position": {"x": 60.0}})
    return engine.step(2 * 10**9), engine.radios()


def test_one_seed_gives_one_trace() -> None:
    first, again, other = run(1), run(1), run(2)
    assert first == again
    assert first[0] != other[0]


def test_changes_come_at_their_instant() -> None:
    engine = air(2, rate={"constant": 54_000_000})
    second = 10**9
    engine.schedule_radio(second, "n2", {"on": False})
    engine.schedule_radio(2 * second, "n2", {"on": True})
    for tenth in range(30):
        engine.offer("n1", tenth * 100_000_000 + 1, data(2, 1, 100))
    arrived = [at for _, at, _ in engine.step(4 * second)]
    assert [len([at for at in arrived if at // second == number]) for number in range(3)] == [10, 0, 10]
    dropped = engine.ledger()["dropped"]
    assert set(dropped) <= {"retry-limit", "out-of-range"}
    assert sum(dropped.values()) == 10


def test_what_cannot_be_is_refused() -> None:
    engine = air(1)
    with pytest.raises(_engine.EngineError, match="no channel 7") as caught:
        engine.set_radio("n1", {"channel": 7})
    assert caught.value.args[0] == "radio.channel"
    with pytest.raises(_engine.EngineError) as caught:
        engine.add_radio("air", "n9", {}, {"static": {}}, "n9")
    assert caught.value.args[0] == "engine.name.unknown"
    with pytest.raises(_engine.EngineError) as caught:
        _engine.read_movements("ns-2", "$node_(0) set W_ 1")
    assert caught.value.args[0] == "mobility.trace"


def test_noise_on_its_channel_only() -> None:
    def delivered(channel: int) -> int:
        engine = air(2, channel=channel, rate={"constant": 54_000_000})
        band = [5.17e9, 5.19e9]
        noise = {"power_dbm": 30.0, "band_hz": band, "from_ns": 0, "until_ns": None, "burst_ns": None}
        engine.add_noise("air", noise, {"static": {"x": 7.0}}, "noise")
        for milli in range(20):
            engine.offer("n1", milli * 1_000_000, data(2, 1, 100))
        return len(engine.step(10**8))

    assert (delivered(36), delivered(48)) == (0, 20)


def test_the_accounts_add_up() -> None:
    engine = air(2, rate={"constant": 54_000_000})
    for _ in range(50):
        engine.offer("n1", 0, data(2, 1))
    engine.step(10**8)
    one, other = engine.radios()
    assert sum(one["airtime"].values()) == 10**8 == sum(other["airtime"].values())
    assert one["peers"]["n2"]["attempts"] == 50 == other["peers"]["n1"]["received"]
    assert other["peers"]["n1"]["signal_dbm"] == pytest.approx(engine.signal("n1", "n2"))
    (channel,) = engine.channels()
    assert (channel["frames"], channel["channel"]) == (100, 36)
    assert (channel["busy"], channel["overlapped"]) == (channel["sent"], 0)


def test_a_station_looks_for_the_network_that_it_is_told() -> None:
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    networks = {"one": 36, "two": 40}
    for number, (ssid, channel) in enumerate(networks.items(), 1):
        engine.add_memory_port(ssid)
        point = {"access-point": {"ssid": ssid, "beacon_ns": 102_400_000}}
        settings = {"mac": list(mac(number)), "channel": channel, "membership": point}
        engine.add_radio("air", ssid, settings, {"static": {"x": 5.0 * number}}, ssid)
    engine.add_memory_port("walker")
    station = {"station": {"ssid": "one", "channels": [36, 40]}}
    engine.add_radio("air", "walker", {"mac": list(mac(9)), "membership": station}, {"static": {}}, "walker")
    second = 10**9
    engine.step(2 * second)
    assert engine.radios()[2]["access_point"] == "one"
    engine.schedule_radio(2 * second + 1, "walker", {"ssid": "two"})
    engine.step(4 * second)
    walker = engine.radios()[2]
    assert (walker["access_point"], walker["mhz"]) == ("two", 5200)
    assert walker["settings"]["membership"]["station"]["ssid"] == "two"
    engine.offer("walker", 4 * second, data(2, 9, 100))
    assert [port for port, _, _ in engine.step(5 * second)] == ["two"]
    with pytest.raises(_engine.EngineError, match="for stations"):
        engine.set_radio("one", {"ssid": "three"})


def test_a_radio_looks_around_and_says_whom_it_heard() -> None:
    engine = _engine.Engine(1)
    engine.add_medium("air", {})
    membership = {"ad-hoc": {"ssid": "cell", "beacon_ns": 102_400_000}}
    for number, (name, channel) in enumerate({"one": 36, "two": 44, "guest": 40}.items(), 1):
        engine.add_memory_port(name)
        settings = {"mac": list(mac(number)), "channel": channel, "membership": membership}
        engine.add_radio("air", name, settings, {"static": {"x": 5.0 * number}}, name)
    assert engine.scanned("guest") == {"times": 0, "found": []}
    engine.set_radio("guest", {"scan": {"channels": [36, 44], "active": True, "dwell_ns": 30_000_000}})
    engine.step(59_000_000)
    assert engine.scanned("guest")["times"] == 0
    engine.step(61_000_000)
    assert engine.scanned("guest")["times"] == 1
    engine.set_radio("guest", {"scan": {"channels": [36, 44], "active": False, "dwell_ns": 120_000_000}})
    engine.step(2 * 10**9)
    scanned = engine.scanned("guest")
    assert scanned["times"] == 2
    seen = [(one["port"], one["ssid"], one["mhz"], one["access_point"]) for one in scanned["found"]]
    assert seen == [("one", "cell", 5180, False), ("two", "cell", 5220, False)]
    assert scanned["found"][1]["signal_dbm"] == pytest.approx(engine.signal("two", "guest"), abs=0.1)


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed: apt-get install tshark")
def test_tshark_reads_what_was_on_the_air(tmp_path) -> None:
    """Two who do not hear each other send to one between them, whose cell has a name."""
    engine = _engine.Engine(1)
    engine.add_medium("air", {"loss": {"disk": {"range_m": 60.0, "loss_db": 70.0}}})
    cell = {"ad-hoc": {"ssid": "mesh", "beacon_ns": 102_400_000}}
    for number, x in enumerate((-50.0, 0.0, 50.0), 1):
        engine.add_memory_port(f"n{number}")
        settings = {"mac": list(mac(number)), "rate": {"constant": 6_000_000}, "membership": cell}
        engine.add_radio("air", f"n{number}", settings, {"static": {"x": x}}, f"n{number}")
    engine.capture(tmp_path / "air.pcapng")
    # Of an experimental EtherType, since the payload is nothing.
    for at in range(0, 200_000_000, 5_000_000):
        for sender in (1, 3):
            engine.offer(f"n{sender}", at, data(2, sender).replace(b"\x08\x00\x45", b"\x88\xb5\x45"))
    engine.step(10**9)
    engine.stop()
    fields = [
        *("frame.interface_name", "frame.protocols", "radiotap.channel.freq", "radiotap.datarate"),
        *("wlan.fc.type_subtype", "wlan.fc.retry", "wlan.fcs.status", "wlan.ssid"),
        *("wlan.fixed.capabilities.ibss", "_ws.malformed"),
    ]
    arguments = [argument for field in fields for argument in ("-e", field)]
    command = ["tshark", "-r", tmp_path / "air.pcapng", "-T", "json", "-o", "wlan.check_checksum:TRUE"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=60, check=True)
    packets = [packet["_source"]["layers"] for packet in json.loads(done.stdout)]
    air = [one for one in packets if one["frame.protocols"][0].startswith("radiotap")]
    assert {one["radiotap.channel.freq"][0] for one in air} == {"5180"}
    assert {one["radiotap.datarate"][0] for one in air} == {"6"}
    broken = [one for one in air if one["wlan.fcs.status"][0] in ("0", "Bad")]
    assert broken, "collisions can be seen"
    assert not any("_ws.malformed" in one for one in air if one not in broken)
    sent = [one for one in air if one["wlan.fc.type_subtype"][0] in ("0x0020", "32")]
    assert {one["wlan.fc.retry"][0] for one in sent} >= {"1"}, "and retries"
    ears = {one["frame.interface_name"][0] for one in air}
    assert len(ears) == 4, "three radios and the channel"
    beacons = [one for one in air if one["wlan.fc.type_subtype"][0] in ("0x0008", "8")]
    assert beacons
    assert {bytes.fromhex(one["wlan.ssid"][0]).decode() for one in beacons} == {"mesh"}
    assert {one["wlan.fixed.capabilities.ibss"][0] for one in beacons} <= {"1", "True"}


def test_a_medium_without_channel_access_carries_each_sender_at_its_own_rate() -> None:
    engine = _engine.Engine(1)
    engine.add_medium("air", {"access": {"none": {"loss": [[500.0, 0.0]], "overhead_octets": 0}}})
    for number, x in ((1, 0.0), (2, 299.792458), (3, 0.0)):
        engine.add_memory_port(f"n{number}")
        settings = {"mac": list(mac(number)), "rate": {"unmodulated": 11_000_000}}
        engine.add_radio("air", f"n{number}", settings, {"static": {"x": x}}, f"n{number}")
    frame = 14 + 28 + 1470
    for source in (1, 3):
        for _ in range(2):
            engine.offer(f"n{source}", 0, data(2, source))
    each = frame * 8 / 11e6 * 1e9
    times = [at for port, at, _ in engine.step(10**9) if port == "n2"]
    # Both at once, and light takes a microsecond.
    assert times == [-int(-each // 1) + 1000] * 2 + [-int(-2 * each // 1) + 1000] * 2
    radio = engine.radios()[0]
    assert radio["counts"]["sent"] == 2
    assert radio["airtime"]["transmitting"] == pytest.approx(2 * each, abs=1)
    with pytest.raises(_engine.EngineError, match="no channel access"):
        engine.set_radio("n1", {"channel": 40})
    assert engine.ledger()["delivered"] == 4
