//! Frames of a node's 802.11 stack in the transmit queues.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::bss::Cell;
use crate::medium::header::Header;
use crate::medium::phy::Channel;
use crate::medium::radio::{Kind, Radio, RadioId, To, Waiting};
use crate::medium::wlan::{Attempt, MAX_STEPS, TxRequest, TxStatus};
use crate::medium::{Medium, Outside};
use crate::time::Instant;

/// Largest frame without frame check sequence: header with four addresses, QoS and HT control,
/// the largest body, and 16 octets of encryption (802.11-2020 9.2.4.8.1, CCMP).
const LARGEST_MPDU: u32 = 30 + 2 + 4 + 2304 + 16;

/// What the low MAC has to know about a queued frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Mpdu {
    request: TxRequest,
    used: [u8; MAX_STEPS],
    /// The channel to send it on.
    pub(in crate::medium) channel: Channel,
    /// Receiver address and transmitter address.
    pub(in crate::medium) addresses: [[u8; 6]; 2],
    /// The frame is sent once, and its receivers do not acknowledge it.
    pub(in crate::medium) no_ack: bool,
    /// What it says about the power management of its sender ([`Header::says_dozing`]).
    pub(in crate::medium) dozes: Option<bool>,
    /// Signal of the acknowledgment in dBm.
    pub(in crate::medium) ack_dbm: Option<i8>,
}

impl Mpdu {
    /// The step of the retry chain for the next transmission; `None` at its end.
    fn step(&self) -> Option<(usize, Attempt)> {
        let steps = self.request.attempts.iter().map_while(|step| *step).zip(self.used).enumerate();
        steps.filter(|(_, (step, used))| *used < step.tries).map(|(at, (step, _))| (at, step)).next()
    }

    /// Rate of the next transmission.
    pub(in crate::medium) fn rate(&self) -> Option<u8> {
        self.step().map(|(_, step)| step.rate)
    }

    /// True if a request-to-send precedes the next transmission.
    pub(in crate::medium) fn announces(&self) -> bool {
        self.step().is_some_and(|(_, step)| step.rts)
    }

    /// Counts a transmission, or a request-to-send without an answer.
    pub(in crate::medium) fn count(&mut self) {
        if let Some((at, _)) = self.step() {
            self.used[at] += 1;
        }
    }

    /// The outcome so far.
    pub(in crate::medium) fn status(&self) -> TxStatus {
        let mut attempts = [None; MAX_STEPS];
        for ((out, step), tries) in attempts.iter_mut().zip(self.request.attempts).zip(self.used) {
            *out = step.filter(|_| tries > 0).map(|step| Attempt { tries, ..step });
        }
        TxStatus {
            cookie: self.request.cookie,
            attempts,
            acknowledged: self.ack_dbm.is_some(),
            ack_dbm: self.ack_dbm.unwrap_or(0),
        }
    }
}

impl Radio {
    /// The channel that a lane's first frame needs, if the radio is tuned to another one.
    pub(in crate::medium) fn channel_asked(&self, lane: usize) -> Option<Channel> {
        let asked = self.lanes[lane].queue.front()?.mpdu.as_ref()?.channel;
        self.wideband.as_ref().is_some_and(|wideband| wideband.tuned != asked).then_some(asked)
    }
}

impl Medium {
    /// Offers an 802.11 frame of a node to its radio at `now`. The medium takes over the caller's
    /// reference to the buffer, and reports one [`TxStatus`].
    pub fn offer_wlan(
        &mut self,
        id: RadioId,
        now: Instant,
        frame: Frame,
        mut request: TxRequest,
        outside: &mut impl Outside,
    ) {
        self.pass(now);
        let index = id.index();
        let asked = self.radios[index].wideband.as_ref().and_then(|wideband| wideband.channel(request.mhz));
        let policed =
            asked.filter(|_| self.radios[index].policer.is_some() && self.radios[index].switched_on);
        let refused = policed.is_some_and(|channel| {
            let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
            self.refuses_names(id, now, channel, octets)
        });
        let radio = &self.radios[index];
        let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
        let why = match (Header::parse(octets), asked) {
            (None, _) => Why::Malformed,
            _ if !radio.switched_on => Why::RadioOff,
            _ if refused => Why::OutsideGrant,
            _ if frame.length > LARGEST_MPDU => Why::TooBig,
            // No receiver of the medium's bands hears it.
            (_, None) => Why::OutOfRange,
            (Some(header), Some(channel)) => {
                request.attempts = radio.chain(request.attempts);
                if self.consolidates(index, frame, channel, &request, outside) {
                    return;
                }
                self.read_departure(id, &header);
                self.asked_by_stack(index, &header, channel);
                let radio = &self.radios[index];
                let lane = header.category().min(radio.lanes.len() - 1);
                let group = header.receiver[0] & 1 == 1;
                let mpdu = Mpdu {
                    request,
                    used: [0; MAX_STEPS],
                    channel,
                    addresses: [header.receiver, header.transmitter],
                    no_ack: request.no_ack || group,
                    dozes: header.says_dozing(),
                    ack_dbm: None,
                };
                let waiting = Waiting {
                    frame: Some(frame),
                    mpdu: Some(mpdu),
                    sequence: Some(header.sequence >> 4),
                    fragment: u8::try_from(header.sequence & 15).unwrap_or(0),
                    ..Waiting::new(Kind::Wlan, if group { To::Group } else { To::Nobody }, frame.length)
                };
                return self.enqueue(index, lane, now, waiting, outside);
            }
        };
        outside.dropped(id, now, frame, why);
        outside.transmitted(id, now, &TxStatus { cookie: request.cookie, ..TxStatus::default() });
    }

    /// Tunes a radio to the channel of a lane's first frame, if it is in no exchange.
    pub(in crate::medium) fn follow_request(&mut self, index: usize, lane: usize) {
        let radio = &self.radios[index];
        if let (Some(channel), false) = (radio.channel_asked(lane), radio.engaged()) {
            self.tune(index, channel);
        }
    }

    /// Looks up the receiver of a lane's first frame if it has an address of a stack, which may have
    /// changed its addresses.
    pub(in crate::medium) fn look_up_receiver(&mut self, index: usize, lane: usize) {
        let radio = &self.radios[index];
        let waiting = &radio.lanes[lane].queue[0];
        let address = match (&waiting.mpdu, &radio.cell) {
            _ if waiting.to == To::Group => return,
            (Some(mpdu), _) => mpdu.addresses[0],
            (None, Cell::Station(station)) if self.is_stack(station.peer()) => station.network(),
            (None, _) => match waiting.receiver {
                Some(address) => address,
                None => return,
            },
        };
        let known = self.addresses.get(&address).map_or(To::Nobody, |&radio| To::Radio(radio));
        self.radios[index].lanes[lane].queue[0].to = known;
    }
}

impl Radio {
    /// The retry chain with rates that the radio has, and at least one transmission.
    fn chain(&self, asked: [Option<Attempt>; MAX_STEPS]) -> [Option<Attempt>; MAX_STEPS] {
        let highest = u8::try_from(self.phy.rates.len() - 1).unwrap_or(u8::MAX);
        let steps = asked.map(|step| step.map(|step| Attempt { rate: step.rate.min(highest), ..step }));
        if steps.iter().map_while(|step| *step).any(|step| step.tries > 0) {
            return steps;
        }
        [Some(Attempt { rate: self.group_rate(), tries: 1, rts: false }), None, None, None]
    }
}
