//! Times at which a packet passed boundaries in the sending or receiving kernel.
//!
//! A packet leaves the program (a system call), the kernel's network stack, and the device's
//! driver; at the other end it passes them in reverse order. The sending kernel's stamps arrive on
//! the socket's error queue (`SO_TIMESTAMPING`, see the kernel's `networking/timestamping`): when
//! the stack passed the packet to the queueing discipline, and when the driver took it. They cost
//! about two more system calls per packet, so they are optional.

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use airloom_engine::time::{Instant, Span};

use crate::clock::{self, Offset};
use crate::net;

/// A boundary that a packet passed after it was written to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The sending kernel's stack passed it to the queueing discipline (`SCM_TSTAMP_SCHED`).
    Queued = 1,
    /// The sending device's driver took it (`SCM_TSTAMP_SND`).
    Driver = 2,
    /// The receiving program had read it.
    Read = 3,
}

/// Maximum number of stamps per system call.
const BATCH: usize = 32;
/// 64-bit words of control messages: three times (64 octets), and the error with
/// the offender's address (64).
const CONTROL: usize = 24;

/// `SCM_TSTAMP_SND` and `SCM_TSTAMP_SCHED` of linux/errqueue.h.
const SENT: u32 = 0;
const SCHEDULED: u32 = 1;

const KINDS: libc::c_uint = libc::SOF_TIMESTAMPING_TX_SCHED
    | libc::SOF_TIMESTAMPING_TX_SOFTWARE
    | libc::SOF_TIMESTAMPING_SOFTWARE
    | libc::SOF_TIMESTAMPING_OPT_ID
    | libc::SOF_TIMESTAMPING_OPT_TSONLY;

/// Reads the sending kernel's stamps of one socket.
pub struct Stamps {
    control: Box<[[u64; CONTROL]; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
    /// The number of each packet that the kernel counted, in order.
    numbers: Vec<u64>,
}

impl Stamps {
    /// Requests stamps of all packets that this socket sends from now on.
    pub fn ask(socket: &UdpSocket) -> io::Result<Self> {
        #[allow(clippy::cast_possible_wrap)] // small flags
        let kinds = KINDS as libc::c_int;
        net::set(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, kinds)?;
        // SAFETY: null pointers with zero lengths are valid mmsghdrs.
        let messages = unsafe { std::mem::zeroed() };
        Ok(Self {
            control: Box::new([[0; CONTROL]; BATCH]),
            messages: Box::new(messages),
            numbers: Vec::with_capacity(1 << 16),
        })
    }

    /// Records that the socket accepted the packet with this number.
    pub fn took(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Passes on every available stamp: boundary, number of the packet, time.
    pub fn fetch(&mut self, socket: &UdpSocket, mut each: impl FnMut(Stage, u64, Instant)) {
        loop {
            for index in 0..BATCH {
                let header = &mut self.messages[index].msg_hdr;
                header.msg_control = self.control[index].as_mut_ptr().cast();
                header.msg_controllen = (CONTROL * 8) as _;
            }
            // SAFETY: every message has a control buffer that `self` owns and no payload; lengths
            // are theirs.
            let count = unsafe {
                libc::recvmmsg(
                    socket.as_raw_fd(),
                    self.messages.as_mut_ptr(),
                    32,
                    (libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT) as _,
                    std::ptr::null_mut(),
                )
            };
            let Ok(count) = usize::try_from(count) else { return };
            let (now, offset) = (clock::now(), Offset::measure());
            for message in &self.messages[..count] {
                let Some((stage, taken, real)) = stamp(&message.msg_hdr) else { continue };
                if let (Some(&number), Some(time)) =
                    (self.numbers.get(taken as usize), offset.to_monotonic(real, now))
                {
                    each(stage, number, time);
                }
            }
            if count < BATCH {
                return;
            }
        }
    }
}

/// Boundary, index of the packet in the order in which the socket accepted them,
/// and `CLOCK_REALTIME` in ns.
fn stamp(header: &libc::msghdr) -> Option<(Stage, u32, u64)> {
    let (mut real, mut which) = (None, None);
    // SAFETY: the header and its control buffer are as the kernel left them; CMSG_FIRSTHDR and
    // CMSG_NXTHDR stay inside `msg_controllen`, and each type has the payload that is read
    // (linux/errqueue.h). Unaligned reads because control data need not be aligned for the type.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = next.as_ref() {
            let data = libc::CMSG_DATA(control);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    real = Some(clock::nanos(&data.cast::<libc::timespec>().read_unaligned()));
                }
                (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR) => {
                    let error = data.cast::<libc::sock_extended_err>().read_unaligned();
                    if error.ee_origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
                        which = Some((error.ee_info, error.ee_data));
                    }
                }
                _ => {}
            }
            next = libc::CMSG_NXTHDR(header, control);
        }
    }
    let (kind, taken) = which?;
    let stage = match kind {
        SCHEDULED => Stage::Queued,
        SENT => Stage::Driver,
        _ => return None,
    };
    Some((stage, taken, real?))
}

/// Cost of entering and leaving this kernel: the fastest of ten rounds of a system call that does
/// nothing.
#[must_use]
pub fn system_call() -> Span {
    const CALLS: u64 = 200;
    let round = || {
        let begun = clock::now();
        for _ in 0..CALLS {
            // SAFETY: a call without arguments that only returns a number.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
        clock::now().since(begun).nanos() / CALLS
    };
    Span::from_nanos((0..10).map(|_| round()).min().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_stamps_of_every_packet_come_back_in_order() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let mut stamps = Stamps::ask(&sender).unwrap();
        let begun = clock::now();
        for number in [7, 8, 11] {
            sender.send(b"x").unwrap();
            stamps.took(number);
        }
        let mut found = Vec::new();
        let until = begun + Span::from_secs(2);
        while found.len() < 6 && clock::now() < until {
            stamps.fetch(&sender, |stage, number, time| found.push((number, stage as u8, time)));
        }
        found.sort_unstable();
        let order: Vec<_> = found.iter().map(|(number, stage, _)| (*number, *stage)).collect();
        assert_eq!(order, [(7, 1), (7, 2), (8, 1), (8, 2), (11, 1), (11, 2)]);
        assert!(found.iter().all(|(_, _, time)| *time >= begun && *time <= clock::now()));
    }

    #[test]
    fn a_system_call_costs_something() {
        assert!(system_call() > Span::ZERO);
    }
}
