//! Processing of received frames: responses, reservations (NAV), deliveries.

use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::bss::cell::Course;
use crate::medium::mac::classify::{body_octets, category};
use crate::medium::mac::lane::{Answer, FrameNumber, Stage};
use crate::medium::mac::waiting::Waiting;
use crate::medium::outside::Outside;
use crate::medium::phy::ACK_OCTETS;
use crate::medium::radio::Radio;
use crate::medium::signal::{Heard as Ear, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::listening::Heed;
use crate::medium::{Event, Medium};
use crate::time::{Instant, Span};

/// Lane number of management frames in duplicate detection.
const MANAGEMENT: u8 = u8::MAX;

impl Radio {
    /// Time after a request-to-send at this rate within which a frame must follow; otherwise its
    /// NAV is reset (10.3.2.4).
    pub(in crate::medium) fn unanswered_after(&self, rate: u8) -> Span {
        let rate = &self.layer.phy.rates[usize::from(rate)];
        self.layer.phy.sifs * 2 + rate.airtime(ACK_OCTETS) + rate.start_delay() + self.layer.slot * 2
    }
}

impl Medium {
    /// Handles a corrupted reception: EIFS follows (802.11-2020 10.3.2.3.7), and a pending response
    /// counts as missing.
    pub(in crate::medium) fn broken(&mut self, index: usize, at: Instant, outside: &mut impl Outside) {
        let radio = self.core.radios.awake(index);
        radio.counts.broken += 1;
        radio.contention.extended = true;
        radio.contention.broken_at = Some(at);
        if matches!(radio.exchange.stage, Stage::Awaiting(..)) {
            self.unanswered(index, at, outside);
        }
    }

    /// Handles a frame received without error whose last symbol arrived at `at`.
    pub(in crate::medium) fn received(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Ear,
        outside: &mut impl Outside,
    ) {
        let (own, index) = (RadioId(ear.radio), ear.radio as usize);
        self.core.radios.awake(index).contention.extended = false;
        self.core.radios.awake(index).contention.broken_at = None;
        let mine = sending.to == To::Radio(own);
        if let Stage::Awaiting(_, what, ..) = self.core.radios[index].exchange.stage {
            if mine && sending.kind == what {
                if what == Kind::BlockAck {
                    let listed = (sending.window, sending.bits);
                    return self.block_answered(index, at, Some(listed), outside);
                }
                self.note_answer(index, what, ear);
                return self.answered(index, at, outside);
            }
            self.unanswered(index, at, outside);
        }
        let heed = self.heeds(index, sending);
        if (mine || sending.to == To::Group) && heed == Heed::Ignores {
            return;
        }
        if mine || sending.to == To::Group {
            self.core.radios.awake(index).peers.entry(sending.from).or_default().heard(ear.power);
        }
        if mine {
            self.core.radios.awake(index).counts.received += 1;
            if heed == Heed::Answers {
                self.for_me(at, sending, ear, outside);
            } else {
                self.take_unanswered(at, sending, ear, outside);
            }
        } else if sending.to == To::Group {
            self.core.radios.awake(index).counts.received += 1;
            self.take(at, sending, ear, outside);
        } else {
            if heed != Heed::Ignores {
                self.overhear(at, sending, ear, outside);
            }
            self.reserve(index, at, sending);
        }
    }

    /// Sets the NAV to the duration that the frame states.
    fn reserve(&mut self, index: usize, at: Instant, sending: &Sending) {
        let radio = self.core.radios.awake(index);
        let until = at + sending.duration;
        if until <= radio.contention.reserved_until {
            return;
        }
        radio.contention.reserved_until = until;
        if sending.kind == Kind::Rts {
            // Without a clear-to-send the NAV is reset: check after the time for a response.
            let sent = self.core.radios[sending.from as usize].layer.phy;
            let radio = &self.core.radios[index];
            let wait = radio.unanswered_after(radio.layer.phy.same_rate(sent, sending.rate));
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            self.core.calendar.push(
                at + wait,
                Class::Timer,
                number,
                Event::NavReset { radio: number, since: at },
            );
        }
    }

    /// Resets the NAV of a request-to-send received at `since` that no frame followed.
    pub(in crate::medium) fn reset_nav(&mut self, index: usize, since: Instant, now: Instant) {
        let radio = &self.core.radios[index];
        // No radio falls asleep before a frame has followed the request.
        if radio.asleep || radio.busy || radio.idle_since > since || radio.contention.reserved_until <= now {
            return;
        }
        let radio = self.core.radios.awake(index);
        radio.contention.reserved_until = now;
        radio.restart(now);
        self.core.arm(index);
    }

    /// Handles a frame addressed to this radio, which acknowledges it if that is expected.
    pub(in crate::medium) fn for_me(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Ear,
        outside: &mut impl Outside,
    ) {
        let index = ear.radio as usize;
        let sent = self.core.radios[sending.from as usize].layer.phy;
        let radio = self.core.radios.awake(index);
        let rate = radio.layer.phy.response(radio.layer.phy.same_rate(sent, sending.rate), radio.layer.basic);
        let spent = radio.layer.phy.sifs + radio.layer.phy.rates[usize::from(rate)].airtime(ACK_OCTETS);
        let left = sending.duration.saturating_sub(spent);
        let answer = |kind| Answer {
            at: at + radio.layer.phy.sifs,
            kind,
            to: sending.from,
            address: sending.addresses.map(|[_, transmitter]| transmitter),
            rate,
            duration: left,
            window: sending.window,
            bits: 0,
            lane: 0,
        };
        match sending.kind {
            Kind::Ack | Kind::BlockAck | Kind::Cts => {}
            _ if sending.no_ack => self.take(at, sending, ear, outside),
            Kind::Rts => {
                if radio.contention.reserved_until <= at {
                    radio.exchange.answer = Some(answer(Kind::Cts));
                    radio.recount(at);
                }
            }
            Kind::Data if !sending.parts.is_empty() => {
                let reply = Answer { duration: Span::ZERO, lane: sending.lane, ..answer(Kind::BlockAck) };
                let bits = self.take_parts(at, sending, ear, outside);
                let radio = self.core.radios.awake(index);
                radio.exchange.answer = Some(Answer { bits, ..reply });
                radio.recount(at);
            }
            _ => {
                let mut reply = answer(Kind::Ack);
                if !sending.more {
                    reply.duration = Span::ZERO;
                }
                radio.exchange.answer = Some(reply);
                radio.recount(at);
                if sending.kind == Kind::Data && self.agrees(sending.from as usize, sending.to) {
                    self.take_numbered(at, sending, ear, outside);
                } else if self.is_new(index, sending) {
                    self.take(at, sending, ear, outside);
                } else {
                    self.core.radios.awake(index).counts.duplicates += 1;
                }
            }
        }
    }

    /// Records sequence and fragment numbers; false for a duplicate.
    fn is_new(&mut self, index: usize, sending: &Sending) -> bool {
        let now = FrameNumber { sequence: sending.sequence, fragment: sending.fragment };
        // A frame of another lane, or management, may come between a frame and its retry.
        if sending.kind == Kind::Wlan {
            // The stack numbers its frames; an exchange is about one frame.
            let queue =
                &self.core.radios[sending.from as usize].contention.lanes[usize::from(sending.lane)].queue;
            return queue.front().is_some_and(|first| !first.arrived);
        }
        let line = if sending.kind == Kind::Data { sending.lane } else { MANAGEMENT };
        let before = self.core.radios.awake(index).exchange.heard_from.insert((sending.from, line), now);
        !(sending.retry
            && before.is_some_and(|old| old.sequence == now.sequence && old.fragment == now.fragment))
    }

    /// Accepts a frame: once all fragments are there, it is delivered or relayed.
    fn take(&mut self, at: Instant, sending: &mut Sending, ear: &Ear, outside: &mut impl Outside) {
        let index = ear.radio as usize;
        if sending.more {
            return;
        }
        if self.core.radios[index].wideband.is_some() {
            return self.take_mpdu(at, sending, ear, outside);
        }
        self.remember(at, sending, ear, outside);
        let Some(frame) = sending.frame else { return self.managed(sending, ear, outside) };
        if sending.kind == Kind::Wlan {
            return self.take_from_stack(at, sending, ear, outside);
        }
        let course = self.course(index, sending, outside.octets(&frame));
        if sending.to == To::Group {
            if course == Course::Ignore {
                return;
            }
            sending.taken += 1;
        } else {
            // Acknowledged, so its delivery ends here, even if the radio then has no use for it.
            if self.mark_arrived(sending) {
                // Its previous access point received it, too.
                outside.copied(&frame, 1);
            }
            if course == Course::Ignore {
                outside.share(&frame);
                return outside.dropped(RadioId(ear.radio), at, frame, Why::NotAssociated);
            }
        }
        outside.share(&frame);
        self.carry_on(index, at, course, frame, outside);
    }

    /// Delivers or relays an Ethernet frame; takes over one reference to its buffer.
    pub(in crate::medium) fn carry_on(
        &mut self,
        index: usize,
        at: Instant,
        course: Course,
        frame: Frame,
        outside: &mut impl Outside,
    ) {
        let radio = u32::try_from(index).unwrap_or(u32::MAX);
        let event = Event::Deliver { radio, frame };
        if course == Course::Both {
            outside.copied(&frame, 1);
            outside.share(&frame);
            self.core.calendar.push(at, Class::Arrival, radio, event);
            self.relay(index, at, To::Group, frame, outside);
        } else if let Course::Relay(to) = course {
            self.relay(index, at, to, frame, outside);
        } else {
            self.core.calendar.push(at, Class::Arrival, radio, event);
        }
    }

    /// Relays a station's frame through the access point.
    fn relay(&mut self, index: usize, at: Instant, to: To, frame: Frame, outside: &mut impl Outside) {
        let octets = outside.octets(&frame);
        let body = body_octets(octets, frame.segment_octets(frame.first));
        let lane = if self.core.radios[index].settings.qos { category(octets) } else { 0 };
        let waiting = Waiting { frame: Some(frame), ..Waiting::new(Kind::Data, to, body) };
        self.enqueue(index, lane, at, waiting, outside);
    }
}
