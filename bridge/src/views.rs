//! The ledger and the lateness, converted for Python.

use airloom_engine::ledger::{Drops, HostLosses};
use airloom_engine::time::Span;
use airloom_engine::{Direction, DropReason, HostLoss, Ledger, LinkId, PortId, SwitchId, Tally};
use airloom_ports::capture::{Account, Counts};
use airloom_ports::carrier_drops::Unsent;
use airloom_ports::port::Report;
use airloom_ports::runtime::driver::Driven;
use airloom_ports::runtime::lateness::{Histogram, Worst};
use airloom_ports::runtime::status::Second;
use airloom_ports::tunnel;
use airloom_ports::world::World;
use airloom_ports::world::captures::RUN;
use pyo3::prelude::*;
use serde::{Serialize, Serializer};

/// The state of all links, direction by direction in the order of their addition: [`LOAD`] numbers of
/// eight octets each, little-endian.
pub fn loads(world: &mut World) -> Vec<u8> {
    let links: Vec<LinkId> = world.names.links.iter().map(|(_, id)| id).collect();
    let ledger = world.engine.ledger();
    let mut found = Vec::with_capacity(links.len() * 2 * LOAD * 8);
    for link in links {
        for direction in [Direction::Forward, Direction::Backward] {
            let account = ledger.link(link, direction);
            let numbers: [u64; LOAD] = [
                account.queue.frames,
                account.queue.octets,
                account.left.frames,
                account.left.octets,
                account.dropped.total().frames,
                account.marked.frames,
                account.busy.nanos(),
            ];
            found.extend(numbers.into_iter().flat_map(u64::to_le_bytes));
        }
    }
    found
}

/// Numbers of one direction of a link: frames and octets in the queue, frames and octets that have
/// reached the far end, frames dropped, frames marked, and busy time in nanoseconds.
const LOAD: usize = 7;

/// Data of a port's view.
struct PortState {
    name: String,
    id: PortId,
    missed: u64,
    unsent: Option<Unsent>,
    gone: bool,
    /// A tunnel's counters.
    report: Option<Report>,
}

/// Data of a ledger view, copied on the engine's thread.
pub struct LedgerState {
    ledger: Ledger,
    ports: Vec<PortState>,
    links: Vec<(String, LinkId)>,
    switches: Vec<(String, SwitchId)>,
}

impl LedgerState {
    /// Copies the ledger of a world.
    pub fn of(world: &mut World) -> Self {
        let ledger = world.engine.ledger().clone();
        let named = world.edge.ports.iter().zip(world.names.ports.iter());
        let ports = named.map(|(attached, (name, id))| PortState {
            name: name.to_owned(),
            id,
            missed: attached.missed,
            unsent: attached.unsent(),
            gone: attached.port.is_gone(),
            report: attached.port.report().filter(|report| report.kind == tunnel::REPORT),
        });
        let (links, switches) = (world.names.links.iter(), world.names.switches.iter());
        Self {
            ledger,
            ports: ports.collect(),
            links: links.map(|(name, id)| (name.to_owned(), id)).collect(),
            switches: switches.map(|(name, id)| (name.to_owned(), id)).collect(),
        }
    }

    /// The dictionary that the stub of `Engine.ledger` describes.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ledger = &self.ledger;
        let view = LedgerView {
            offered: ledger.offered.frames,
            copies: ledger.copies.frames,
            delivered: ledger.delivered.frames,
            in_flight: ledger.in_flight().frames,
            octets: OctetsView {
                offered: ledger.offered.octets,
                copies: ledger.copies.octets,
                delivered: ledger.delivered.octets,
                in_flight: ledger.in_flight().octets,
            },
            dropped: Reasons::of_drops(&ledger.dropped),
            host_lost: Reasons::of_losses(&ledger.host_lost),
            missed: self.ports.iter().map(|port| port.missed).sum(),
            ports: Named(
                self.ports.iter().map(|port| (port.name.as_str(), port_view(ledger, port))).collect(),
            ),
            links: Named(
                self.links.iter().map(|(name, id)| (name.as_str(), link_view(ledger, *id))).collect(),
            ),
            switches: Named(
                self.switches.iter().map(|(name, id)| (name.as_str(), switch_view(ledger, *id))).collect(),
            ),
        };
        Ok(pythonize::pythonize(py, &view)?)
    }
}

