//! Recovery: failed attempts, internal collisions, retry limits.
//!
//! IEEE Std 802.11-2020, 10.3.4.4 (DCF), 10.23.2.4 and 10.23.2.12.1 (EDCA). An attempt fails if its
//! response is missing, and with EDCA also if another access category of the same radio, of higher
//! priority, sends at the same slot boundary: the frame is not sent, but the attempt counts to its
//! retry limit, and the window doubles. At the limit the frame is given up, and the window starts
//! anew.

use crate::drop_reason::DropReason as Why;
use crate::medium::Medium;
use crate::medium::mac::exchange::{peer, radio_back_off};
use crate::medium::mac::lane::Stage;
use crate::medium::outside::Outside;
use crate::medium::radio::Radio;
use crate::medium::types::{Kind, RadioId, To};
use crate::time::Instant;

/// An attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Failure {
    /// The clear-to-send is missing.
    Request,
    /// The acknowledgment is missing.
    Data,
    /// Another lane of the radio sends.
    Internal,
}

impl Radio {
    /// Counts a failed attempt of a lane's first frame and widens the window for the next one; true
    /// if the frame has to be given up.
    ///
    /// The retry chain of a frame of a node's stack counts transmissions, so that an internal
    /// collision does not shorten it.
    fn count_failure(&mut self, lane: usize, failure: Failure) -> bool {
        let Some(waiting) = self.contention.lanes[lane].queue.front() else { return false };
        let (octets, _) = self.piece(waiting);
        let long =
            failure != Failure::Request && self.settings.rts_octets.is_some_and(|limit| octets > limit);
        let Some(waiting) = self.contention.lanes[lane].queue.front_mut() else { return false };
        let (short_limit, long_limit) = (self.settings.short_retries, self.settings.long_retries);
        let given_up = match &mut waiting.mpdu {
            Some(_) if failure == Failure::Internal => false,
            mpdu => {
                let tries = if long { &mut waiting.long_tries } else { &mut waiting.short_tries };
                *tries = tries.saturating_add(1);
                match mpdu {
                    Some(mpdu) => {
                        if failure == Failure::Request {
                            mpdu.count();
                        }
                        mpdu.rate().is_none() || *tries == u8::MAX
                    }
                    None => waiting.short_tries >= short_limit || waiting.long_tries >= long_limit,
                }
            }
        };
        if self.settings.as_ns3 {
            self.contention.lanes[lane].widen_in_cycle(short_limit);
        } else if !given_up {
            self.contention.lanes[lane].widen();
        }
        given_up
    }

    /// Draws another backoff for a lane that may not send at `now` although its backoff has ended. No
    /// slot of it is counted yet: with EDCA, the draw is all that happens at this slot boundary.
    pub(in crate::medium) fn back_off_again(&mut self, lane: usize, now: Instant) {
        self.back_off(lane);
        let slot = self.layer.slot;
        let lane = &mut self.contention.lanes[lane];
        lane.from = lane.from.max(lane.next_boundary(now, slot));
    }
}

impl Medium {
    /// Handles the end of a backoff. Of several lanes the first wins; for the others it is an
    /// internal collision.
    pub(super) fn access(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = self.core.radios.awake(index);
        let mut winner = None;
        let mut given_up = [false; 4];
        for (lane, given_up) in given_up.iter_mut().enumerate().take(radio.contention.lanes.len()) {
            let contender = &radio.contention.lanes[lane];
            if !contender.contends(radio.away) || contender.due(radio.layer.slot) > now {
                continue;
            }
            if winner.is_none() {
                winner = Some(lane);
            } else if radio.count_failure(lane, Failure::Internal) {
                *given_up = true;
            } else {
                radio.back_off_again(lane, now);
            }
        }
        for (lane, _) in given_up.iter().enumerate().filter(|(_, given_up)| **given_up) {
            self.give_up(index, lane, now, Failure::Internal, outside);
            if let Some(done) = self.take_first(index, lane, true) {
                self.move_window(index, lane, done.to, now, outside);
            }
            self.core.radios.awake(index).back_off_again(lane, now);
        }
        match winner {
            Some(lane) if self.core.radios[index].channel_asked(lane).is_some() => {
                self.follow_request(index, lane);
                self.core.radios.awake(index).back_off(lane);
                self.core.radios.awake(index).set_access();
            }
            Some(lane) if self.gives_way(index, lane) => {}
            Some(lane) => self.open(index, lane, now, outside),
            None => self.core.radios.awake(index).set_access(),
        }
        if given_up.contains(&true) {
            outside.finished(RadioId(u32::try_from(index).unwrap_or(u32::MAX)), now);
        }
    }

    /// Handles a missing response.
    pub(in crate::medium) fn unanswered(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = self.core.radios.awake(index);
        let Stage::Awaiting(number, what, ..) = radio.exchange.stage else { return };
        if what == Kind::BlockAck {
            return self.block_answered(index, now, None, outside);
        }
        let lane = usize::from(number);
        radio.part_frames(lane);
        let failure = if what == Kind::Cts { Failure::Request } else { Failure::Data };
        let waiting = &mut radio.contention.lanes[lane].queue[0];
        let (to, kind, tries, rate) = (waiting.to, waiting.kind, waiting.tries, waiting.rate.unwrap_or(0));
        if failure == Failure::Request {
            radio.counts.requests_unanswered += 1;
            if let To::Radio(to) = to {
                radio.peers.entry(to.0).or_default().request_failed();
            }
        } else {
            radio.counts.unanswered += 1;
            waiting.repeats = true;
            if kind == Kind::Data {
                radio.rate.report(peer(to), rate, tries, false, now);
                radio.contention.lanes[lane].unanswered += 1;
            }
            if let To::Radio(to) = to {
                radio.peers.entry(to.0).or_default().unanswered += 1;
            }
        }
        if !radio.count_failure(lane, failure) {
            radio_back_off(radio, lane);
            return self.release(index, now);
        }
        self.give_up(index, lane, now, failure, outside);
        self.finish(index, lane, now, true, outside);
    }

    /// Accounts for the first frame of a lane, which is given up after this failure.
    fn give_up(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        failure: Failure,
        outside: &mut impl Outside,
    ) {
        let radio = self.core.radios.awake(index);
        radio.counts.given_up += 1;
        radio.contention.lanes[lane].unanswered = 0;
        let Some(waiting) = radio.contention.lanes[lane].queue.front() else { return };
        let Some(frame) = waiting.frame else { return };
        if waiting.arrived {
            return outside.release(frame);
        }
        let tried = waiting.reached || failure == Failure::Internal;
        let why = if tried { Why::RetryLimit } else { Why::OutOfRange };
        outside.dropped(RadioId(u32::try_from(index).unwrap_or(u32::MAX)), now, frame, why);
    }
}
