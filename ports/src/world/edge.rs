//! The engine's edge: its ports, and the delivery of frames to them.

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::wlan::{RxStatus, TxStatus};
use airloom_engine::time::Instant;
use airloom_engine::{Clock, Delivery, Egress, HostLoss, PortId};

use std::collections::BTreeMap;

use crate::carrier_drops::Unsent;
use crate::error::Error;
use crate::monitor::Monitor;
use crate::port::{LARGEST_FRAME, Outgoing, Port};
use crate::runtime::background::{Background, Pending};
use crate::runtime::lateness::Histogram;
use crate::runtime::wall_clock::WallClock;
use crate::virtual_time::clock::CalendarClock;
use crate::world::passage::{self, Passage};
use crate::world::seen::Follower;
use crate::world::stalls::Stalls;

/// Frames that have passed a port, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Frames; each segment of a super-frame is one.
    pub frames: u64,
    /// Their octets, without the frame check sequence.
    pub octets: u64,
}

impl Passed {
    /// What has passed since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { frames: self.frames - earlier.frames, octets: self.octets - earlier.octets }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { frames: self.frames + other.frames, octets: self.octets + other.octets }
    }
}

/// A port attached to the engine.
pub struct Attachment {
    /// The port.
    pub port: Box<dyn Port>,
    /// Frames that the kernel dropped before the engine took them ([`Port::missed`]).
    pub missed: u64,
    /// In virtual time: frames that entered here or were delivered, from time zero on.
    pub(crate) passed: Passed,
    longest: usize,
    /// Number of its node, if the node forwards frames.
    pub(crate) node: Option<usize>,
    /// Maximum number of frames to read in the next turn.
    pub(crate) batch: u32,
    /// Last time at which the port was known to be empty.
    pub(crate) looked: Instant,
    /// False while the interface behind the port is without carrier.
    carrier: bool,
    /// True if the interface behind the port was ever without carrier.
    lost_carrier: bool,
    /// Sets the carrier if the port cannot.
    monitor: Option<Monitor>,
}

impl Attachment {
    /// As [`Port::unsent`]; none of the frames if the carrier was never lost.
    #[must_use]
    pub fn unsent(&self) -> Option<Unsent> {
        if self.lost_carrier { self.port.unsent() } else { Some(Unsent::default()) }
    }
}

/// All ports of an engine, and the destination of its frames.
pub struct Edge {
    /// The ports, by number.
    pub ports: Vec<Attachment>,
    /// Lateness of the delivery of frames to their nodes.
    pub delivery: Histogram,
    /// Numbers of the ports that have, or had, a peer to serve.
    with_peers: Vec<usize>,
    /// Replies of ports, which have yet to enter the engine there.
    pub(crate) answers: Vec<(PortId, Vec<u8>)>,
    /// None while the engine is stepped.
    clock: Option<WallClock>,
    /// The calendar's clock; None without one.
    calendar: Option<CalendarClock>,
    /// Runs what may block; None while the engine is stepped.
    background: Option<Background>,
    scratch: Box<[u8]>,
    nodes: BTreeMap<String, usize>,
    passages: Vec<Passage>,
    pub(crate) stalls: Stalls,
    pub(crate) follower: Follower,
}

impl Edge {
    /// An edge without ports.
    pub(crate) fn new() -> Self {
        Self {
            ports: Vec::new(),
            delivery: Histogram::default(),
            with_peers: Vec::new(),
            answers: Vec::new(),
            clock: None,
            calendar: None,
            background: None,
            scratch: vec![0; LARGEST_FRAME].into_boxed_slice(),
            nodes: BTreeMap::new(),
            passages: Vec::new(),
            stalls: Stalls::default(),
            follower: Follower::default(),
        }
    }

    /// Starts to follow a clock.
    pub(crate) fn start(&mut self, clock: WallClock) -> Result<(), Error> {
        self.clock = Some(clock);
        self.background = Some(Background::start()?);
        self.ports.iter_mut().for_each(|attached| attached.port.start());
        Ok(())
    }

    /// Starts to follow a calendar.
    pub(crate) fn start_virtual(&mut self, clock: CalendarClock) {
        self.calendar = Some(clock);
        self.ports.iter_mut().for_each(|attached| attached.port.start());
    }

