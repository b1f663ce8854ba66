//! Lengths, rates and times of the frames of an exchange.
//!
//! IEEE Std 802.11-2020, 10.3.2.11 (acknowledgment), 10.4 (fragments), 10.6 (rates).

use crate::medium::mac::classify::{CHECK, DATA_HEADER, QOS_FIELD};
use crate::medium::mac::exchange::peer;
use crate::medium::mac::waiting::Waiting;
use crate::medium::phy::{ACK_OCTETS, RTS_OCTETS};
use crate::medium::radio::Radio;
use crate::medium::types::{Kind, To};
use crate::time::{Instant, Span};

impl Radio {
    /// Octets on the air of the next fragment of a frame, and those of its body.
    pub(super) fn piece(&self, waiting: &Waiting) -> (u32, u32) {
        let frame = CHECK + DATA_HEADER + if self.settings.qos { QOS_FIELD } else { 0 };
        let left = waiting.body - waiting.done;
        if waiting.mpdu.is_some() {
            return (waiting.body + CHECK, waiting.body);
        }
        let whole = frame + waiting.body;
        match self.settings.fragment_octets {
            Some(limit) if whole > limit && matches!(waiting.to, To::Radio(_) | To::Nobody) => {
                let body = left.min(limit - frame);
                (frame + body, body)
            }
            _ => (frame + left, left),
        }
    }

    pub(super) fn airtime(&self, rate: u8, octets: u32) -> Span {
        self.layer.phy.rates[usize::from(rate)].airtime(octets)
    }

    /// Time from the end of a frame to the end of its response.
    pub(super) fn answer_time(&self, rate: u8) -> Span {
        self.layer.phy.sifs + self.airtime(self.layer.phy.response(rate, self.layer.basic), ACK_OCTETS)
    }

    /// Time of a request-to-send, its response and the SIFS after it.
    pub(super) fn clear_time(&self, request: u8) -> Span {
        self.airtime(request, RTS_OCTETS) + self.answer_time(request) + self.layer.phy.sifs
    }

    /// Time-out for the start of the response to a frame at this rate.
    pub(super) fn ack_timeout(&self, rate: u8) -> Span {
        self.layer.phy.sifs + self.layer.slot + self.response_delay(rate) + self.round_trip()
    }

    /// Time after which the start of the response to a frame at this rate is indicated.
    pub(super) fn response_delay(&self, rate: u8) -> Span {
        self.layer.phy.rates[usize::from(self.layer.phy.response(rate, self.layer.basic))].start_delay()
    }

    /// Rate of the request-to-send for a frame at this rate.
    pub(super) fn request_rate(&self, rate: u8) -> u8 {
        self.layer.control.unwrap_or_else(|| self.layer.phy.response(rate, self.layer.basic))
    }

    pub(super) fn round_trip(&self) -> Span {
        // The slot holds one coverage delay; the response needs the way back, too.
        Span::from_micros(3 * u64::from(self.settings.coverage_class))
    }

    /// True if the next fragment of this frame requires request-to-send.
    pub(super) fn announces(&self, waiting: &Waiting, octets: u32) -> bool {
        let addressed = matches!(waiting.to, To::Radio(_) | To::Nobody);
        let answered = waiting.mpdu.is_none_or(|mpdu| !mpdu.no_ack);
        let asked = waiting.mpdu.is_some_and(|mpdu| mpdu.announces());
        addressed
            && answered
            && waiting.fragment == 0
            && (asked || self.settings.rts_octets.is_some_and(|limit| octets > limit))
    }

    /// The rate of broadcast and management frames.
    pub(in crate::medium) fn group_rate(&self) -> u8 {
        self.layer.control.unwrap_or_else(|| self.layer.phy.lowest(self.layer.basic))
    }

    /// Rate of a lane's first frame.
    pub(super) fn data_rate(&mut self, lane: usize, now: Instant) -> u8 {
        let waiting = &self.contention.lanes[lane].queue[0];
        let (to, tries, kind, mpdu) = (waiting.to, waiting.tries, waiting.kind, waiting.mpdu);
        if let Some(mpdu) = mpdu {
            mpdu.rate().unwrap_or_else(|| self.group_rate())
        } else if to == To::Group || kind != Kind::Data {
            self.group_rate()
        } else {
            self.rate.choose(peer(to), tries, now, &mut self.random)
        }
    }

    /// Time of the whole exchange of a lane's first frame, from its first symbol to the last one of
    /// its last acknowledgment.
    pub(super) fn exchange_time(&self, lane: usize, rate: u8) -> Span {
        let waiting = &self.contention.lanes[lane].queue[0];
        let answered = waiting.to != To::Group && waiting.mpdu.is_none_or(|mpdu| !mpdu.no_ack);
        let mut next = waiting.clone();
        let mut time = Span::ZERO;
        let (octets, _) = self.piece(&next);
        if self.announces(&next, octets) {
            let request = self.request_rate(rate);
            time = self.clear_time(request);
        }
        loop {
            let (octets, body) = self.piece(&next);
            time += self.airtime(rate, octets);
            if answered {
                time += self.answer_time(rate);
            }
            next.done += body;
            next.fragment = next.fragment.saturating_add(1);
            if body == 0 || next.done >= next.body {
                return time;
            }
            time += self.layer.phy.sifs;
        }
    }

    pub(super) fn next_sequence(&mut self) -> u16 {
        self.exchange.sequence = (self.exchange.sequence + 1) % 4096;
        self.exchange.sequence
    }
}
