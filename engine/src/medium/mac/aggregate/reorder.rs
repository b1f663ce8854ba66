//! What a receiver does with its reorder buffers: frames are passed on in the order of their numbers.
//!
//! IEEE Std 802.11-2020, 10.25.6.6. The receiver waits for a missing frame as long as its sender has it:
//! once the sender gives it up, the wait ends at once, where a radio would send a BlockAckReq.

use crate::drop_reason::DropReason as Why;
use crate::medium::Medium;
use crate::medium::bss::cell::Course;
use crate::medium::mac::ampdu::{MOST_FRAMES, NUMBERS, Reorder};
use crate::medium::mac::exchange::lane_number;
use crate::medium::outside::Outside;
use crate::medium::radio::Radio;
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::time::Instant;

impl Radio {
    /// Numbers anew what a station has queued for another access point than `home`, which counts by itself.
    pub(in crate::medium) fn number_for(&mut self, home: RadioId) {
        if self.settings.aggregation.is_none() {
            return;
        }
        for waiting in self.contention.lanes.iter_mut().flat_map(|lane| &mut lane.queue) {
            if waiting.kind == Kind::Data && waiting.to != To::Radio(home) {
                waiting.sequence = None;
            }
        }
    }
}

impl Medium {
    /// The numbers that a receiver has, from the first one that the sender of this frame waits for.
    pub(super) fn bitmap(&self, index: usize, sending: &Sending) -> u64 {
        let Some(reorder) = self.core.radios[index].exchange.reorder.get(&(sending.from, sending.lane))
        else {
            return 0;
        };
        let known = |offset: &u8| reorder.knows((sending.window + u16::from(*offset)) % NUMBERS);
        (0..MOST_FRAMES).filter(known).fold(0, |bits, offset| bits | 1 << offset)
    }

    /// Takes a frame that its sender has numbered for a block ack, and passes on what is in order.
    pub(in crate::medium::mac) fn take_numbered(
        &mut self,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let index = ear.radio as usize;
        let key = (sending.from, sending.lane);
        let known = self.core.radios.awake(index).exchange.reorder.entry(key);
        if known.or_insert_with(|| Reorder::new(sending.window)).knows(sending.sequence) {
            self.core.radios.awake(index).counts.duplicates += 1;
            return self.pass_held(index, key, at, sending.window, outside);
        }
        let Some(frame) = sending.frame else { return };
        let course = self.course(index, sending, outside.octets(&frame));
        let queue = &mut self.core.radios.awake(sending.from as usize).contention.lanes
            [usize::from(sending.lane)]
        .queue;
        let ours = queue.iter_mut().find(|w| w.to == sending.to && w.sequence == Some(sending.sequence));
        if ours.is_some_and(|waiting| core::mem::replace(&mut waiting.arrived, true)) {
            // Its previous access point received it, too, or this radio before it was off.
            outside.copied(&frame, 1);
        }
        outside.share(&frame);
        if course == Course::Ignore {
            outside.dropped(RadioId(ear.radio), at, frame, Why::NotAssociated);
        }
        if let Some(reorder) = self.core.radios.awake(index).exchange.reorder.get_mut(&key) {
            reorder.hold(sending.sequence, (course != Course::Ignore).then_some((course, frame)));
        }
        self.pass_held(index, key, at, sending.window, outside);
    }

    /// Passes on the frames that nothing before them keeps any more.
    fn pass_held(
        &mut self,
        index: usize,
        key: (u32, u8),
        at: Instant,
        start: u16,
        outside: &mut impl Outside,
    ) {
        let next = |medium: &mut Self| {
            medium
                .core
                .radios
                .awake(index)
                .exchange
                .reorder
                .get_mut(&key)
                .and_then(|reorder| reorder.release(start))
        };
        while let Some(what) = next(self) {
            if let Some((course, frame)) = what {
                self.carry_on(index, at, course, frame, outside);
            }
        }
    }

    /// Tells a receiver which frame its sender waits for, after it is done with one.
    pub(in crate::medium::mac) fn move_window(
        &mut self,
        index: usize,
        lane: usize,
        to: To,
        now: Instant,
        outside: &mut impl Outside,
    ) {
        let To::Radio(receiver) = to else { return };
        if self.core.radios[index].exchange.numbers.is_empty() {
            return;
        }
        let key = (u32::try_from(index).unwrap_or(u32::MAX), lane_number(lane));
        if self.core.radios[receiver.index()].exchange.reorder.contains_key(&key) {
            let start = self.core.radios[index].window_start(lane, to);
            self.pass_held(receiver.index(), key, now, start, outside);
        }
    }

    /// Ends all waits for frames that a radio had to send and has dropped, or sends elsewhere.
    pub(in crate::medium) fn move_windows(&mut self, index: usize, outside: &mut impl Outside) {
        let keys: Vec<(u32, u8)> = self.core.radios[index].exchange.numbers.keys().copied().collect();
        for (receiver, lane) in keys {
            let to = To::Radio(RadioId(receiver));
            self.move_window(index, usize::from(lane), to, self.core.now, outside);
        }
    }

    /// Drops what a radio that is off has held back.
    pub(in crate::medium::mac) fn flush_reorder(&mut self, index: usize, outside: &mut impl Outside) {
        let now = self.core.now;
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        for reorder in self.core.radios.awake(index).exchange.reorder.values_mut() {
            for (_, frame) in reorder.drain() {
                outside.dropped(id, now, frame, Why::RadioOff);
            }
        }
    }
}
