//! A named real interface as a port: hardware in the loop, through a packet socket.
//!
//! The interface is promiscuous while the port exists. Frames that the host itself sends on the
//! interface are not received. A VLAN tag that the network card removed is inserted again.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use airloom_engine::frame::Pool;
use airloom_engine::{Delivery, HostLoss};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::net::{self, AddressFamily, SocketFlags, SocketType};

use crate::error::Error;
use crate::port::{Incoming, Outgoing, Port};
use crate::rx::{self, RxBuffers};
use crate::sys::check;
use crate::tx;

const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Receive buffer of the socket, in octets; the kernel drops frames beyond it.
const RECEIVE_OCTETS: usize = 8 << 20;
/// Octets of the virtio-net header on a packet socket: without `num_buffers`.
pub(crate) const VNET_OCTETS: usize = 10;
/// Octets of a VLAN tag.
pub(crate) const VLAN_TAG: usize = 4;
/// Octets of the two Ethernet addresses, after which the VLAN tag is placed.
const ADDRESSES: usize = 12;

/// A real interface.
#[derive(Debug)]
pub struct Interface {
    socket: PacketSocket,
    /// True once the interface was deleted.
    gone: bool,
}

/// A packet socket bound to one interface.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl Interface {
    /// Attaches to the interface called `name` in the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Interface`] if there is none of that name or packet sockets are not permitted.
    pub fn attach(name: &str) -> Result<Self, Error> {
        let fail = |what, source| Error::Interface { name: name.to_owned(), what, source };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        // Protocol 0: nothing is received before the socket is bound to its interface.
        let socket = net::socket_with(AddressFamily::PACKET, SocketType::RAW, flags, None)
            .map_err(|source| fail("packet socket", source.into()))?;
        let fd = socket.as_raw_fd();
        let index = net::netdevice::name_to_index(&socket, name)
            .map_err(|source| fail("no such interface", source.into()))?;
        let index = libc::c_int::try_from(index).expect("the kernel's indices are ints");
        for (option, value, what) in [
            (libc::PACKET_VNET_HDR, 1, "PACKET_VNET_HDR"),
            (PACKET_IGNORE_OUTGOING, 1, "PACKET_IGNORE_OUTGOING"),
            (libc::PACKET_AUXDATA, 1, "PACKET_AUXDATA"),
        ] {
            set(fd, libc::SOL_PACKET, option, &value).map_err(|source| fail(what, source))?;
        }
        // More than the system's limit requires privilege; otherwise the limit applies.
        set_socket_recv_buffer_size_force(&socket, RECEIVE_OCTETS)
            .or_else(|_| set_socket_recv_buffer_size(&socket, RECEIVE_OCTETS))
            .map_err(|source| fail("SO_RCVBUF", source.into()))?;
        // SAFETY: a sockaddr_ll is plain integers, for which zero is a value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = u16::try_from(libc::AF_PACKET).expect("a small number");
        address.sll_protocol = u16::try_from(libc::ETH_P_ALL).expect("a small number").to_be();
        address.sll_ifindex = index;
        let octets = libc::socklen_t::try_from(size_of_val(&address)).expect("a small number");
        // SAFETY: the address outlives the call and `octets` is its length.
        check(unsafe { libc::bind(fd, (&raw const address).cast(), octets) })
            .map_err(|source| fail("bind", source))?;
        let member = libc::packet_mreq {
            mr_ifindex: index,
            mr_type: u16::try_from(libc::PACKET_MR_PROMISC).expect("a small number"),
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &member)
            .map_err(|source| fail("promiscuous mode", source))?;
        Ok(Self { socket: PacketSocket(socket), gone: false })
    }
}