    /// Attaches a port; it gets the next number.
    pub(crate) fn attach(&mut self, port: Box<dyn Port>, node: Option<&str>) {
        let node = node.map(|name| self.node_number(name));
        let number = self.ports.len();
        let (missed, longest) = (0, port.longest_frame());
        let (batch, looked, carrier, lost_carrier, monitor) = (1, Instant::ZERO, true, false, None);
        let passed = Passed::default();
        let attached =
            Attachment { port, missed, passed, longest, node, batch, looked, carrier, lost_carrier, monitor };
        self.ports.push(attached);
        self.prepare(number);
    }

    /// Sets the node of a port, if it forwards frames.
    pub(crate) fn set_node(&mut self, number: usize, node: Option<&str>) {
        self.ports[number].node = node.map(|name| self.node_number(name));
    }

    fn node_number(&mut self, name: &str) -> usize {
        let next = self.passages.len();
        let number = *self.nodes.entry(name.into()).or_insert(next);
        if number == next {
            self.passages.push(Passage::default());
        }
        number
    }

    /// Replaces a port. The new one has the carrier of the old one. The old one is closed after all
    /// work on it; returns what is left of that to wait for.
    pub(crate) fn exchange(&mut self, number: usize, port: Box<dyn Port>) -> Option<Pending> {
        let attached = &mut self.ports[number];
        attached.longest = port.longest_frame();
        let old = std::mem::replace(&mut attached.port, port);
        let closing = self.background.as_ref().map(|background| background.run(Box::new(|| drop(old))));
        if !attached.carrier {
            self.set_carrier(number, false);
        }
        self.prepare(number);
        closing
    }

    /// Gives a port the monitor of the machine whose card is behind it.
    pub(crate) fn set_monitor(&mut self, number: usize, mut monitor: Monitor) {
        let attached = &mut self.ports[number];
        monitor.set_carrier(attached.carrier);
        attached.monitor = Some(monitor);
    }

    fn set_carrier(&mut self, number: usize, up: bool) {
        let attached = &mut self.ports[number];
        attached.carrier = up;
        attached.lost_carrier |= !up;
        if let Some(monitor) = &mut attached.monitor {
            monitor.set_carrier(up);
        }
        match (attached.port.set_carrier(up), &self.background) {
            (None, _) => {}
            (Some(work), None) => work(),
            (Some(work), Some(background)) => drop(background.run(work)),
        }
    }

    fn prepare(&mut self, number: usize) {
        let port = &mut self.ports[number].port;
        if self.clock.is_some() {
            port.start();
        }
        if port.has_peer() && !self.with_peers.contains(&number) {
            self.with_peers.push(number);
        }
    }

    /// Reads from the kernel the number of missed frames of each port, and tells machines that have
    /// started meanwhile the carrier of their cards.
    pub(crate) fn each_second(&mut self) {
        for attached in &mut self.ports {
            attached.missed += attached.port.missed();
            if let Some(monitor) = &mut attached.monitor {
                monitor.refresh();
            }
        }
    }

    /// Serves the control messages of peers, without frames: before time zero frames are
    /// not read, but a guest's kernel does not start without its devices. Returns false
    /// if there was nothing to do.
    pub fn negotiate(&mut self) -> bool {
        let mut done = false;
        for &number in &self.with_peers {
            done |= self.ports[number].port.negotiate();
        }
        done
    }

    /// When the segments of a frame, just read from a port, would have left its node if each had
    /// entered it alone, and if this thread had not stood still since; `None` if they did not enter it
    /// together.
    pub(crate) fn left(
        &mut self,
        number: usize,
        now: Instant,
        frame: &Frame,
        pool: &Pool,
    ) -> Option<&[Instant]> {
        let node = self.ports[number].node?;
        let frame = Frame { count: u16::try_from(frame.segments()).ok()?, ..*frame };
        let now = self.stalls.clock(now);
        self.passages[node].leave(passage::key(&frame, pool), now, usize::from(frame.count))
    }

    /// Notes a frame that passes a port.
    fn note(&mut self, port: PortId, at: Instant, sent: bool, frame: &Frame) {
        if self.calendar.is_some() {
            let passed = &mut self.ports[port.index()].passed;
            passed.frames += u64::from(frame.count);
            passed.octets += frame.octets();
        }
        self.follower.note(port, at, sent, frame);
    }

