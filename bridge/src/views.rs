//! The ledger and the lateness as dictionaries.

use airloom_engine::ledger::{Drops, HostLosses};
use airloom_engine::{Direction, DropReason, HostLoss, Ledger, LinkId, PortId, SwitchId, Tally};
use airloom_ports::capture::Counts;
use airloom_ports::port::Report;
use airloom_ports::runtime::driver::Driven;
use airloom_ports::runtime::lateness::Histogram;
use airloom_ports::runtime::status::Second;
use airloom_ports::tunnel;
use airloom_ports::world::World;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What is needed to tell Python of a ledger, taken on the engine's thread.
pub struct Books {
    ledger: Ledger,
    ports: Vec<(String, PortId, u64, bool, Option<Report>)>,
    links: Vec<(String, LinkId)>,
    switches: Vec<(String, SwitchId)>,
}

impl Books {
    /// Copies the books of a world.
    pub fn of(world: &mut World) -> Self {
        let ledger = world.engine.ledger().clone();
        let named = world.edge.ports.iter().zip(world.names.ports.iter());
        let ports = named.map(|(attached, (name, id))| {
            let report = attached.port.report().filter(|report| report.kind == tunnel::REPORT);
            (name.to_owned(), id, attached.missed, attached.port.is_gone(), report)
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
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ledger = &self.ledger;
        let found = PyDict::new(py);
        let octets = PyDict::new(py);
        for (name, tally) in [
            ("offered", ledger.offered),
            ("copies", ledger.copies),
            ("delivered", ledger.delivered),
            ("in_flight", ledger.in_flight()),
        ] {
            found.set_item(name, tally.frames)?;
            octets.set_item(name, tally.octets)?;
        }
        found.set_item("octets", octets)?;
        found.set_item("dropped", drops(py, &ledger.dropped)?)?;
        found.set_item("host_lost", losses(py, &ledger.host_lost)?)?;
        found.set_item("missed", self.ports.iter().map(|(_, _, missed, ..)| missed).sum::<u64>())?;
        let ports = PyDict::new(py);
        for (name, id, missed, gone, report) in &self.ports {
            let account = ledger.port(*id);
            let view = PyDict::new(py);
            tally(&view, "offered", account.offered)?;
            tally(&view, "delivered", account.delivered)?;
            view.set_item("dropped", drops(py, &account.dropped)?)?;
            view.set_item("host_lost", losses(py, &account.host_lost)?)?;
            view.set_item("missed", missed)?;
            view.set_item("gone", gone)?;
            if let Some(report) = report {
                view.set_item(report.kind, pythonize::pythonize(py, &report.figures)?)?;
            }
            ports.set_item(name, view)?;
        }
        found.set_item("ports", ports)?;
        let links = PyDict::new(py);
        for (name, id) in &self.links {
            let both = PyDict::new(py);
            for direction in [Direction::Forward, Direction::Backward] {
                let account = ledger.link(*id, direction);
                let view = PyDict::new(py);
                for (name, value) in [
                    ("entered", account.entered),
                    ("left", account.left),
                    ("duplicated", account.duplicated),
                    ("corrupted", account.corrupted),
                    ("reordered", account.reordered),
                    ("marked", account.marked),
                    ("queue", account.queue),
                    ("queue_highest", account.queue_highest),
                ] {
                    tally(&view, name, value)?;
                }
                view.set_item("dropped", drops(py, &account.dropped)?)?;
                view.set_item("paused_ns", account.paused.nanos())?;
                both.set_item(direction.name(), view)?;
            }
            links.set_item(name, both)?;
        }
        found.set_item("links", links)?;
        let switches = PyDict::new(py);
        for (name, id) in &self.switches {
            let account = ledger.switch(*id);
            let view = PyDict::new(py);
            tally(&view, "entered", account.entered)?;
            tally(&view, "copies", account.copies)?;
            view.set_item("dropped", drops(py, &account.dropped)?)?;
            switches.set_item(name, view)?;
        }
        found.set_item("switches", switches)?;
        Ok(found)
    }
}

/// A tally as two entries, of frames and of octets.
fn tally(view: &Bound<'_, PyDict>, name: &str, tally: Tally) -> PyResult<()> {
    view.set_item(name, tally.frames)?;
    view.set_item(format!("{name}_octets"), tally.octets)
}

/// The reasons that occurred, in frames.
fn drops<'py>(py: Python<'py>, drops: &Drops) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for why in DropReason::ALL {
        let frames = drops.of(why).frames;
        if frames > 0 {
            found.set_item(why.name(), frames)?;
        }
    }
    Ok(found)
}

