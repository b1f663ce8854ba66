//! Processing of received frames: responses, reservations (NAV), deliveries.

use super::classify::{body_octets, category};
use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::air::Sending;
use crate::medium::bss::Course;
use crate::medium::phy::ACK_OCTETS;
use crate::medium::radio::{self, Answer, Kind, Radio, RadioId, Stage, To, Waiting};
use crate::medium::reach::Heard as Ear;
use crate::medium::{Event, Medium, Outside};
use crate::time::{Instant, Span};

/// Lane number of management frames in duplicate detection.
const MANAGEMENT: u8 = u8::MAX;

impl Radio {
    /// Time after a request-to-send at this rate within which a frame must follow; otherwise its
    /// NAV is reset (10.3.2.4).
    pub(in crate::medium) fn unanswered_after(&self, rate: u8) -> Span {
        let rate = &self.phy.rates[usize::from(rate)];
        self.phy.sifs * 2 + rate.airtime(ACK_OCTETS) + rate.start_delay() + self.slot * 2
    }
}

impl Medium {
    /// Handles a corrupted reception: EIFS follows (802.11-2020 10.3.2.3.7), and a pending response
    /// counts as missing.
    pub(in crate::medium) fn broken(&mut self, index: usize, at: Instant, outside: &mut impl Outside) {
        let radio = &mut self.radios[index];
        radio.counts.broken += 1;
        radio.extended = true;
        radio.broken_at = Some(at);
        if matches!(radio.stage, Stage::Awaiting(..)) {
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
        self.radios[index].extended = false;
        self.radios[index].broken_at = None;
        let mine = sending.to == To::Radio(own);
        if let Stage::Awaiting(_, what, ..) = self.radios[index].stage {
            if mine && sending.kind == what {
                self.note_answer(index, what, ear);
                return self.answered(index, at, outside);
            }
            self.unanswered(index, at, outside);
        }
        if mine || sending.to == To::Group {
            self.radios[index].peers.entry(sending.from).or_default().heard(ear.power);
        }
        if mine {
            self.radios[index].counts.received += 1;
            self.for_me(at, sending, ear, outside);
        } else if sending.to == To::Group {
            self.radios[index].counts.received += 1;
            self.take(at, sending, ear, outside);
        } else {
            self.pass_on(at, sending, ear, outside);
            self.reserve(index, at, sending);
        }
    }

    /// Sets the NAV to the duration that the frame states.
    fn reserve(&mut self, index: usize, at: Instant, sending: &Sending) {
        let radio = &mut self.radios[index];
        let until = at + sending.duration;
        if until <= radio.reserved_until {
            return;
        }
        radio.reserved_until = until;
        if sending.kind == Kind::Rts {
            // Without a clear-to-send the NAV is reset: check after the time for a response.
            let sent = self.radios[sending.from as usize].phy;
            let radio = &self.radios[index];
            let wait = radio.unanswered_after(radio.phy.same_rate(sent, sending.rate));
            let number = u32::try_from(index).unwrap_or(u32::MAX);
            self.calendar.push(at + wait, Class::Timer, number, Event::NavReset { radio: number, since: at });
        }
    }

    /// Resets the NAV of a request-to-send received at `since` that no frame followed.
    pub(in crate::medium) fn reset_nav(&mut self, index: usize, since: Instant, now: Instant) {
        let radio = &mut self.radios[index];
        // No radio falls asleep before a frame has followed the request.
        if radio.asleep || radio.busy || radio.idle_since > since || radio.reserved_until <= now {
            return;
        }
        radio.reserved_until = now;
        radio.restart(now);
        self.timers.set(index, self.radios[index].next_at());
    }

    fn for_me(&mut self, at: Instant, sending: &mut Sending, ear: &Ear, outside: &mut impl Outside) {
        let index = ear.radio as usize;
        let sent = self.radios[sending.from as usize].phy;
        let radio = &mut self.radios[index];
        let rate = radio.phy.response(radio.phy.same_rate(sent, sending.rate), radio.basic);
        let spent = radio.phy.sifs + radio.phy.rates[usize::from(rate)].airtime(ACK_OCTETS);
        let left = sending.duration.saturating_sub(spent);
        let answer = |kind| Answer {
            at: at + radio.phy.sifs,
            kind,
            to: sending.from,
            address: sending.addresses.map(|[_, transmitter]| transmitter),
            rate,
            duration: left,
            lane: 0,
        };
        match sending.kind {
            Kind::Ack | Kind::Cts => {}
            _ if sending.no_ack => self.take(at, sending, ear, outside),
            Kind::Rts => {
                if radio.reserved_until <= at {
                    radio.answer = Some(answer(Kind::Cts));
                    radio.recount(at);
                }
            }
            _ => {
                let mut reply = answer(Kind::Ack);
                if !sending.more {
                    reply.duration = Span::ZERO;
                }
                radio.answer = Some(reply);
                radio.recount(at);
                if self.is_new(index, sending) {
                    self.take(at, sending, ear, outside);
                } else {
                    self.radios[index].counts.duplicates += 1;
                }
            }
        }
    }

    /// Records sequence and fragment numbers; false for a duplicate.
    fn is_new(&mut self, index: usize, sending: &Sending) -> bool {
        let now = radio::Heard { sequence: sending.sequence, fragment: sending.fragment };
        // A frame of another lane, or management, may come between a frame and its retry.
        if sending.kind == Kind::Wlan {
            // The stack numbers its frames; an exchange is about one frame.
            let queue = &self.radios[sending.from as usize].lanes[usize::from(sending.lane)].queue;
            return queue.front().is_some_and(|first| !first.arrived);
        }
        let line = if sending.kind == Kind::Data { sending.lane } else { MANAGEMENT };
        let before = self.radios[index].heard_from.insert((sending.from, line), now);
        !(sending.retry
            && before.is_some_and(|old| old.sequence == now.sequence && old.fragment == now.fragment))
    }

    /// Accepts a frame: once all fragments are there, it is delivered or relayed.
    fn take(&mut self, at: Instant, sending: &mut Sending, ear: &Ear, outside: &mut impl Outside) {
        let index = ear.radio as usize;
        if sending.more {
            return;
        }
        if self.radios[index].wideband.is_some() {
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
            self.calendar.push(at, Class::Arrival, radio, event);
            self.relay(index, at, To::Group, frame, outside);
        } else if let Course::Relay(to) = course {
            self.relay(index, at, to, frame, outside);
        } else {
            self.calendar.push(at, Class::Arrival, radio, event);
        }
    }

    /// Relays a station's frame through the access point.
    fn relay(&mut self, index: usize, at: Instant, to: To, frame: Frame, outside: &mut impl Outside) {
        let octets = outside.octets(&frame);
        let body = body_octets(octets, frame.segment_octets(frame.first));
        let lane = if self.radios[index].settings.qos { category(octets) } else { 0 };
        let waiting = Waiting { frame: Some(frame), ..Waiting::new(Kind::Data, to, body) };
        self.enqueue(index, lane, at, waiting, outside);
    }
}
