//! Sockets and their options.

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use airloom_engine::time::Span;

use crate::clock;
use crate::frame::Family;
use crate::stop;

pub mod batch;

/// The version of the Internet Protocol of an address.
#[must_use]
pub fn family(address: IpAddr) -> Family {
    if address.is_ipv4() { Family::V4 } else { Family::V6 }
}

/// Sets a socket option with an integer value.
pub(crate) fn set(fd: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the pointer and length describe `value`, which lives through the call.
    let done = unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), INT) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[allow(clippy::cast_possible_truncation)] // four
const INT: libc::socklen_t = size_of::<libc::c_int>() as libc::socklen_t;

/// Sets the traffic class of all packets of a socket (DSCP in the upper six bits, ECN in the lower
/// two).
pub fn set_class(socket: &impl AsRawFd, family: Family, class: u8) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    match family {
        Family::V4 => set(fd, libc::IPPROTO_IP, libc::IP_TOS, class.into()),
        Family::V6 => set(fd, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class.into()),
    }
}

/// Forbids fragmentation: a packet larger than the path MTU is then refused and recorded as not
/// sent.
pub fn dont_fragment(socket: &UdpSocket, family: Family) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    match family {
        Family::V4 => set(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO),
        Family::V6 => set(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO),
    }
}

/// Sets TCP's congestion control by its kernel name, before connecting.
pub fn set_congestion(socket: &impl AsRawFd, name: &str) -> io::Result<()> {
    // SAFETY: the pointer and length describe `name`, which lives through the call.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            libc::socklen_t::try_from(name.len()).unwrap_or(libc::socklen_t::MAX),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Number of TCP retransmissions, from `TCP_INFO` (`tcpi_total_retrans`).
#[must_use]
pub fn retransmits(stream: &TcpStream) -> Option<u32> {
    /// Offset of the field in `struct tcp_info` (linux/tcp.h), which only grows at its end.
    const AT: usize = 100;
    let mut info = [0_u8; AT + 4];
    let mut length = libc::socklen_t::try_from(info.len()).ok()?;
    // SAFETY: the kernel writes at most `length` octets to `info`.
    let done = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    (done == 0 && length as usize == info.len())
        .then(|| u32::from_ne_bytes([info[AT], info[AT + 1], info[AT + 2], info[AT + 3]]))
}

/// A UDP socket connected to one peer, so that it receives its ICMP errors.
pub fn udp_to(peer: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => [0, 0, 0, 0].into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    Ok(socket)
}

/// A UDP socket that receives; with an unspecified IPv6 address also over IPv4.
///
/// It requests the kernel's arrival stamps (`SO_TIMESTAMPNS`) and the traffic class. `buffer` is the
/// requested buffer size in octets; sizes beyond the system's limit need root.
pub fn udp_at(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = UdpSocket::from(bound(address, libc::SOCK_DGRAM)?);
    let fd = socket.as_raw_fd();
    let buffer = libc::c_int::try_from(buffer).unwrap_or(libc::c_int::MAX);
    if set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer).is_err() {
        set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, buffer)?;
    }
    set(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    // A dual-stack socket has the options of both families; setting one that does
    // not apply fails harmlessly.
    let class4 = set(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1);
    let class6 = set(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1);
    class4.or(class6)?;
    Ok(socket)
}

/// Receive buffer of a socket in octets, as the kernel counts: including its own overhead.
#[must_use]
pub fn receive_buffer(socket: &UdpSocket) -> u32 {
    memory(socket)[1]
}

/// Packets that a socket has dropped so far, mostly because its buffer was full.
#[must_use]
pub fn dropped(socket: &UdpSocket) -> u64 {
    memory(socket)[8].into()
}

/// Memory statistics of a socket (`SO_MEMINFO`), in the order of `SK_MEMINFO_*` in
/// linux/sock_diag.h.
fn memory(socket: &UdpSocket) -> [u32; 9] {
    let mut figures = [0_u32; 9];
    #[allow(clippy::cast_possible_truncation)] // 36
    let mut length = size_of_val(&figures) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` octets to `figures`.
    unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            figures.as_mut_ptr().cast(),
            &raw mut length,
        );
    }
    figures
}

/// A TCP socket that listens; with an unspecified IPv6 address also over IPv4.
pub fn tcp_at(address: SocketAddr) -> io::Result<TcpListener> {
    let fd = bound(address, libc::SOCK_STREAM)?;
    // SAFETY: a plain call on a descriptor that is open.
    if unsafe { libc::listen(fd.as_raw_fd(), 8) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(TcpListener::from(fd))
}

/// A bound socket. The standard library is not used because it leaves `IPV6_V6ONLY` to a sysctl.
fn bound(address: SocketAddr, kind: libc::c_int) -> io::Result<OwnedFd> {
    let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    // SAFETY: a plain call; the result is checked before it is owned.
    let fd = unsafe { libc::socket(domain, kind | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor, and it has no other owner.
    let owned = unsafe { OwnedFd::from_raw_fd(fd) };
    if kind == libc::SOCK_STREAM {
        set(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    }
    if address.is_ipv6() {
        set(fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0)?;
    }
    let (storage, length) = raw(address);
    // SAFETY: the pointer and length describe `storage`, which lives through the call.
    if unsafe { libc::bind(fd, (&raw const storage).cast(), length) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(owned)
}

/// Converts an address to the kernel's structure.
#[allow(clippy::cast_possible_truncation)] // small structures and small constants
fn raw(address: SocketAddr) -> (libc::sockaddr_in6, libc::socklen_t) {
    // SAFETY: all-zero octets are a valid socket address structure.
    let mut storage: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    match address {
        SocketAddr::V4(v4) => {
            let in4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: a sockaddr_in6 is larger than a sockaddr_in and at least as aligned.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(in4) };
            (storage, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(v6) => {
            storage.sin6_family = libc::AF_INET6 as libc::sa_family_t;
            storage.sin6_port = v6.port().to_be();
            storage.sin6_addr.s6_addr = v6.ip().octets();
            storage.sin6_scope_id = v6.scope_id();
            (storage, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}

/// Waits until a socket is writable or readable, or has an error; returns `false` after
/// the time-out or a signal.
pub fn ready(socket: &impl AsRawFd, write: bool, within: Span) -> io::Result<bool> {
    let events = if write { libc::POLLOUT } else { libc::POLLIN };
    let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events, revents: 0 };
    let time = clock::timespec(within.nanos());
    // SAFETY: `poll` is one valid pollfd, `time` a valid timespec, and the mask is valid through
    // the call.
    let done = stop::waiting(|mask| unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, mask) });
    match done {
        None | Some(0) => Ok(false),
        Some(1) => Ok(true),
        Some(_) => {
            let error = io::Error::last_os_error();
            if error.kind() == io::ErrorKind::Interrupted { Ok(false) } else { Err(error) }
        }
    }
}
