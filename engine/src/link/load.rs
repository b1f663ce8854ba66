//! How busy a wire is, for the time for which segments are gathered at its end.
//!
//! A hand-over costs the host about the same for one segment and for many. While a wire is busy,
//! segments are gathered for longer, in proportion to the time for which it has been busy: the
//! delay stays small beside the time in which a flow has had to wait for the wire anyway.

use crate::time::Span;

/// Segments are gathered for at most this part of the time for which the wire has been busy...
const PART: u64 = 8;
/// ...and for at most so many times the span for which they are gathered on a wire that rests.
const MOST: u64 = 5;
/// One unit of rest takes back one of so many units of work: the load grows above a third of the
/// rate.
const REST: u64 = 2;

/// Time for which a wire has been busy lately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    busy: Span,
}

impl Load {
    /// Records a transmission of this length after a rest; `span` as for [`Load::span`].
    pub fn sent(&mut self, rest: Span, length: Span, span: Span) {
        let busy = self.busy.saturating_sub(Span::from_nanos(rest.nanos() / REST)) + length;
        self.busy = busy.min(Span::from_nanos(span.nanos().saturating_mul(PART * MOST)));
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

    fn after(frames: u64, rest: Span) -> Span {
        let mut load = Load::default();
        (0..frames).for_each(|_| load.sent(rest, FRAME, SPAN));
        load.span(SPAN)
    }

    #[test]
    fn a_busy_wire_gathers_for_longer_in_proportion() {
        assert_eq!(after(16, Span::ZERO), SPAN);
        assert_eq!(after(40, Span::ZERO), Span::from_micros(500));
        assert_eq!(after(1_000, Span::ZERO), Span::from_micros(1_000));
        assert_eq!(after(1_000, FRAME), Span::from_micros(1_000), "half of its rate");
        assert_eq!(after(1_000, FRAME + FRAME + FRAME), SPAN, "a quarter");
    }

    #[test]
    fn a_rest_ends_it_and_without_gathering_there_is_none() {
        let mut load = Load::default();
        (0..1_000).for_each(|_| load.sent(Span::ZERO, FRAME, SPAN));
        load.sent(Span::from_millis(16), FRAME, SPAN);
        assert_eq!(load.span(SPAN), SPAN);
        (0..1_000).for_each(|_| load.sent(Span::ZERO, FRAME, Span::ZERO));
        assert_eq!(load.span(Span::ZERO), Span::ZERO);
    }
}
