//! The guests behind ports: their devices and transfer counters.

use std::os::fd::OwnedFd;

use airloom_engine::medium::phy::tables::by_name;
use airloom_netns::read_mac;
use airloom_ports::port::Report;
use airloom_ports::vhost::{self, DeviceConfig, Vhost};
use airloom_ports::wlan::{self, WlanPort};
use airloom_ports::world::World;
use pyo3::prelude::*;

use crate::convert::duplicate;
use crate::errors::Fault;
use crate::views::Named;

/// The network device of the guest that will connect to a listening socket.
pub fn device(listener: OwnedFd, mac: &str, mtu: u16) -> Result<Vhost<DeviceConfig>, Fault> {
    let mac = read_mac(mac).map_err(Fault::Settings)?;
    Ok(Vhost::serve(listener, DeviceConfig { mac, mtu })?)
}

/// A guest's wireless device, to which all its radios belong.
#[pyclass(frozen, module = "airloom._engine")]
pub struct WlanDevice(wlan::WlanDevice);

#[pymethods]
impl WlanDevice {
    #[new]
    #[pyo3(signature = (listener, stream = false))]
    fn new(listener: i32, stream: bool) -> PyResult<Self> {
        let listener = duplicate(listener)?;
        let serve = if stream { wlan::WlanDevice::serve_stream } else { wlan::WlanDevice::serve };
        Ok(Self(serve(listener).map_err(Fault::from)?))
    }
}

impl WlanDevice {
    /// The port of the radio with this number, whose physical layer has this name.
    pub fn port(&self, radio: usize, phy: &str) -> Result<WlanPort, Fault> {
        let known = by_name(phy).ok_or_else(|| Fault::Settings(format!("no physical layer {phy}")))?;
        let most = wlan::device::MOST_RADIOS;
        let refused = || Fault::Settings(format!("radio {radio} of a guest, which has at most {most}"));
        self.0.port(radio, known).ok_or_else(refused)
    }
}

/// Name and report of each port with a guest.
pub fn of(world: &World) -> Vec<(String, Report)> {
    let ports = world.edge.ports.iter().zip(world.names.ports.iter());
    let reports = ports.filter_map(|(attached, (name, _))| Some((name.to_owned(), attached.port.report()?)));
    reports.filter(|(_, report)| report.kind == vhost::REPORT).collect()
}

/// The dictionary that the stub of `Engine.guests` describes.
pub fn view<'py>(py: Python<'py>, guests: &[(String, Report)]) -> PyResult<Bound<'py, PyAny>> {
    let reports = guests.iter().map(|(port, report)| (port.as_str(), &report.figures));
    Ok(pythonize::pythonize(py, &Named(reports.collect()))?)
}
