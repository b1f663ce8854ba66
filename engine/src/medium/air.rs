//! Frames on the air: their receivers, their start and end.

use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::medium::mac::ampdu::Part;
use crate::medium::mac::lane::Stage;
use crate::medium::outside::Outside;
use crate::medium::radio::airtime::Doing;
use crate::medium::radio::reception::Arrived;
use crate::medium::signal::{Heard, Sending, Signal};
use crate::medium::types::{RadioId, To};
use crate::medium::{Event, Medium};
use crate::time::Instant;

/// Frames on the air by number; numbers are reused.
#[derive(Default)]
pub(super) struct Air {
    sendings: Vec<Option<Sending>>,
    free: Vec<u32>,
    /// Lists of receivers, kept to reuse their allocations.
    lists: Vec<Vec<Heard>>,
    /// Lists of MPDUs, for the same reason.
    parts: Vec<Vec<Part>>,
}

impl Air {
    /// A number for one more frame.
    fn next_number(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| u32::try_from(self.sendings.len()).unwrap_or(u32::MAX))
    }

    /// Gives a number back.
    fn release(&mut self, number: u32) {
        self.free.push(number);
    }

    fn put(&mut self, number: u32, sending: Sending) {
        let index = number as usize;
        if index == self.sendings.len() {
            self.sendings.push(Some(sending));
        } else {
            self.sendings[index] = Some(sending);
        }
    }

    fn take(&mut self, number: u32) -> Option<Sending> {
        self.sendings[number as usize].take()
    }

    /// The frame with this number, if it is on the air.
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Sending> {
        self.sendings.get_mut(number as usize)?.as_mut()
    }

    /// All frames on the air, with their numbers.
    fn sendings(&mut self) -> impl Iterator<Item = (u32, &mut Sending)> {
        (0u32..).zip(&mut self.sendings).filter_map(|(number, sending)| Some((number, sending.as_mut()?)))
    }

    /// True if a radio for which `is` holds is sending.
    pub(super) fn any_from(&self, is: impl Fn(u32) -> bool) -> bool {
        self.sendings.iter().flatten().any(|sending| is(sending.from))
    }

    /// Counts one more receiver that lost this frame to interference.
    fn count_interfered(&mut self, number: u32) {
        if let Some(sending) = self.get_mut(number) {
            sending.interfered += 1;
        }
    }

    /// An empty list of receivers.
    pub(super) fn take_list(&mut self) -> Vec<Heard> {
        self.lists.pop().unwrap_or_default()
    }

    /// An empty list of MPDUs.
    pub(super) fn take_parts(&mut self) -> Vec<Part> {
        self.parts.pop().unwrap_or_default()
    }

    /// Keeps a list of MPDUs for later.
    fn keep_parts(&mut self, mut parts: Vec<Part>) {
        if parts.capacity() > 0 {
            parts.clear();
            self.parts.push(parts);
        }
    }

    /// Keeps a list for later.
    pub(super) fn keep_list(&mut self, list: Vec<Heard>) {
        self.lists.push(list);
    }
}

impl Medium {
    /// Transmits a frame from radio `from` at `now`; all radios in range begin to receive it.
    pub(super) fn transmit(&mut self, now: Instant, mut sending: Sending) {
        let own = sending.from;
        let from = own as usize;
        let radio = self.core.radios.awake(from);
        radio.overheard = 0;
        sending.decoder = radio.layer.decoder;
        let form = &radio.layer.phy.rates[usize::from(sending.rate)];
        sending.start = now;
        sending.channel = self.core.reach.places[from].channel;
        sending.end = now + form.airtime(sending.octets);
        if let Some(policer) = &mut radio.hold.policer {
            policer.use_channel(sending.channel, sending.end.since(now));
        }
        if let Some(share) = radio.hold.share {
            self.charge(share, now, sending.end.since(now));
        }
        let number = self.air.next_number();
        let signal = Signal::new(number, &sending, form);
        let mut heard = self.air.take_list();
        sending.cluster = self.start_in_cluster(now, &signal, sending.to, &mut heard);

        // A frame that the sender was receiving is lost.
        let radio = self.core.radios.awake(from);
        radio.transmitting = true;
        if radio.reception.lose() {
            radio.counts.broken += 1;
        }
        if let Some(wideband) = &mut radio.wideband {
            wideband.lose_others();
        }
        radio.book(now, true);
        self.core.listen(from, now);
        let end = sending.end;
        self.monitor.begin(sending.channel, now, end.since(now));
        self.clusters.count_individual(heard.len());
        for ear in &mut heard {
            let listener = self.core.radios.awake(ear.radio as usize);
            ear.power *= self.fading.gain(&mut listener.random);
            match listener.hear_on(&signal, ear, sending.channel, self.errors.decoders()) {
                Arrived::Left(old) => self.air.count_interfered(old),
                Arrived::Both(old) => {
                    self.air.count_interfered(old);
                    sending.interfered += 1;
                }
                Arrived::Missed => sending.interfered += 1,
                Arrived::Followed | Arrived::Unheard => {}
            }
            self.core.listen(ear.radio as usize, Signal::arrival(ear, now));
        }
        sending.heard = heard;
        self.air.put(number, sending);
        // Frames that end at one instant end in the order of their senders, not of numbers that are reused,
        // so that radios out of reach do not change it.
        self.core.calendar.push(end, Class::Release, own, Event::End(number));
    }

