//! What all parts of a medium share: time, radios, and who reaches whom.

use crate::calendar::Calendar;
use crate::medium::Event;
use crate::medium::cluster::radios::Radios;
use crate::medium::reach::Reach;
use crate::medium::timers::Timers;
use crate::time::Instant;

/// The shared part of a medium.
pub(super) struct Core {
    pub(super) now: Instant,
    pub(super) radios: Radios,
    pub(super) reach: Reach,
    pub(super) calendar: Calendar<Event>,
    /// The next timer of each radio.
    pub(super) timers: Timers,
}

impl Core {
    /// A core without radios.
    pub(super) fn new(reach: Reach) -> Self {
        Self {
            now: Instant::ZERO,
            radios: Radios::default(),
            reach,
            calendar: Calendar::default(),
            timers: Timers::default(),
        }
    }

    /// Starts the timer of a radio again after a change of its state.
    pub(super) fn arm(&mut self, index: usize) {
        self.timers.set(index, self.radios[index].next_at());
    }

    /// Updates the carrier sense of a radio, which is awake.
    pub(super) fn listen(&mut self, index: usize, at: Instant) {
        let radio = self.radios.awake(index);
        if radio.sense_anew(at) {
            self.timers.set(index, radio.next_at());
        }
    }
}
