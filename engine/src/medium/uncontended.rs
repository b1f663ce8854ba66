//! A medium without channel access: every radio transmits at once, at a rate of its own, and no
//! frame collides.
//!
//! This is the wireless network of NET (University of Stuttgart, ISCC 2007): 11 Mbit/s in each
//! direction of each pair of nodes, frame loss on reception for each sender, derived from the
//! distance of the moving nodes, no MAC effects. It is an unreliable datagram service: no carrier
//! sense, no acknowledgment, no repetition, no header but the frame's own.
//!
//! * A radio serializes its frames one after another, in `8 (octets + overhead) / rate` seconds
//!   each; the fraction of a nanosecond carries over while its queue is not empty. It is full duplex:
//!   what it receives, and from how many radios at once, does not matter.
//! * When the last bit has left, the loss of each receiver is drawn with the probability at the
//!   distance of that instant, combined with the frame error rate of the pair:
//!   `1 - (1 - p(d)) (1 - e)`.
//! * A frame that is not lost arrives after `d / c`.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::calendar::Class;
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::link::serializer::Serializer;
use crate::medium::outside::Outside;
use crate::medium::propagation::LIGHT;
use crate::medium::radio::airtime::Doing;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::radio::{Membership, RateSettings};
use crate::medium::settings::range::within;
use crate::medium::types::{RadioId, To};
use crate::medium::{Event, Medium};
use crate::settings::Rate;
use crate::time::{Instant, Span};

/// Channel access of the radios of a medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AccessSettings {
    /// IEEE 802.11: distributed coordination function, or EDCA.
    #[default]
    Dcf,
    /// None: radios do not contend, and frames do not collide.
    None {
        /// Frame loss by distance: metres, ascending from 0 on, and probability, 0 to 1. Linear in
        /// between; the first value up to the first distance; 1 beyond the last.
        loss: Vec<(f64, f64)>,
        /// Octets that each frame takes beside those from its Ethernet header on, 0 to 10000.
        overhead_octets: u32,
    },
}

/// Largest overhead in octets.
const MOST_OVERHEAD: u32 = 10_000;

/// State of a medium without channel access.
pub(super) struct Uncontended {
    loss: Vec<(f64, f64)>,
    overhead: u64,
    senders: Vec<Sender>,
}

/// The transmit queue of a radio; the first frame is in transmission.
struct Sender {
    queue: VecDeque<Frame>,
    serializer: Serializer,
    /// End of the last transmission.
    end: Instant,
}

impl AccessSettings {
    /// The state of a medium without radios; `None` for DCF.
    pub(super) fn build(&self) -> Result<Option<Uncontended>, SettingsError> {
        let Self::None { loss, overhead_octets } = self else { return Ok(None) };
        within("access.none.overhead_octets", f64::from(*overhead_octets), 0.0, f64::from(MOST_OVERHEAD))?;
        let wrong = |value: String, range: &str| SettingsError::Law {
            setting: "access.none.loss",
            value,
            range: range.to_owned(),
        };
        if loss.is_empty() {
            return Err(wrong("an empty table".to_owned(), "tables with at least one distance"));
        }
        for &(metres, probability) in loss {
            within("access.none.loss distance", metres, 0.0, 1e9)?;
            within("access.none.loss rate", probability, 0.0, 1.0)?;
        }
        if let Some(pair) = loss.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(wrong(
                format!("{} m after {} m", pair[1].0, pair[0].0),
                "tables with ascending distances",
            ));
        }
        Ok(Some(Uncontended {
            loss: loss.clone(),
            overhead: u64::from(*overhead_octets),
            senders: Vec::new(),
        }))
    }
}

impl Uncontended {
    /// Takes over the settings of another one; the queues stay.
    pub(super) fn follow(&mut self, other: Self) {
        (self.loss, self.overhead) = (other.loss, other.overhead);
    }

    /// Probability that a frame is lost over this distance in metres.
    fn loss_at(&self, metres: f64) -> f64 {
        let after = self.loss.partition_point(|&(distance, _)| distance < metres);
        match (after.checked_sub(1).map(|before| self.loss[before]), self.loss.get(after)) {
            (_, None) => 1.0,
            (None, Some(&(_, first))) => first,
            (Some((near, low)), Some(&(far, high))) => low + (high - low) * (metres - near) / (far - near),
        }
    }