    /// Ends reception of all frames on the air: the radio was retuned.
    pub(super) fn end_receptions(&mut self, index: usize) {
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let radio = self.core.radios.awake(index);
        for (sending, on_air) in self.air.sendings() {
            if let Some(at) = on_air.heard.iter().position(|ear| ear.radio == number) {
                let ear = on_air.heard.remove(at);
                radio.depart_on(self.core.now, sending, ear.power, on_air.channel, self.errors.decoders());
            }
        }
        radio.book(self.core.now, true);
        if let Stage::Awaiting(lane, what, _, true) = radio.exchange.stage {
            // The frame whose end it awaited will not end on this channel.
            radio.exchange.stage = Stage::Awaiting(lane, what, self.core.now, false);
        }
        self.core.listen(index, self.core.now);
        self.core.arm(index);
    }

    /// Ends a transmission; its last symbol propagates to all receivers.
    pub(super) fn end(&mut self, now: Instant, number: u32, outside: &mut impl Outside) {
        let Some(mut sending) = self.air.take(number) else { return };
        let heard = core::mem::take(&mut sending.heard);
        let from = sending.from as usize;
        self.monitor.end(sending.channel, now);
        self.core.radios.awake(from).transmitting = false;
        self.core.radios.awake(from).book(now, false);
        self.transmission_ended(from, &sending, outside);
        self.end_in_cluster(number, sending.cluster);
        for ear in &heard {
            let index = ear.radio as usize;
            let at = Signal::arrival(ear, now);
            let radio = self.core.radios.awake(index);
            radio.overheard =
                if sending.to == To::Radio(RadioId(ear.radio)) { 0 } else { radio.overheard + 1 };
            let (lock, tuned) =
                radio.depart_on(at, number, ear.power, sending.channel, self.errors.decoders());
            if let Some(lock) = lock {
                let whole = if lock.aggregate {
                    self.receives_parts(&mut sending, ear, &lock)
                } else {
                    radio.survives(&lock) && !self.fails(sending.from, ear.radio)
                };
                let radio = self.core.radios.awake(index);
                if tuned {
                    radio.account.turn(at, Doing::Receiving, !whole);
                }
                if self.monitor.is_sniffing() && tuned {
                    self.sniff_all(&sending, Some((ear, whole)), outside);
                }
                if whole && tuned {
                    self.received(at, &mut sending, ear, outside);
                } else if whole {
                    self.pass_on(at, &mut sending, ear, outside);
                } else {
                    if lock.disturbed {
                        sending.interfered += 1;
                    }
                    if tuned {
                        self.broken(index, at, outside);
                    }
                }
            }
            self.core.listen(index, at);
            self.core.arm(index);
        }
        let reached = heard.iter().any(|ear| {
            let meant = match sending.to {
                To::Radio(radio) => radio.number() == ear.radio,
                To::Group => self.belongs(sending.from, ear.radio),
                To::Nobody => false,
            };
            ear.tuned && meant
        });
        if self.monitor.is_sniffing() {
            self.sniff_all(&sending, None, outside);
        }
        self.sleep_after_frame(sending.cluster, &heard);
        self.air.keep_list(heard);
        self.air.release(number);
        self.sent(now, &sending, reached, outside);
        self.air.keep_parts(sending.parts);
        self.core.arm(from);
    }

    /// Draws from the frame error rate of a pair, if one is set.
    fn fails(&mut self, from: u32, to: u32) -> bool {
        let Some(rate) = self.errors.of_pair(from, to) else { return false };
        self.core.radios.awake(to as usize).random.chance(rate)
    }

    /// Drop reason of a broadcast that no radio received, or of a frame that was given up.
    pub(super) fn reason(sending: &Sending, reached: bool) -> Why {
        if sending.interfered > 0 {
            Why::Collision
        } else if reached {
            Why::Noise
        } else {
            Why::OutOfRange
        }
    }
}
