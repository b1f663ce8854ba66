//! Frame exchanges: RTS, CTS, data, fragments, acknowledgment.
//!
//! IEEE Std 802.11-2020, 10.3.2 (acknowledgment, RTS/CTS), 10.4 (fragments), 10.23.2.8 (transmission
//! opportunities).

use crate::medium::Medium;
use crate::medium::mac::aggregate::answer_octets;
use crate::medium::mac::lane::{Answer, Stage};
use crate::medium::mac::waiting::Waiting;
use crate::medium::outside::Outside;
use crate::medium::phy::{Channel, RTS_OCTETS};
use crate::medium::radio::Radio;
use crate::medium::signal::Sending;
use crate::medium::types::{Kind, RadioId, To};
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
        let radio = self.core.radios.awake(index);
        if let Some(answer) = radio.exchange.answer.take_if(|answer| answer.at <= now) {
            if !self.misses_answer(index, &answer, outside) {
                self.answer(index, now, answer, outside);
            }
        } else if matches!(radio.exchange.stage, Stage::Awaiting(_, _, until, false) if until <= now) {
            self.ack_timed_out(index, now, outside);
        } else {
            self.access(index, now, outside);
        }
        self.core.arm(index);
    }

    /// Handles the response time-out; a frame whose reception began in time may be the response.
    fn ack_timed_out(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = self.core.radios.awake(index);
        let Stage::Awaiting(lane, what, until, _) = radio.exchange.stage else { return };
        let rate =
            radio.contention.lanes[usize::from(lane)].queue.front().and_then(|first| first.rate).unwrap_or(0);
        let asked = if what == Kind::Cts { radio.request_rate(rate) } else { rate };
        let delay = radio.response_delay(asked);
        let begun = radio.reception.lock().is_some_and(|lock| lock.at + delay <= now);
        if begun {
            radio.exchange.stage = Stage::Awaiting(lane, what, until, true);
        } else {
            self.unanswered(index, now, outside);
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
        if self.core.radios[index].hold.policer.is_some() && self.refuses(index, now) {
            return self.refuse(index, lane, now, outside);
        }
        if self.must_defer(index, now) {
            return self.hold(index, lane);
        }
        self.look_up_receiver(index, lane);
        let radio = self.core.radios.awake(index);
        radio.contention.lanes[lane].backing_off = false;
        radio.exchange.txop_until = now + radio.contention.lanes[lane].txop;
        let chosen = self.aggregate(index, lane, now);
        let radio = self.core.radios.awake(index);
        let waiting = &radio.contention.lanes[lane].queue[0];
        let octets = radio.aggregate_octets(lane).unwrap_or_else(|| radio.piece(waiting).0);
        let announces = radio.announces(waiting, octets);
        if !announces && radio.hold.windows.is_none() && radio.hold.watched.is_none() {
            return self.send_data(index, lane, now, chosen);
        }
        let rate = chosen.unwrap_or_else(|| radio.data_rate(lane, now));
        let radio = &self.core.radios[index];
        if radio.hold.windows.is_some() && self.must_wait(index, now, radio.exchange_time(lane, rate)) {
            return self.hold(index, lane);
        }
        let watched = radio.hold.watched.as_ref();
        let outside_slots = watched.map(|slots| slots.outside(now, radio.exchange_time(lane, rate)));
        let outside_slots = outside_slots.unwrap_or(Span::ZERO);
        if outside_slots > Span::ZERO && self.refuses_slot(index, now, outside_slots) {
            return self.refuse(index, lane, now, outside);
        }
        if announces {
            self.send_request(index, lane, now, rate);
        } else {
            self.send_data(index, lane, now, Some(rate));
        }
    }

    /// Sends the request-to-send of a lane's first frame, which follows at this rate.
    fn send_request(&mut self, index: usize, lane: usize, now: Instant, rate: u8) {
        let radio = self.core.radios.awake(index);
        radio.contention.lanes[lane].queue[0].rate = Some(rate);
        let waiting = &radio.contention.lanes[lane].queue[0];
        let (to, addresses) = (waiting.to, waiting.mpdu.map(|mpdu| mpdu.addresses));
        let request = radio.request_rate(rate);
        let clear = radio.answer_time(request);
        let (octets, answer) = match radio.aggregate_octets(lane) {
            Some(octets) => (octets, radio.block_answer_time(rate)),
            None => (radio.piece(waiting).0, radio.answer_time(rate)),
        };
        let duration = clear + radio.layer.phy.sifs + radio.airtime(rate, octets) + answer;
        radio.counts.requests += 1;
        let sending =
            Sending { addresses, ..Sending::control(index, Kind::Rts, to, request, RTS_OCTETS, duration) };
        self.begin(index, Stage::Sending(lane_number(lane)), now, sending);
    }

    /// Lets a lane's first frame wait for the radio's next window, or for other slices.
    fn hold(&mut self, index: usize, lane: usize) {
        let radio = self.core.radios.awake(index);
        radio.back_off(lane);
        (radio.contention.lanes[lane].deferred, radio.contention.lanes[lane].from) = (true, Instant::NEVER);
        radio.set_access();
        self.core.arm(index);
    }

    /// Sends the next fragment of a lane's first frame.
    fn send_data(&mut self, index: usize, lane: usize, now: Instant, rate: Option<u8>) {
        let joined = self.core.radios[index].contention.lanes[lane].queue[0].joined;
        if let Some(rate) = rate.filter(|_| joined) {
            return self.send_aggregate(index, lane, now, rate);
        }
        self.look_up_receiver(index, lane);
        let waiting = &self.core.radios[index].contention.lanes[lane].queue[0];
        let (to, kind, mpdu) = (waiting.to, waiting.kind, waiting.mpdu);
        let numbered = kind == Kind::Data && self.agrees(index, to);
        let radio = self.core.radios.awake(index);
        let rate = match rate {
            Some(rate) if mpdu.is_none() && to != To::Group && kind == Kind::Data => rate,
            _ => radio.data_rate(lane, now),
        };
        let (octets, body) = radio.piece(&radio.contention.lanes[lane].queue[0]);
        let sequence = match radio.contention.lanes[lane].queue[0].sequence {
            Some(sequence) => sequence,
            None if numbered => radio.next_number(lane, to),
            None => radio.next_sequence(),
        };
        let waiting = &radio.contention.lanes[lane].queue[0];
        let more = waiting.done + body < waiting.body;
        let unanswered = to == To::Group || mpdu.is_some_and(|mpdu| mpdu.no_ack);
        let mut duration = if unanswered { Span::ZERO } else { radio.answer_time(rate) };
        if more {
            let next = Waiting { done: waiting.done + body, ..waiting.clone() };
            let (next_octets, _) = radio.piece(&next);
            duration =
                duration + radio.layer.phy.sifs + radio.airtime(rate, next_octets) + radio.answer_time(rate);
        }
        radio.counts.sent += 1;
        if !unanswered {
            radio.counts.expected += 1;
        }
        if let To::Radio(to) = to {
            let bits_per_second = radio.layer.phy.rates[usize::from(rate)].bits_per_second;
            radio.peers.entry(to.0).or_default().attempt(bits_per_second);
        }
        let own = self.transmitter_address(index);
        let radio = self.core.radios.awake(index);
        let waiting = &mut radio.contention.lanes[lane].queue[0];
        let receiver = waiting.receiver;
        waiting.sequence = Some(sequence);
        let window = if numbered { radio.window_start(lane, to) } else { 0 };
        let waiting = &mut radio.contention.lanes[lane].queue[0];
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
            retry: waiting.repeats,
            no_ack: unanswered && to != To::Group,
            addresses: mpdu.map(|mpdu| mpdu.addresses).or(receiver.map(|receiver| [receiver, own])),
            frame: waiting.frame,
            window,
            ..Sending::control(index, kind, to, rate, octets, duration)
        };
        self.begin(index, Stage::Sending(lane_number(lane)), now, sending);
    }

    pub(super) fn begin(&mut self, index: usize, stage: Stage, now: Instant, sending: Sending) {
        let radio = self.core.radios.awake(index);
        radio.exchange.stage = stage;
        radio.recount(now);
        radio.set_access();
        self.transmit(now, sending);
        self.exchange_begins(index);
        self.core.arm(index);
    }

    /// Sends, a SIFS after a frame, the response, the next fragment, or the next frame of the opportunity.
    fn answer(&mut self, index: usize, now: Instant, answer: Answer, outside: &mut impl Outside) {
        if self.core.radios[index].hold.policer.is_some() && self.refuses_answer(index, now, &answer, outside)
        {
            return;
        }
        if answer.is_own() {
            let lane = usize::from(answer.lane);
            let Some(waiting) = self.core.radios[index].contention.lanes[lane].queue.front() else { return };
            return match (answer.kind, waiting.rate) {
                (Kind::Rts, Some(rate)) => {
                    self.look_up_receiver(index, lane);
                    self.send_request(index, lane, now, rate);
                }
                (_, rate) => self.send_data(index, lane, now, rate),
            };
        }
        let to = To::Radio(RadioId(answer.to));
        let octets = answer_octets(answer.kind);
        let sending = Sending {
            addresses: answer.address.map(|address| [address; 2]),
            lane: answer.lane,
            window: answer.window,
            bits: answer.bits,
            ..Sending::control(index, answer.kind, to, answer.rate, octets, answer.duration)
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
        let radio = self.core.radios.awake(index);
        let lane = usize::from(sending.lane);
        match (sending.kind, sending.to) {
            (Kind::Ack | Kind::BlockAck | Kind::Cts, _) => self.release(index, now),
            (Kind::Rts, _) => {
                let until = now + radio.ack_timeout(sending.rate);
                let Stage::Sending(lane) = radio.exchange.stage else { return };
                radio.exchange.stage = Stage::Awaiting(lane, Kind::Cts, until, false);
                if let Some(waiting) = radio.contention.lanes[usize::from(lane)].queue.front_mut() {
                    waiting.reached |= reached;
                }
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
                self.finish(index, lane, now, false, outside);
            }
            _ => {
                let until = now + radio.ack_timeout(sending.rate);
                let alone = sending.parts.is_empty();
                let (what, most) = if alone { (Kind::Ack, 1) } else { (Kind::BlockAck, usize::MAX) };
                radio.exchange.stage = Stage::Awaiting(sending.lane, what, until, false);
                let first = radio.contention.lanes[lane].queue.iter_mut().take(most);
                for waiting in first.filter(|waiting| alone || waiting.joined) {
                    waiting.reached |= reached;
                }
            }
        }
    }

    /// Ends an exchange: the radio's counters may run.
    pub(in crate::medium) fn release(&mut self, index: usize, now: Instant) {
        let radio = self.core.radios.awake(index);
        radio.exchange.stage = Stage::Free;
        radio.contention.free_since = now;
        radio.recount(now);
        radio.set_access();
        self.come_home(index);
        self.exchange_ended(index);
        self.yield_share(index);
    }

    /// Handles the awaited clear-to-send or acknowledgment.
    pub(in crate::medium) fn answered(&mut self, index: usize, now: Instant, outside: &mut impl Outside) {
        let radio = self.core.radios.awake(index);
        let Stage::Awaiting(number, what, ..) = radio.exchange.stage else { return };
        let lane = usize::from(number);
        let follow = Answer::own(now + radio.layer.phy.sifs, Kind::Data, number);
        if what == Kind::Cts {
            radio.contention.lanes[lane].queue[0].short_tries = 0;
            radio.exchange.stage = Stage::Free;
            radio.exchange.answer = Some(follow);
            return;
        }
        let (_, body) = radio.piece(&radio.contention.lanes[lane].queue[0]);
        let waiting = &mut radio.contention.lanes[lane].queue[0];
        let (to, tries, rate) = (waiting.to, waiting.tries, waiting.rate.unwrap_or(0));
        waiting.done += body;
        (waiting.short_tries, waiting.long_tries, waiting.repeats) = (0, 0, false);
        let more = waiting.done < waiting.body;
        waiting.fragment += u8::from(more);
        if waiting.kind == Kind::Data {
            radio.rate.report(peer(to), rate, tries, true, now);
            radio.contention.lanes[lane].unanswered = 0;
        }
        if more {
            let radio = self.core.radios.awake(index);
            radio.exchange.stage = Stage::Free;
            radio.exchange.answer = Some(follow);
            return;
        }
        if let Some(frame) = self.core.radios[index].contention.lanes[lane].queue[0].frame {
            outside.release(frame);
        }
        self.finish(index, lane, now, false, outside);
    }

    /// Completes the first frame of a lane: sent, or given up. A transmission opportunity ends with
    /// a failure, because whoever else sends may not have heard that the channel is taken.
    pub(in crate::medium) fn finish(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        given_up: bool,
        outside: &mut impl Outside,
    ) {
        let done = self.take_first(index, lane, given_up);
        if let Some(done) = &done {
            self.move_window(index, lane, done.to, now, outside);
        }
        let mpdu = done.as_ref().and_then(|waiting| waiting.mpdu);
        let dozes = done.is_some_and(|waiting| waiting.kind == Kind::Doze);
        if dozes {
            self.announced(index);
        }
        if let Some(says) = mpdu.and_then(|mpdu| mpdu.ack_dbm.and(mpdu.dozes)) {
            self.set_dozing(index, says);
        }
        let next = if dozes || given_up { None } else { self.next_of_opportunity(index, lane, now) };
        if let Some(kind) = next {
            let radio = self.core.radios.awake(index);
            radio.exchange.stage = Stage::Free;
            radio.exchange.answer = Some(Answer::own(now + radio.layer.phy.sifs, kind, lane_number(lane)));
        } else {
            radio_back_off(self.core.radios.awake(index), lane);
            self.release(index, now);
        }
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        if let Some(mpdu) = mpdu {
            outside.transmitted(id, now, &mpdu.status());
        }
        outside.finished(id, now);
    }

    /// Removes the first frame of a lane, whose window starts anew for the next one.
    pub(super) fn take_first(&mut self, index: usize, lane: usize, given_up: bool) -> Option<Waiting> {
        let radio = self.core.radios.awake(index);
        let done = radio.contention.lanes[lane].queue.pop_front();
        radio.waiting -= u32::from(done.is_some());
        let state = &mut radio.contention.lanes[lane];
        if !(given_up && radio.settings.as_ns3) {
            (state.failures, state.cw) = (0, state.cw_min);
        }
        done
    }

    /// What a lane sends next if its next exchange fits into the rest of the transmission opportunity: a
    /// request to send, or data (10.23.2.9: a frame exchange sequence, which a request may begin).
    fn next_of_opportunity(&mut self, index: usize, lane: usize, now: Instant) -> Option<Kind> {
        let radio = &self.core.radios[index];
        let next = radio.contention.lanes[lane].queue.front()?;
        let goes_on = matches!(next.kind, Kind::Data | Kind::Wlan) && radio.channel_asked(lane).is_none();
        if radio.contention.lanes[lane].txop == Span::ZERO || !goes_on || self.agrees(index, next.to) {
            return None;
        }
        let (octets, _) = radio.piece(next);
        let announces = radio.announces(next, octets);
        let radio = self.core.radios.awake(index);
        let rate = radio.data_rate(lane, now);
        let span = radio.layer.phy.sifs + radio.exchange_time(lane, rate);
        radio.contention.lanes[lane].queue[0].rate = Some(rate);
        let leaves = radio.hold.watched.as_ref().is_some_and(|slots| slots.outside(now, span) > Span::ZERO);
        let fits = now + span <= radio.exchange.txop_until && !leaves && !self.must_wait(index, now, span);
        fits.then_some(if announces { Kind::Rts } else { Kind::Data })
    }
}

impl Answer {
    /// A frame of the radio's own lane: data, or a request-to-send.
    fn own(at: Instant, kind: Kind, lane: u8) -> Self {
        Self { at, kind, to: 0, address: None, rate: 0, duration: Span::ZERO, window: 0, bits: 0, lane }
    }
}

/// Draws a backoff that starts when the radio is free again.
pub(super) fn radio_back_off(radio: &mut Radio, lane: usize) {
    radio.back_off(lane);
    radio.contention.lanes[lane].from = Instant::NEVER;
}

pub(super) fn lane_number(lane: usize) -> u8 {
    u8::try_from(lane).unwrap_or(0)
}

impl Sending {
    /// A control frame, without a body.
    pub(super) fn control(index: usize, kind: Kind, to: To, rate: u8, octets: u32, duration: Span) -> Self {
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
            parts: Vec::new(),
            subframe: None,
            window: 0,
            bits: 0,
            start: Instant::ZERO,
            end: Instant::ZERO,
            heard: Vec::new(),
            taken: 0,
            interfered: 0,
            cluster: None,
        }
    }
}
