//! Equipment at the far end of a wire: interrupt moderation, service time, clock.
//!
//! The formulas and their sources are at [`settings::Receiver`].

use crate::random::Stream;
use crate::settings::{self, Jitter};
use crate::time::{Instant, Span};

/// The model of one receiver, and its random stream.
pub(crate) struct Receiver {
    stream: Stream,
    moderation: Span,
    service: Jitter,
    tick: u64,
    /// The last interrupt; `None` before the first frame.
    interrupt: Option<Instant>,
    /// When the last frame was seen.
    newest: Instant,
    /// True if any model is enabled.
    any: bool,
}

impl Receiver {
    pub fn new(stream: Stream, settings: &settings::Receiver) -> Self {
        let mut receiver = Self {
            stream,
            moderation: Span::ZERO,
            service: Jitter::None,
            tick: 0,
            interrupt: None,
            newest: Instant::ZERO,
            any: false,
        };
        receiver.change(settings);
        receiver
    }

    /// Applies new settings. The random stream continues.
    pub fn change(&mut self, settings: &settings::Receiver) {
        self.moderation = Span::from_nanos(settings.moderation_ns);
        self.service = settings.service.prepared();
        self.tick = settings.tick_ns;
        self.any = settings.moderation_ns > 0 || settings.service != Jitter::None || settings.tick_ns > 0;
    }

    /// Forgets the frames that it has not seen yet: they are lost, and others need not follow them.
    pub fn lose(&mut self) {
        self.newest = Instant::ZERO;
    }

    /// True if any model is enabled.
    pub fn any(&self) -> bool {
        self.any
    }

    /// When the host sees a frame that arrives at `at`; never before an earlier frame.
    pub fn sees(&mut self, at: Instant) -> Instant {
        if !self.any {
            // A model that was removed may still hold frames that arrived earlier.
            return at.max(self.newest);
        }
        let interrupt = self.interrupt.map_or(at, |last| at.max(last + self.moderation));
        // A frame that arrives while an interrupt is pending is part of it.
        let interrupt = self.interrupt.filter(|&pending| pending >= at).unwrap_or(interrupt);
        self.interrupt = Some(interrupt);
        let service = u64::try_from(self.service.draw(&mut self.stream)).unwrap_or(0);
        let served = (interrupt + Span::from_nanos(service)).nanos();
        let seen = if self.tick == 0 { served } else { served.div_ceil(self.tick).saturating_mul(self.tick) };
        self.newest = self.newest.max(Instant::from_nanos(seen));
        self.newest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(settings: &settings::Receiver) -> Receiver {
        Receiver::new(Stream::named(1, "receiver"), settings)
    }

    fn seen(receiver: &mut Receiver, micros: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let at = |micros| Instant::from_nanos(micros * 1000);
        micros.into_iter().map(|micros| receiver.sees(at(micros)).nanos() / 1000).collect()
    }

    #[test]
    fn without_models_a_frame_is_seen_when_it_arrives() {
        assert_eq!(seen(&mut receiver(&settings::Receiver::default()), [0, 7, 5]), [0, 7, 5]);
    }

    #[test]
    fn the_order_survives_the_removal_of_a_model() {
        let mut changed = receiver(&settings::Receiver { tick_ns: 1_000_000, ..Default::default() });
        assert_eq!(seen(&mut changed, [1]), [1000]);
        changed.change(&settings::Receiver::default());
        assert_eq!(seen(&mut changed, [2, 999, 1001]), [1000, 1000, 1001]);
    }

    #[test]
    fn interrupts_keep_their_distance_and_bring_what_waited() {
        let settings = settings::Receiver { moderation_ns: 250_000, ..Default::default() };
        let arrivals = [100, 200, 349, 350, 351, 700, 800, 2000];
        assert_eq!(
            seen(&mut receiver(&settings), arrivals),
            [100, 350, 350, 350, 600, 850, 850, 2000],
            "one at once, then at most one in 250 us"
        );
    }

    #[test]
    fn nothing_is_seen_between_ticks() {
        let settings = settings::Receiver { tick_ns: 1_000_000, ..Default::default() };
        assert_eq!(seen(&mut receiver(&settings), [0, 1, 999, 1000, 1001]), [0, 1000, 1000, 1000, 2000]);
    }

    #[test]
    fn service_has_its_mean_and_keeps_the_order() {
        let service = Jitter::Exponential { mean_ns: 20_000 };
        let mut receiver = receiver(&settings::Receiver { service, ..Default::default() });
        let count = 100_000;
        let far_apart = seen(&mut receiver, (0..count).map(|n| n * 1000));
        let mean = far_apart.iter().zip(0u64..).map(|(at, n)| at - n * 1000).sum::<u64>() / count;
        assert!((19..=20).contains(&mean), "{mean} us, rounded down");
        let close = seen(&mut receiver, (0..1000).map(|n| count * 1000 + n));
        assert!(close.is_sorted());
    }
}
