//! A wrapper that captures the frames of an egress.
//!
//! It sits between the engine and the wrapped egress: no port depends on captures, and a world
//! without a capture has no overhead for them. Times are those of the engine: when a frame entered,
//! and when it was due at its port.

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::medium::capture::Sniffed;
use airloom_engine::medium::wlan::{RxStatus, TxStatus};
use airloom_engine::time::Instant;
use airloom_engine::{Delivery, DropReason, Egress, MediumId, Place, PortId};

use crate::capture::{Capture, Source};
use crate::pcapng::Direction;
use crate::world::names::Names;
use crate::world::radio::Radios;

/// An egress whose frames are captured.
pub(crate) struct Recorder<'a, E> {
    /// The wrapped egress.
    pub inner: &'a mut E,
    /// The captures that frames are written to.
    pub captures: &'a mut [Capture],
    /// Names of all elements.
    pub names: &'a Names,
    /// The ports of radios.
    pub radios: &'a Radios,
}

impl<E> Recorder<'_, E> {
    /// Writes a frame at a port, with a direction or with a comment on its fate. The frames of a
    /// radio that carries 802.11 frames are those that it sent and heard.
    fn frame(
        &mut self,
        port: usize,
        at: Instant,
        frame: (&Frame, &Pool),
        direction: Option<Direction>,
        comment: &[&str],
    ) {
        if self.radios.is_wlan(self.names.ports.at(port)) {
            return;
        }
        let port = (port, self.names.ports.name(port));
        for capture in &mut *self.captures {
            capture.frame(port, at, frame, direction, comment);
        }
    }

    /// Writes a frame that a radio heard or sent.
    fn at_radio(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        let found = sniffed.radio.and_then(|radio| Some((radio, self.radios.port(medium, radio)?)));
        let Some((radio, port)) = found else { return };
        let number = u32::try_from(medium.index()).unwrap_or(u32::MAX);
        let port = self.names.ports.name(port.index());
        let named = || format!("{port} on the air");
        for capture in &mut *self.captures {
            capture.sniffed(Source::Radio(number, radio.number()), port, sniffed, pool, named);
        }
    }

    /// Writes what became of a delivery: segments that arrived one after the other, each at its own
    /// time, or a frame that arrived as a whole.
    fn delivered(
        &mut self,
        port: PortId,
        arrivals: &[Instant],
        frame: &Frame,
        pool: &Pool,
        handed: Delivery,
    ) -> Delivery {
        let (taken, loss) = match handed {
            // The engine drops it and reports the drop itself.
            Delivery::NotUp => return handed,
            Delivery::Taken => (frame.count, None),
            Delivery::Partly(taken, loss) => (taken, Some(loss)),
            Delivery::Lost(loss) => (0, Some(loss)),
        };
        let each = if arrivals.len() > 1 { 1 } else { frame.count };
        let arrived = |number: u16| arrivals[usize::from(number / each).min(arrivals.len() - 1)];
        for number in (0..taken).step_by(usize::from(each)) {
            let part = frame.part(frame.first + number, each.min(taken - number));
            self.frame(port.index(), arrived(number), (&part, pool), Some(Direction::Inbound), &[]);
        }
        if let Some(loss) = loss {
            let part = frame.part(frame.first + taken, frame.count - taken);
            let comment = ["lost by the host: ", loss.name()];
            self.frame(port.index(), arrived(taken), (&part, pool), None, &comment);
        }
        handed
    }
}

impl<E: Egress> Egress for Recorder<'_, E> {
    fn entered(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) {
        self.frame(port.index(), at, (frame, pool), Some(Direction::Outbound), &[]);
        self.inner.entered(port, at, frame, pool);
    }

    fn deliver(&mut self, port: PortId, at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        let handed = self.inner.deliver(port, at, frame, pool);
        self.delivered(port, &[at], frame, pool, handed)
    }

    /// The radio's own interface of the capture shows the frame.
    fn receive_wlan(
        &mut self,
        port: PortId,
        at: Instant,
        frame: &Frame,
        pool: &Pool,
        status: &RxStatus,
    ) -> Delivery {
        self.inner.receive_wlan(port, at, frame, pool, status)
    }

    fn transmitted(&mut self, port: PortId, at: Instant, status: &TxStatus) {
        self.inner.transmitted(port, at, status);
    }

    fn deliver_run(&mut self, port: PortId, arrivals: &[Instant], frame: &Frame, pool: &Pool) -> Delivery {
        let handed = self.inner.deliver_run(port, arrivals, frame, pool);
        self.delivered(port, arrivals, frame, pool, handed)
    }

    fn carrier(&mut self, port: PortId, up: bool) {
        self.inner.carrier(port, up);
    }

    fn dropped(&mut self, place: Place, at: Instant, frame: &Frame, why: DropReason, pool: &Pool) {
        let names = self.names;
        let comment: &[&str] = match place {
            Place::Port(port) => &["dropped: ", why.name(), " at port ", names.ports.name(port.index())],
            Place::Link(link, direction) => {
                let link = names.links.name(link.index());
                &["dropped: ", why.name(), " on link ", link, " ", direction.name()]
            }
            Place::Switch(switch) => &["dropped: ", why.name(), " in ", names.switches.name(switch.index())],
        };
        self.frame(frame.origin as usize, at, (frame, pool), None, comment);
        self.inner.dropped(place, at, frame, why, pool);
    }

    fn sniffed(&mut self, medium: MediumId, sniffed: &Sniffed, pool: &Pool) {
        if sniffed.radio.is_none() {
            let number = u32::try_from(medium.index()).unwrap_or(u32::MAX);
            let (name, channel) = (self.names.media.name(medium.index()), sniffed.channel);
            let named = || format!("{name}, channel {}", channel.number);
            for capture in &mut *self.captures {
                capture.sniffed(Source::Channel(number, channel.mhz), name, sniffed, pool, named);
            }
            self.at_radio(medium, &sniffed.at_sender(), pool);
        } else {
            self.at_radio(medium, sniffed, pool);
        }
        self.inner.sniffed(medium, sniffed, pool);
    }
}
