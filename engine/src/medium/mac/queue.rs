//! Transmit queues, and the driver's two limits.

use super::classify::{LARGEST_BODY, body_octets, category};
use crate::drop_reason::DropReason as Why;
use crate::frame::Frame;
use crate::medium::radio::{Kind, RadioId, Stage, To, Waiting};
use crate::medium::{Medium, Outside};
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
        let lane = if self.radios[index].settings.qos { category(octets) } else { 0 };
        if !self.radios[index].switched_on {
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
        let radio = &mut self.radios[index];
        let engaged = match radio.stage {
            Stage::Sending(lane) | Stage::Awaiting(lane, ..) => Some(usize::from(lane)),
            _ => {
                radio.answer.filter(|answer| answer.kind == Kind::Data).map(|answer| usize::from(answer.lane))
            }
        };
        for (number, lane) in radio.lanes.iter_mut().enumerate() {
            let keep = usize::from(engaged == Some(number)).min(lane.queue.len());
            for waiting in lane.queue.drain(keep..) {
                radio.waiting -= 1;
                waiting.discard(id, self.now, Why::RadioOff, outside);
            }
            if let Some(last) = lane.queue.front_mut() {
                (last.short_tries, last.long_tries) = (u8::MAX - 1, u8::MAX - 1);
            }
        }
        self.flush_uncontended(index, outside);
        self.forget_dozing(index, outside);
        self.end_receptions(index);
        self.radios[index].set_access();
        self.timers.set(index, self.radios[index].next_at());
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
        let radio = &mut self.radios[index];
        let queued = u32::try_from(radio.lanes[lane].queue.len()).unwrap_or(u32::MAX);
        let data = waiting.kind == Kind::Data || waiting.mpdu.is_some();
        let full = radio.waiting >= radio.settings.transmit_buffers || queued >= radio.settings.tail_drop;
        if full && waiting.frame.is_some() {
            radio.counts.refused += 1;
            let id = RadioId(u32::try_from(index).unwrap_or(u32::MAX));
            return waiting.discard(id, now, Why::RadioQueueFull, outside);
        }
        radio.waiting += 1;
        let queue = &mut radio.lanes[lane].queue;
        let mut first = queued == 0;
        if data {
            queue.push_back(waiting);
            first &= !radio.away;
        } else {
            // Management frames precede all frames except one in transmission. One that is first in
            // the queue contends like a frame that enters an empty queue.
            let under_way = usize::from(radio.stage != Stage::Free || radio.answer.is_some());
            queue.insert(under_way.min(queue.len()), waiting);
            first |= under_way == 0 && radio.away;
        }
        if first {
            self.follow_request(index, lane);
        }
        if first && self.radios[index].may_send(lane, now) {
            self.open(index, lane, now, outside);
        }
        self.timers.set(index, self.radios[index].next_at());
    }
}

impl Waiting {
    /// Discards a frame that will not be sent any more. If it has arrived, it counts as delivered.
    pub(in crate::medium) fn discard(
        self,
        radio: RadioId,
        at: Instant,
        why: Why,
        outside: &mut impl Outside,
    ) {
        if let Some(mpdu) = self.mpdu {
            outside.transmitted(radio, at, &mpdu.status());
        }
        match self.frame {
            Some(frame) if self.arrived => outside.release(frame),
            Some(frame) => outside.dropped(radio, at, frame, why),
            None => {}
        }
    }

    /// A frame that has not been transmitted yet.
    pub(in crate::medium) fn new(kind: Kind, to: To, body: u32) -> Self {
        Self {
            kind,
            frame: None,
            to,
            body,
            short_tries: 0,
            long_tries: 0,
            tries: 0,
            rate: None,
            sequence: None,
            done: 0,
            fragment: 0,
            arrived: false,
            reached: false,
            receiver: None,
            mpdu: None,
        }
    }
}
