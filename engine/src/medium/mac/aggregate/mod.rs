//! Aggregation: several MPDUs in one PPDU (A-MPDU), and the block acknowledgment that answers it.
//!
//! IEEE Std 802.11-2020, 9.7 (format), 10.12 (operation), 10.25 (block ack), for two radios of 802.11n
//! with access categories that both have [`RadioSettings::aggregation`]: that stands for the agreement.
//! When an access category wins the channel, the frames that wait in it for the receiver of its first frame
//! are sent together, up to these limits:
//!
//! | limit | value | source |
//! | --- | --- | --- |
//! | frames | the setting, 1 to 64 | 64 sequence numbers from the oldest unacknowledged one, 10.25.6 |
//! | octets | 65 535 = 2^(13 + 3) - 1 | Maximum A-MPDU Length Exponent 3, 9.4.2.55.3 |
//! | time | 5.484 ms | L-SIG counts at most 4095 octets at 6 Mbit/s, 19.3.9.3.5 |
//! | time | the TXOP limit, if there is one, for the whole exchange | 10.23.2.9 |
//!
//! The first limit of time is 20 us + 4 us * ceil((16 + 8 * 4095 + 6) / 24); the 10 ms of the greenfield
//! format do not apply. N MPDUs of n octets each, check sequence included, are an A-MPDU of
//! (N - 1) * 4 * ceil((4 + n) / 4) + 4 + n octets: each has a delimiter of 4 octets, and padding to a
//! multiple of 4 unless it is the last. MPDUs may start as closely as they fit: the Minimum MPDU Start
//! Spacing is 0, no restriction (9.4.2.55.3).
//!
//! The errors of an MPDU are those of its octets and of its delimiter at the interference that they met. A
//! preamble or header with errors loses all. The receiver answers with a compressed block ack of 32 octets
//! if one MPDU arrived. An MPDU alone is an ordinary frame with an ordinary acknowledgment.
//!
//! Each MPDU has its own retries: `short_retries`, or `long_retries` where the A-MPDU follows a
//! request-to-send, as for frames of their own.
//!
//! `ampdu.rs` beside it has the limits and the reorder buffer. `arrive` decides which MPDUs a listener has,
//! and `reorder` passes them on in the order of their numbers. The agreement takes no airtime, and lasts.

mod arrive;
mod reorder;

use crate::drop_reason::DropReason as Why;
use crate::medium::Medium;
use crate::medium::mac::ampdu::{
    BLOCK_ACK_OCTETS, DELIMITER, LONGEST, MOST_FRAMES, MOST_OCTETS, NUMBERS, Part, ahead, is_listed,
};
use crate::medium::mac::exchange::{lane_number, peer, radio_back_off};
use crate::medium::mac::lane::Stage;
use crate::medium::mac::waiting::Waiting;
use crate::medium::outside::Outside;
use crate::medium::radio::Radio;
use crate::medium::signal::Sending;
use crate::medium::types::{Kind, RadioId, To};
use crate::time::{Instant, Span};

/// Octets of the block ack, or of the acknowledgment or clear-to-send.
pub(super) fn answer_octets(kind: Kind) -> u32 {
    if kind == Kind::BlockAck { BLOCK_ACK_OCTETS } else { crate::medium::phy::ACK_OCTETS }
}

impl Radio {
    /// True if it takes part in aggregation.
    fn aggregates(&self) -> bool {
        self.settings.aggregation.is_some()
            && self.layer.phy.is_ht()
            && self.hold.card.is_none()
            && self.hold.policer.is_none()
            && self.hold.share.is_none()
            && self.hold.windows.is_none()
            && self.hold.watched.is_none()
    }

    /// The number of the oldest frame of a lane to this receiver that has one.
    fn oldest(&self, lane: usize, to: To) -> Option<u16> {
        let ours = |waiting: &&Waiting| waiting.to == to;
        self.contention.lanes[lane].queue.iter().filter(ours).find_map(|waiting| waiting.sequence)
    }

    /// The next number for a receiver in a lane.
    pub(super) fn next_number(&mut self, lane: usize, to: To) -> u16 {
        let next = self.exchange.numbers.entry((peer(to), lane_number(lane))).or_default();
        core::mem::replace(next, (*next + 1) % NUMBERS)
    }

    /// From where on the receiver waits for frames: the oldest one that is not acknowledged.
    pub(super) fn window_start(&self, lane: usize, to: To) -> u16 {
        let next = || self.exchange.numbers.get(&(peer(to), lane_number(lane))).copied().unwrap_or(0);
        self.oldest(lane, to).unwrap_or_else(next)
    }

