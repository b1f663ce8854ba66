//! Radio media for Python: settings as dictionaries, and the state of radios at an instant.

use std::collections::{BTreeMap, HashMap};

use airloom_engine::medium::mobility::traces::{bonnmotion, ns2};
use airloom_engine::medium::{RadioCounts, RadioSettings, SettingsError};
use airloom_ports::world::radio::{CardView, ChannelView, RadioView, SightingView, ViolationView};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::Fault;
use crate::views::Named;

/// Names of radios by medium and number.
type Names<'a> = HashMap<(&'a str, u32), &'a str>;

/// A radio as the stub of `Engine.radios` describes it.
#[derive(Serialize)]
struct Radio<'a> {
    port: &'a str,
    medium: &'a str,
    on: bool,
    wanted_on: bool,
    position: (f64, f64, f64),
    access_point: Option<&'a str>,
    mhz: u16,
    queued: u32,
    settings: &'a RadioSettings,
    counts: &'a RadioCounts,
    airtime: Uses,
    dozing: u64,
    foreign: &'a BTreeMap<u16, u64>,
    peers: Named<'a, Peer>,
    slice: Option<&'a str>,
    cut: bool,
    uses: Vec<Usage>,
}

/// Use of a channel by a slice's radio.
#[derive(Serialize)]
struct Usage {
    channel: u16,
    mhz: u16,
    sent: u64,
    frames: u64,
}

#[derive(Serialize)]
struct Violations<'a> {
    found: Vec<Violation<'a>>,
    unrecorded: u64,
    unrecorded_by_slice: &'a BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct Violation<'a> {
    port: &'a str,
    slice: &'a str,
    what: &'static str,
    from: u64,
    until: u64,
    frames: u64,
    amount: f64,
    channel: u16,
    mhz: u16,
    concerned: &'a [String],
}

/// Airtime of a radio by use, in nanoseconds.
#[derive(Serialize)]
struct Uses {
    idle: u64,
    transmitting: u64,
    receiving: u64,
    collided: u64,
    busy: u64,
}

#[derive(Serialize)]
struct Peer {
    attempts: u64,
    unanswered: u64,
    rate: u32,
    received: u64,
    signal_dbm: Option<f64>,
}

#[derive(Serialize)]
struct Channel<'a> {
    medium: &'a str,
    channel: u16,
    mhz: u16,
    busy: u64,
    overlapped: u64,
    sent: u64,
    frames: u64,
}

#[derive(Serialize)]
struct Scan<'a> {
    times: u64,
    found: Vec<Found<'a>>,
}

#[derive(Serialize)]
struct Found<'a> {
    port: &'a str,
    ssid: &'a str,
    access_point: bool,
    channel: u16,
    mhz: u16,
    signal_dbm: f64,
    age: u64,
}

impl<'a> Radio<'a> {
    fn of(radio: &'a RadioView, names: &Names<'a>) -> Self {
        let named = |number: u32| names.get(&(radio.medium.as_str(), number)).copied();
        let airtime = &radio.airtime;
        let peers = radio.peers.iter().filter_map(|(number, peer)| {
            let peer = Peer {
                attempts: peer.attempts,
                unanswered: peer.unanswered,
                rate: peer.bits_per_second,
                received: peer.received,
                signal_dbm: peer.signal_dbm(),
            };
            Some((named(*number)?, peer))
        });
        Self {
            port: &radio.port,
            medium: &radio.medium,
            on: radio.on,
            wanted_on: radio.wanted_on,
            position: (radio.position.x, radio.position.y, radio.position.z),
            access_point: radio.access_point.and_then(named),
            mhz: radio.mhz,
            queued: radio.queued,
            settings: &radio.settings,
            counts: &radio.counts,
            dozing: radio.dozed.nanos(),
            foreign: &radio.foreign,
            airtime: Uses {
                idle: airtime.idle.nanos(),
                transmitting: airtime.transmitting.nanos(),
                receiving: airtime.receiving.nanos(),
                collided: airtime.collided.nanos(),
                busy: airtime.busy.nanos(),
            },
            peers: Named(peers.collect()),
            slice: radio.slice.as_deref(),
            cut: radio.cut,
            uses: radio
                .uses
                .iter()
                .map(|used| Usage {
                    channel: used.channel.number,
                    mhz: used.channel.mhz,
                    sent: used.sent.nanos(),
                    frames: used.frames,
                })
                .collect(),
        }
    }
}

/// All radios.
pub fn radios<'py>(py: Python<'py>, radios: &[RadioView]) -> PyResult<Bound<'py, PyAny>> {
    let names: Names =
        radios.iter().map(|radio| ((radio.medium.as_str(), radio.number), radio.port.as_str())).collect();
    let views: Vec<_> = radios.iter().map(|radio| Radio::of(radio, &names)).collect();
    Ok(pythonize::pythonize(py, &views)?)
}

