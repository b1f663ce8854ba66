//! Transmit queues, and the driver's two limits.

use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::Medium;
use crate::medium::mac::classify::{LARGEST_BODY, body_octets, category};
use crate::medium::mac::lane::Stage;
use crate::medium::mac::waiting::Waiting;
use crate::medium::outside::Outside;
use crate::medium::types::{Kind, RadioId};
use crate::time::Instant;

impl Medium {
    /// Offers a node's frame to its radio at `now`. The medium takes over the caller's reference to
    /// the buffer. A super-frame is sent as its single frames.
    pub fn offer(&mut self, radio: RadioId, now: Instant, frame: Frame, outside: &mut impl Outside) {
        self.pass(now);
        for _ in 1..frame.count {
            outside.share(&frame);
        }
        for segment in frame.first..frame.first + frame.count {
            self.offer_one(radio, now, frame.part(segment, 1), outside);
        }
    }

    fn offer_one(&mut self, id: RadioId, now: Instant, frame: Frame, outside: &mut impl Outside) {
        if self.uncontended.is_some() {
            return self.offer_uncontended(id, now, frame, outside);
        }
        let index = id.index();
        let octets = outside.octets(&frame);
        let body = body_octets(octets, frame.segment_octets(frame.first));
        let to = self.address(id, octets);
        let lane = if self.core.radios[index].settings.qos { category(octets) } else { 0 };
        if !self.core.radios[index].switched_on {
            return outside.dropped(id, now, frame, Why::RadioOff);
        }
        if body > LARGEST_BODY {
            return outside.dropped(id, now, frame, Why::TooBig);
        }
        let Some(to) = to else { return outside.dropped(id, now, frame, Why::NotAssociated) };
        let waiting = Waiting { frame: Some(frame), ..Waiting::new(Kind::Data, to, body) };
        self.enqueue(index, lane, now, waiting, outside);
    }

    /// Drops the queued frames of a radio that is off. An exchange in progress ends without a
    /// response, and its frame is dropped.
    pub(in crate::medium) fn flush(&mut self, index: usize, outside: &mut impl Outside) {
        let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
        let radio = self.core.radios.awake(index);
        let engaged = radio.engaged_lane();
        for (number, lane) in radio.contention.lanes.iter_mut().enumerate() {
            let mut at = 0;
            while at < lane.queue.len() {
                let kept = &mut lane.queue[at];
                if engaged == Some(number) && (at == 0 || kept.joined) {
                    (kept.short_tries, kept.long_tries) = (u8::MAX - 1, u8::MAX - 1);
                    at += 1;
                } else if let Some(waiting) = lane.queue.remove(at) {
                    radio.waiting -= 1;
                    waiting.discard(id, self.core.now, Why::RadioOff, outside);
                }
            }
        }
        self.flush_reorder(index, outside);
        self.move_windows(index, outside);
        self.flush_uncontended(index, outside);
        self.forget_dozing(index, outside);
        self.end_receptions(index);
        self.core.radios.awake(index).set_access();
        self.core.arm(index);
        self.yield_share(index);
    }

    /// Queues a frame in a lane if the driver has a free buffer and the queue is below its limit.
    /// Management frames have separate buffers.
    pub(in crate::medium) fn enqueue(
        &mut self,
        index: usize,
        lane: usize,
        now: Instant,
        waiting: Waiting,
        outside: &mut impl Outside,
    ) {
        self.wake(index);
        let Some(waiting) = self.keep_for_dozing(index, lane, waiting, outside) else { return };
        let radio = self.core.radios.awake(index);
        let queued = u32::try_from(radio.contention.lanes[lane].queue.len()).unwrap_or(u32::MAX);
        let data = waiting.kind == Kind::Data || waiting.mpdu.is_some();
        let full = radio.waiting >= radio.settings.transmit_buffers || queued >= radio.settings.tail_drop;
        if full && waiting.frame.is_some() {
            radio.counts.refused += 1;
            let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
            return waiting.discard(id, now, Why::RadioQueueFull, outside);
        }
        radio.waiting += 1;
        let queue = &mut radio.contention.lanes[lane].queue;
        let mut first = queued == 0;
        if data {
            queue.push_back(waiting);
            first &= !radio.away;
        } else {
            // Management frames precede all frames except one in transmission. One that is first in
            // the queue contends like a frame that enters an empty queue.
            let under_way =
                usize::from(radio.exchange.stage != Stage::Free || radio.exchange.answer.is_some());
            queue.insert(under_way.min(queue.len()), waiting);
            first |= under_way == 0 && radio.away;
        }
        if first {
            self.follow_request(index, lane);
        }
        if first && self.core.radios.awake(index).may_send(lane, now) {
            self.open(index, lane, now, outside);
        }
        self.core.arm(index);
    }
}
