//! State of one queue of a device, and the notifications between its two ends.

use airloom_engine::time::{Instant, Span};

use super::device::Counts;
use super::message::QueuePlaces;
use super::notifier::Notifier;
use super::queue::Queue;

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
#[derive(Debug, Default)]
pub(super) struct Side {
    pub(super) size: u16,
    pub(super) base: u16,
    pub(super) places: Option<QueuePlaces>,
    pub(super) kicked: bool,
    pub(super) enabled: bool,
    pub(super) call: Option<Notifier>,
    pub(super) queue: Option<Queue>,
    unanswered: Option<Unanswered>,
}

impl Side {
    /// Stops the queue; its settings stay.
    pub(super) fn stop(&mut self) {
        if let Some(queue) = self.queue.take() {
            self.base = queue.next_available();
        }
        self.unanswered = None;
    }

    /// Notifies the guest if it requests that, and repeats a notification without a reaction.
    /// Returns false if the guest's notifier is closed.
    pub(super) fn notify(&mut self, now: Instant, counts: &mut Counts) -> bool {
        let (Some(queue), Some(notifier)) = (&mut self.queue, &self.call) else { return true };
        let mut open = true;
        if queue.has_returned() {
            let indices = queue.guest_indices();
            if queue.wants_notification() {
                counts.calls += 1;
                open &= notifier.notify();
                let wait = REPEAT_AFTER;
                self.unanswered =
                    notifier.may_be_missed().then_some(Unanswered { indices, at: now + wait, wait });
            } else {
                counts.spared += 1;
            }
        }
        if let Some(unanswered) = self.unanswered.as_mut().filter(|unanswered| unanswered.at <= now) {
            if unanswered.indices == queue.guest_indices() {
                counts.again += 1;
                open &= notifier.notify();
                unanswered.wait = (unanswered.wait * 2).min(REPEAT_AFTER_MOST);
                unanswered.at = now + unanswered.wait;
            } else {
                self.unanswered = None;
            }
        }
        open
    }

    /// Time at which a notification is to be repeated, unless the guest reacts before.
    pub(super) fn reminder(&self) -> Option<Instant> {
        self.unanswered.as_ref().map(|unanswered| unanswered.at)
    }
}
