//! What keeps a radio from sending although the channel is idle: its card, its slice, its windows.

use crate::medium::slices::periodic::Table;
use crate::medium::slices::policer::Policer;
use crate::medium::slices::share::Share;
use crate::medium::slices::windows::Windows;

/// What keeps a radio from sending.
pub(in crate::medium) struct Hold {
    /// The card that it shares with others, and whether that keeps it from contending.
    pub(in crate::medium) card: Option<u32>,
    pub(in crate::medium) held: bool,
    /// Checks the transmissions of a slice's radio.
    pub(in crate::medium) policer: Option<Box<Policer>>,
    /// Its part in the weighted airtime of its slice.
    pub(in crate::medium) share: Option<Share>,
    /// Transmission windows, and whether it is in one; true without windows.
    pub(in crate::medium) windows: Option<Box<Windows>>,
    pub(in crate::medium) in_window: bool,
    /// Counts changes of its windows; identifies edges of earlier ones as obsolete.
    pub(in crate::medium) window_epoch: u32,
    /// The windows of slots that it does not wait for.
    pub(in crate::medium) watched: Option<Table>,
}

impl Hold {
    /// That of a radio with these windows, in one of them or not.
    pub(in crate::medium) fn new(
        windows: Option<Box<Windows>>,
        in_window: bool,
        watched: Option<Table>,
    ) -> Self {
        Self {
            card: None,
            held: false,
            policer: None,
            share: None,
            windows,
            in_window,
            window_epoch: 0,
            watched,
        }
    }
}
