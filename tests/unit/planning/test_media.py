"""Media and radios from a scenario's words to the engine's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airloom.planning import timed_changes
from airloom.planning.gate import check
from airloom.planning.plan import Plan, RadioPlan
from airloom.planning.radio.media import receiver_noise
from airloom.scenario.model import Radio, Scenario

pytest.importorskip("airloom._engine")


def plan_of(**parts: Any) -> Plan:
    parts.setdefault("media", {"air": {}})
    return check(Scenario(name="test", **parts)).plans[0]


def radios(plan: Plan) -> dict[str, RadioPlan]:
    return {radio.port: radio for medium in plan.media.values() for radio in medium.radios}


def node(x: str = "0 m", y: str = "0 m", **radio: Any) -> dict[str, Any]:
    return {"position": [x, y], "radios": {"wlan0": radio}}


def test_what_a_radio_does_not_say_its_medium_says() -> None:
    media = {"air": {"radio": {"phy": "802.11b", "channel": 6, "rate": "11 Mbit/s", "preamble": "short"}}}
    found = radios(plan_of(media=media, nodes={"a": node(), "b": node(rate="arf", power="100 mW")}))
    one, other = found["a:wlan0"].settings, found["b:wlan0"].settings
    assert (one["phy"], one["channel"], one["rate"]) == ("802.11b-short", 6, {"constant": 11_000_000})
    assert (other["rate"], other["power_dbm"], other["channel"]) == ("arf", pytest.approx(20.0), 6)
    assert one["mac"] != other["mac"]


@pytest.mark.parametrize(
    ("phy", "frequency", "number"),
    [("802.11a", "5.18 GHz", 36), ("802.11a", "5825 MHz", 165), ("802.11g", "2.437 GHz", 6)],
)
def test_a_channel_may_be_said_by_its_frequency(phy: str, frequency: str, number: int) -> None:
    found = radios(plan_of(nodes={"a": node(phy=phy, channel=frequency), "b": node("1 m")}))
    assert found["a:wlan0"].settings["channel"] == number


def test_words_of_802_11n() -> None:
    air = {"phy": "802.11n", "width": "40 MHz", "guard_interval": "400 ns", "rate": "MCS 15"}
    nodes = {"a": node(), "b": node("9 m", rate="54 Mbit/s")}
    events = [{"at": "1 s", "radio": "b", "tune": {"rate": "MCS 0"}}]
    plan = plan_of(media={"air": {"radio": air}}, nodes=nodes, events=events)
    one, other = (radios(plan)[f"{name}:wlan0"].settings for name in "ab")
    assert (one["phy"], one["channel"], one["rate"]) == ("802.11n", 36, {"mcs": 15})
    assert (one["width_mhz"], one["guard_interval_ns"]) == (40, 400)
    assert other["rate"] == {"constant": 54_000_000}
    narrow = plan_of(nodes={"a": node(phy="802.11n", rate="MCS 7", channel="2.437 GHz")})
    plain = radios(narrow)["a:wlan0"].settings
    assert plain["channel"] == 6
    assert not {"width_mhz", "guard_interval_ns", "aggregation"} & set(plain)
    joined = plan_of(nodes={"a": node(phy="802.11n", rate="MCS 7", qos=True, aggregation=32)})
    assert radios(joined)["a:wlan0"].settings["aggregation"] == 32
    # Thermal noise at 290 K in 40 MHz, and 7 dB.
    assert receiver_noise(Radio(**air)) == pytest.approx(-90.95, abs=0.01)


def test_a_station_listens_or_asks_on_each_channel() -> None:
    own: dict[str, Any] = {"mode": "station", "ssid": "lab"}
    nodes = {"a": node(mode="ap", ssid="lab"), "b": node(**own, scan=[36, 40]), "c": node(**own, probe=True)}
    found = radios(plan_of(nodes=nodes))
    listening, asking = (found[f"{name}:wlan0"].settings["membership"]["station"] for name in "bc")
    assert listening == {"ssid": "lab", "channels": [36, 40]}
    assert asking == {"ssid": "lab", "active": True, "dwell_ns": 30_000_000}


def test_radios_of_one_network_share_a_subnet() -> None:
    plan = plan_of(
        nodes={"a": node(), "b": node("5 m"), "c": node("9 m", ssid="other"), "d": node("7 m", ssid="other")}
    )
    networks = [plan.nodes[name].interfaces[0].addresses[0].network for name in "abcd"]
    assert networks[0] == networks[1] != networks[2] == networks[3]
    assert networks[0].prefixlen == 24


def test_a_daemon_finds_neighbours_by_itself() -> None:
    parts = {"routing": "none", "forwarding": True}
    plan = plan_of(nodes={"a": node() | parts, "b": node("5 m") | parts})
    assert str(plan.nodes["a"].interfaces[0].addresses[0]) == "10.0.0.1/32"
    assert plan.nodes["a"].routes == ()
    assert plan.nodes["a"].sysctl["net.ipv4.conf.wlan0.send_redirects"] == "0"


def test_wires_behind_a_radio_are_reached_through_its_router() -> None:
    plan = plan_of(
        nodes={"host": node(), "gate": node("5 m"), "server": {}},
        links=[{"ends": ["gate", "server"]}],
        measurements=[{"name": "rtt", "ping": {"from": "host", "to": "server"}}],
    )
    (route,) = plan.nodes["host"].routes
    gate = next(one for one in plan.nodes["gate"].interfaces if one.name == "wlan0")
    assert (route.to, route.via, route.interface) == ("default", str(gate.addresses[0].ip), "wlan0")


@pytest.mark.parametrize(
    ("shape", "last"),
    [
        ({"generator": "chain", "nodes": 4}, {"x": 30.0, "y": 0.0}),
        ({"generator": "grid", "rows": 2, "columns": 3}, {"x": 20.0, "y": 10.0}),
        ({"generator": "star", "nodes": 5}, {"x": 0.0, "y": -10.0}),
    ],
)
def test_a_generator_places_its_nodes(shape: dict[str, Any], last: dict[str, float]) -> None:
    plan = plan_of(topology={**shape, "spacing": "10 m", "radio": {"channel": 40}})
    assert not plan.links
    found = list(radios(plan).values())
    assert all(radio.settings["channel"] == 40 for radio in found)
    assert found[-1].motion["static"] == pytest.approx(last)


def test_random_places_follow_the_seed() -> None:
    shape = {"generator": "random", "nodes": 50, "probability": 0.1, "spacing": "10 m", "radio": {}}
    one, again, other = (radios(plan_of(topology=shape, seed=seed)) for seed in (1, 1, 2))
    places = [radio.motion for radio in one.values()]
    assert places == [radio.motion for radio in again.values()]
    assert places != [radio.motion for radio in other.values()]
    side = 10 * 50**0.5
    assert all(0 <= place["static"][axis] <= side for place in places for axis in "xy")


def test_what_a_node_says_goes_beside_what_its_generator_says() -> None:
    shape = {"generator": "chain", "nodes": 3, "spacing": "10 m", "radio": {"rate": "6 Mbit/s"}}
    plan = plan_of(
        topology=shape, nodes={"n2": {"radios": {"wlan0": {"power": "3 dBm"}}, "forwarding": True}}
    )
    two = radios(plan)["n2:wlan0"]
    assert (two.settings["power_dbm"], two.settings["rate"]) == (3.0, {"constant": 6_000_000})
    assert two.motion["static"]["x"] == 10.0
    assert plan.nodes["n2"].forwarding


def test_traces_give_nodes_their_ways_in_order(tmp_path: Path) -> None:
    trace = tmp_path / "way.movements"
    trace.write_text("0 1 2 4 5 6\n0 7 8\n")
    mobility = {"model": "bonnmotion", "file": str(trace)}
    nodes = {name: {"mobility": mobility, "radios": {"wlan0": {}}} for name in ("a", "b")}
    found = radios(plan_of(nodes=nodes))
    assert found["a:wlan0"].motion["path"][1] == [4_000_000_000, {"x": 5.0, "y": 6.0, "z": 0.0}]
    assert found["b:wlan0"].motion["path"] == [[0, {"x": 7.0, "y": 8.0, "z": 0.0}]]


def test_events_become_changes_at_their_time() -> None:
    plan = plan_of(
        nodes={"a": node(), "b": node("5 m")},
        events=[
            {"at": "3 s", "radio": "a", "action": "down"},
            {"at": "1 s", "radio": "a:wlan0", "tune": {"channel": 40, "rate": "6 Mbit/s", "rts": "500 B"}},
            {"at": "2 s", "node": "b", "position": ["1 m", "2 m", "3 m"]},
        ],
    )
    assert [(one.at, one.port, one.change) for one in timed_changes.radio_changes(plan)] == [
        (1_000_000_000, "a:wlan0", {"channel": 40}),
        (1_000_000_000, "a:wlan0", {"rate": {"constant": 6_000_000}}),
        (1_000_000_000, "a:wlan0", {"rts-octets": 500}),
        (2_000_000_000, "b:wlan0", {"position": {"x": 1.0, "y": 2.0, "z": 3.0}}),
        (3_000_000_000, "a:wlan0", {"on": False}),
    ]


def test_a_scenario_with_media_reads_back_as_itself(tmp_path: Path) -> None:
    scenario = Scenario(
        name="test",
        media={
            "air": {
                "propagation": {"model": "log-distance", "exponent": 3.0},
                "shadowing": {"sigma": "4 dB"},
                "fading": {"model": "rician", "k": "6 dB"},
                "walls": [{"from": ["0 m", "0 m"], "to": ["0 m", "9 m"], "loss": "7 dB"}],
                "noise": [{"position": ["0 m", "0 m"], "power": "20 dBm", "channel": 36}],
                "frame_errors": [{"from": "a", "to": "b", "rate": "10 %"}],
            }
        },
        nodes={"a": node(capture="none", rts="never"), "b": node("5 m", rate="minstrel")},
    )
    again = Scenario.from_yaml(scenario.to_yaml())
    assert again == scenario
    medium = check(again).plans[0].media["air"]
    assert medium.frame_errors == (("a:wlan0", "b:wlan0", 0.1),)
    assert medium.noise[0][0]["band_hz"] == [5.17e9, 5.19e9]


def test_a_sweep_may_go_over_a_medium() -> None:
    plans = check(
        Scenario(
            name="test",
            media={"air": {"radio": {"rate": "6 Mbit/s"}}},
            nodes={"a": node(), "b": node("5 m")},
            sweep={"media.air.radio.rate": ["6 Mbit/s", "54 Mbit/s"]},
        )
    ).plans
    rates = [radios(plan)["a:wlan0"].settings["rate"]["constant"] for plan in plans]
    assert rates == [6_000_000, 54_000_000]


def test_a_source_of_noise_may_move(tmp_path: Path) -> None:
    trace = tmp_path / "noise.movements"
    trace.write_text("0 1 1 5 9 9\n0 2 2 5 8 8\n")
    walk = {"model": "random-walk", "area": ["10 m", "20 m"], "speed": "1 m/s"}
    sources = [
        {"position": ["1 m", "2 m"], "mobility": {"model": "velocity", "velocity": ["3 m/s", "0 m/s"]}},
        {"mobility": walk},
        {"mobility": {"model": "bonnmotion", "file": str(trace), "node": 1}},
    ]
    noise = [{**one, "power": "20 dBm", "channel": 36} for one in sources]
    medium = plan_of(media={"air": {"noise": noise}}, nodes={"a": node(), "b": node("5 m")}).media["air"]
    still, walking, traced = (motion for _, motion in medium.noise)
    assert still == {"velocity": {"start": {"x": 1.0, "y": 2.0}, "velocity": {"x": 3.0, "y": 0.0}}}
    assert walking["random-walk"]["area"]["height"] == 20.0
    assert traced["path"][1] == [5_000_000_000, {"x": 8.0, "y": 8.0, "z": 0.0}]


def _propagation(**law: Any) -> Any:
    radio = law.pop("radio", {})
    media = {"air": {"propagation": law, "radio": radio}}
    return plan_of(media=media, nodes={"a": node(), "b": node("1 m")}).media["air"].settings["loss"]


def test_the_loss_at_the_reference_distance_follows_the_frequency_unless_it_is_given() -> None:
    assert _propagation(model="log-distance")["log-distance"]["reference_db"] is None
    assert _propagation(model="log-distance", loss="40 dB")["log-distance"]["reference_db"] == 40.0


def test_a_matrix_of_ratios_counts_on_the_radio_of_its_medium(tmp_path: Path) -> None:
    (tmp_path / "ratios.csv").write_text("a,b\n0,20\n20,0\n")
    file = str(tmp_path / "ratios.csv")
    snr = {"model": "matrix", "numbers": "snr", "file": file}
    radio = {"phy": "802.11b", "power": "20 dBm", "noise_figure": "10 dB"}
    plain, other = (_propagation(**snr, radio=one)["matrix"]["kind"]["ratio"] for one in ({}, radio))
    # Thermal noise at 290 K is -173.98 dBm in 1 Hz.
    assert plain == {"power_dbm": 16.0, "noise_dbm": pytest.approx(-173.98 + 73.01 + 7, abs=0.01)}
    assert other == {"power_dbm": 20.0, "noise_dbm": pytest.approx(-173.98 + 73.42 + 10, abs=0.01)}
    given = _propagation(**snr, power="0 dBm", noise="-90 dBm", radio=radio)["matrix"]["kind"]["ratio"]
    assert given == {"power_dbm": 0.0, "noise_dbm": -90.0}


@pytest.mark.parametrize(("model", "notes"), [("cost231", 1), ("friis", 0), ("itu-indoor", 0)])
def test_a_model_outside_its_range_is_noted(model: str, notes: int) -> None:
    media = {"air": {"propagation": {"model": model}}}
    found = plan_of(media=media, nodes={"a": node(), "b": node("1 m")}).notes
    assert len(found) == notes
    assert all("extrapolated" in note for note in found)
