//! A frame's way through a switch or hub.

use crate::context::Context;
use crate::element::Place;
use crate::fate::Why;
use crate::flights::Moving;
use crate::ledger::Tally;
use crate::switch::{Switch, Way};
use crate::vlan::Class;
use crate::wire::Wire;

/// A frame that came from where `back` leads passes a switch or hub.
pub(crate) fn pass(
    context: &mut Context,
    wires: &mut [Wire],
    switch: &mut Switch,
    back: u32,
    moving: Moving,
) {
    let place = Place::Switch(switch.id);
    let tally = Tally::of(&moving.frame);
    context.ledger.switches[switch.id.index()].entered += tally;
    let octets = &context.pool.octets(moving.frame.buffer)[..moving.frame.length as usize];
    let Some(class) = switch.classify(octets, back) else {
        context.drop(place, moving.frame, Why::WrongVlan);
        return;
    };
    if switch.learn(context.now, octets, back, class) && context.shortcuts.cross(switch) {
        context.shortcuts.shake();
    }
    match switch.route(context.now, octets, back, class) {
        Way::To(wire) if switch.leaves(wire, class) => send(context, wires, switch, wire, class, moving),
        Way::To(_) => context.drop(place, moving.frame, Why::WrongVlan),
        Way::Filtered => context.drop(place, moving.frame, Why::Filtered),
        Way::Everywhere => {
            let mut last = None;
            for &wire in &switch.out {
                if wire == back || !wires[wire as usize].is_up() || !switch.leaves(wire, class) {
                    continue;
                }
                if let Some(wire) = last.replace(wire) {
                    context.copy(&moving.frame);
                    context.ledger.switches[switch.id.index()].copies += tally;
                    send(context, wires, switch, wire, class, moving);
                }
            }
            match last {
                Some(wire) => send(context, wires, switch, wire, class, moving),
                None => context.drop(place, moving.frame, Why::Nowhere),
            }
        }
    }
}

/// Puts a frame on a wire, with the tag that it has there.
fn send(
    context: &mut Context,
    wires: &mut [Wire],
    switch: &Switch,
    wire: u32,
    class: Option<Class>,
    moving: Moving,
) {
    let Some(class) = class else {
        wires[wire as usize].enter(context, moving);
        return;
    };
    let Some(frame) = switch.dress(wire, class, &moving.frame, context.pool) else {
        context.drop(Place::Switch(switch.id), moving.frame, Why::Malformed);
        return;
    };
    context.ledger.retag(moving.frame.octets(), frame.octets());
    wires[wire as usize].enter(context, Moving { frame, ..moving });
}
