//! Frames in the transmit queues.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::outside::Outside;
use crate::medium::phy::Channel;
use crate::medium::types::{Kind, RadioId, To};
use crate::medium::wlan::status::{Attempt, MAX_STEPS, TxRequest, TxStatus};
use crate::time::Instant;

/// A queued frame.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Waiting {
    pub(in crate::medium) kind: Kind,
    /// The node's frame, for data frames.
    pub(in crate::medium) frame: Option<Frame>,
    pub(in crate::medium) to: To,
    /// Octets of the frame body: LLC and payload of data, elements of management frames.
    pub(in crate::medium) body: u32,
    /// Failed attempts that count to the short and to the long retry limit.
    pub(in crate::medium) short_tries: u8,
    pub(in crate::medium) long_tries: u8,
    /// True if the next transmission repeats an earlier one.
    pub(in crate::medium) repeats: bool,
    /// Total number of transmissions of the frame.
    pub(in crate::medium) tries: u32,
    /// Rate of its last transmission, or of the one announced.
    pub(in crate::medium) rate: Option<u8>,
    /// Sequence number, assigned at its first transmission.
    pub(in crate::medium) sequence: Option<u16>,
    /// Octets of the body acknowledged so far, and the number of the next fragment.
    pub(in crate::medium) done: u32,
    pub(in crate::medium) fragment: u8,
    /// True if the receiver has received it, even if no acknowledgment arrived.
    pub(in crate::medium) arrived: bool,
    /// True while it is part of the A-MPDU under way.
    pub(in crate::medium) joined: bool,
    /// True if a receiver was in range of the last transmission.
    pub(in crate::medium) reached: bool,
    /// Receiver address of a management frame to a stack.
    pub(in crate::medium) receiver: Option<[u8; 6]>,
    /// Present for a frame of the node's 802.11 stack.
    pub(in crate::medium) mpdu: Option<Mpdu>,
}

/// What the low MAC has to know about a queued frame.
#[derive(Clone, Copy, Debug)]
pub(in crate::medium) struct Mpdu {
    pub(super) request: TxRequest,
    pub(super) used: [u8; MAX_STEPS],
    /// The channel to send it on.
    pub(in crate::medium) channel: Channel,
    /// Receiver address and transmitter address.
    pub(in crate::medium) addresses: [[u8; 6]; 2],
    /// The frame is sent once, and its receivers do not acknowledge it.
    pub(in crate::medium) no_ack: bool,
    /// It is a management frame.
    pub(in crate::medium) management: bool,
    /// What it says about the power management of its sender ([`Header::says_dozing`]).
    pub(in crate::medium) dozes: Option<bool>,
    /// Signal of the acknowledgment in dBm.
    pub(in crate::medium) ack_dbm: Option<i8>,
}

impl Mpdu {
    /// The step of the retry chain for the next transmission; `None` at its end.
    pub(super) fn step(&self) -> Option<(usize, Attempt)> {
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

impl Waiting {
    /// Discards a frame that will not be sent any more. If it has arrived, it counts as delivered.
    pub(in crate::medium) fn discard(
        self,
        radio: RadioId,
        at: Instant,
        why: Why,
        outside: &mut impl Outside,
    ) {
        if let Some(mpdu) = self.mpdu {
            outside.transmitted(radio, at, &mpdu.status());
        }
        match self.frame {
            Some(frame) if self.arrived => outside.release(frame),
            Some(frame) => outside.dropped(radio, at, frame, why),
            None => {}
        }
    }

    /// A frame that has not been transmitted yet.
    pub(in crate::medium) fn new(kind: Kind, to: To, body: u32) -> Self {
        Self {
            kind,
            frame: None,
            to,
            body,
            short_tries: 0,
            long_tries: 0,
            repeats: false,
            tries: 0,
            rate: None,
            sequence: None,
            done: 0,
            fragment: 0,
            arrived: false,
            joined: false,
            reached: false,
            receiver: None,
            mpdu: None,
        }
    }
}
