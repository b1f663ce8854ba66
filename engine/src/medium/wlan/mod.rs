//! Radios that carry IEEE 802.11 frames of their node's own stack (`device: wlan`).
//!
//! The radio does what hardware does: it contends for the channel, sends at the rates of a
//! multi-rate retry chain, acknowledges frames to the addresses of its node, repeats frames without
//! an acknowledgment, and removes duplicates. A station contends with the EDCA parameters of its
//! access point. The node's stack does the rest. A frame of such a
//! radio is an 802.11 MPDU without frame check sequence in an ordinary [`crate::frame::Frame`].
//!
//! | direction | call |
//! | --- | --- |
//! | node to radio | [`crate::Engine::transmit`], [`crate::Engine::set_wlan_addresses`], [`crate::Engine::set_wlan_listening`] |
//! | radio to node | [`crate::Egress::receive_wlan`], [`crate::Egress::transmitted`] |

pub mod header;
mod interworking;
pub(super) mod listening;
pub mod management;
pub(super) mod status;
pub mod translation;
mod tuning;

pub use status::{Attempt, Listening, MAX_STEPS, RxStatus, TxRequest, TxStatus};

use crate::calendar::Class;
use crate::medium::mac::lane::Stage;
use crate::medium::outside::Outside;
use crate::medium::phy::{Channel, Phy};
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::{Event, Medium};
use crate::time::Instant;
use status::dbm;

impl Medium {
    /// Sets the addresses to which a radio acknowledges frames; false if another radio uses one of
    /// them, and keeps it.
    pub fn set_wlan_addresses(&mut self, id: RadioId, addresses: &[[u8; 6]]) -> bool {
        self.wake(id.index());
        self.addresses.retain(|_, radio| *radio != id);
        if let Some(wideband) = &mut self.core.radios.awake(id.index()).wideband {
            wideband.left.retain(|left| addresses.contains(left));
        }
        if addresses.is_empty() {
            self.forget_access_point(id.index());
        }
        let mut own = true;
        for &address in addresses {
            own &= *self.addresses.entry(address).or_insert(id) == id;
        }
        own
    }

    /// Records the signal of an acknowledgment for the status of the frame.
    pub(in crate::medium) fn note_answer(&mut self, index: usize, what: Kind, ear: &Heard) {
        let radio = self.core.radios.awake(index);
        let Stage::Awaiting(lane, ..) = radio.exchange.stage else { return };
        let first = radio.contention.lanes[usize::from(lane)].queue.front_mut();
        if let (Some(mpdu), Kind::Ack) = (first.and_then(|first| first.mpdu.as_mut()), what) {
            mpdu.ack_dbm = Some(dbm(ear.power));
        }
    }

    /// Accepts a frame for this radio of a stack, or for all.
    pub(in crate::medium) fn take_mpdu(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        self.remember(at, sending, ear, outside);
        let unicast = !(sending.to == To::Group || sending.no_ack);
        let copies = match sending.frame {
            // A management frame of an Ethernet radio comes from no node.
            None => 1,
            Some(_) if unicast => u32::from(self.mark_arrived(sending)),
            Some(_) => {
                sending.taken += 1;
                0
            }
        };
        self.hand_over(at, sending, ear, copies, outside);
    }

    /// Hands a frame for others to a stack that wants all frames.
    pub(in crate::medium) fn overhear(
        &mut self,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let radio = &self.core.radios[ear.radio as usize];
        if radio.wideband.is_some() && radio.monitor {
            self.hand_over(at, sending, ear, 1, outside);
        }
    }

    /// The physical layer of a radio on a channel.
    pub(in crate::medium) fn layer_on(&self, index: usize, channel: Channel) -> &'static Phy {
        let radio = &self.core.radios[index];
        radio.wideband.as_ref().map_or(radio.layer.phy, |wideband| wideband.phy.on(channel))
    }

    /// Delivers a frame to the node's stack; so many copies of it were not counted elsewhere.
    fn hand_over(
        &mut self,
        at: Instant,
        sending: &Sending,
        ear: &Heard,
        copies: u32,
        outside: &mut impl Outside,
    ) {
        let frame = match sending.frame {
            Some(frame) if sending.kind == Kind::Wlan => {
                outside.share(&frame);
                outside.copied(&frame, copies);
                frame
            }
            old => {
                let made = self.as_mpdu(sending, outside);
                match old {
                    Some(old) if copies == 0 => outside.resized(&old, &made),
                    _ => outside.copied(&made, copies),
                }
                made
            }
        };
        let octets = outside.octets(&frame).get(..frame.length as usize).unwrap_or(&[]);
        self.read_access_parameters(ear.radio as usize, octets);
        let sent = &self.core.radios[sending.from as usize].layer.phy.rates[usize::from(sending.rate)];
        let phy = self.layer_on(ear.radio as usize, sending.channel);
        let length = sending.end.since(sending.start);
        let status = RxStatus {
            mhz: sending.channel.mhz,
            rate: phy.rate_index(u64::from(sent.bits_per_second)).unwrap_or(0),
            signal_dbm: dbm(ear.power),
            tsf_us: at.nanos().saturating_sub(length.nanos()) / 1_000,
            retry: sending.retry,
        };
        let event = Event::DeliverWlan { radio: ear.radio, frame, status };
        self.core.calendar.push(at, Class::Arrival, ear.radio, event);
    }
}
