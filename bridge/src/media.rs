//! Radio media for Python: settings as dictionaries, and the state of radios at an instant.

use std::collections::HashMap;

use airloom_engine::medium::SettingsError;
use airloom_engine::medium::mobility::traces::{bonnmotion, ns2};
use airloom_ports::world::radio::{ChannelView, RadioView, SightingView};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::errors::Fault;

/// Names of radios by medium and number.
type Names<'a> = HashMap<(&'a str, u32), &'a str>;

/// A radio as the stub of `Engine.radios` describes it.
fn view<'py>(py: Python<'py>, radio: &RadioView, names: &Names) -> PyResult<Bound<'py, PyDict>> {
    let named = |number: u32| names.get(&(radio.medium.as_str(), number)).copied();
    let found = PyDict::new(py);
    let settings = &radio.settings;
    found.set_item("port", &radio.port)?;
    found.set_item("medium", &radio.medium)?;
    found.set_item("on", radio.on)?;
    found.set_item("position", (radio.position.x, radio.position.y, radio.position.z))?;
    found.set_item("access_point", radio.access_point.and_then(named))?;
    found.set_item("mhz", radio.mhz)?;
    found.set_item("queued", radio.queued)?;
    found.set_item("settings", pythonize::pythonize(py, settings)?)?;
    let counts = PyDict::new(py);
    for (name, value) in [
        ("sent", radio.counts.sent),
        ("expected", radio.counts.expected),
        ("unanswered", radio.counts.unanswered),
        ("requests", radio.counts.requests),
        ("requests_unanswered", radio.counts.requests_unanswered),
        ("given_up", radio.counts.given_up),
        ("refused", radio.counts.refused),
        ("received", radio.counts.received),
        ("duplicates", radio.counts.duplicates),
        ("broken", radio.counts.broken),
    ] {
        counts.set_item(name, value)?;
    }
    found.set_item("counts", counts)?;
    let airtime = PyDict::new(py);
    for (name, span) in [
        ("idle", radio.airtime.idle),
        ("transmitting", radio.airtime.transmitting),
        ("receiving", radio.airtime.receiving),
        ("collided", radio.airtime.collided),
        ("busy", radio.airtime.busy),
    ] {
        airtime.set_item(name, span.nanos())?;
    }
    found.set_item("airtime", airtime)?;
    let peers = PyDict::new(py);
    for (number, peer) in &radio.peers {
        let Some(name) = named(*number) else { continue };
        let view = PyDict::new(py);
        view.set_item("attempts", peer.attempts)?;
        view.set_item("unanswered", peer.unanswered)?;
        view.set_item("rate", peer.bits_per_second)?;
        view.set_item("received", peer.received)?;
        view.set_item("signal_dbm", peer.signal_dbm())?;
        peers.set_item(name, view)?;
    }
    found.set_item("peers", peers)?;
    Ok(found)
}

/// A channel as the stub of `Engine.channels` describes it.
pub fn channel<'py>(py: Python<'py>, channel: &ChannelView) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("medium", &channel.medium)?;
    found.set_item("channel", channel.number)?;
    found.set_item("mhz", channel.mhz)?;
    found.set_item("busy", channel.airtime.busy.nanos())?;
    found.set_item("overlapped", channel.airtime.overlapped.nanos())?;
    found.set_item("sent", channel.airtime.sent.nanos())?;
    found.set_item("frames", channel.airtime.frames)?;
    Ok(found)
}

/// The result of a radio's scan, as the stub of `Engine.scanned` describes it.
pub fn scanned<'py>(py: Python<'py>, times: u64, seen: &[SightingView]) -> PyResult<Bound<'py, PyDict>> {
    let list = PyList::empty(py);
    for SightingView { port, sighting } in seen {
        let one = PyDict::new(py);
        one.set_item("port", port)?;
        one.set_item("ssid", &sighting.ssid)?;
        one.set_item("access_point", sighting.access_point)?;
        one.set_item("channel", sighting.channel.number)?;
        one.set_item("mhz", sighting.channel.mhz)?;
        one.set_item("signal_dbm", sighting.signal_dbm)?;
        list.append(one)?;
    }
    let found = PyDict::new(py);
    found.set_item("times", times)?;
    found.set_item("found", list)?;
    Ok(found)
}

/// All radios.
pub fn views<'py>(py: Python<'py>, radios: &[RadioView]) -> PyResult<Bound<'py, PyList>> {
    let found = PyList::empty(py);
    let names =
        radios.iter().map(|radio| ((radio.medium.as_str(), radio.number), radio.port.as_str())).collect();
    for radio in radios {
        found.append(view(py, radio, &names)?)?;
    }
    Ok(found)
}

/// Movement of one node: instants in nanoseconds, and positions.
type Way = Vec<(u64, f64, f64, f64)>;

/// Reads a movement trace: `ns-2`, `bonnmotion`, or `bonnmotion-3d`. Returns the positions of each
/// node of the trace: (ns, x, y, z).
#[pyfunction]
pub fn read_movements(py: Python<'_>, format: &str, text: &str) -> PyResult<Vec<(u32, Way)>> {
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
        Ok(Some(paths.iter().map(|(node, path)| (*node, way(path))).collect()))
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