    /// Octets of the A-MPDU under way in a lane; `None` if its first frame is sent alone.
    pub(super) fn aggregate_octets(&self, lane: usize) -> Option<u32> {
        let queue = &self.contention.lanes[lane].queue;
        if !queue.front()?.joined {
            return None;
        }
        let joined = queue.iter().filter(|waiting| waiting.joined);
        Some(joined.fold(0, |octets, waiting| self.with_one_more(octets, waiting)))
    }

    /// Octets of an A-MPDU of so many with another MPDU at its end.
    fn with_one_more(&self, octets: u32, waiting: &Waiting) -> u32 {
        octets.next_multiple_of(4) + DELIMITER + self.piece(waiting).0
    }

    /// Ends the A-MPDU under way in a lane, whose frames wait again.
    pub(super) fn part_frames(&mut self, lane: usize) {
        let queue = &mut self.contention.lanes[lane].queue;
        if queue.front().is_some_and(|first| first.joined) {
            queue.iter_mut().for_each(|waiting| waiting.joined = false);
        }
    }

    /// Time from the end of an A-MPDU to the end of its block ack.
    pub(super) fn block_answer_time(&self, rate: u8) -> Span {
        let answer = self.layer.phy.response(rate, self.layer.basic);
        self.layer.phy.sifs + self.airtime(answer, BLOCK_ACK_OCTETS)
    }

    /// Marks the frames of a lane that are sent together with its first one, `left` being the rest of the
    /// transmission opportunity; none if it would be alone.
    fn join_frames(&mut self, lane: usize, rate: u8, left: Option<Span>) {
        let first = &self.contention.lanes[lane].queue[0];
        let to = first.to;
        let start = self.window_start(lane, to);
        let clear = self.clear_time(self.request_rate(rate));
        let mut next = self.exchange.numbers.get(&(peer(to), lane_number(lane))).copied().unwrap_or(0);
        let most = usize::from(self.settings.aggregation.unwrap_or(1).min(MOST_FRAMES));
        let (mut count, mut octets) = (0, 0_u32);
        for at in 0..self.contention.lanes[lane].queue.len() {
            let waiting = &self.contention.lanes[lane].queue[at];
            if waiting.to != to || waiting.kind != Kind::Data || waiting.mpdu.is_some() {
                continue;
            }
            let number = waiting.sequence.unwrap_or(next);
            let whole = self.with_one_more(octets, waiting);
            let airtime = self.airtime(rate, whole);
            let before = if self.announces(waiting, whole) { clear } else { Span::ZERO };
            let late = left.is_some_and(|left| before + airtime + self.block_answer_time(rate) > left);
            let wide = ahead(number, start) >= u16::from(MOST_FRAMES);
            if count == most || whole > MOST_OCTETS || airtime > LONGEST || late || wide {
                break;
            }
            if self.contention.lanes[lane].queue[at].sequence.is_none() {
                next = (next + 1) % NUMBERS;
            }
            self.contention.lanes[lane].queue[at].joined = true;
            (count, octets) = (count + 1, whole);
        }
        if count < 2 {
            self.part_frames(lane);
        }
    }
}

impl Medium {
    /// True if a radio numbers its frames to this receiver for a block ack.
    pub(super) fn agrees(&self, index: usize, to: To) -> bool {
        let To::Radio(other) = to else { return false };
        self.core.radios[index].aggregates() && self.core.radios[other.index()].aggregates()
    }

    /// Joins the frames that a lane sends now, unless its first one is sent alone. Returns the rate if it
    /// was chosen for that.
    pub(super) fn aggregate(&mut self, index: usize, lane: usize, now: Instant) -> Option<u8> {
        let radio = &self.core.radios[index];
        let first = &radio.contention.lanes[lane].queue[0];
        let to = first.to;
        if first.kind != Kind::Data || first.mpdu.is_some() || !self.agrees(index, to) {
            return None;
        }
        let radio = self.core.radios.awake(index);
        // The retry chain is that of A-MPDUs: most begin with a frame that is sent again.
        let rate =
            radio.rate.choose(peer(to), radio.contention.lanes[lane].unanswered, now, &mut radio.random);
        if radio.layer.phy.rates[usize::from(rate)].ht.is_some() && !radio.rate.samples(peer(to)) {
            let left = (radio.contention.lanes[lane].txop > Span::ZERO)
                .then(|| radio.exchange.txop_until.since(now));
            radio.join_frames(lane, rate, left);
        }
        Some(rate)
    }

