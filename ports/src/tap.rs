//! A TAP interface by file descriptor: the port of a node that uses its kernel's own stack.
//!
//! Frames have the 12-octet virtio-net header, with segmentation and checksum offload, so
//! that a 64 kB super-frame costs one system call.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use airloom_engine::frame::Pool;
use airloom_engine::{Delivery, Gathers, HostLoss};
use rustix::io::Errno;
use rustix::ioctl::{Getter, IntegerSetter, Opcode, Setter, Updater, ioctl};

use crate::carrier_drops::{CarrierDrops, Unsent};
use crate::error::Error;
use crate::offloads::Offloads;
use crate::port::{Blocking, Incoming, Outgoing, Port};
use crate::rx::{self, RxBuffers};
use crate::sys::set_nonblocking;
use crate::{tx, vnet};

const TUNSETOFFLOAD: Opcode = 0x4004_54d0;
const TUNSETVNETHDRSZ: Opcode = 0x4004_54d8;
const TUNGETVNETHDRSZ: Opcode = 0x8004_54d7;
const TUNSETCARRIER: Opcode = 0x4004_54e2;
const TUNGETIFF: Opcode = 0x8004_54d2;

const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;

/// Offloads that a TAP may leave to its reader, in descending order: kernels before 6.2 have no UDP
/// segmentation, and others may refuse any of them.
const OFFLOADS: [u32; 4] = [
    TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN | TUN_F_USO4 | TUN_F_USO6,
    TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN,
    TUN_F_CSUM,
    0,
];

/// First entry of [`OFFLOADS`] that this kernel has accepted, so that only the first TAP has to
/// try.
static ACCEPTED: AtomicU32 = AtomicU32::new(0);

/// The engine's side of a TAP interface.
#[derive(Debug)]
pub struct Tap {
    fd: Arc<OwnedFd>,
    offload: Offload,
    /// Super-frames that the node receives; None if each frame is written as a wire carries it.
    gathers: Option<Gathers>,
    /// True if the engine computes the transport checksums of the frames that it writes.
    completes_checksums: bool,
    carrier_drops: Arc<CarrierDrops>,
    /// True once its namespace ended.
    gone: bool,
}

/// Offloads that a TAP leaves to its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offload {
    /// Transport checksums may be incomplete.
    pub checksum: bool,
    /// TCP super-frames.
    pub tcp: bool,
    /// UDP super-frames.
    pub udp: bool,
}

impl Tap {
    /// Takes ownership, or a share of it, of an existing TAP, and sets its header size and offloads.
    ///
    /// # Errors
    /// [`Error::TapDescriptor`] if the descriptor is not a TAP with virtio-net header.
    pub fn from_fd(fd: impl Into<Arc<OwnedFd>>, offloads: Offloads) -> Result<Self, Error> {
        let fd = fd.into();
        let raw = fd.as_raw_fd();
        let fail = |why: String| Error::TapDescriptor { fd: raw, why };
        // SAFETY: an ifreq is plain integers, for which zero is a value; it has the layout that
        // TUNGETIFF fills, flags included.
        let flags = unsafe {
            let mut request: libc::ifreq = std::mem::zeroed();
            ioctl(&fd, Updater::<TUNGETIFF, _>::new(&mut request))
                .map_err(|source| fail(format!("TUNGETIFF: {}", io::Error::from(source))))?;
            i32::from(request.ifr_ifru.ifru_flags)
        };
        for (flag, name) in
            [(libc::IFF_TAP, "IFF_TAP"), (libc::IFF_NO_PI, "IFF_NO_PI"), (libc::IFF_VNET_HDR, "IFF_VNET_HDR")]
        {
            if flags & flag == 0 {
                return Err(fail(format!("it was made without {name}")));
            }
        }
        set_nonblocking(&fd).map_err(|source| fail(format!("O_NONBLOCK: {source}")))?;
        let failed = |(what, source)| fail(format!("{what}: {source}"));
        let of_kernel = prepare(&fd).map_err(failed)?;
        let offload = if offloads.transmit {
            of_kernel
        } else {
            leave(&fd, 0).map_err(|source| failed(("TUNSETOFFLOAD", source.into())))?;
            Offload { checksum: false, tcp: false, udp: false }
        };
        let carrier_drops = Arc::default();
        let gathers = offloads.receive.then_some(Gathers { tcp: of_kernel.tcp, udp: of_kernel.udp });
        let completes_checksums = !offloads.receive;
        Ok(Self { fd, offload, gathers, completes_checksums, carrier_drops, gone: false })
    }

