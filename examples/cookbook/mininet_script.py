"""A script as for Mininet: ``airloom mn-run examples/cookbook/mininet_script.py``."""

from mininet.link import TCLink
from mininet.net import Mininet
from mininet.topo import SingleSwitchTopo


def main() -> None:
    """Pings all pairs of three hosts over links of 10 Mbit/s and 5 ms."""
    net = Mininet(topo=SingleSwitchTopo(k=3), link=TCLink)
    for host in net.hosts:
        host.cmd("true")
    net.start()
    try:
        loss = net.pingAll()
    finally:
        net.stop()
    print(f"loss {loss:.0f} %")


if __name__ == "__main__":
    main()
