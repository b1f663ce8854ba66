//! What a radio of an 802.11 stack hears, and what it acknowledges.
//!
//! The driver of a kernel with the project's patch says on which channel the stack listens, and when
//! it listens nowhere. Then the radio is tuned there, hears what is sent there, and acknowledges it if
//! it has the address. Other drivers say nothing, and only the stack knows when it listens on a channel
//! without sending: in a remain-on-channel period, such as the listen state of Wi-Fi Direct or a
//! responder of Easy Connect, and in a passive scan. For these:
//!
//! | frame to an address of the radio | on the channel of its last transmission | on another one |
//! | --- | --- | --- |
//! | management | handed over, acknowledged | handed over, acknowledged there |
//! | other | handed over, acknowledged unless the address has left its network | handed over |
//!
//! Frames that are no management frames go to the channel of an association alone, so that no
//! acknowledgment is missing. An address has left its network from a deauthentication or disassociation
//! that it sent or received until it sends again. The stack discards what it does not listen to.

use crate::medium::Medium;
use crate::medium::mac::lane::Stage;
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::radio::wideband::{Ear, Home};
use crate::medium::signal::{Heard, Sending};
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::status::Listening;
use crate::time::Instant;

/// What a radio does with a frame that arrives without error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Heed {
    /// Nothing: it is not there, or its stack does not listen.
    Ignores,
    /// It hands the frame over, and does not acknowledge it.
    Hears,
    /// It also acknowledges the frame.
    Answers,
}

impl Medium {
    /// Sets where the stack of a radio listens, as its driver says.
    pub fn set_wlan_listening(&mut self, id: RadioId, listening: Listening) {
        let index = id.index();
        self.wake(index);
        let Some(wideband) = &mut self.core.radios.awake(index).wideband else { return };
        wideband.ear = match listening {
            Listening::Unsaid => Ear::Unsaid,
            Listening::Nowhere => Ear::Nowhere,
            Listening::On(mhz) => Channel::centred(wideband.phy.bands, mhz).map_or(Ear::Nowhere, Ear::On),
        };
        self.come_home(index);
        self.core.arm(index);
    }

    /// What a radio does with a frame on the air.
    pub(in crate::medium) fn heeds(&self, index: usize, sending: &Sending) -> Heed {
        let radio = &self.core.radios[index];
        let Some(wideband) = &radio.wideband else { return Heed::Answers };
        match wideband.ear {
            Ear::Nowhere => Heed::Ignores,
            // The virtual MACs of a card are where it is, in turn.
            Ear::On(channel) if radio.hold.card.is_none() => {
                if channel == sending.channel {
                    Heed::Answers
                } else {
                    Heed::Ignores
                }
            }
            Ear::On(_) | Ear::Unsaid => {
                let receiver = sending.addresses.map(|[receiver, _]| receiver);
                let left = wideband.left.iter().any(|left| receiver.is_none_or(|address| address == *left));
                let expected = wideband.tuned == sending.channel && !left;
                if expected || self.carries_management(sending) { Heed::Answers } else { Heed::Hears }
            }
        }
    }

    /// True if the exchange of a frame on the air is about a management frame.
    fn carries_management(&self, sending: &Sending) -> bool {
        let sender = &self.core.radios[sending.from as usize];
        let Stage::Sending(lane) = sender.exchange.stage else { return false };
        let first = sender.contention.lanes[usize::from(lane)].queue.front();
        first.is_some_and(|first| match first.mpdu {
            Some(mpdu) => mpdu.management,
            None => !matches!(first.kind, Kind::Data | Kind::Doze | Kind::Wake),
        })
    }

    /// Handles a frame that arrived without error on a channel that the radio is not tuned to.
    pub(in crate::medium) fn pass_on(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        let index = ear.radio as usize;
        if self.core.radios[index].wideband.is_none() {
            return;
        }
        let mine = sending.to == To::Radio(RadioId(ear.radio));
        match self.heeds(index, sending) {
            Heed::Ignores => {}
            _ if sending.to == To::Group => self.take_mpdu(at, sending, ear, outside),
            heed if mine => {
                let free = !self.core.radios[index].engaged() && self.core.radios[index].hold.card.is_none();
                self.core.radios.awake(index).counts.received += 1;
                if heed == Heed::Answers && free {
                    self.go_to(index, sending.channel);
                    self.for_me(at, sending, ear, outside);
                    if self.core.radios[index].exchange.answer.is_none() {
                        self.come_home(index);
                    }
                } else {
                    self.take_unanswered(at, sending, ear, outside);
                }
            }
            _ => self.overhear(at, sending, ear, outside),
        }
    }

    /// Hands a frame for this radio over without an acknowledgment.
    pub(in crate::medium) fn take_unanswered(
        &mut self,
        at: Instant,
        sending: &mut Sending,
        ear: &Heard,
        outside: &mut impl Outside,
    ) {
        if !matches!(sending.kind, Kind::Ack | Kind::BlockAck | Kind::Cts | Kind::Rts) {
            self.take_mpdu(at, sending, ear, outside);
        }
    }

    /// Tunes a radio to another channel for one answer.
    fn go_to(&mut self, index: usize, channel: Channel) {
        let radio = self.core.radios.awake(index);
        let knew =
            Some((radio.contention.reserved_until, radio.contention.extended, radio.contention.broken_at));
        if let Some(wideband) = &mut radio.wideband {
            wideband.home = Some(Home { channel: wideband.tuned, knew });
        }
        self.tune(index, channel);
    }

    /// Tunes a radio of a stack to another channel; one in an exchange, at its end.
    pub(in crate::medium) fn tune_when_free(&mut self, index: usize, channel: Channel) {
        let radio = self.core.radios.awake(index);
        match &mut radio.wideband {
            Some(wideband) if radio.exchange.stage != Stage::Free || radio.exchange.answer.is_some() => {
                wideband.home = Some(Home { channel, knew: None });
            }
            _ => self.tune(index, channel),
        }
    }

    /// Tunes a radio that is in no exchange to the channel where it belongs.
    pub(in crate::medium) fn come_home(&mut self, index: usize) {
        let radio = self.core.radios.awake(index);
        let engaged = radio.engaged();
        let Some(wideband) = radio.wideband.as_mut().filter(|_| !engaged) else { return };
        if let Some(Home { channel, knew }) = wideband.home.take() {
            self.tune(index, channel);
            let radio = self.core.radios.awake(index);
            if let Some((reserved_until, extended, broken_at)) = knew {
                radio.contention.reserved_until = radio.contention.reserved_until.max(reserved_until);
                (radio.contention.extended, radio.contention.broken_at) = (extended, broken_at);
                radio.recount(self.core.now);
            }
            return;
        }
        // Frames that wait for another channel go first, as a driver sends them before it leaves.
        match wideband.ear {
            Ear::On(channel)
                if radio.waiting == 0 && radio.hold.card.is_none() && channel != wideband.tuned =>
            {
                self.tune(index, channel);
            }
            _ => {}
        }
    }
}