/// Violations of grants, as the stub of `Engine.violations` describes them.
pub fn violations<'py>(
    py: Python<'py>,
    found: &[ViolationView],
    unrecorded: &BTreeMap<String, u64>,
) -> PyResult<Bound<'py, PyAny>> {
    let found = found.iter().map(|ViolationView { port, slice, violation, concerned }| Violation {
        port,
        slice,
        what: violation.what.name(),
        from: violation.from.nanos(),
        until: violation.until.nanos(),
        frames: violation.frames,
        amount: violation.amount,
        channel: violation.channel.number,
        mhz: violation.channel.mhz,
        concerned,
    });
    let (found, sum) = (found.collect(), unrecorded.values().sum());
    let all = Violations { found, unrecorded: sum, unrecorded_by_slice: unrecorded };
    Ok(pythonize::pythonize(py, &all)?)
}

/// The channels in use, as the stub of `Engine.channels` describes them.
pub fn channels<'py>(py: Python<'py>, channels: &[ChannelView]) -> PyResult<Bound<'py, PyAny>> {
    let views: Vec<_> = channels
        .iter()
        .map(|channel| Channel {
            medium: &channel.medium,
            channel: channel.number,
            mhz: channel.mhz,
            busy: channel.airtime.busy.nanos(),
            overlapped: channel.airtime.overlapped.nanos(),
            sent: channel.airtime.sent.nanos(),
            frames: channel.airtime.frames,
        })
        .collect();
    Ok(pythonize::pythonize(py, &views)?)
}

/// A card, as the stub of `Engine.cards` describes it.
#[derive(Serialize)]
struct Card<'a> {
    medium: &'a str,
    card: &'a str,
    channel: Option<u16>,
    switches: u64,
    switching: u64,
    visits: u64,
    collisions: u64,
    scans_asked: u64,
    scans_merged: u64,
    scans_cached: u64,
    scan_results: u64,
    scan_age: u64,
    scan_oldest: u64,
    asleep: u64,
}

/// The cards, as the stub of `Engine.cards` describes them.
pub fn cards<'py>(py: Python<'py>, cards: &[CardView]) -> PyResult<Bound<'py, PyAny>> {
    let views: Vec<_> = cards
        .iter()
        .map(|card| Card {
            medium: &card.medium,
            card: &card.name,
            channel: card.channel,
            switches: card.counts.switches,
            switching: card.counts.switching_ns,
            visits: card.counts.visits,
            collisions: card.counts.collisions,
            scans_asked: card.counts.scans_asked,
            scans_merged: card.counts.scans_merged,
            scans_cached: card.counts.scans_cached,
            scan_results: card.counts.scan_results,
            scan_age: card.counts.scan_age_ns,
            scan_oldest: card.counts.scan_oldest_ns,
            asleep: card.counts.asleep_ns,
        })
        .collect();
    Ok(pythonize::pythonize(py, &views)?)
}

/// The result of a radio's scan, as the stub of `Engine.scanned` describes it.
pub fn scanned<'py>(py: Python<'py>, times: u64, seen: &[SightingView]) -> PyResult<Bound<'py, PyAny>> {
    let found = seen.iter().map(|SightingView { port, sighting }| Found {
        port,
        ssid: &sighting.ssid,
        access_point: sighting.access_point,
        channel: sighting.channel.number,
        mhz: sighting.channel.mhz,
        signal_dbm: sighting.signal_dbm,
        age: sighting.age.nanos(),
    });
    Ok(pythonize::pythonize(py, &Scan { times, found: found.collect() })?)
}

/// Share of the power sent on a channel, by its centre in MHz, that a receiver on another one gets.
#[pyfunction]
pub fn overlap(sender: u16, receiver: u16) -> f64 {
    // The number plays no part.
    let channel = |mhz| airloom_engine::medium::phy::Channel { number: 0, mhz };
    channel(sender).overlap(channel(receiver))
}

/// Movement of one node: instants in nanoseconds, and positions.
type Way = Vec<(u64, f64, f64, f64)>;

/// Times in nanoseconds at which the radios of a node turn on or off.
type Switched = Vec<(u64, bool)>;

/// Reads a movement trace: `ns-2`, `bonnmotion`, or `bonnmotion-3d`. Returns the positions of each
/// node of the trace, (ns, x, y, z), and when its radios turn on or off.
#[pyfunction]
pub fn read_movements(py: Python<'_>, format: &str, text: &str) -> PyResult<Vec<(u32, Way, Switched)>> {
    let read = || -> Result<_, SettingsError> {
        let paths = match format {
            "ns-2" => ns2(text)?,
            "bonnmotion" => bonnmotion(text, false)?,
            "bonnmotion-3d" => bonnmotion(text, true)?,
            _ => return Ok(None),
        };
        let way = |path: &airloom_engine::medium::mobility::Path| {
            path.points().iter().map(|(at, place)| (at.nanos(), place.x, place.y, place.z)).collect()
        };
        let switched = |of: &[(airloom_engine::time::Instant, bool)]| {
            of.iter().map(|(at, on)| (at.nanos(), *on)).collect()
        };
        let all = paths.iter().map(|(node, of)| (*node, way(&of.path), switched(&of.switched)));
        Ok(Some(all.collect()))
    };
    match py.detach(read) {
        Ok(Some(paths)) => Ok(paths),
        Ok(None) => {
            let allowed = "ns-2, bonnmotion, bonnmotion-3d";
            Err(Fault::Word { what: "format", given: format.to_owned(), allowed }.into())
        }
        Err(error) => Err(Fault::from(error).into()),
    }
}
