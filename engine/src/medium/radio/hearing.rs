//! What a radio does with arriving signals: on the channel that it is tuned to, and on the others of its
//! bands.

use crate::medium::error::Decoder;
use crate::medium::phy::Channel;
use crate::medium::radio::Radio;
use crate::medium::radio::airtime::Doing;
use crate::medium::radio::reception::{Arrived, Lock};
use crate::medium::signal::{Heard, Signal};
use crate::time::Instant;

impl Radio {
    /// Handles the start of a frame on the channel that the radio is tuned to.
    pub(in crate::medium) fn hear(&mut self, signal: &Signal, ear: &Heard, decoders: &[Decoder]) -> Arrived {
        let at = Signal::arrival(ear, signal.start);
        let offered = signal.offered_to(self.layer.phy, ear).filter(|_| !self.transmitting);
        let arrived =
            self.reception.arrive(at, ear.power, offered, self.layer.phy.detect, &self.receiver, decoders);
        if let Arrived::Left(_) | Arrived::Both(_) = arrived {
            self.counts.broken += 1;
            self.account.turn(at, Doing::Receiving, true);
        }
        arrived
    }

    /// Handles the end of a frame on the channel that the radio is tuned to: the lock on it, if any.
    #[inline]
    pub(in crate::medium) fn depart(
        &mut self,
        at: Instant,
        number: u32,
        power: f64,
        decoders: &[Decoder],
    ) -> Option<Lock> {
        self.reception.depart(at, number, power, &self.receiver, decoders)
    }

    /// Handles the start of a frame on channel `sent`. The result is that of the frame's channel.
    pub(in crate::medium) fn hear_on(
        &mut self,
        signal: &Signal,
        ear: &Heard,
        sent: Channel,
        decoders: &[Decoder],
    ) -> Arrived {
        let Some(wideband) = &self.wideband else { return self.hear(signal, ear, decoders) };
        let (tuned, phy, share) = (wideband.tuned, wideband.phy, wideband.share_tuned(sent));
        let on = |channel, share| Heard { power: ear.power * share, tuned: channel == sent, ..*ear };
        let mut arrived = Arrived::Unheard;
        if share > 0.0 {
            let here = self.hear(signal, &on(tuned, share), decoders);
            if tuned == sent {
                arrived = here;
            }
        }
        let (detect, transmitting) = (self.layer.phy.detect, self.transmitting);
        let others = self.wideband.iter_mut().flat_map(|wideband| wideband.reached(sent));
        for (channel, reception, share) in others {
            let ear = on(channel, share);
            let layer = ear.tuned.then(|| phy.on(sent));
            let offered = layer.and_then(|phy| signal.offered_to(phy, &ear)).filter(|_| !transmitting);
            let at = Signal::arrival(&ear, signal.start);
            let here = reception.arrive(at, ear.power, offered, detect, &self.receiver, decoders);
            if channel == sent {
                arrived = here;
            }
        }
        arrived
    }

    /// Handles the end of a frame on channel `sent`: the lock on it, if any, and whether the radio
    /// is tuned to its channel.
    pub(in crate::medium) fn depart_on(
        &mut self,
        at: Instant,
        number: u32,
        power: f64,
        sent: Channel,
        decoders: &[Decoder],
    ) -> (Option<Lock>, bool) {
        let Some(wideband) = &self.wideband else { return (self.depart(at, number, power, decoders), true) };
        let (tuned, share) = (wideband.tuned, wideband.share_tuned(sent));
        let mut lock = None;
        if share > 0.0 {
            lock = self.depart(at, number, power * share, decoders);
        }
        let others = self.wideband.iter_mut().flat_map(|wideband| wideband.reached(sent));
        for (_, reception, share) in others {
            lock = lock.or(reception.depart(at, number, power * share, &self.receiver, decoders));
        }
        (lock, tuned == sent)
    }

    /// Updates the frames that it follows up to `until`, before what decides about their errors changes.
    pub(in crate::medium) fn settle(&mut self, until: Instant, decoders: &[Decoder]) {
        self.reception.settle(until, &self.receiver, decoders);
        for (_, reception) in self.wideband.iter_mut().flat_map(|wideband| wideband.others()) {
            reception.settle(until, &self.receiver, decoders);
        }
    }

    /// True if the frame of this lock was received without error.
    pub(in crate::medium) fn survives(&mut self, lock: &Lock) -> bool {
        lock.survives(&mut self.random)
    }

    /// True if the channel is busy now.
    pub(in crate::medium) fn senses(&self) -> bool {
        self.reception.is_busy(&self.receiver)
    }

    /// Updates carrier sense; true if its state has changed.
    pub(in crate::medium) fn sense_anew(&mut self, at: Instant) -> bool {
        let busy = self.senses();
        let changed = busy != self.busy;
        if changed {
            self.busy = busy;
            if !busy {
                self.idle_since = at;
            }
            self.recount(at);
        }
        self.book(at, false);
        changed
    }

    /// Records the radio's state from `at` on in the airtime counters.
    pub(in crate::medium) fn book(&mut self, at: Instant, failed: bool) {
        let doing = if self.transmitting {
            Doing::Transmitting
        } else if self.reception.lock().is_some() {
            Doing::Receiving
        } else if self.busy {
            Doing::Busy
        } else {
            Doing::Idle
        };
        self.account.turn(at, doing, failed);
    }
}
