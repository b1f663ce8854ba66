//! Changes that a scenario makes at run time.

use crate::calendar::Class;
use crate::element::{Direction, End, LinkId, MediumId, SwitchId};
use crate::engine::context::{Context, Event, source};
use crate::engine::media::AttachedMedium;
use crate::engine::{Engine, areas};
use crate::error::Error;
use crate::link::wire::Wire;
use crate::medium::{RadioChange, RadioId};
use crate::settings::{LinkSettings, SwitchSettings};
use crate::switch::Switch;
use crate::switch::area::Area;
use crate::time::Instant;

/// A change that the scenario makes at run time.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// New settings for one direction of a link.
    Link(LinkId, Direction, Box<LinkSettings>),
    /// The link comes up, both directions.
    Up(LinkId),
    /// The link goes down, both directions.
    Down(LinkId),
    /// New settings for a switch or hub.
    Switch(SwitchId, SwitchSettings),
    /// A change of a radio.
    Radio(MediumId, RadioId, Box<RadioChange>),
    /// A radio is taken out; its port stays bound to it until [`Engine::remove_radio`] frees it.
    RadioGone(MediumId, RadioId),
}

impl Engine {
    /// Schedules a change at `at`, before all other events of that instant. If `at` has passed, the
    /// next [`Engine::advance`] applies it at once.
    ///
    /// # Errors
    /// If an element is unknown or a setting is out of its range.
    pub fn schedule(&mut self, at: Instant, change: Change) -> Result<(), Error> {
        match &change {
            Change::Link(link, _, settings) => {
                self.check_link(*link)?;
                settings.check()?;
            }
            Change::Up(link) | Change::Down(link) => self.check_link(*link)?,
            Change::Switch(switch, settings) => {
                self.check_end(End::Switch(*switch))?;
                settings.check()?;
                self.check_change(*switch, settings)?;
            }
            Change::Radio(medium, radio, change) => {
                self.check_radio(*medium, *radio)?.check(*radio, change)?;
            }
            Change::RadioGone(medium, radio) => self.check_radio(*medium, *radio)?.check_removal(*radio)?,
        }
        let index = self.next_change;
        self.next_change = self.next_change.wrapping_add(1);
        let at = at.max(self.calendar.now());
        self.changes.insert(index, (at, change));
        self.calendar.push(at, Class::Change, source::CHANGE, Event::Change(index));
        Ok(())
    }

    /// Withdraws all changes that are scheduled for later than now, and returns the present instant.
    pub fn withdraw_changes(&mut self) -> Instant {
        let now = self.calendar.now();
        self.changes.retain(|_, (at, _)| *at <= now);
        now
    }
}

/// Applies a scheduled change.
pub(super) fn apply(
    context: &mut Context,
    wires: &mut [Wire],
    (switches, areas): (&mut [Switch], &mut [Area]),
    media: &mut [AttachedMedium],
    change: &Change,
) {
    match change {
        Change::Link(link, direction, settings) => {
            wires[2 * link.index() + *direction as usize].change(context, settings);
        }
        Change::Up(link) | Change::Down(link) => {
            let up = matches!(change, Change::Up(_));
            for wire in [2 * link.0, 2 * link.0 + 1] {
                wires[wire as usize].set_up(context, up);
                if let Some(port) = wires[wire as usize].carrier_port() {
                    context.egress.carrier(port, up);
                }
                if !up {
                    switches.iter_mut().for_each(|switch| switch.forget(wire));
                    areas.iter_mut().for_each(|area| area.forget(wire));
                }
            }
            areas::await_convergence(context, wires, switches, areas, *link, up);
        }
        Change::Switch(switch, settings) => {
            let switch = &mut switches[switch.index()];
            switch.change(settings);
            if let Some(seat) = switch.seat {
                areas[seat.area as usize].change(seat.member, settings);
            }
        }
        Change::Radio(medium, radio, change) => media[medium.index()].change(context, *radio, change),
        Change::RadioGone(medium, radio) => media[medium.index()].remove_radio(context, *radio),
    }
}
