//! Scanning: a radio leaves its channel and listens on other channels, one after the other.
//!
//! During a scan it receives nothing on its own channel, and its data is held (IEEE Std
//! 802.11-2020, 11.1.4). A passive scan waits for beacons, an active scan sends probe requests. A
//! station scans for its network; any radio scans when its node requests it.

use crate::calendar::Class;
use crate::medium::outside::Outside;
use crate::medium::radio::Radio;
use crate::medium::radio::scan_state::{Order, Scan, Scanned, Sighting};
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::{Event, Medium};
use crate::time::Span;

/// Time in which every access point with the usual beacon interval sends a beacon: 100 TU.
const BEACONS: Span = Span::from_micros(102_400);

impl Medium {
    /// Result of the last scan that the radio's node requested.
    #[must_use]
    pub fn scanned(&self, radio: RadioId) -> &Scanned {
        &self.core.radios[radio.index()].scanned
    }

    /// Requests a scan for a node. A scan that is in progress satisfies the request, too.
    pub(super) fn survey(&mut self, index: usize, order: Order) {
        let radio = self.core.radios.awake(index);
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

    /// Wakes a radio after `span`, unless another step of its scan comes first.
    pub(super) fn timer(&mut self, index: usize, span: Span) {
        let radio = self.core.radios.awake(index);
        radio.step = radio.step.wrapping_add(1);
        let (number, step) = (u32::try_from(index).unwrap_or(u32::MAX), radio.step);
        let event = Event::Search { radio: number, step };
        self.core.calendar.push(self.core.now + span, Class::Timer, number, event);
    }

    /// Handles the timer for the next step of a scan.
    pub(super) fn search(&mut self, index: usize, step: u32, outside: &mut impl Outside) {
        if self.core.radios[index].step != step {
            return;
        }
        self.wake(index);
        let radio = self.core.radios.awake(index);
        if radio.engaged() {
            // Do not start during an exchange.
            return self.timer(index, Span::from_millis(1));
        }
        if self.leaves(index) {
            self.break_off(index);
            return self.start_over(index, outside);
        }
        if let Some(scan) = &self.core.radios[index].scan {
            let left = self.left_to_listen(index, scan.order.dwell);
            if left > Span::ZERO {
                return self.timer(index, left);
            }
            let whole =
                if scan.order.active { scan.order.ssid.is_empty() } else { scan.order.dwell >= BEACONS };
            if let Some(channel) = scan.channel().filter(|_| whole) {
                self.step_done(index, channel);
            }
        }
        let radio = self.core.radios.awake(index);
        if let Some(scan) = &mut radio.scan {
            scan.at += 1;
            return self.listen_on(index, outside);
        }
        match radio.ordered.take() {
            Some(order) => self.look(index, order, outside),
            None => self.roam(index, outside),
        }
    }

    /// Starts a scan.
    pub(super) fn look(&mut self, index: usize, order: Order, outside: &mut impl Outside) {
        let home = self.core.reach.places[index].channel;
        let radio = self.core.radios.awake(index);
        radio.away = true;
        radio.scan = Some(Scan { order, at: 0, home, found: Vec::new() });
        self.listen_on(index, outside);
    }

    /// Tunes to the next channel, or ends the scan.
    fn listen_on(&mut self, index: usize, outside: &mut impl Outside) {
        // A probe request that has not been sent is useless on another channel.
        self.withdraw(index, Kind::ProbeRequest);
        while let Some(found) = self.known_step(index) {
            let Some(scan) = &mut self.core.radios.awake(index).scan else { return };
            found.into_iter().for_each(|sighting| scan.sees(sighting));
            scan.at += 1;
        }
        let Some(scan) = &self.core.radios[index].scan else { return };
        let Some(channel) = scan.channel() else { return self.looked(index, outside) };
        let (dwell, active) = (scan.order.dwell, scan.order.active);
        self.retune(index, channel);
        self.begin_listening(index);
        self.timer(index, dwell);
        if active {
            self.manage(index, Kind::ProbeRequest, To::Group, outside);
        }
    }

    /// What the radio's card knows about the channel of a step of a node's scan.
    fn known_step(&mut self, index: usize) -> Option<Vec<Sighting>> {
        let scan = self.core.radios[index].scan.as_ref().filter(|scan| scan.order.asked)?;
        let (channel, ssid) = (scan.channel()?, scan.order.ssid.clone());
        self.answer_step(index, channel, &ssid)
    }

    /// Ends a scan of all channels.
    fn looked(&mut self, index: usize, outside: &mut impl Outside) {
        let Some(scan) = self.core.radios.awake(index).scan.take() else { return };
        if !scan.order.asked {
            return self.decide(index, &scan.found, outside);
        }
        self.core.radios.awake(index).report(scan.found);
        self.retune(index, scan.home);
        self.come_back(index);
        self.go_on(index);
    }

    /// Ends a node's scan early, with the results so far.
    pub(super) fn break_off(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
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

    /// Returns a radio to its own channel and resumes its data.
    pub(super) fn come_back(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
        radio.away = false;
        radio.resume(self.core.now);
        self.core.arm(index);
    }

    /// Removes queued frames of this kind, except one in transmission.
    pub(super) fn withdraw(&mut self, index: usize, kind: Kind) {
        let radio = self.core.radios.awake(index);
        let under_way = usize::from(radio.engaged());
        let queue = &mut radio.contention.lanes[0].queue;
        let before = queue.len();
        let mut place = 0;
        queue.retain(|waiting| {
            place += 1;
            place <= under_way || waiting.kind != kind
        });
        radio.waiting -= u32::try_from(before - queue.len()).unwrap_or(0);
        radio.set_access();
        self.core.arm(index);
    }
}

impl Radio {
    /// Stores the result of a node's scan.
    fn report(&mut self, found: Vec<Sighting>) {
        self.scanned = Scanned { times: self.scanned.times + 1, found };
    }
}