    pub(super) fn add(&mut self, bits_per_second: u64, now: Instant) {
        let serializer = Serializer::new(&Rate::BitsPerSecond(bits_per_second), now, now);
        self.senders.push(Sender { queue: VecDeque::new(), serializer, end: now });
    }

    /// Changes the rate of a radio, from its next frame on.
    pub(super) fn set_rate(&mut self, index: usize, bits_per_second: u64, now: Instant) {
        let sender = &mut self.senders[index];
        sender.serializer = Serializer::new(&Rate::BitsPerSecond(bits_per_second), now, sender.end.max(now));
    }

    /// All frames in the queues.
    pub(super) fn frames(&self) -> impl Iterator<Item = &Frame> {
        self.senders.iter().flat_map(|sender| &sender.queue)
    }
}

/// The rate of a radio on a medium without channel access; `None` on one with DCF.
///
/// # Errors
/// If the rate is of the wrong sort for its medium.
pub(super) fn rate_of(
    radio: &str,
    rate: &RateSettings,
    uncontended: bool,
) -> Result<Option<u64>, SettingsError> {
    let refused = |value: String, range| {
        Err(SettingsError::Range { radio: radio.to_owned(), setting: "rate", value, range })
    };
    match rate {
        RateSettings::Unmodulated(bits_per_second) if uncontended => Ok(Some(*bits_per_second)),
        RateSettings::Unmodulated(bits_per_second) => {
            refused(bits_per_second.to_string(), "the rates of its physical layer, as its medium has DCF")
        }
        other if uncontended => {
            refused(format!("{other:?}"), "unmodulated rates, as its medium has no channel access")
        }
        _ => Ok(None),
    }
}

/// Refuses a radio of a network, or of an 802.11 stack: without channel access there are no management
/// frames.
pub(super) fn check_membership(radio: &str, membership: &Membership) -> Result<(), SettingsError> {
    match membership {
        Membership::AdHoc { ssid, .. } if ssid.is_empty() => Ok(()),
        other => Err(SettingsError::Range {
            radio: radio.to_owned(),
            setting: "membership",
            value: format!("{other:?}"),
            range: "ad-hoc radios without a name, as its medium has no channel access",
        }),
    }
}

impl Medium {
    /// Sets the channel access of a medium without radios.
    ///
    /// # Errors
    /// Names the invalid setting.
    pub fn set_access(&mut self, access: &AccessSettings) -> Result<(), SettingsError> {
        debug_assert!(self.core.radios.is_empty(), "radios are made for the access of their medium");
        self.uncontended = access.build()?.map(Box::new);
        Ok(())
    }

    /// Queues one frame of a radio without channel access.
    pub(super) fn offer_uncontended(
        &mut self,
        id: RadioId,
        now: Instant,
        frame: Frame,
        outside: &mut impl Outside,
    ) {
        let radio = self.core.radios.awake(id.index());
        if !radio.switched_on {
            return outside.dropped(id, now, frame, Why::RadioOff);
        }
        if radio.waiting >= radio.settings.tail_drop {
            radio.counts.refused += 1;
            return outside.dropped(id, now, frame, Why::RadioQueueFull);
        }
        radio.waiting += 1;
        let first = radio.waiting == 1;
        let Some(state) = &mut self.uncontended else { return };
        state.senders[id.index()].queue.push_back(frame);
        if first {
            self.start_sending(id, now, false);
        }
    }

    /// Starts to transmit the first frame of a queue; `behind` if another one has just ended.
    fn start_sending(&mut self, id: RadioId, now: Instant, behind: bool) {
        let Some(state) = &mut self.uncontended else { return };
        let overhead = state.overhead;
        let Sender { queue, serializer, end: last } = &mut state.senders[id.index()];
        let Some(frame) = queue.front() else { return };
        let end = serializer.send(now, behind, u64::from(frame.segment_octets(frame.first)) + overhead);
        *last = end;
        let radio = self.core.radios.awake(id.index());
        radio.counts.sent += 1;
        radio.account.turn(now, Doing::Transmitting, false);
        self.core.calendar.push(end, Class::Release, id.0, Event::Left { radio: id.0 });
    }