fn port_view<'a>(ledger: &Ledger, port: &'a PortState) -> PortView<'a> {
    let account = ledger.port(port.id);
    PortView {
        tallies: Tallies([("offered", account.offered), ("delivered", account.delivered)]),
        dropped: Reasons::of_drops(&account.dropped),
        host_lost: Reasons::of_losses(&account.host_lost),
        missed: port.missed,
        unsent: port.unsent.map(|unsent| UnsentView { frames: unsent.frames, since: unsent.since }),
        gone: port.gone,
        report: Named(port.report.iter().map(|report| (report.kind, &*report.figures)).collect()),
    }
}

fn link_view(ledger: &Ledger, id: LinkId) -> Named<'static, WireView> {
    let wire = |direction: Direction| {
        let account = ledger.link(id, direction);
        let view = WireView {
            tallies: Tallies([
                ("entered", account.entered),
                ("left", account.left),
                ("duplicated", account.duplicated),
                ("corrupted", account.corrupted),
                ("reordered", account.reordered),
                ("held", account.held),
                ("marked", account.marked),
                ("late", account.late),
                ("queue", account.queue),
                ("queue_highest", account.queue_highest),
            ]),
            dropped: Reasons::of_drops(&account.dropped),
            busy_ns: account.busy.nanos(),
            held_ns: account.held_for.nanos(),
            paused_ns: account.paused.nanos(),
            late_most_ns: account.late_most.nanos(),
        };
        (direction.name(), view)
    };
    Named([Direction::Forward, Direction::Backward].map(wire).into())
}

fn switch_view(ledger: &Ledger, id: SwitchId) -> SwitchView {
    let account = ledger.switch(id);
    SwitchView {
        tallies: Tallies([("entered", account.entered), ("copies", account.copies)]),
        dropped: Reasons::of_drops(&account.dropped),
    }
}

#[derive(Serialize)]
struct LedgerView<'a> {
    offered: u64,
    copies: u64,
    delivered: u64,
    in_flight: u64,
    octets: OctetsView,
    dropped: Reasons,
    host_lost: Reasons,
    missed: u64,
    ports: Named<'a, PortView<'a>>,
    links: Named<'a, Named<'static, WireView>>,
    switches: Named<'a, SwitchView>,
}

#[derive(Serialize)]
struct OctetsView {
    offered: u64,
    copies: u64,
    delivered: u64,
    in_flight: u64,
}

#[derive(Serialize)]
struct PortView<'a> {
    #[serde(flatten)]
    tallies: Tallies<2>,
    dropped: Reasons,
    host_lost: Reasons,
    missed: u64,
    unsent: Option<UnsentView>,
    gone: bool,
    /// A tunnel's counters, under its own key.
    #[serde(flatten)]
    report: Named<'a, &'a (dyn erased_serde::Serialize + Send)>,
}

#[derive(Serialize)]
struct UnsentView {
    frames: u64,
    since: Option<u64>,
}

#[derive(Serialize)]
struct WireView {
    #[serde(flatten)]
    tallies: Tallies<10>,
    dropped: Reasons,
    busy_ns: u64,
    held_ns: u64,
    paused_ns: u64,
    late_most_ns: u64,
}

#[derive(Serialize)]
struct SwitchView {
    #[serde(flatten)]
    tallies: Tallies<2>,
    dropped: Reasons,
}

/// Values by name, in order.
pub struct Named<'a, T>(pub Vec<(&'a str, T)>);

