//! Looking around: a radio leaves its channel and listens on others, one after the other.
//!
//! Meanwhile it hears nothing of its own channel, and its data waits (IEEE Std 802.11-2020, 11.1.4).
//! A passive look waits for beacons, an active one asks with a probe request. A station looks
//! around for its network; any radio does when its node asks it to.

use super::phy::Channel;
use super::radio::{Kind, Radio, RadioId, To};
use super::{Event, Medium, Outside};
use crate::calendar::Class;
use crate::time::Span;

/// Where to look, and how.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) channels: Vec<Channel>,
    /// Time on each channel.
    pub(super) dwell: Span,
    /// Ask with probe requests.
    pub(super) active: bool,
    /// Name of the network to ask for; empty for all.
    pub(super) ssid: String,
    /// The node wants to know; else a station looks for its network.
    pub(super) asked: bool,
}

/// Somebody who says that a network is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// Who.
    pub radio: RadioId,
    /// Name of the network.
    pub ssid: String,
    /// An access point; else a member of an independent cell.
    pub access_point: bool,
    /// Channel on which it was heard.
    pub channel: Channel,
    /// Strongest of its frames, dBm, before fading.
    pub signal_dbm: f64,
}

/// What a node's radio found when it last looked around.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scanned {
    /// How often it has come back from looking around for its node.
    pub times: u64,
    /// Whom it heard, in the order of their first frames.
    pub found: Vec<Sighting>,
}

/// A look around that is under way.
#[derive(Debug)]
pub(super) struct Scan {
    order: Order,
    at: usize,
    /// Where it is tuned to afterwards.
    pub(super) home: Channel,
    found: Vec<Sighting>,
}

impl Scan {
    /// The name that it asks for.
    pub(super) fn ssid(&self) -> &str {
        &self.order.ssid
    }

    /// Somebody was heard.
    pub(super) fn sees(&mut self, sighting: Sighting) {
        match self.found.iter_mut().find(|seen| seen.radio == sighting.radio) {
            Some(seen) => seen.signal_dbm = seen.signal_dbm.max(sighting.signal_dbm),
            None => self.found.push(sighting),
        }
    }
}

impl Medium {
    /// What a radio found when its node last had it look around.
    #[must_use]
    pub fn scanned(&self, radio: RadioId) -> &Scanned {
        &self.radios[radio.index()].scanned
    }

    /// A node wants its radio to look around. If it does so already, that answers this wish, too.
    pub(super) fn survey(&mut self, index: usize, order: Order) {
        let radio = &mut self.radios[index];
        if !radio.switched_on {
            return radio.report(Vec::new());
        }
        if radio.ordered.is_none() && radio.scan.as_ref().is_none_or(|scan| !scan.order.asked) {
            radio.ordered = Some(order);
        }
        if radio.scan.is_none() && !self.is_asking(index) {
            self.timer(index, Span::ZERO);
        }
    }

    /// Wakes a radio after `span`, unless another step of its search comes before.
    pub(super) fn timer(&mut self, index: usize, span: Span) {
        let radio = &mut self.radios[index];
        radio.step = radio.step.wrapping_add(1);
        let (number, step) = (u32::try_from(index).unwrap_or(u32::MAX), radio.step);
        let event = Event::Search { radio: number, step };
        self.calendar.push(self.now + span, Class::Timer, number, event);
    }

    /// Time for the next step of a search.
    pub(super) fn search(&mut self, index: usize, step: u32, outside: &mut impl Outside) {
        if self.radios[index].step != step {
            return;
        }
        self.wake(index);
        let radio = &mut self.radios[index];
        if radio.engaged() {
            // Not in the middle of an exchange.
            return self.timer(index, Span::from_millis(1));
        }
        if self.leaves(index) {
            self.break_off(index);
            return self.start_over(index, outside);
        }
        let radio = &mut self.radios[index];
        if let Some(scan) = &mut radio.scan {
            scan.at += 1;
            return self.listen_on(index, outside);
        }
        match radio.ordered.take() {
            Some(order) => self.look(index, order, outside),
            None => self.roam(index, outside),
        }
    }

    /// A radio begins to look around.
    pub(super) fn look(&mut self, index: usize, order: Order, outside: &mut impl Outside) {
        let home = self.reach.places[index].channel;
        let radio = &mut self.radios[index];
        radio.away = true;
        radio.scan = Some(Scan { order, at: 0, home, found: Vec::new() });
        self.listen_on(index, outside);
    }

    /// Listens on the next channel, or comes back.
    fn listen_on(&mut self, index: usize, outside: &mut impl Outside) {
        // A question that has not found its way out is of no use on another channel.
        self.withdraw(index, Kind::ProbeRequest);
        let Some(scan) = &self.radios[index].scan else { return };
        let Some(&channel) = scan.order.channels.get(scan.at) else { return self.looked(index, outside) };
        let (dwell, active) = (scan.order.dwell, scan.order.active);
        self.retune(index, channel);
        self.timer(index, dwell);
        if active {
            self.manage(index, Kind::ProbeRequest, To::Group, outside);
        }
    }

    /// All channels have been listened on.
    fn looked(&mut self, index: usize, outside: &mut impl Outside) {
        let Some(scan) = self.radios[index].scan.take() else { return };
        if !scan.order.asked {
            return self.decide(index, &scan.found, outside);
        }
        self.radios[index].report(scan.found);
        self.retune(index, scan.home);
        self.come_back(index);
        self.go_on(index);
    }

    /// The node's wish to look around ends with what was found so far.
    pub(super) fn break_off(&mut self, index: usize) {
        let radio = &mut self.radios[index];
        let waited = radio.ordered.take().is_some();
        match radio.scan.take_if(|scan| scan.order.asked) {
            Some(scan) => {
                radio.report(scan.found);
                self.retune(index, scan.home);
                self.come_back(index);
                self.go_on(index);
            }
            None if waited => radio.report(Vec::new()),
            None => {}
        }
    }

    /// A radio is on its own channel again, and what waits may go.
    pub(super) fn come_back(&mut self, index: usize) {
        let radio = &mut self.radios[index];
        radio.away = false;
        radio.resume(self.now);
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Takes back frames of this kind that wait, unless one is under way.
    pub(super) fn withdraw(&mut self, index: usize, kind: Kind) {
        let radio = &mut self.radios[index];
        let under_way = usize::from(radio.engaged());
        let queue = &mut radio.lanes[0].queue;
        let before = queue.len();
        let mut place = 0;
        queue.retain(|waiting| {
            place += 1;
            place <= under_way || waiting.kind != kind
        });
        radio.waiting -= u32::try_from(before - queue.len()).unwrap_or(0);
        radio.set_access();
        self.timers.set(index, self.radios[index].next_at());
    }
}

impl Radio {
    /// It has come back from looking around for its node.
    fn report(&mut self, found: Vec<Sighting>) {
        self.scanned = Scanned { times: self.scanned.times + 1, found };
    }
}
