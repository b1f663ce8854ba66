//! The guests behind ports, and the radios of this machine's kernel: devices and transfer counters.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use airloom_engine::medium::phy::tables::by_name;
use airloom_engine::time::Span;
use airloom_netns::hwsim::{self, Radios};
use airloom_netns::read_mac;
use airloom_ports::offloads::Offloads;
use airloom_ports::port::Report;
use airloom_ports::vhost::{self, Coalescing, DeviceConfig, Translation, Vhost};
use airloom_ports::wlan::{self, WlanPort};
use airloom_ports::world::World;
use pyo3::prelude::*;

use crate::convert::duplicate;
use crate::errors::Fault;
use crate::views::Named;

/// A cache of mapped pages, of one guest or common to several.
#[pyclass(frozen, module = "airloom._engine")]
pub struct IoTlb(vhost::IoTlb);

#[pymethods]
impl IoTlb {
    #[new]
    fn new(entries: usize) -> PyResult<Self> {
        let refused = || Fault::Settings(format!("a cache of {entries} pages"));
        Ok(Self(vhost::IoTlb::new(entries).ok_or_else(refused)?))
    }
}

/// How the devices of a machine treat their guest.
#[pyclass(frozen, module = "airloom._engine")]
pub struct Handling(vhost::Handling);

#[pymethods]
impl Handling {
    #[new]
    #[pyo3(signature = (
        notifications = "off", frames = 1, time = 0, translation = "direct", tlb = None, in_band = false
    ))]
    fn new(
        notifications: &str,
        frames: u16,
        time: u64,
        translation: &str,
        tlb: Option<&IoTlb>,
        in_band: bool,
    ) -> PyResult<Self> {
        let time = Span::from_nanos(time);
        let coalescing = match notifications {
            "off" => Coalescing::Off,
            "count" => Coalescing::Held { frames, time },
            "time" => Coalescing::Held { frames: u16::MAX, time },
            "adaptive" => Coalescing::Adaptive { frames, time },
            other => return Err(Fault::Settings(format!("no mode {other} of notifications")).into()),
        };
        let translation = match (translation, tlb) {
            ("direct", None) => Translation::Direct,
            ("bounce", None) => Translation::Bounce,
            ("strict", None) => Translation::Strict,
            ("cached" | "merged", Some(tlb)) => Translation::Cached(tlb.0.clone()),
            (other, _) => {
                return Err(Fault::Settings(format!("no mode {other} of a translation")).into());
            }
        };
        Ok(Self(vhost::Handling { coalescing, translation, in_band }))
    }
}

fn handling(said: Option<&Handling>) -> vhost::Handling {
    said.map(|said| said.0.clone()).unwrap_or_default()
}

/// The network device of the guest that will connect to a listening socket.
pub fn device(
    listener: OwnedFd,
    mac: &str,
    mtu: u16,
    offloads: Offloads,
    said: Option<&Handling>,
) -> Result<Vhost<DeviceConfig>, Fault> {
    let mac = read_mac(mac).map_err(Fault::Settings)?;
    Ok(Vhost::serve(listener, DeviceConfig { mac, mtu, offloads }, handling(said))?)
}

/// Whether this machine's kernel has simulated radios.
#[pyfunction]
pub fn has_radios() -> PyResult<bool> {
    Ok(hwsim::is_there().map_err(|error| Fault::Radios(error.to_string()))?)
}

/// The wireless device of a guest or of this machine's kernel, to which all its radios belong.
#[pyclass(frozen, module = "airloom._engine")]
pub struct WlanDevice {
    device: wlan::WlanDevice,
    of_kernel: Option<OfKernel>,
}

/// Radios of this machine's kernel.
struct OfKernel {
    /// The network namespace in which they were created.
    namespace: OwnedFd,
    /// The kernel's number of each.
    numbers: Vec<u16>,
}

#[pymethods]
impl WlanDevice {
    #[new]
    #[pyo3(signature = (listener, stream = false, handling = None))]
    fn new(listener: i32, stream: bool, handling: Option<&Handling>) -> PyResult<Self> {
        let listener = duplicate(listener)?;
        let served = match (stream, handling) {
            (false, _) => wlan::WlanDevice::serve(listener, self::handling(handling)),
            (true, None) => wlan::WlanDevice::serve_stream(listener),
            (true, Some(_)) => return Err(Fault::Settings("a stream has no buffers to handle".into()).into()),
        };
        Ok(Self { device: served.map_err(Fault::from)?, of_kernel: None })
    }

    #[staticmethod]
    fn of_kernel(py: Python<'_>, count: u8) -> PyResult<Self> {
        let (radios, namespace) = py.detach(|| Radios::create_apart(count)).map_err(Fault::Radios)?;
        let of_kernel = OfKernel { namespace, numbers: radios.numbers().to_vec() };
        Ok(Self { device: wlan::WlanDevice::of_kernel(radios), of_kernel: Some(of_kernel) })
    }

    fn numbers(&self) -> Vec<u16> {
        self.of_kernel.as_ref().map(|made| made.numbers.clone()).unwrap_or_default()
    }
}

impl WlanDevice {
    /// The port of the radio with this number, whose physical layer has this name.
    pub fn port(&self, radio: usize, phy: &str) -> Result<WlanPort, Fault> {
        let known = by_name(phy).ok_or_else(|| Fault::Settings(format!("no physical layer {phy}")))?;
        let most = wlan::device::MOST_RADIOS;
        let refused = || Fault::Settings(format!("radio {radio} of a guest, which has at most {most}"));
        self.device.port(radio, known).ok_or_else(refused)
    }

    /// The network namespace in which the radios of this machine's kernel were created.
    pub fn namespace(&self) -> Option<BorrowedFd<'_>> {
        self.of_kernel.as_ref().map(|made| made.namespace.as_fd())
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
