//! How the guest is notified of returned buffers.

use std::os::fd::{AsFd, BorrowedFd};

use super::device::{Device, DeviceType, SEND};
use super::message;
use super::notifier::Notifier;

/// The way of a queue's notifications to the guest.
#[derive(Debug, Default)]
pub(super) enum Call {
    /// None yet, or the guest polls its queue.
    #[default]
    None,
    /// By a descriptor of the guest.
    Descriptor(Notifier),
    /// By a message on the back end's channel; true while one is to be sent.
    InBand(bool),
}

impl Call {
    /// Notifies the guest; returns false if its descriptor is closed.
    pub fn notify(&mut self) -> bool {
        match self {
            Self::None => true,
            Self::Descriptor(notifier) => notifier.notify(),
            Self::InBand(wanted) => {
                *wanted = true;
                true
            }
        }
    }

    /// Whether the guest may miss a notification.
    pub fn may_be_missed(&self) -> bool {
        matches!(self, Self::Descriptor(notifier) if notifier.may_be_missed())
    }

    /// Whether a message is to be sent, which from now on counts as sent.
    pub fn take(&mut self) -> bool {
        if let Self::InBand(wanted) = self { std::mem::take(wanted) } else { false }
    }
}

/// What a guest is notified of by a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Its configuration has changed.
    Config,
    /// Buffers of the queue with this number were returned.
    Queue(u32),
}

impl Notice {
    /// Its message.
    #[must_use]
    pub fn message(self) -> Vec<u8> {
        match self {
            Self::Config => message::config_change(true).to_vec(),
            Self::Queue(number) => message::queue_call(number).to_vec(),
        }
    }

    /// Its number in the memory that a guest in virtual time shares.
    #[must_use]
    pub fn number(self) -> u32 {
        match self {
            Self::Config => CONFIG,
            Self::Queue(number) => number,
        }
    }
}

/// In place of the number of a queue (`UM_TIMETRAVEL_WINDOW_CONFIG`).
const CONFIG: u32 = 0xff;

impl<T: DeviceType> Device<T> {
    /// The next notice to the front end, with the channel for its message and for the answer; None if
    /// there is none.
    pub fn take_call(&mut self) -> Option<(BorrowedFd<'_>, Notice)> {
        let notice = if std::mem::take(&mut self.changed) {
            Notice::Config
        } else {
            let place = self.sides.iter_mut().position(|side| side.call.take())?;
            Notice::Queue(if place == SEND { T::SENDS_ON } else { 1 - T::SENDS_ON })
        };
        Some((self.channel.as_ref()?.as_fd(), notice))
    }
}
