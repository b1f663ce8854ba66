//! Contention: inter-frame spaces and the backoff counter.
//!
//! IEEE Std 802.11-2020, 10.3.4. A counter runs while the channel is idle by carrier sense and by
//! reservation (NAV) and the radio is in no exchange. It is not decremented slot by slot: a lane
//! stores when counting started and how many slots were left; when the channel becomes busy, the
//! whole elapsed slots are subtracted.
//!
//! A radio detects a busy channel only after the detection time of its physical layer. If a backoff
//! ends within that time, the radio sends, and collides.

use crate::medium::radio::{Lane, Radio, Stage};
use crate::time::{Instant, Span};

impl Radio {
    /// When a lane starts to count slots if the channel stays idle: after the lane's AIFS, and
    /// after a corrupted frame not before the end of EIFS.
    ///
    /// EIFS begins when the physical layer senses an idle channel, independent of the NAV, and the
    /// radio waits for the later of the two (10.3.2.3.7); after a NAV that ends later, the lane's
    /// own AIFS follows (10.3.4.2).
    pub(in crate::medium) fn counted_from(&self, lane: &Lane) -> Instant {
        let plain = self.clear_since() + lane.aifs;
        let began =
            if self.settings.as_ns3 { self.broken_at } else { self.extended.then_some(self.idle_since) };
        began.map_or(plain, |began| plain.max(began + lane.aifs + self.extension))
    }

    /// Since when access is unobstructed; may be in the future because of the NAV.
    fn clear_since(&self) -> Instant {
        self.idle_since.max(self.reserved_until).max(self.free_since)
    }

    /// True if the radio has not yet detected a reason to stop its counters.
    fn seems_free(&self, now: Instant) -> bool {
        self.counting || (!self.stopped_self && !self.engaged() && now < self.stopped + self.phy.detect)
    }

    /// Starts or stops the counters if the state of the channel or of the radio has changed.
    pub(in crate::medium) fn recount(&mut self, now: Instant) {
        let own = self.engaged() || self.held || !self.in_window;
        let free = !self.busy && !own;
        if free == self.counting {
            return;
        }
        if free {
            self.start(now);
        } else {
            self.counting = false;
            self.stopped = now;
            self.stopped_self = own;
            self.extended = false;
            self.stop();
        }
        self.set_access();
    }

    fn start(&mut self, now: Instant) {
        self.counting = true;
        // A signal that ends before its detection stops only the backoffs that began meanwhile.
        let unnoticed = !self.stopped_self && now < self.stopped + self.phy.detect;
        let until = self.noticed();
        for index in 0..self.lanes.len() {
            let from = self.counted_from(&self.lanes[index]);
            let slot = self.slot;
            let lane = &mut self.lanes[index];
            if unnoticed && lane.from < Instant::NEVER {
                continue;
            }
            if lane.backing_off {
                lane.take_off(until, slot);
            }
            lane.from = from;
        }
    }

    /// When the radio detects, or detected, that its counters must stop.
    fn noticed(&self) -> Instant {
        self.stopped + if self.stopped_self { Span::ZERO } else { self.phy.detect }
    }

    /// Backoffs that ended without a frame to send are finished.
    fn stop(&mut self) {
        let until = self.noticed();
        for lane in &mut self.lanes {
            if lane.backing_off && !lane.wants(self.away) && lane.due(self.slot) <= until {
                lane.backing_off = false;
            }
        }
    }

    /// Restarts counting after a change of the reservation.
    pub(in crate::medium) fn restart(&mut self, now: Instant) {
        if self.counting {
            self.stopped = now;
            self.stopped_self = true;
            self.start(now);
            self.set_access();
        }
    }

    /// Computes when the next backoff with a frame to send ends.
    pub(in crate::medium) fn set_access(&mut self) {
        let slot = self.slot;
        let away = self.away;
        let waiting = |lane: &&Lane| lane.contends(away);
        let first = self.lanes.iter().filter(waiting).map(|lane| lane.due(slot)).min();
        let first = first.unwrap_or(Instant::NEVER);
        let reachable = self.counting
            || (!self.stopped_self && self.stage == Stage::Free && first < self.stopped + self.phy.detect);
        self.access_at = if reachable { first } else { Instant::NEVER };
    }

    /// Restarts contention in every lane: data was held during a scan.
    pub(in crate::medium) fn resume(&mut self, now: Instant) {
        for index in 0..self.lanes.len() {
            if !self.lanes[index].queue.is_empty() {
                self.back_off(index);
                let lane = &mut self.lanes[index];
                lane.from = lane.from.max(now);
            }
        }
        self.set_access();
    }

    /// Draws a backoff from the lane's contention window.
    pub(in crate::medium) fn back_off(&mut self, lane: usize) {
        let window = u64::from(self.lanes[lane].cw) + 1;
        let slots = u32::try_from(self.random.below(window)).unwrap_or(0);
        let from = if self.counting { self.counted_from(&self.lanes[lane]) } else { Instant::NEVER };
        let lane = &mut self.lanes[lane];
        (lane.backing_off, lane.slots, lane.from) = (true, slots, from);
    }

    /// Handles the first frame of an empty lane at `now`. True if it may be sent at once: the
    /// channel has been idle for the AIFS, and no backoff is in progress.
    pub(in crate::medium) fn may_send(&mut self, lane: usize, now: Instant) -> bool {
        let free = self.seems_free(now);
        if self.lanes[lane].backing_off {
            if !(free && self.lanes[lane].due(self.slot) <= now) {
                self.set_access();
                return false;
            }
            self.lanes[lane].backing_off = false;
        }
        if free && self.counted_from(&self.lanes[lane]) <= now {
            return true;
        }
        self.back_off(lane);
        if self.settings.as_ns3 && self.answer.is_some() {
            self.lanes[lane].slots = 0;
        }
        self.set_access();
        false
    }
}

impl Lane {
    /// Doubles the window after a failure as ns-3.44 does: it is reset after one failure more than
    /// the retry limit, independent of frames.
    pub(in crate::medium) fn widen_in_cycle(&mut self, limit: u8) {
        if self.failures == limit {
            (self.failures, self.cw) = (0, self.cw_min);
        } else {
            self.failures += 1;
            self.widen();
        }
    }

    /// Subtracts the whole slots before `until`.
    fn take_off(&mut self, until: Instant, slot: Span) {
        let passed = until.since(self.from).nanos() / slot.nanos();
        self.slots = self.slots.saturating_sub(u32::try_from(passed).unwrap_or(u32::MAX));
    }

    /// Doubles the contention window after a failure.
    pub(in crate::medium) fn widen(&mut self) {
        self.cw = (self.cw.saturating_mul(2).saturating_add(1)).min(self.cw_max);
    }
}