    /// Computes the transport checksums of all frames written but super-frames, for a node that
    /// hands frames on without a network stack: Open vSwitch sends the octets of a frame
    /// to its controller, but not the note that its checksum is incomplete.
    #[must_use]
    pub fn completing_checksums(self) -> Self {
        Self { completes_checksums: true, ..self }
    }

    /// The offloads that this TAP leaves to its reader.
    #[must_use]
    pub fn offload(&self) -> Offload {
        self.offload
    }
}

impl Port for Tap {
    fn fd(&self) -> Option<RawFd> {
        Some(self.fd.as_raw_fd())
    }

    /// A kernel that takes a super-frame of datagrams cuts it for sockets that want single ones.
    fn gathers(&self) -> Gathers {
        self.gathers.unwrap_or_default()
    }

    fn receive(&mut self, buffers: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        let fd = self.fd.as_raw_fd();
        let incoming = rx::next(|| buffers.read(fd, pool), |_| false);
        self.gone |= matches!(incoming, Incoming::Closed);
        incoming
    }

    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery {
        if self.gone {
            return Delivery::Lost(HostLoss::NodeGone);
        }
        let (fd, complete, frame) = (self.fd.as_raw_fd(), self.completes_checksums, outgoing.frame);
        if self.gathers.is_some() {
            return tx::write(fd, vnet::OCTETS, complete, frame, outgoing.pool);
        }
        for segment in 0..frame.count {
            let one = frame.part(frame.first + segment, 1);
            match tx::write(fd, vnet::OCTETS, complete, &one, outgoing.pool) {
                Delivery::Taken => {}
                Delivery::Lost(loss) if segment > 0 => return Delivery::Partly(segment, loss),
                other => return other,
            }
        }
        Delivery::Taken
    }

    /// The ioctl takes the RTNL lock, which other processes may hold for milliseconds.
    fn set_carrier(&mut self, up: bool) -> Option<Blocking> {
        let fd = Arc::clone(&self.fd);
        let drops = Arc::clone(&self.carrier_drops);
        Some(Box::new(move || {
            drops.around(&fd, up, || {
                // SAFETY: TUNSETCARRIER reads one int.
                let order = unsafe { Setter::<TUNSETCARRIER, _>::new(libc::c_int::from(up)) };
                // SAFETY: as above. It fails only if the interface is gone.
                let _ = unsafe { ioctl(&*fd, order) };
            });
        }))
    }

    fn unsent(&self) -> Option<Unsent> {
        self.carrier_drops.unsent()
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

/// Sets header size and offloads.
fn prepare(fd: &OwnedFd) -> Result<Offload, (&'static str, io::Error)> {
    let octets = libc::c_int::try_from(vnet::OCTETS).expect("twelve fits");
    // SAFETY: TUNSETVNETHDRSZ reads and TUNGETVNETHDRSZ writes one int.
    let now = unsafe {
        ioctl(fd, Setter::<TUNSETVNETHDRSZ, _>::new(octets))
            .map_err(|source| ("TUNSETVNETHDRSZ", source.into()))?;
        ioctl(fd, Getter::<TUNGETVNETHDRSZ, libc::c_int>::new())
            .map_err(|source| ("TUNGETVNETHDRSZ", source.into()))?
    };
    if now != octets {
        return Err(("TUNGETVNETHDRSZ", Errno::INVAL.into()));
    }
    let mut last = Errno::INVAL;
    let from = ACCEPTED.load(Ordering::Relaxed);
    for (index, &offload) in (0u32..).zip(&OFFLOADS).skip(from as usize) {
        match leave(fd, offload) {
            Ok(()) => {
                ACCEPTED.store(index, Ordering::Relaxed);
                return Ok(Offload {
                    checksum: offload & TUN_F_CSUM != 0,
                    tcp: offload & TUN_F_TSO4 != 0,
                    udp: offload & TUN_F_USO4 != 0,
                });
            }
            Err(error) => last = error,
        }
    }
    Err(("TUNSETOFFLOAD", last.into()))
}

/// Sets the offloads that the kernel leaves to the reader.
fn leave(fd: &OwnedFd, offload: u32) -> rustix::io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its argument by value.
    unsafe { ioctl(fd, IntegerSetter::<TUNSETOFFLOAD>::new_usize(offload as usize)) }
}
