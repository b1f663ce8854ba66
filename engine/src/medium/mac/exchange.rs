//! Frame exchanges: RTS, CTS, data, fragments, acknowledgment, and recovery.
//!
//! IEEE Std 802.11-2020, 10.3.2 (acknowledgment, RTS/CTS), 10.3.4.4 (recovery and retry limits),
//! 10.4 (fragments), 10.23.2.8 (transmission opportunities).

use crate::drop_reason::DropReason as Why;
use crate::medium::air::Sending;
use crate::medium::phy::{ACK_OCTETS, Channel, RTS_OCTETS};
use crate::medium::radio::{Answer, Kind, Radio, RadioId, Stage, To, Waiting};
use crate::medium::{Medium, Outside};
use crate::time::{Instant, Span};

/// Number of a receiver in the rate control.
pub(super) fn peer(to: To) -> u32 {
    match to {
        To::Radio(radio) => radio.0,
        To::Group | To::Nobody => u32::MAX,
    }
}

impl Medium {
    /// Handles the timer of a radio.
    pub(in crate::medium) fn fire(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        debug_assert!(!self.radios[index].asleep, "a radio that sleeps has no timer");
        let radio = &mut self.radios[index];
        if let Some(answer) = radio.answer.take_if(|answer| answer.at <= now) {
            if !self.misses_answer(index, &answer, outside) {
                self.answer(index, now, answer, outside);
            }
        } else if matches!(radio.stage, Stage::Awaiting(_, _, until, false) if until <= now) {
            self.ack_timed_out(index, now, outside);
        } else {
            self.access(index, now, outside);
        }
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Handles the response time-out; a frame whose reception began in time may be the response.
    fn ack_timed_out(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = &mut self.radios[index];
        let Stage::Awaiting(lane, what, until, _) = radio.stage else { return };
        let rate = radio.lanes[usize::from(lane)].queue.front().and_then(|first| first.rate).unwrap_or(0);
        let asked = if what == Kind::Cts { radio.request_rate(rate) } else { rate };
        let delay = radio.response_delay(asked);
        let begun = radio.lock.as_ref().is_some_and(|lock| lock.at + delay <= now);
        if begun {
            radio.stage = Stage::Awaiting(lane, what, until, true);
        } else {
            self.unanswered(index, now, outside);
        }
    }

    /// Handles the end of a backoff. Of several lanes the first wins; for the others it is an
    /// internal collision.
    fn access(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let slot = self.radios[index].slot;
        let mut winner = None;
        for lane in 0..self.radios[index].lanes.len() {
            let radio = &self.radios[index];
            let contender = &radio.lanes[lane];
            if !contender.contends(radio.away) || contender.due(slot) > now {
                continue;
            }
            if winner.is_none() {
                winner = Some(lane);
            } else {
                self.radios[index].lanes[lane].widen();
                radio_back_off(&mut self.radios[index], lane);
            }
        }
        match winner {
            Some(lane) if self.radios[index].channel_asked(lane).is_some() => {
                self.follow_request(index, lane);
                self.radios[index].back_off(lane);
                self.radios[index].set_access();
            }
            Some(lane) if self.gives_way(index, lane) => {}
            Some(lane) => self.open(index, lane, now, outside),
            None => self.radios[index].set_access(),
        }
    }

    /// Starts an exchange for the first frame of a lane.
    pub(in crate::medium) fn open(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        outside: &mut impl Outside,
    ) {
        if self.radios[index].policer.is_some() && self.refuses(index, now) {
            return self.refuse(index, lane, now, outside);
        }
        if self.must_defer(index, now) {
            return self.hold(index, lane);
        }
        self.look_up_receiver(index, lane);
        let radio = &mut self.radios[index];
        radio.lanes[lane].backing_off = false;
        radio.txop_until = now + radio.lanes[lane].txop;
        let waiting = &radio.lanes[lane].queue[0];
        let (octets, _) = radio.piece(waiting);
        let announces = radio.announces(waiting, octets);
        if !announces && radio.windows.is_none() && radio.watched.is_none() {
            return self.send_data(index, lane, now, None);
        }
        let addresses = waiting.mpdu.map(|mpdu| mpdu.addresses);
        let to = waiting.to;
        let rate = radio.data_rate(lane, now);
        let radio = &self.radios[index];
        if radio.windows.is_some() && self.must_wait(index, now, radio.exchange_time(lane, rate)) {
            return self.hold(index, lane);
        }
        let watched = radio.watched.as_ref();
        let outside_slots = watched.map(|slots| slots.outside(now, radio.exchange_time(lane, rate)));
        let outside_slots = outside_slots.unwrap_or(Span::ZERO);
        if outside_slots > Span::ZERO && self.refuses_slot(index, now, outside_slots) {
            return self.refuse(index, lane, now, outside);
        }
        if !announces {
            return self.send_data(index, lane, now, Some(rate));
        }
        let radio = &mut self.radios[index];
        radio.lanes[lane].queue[0].rate = Some(rate);
        let request = radio.request_rate(rate);
        let clear = radio.answer_time(request);
        let duration = clear + radio.phy.sifs + radio.airtime(rate, octets) + radio.answer_time(rate);
        radio.counts.requests += 1;
        let sending =
            Sending { addresses, ..Sending::control(index, Kind::Rts, to, request, RTS_OCTETS, duration) };
        self.begin(index, Stage::Sending(lane_number(lane)), now, sending);
    }

    /// Lets a lane's first frame wait for the radio's next window, or for other slices.
    fn hold(&mut self, index: usize, lane: usize) {
        let radio = &mut self.radios[index];
        radio.back_off(lane);
        (radio.lanes[lane].deferred, radio.lanes[lane].from) = (true, Instant::NEVER);
        radio.set_access();
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Sends the next fragment of a lane's first frame.
    fn send_data(&mut self, index: usize, lane: usize, now: Instant, rate: Option<u8>) {
        self.look_up_receiver(index, lane);
        let radio = &mut self.radios[index];
        let waiting = &radio.lanes[lane].queue[0];
        let (to, kind, mpdu) = (waiting.to, waiting.kind, waiting.mpdu);
        let rate = match rate {
            Some(rate) if mpdu.is_none() && to != To::Group && kind == Kind::Data => rate,
            _ => radio.data_rate(lane, now),
        };
        let (octets, body) = radio.piece(&radio.lanes[lane].queue[0]);
        let sequence = match radio.lanes[lane].queue[0].sequence {
            Some(sequence) => sequence,
            None => radio.next_sequence(),
        };
        let waiting = &radio.lanes[lane].queue[0];
        let more = waiting.done + body < waiting.body;
        let unanswered = to == To::Group || mpdu.is_some_and(|mpdu| mpdu.no_ack);
        let mut duration = if unanswered { Span::ZERO } else { radio.answer_time(rate) };
        if more {
            let next = Waiting { done: waiting.done + body, ..waiting.clone() };
            let (next_octets, _) = radio.piece(&next);
            duration = duration + radio.phy.sifs + radio.airtime(rate, next_octets) + radio.answer_time(rate);
        }
        radio.counts.sent += 1;
        if !unanswered {
            radio.counts.expected += 1;
        }
        if let To::Radio(to) = to {
            let bits_per_second = radio.phy.rates[usize::from(rate)].bits_per_second;
            radio.peers.entry(to.0).or_default().attempt(bits_per_second);
        }
        let own = self.transmitter_address(index);
        let radio = &mut self.radios[index];
        let waiting = &mut radio.lanes[lane].queue[0];
        let receiver = waiting.receiver;
        waiting.sequence = Some(sequence);
        waiting.rate = Some(rate);
        waiting.tries += 1;
        if let Some(mpdu) = &mut waiting.mpdu {
            mpdu.count();
        }
        let sending = Sending {
            lane: lane_number(lane),
            sequence,
            fragment: waiting.fragment,
            body,
            offset: waiting.done,
            more,
            retry: waiting.short_tries > 0 || waiting.long_tries > 0,
            no_ack: unanswered && to != To::Group,
            addresses: mpdu.map(|mpdu| mpdu.addresses).or(receiver.map(|receiver| [receiver, own])),
            frame: waiting.frame,
            ..Sending::control(index, kind, to, rate, octets, duration)
        };
        self.begin(index, Stage::Sending(lane_number(lane)), now, sending);
    }

    fn begin(&mut self, index: usize, stage: Stage, now: Instant, sending: Sending) {
        let radio = &mut self.radios[index];
        radio.stage = stage;
        radio.recount(now);
        radio.set_access();
        self.transmit(now, sending);
        self.exchange_begins(index);
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Sends, a SIFS after a frame, the response or the next fragment.
    fn answer(&mut self, index: usize, now: Instant, answer: Answer, outside: &mut impl Outside) {
        if self.radios[index].policer.is_some() && self.refuses_answer(index, now, &answer, outside) {
            return;
        }
        if answer.kind == Kind::Data {
            let lane = usize::from(answer.lane);
            let Some(waiting) = self.radios[index].lanes[lane].queue.front() else { return };
            let rate = waiting.rate;
            return self.send_data(index, lane, now, rate);
        }
        let to = To::Radio(RadioId(answer.to));
        let sending = Sending {
            addresses: answer.address.map(|address| [address; 2]),
            ..Sending::control(index, answer.kind, to, answer.rate, ACK_OCTETS, answer.duration)
        };
        self.begin(index, Stage::Answering, now, sending);
    }

    /// Handles the end of a transmission of this radio.
    pub(in crate::medium) fn sent(
        &mut self,
        now: Instant,
        sending: &Sending,
        reached: bool,
        outside: &mut impl Outside,
    ) {
        let index = sending.from as usize;
        let radio = &mut self.radios[index];
        let lane = usize::from(sending.lane);
        match (sending.kind, sending.to) {
            (Kind::Ack | Kind::Cts, _) => self.release(index, now),
            (Kind::Rts, _) => {
                let until = now + radio.ack_timeout(sending.rate);
                let Stage::Sending(lane) = radio.stage else { return };
                radio.stage = Stage::Awaiting(lane, Kind::Cts, until, false);
            }
            _ if sending.to == To::Group || sending.no_ack => {
                if let Some(frame) = sending.frame {
                    match sending.taken {
                        0 => {
                            let why = Self::reason(sending, reached);
                            outside.dropped(RadioId(sending.from), now, frame, why);
                        }
                        taken => {
                            outside.copied(&frame, taken - 1);
                            outside.release(frame);
                        }
                    }
                }
                self.finish(index, lane, now, outside);
            }
            _ => {
                let until = now + radio.ack_timeout(sending.rate);
                radio.stage = Stage::Awaiting(sending.lane, Kind::Ack, until, false);
                if let Some(waiting) = radio.lanes[lane].queue.front_mut() {
                    waiting.reached |= reached;
                }
            }
        }
    }

    /// Ends an exchange: the radio's counters may run.
    pub(in crate::medium) fn release(&mut self, index: usize, now: Instant) {
        let radio = &mut self.radios[index];
        radio.stage = Stage::Free;
        radio.free_since = now;
        radio.recount(now);
        radio.set_access();
        self.exchange_ended(index);
        self.yield_share(index);
    }

    /// Handles the awaited clear-to-send or acknowledgment.
    pub(in crate::medium) fn answered(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = &mut self.radios[index];
        let Stage::Awaiting(number, what, ..) = radio.stage else { return };
        let lane = usize::from(number);
        let follow = Answer {
            at: now + radio.phy.sifs,
            kind: Kind::Data,
            to: 0,
            address: None,
            rate: 0,
            duration: Span::ZERO,
            lane: number,
        };
        if what == Kind::Cts {
            radio.lanes[lane].queue[0].short_tries = 0;
            radio.stage = Stage::Free;
            radio.answer = Some(follow);
            return;
        }
        let (_, body) = radio.piece(&radio.lanes[lane].queue[0]);
        let waiting = &mut radio.lanes[lane].queue[0];
        let (to, tries, rate) = (waiting.to, waiting.tries, waiting.rate.unwrap_or(0));
        waiting.done += body;
        (waiting.short_tries, waiting.long_tries) = (0, 0);
        let more = waiting.done < waiting.body;
        waiting.fragment += u8::from(more);
        if waiting.kind == Kind::Data {
            radio.rate.report(peer(to), rate, tries, true, now);
        }
        if more {
            let radio = &mut self.radios[index];
            radio.stage = Stage::Free;
            radio.answer = Some(follow);
            return;
        }
        if let Some(frame) = self.radios[index].lanes[lane].queue[0].frame {
            outside.release(frame);
        }
        self.finish(index, lane, now, outside);
    }

    /// Completes the first frame of a lane: sent, or given up.
    pub(in crate::medium) fn finish(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        outside: &mut impl Outside,
    ) {
        let radio = &mut self.radios[index];
        let done = radio.lanes[lane].queue.pop_front();
        radio.waiting -= u32::from(done.is_some());
        let mpdu = done.as_ref().and_then(|waiting| waiting.mpdu);
        let status = mpdu.map(|mpdu| mpdu.status());
        let dozes = done.as_ref().is_some_and(|waiting| waiting.kind == Kind::Doze);
        let given_up = done.is_some_and(|waiting| waiting.short_tries > 0 || waiting.long_tries > 0);
        let state = &mut radio.lanes[lane];
        if !(given_up && radio.settings.as_ns3) {
            (state.failures, state.cw) = (0, state.cw_min);
        }
        if dozes {
            self.announced(index);
        }
        if let Some(says) = mpdu.and_then(|mpdu| mpdu.ack_dbm.and(mpdu.dozes)) {
            self.set_dozing(index, says);
        }
        if !dozes && self.goes_on(index, lane, now) {
            let radio = &mut self.radios[index];
            radio.stage = Stage::Free;
            radio.answer = Some(Answer {
                at: now + radio.phy.sifs,
                kind: Kind::Data,
                to: 0,
                address: None,
                rate: 0,
                duration: Span::ZERO,
                lane: lane_number(lane),
            });
        } else {
            radio_back_off(&mut self.radios[index], lane);
            self.release(index, now);
        }
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        if let Some(status) = status {
            outside.transmitted(id, now, &status);
        }
        outside.finished(id, now);
    }

    /// True if the next frame of the lane fits into the rest of the transmission opportunity.
    fn goes_on(&mut self, index: usize, lane: usize, now: Instant) -> bool {
        let radio = &mut self.radios[index];
        let Some(next) = radio.lanes[lane].queue.front() else { return false };
        let goes_on = matches!(next.kind, Kind::Data | Kind::Wlan) && radio.channel_asked(lane).is_none();
        if radio.lanes[lane].txop == Span::ZERO || !goes_on {
            return false;
        }
        let (octets, _) = radio.piece(next);
        if radio.announces(next, octets) {
            return false;
        }
        let rate = radio.data_rate(lane, now);
        let span = radio.phy.sifs + radio.airtime(rate, octets) + radio.answer_time(rate);
        radio.lanes[lane].queue[0].rate = Some(rate);
        let leaves = radio.watched.as_ref().is_some_and(|slots| slots.outside(now, span) > Span::ZERO);
        now + span <= radio.txop_until && !leaves && !self.must_wait(index, now, span)
    }

    /// Handles a missing response.
    pub(in crate::medium) fn unanswered(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = &mut self.radios[index];
        let Stage::Awaiting(number, what, ..) = radio.stage else { return };
        let lane = usize::from(number);
        let (octets, _) = radio.piece(&radio.lanes[lane].queue[0]);
        let long = radio.settings.rts_octets.is_some_and(|limit| octets > limit);
        let waiting = &mut radio.lanes[lane].queue[0];
        if what == Kind::Cts {
            radio.counts.requests_unanswered += 1;
            waiting.short_tries = waiting.short_tries.saturating_add(1);
            if let Some(mpdu) = &mut waiting.mpdu {
                mpdu.count();
            }
            if let To::Radio(to) = waiting.to {
                radio.peers.entry(to.0).or_default().request_failed();
            }
        } else {
            radio.counts.unanswered += 1;
            if long {
                waiting.long_tries = waiting.long_tries.saturating_add(1);
            } else {
                waiting.short_tries = waiting.short_tries.saturating_add(1);
            }
            let (to, tries, rate) = (waiting.to, waiting.tries, waiting.rate.unwrap_or(0));
            if waiting.kind == Kind::Data {
                radio.rate.report(peer(to), rate, tries, false, now);
            }
            if let To::Radio(to) = to {
                radio.peers.entry(to.0).or_default().unanswered += 1;
            }
        }
        let waiting = &radio.lanes[lane].queue[0];
        let (frame, arrived, reached) = (waiting.frame, waiting.arrived, waiting.reached);
        let given_up = match waiting.mpdu {
            Some(mpdu) => mpdu.rate().is_none() || waiting.short_tries.max(waiting.long_tries) == u8::MAX,
            None => {
                waiting.short_tries >= radio.settings.short_retries
                    || waiting.long_tries >= radio.settings.long_retries
            }
        };
        if radio.settings.as_ns3 {
            radio.lanes[lane].widen_in_cycle(radio.settings.short_retries);
        } else if !given_up {
            radio.lanes[lane].widen();
        }
        if !given_up {
            radio_back_off(radio, lane);
            return self.release(index, now);
        }
        radio.counts.given_up += 1;
        if let Some(frame) = frame {
            if arrived {
                outside.release(frame);
            } else {
                let why = if reached { Why::RetryLimit } else { Why::OutOfRange };
                outside.dropped(RadioId(u32::try_from(index).unwrap_or(u32::MAX)), now, frame, why);
            }
        }
        self.finish(index, lane, now, outside);
    }
}

/// Draws a backoff that starts when the radio is free again.
fn radio_back_off(radio: &mut Radio, lane: usize) {
    radio.back_off(lane);
    radio.lanes[lane].from = Instant::NEVER;
}

fn lane_number(lane: usize) -> u8 {
    u8::try_from(lane).unwrap_or(0)
}

impl Sending {
    /// A control frame, without a body.
    fn control(index: usize, kind: Kind, to: To, rate: u8, octets: u32, duration: Span) -> Self {
        Self {
            from: u32::try_from(index).unwrap_or(u32::MAX),
            to,
            kind,
            lane: 0,
            rate,
            decoder: 0,
            octets,
            body: 0,
            offset: 0,
            channel: Channel { number: 0, mhz: 0 },
            duration,
            sequence: 0,
            fragment: 0,
            more: false,
            retry: false,
            no_ack: false,
            addresses: None,
            frame: None,
            start: Instant::ZERO,
            end: Instant::ZERO,
            heard: Vec::new(),
            taken: 0,
            interfered: 0,
            cluster: None,
        }
    }
}
