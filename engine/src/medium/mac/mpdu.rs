//! Frames of a node's 802.11 stack in the transmit queues.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::Medium;
use crate::medium::bss::cell::Cell;
use crate::medium::mac::waiting::{Mpdu, Waiting};
use crate::medium::outside::Outside;
use crate::medium::phy::{Channel, Phy};
use crate::medium::radio::Radio;
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::header::{Header, Type};
use crate::medium::wlan::status::{Attempt, MAX_STEPS, TxRequest, TxStatus};
use crate::time::Instant;

/// Largest frame without frame check sequence: header with four addresses, QoS and HT control,
/// the largest body, and 16 octets of encryption (802.11-2020 9.2.4.8.1, CCMP).
const LARGEST_MPDU: u32 = 30 + 2 + 4 + 2304 + 16;

impl Radio {
    /// The channel that a lane's first frame needs, if the radio is tuned to another one.
    pub(in crate::medium) fn channel_asked(&self, lane: usize) -> Option<Channel> {
        let asked = self.contention.lanes[lane].queue.front()?.mpdu.as_ref()?.channel;
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
        let wideband = self.core.radios[index].wideband.as_ref();
        let asked = wideband.and_then(|wideband| wideband.channel(request.mhz));
        let layer = wideband.zip(asked).map(|(wideband, channel)| wideband.phy.on(channel));
        let policed = asked.filter(|_| {
            self.core.radios[index].hold.policer.is_some() && self.core.radios[index].switched_on
        });
        let refused = policed.is_some_and(|channel| {
            let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
            self.refuses_names(id, now, channel, octets)
        });
        let radio = &self.core.radios[index];
        let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
        let why = match (Header::parse(octets), asked) {
            (None, _) => Why::Malformed,
            _ if !radio.switched_on => Why::RadioOff,
            _ if refused => Why::OutsideGrant,
            _ if frame.length > LARGEST_MPDU => Why::TooBig,
            (_, None) => Why::OutsideBand,
            (Some(header), Some(channel)) => {
                request.attempts = radio.chain(request.attempts, layer.unwrap_or(radio.layer.phy));
                if self.consolidates(index, frame, channel, &request, outside) {
                    return;
                }
                self.read_departure(id, &header);
                self.asked_by_stack(index, &header, channel);
                let radio = &self.core.radios[index];
                let lane = header.category().min(radio.contention.lanes.len() - 1);
                let group = header.receiver[0] & 1 == 1;
                let mpdu = Mpdu {
                    request,
                    used: [0; MAX_STEPS],
                    channel,
                    addresses: [header.receiver, header.transmitter],
                    no_ack: request.no_ack || group,
                    management: header.kind() == Some(Type::Management),
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
        if let (Why::OutsideBand, Some(wideband)) = (why, &mut self.core.radios.awake(index).wideband) {
            wideband.count_foreign(request.mhz);
        }
        outside.dropped(id, now, frame, why);
        outside.transmitted(id, now, &TxStatus { cookie: request.cookie, ..TxStatus::default() });
    }

    /// Tunes a radio to the channel of a lane's first frame, if it is in no exchange.
    pub(in crate::medium) fn follow_request(&mut self, index: usize, lane: usize) {
        let radio = &self.core.radios[index];
        if let (Some(channel), false) = (radio.channel_asked(lane), radio.engaged()) {
            self.tune(index, channel);
        }
    }

    /// Looks up the receiver of a lane's first frame if it has an address of a stack, which may have
    /// changed its addresses.
    pub(in crate::medium) fn look_up_receiver(&mut self, index: usize, lane: usize) {
        let radio = &self.core.radios[index];
        let waiting = &radio.contention.lanes[lane].queue[0];
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
        self.core.radios.awake(index).contention.lanes[lane].queue[0].to = known;
    }
}

impl Radio {
    /// The retry chain with rates that the layer of its channel has, and at least one transmission.
    fn chain(&self, asked: [Option<Attempt>; MAX_STEPS], phy: &'static Phy) -> [Option<Attempt>; MAX_STEPS] {
        let highest = u8::try_from(phy.rates.len() - 1).unwrap_or(u8::MAX);
        let steps = asked.map(|step| step.map(|step| Attempt { rate: step.rate.min(highest), ..step }));
        if steps.iter().map_while(|step| *step).any(|step| step.tries > 0) {
            return steps;
        }
        let rate =
            if core::ptr::eq(phy, self.layer.phy) { self.group_rate() } else { phy.lowest(phy.mandatory()) };
        [Some(Attempt { rate, tries: 1, rts: false }), None, None, None]
    }
}