impl<T: Serialize> Serialize for Named<'_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Tallies as two entries each: frames, and octets with the suffix `_octets`.
struct Tallies<const N: usize>([(&'static str, Tally); N]);

impl<const N: usize> Serialize for Tallies<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let both = |&(name, tally): &(&str, Tally)| {
            [(name.to_owned(), tally.frames), (format!("{name}_octets"), tally.octets)]
        };
        to.collect_map(self.0.iter().flat_map(both))
    }
}

/// The reasons with a count above zero, in frames.
struct Reasons(Vec<(&'static str, u64)>);

impl Reasons {
    fn of_drops(drops: &Drops) -> Self {
        Self::of(DropReason::ALL.map(|why| (why.name(), drops.of(why).frames)))
    }

    fn of_losses(losses: &HostLosses) -> Self {
        Self::of(HostLoss::ALL.map(|loss| (loss.name(), losses.of(loss).frames)))
    }

    fn of<const N: usize>(all: [(&'static str, u64); N]) -> Self {
        Self(all.into_iter().filter(|(_, frames)| *frames > 0).collect())
    }
}

impl Serialize for Reasons {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().copied())
    }
}

/// How well the engine followed the clock, copied on its thread.
pub struct Punctuality {
    /// Histograms by name.
    pub histograms: Vec<(&'static str, Histogram)>,
    /// Status, second by second.
    pub seconds: Vec<Second>,
    /// The capture of the run.
    pub capture: Option<Account>,
    /// Whether the engine's thread may be real-time.
    pub preferred: bool,
    /// Names of the ports, by number.
    pub ports: Vec<String>,
}

impl Default for Punctuality {
    /// For an engine without a clock: no lateness, with the same keys.
    fn default() -> Self {
        let histograms = ["delivery", "ingress", "wakes"].map(|name| (name, Histogram::default()));
        Self {
            histograms: histograms.into(),
            seconds: Vec::new(),
            capture: None,
            preferred: false,
            ports: Vec::new(),
        }
    }
}

impl Punctuality {
    /// The lateness of deliveries by a calendar, or of none if the engine was stepped.
    pub fn of_virtual(world: &World) -> Vec<(&'static str, Histogram)> {
        vec![
            ("delivery", world.edge.delivery.clone()),
            ("ingress", Histogram::default()),
            ("wakes", Histogram::default()),
        ]
    }

    /// Copies the statistics of a driven engine.
    pub fn of(driven: &Driven) -> Self {
        let edge = &driven.world.edge;
        Self {
            histograms: vec![
                ("delivery", edge.delivery.clone()),
                ("ingress", driven.ingress.clone()),
                ("wakes", driven.wakes.clone()),
            ],
            seconds: driven.status.seconds().to_vec(),
            capture: driven.world.captures.account(RUN),
            preferred: driven.preferred,
            ports: driven.world.names.ports.iter().map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// The dictionary that the stub of `Engine.lateness` describes.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let view = LatenessView {
            histograms: Named(
                self.histograms.iter().map(|(name, own)| (*name, self.histogram(own))).collect(),
            ),
            status: self.seconds.iter().map(SecondView::of).collect(),
            preferred: self.preferred,
            capture: self.capture.map(|(counts, failed)| CaptureView::of(counts, failed)),
        };
        Ok(pythonize::pythonize(py, &view)?)
    }

    fn histogram(&self, histogram: &Histogram) -> HistogramView<'_> {
        let nanos = |span: Option<Span>| span.map_or(0, Span::nanos);
        let worst = |worst: &Worst| {
            let port = self.ports.get(worst.port as usize).map_or("", String::as_str);
            (worst.at.nanos(), worst.value.nanos(), port)
        };
        HistogramView {
            count: histogram.count(),
            mean: nanos(histogram.mean()),
            p50: nanos(histogram.quantile(0.5)),
            p99: nanos(histogram.quantile(0.99)),
            p999: nanos(histogram.quantile(0.999)),
            max: nanos(histogram.max()),
            worst: histogram.worst().iter().map(worst).collect(),
            buckets: histogram.buckets().collect(),
        }
    }
}

#[derive(Serialize)]
struct LatenessView<'a> {
    #[serde(flatten)]
    histograms: Named<'a, HistogramView<'a>>,
    status: Vec<SecondView>,
    preferred: bool,
    capture: Option<CaptureView>,
}

#[derive(Serialize)]
struct HistogramView<'a> {
    count: u64,
    mean: u64,
    p50: u64,
    p99: u64,
    p999: u64,
    max: u64,
    worst: Vec<(u64, u64, &'a str)>,
    buckets: Vec<(u64, u64)>,
}

/// Counters of a capture.
#[derive(Serialize)]
pub struct CaptureView {
    written: u64,
    skipped: u64,
    octets: u64,
    failed: bool,
}

impl CaptureView {
    /// Of these counters; `failed`: it could not be written to any more.
    pub fn of(counts: Counts, failed: bool) -> Self {
        Self { written: counts.written, skipped: counts.skipped, octets: counts.octets, failed }
    }

    /// The dictionary that the stub of `CaptureCounts` describes.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(pythonize::pythonize(py, self)?)
    }
}

#[derive(Serialize)]
struct SecondView {
    start: u64,
    end: u64,
    busy: u64,
    spun: u64,
    cpu: u64,
    waited: u64,
    stall: u64,
    backlog: u64,
    taken_in: u64,
    turns: u64,
    sleeps: u64,
}

impl SecondView {
    fn of(second: &Second) -> Self {
        Self {
            start: second.start.nanos(),
            end: second.end.nanos(),
            busy: second.busy.nanos(),
            spun: second.spun.nanos(),
            cpu: second.cpu.nanos(),
            waited: second.waited.nanos(),
            stall: second.stall.nanos(),
            backlog: second.backlog.nanos(),
            taken_in: second.taken_in,
            turns: second.turns,
            sleeps: second.sleeps,
        }
    }
}