    /// Sends the A-MPDU that a lane has joined, at the rate that was chosen for it.
    pub(super) fn send_aggregate(&mut self, index: usize, lane: usize, now: Instant, rate: u8) {
        let mut parts = self.air.take_parts();
        let radio = self.core.radios.awake(index);
        let to = radio.contention.lanes[lane].queue[0].to;
        let bits_per_second = radio.layer.phy.rates[usize::from(rate)].bits_per_second;
        let mut octets = 0_u32;
        for at in 0..radio.contention.lanes[lane].queue.len() {
            if !radio.contention.lanes[lane].queue[at].joined {
                continue;
            }
            let sequence = match radio.contention.lanes[lane].queue[at].sequence {
                Some(sequence) => sequence,
                None => radio.next_number(lane, to),
            };
            let own = radio.piece(&radio.contention.lanes[lane].queue[at]).0;
            let waiting = &mut radio.contention.lanes[lane].queue[at];
            let start = octets.next_multiple_of(4);
            parts.push(Part {
                sequence,
                at: start,
                octets: own,
                body: waiting.body,
                retry: waiting.repeats,
                frame: waiting.frame,
                whole: false,
            });
            octets = start + DELIMITER + own;
            (waiting.sequence, waiting.rate) = (Some(sequence), Some(rate));
            waiting.tries += 1;
            radio.counts.sent += 1;
            radio.counts.expected += 1;
            radio.peers.entry(peer(to)).or_default().attempt(bits_per_second);
        }
        let sending = Sending {
            lane: lane_number(lane),
            parts,
            window: radio.window_start(lane, to),
            ..Sending::control(index, Kind::Data, to, rate, octets, radio.block_answer_time(rate))
        };
        self.begin(index, Stage::Sending(lane_number(lane)), now, sending);
    }

    /// Handles the end of an A-MPDU with its block ack, first number and bits, or none if it is missing.
    ///
    /// The window starts anew unless the answer is missing.
    pub(super) fn block_answered(
        &mut self,
        index: usize,
        now: Instant,
        answer: Option<(u16, u64)>,
        outside: &mut impl Outside,
    ) {
        let radio = self.core.radios.awake(index);
        let Stage::Awaiting(number, ..) = radio.exchange.stage else { return };
        let lane = usize::from(number);
        let to = radio.contention.lanes[lane].queue[0].to;
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        let asked = radio.settings.rts_octets.zip(radio.aggregate_octets(lane));
        let asked = asked.is_some_and(|(limit, octets)| octets > limit);
        let (mut at, mut finished, mut given_up) = (0, 0_u32, false);
        while at < self.core.radios[index].contention.lanes[lane].queue.len() {
            let radio = self.core.radios.awake(index);
            let waiting = &mut radio.contention.lanes[lane].queue[at];
            if !core::mem::replace(&mut waiting.joined, false) {
                at += 1;
                continue;
            }
            let listed = answer.zip(waiting.sequence);
            let arrived = listed.is_some_and(|((start, bits), number)| is_listed(number, start, bits));
            if let Some(rate) = waiting.rate {
                radio.rate.report(peer(to), rate, waiting.tries, arrived, now);
            }
            if !arrived {
                waiting.repeats = true;
                // A clear-to-send starts the count of short tries anew, as for frames of their own.
                let (tries, limit) = match asked {
                    true => (&mut waiting.long_tries, radio.settings.long_retries),
                    false => (&mut waiting.short_tries, radio.settings.short_retries),
                };
                *tries = tries.saturating_add(1);
                let spent = *tries >= limit;
                radio.counts.unanswered += 1;
                radio.peers.entry(peer(to)).or_default().unanswered += 1;
                if !spent {
                    at += 1;
                    continue;
                }
                given_up = true;
                radio.counts.given_up += 1;
            }
            let Some(done) = radio.contention.lanes[lane].queue.remove(at) else { break };
            radio.waiting -= 1;
            finished += 1;
            let Some(frame) = done.frame else { continue };
            if arrived || done.arrived {
                outside.release(frame);
            } else {
                let why = if done.reached { Why::RetryLimit } else { Why::OutOfRange };
                outside.dropped(id, now, frame, why);
            }
        }
        let radio = self.core.radios.awake(index);
        if answer.is_some() || given_up {
            radio.contention.lanes[lane].cw = radio.contention.lanes[lane].cw_min;
            radio.contention.lanes[lane].unanswered = 0;
        } else {
            radio.contention.lanes[lane].widen();
            radio.contention.lanes[lane].unanswered += 1;
        }
        self.move_window(index, lane, to, now, outside);
        radio_back_off(self.core.radios.awake(index), lane);
        self.release(index, now);
        for _ in 0..finished {
            outside.finished(id, now);
        }
    }
}