    /// Records how late a frame that was due at `at` is delivered. Returns the time; `None` while the
    /// engine is stepped, by a calendar or not.
    fn record(&mut self, port: PortId, at: Instant) -> Option<Instant> {
        let number = u32::try_from(port.index()).unwrap_or(u32::MAX);
        if let Some(calendar) = &self.calendar {
            self.delivery.record(calendar.now().since(at), at, number);
        }
        let now = self.clock.as_ref()?.now();
        self.delivery.record(now.since(at), at, number);
        self.stalls.worked(now);
        Some(now)
    }

    /// Remembers segments that are handed over to a node that forwards them.
    fn enter(&mut self, port: PortId, now: Instant, arrivals: &[Instant], frame: &Frame, pool: &Pool) {
        if let Some(node) = self.ports[port.index()].node {
            self.passages[node].enter(passage::key(frame, pool), self.stalls.clock(now), arrivals);
        }
    }

    fn hand_over(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        let attached = &mut self.ports[port.index()];
        // No frame is longer than the engine's buffers.
        if attached.longest < LARGEST_FRAME && frame.segment_octets(frame.first) as usize > attached.longest {
            return Delivery::Lost(HostLoss::TooBig);
        }
        let (scratch, answers) = (&mut self.scratch[..], &mut self.answers);
        attached.port.deliver(Outgoing { port, at, frame, pool, scratch, answers })
    }

    /// Notifies peers of the frames delivered since the last call; returns the time at which a
    /// notification may have to be repeated.
    pub(crate) fn notify(&mut self, now: Instant) -> Instant {
        let mut again = Instant::NEVER;
        for &number in &self.with_peers {
            again = again.min(self.ports[number].port.notify(now));
        }
        again
    }
}

impl Egress for Edge {
    fn carrier(&mut self, port: PortId, up: bool) {
        self.set_carrier(port.index(), up);
    }

    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, _: &Pool) {
        self.note(port, at, true, frame);
    }

    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        self.note(port, at, false, frame);
        if let Some(now) = self.record(port, at) {
            // It enters the next link when it is read, unless this thread stands still meanwhile.
            self.enter(port, now, &[now], frame, pool);
        }
        self.hand_over(port, at, frame, pool)
    }

    fn receive_wlan(
        &mut self,
        port: PortId,
        at: Instant,
        frame: &Frame,
        pool: &Pool,
        status: &RxStatus,
    ) -> Delivery {
        self.note(port, at, false, frame);
        self.record(port, at);
        let (scratch, answers) = (&mut self.scratch[..], &mut self.answers);
        let outgoing = Outgoing { port, at, frame, pool, scratch, answers };
        self.ports[port.index()].port.receive_wlan(&outgoing, status)
    }

    fn transmitted(&mut self, port: PortId, _: Instant, status: &TxStatus) {
        self.ports[port.index()].port.transmitted(status);
    }

    fn deliver_run(&mut self, port: PortId, arrivals: &[Instant], frame: &Frame, pool: &Pool) -> Delivery {
        let at = arrivals.last().copied().unwrap_or_default();
        self.note(port, at, false, frame);
        if let Some(now) = self.record(port, at) {
            self.enter(port, now, arrivals, frame, pool);
        }
        self.hand_over(port, at, frame, pool)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use airloom_engine::Engine;
    use airloom_engine::frame::Checksum;
    use airloom_engine::time::Span;

    use super::*;
    use crate::detached::Detached;

    #[test]
    fn a_frame_that_waits_for_the_loop_has_left_its_router_before() {
        const HEADER: u16 = 34;
        let mut engine = Engine::new(1);
        let port = engine.add_port("r:eth0", true).expect("new");
        let mut edge = Edge::new();
        edge.attach(Box::new(Detached), Some("r"));
        let clock = WallClock::start();
        edge.start(clock).expect("a thread starts");
        let pool = engine.pool();
        let datagram = Frame {
            checksum: Some(Checksum { start: HEADER, offset: Checksum::UDP }),
            ..Frame::new(pool.take(100), 100, None, None)
        };

        let before = clock.now();
        edge.deliver(port, before, &datagram, pool);
        thread::sleep(Duration::from_millis(3));
        let now = clock.now();
        edge.stalls.worked(now);
        let left = edge.left(0, now, &datagram, pool).expect("it is known")[0];
        assert!(left >= before && left + Span::from_millis(3) <= now, "{before} {left} {now}");
    }
}
