//! How busy a wire is, for the time for which segments are gathered at its end.
//!
//! A hand-over costs the host about the same for one segment and for many. While a wire is busy,
//! segments are gathered for longer, in proportion to the time for which it has been busy: the
//! delay stays small beside the time in which a flow has had to wait for the wire anyway.
//!
//! A busy host hands over late, and a flow that gets less of its wire lets the wire rest. Shorter
//! runs of segments would then load the host even more, so a busy host gathers for longer, and on
//! wires that rest for most of the time too.

use crate::time::Span;

/// Segments are gathered for at most this part of the time for which the wire has been busy.
const PART: u64 = 8;

/// How segments are gathered on a busy wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gathering {
    /// For at most so many times the span for which they are gathered on a wire that rests.
    most: u64,
    /// One unit of rest takes back one of so many units of work.
    rest: u64,
}

/// The load grows above a third of the rate.
const USUAL: Gathering = Gathering { most: 5, rest: 2 };
/// The load grows above a ninth of the rate. With the default span a run lasts up to 2 ms, as long
/// as a super-frame of a Linux sender in slow start: 1 ms at twice the rate (`tcp_tso_autosize`,
/// `tcp_pacing_ss_ratio`).
const BUSY_HOST: Gathering = Gathering { most: 10, rest: 8 };

impl Gathering {
    /// By whether the host is busy that drives the engine.
    pub fn on(host_busy: bool) -> Self {
        if host_busy { BUSY_HOST } else { USUAL }
    }
}

/// Time for which a wire has been busy lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    busy: Span,
}

impl Load {
    /// Records a transmission of this length after a rest; `span` as for [`Load::span`].
    pub fn sent(&mut self, rest: Span, length: Span, span: Span, gathering: Gathering) {
        let busy = self.busy.saturating_sub(Span::from_nanos(rest.nanos() / gathering.rest)) + length;
        self.busy = busy.min(Span::from_nanos(span.nanos().saturating_mul(PART * gathering.most)));
    }

    /// Time for which segments are gathered now; `span` on a wire that rests.
    pub fn span(&self, span: Span) -> Span {
        span.max(Span::from_nanos(self.busy.nanos() / PART))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Span = Span::from_micros(200);
    const FRAME: Span = Span::from_micros(100);

    fn after(frames: u64, rest: Span, gathering: Gathering) -> Span {
        let mut load = Load::default();
        (0..frames).for_each(|_| load.sent(rest, FRAME, SPAN, gathering));
        load.span(SPAN)
    }

    #[test]
    fn a_busy_wire_gathers_for_longer_in_proportion() {
        assert_eq!(after(16, Span::ZERO, USUAL), SPAN);
        assert_eq!(after(40, Span::ZERO, USUAL), Span::from_micros(500));
        assert_eq!(after(1_000, Span::ZERO, USUAL), Span::from_micros(1_000));
        assert_eq!(after(1_000, FRAME, USUAL), Span::from_micros(1_000), "half of its rate");
        assert_eq!(after(1_000, FRAME + FRAME + FRAME, USUAL), SPAN, "a quarter");
    }

    #[test]
    fn a_busy_host_gathers_for_twice_as_long_and_at_a_lower_load() {
        assert_eq!(after(40, Span::ZERO, BUSY_HOST), Span::from_micros(500));
        assert_eq!(after(1_000, Span::ZERO, BUSY_HOST), Span::from_micros(2_000));
        let rest = |frames| Span::from_nanos(FRAME.nanos() * frames);
        assert_eq!(after(2_000, rest(7), BUSY_HOST), Span::from_micros(2_000), "an eighth of its rate");
        assert_eq!(after(2_000, rest(9), BUSY_HOST), SPAN, "a tenth");
    }

    #[test]
    fn a_rest_ends_it_and_without_gathering_there_is_none() {
        let mut load = Load::default();
        (0..1_000).for_each(|_| load.sent(Span::ZERO, FRAME, SPAN, USUAL));
        load.sent(Span::from_millis(16), FRAME, SPAN, USUAL);
        assert_eq!(load.span(SPAN), SPAN);
        (0..1_000).for_each(|_| load.sent(Span::ZERO, FRAME, Span::ZERO, USUAL));
        assert_eq!(load.span(Span::ZERO), Span::ZERO);
    }

    #[test]
    fn when_the_host_is_busy_no_more_the_time_is_the_usual_one() {
        let mut load = Load::default();
        (0..1_000).for_each(|_| load.sent(Span::ZERO, FRAME, SPAN, BUSY_HOST));
        load.sent(Span::ZERO, FRAME, SPAN, USUAL);
        assert_eq!(load.span(SPAN), Span::from_micros(1_000));
    }
}
