//! One queue of a device with its settings and its notifier, from the first setting to the end of
//! the guest.

use airloom_engine::time::{Instant, Span};

use super::call::Call;
use super::coalescing::{Coalescing, Hold};
use super::device::Counts;
use super::disconnect::DisconnectReason;
use super::memory::Memory;
use super::message::QueuePlaces;
use super::queue::{self, Queue, Writer};

/// Time that a guest has to react to a notification before it is repeated; doubled
/// each time, up to the longest.
const REPEAT_AFTER: Span = Span::from_micros(250);
const REPEAT_AFTER_MOST: Span = Span::from_millis(100);

/// A notification to which the guest has not reacted yet.
#[derive(Debug)]
struct Unanswered {
    /// [`Queue::guest_indices`] at the notification.
    indices: (u16, u16),
    /// Time of the next repetition.
    at: Instant,
    /// Current interval before the repetition.
    wait: Span,
}

/// State of one queue: its settings so far, and the queue itself once it is started.
#[derive(Debug)]
pub(super) struct Side {
    pub size: u16,
    pub base: u16,
    pub places: Option<QueuePlaces>,
    pub kicked: bool,
    pub enabled: bool,
    pub call: Call,
    hold: Hold,
    unanswered: Option<Unanswered>,
    pub queue: Option<Queue>,
}

impl Side {
    /// A queue without settings, whose guest is notified by `coalescing`.
    pub fn new(coalescing: Coalescing) -> Self {
        Self {
            size: 0,
            base: 0,
            places: None,
            kicked: false,
            enabled: false,
            call: Call::None,
            hold: Hold::new(coalescing),
            unanswered: None,
            queue: None,
        }
    }

    /// Starts the queue, which `writer` fills, if its settings are complete.
    pub fn start(
        &mut self,
        memory: &Memory,
        writer: Writer,
        event_idx: bool,
    ) -> Result<(), DisconnectReason> {
        let Some(places) = self.places else { return Ok(()) };
        if self.queue.is_some() || !self.kicked || self.size == 0 {
            return Ok(());
        }
        let [descriptors, available, used] = queue::parts(self.size);
        let area = |address, (octets, alignment)| {
            memory.area(address, octets, alignment).ok_or(DisconnectReason::QueuePlace(address))
        };
        let areas = [
            area(places.descriptors, descriptors)?,
            area(places.available, available)?,
            area(places.used, used)?,
        ];
        let queue = self.queue.insert(Queue::new(self.size, writer, areas, self.base, event_idx));
        if writer == Writer::Device {
            queue.ignore();
        }
        Ok(())
    }

    /// Stops the queue; its settings stay.
    pub fn stop(&mut self) {
        if let Some(queue) = self.queue.take() {
            self.base = queue.next_available();
        }
        self.unanswered = None;
        self.hold.clear();
    }

    /// Notifies the guest of returned buffers if it requests that and they are not held, and repeats a
    /// notification without a reaction. Returns false if the guest's notifier is closed.
    pub fn notify_guest(&mut self, now: Instant, counts: &mut Counts) -> bool {
        let queue = match (&mut self.queue, &self.call) {
            (Some(queue), Call::Descriptor(_) | Call::InBand(_)) => queue,
            _ => {
                // Without a notifier no notification is due, now or later.
                self.hold.clear();
                self.unanswered = None;
                return true;
            }
        };
        let mut is_open = true;
        let returned = queue.returned();
        let due = if returned > 0 { self.hold.decide(returned, queue.size(), now) } else { None };
        if let Some(waited) = due {
            counts.longest_hold_ns = counts.longest_hold_ns.max(waited.nanos());
            let indices = queue.guest_indices();
            if queue.wants_notification() {
                counts.calls += 1;
                is_open &= self.call.notify();
                let wait = REPEAT_AFTER;
                self.unanswered =
                    self.call.may_be_missed().then_some(Unanswered { indices, at: now + wait, wait });
            } else {
                counts.spared += 1;
            }
        }
        let Some(unanswered) = self.unanswered.as_mut().filter(|unanswered| unanswered.at <= now) else {
            return is_open;
        };
        if unanswered.indices == queue.guest_indices() {
            counts.again += 1;
            is_open &= self.call.notify();
            unanswered.wait = (unanswered.wait * 2).min(REPEAT_AFTER_MOST);
            unanswered.at = now + unanswered.wait;
        } else {
            self.unanswered = None;
        }
        is_open
    }

    /// Time at which the guest is to be notified of buffers that are held, or again because it has not
    /// reacted.
    pub fn reminder(&self) -> Option<Instant> {
        let again = self.unanswered.as_ref().map(|unanswered| unanswered.at);
        self.hold.deadline().into_iter().chain(again).min()
    }
}
