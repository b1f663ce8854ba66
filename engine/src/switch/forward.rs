//! Forwarding of a frame through a switch or hub.

use crate::drop_reason::DropReason;
use crate::element::Place;
use crate::engine::context::Context;
use crate::ledger::Tally;
use crate::link::in_flight::InFlight;
use crate::link::wire::Wire;
use crate::switch::vlan::Class;
use crate::switch::{Switch, Way};

/// Forwards a frame through a switch or hub; `back` is the wire towards its source. Returns true if
/// the switch learned that an address has moved.
pub(crate) fn pass(
    context: &mut Context,
    wires: &mut [Wire],
    switch: &mut Switch,
    back: u32,
    flight: InFlight,
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
    let moved = switch.learn(context.now, octets, back, class);
    match switch.route(context.now, octets, back, class) {
        Way::To(wire) if switch.leaves(wire, class) => send(context, wires, switch, wire, class, flight),
        Way::To(_) => context.drop_at(place, at, flight.frame, DropReason::WrongVlan),
        Way::Filtered => context.drop_at(place, at, flight.frame, DropReason::Filtered),
        Way::Everywhere => {
            let mut last = None;
            for &wire in &switch.out {
                if wire == back || !wires[wire as usize].is_up() || !switch.leaves(wire, class) {
                    continue;
                }
                if let Some(wire) = last.replace(wire) {
                    context.copy(&flight.frame);
                    context.ledger.switches[switch.id.index()].copies += tally;
                    send(context, wires, switch, wire, class, flight);
                }
            }
            match last {
                Some(wire) => send(context, wires, switch, wire, class, flight),
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
