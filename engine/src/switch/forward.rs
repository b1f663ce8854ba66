//! Forwarding of a frame through a switch or hub.

use crate::drop_reason::DropReason;
use crate::element::Place;
use crate::engine::context::Context;
use crate::frame::Frame;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::link::wire::Wire;
use crate::switch::area::{Area, Passing};
use crate::switch::vlan::Class;
use crate::switch::{Switch, Way, vlan_key};

/// Forwards a frame through a switch or hub; `back` is the wire towards its source. Returns true if
/// the switch learned that an address has moved.
pub(crate) fn pass(
    context: &mut Context,
    wires: &mut [Wire],
    switch: &mut Switch,
    areas: &mut [Area],
    back: u32,
    mut flight: InFlight,
) -> bool {
    let place = Place::Switch(switch.id);
    let at = flight.at.min(context.now);
    let tally = Tally::of(&flight.frame);
    context.ledger.switches[switch.id.index()].entered += tally;
    let octets = &context.pool.octets(flight.frame.buffer)[..flight.frame.length as usize];
    let Some(class) = switch.classify(octets, back) else {
        context.drop_at(place, at, flight.frame, DropReason::WrongVlan);
        return false;
    };
    let (mut moved, mut branches) = (false, &[][..]);
    let way = if let Some(seat) = switch.seat {
        let area = &mut areas[seat.area as usize];
        let passing = Passing { now: context.now, octets, back, vlan: vlan_key(class) };
        let way = area.way(seat.member, &passing, &mut flight.frame.label);
        if let Way::Tree(root) = way {
            branches = area.branches(root, seat.member);
        }
        way
    } else {
        moved = switch.learn(context.now, octets, back, class);
        switch.route(context.now, octets, back, class)
    };
    match way {
        Way::To(wire) if switch.leaves(wire, class) => send(context, wires, switch, wire, class, flight),
        Way::To(_) => context.drop_at(place, at, flight.frame, DropReason::WrongVlan),
        Way::Filtered => context.drop_at(place, at, flight.frame, DropReason::Filtered),
        Way::Nowhere => context.drop_at(place, at, flight.frame, DropReason::Nowhere),
        Way::Everywhere | Way::Tree(_) => {
            let bare = InFlight { frame: Frame { label: None, ..flight.frame }, ..flight };
            let edges = switch.edges.iter().filter(|&&wire| wire != back).map(|&wire| (wire, bare));
            let branches = branches.iter().map(|&wire| (wire, flight));
            let mut last = None;
            for (wire, flight) in edges.chain(branches) {
                // A branch that is down stays in use until the area has converged.
                let usable = wires[wire as usize].is_up() || flight.frame.label.is_some();
                if !usable || !switch.leaves(wire, class) {
                    continue;
                }
                if let Some((wire, flight)) = last.replace((wire, flight)) {
                    context.copy(&flight.frame);
                    context.ledger.switches[switch.id.index()].copies += tally;
                    send(context, wires, switch, wire, class, flight);
                }
            }
            match last {
                Some((wire, flight)) => send(context, wires, switch, wire, class, flight),
                None => context.drop_at(place, at, flight.frame, DropReason::Nowhere),
            }
        }
    }
    moved
}

/// Sends a frame on a wire, with the VLAN tag for that port.
fn send(
    context: &mut Context,
    wires: &mut [Wire],
    switch: &Switch,
    wire: u32,
    class: Option<Class>,
    flight: InFlight,
) {
    let Some(class) = class else {
        wires[wire as usize].enter(context, flight);
        return;
    };
    let Some(frame) = switch.leaving(wire, class, &flight.frame, context.pool) else {
        let at = flight.at.min(context.now);
        context.drop_at(Place::Switch(switch.id), at, flight.frame, DropReason::Malformed);
        return;
    };
    context.ledger.retag(flight.frame.octets(), frame.octets());
    wires[wire as usize].enter(context, InFlight { frame, ..flight });
}