fn losses<'py>(py: Python<'py>, losses: &HostLosses) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    for loss in HostLoss::ALL {
        let frames = losses.of(loss).frames;
        if frames > 0 {
            found.set_item(loss.name(), frames)?;
        }
    }
    Ok(found)
}

/// How the engine kept up with the clock, taken on its thread.
pub struct Punctuality {
    /// Histograms by name.
    pub histograms: Vec<(&'static str, Histogram)>,
    /// Second by second.
    pub seconds: Vec<Second>,
    /// The capture, and whether its file failed.
    pub capture: Option<(Counts, bool)>,
    /// Whether the engine's thread goes before others when processors are short.
    pub preferred: bool,
    /// Names of the ports, by number.
    pub ports: Vec<String>,
}

impl Default for Punctuality {
    /// Of an engine without a clock: nothing is late, with the same keys.
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
    /// Copies what was recorded of a driven engine. `ended` is a finished capture's account.
    pub fn of(driven: &Driven, ended: Option<&(Counts, bool)>) -> Self {
        let edge = &driven.world.edge;
        let running = driven.world.capture.as_ref().map(|capture| (*capture.counts(), capture.failed()));
        Self {
            histograms: vec![
                ("delivery", edge.delivery.clone()),
                ("ingress", driven.ingress.clone()),
                ("wakes", driven.wakes.clone()),
            ],
            seconds: driven.status.seconds().to_vec(),
            capture: running.or_else(|| ended.copied()),
            preferred: driven.preferred,
            ports: driven.world.names.ports.iter().map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// The dictionary that the stub of `Engine.lateness` describes.
    pub fn view<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (name, histogram) in &self.histograms {
            found.set_item(name, self.histogram(py, histogram)?)?;
        }
        let status = PyList::empty(py);
        for second in &self.seconds {
            let view = PyDict::new(py);
            for (name, value) in [
                ("start", second.start.nanos()),
                ("end", second.end.nanos()),
                ("busy", second.busy.nanos()),
                ("spun", second.spun.nanos()),
                ("cpu", second.cpu.nanos()),
                ("waited", second.waited.nanos()),
                ("stall", second.stall.nanos()),
                ("backlog", second.backlog.nanos()),
                ("taken_in", second.taken_in),
                ("turns", second.turns),
                ("sleeps", second.sleeps),
            ] {
                view.set_item(name, value)?;
            }
            status.append(view)?;
        }
        found.set_item("status", status)?;
        found.set_item("preferred", self.preferred)?;
        let capture = match &self.capture {
            None => None,
            Some((account, failed)) => {
                let view = PyDict::new(py);
                view.set_item("written", account.written)?;
                view.set_item("skipped", account.skipped)?;
                view.set_item("failed", failed)?;
                Some(view)
            }
        };
        found.set_item("capture", capture)?;
        Ok(found)
    }

    fn histogram<'py>(&self, py: Python<'py>, histogram: &Histogram) -> PyResult<Bound<'py, PyDict>> {
        let view = PyDict::new(py);
        let nanos = |span: Option<airloom_engine::time::Span>| span.map_or(0, |span| span.nanos());
        view.set_item("count", histogram.count())?;
        view.set_item("mean", nanos(histogram.mean()))?;
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p999", 0.999)] {
            view.set_item(name, nanos(histogram.quantile(share)))?;
        }
        view.set_item("max", nanos(histogram.max()))?;
        let worst: Vec<(u64, u64, &str)> = histogram
            .worst()
            .iter()
            .map(|worst| {
                let port = self.ports.get(worst.port as usize).map_or("", String::as_str);
                (worst.at.nanos(), worst.value.nanos(), port)
            })
            .collect();
        view.set_item("worst", worst)?;
        view.set_item("buckets", histogram.buckets().collect::<Vec<_>>())?;
        Ok(view)
    }
}
