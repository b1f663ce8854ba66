//! Where frames wait for the wire.

use std::collections::VecDeque;

use crate::context::Context;
use crate::element::Place;
use crate::fate::Why;
use crate::flights::Moving;
use crate::frame::Frame;
use crate::ledger::Tally;
use crate::pace::Pace;
use crate::settings::QueueSettings;
use crate::wire::Charge;

/// The queue of one wire.
pub(crate) struct Queue {
    limits: Limits,
    waiting: VecDeque<Moving>,
    tally: Tally,
}

/// How much may wait. No limit is the largest number.
#[derive(Clone, Copy, Debug)]
struct Limits {
    frames: u64,
    octets: u64,
}

impl Limits {
    fn new(settings: &QueueSettings, _pace: &Pace) -> Self {
        Self {
            frames: settings.packets.map_or(u64::MAX, u64::from),
            octets: settings.octets.unwrap_or(u64::MAX),
        }
    }

    /// How many frames of a run fit behind what waits.
    fn room(&self, waiting: Tally, frame: &Frame) -> u16 {
        let sizes = frame.sizes();
        let octets = self.octets.saturating_sub(waiting.octets);
        let mut fit = (octets / u64::from(sizes.full)).min(u64::from(sizes.fulls));
        if fit == u64::from(sizes.fulls)
            && sizes.tail > 0
            && octets - fit * u64::from(sizes.full) >= u64::from(sizes.tail)
        {
            fit += 1;
        }
        let fit = fit.min(self.frames.saturating_sub(waiting.frames));
        u16::try_from(fit).unwrap_or(u16::MAX).min(frame.count)
    }
}

impl Queue {
    pub fn new(settings: &QueueSettings, pace: &Pace) -> Self {
        Self { limits: Limits::new(settings, pace), waiting: VecDeque::new(), tally: Tally::default() }
    }

    /// Takes new settings; what waits stays.
    pub fn change(&mut self, settings: &QueueSettings, pace: &Pace) {
        self.limits = Limits::new(settings, pace);
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    pub fn iter(&self) -> impl Iterator<Item = &Moving> {
        self.waiting.iter()
    }

    /// Takes what fits of a run, and drops the rest.
    pub fn put(&mut self, context: &mut Context, place: Place, moving: Moving, _charge: Charge) {
        let fit = self.limits.room(self.tally, &moving.frame);
        let frame = moving.frame;
        if fit == frame.count {
            self.tally += Tally::of(&frame);
            self.waiting.push_back(moving);
            return;
        }
        if fit > 0 {
            let head = frame.part(frame.first, fit);
            context.pool.share(frame.buffer);
            self.tally += Tally::of(&head);
            self.waiting.push_back(Moving { frame: head, ..moving });
        }
        context.drop(place, frame.part(frame.first + fit, frame.count - fit), Why::QueueFull);
    }

    /// The next frame for the wire; with `whole`, the run that it belongs to.
    pub fn take(&mut self, context: &mut Context, whole: bool) -> Option<Moving> {
        let next = self.waiting.pop_front()?;
        let next = if whole || next.frame.count == 1 {
            next
        } else {
            let (first, rest) = next.split_first(context.pool);
            self.waiting.push_front(rest);
            first
        };
        self.tally -= Tally::of(&next.frame);
        Some(next)
    }

    /// Takes out whatever is there.
    pub fn take_any(&mut self) -> Option<Moving> {
        let next = self.waiting.pop_front()?;
        self.tally -= Tally::of(&next.frame);
        Some(next)
    }
}
