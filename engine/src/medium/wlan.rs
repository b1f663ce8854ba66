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
//! | node to radio | [`crate::Engine::transmit`], [`crate::Engine::set_wlan_addresses`] |
//! | radio to node | [`crate::Egress::receive_wlan`], [`crate::Egress::transmitted`] |

use super::air::Sending;
use super::radio::{Kind, RadioId, Stage, To};
use super::reach::Heard;
use super::{Event, Medium, Outside};
use crate::calendar::Class;
use crate::math;
use crate::time::Instant;

/// Steps of a retry chain.
pub const MAX_STEPS: usize = 4;

/// One step of a multi-rate retry chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempt {
    /// Index in the rates of the radio's physical layer ([`super::phy::Phy::rates`]).
    pub rate: u8,
    /// Number of transmissions at this rate.
    pub tries: u8,
    /// A request-to-send precedes each of them.
    pub rts: bool,
}

/// What a driver asks for one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxRequest {
    /// Centre frequency of the channel in MHz; the radio tunes to it.
    pub mhz: u16,
    /// The retry chain; steps after the first `None` are ignored. Without any step, the frame is
    /// sent once at the lowest basic rate.
    pub attempts: [Option<Attempt>; MAX_STEPS],
    /// The receiver does not acknowledge the frame. Frames to group addresses never are.
    pub no_ack: bool,
    /// Returned in the status.
    pub cookie: u64,
}

/// Outcome of a request, reported once for each frame, when its exchange has ended or the frame was
/// dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxStatus {
    /// Cookie of the request.
    pub cookie: u64,
    /// Transmissions made at each step; `None` for steps without one. A request-to-send without an
    /// answer counts as a transmission of its frame.
    pub attempts: [Option<Attempt>; MAX_STEPS],
    /// An acknowledgment arrived.
    pub acknowledged: bool,
    /// Signal of the acknowledgment in dBm; 0 without one.
    pub ack_dbm: i8,
}

/// How a frame was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RxStatus {
    /// Centre frequency of the channel in MHz.
    pub mhz: u16,
    /// Index in the rates of the receiver's physical layer.
    pub rate: u8,
    /// Signal in dBm.
    pub signal_dbm: i8,
    /// When its first symbol arrived, in microseconds of the engine's time (TSF).
    pub tsf_us: u64,
    /// The transmission was a repetition: the Retry bit of the frame control field, which the
    /// octets of the frame do not show.
    pub retry: bool,
}

impl Medium {
    /// Sets the addresses to which a radio acknowledges frames; false if another radio uses one of
    /// them, and keeps it.
    pub fn set_wlan_addresses(&mut self, id: RadioId, addresses: &[[u8; 6]]) -> bool {
        self.addresses.retain(|_, radio| *radio != id);
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
    pub(super) fn note_answer(&mut self, index: usize, what: Kind, ear: &Heard) {
        let radio = &mut self.radios[index];
        let Stage::Awaiting(lane, ..) = radio.stage else { return };
        let first = radio.lanes[usize::from(lane)].queue.front_mut();
        if let (Some(mpdu), Kind::Ack) = (first.and_then(|first| first.mpdu.as_mut()), what) {
            mpdu.ack_dbm = Some(dbm(ear.power));
        }
    }

    /// Accepts a frame for this radio of a stack, or for all.
    pub(super) fn take_mpdu(
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

    /// Passes a frame on that is not for this radio, or arrived on a channel it is not tuned to.
    pub(super) fn pass_on(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let radio = &self.radios[ear.radio as usize];
        if radio.wideband.is_none() {
            return;
        }
        if sending.to == To::Group {
            self.take_mpdu(at, sending, ear, outside);
        } else if radio.monitor {
            self.hand_over(at, sending, ear, 1, outside);
        }
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
        let sent = &self.radios[sending.from as usize].phy.rates[usize::from(sending.rate)];
        let phy = self.radios[ear.radio as usize].phy;
        let length = sending.end.since(sending.start);
        let status = RxStatus {
            mhz: sending.channel.mhz,
            rate: phy.rate_index(u64::from(sent.bits_per_second)).unwrap_or(0),
            signal_dbm: dbm(ear.power),
            tsf_us: at.nanos().saturating_sub(length.nanos()) / 1_000,
            retry: sending.retry,
        };
        let event = Event::DeliverWlan { radio: ear.radio, frame, status };
        self.calendar.push(at, Class::Arrival, ear.radio, event);
    }
}

/// Power in dBm, rounded.
pub(super) fn dbm(milliwatts: f64) -> i8 {
    #[allow(clippy::cast_possible_truncation)] // within range
    let dbm = (10.0 * math::log10(milliwatts)).round().clamp(-128.0, 127.0) as i8;
    dbm
}
