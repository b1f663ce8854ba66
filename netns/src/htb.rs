//! Kernel traffic shaping (HTB), for veth pairs between native nodes.
//!
//! Other emulators shape this way. Its known artefact: after an idle period of the link, a burst of
//! up to `burst` octets leaves at line speed.

use crate::netlink::Batch;
use crate::rtnetlink::{CREATE, EXCLUSIVE};

const NEW_QDISC: u16 = 36;
const NEW_CLASS: u16 = 40;
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
const ROOT: u32 = 0xffff_ffff;
const HANDLE: u32 = 0x0001_0000;
const CLASS: u32 = HANDLE | 1;
const LEAF: u32 = 0x0002_0000;
const LINK_LAYER_ETHERNET: u8 = 1;
/// The kernel's unit of packet-scheduler time: 64 ns.
const TICK_SHIFT: u32 = 6;

/// Shaping of outgoing packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rate in bit/s, counted on Ethernet frames without preamble, gap and check sequence, plus
    /// `overhead`.
    pub rate: u64,
    /// Octets that may leave at line speed after an idle period.
    pub burst: u32,
    /// Maximum number of queued packets.
    pub packets: u32,
    /// Octets charged beside each frame (24 for preamble, gap and check sequence).
    pub overhead: u16,
}

/// Root discipline with one class and a first-in-first-out queue in it.
pub(crate) fn requests(batch: &mut Batch, interface: &str, index: i32, shape: &Shape) {
    batch.request(NEW_QDISC, CREATE | EXCLUSIVE, &body(index, HANDLE, ROOT), format!("HTB on {interface}"));
    batch.attribute(TCA_KIND, b"htb\0");
    batch.nest(TCA_OPTIONS, &[], |batch| {
        let mut init = [0; 20];
        for (place, value) in init.chunks_exact_mut(4).zip([3_u32, 10, CLASS & 0xffff, 0, 0]) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        batch.attribute(TCA_HTB_INIT, &init);
    });

    let octets = shape.rate / 8;
    let ticks = (u64::from(shape.burst) * 1_000_000_000 / octets.max(1)) >> TICK_SHIFT;
    let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
    let mut parameters = Vec::with_capacity(44);
    for _ in 0..2 {
        // Rate and ceiling are equal: there is no other class to borrow from.
        parameters.extend_from_slice(&[0, LINK_LAYER_ETHERNET]);
        parameters.extend_from_slice(&shape.overhead.to_ne_bytes());
        parameters.extend_from_slice(&[0; 4]);
        parameters.extend_from_slice(&u32::try_from(octets).unwrap_or(u32::MAX).to_ne_bytes());
    }
    for value in [ticks, ticks, 0, 0, 0] {
        parameters.extend_from_slice(&value.to_ne_bytes());
    }
    batch.request(
        NEW_CLASS,
        CREATE | EXCLUSIVE,
        &body(index, CLASS, HANDLE),
        format!("HTB class of {} bit/s on {interface}", shape.rate),
    );
    batch.attribute(TCA_KIND, b"htb\0");
    batch.nest(TCA_OPTIONS, &[], |batch| {
        batch.attribute(TCA_HTB_PARMS, &parameters);
        batch.attribute(TCA_HTB_RATE64, &octets.to_ne_bytes());
        batch.attribute(TCA_HTB_CEIL64, &octets.to_ne_bytes());
    });

    batch.request(
        NEW_QDISC,
        CREATE | EXCLUSIVE,
        &body(index, LEAF, CLASS),
        format!("queue of {} packets on {interface}", shape.packets),
    );
    batch.attribute(TCA_KIND, b"pfifo\0");
    batch.attribute(TCA_OPTIONS, &shape.packets.to_ne_bytes());
}

fn body(index: i32, handle: u32, parent: u32) -> [u8; 20] {
    let mut body = [0; 20];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&handle.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    body
}
