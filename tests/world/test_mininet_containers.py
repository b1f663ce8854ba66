"""Containernet's containers: their files are those of an image, their network that of the script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airloom.mininet import session
from airloom.mininet.containers import Containernet, Docker
from airloom.mininet.errors import Misused
from helpers.images import busybox, entry, layer, oci

pytestmark = [pytest.mark.world, pytest.mark.timeout(120)]


@pytest.fixture(autouse=True)
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield
    session.close()


def image(folder: Path, **config: Any) -> str:
    return str(oci(folder / "image", [busybox(), layer(entry("srv/mine", b"of the image"))], config))


def test_a_container_has_its_files_and_the_network_of_the_script(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "file").write_text("of the machine")
    net = Containernet()
    one = net.addDocker(
        "d1",
        ip="10.0.0.251",
        dimage=image(tmp_path),
        environment={"COLOUR": "red"},
        volumes=[f"{tmp_path}/shared:/data:ro"],
        dcmd="sleep 1000",
    )
    two, switch = net.addHost("h1", ip="10.0.0.1"), net.addSwitch("s1")
    net.addLink(one, switch)
    net.addLink(two, switch)
    net.start()
    assert one.cmd("cat /srv/mine").strip() == "of the image"
    assert one.cmd("echo $COLOUR").strip() == "red"
    assert one.cmd("cat /data/file").strip() == "of the machine"
    assert "denied" in one.cmd("touch /data/new") or "ead-only" in one.cmd("touch /data/new")
    assert "sleep 1000" in one.cmd("ps")
    assert "10.0.0.251" in one.cmd("ip addr show d1-eth0")
    assert "1 packets received" in one.cmd("ping -c 1 -W 2 10.0.0.1")
    assert "1 received" in two.cmd("ping -c 1 -W 2 10.0.0.251")
    assert one.pexec("cat", "/srv/mine") == ("of the image", "", 0)
    net.removeDocker("d1")
    assert "0 received" in two.cmd("ping -c 1 -W 1 10.0.0.251")
    net.stop()


def test_mistakes_are_named(tmp_path: Path) -> None:
    net = Containernet()
    with pytest.raises(Misused, match="has no image"):
        net.addDocker("d1")
    with pytest.raises(Misused, match="is no volume"):
        net.addDocker("d1", dimage=image(tmp_path), volumes=["here"])
    with pytest.raises(Misused, match="there is no /nowhere"):
        Docker("d1", dimage=image(tmp_path), volumes=["/nowhere:/data"])
    net.stop()
