"""Scripts in the idiom of Mininet-WiFi: stations, access points, ad hoc cells, mobility."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from airloom.mininet import session
from airloom.mininet.controllers import DefaultController
from airloom.mininet.errors import Misused, Unsupported
from airloom.mn_wifi.link import WirelessLink, adhoc, wmediumd
from airloom.mn_wifi.net import Mininet_wifi
from airloom.mn_wifi.node import OVSKernelAP
from airloom.mn_wifi.wmediumdConnector import error_prob, interference
from airloom.nodes.all_nodes import KINDS

pytestmark = [pytest.mark.world, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    session.close()


def needs_openvswitch() -> None:
    for lacking in KINDS["openvswitch"].lacks():
        pytest.skip(f"{lacking.message}: {lacking.cure}")


def received(said: str) -> int:
    return int(said.partition(" received")[0].rpartition(" ")[2])


def test_an_ad_hoc_cell_reaches_as_far_as_its_radios() -> None:
    net = Mininet_wifi()
    one = net.addStation("sta1", position="10,10,0")
    two = net.addStation("sta2", position="50,10,0")
    net.configureNodes()
    for station in (one, two):
        net.addLink(station, cls=adhoc, intf=f"{station.name}-wlan0", ssid="net", mode="g", channel=5)
    net.build()
    assert received(one.cmd("ping -c 3 -i 0.3 10.0.0.2")) == 3
    assert one.get_distance_to(two) == pytest.approx(40)
    two.setPosition("5000,10,0")
    assert received(one.cmd("ping -c 2 -i 0.3 -W 1 10.0.0.2")) == 0
    two.setPosition("30,10,0")
    assert received(one.cmd("ping -c 2 -i 0.3 -W 2 10.0.0.2")) >= 1
    net.stop()


def test_cells_of_other_names_or_channels_do_not_meet() -> None:
    net = Mininet_wifi()
    stations = [net.addStation(f"sta{number}", position=f"{number},0,0") for number in (1, 2, 3)]
    net.configureNodes()
    for station, channel in zip(stations, (1, 1, 6), strict=True):
        net.addLink(station, cls=adhoc, ssid="net", channel=channel)
    net.build()
    assert received(stations[0].cmd("ping -c 2 -i 0.3 -W 1 10.0.0.2")) == 2
    assert received(stations[0].cmd("ping -c 2 -i 0.3 -W 1 10.0.0.3")) == 0
    net.stop()


def test_a_station_that_walks_keeps_its_connection_to_a_host_on_the_wire() -> None:
    """The most frequent report about Mininet-WiFi: no ping after a handover."""
    needs_openvswitch()
    net = Mininet_wifi(controller=DefaultController, link=wmediumd, wmediumd_mode=interference)
    station = net.addStation("sta1", ip="10.0.0.2/8")
    first = net.addAccessPoint("ap1", ssid="ssid-ap1", mode="g", channel="1", position="10,10,0")
    second = net.addAccessPoint("ap2", ssid="ssid-ap2", mode="g", channel="6", position="120,10,0")
    host, controller = net.addHost("h1", ip="10.0.0.3/8"), net.addController("c1")
    net.setPropagationModel(model="logDistance", exp=4)
    net.configureNodes()
    net.addLink(first, second)
    net.addLink(host, first)
    net.setAssociationCtrl("ssf")
    net.startMobility(time=0)
    net.mobility(station, "start", time=6, position="5,10,0")
    net.mobility(station, "stop", time=10, position="125,10,0")
    net.stopMobility(time=11)
    net.build()
    controller.start()
    for point in (first, second):
        point.start([controller])
    deadline = time.monotonic() + 5
    while station.wintfs[0].associatedTo is None and time.monotonic() < deadline:
        time.sleep(0.1)
    assert station.wintfs[0].associatedTo == "ap1"
    assert received(host.cmd("ping -c 3 -i 0.3 -W 2 10.0.0.2")) >= 2
    deadline = time.monotonic() + 25
    while station.wintfs[0].associatedTo != "ap2" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert station.wintfs[0].associatedTo == "ap2"
    time.sleep(2)
    assert station.get_xyz()[0] == pytest.approx(125, abs=0.01)
    assert received(host.cmd("ping -c 5 -i 0.3 -W 2 10.0.0.2")) >= 4
    net.stop()


def test_frames_fail_with_the_probability_of_their_link() -> None:
    needs_openvswitch()
    net = Mininet_wifi(link=wmediumd, wmediumd_mode=error_prob)
    station = net.addStation("sta1", position="0,0,0")
    point = net.addAccessPoint("ap1", ssid="net", channel="1", position="1,0,0", cls=OVSKernelAP)
    host = net.addHost("h1")
    net.configureNodes()
    net.addLink(station, point, cls=WirelessLink, error_prob=0.5)
    net.addLink(host, point)
    net.build()
    net.start()
    station.cmd(f"ping -c 40 -i 0.05 {host.IP()}")
    peers = station.wintfs[0].radio.state()["peers"]
    (peer,) = peers.values()
    assert 0.35 < peer["unanswered"] / peer["attempts"] < 0.85, "a response fails too"
    net.stop()


def test_a_range_sets_the_power_and_a_command_changes_it() -> None:
    net = Mininet_wifi()
    net.setPropagationModel(model="logDistance", exp=3)
    one = net.addStation("sta1", position="0,0,0", range=30)
    two = net.addStation("sta2", position="28,0,0", range=30)
    net.configureNodes()
    for station in (one, two):
        net.addLink(station, cls=adhoc, ssid="net", channel=1)
    net.build()
    assert received(one.cmd("ping -c 2 -i 0.3 -W 1 10.0.0.2")) == 2
    two.setPosition("34,0,0")
    assert received(one.cmd("ping -c 2 -i 0.3 -W 1 10.0.0.2")) == 0
    for station in (one, two):
        station.setRange(60)
    assert received(one.cmd("ping -c 2 -i 0.3 -W 2 10.0.0.2")) >= 1
    net.stop()


def test_stations_without_a_place_wander_in_their_area() -> None:
    net = Mininet_wifi()
    stations = [net.addStation(f"sta{number}") for number in (1, 2)]
    fixed = net.addStation("sta3", position="7,7,0")
    net.setMobilityModel(time=0, model="RandomWayPoint", max_x=40, max_y=20, min_v=5, max_v=8, seed=3)
    net.configureNodes()
    for station in (*stations, fixed):
        net.addLink(station, cls=adhoc, ssid="net", channel=1)
    net.build()
    before = [station.get_xyz() for station in stations]
    time.sleep(1.5)
    after = [station.get_xyz() for station in stations]
    for old, new in zip(before, after, strict=True):
        assert old != new
        assert 0 <= new[0] <= 40
        assert 0 <= new[1] <= 20
    assert fixed.get_xyz() == (7, 7, 0)
    net.stop()


def test_what_has_no_counterpart_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match=r"802\.11s"):
        from airloom.mn_wifi.link import mesh  # noqa: F401
    with pytest.raises(Unsupported, match="wmediumd_mode"):
        Mininet_wifi(wmediumd_mode="snr")
    net = Mininet_wifi()
    with pytest.raises(Unsupported, match="WPA"):
        net.addStation("sta1", encrypt="wpa2", passwd="secret")
    station = net.addStation("sta2", position="0,0,0")
    with pytest.raises(Misused, match="no wireless interface"):
        net.addLink(station, cls=adhoc, intf="wlan9", ssid="net")
    with pytest.raises(Unsupported, match="routing daemons"):
        net.addLink(station, cls=adhoc, ssid="net", proto="olsrd")
    with pytest.raises(Unsupported, match="setAssociationCtrl"):
        net.setAssociationCtrl("llf")
    net.stop()
