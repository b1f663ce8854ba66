"""A learning switch for OpenFlow 1.0 and 1.3, as an app of os-ken: python learning_switch.py [PORT]

Needs os-ken (pip install 'airloom[sdn]'). For a frame without a matching flow, a switch asks this
controller, which learns the sender's port and installs a flow; the switch then forwards by itself.
"""

from __future__ import annotations

import sys
from typing import Any

from os_ken import cfg
from os_ken.base.app_manager import AppManager, OSKenApp
from os_ken.controller import ofp_event
from os_ken.controller.handler import CONFIG_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from os_ken.lib.packet import ethernet, packet
from os_ken.ofproto import ofproto_v1_0, ofproto_v1_3

FORGET = 30
"""Idle timeout of flows in seconds."""
LLDP = 0x88CC


class LearningSwitch(OSKenApp):
    """Learns for each switch the port of every address."""

    OFP_VERSIONS = (ofproto_v1_0.OFP_VERSION, ofproto_v1_3.OFP_VERSION)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ports: dict[int, dict[str, int]] = {}

    @set_ev_cls(ofp_event.EventOFPSwitchFeatures, CONFIG_DISPATCHER)
    def connected(self, event: Any) -> None:
        """Requests frames without a matching flow; OpenFlow 1.0 sends them by default."""
        switch = event.msg.datapath
        ofproto, parser = switch.ofproto, switch.ofproto_parser
        if ofproto.OFP_VERSION == ofproto_v1_3.OFP_VERSION:
            ask = [parser.OFPActionOutput(ofproto.OFPP_CONTROLLER, ofproto.OFPCML_NO_BUFFER)]
            apply = [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, ask)]
            switch.send_msg(
                parser.OFPFlowMod(switch, priority=0, match=parser.OFPMatch(), instructions=apply)
            )
        print(f"switch {event.msg.datapath_id} speaks version {ofproto.OFP_VERSION}", flush=True)

    @set_ev_cls(ofp_event.EventOFPPacketIn, MAIN_DISPATCHER)
    def heard(self, event: Any) -> None:
        """Learns the sender's port from a frame, and forwards the frame."""
        message = event.msg
        switch = message.datapath
        ofproto, parser = switch.ofproto, switch.ofproto_parser
        old = ofproto.OFP_VERSION == ofproto_v1_0.OFP_VERSION
        port = message.in_port if old else message.match["in_port"]
        frame = packet.Packet(message.data).get_protocol(ethernet.ethernet)
        if frame is None or frame.ethertype == LLDP:
            return
        known = self.ports.setdefault(switch.id, {})
        known[frame.src] = port
        out = known.get(frame.dst, ofproto.OFPP_FLOOD)
        actions = [parser.OFPActionOutput(out)]
        if out != ofproto.OFPP_FLOOD:
            words = {"in_port": port, "dl_dst": frame.dst} if old else {"in_port": port, "eth_dst": frame.dst}
            how: dict[str, Any] = (
                {"actions": actions}
                if old
                else {"instructions": [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, actions)]}
            )
            switch.send_msg(
                parser.OFPFlowMod(
                    switch,
                    match=parser.OFPMatch(**words),
                    priority=1,
                    idle_timeout=FORGET,
                    cookie=0,
                    command=ofproto.OFPFC_ADD,
                    **how,
                )
            )
        switch.send_msg(
            parser.OFPPacketOut(
                switch, buffer_id=ofproto.OFP_NO_BUFFER, in_port=port, actions=actions, data=message.data
            )
        )


if __name__ == "__main__":
    port = sys.argv[1] if len(sys.argv) > 1 else "6653"
    cfg.CONF(args=["--ofp-tcp-listen-port", port], project="os_ken")
    AppManager.run_apps([__name__])
