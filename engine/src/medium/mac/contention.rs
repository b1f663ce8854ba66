//! Contention: inter-frame spaces and the backoff counter.
//!
//! IEEE Std 802.11-2020, 10.3.4 and 10.23.2.4. A counter runs while the channel is idle by carrier
//! sense and by reservation (NAV) and the radio is in no exchange. It is not decremented slot by
//! slot: a lane stores when counting started and how many slots were left; when the channel becomes
//! busy, the elapsed slots are subtracted. With DCF these are the whole idle slots after DIFS. With
//! EDCA a lane acts at each slot boundary, and the first one is the end of AIFS: there it decrements
//! its counter, or sends if the counter is 0. So a counter that is not interrupted ends at the same
//! instant in both, and each busy period takes one slot more off with EDCA.
//!
//! A radio detects a busy channel only after the detection time of its physical layer. If a backoff
//! ends within that time, the radio sends, and collides.

use crate::medium::cluster::gap::passed;
use crate::medium::mac::lane::{Countdown, Lane, Stage};
use crate::medium::radio::Radio;
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
        let began = if self.settings.as_ns3 {
            self.contention.broken_at
        } else {
            self.contention.extended.then_some(self.idle_since)
        };
        began.map_or(plain, |began| plain.max(began + lane.aifs + self.layer.extension))
    }

    /// Since when access is unobstructed; may be in the future because of the NAV.
    fn clear_since(&self) -> Instant {
        self.idle_since.max(self.contention.reserved_until).max(self.contention.free_since)
    }

    /// True if the radio has not yet detected a reason to stop its counters.
    fn seems_free(&self, now: Instant) -> bool {
        self.contention.counting
            || (!self.contention.stopped_self
                && !self.engaged()
                && now < self.contention.stopped + self.layer.phy.detect)
    }

    /// Starts or stops the counters if the state of the channel or of the radio has changed.
    pub(in crate::medium) fn recount(&mut self, now: Instant) {
        let own = self.engaged() || self.hold.held || !self.hold.in_window;
        let free = !self.busy && !own;
        if free == self.contention.counting {
            return;
        }
        if free {
            self.start(now);
        } else {
            self.contention.counting = false;
            self.contention.stopped = now;
            self.contention.stopped_self = own;
            self.contention.extended = false;
            self.stop();
        }
        self.set_access();
    }

    fn start(&mut self, now: Instant) {
        self.contention.counting = true;
        // A signal that ends before its detection stops only the backoffs that began meanwhile.
        let unnoticed =
            !self.contention.stopped_self && now < self.contention.stopped + self.layer.phy.detect;
        let until = self.noticed();
        for index in 0..self.contention.lanes.len() {
            let from = self.counted_from(&self.contention.lanes[index]);
            let slot = self.layer.slot;
            let lane = &mut self.contention.lanes[index];
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
        self.contention.stopped
            + if self.contention.stopped_self { Span::ZERO } else { self.layer.phy.detect }
    }

    /// Backoffs that ended without a frame to send are finished.
    fn stop(&mut self) {
        let until = self.noticed();
        for lane in &mut self.contention.lanes {
            if lane.backing_off && !lane.wants(self.away) && lane.is_over(until, self.layer.slot) {
                lane.backing_off = false;
            }
        }
    }

    /// Restarts counting after a change of the reservation.
    pub(in crate::medium) fn restart(&mut self, now: Instant) {
        if self.contention.counting {
            self.contention.stopped = now;
            self.contention.stopped_self = true;
            self.start(now);
            self.set_access();
        }
    }

    /// Computes when the next backoff with a frame to send ends.
    pub(in crate::medium) fn set_access(&mut self) {
        let slot = self.layer.slot;
        let away = self.away;
        let waiting = |lane: &&Lane| lane.contends(away);
        let first = self.contention.lanes.iter().filter(waiting).map(|lane| lane.due(slot)).min();
        let first = first.unwrap_or(Instant::NEVER);
        let reachable = self.contention.counting
            || (!self.contention.stopped_self
                && self.exchange.stage == Stage::Free
                && first < self.contention.stopped + self.layer.phy.detect);
        self.contention.access_at = if reachable { first } else { Instant::NEVER };
    }

    /// Restarts contention in every lane: data was held during a scan.
    pub(in crate::medium) fn resume(&mut self, now: Instant) {
        for index in 0..self.contention.lanes.len() {
            if !self.contention.lanes[index].queue.is_empty() {
                self.back_off(index);
                let lane = &mut self.contention.lanes[index];
                lane.from = lane.from.max(now);
            }
        }
        self.set_access();
    }

    /// Draws a backoff from the lane's contention window.
    pub(in crate::medium) fn back_off(&mut self, lane: usize) {
        let window = u64::from(self.contention.lanes[lane].cw) + 1;
        let slots = u32::try_from(self.random.below(window)).unwrap_or(0);
        let from = if self.contention.counting {
            self.counted_from(&self.contention.lanes[lane])
        } else {
            Instant::NEVER
        };
        let lane = &mut self.contention.lanes[lane];
        (lane.backing_off, lane.slots, lane.from) = (true, slots, from);
    }

    /// Handles the first frame of an empty lane at `now`. True if it may be sent at once: the
    /// channel has been idle for the AIFS, and no backoff is in progress.
    pub(in crate::medium) fn may_send(&mut self, lane: usize, now: Instant) -> bool {
        let free = self.seems_free(now);
        if self.contention.lanes[lane].backing_off {
            if !(free && self.contention.lanes[lane].due(self.layer.slot) <= now) {
                self.set_access();
                return false;
            }
            self.contention.lanes[lane].backing_off = false;
        }
        if free && self.counted_from(&self.contention.lanes[lane]) <= now {
            return true;
        }
        self.back_off(lane);
        if self.settings.as_ns3 && self.exchange.answer.is_some() {
            self.contention.lanes[lane].slots = 0;
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

    /// The next instant after `now` at which a slot can be counted.
    pub(super) fn next_boundary(&self, now: Instant, slot: Span) -> Instant {
        match self.countdown {
            Countdown::AfterSlots => now,
            Countdown::AtBoundaries => now + slot,
        }
    }

    /// Slots counted up to `until`; `None` if counting had not begun.
    fn counted(&self, until: Instant, slot: Span) -> Option<u32> {
        let whole = passed(self.from, until, slot)?;
        let boundaries = whole + u64::from(self.countdown == Countdown::AtBoundaries);
        Some(u32::try_from(boundaries).unwrap_or(u32::MAX))
    }

    /// Subtracts the slots counted up to `until`.
    fn take_off(&mut self, until: Instant, slot: Span) {
        self.slots = self.slots.saturating_sub(self.counted(until, slot).unwrap_or(0));
    }

    /// True if the counter has reached 0 by `until`.
    fn is_over(&self, until: Instant, slot: Span) -> bool {
        self.counted(until, slot).is_some_and(|counted| counted >= self.slots)
            || (self.slots == 0 && self.countdown == Countdown::AtBoundaries)
    }

    /// Doubles the contention window after a failure.
    pub(in crate::medium) fn widen(&mut self) {
        self.cw = (self.cw.saturating_mul(2).saturating_add(1)).min(self.cw_max);
    }
}