    /// The last bit of a radio's first frame has left.
    pub(super) fn left(&mut self, now: Instant, radio: u32, outside: &mut impl Outside) {
        let id = RadioId(radio);
        let Some(state) = &mut self.uncontended else { return };
        let Some(frame) = state.senders[id.index()].queue.pop_front() else { return };
        self.core.radios.awake(id.index()).waiting -= 1;
        self.core.radios.awake(id.index()).account.turn(now, Doing::Idle, false);
        if self.core.radios[id.index()].switched_on {
            self.spread(id, now, frame, outside);
        } else {
            outside.dropped(id, now, frame, Why::RadioOff);
        }
        outside.finished(id, now);
        // What `finished` offered may have started already.
        if self.core.radios[id.index()].account.is(Doing::Idle) {
            self.start_sending(id, now, true);
        }
    }

    /// Passes a frame on to its receivers.
    fn spread(&mut self, id: RadioId, now: Instant, frame: Frame, outside: &mut impl Outside) {
        let to = self.address(id, outside.octets(&frame));
        let receivers = match to {
            Some(To::Group) => 0..self.core.radios.len(),
            Some(To::Radio(one)) => one.index()..one.index() + 1,
            _ => 0..0,
        };
        let (mut taken, mut lost) = (0, false);
        for receiver in receivers.filter(|&receiver| receiver != id.index()) {
            match self.reception(id.index(), receiver, now) {
                Reception::Arrives(after) => {
                    outside.share(&frame);
                    self.core.radios.awake(receiver).counts.received += 1;
                    let receiver = u32::try_from(receiver).unwrap_or(u32::MAX);
                    let event = Event::Deliver { radio: receiver, frame };
                    self.core.calendar.push(now + after, Class::Arrival, receiver, event);
                    taken += 1;
                }
                Reception::Lost => {
                    self.core.radios.awake(receiver).counts.broken += 1;
                    lost = true;
                }
                Reception::OutOfRange => {}
            }
        }
        match taken {
            0 => outside.dropped(id, now, frame, if lost { Why::RandomLoss } else { Why::OutOfRange }),
            _ => {
                outside.copied(&frame, taken - 1);
                outside.release(frame);
            }
        }
    }

    /// Decides whether a frame reaches one receiver. Nothing is drawn for a radio out of range, so
    /// that it changes nothing for the others.
    fn reception(&mut self, from: usize, to: usize, now: Instant) -> Reception {
        if !self.core.radios[to].switched_on {
            return Reception::OutOfRange;
        }
        let place = |places: &mut Vec<super::Place>, index: usize| places[index].mobility.position(now);
        let metres =
            place(&mut self.core.reach.places, from).distance(place(&mut self.core.reach.places, to));
        let Some(state) = &self.uncontended else { return Reception::OutOfRange };
        let pair = (u32::try_from(from).unwrap_or(u32::MAX), u32::try_from(to).unwrap_or(u32::MAX));
        let of_pair = self.errors.of_pair(pair.0, pair.1).unwrap_or(0.0);
        let loss = 1.0 - (1.0 - state.loss_at(metres)) * (1.0 - of_pair);
        if loss >= 1.0 {
            return Reception::OutOfRange;
        }
        if loss > 0.0 && self.core.radios.awake(from).random.chance(loss) {
            return Reception::Lost;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 10^10 m, positive
        let after = (metres / LIGHT * 1e9).round() as u64;
        Reception::Arrives(Span::from_nanos(after))
    }

    /// Drops the frames that wait in the queue of a radio that is off; the one in transmission is
    /// dropped at its end.
    pub(super) fn flush_uncontended(&mut self, index: usize, outside: &mut impl Outside) {
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        let Some(state) = &mut self.uncontended else { return };
        let queue = &mut state.senders[index].queue;
        for frame in queue.drain(1.min(queue.len())..) {
            self.core.radios.awake(index).waiting -= 1;
            outside.dropped(id, self.core.now, frame, Why::RadioOff);
        }
    }
}

/// What happens to a frame at one receiver.
enum Reception {
    Arrives(Span),
    Lost,
    OutOfRange,
}