impl PacketSocket {
    /// Frames dropped by the kernel since the last call because the receive buffer was full.
    fn dropped(&self) -> u64 {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut octets = libc::socklen_t::try_from(size_of_val(&statistics)).unwrap_or(0);
        // SAFETY: the structure and its length outlive the call.
        let answer = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut octets,
            )
        };
        if answer < 0 { 0 } else { u64::from(statistics.tp_drops) }
    }

    /// Receives one frame into the pieces of `iov`, the first of which gets the virtio-net header.
    /// Returns the octets of header and frame, and the VLAN tag that the network card removed.
    ///
    /// # Safety
    /// The pieces must be writable memory.
    pub(crate) unsafe fn receive(
        &self,
        iov: &mut [libc::iovec],
    ) -> io::Result<(usize, Option<[u8; VLAN_TAG]>)> {
        // Aligned for a cmsghdr, with room for one tpacket_auxdata.
        let mut control = [0u64; 8];
        // SAFETY: a msghdr is integers and pointers, for which zero is a value.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = iov.as_mut_ptr();
        message.msg_iovlen = iov.len();
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: the message refers to memory that outlives the call; the caller vouches for
        // `iov`.
        let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, 0) };
        let got = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
        let mut tag = None;
        // SAFETY: the kernel has filled the control buffer, and the macros stay inside it.
        unsafe {
            let mut header = libc::CMSG_FIRSTHDR(&raw const message);
            while let Some(head) = header.as_ref() {
                if head.cmsg_level == libc::SOL_PACKET && head.cmsg_type == libc::PACKET_AUXDATA {
                    let data: libc::tpacket_auxdata =
                        std::ptr::read_unaligned(libc::CMSG_DATA(header).cast());
                    tag = vlan(&data);
                }
                header = libc::CMSG_NXTHDR(&raw const message, header);
            }
        }
        Ok((got, tag))
    }
}

impl Port for Interface {
    fn fd(&self) -> Option<RawFd> {
        Some(self.socket.0.as_raw_fd())
    }

    fn receive(&mut self, buffers: &mut RxBuffers, pool: &mut Pool) -> Incoming {
        // ENETDOWN: the interface is down, possibly for a short time.
        let incoming = rx::next(|| buffers.receive(&self.socket, pool), |error| error == libc::ENETDOWN);
        self.gone |= matches!(incoming, Incoming::Closed);
        incoming
    }

    fn deliver(&mut self, outgoing: Outgoing<'_>) -> Delivery {
        if self.gone {
            return Delivery::Lost(HostLoss::NodeGone);
        }
        tx::write(self.socket.0.as_raw_fd(), VNET_OCTETS, false, outgoing.frame, outgoing.pool)
    }

    fn missed(&mut self) -> u64 {
        self.socket.dropped()
    }

    fn is_gone(&self) -> bool {
        self.gone
    }
}

fn vlan(data: &libc::tpacket_auxdata) -> Option<[u8; VLAN_TAG]> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
    let [a, b] = if known { data.tp_vlan_tpid } else { 0x8100 }.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    Some([a, b, c, d])
}

/// Inserts a VLAN tag into the frame that fills the first `length` octets of `octets`; returns the
/// new length, or None if there is no room.
pub(crate) fn put_back(tag: [u8; VLAN_TAG], octets: &mut [u8], length: usize) -> Option<usize> {
    if length < ADDRESSES || length + VLAN_TAG > octets.len() {
        return None;
    }
    octets.copy_within(ADDRESSES..length, ADDRESSES + VLAN_TAG);
    octets[ADDRESSES..ADDRESSES + VLAN_TAG].copy_from_slice(&tag);
    Some(length + VLAN_TAG)
}

fn set<T>(fd: RawFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let octets = libc::socklen_t::try_from(size_of::<T>()).expect("options are short");
    // SAFETY: the value outlives the call and `octets` is its length.
    check(unsafe { libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), octets) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vlan_tag_goes_behind_the_addresses() {
        let mut octets = [0u8; 20];
        octets[..14].copy_from_slice(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
        assert_eq!(put_back([0x81, 0, 0, 7], &mut octets, 14), Some(18));
        assert_eq!(octets[10..18], [2, 2, 0x81, 0, 0, 7, 8, 0]);
        assert_eq!(put_back([0x81, 0, 0, 7], &mut octets, 18), None);
    }

    #[test]
    fn an_unknown_interface_is_an_error_with_its_name() {
        let error = Interface::attach("no-such-if").expect_err("there is none");
        assert_eq!(error.code(), "host.interface");
        assert!(error.to_string().contains("no-such-if"));
    }
}
