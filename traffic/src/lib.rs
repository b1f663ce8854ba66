//! Traffic generator and collector that runs inside any kind of node.
//!
//! `airloom-traffic send` sends one flow (UDP, TCP or RTP; constant, Poisson, on/off or from a
//! trace) and `airloom-traffic receive` receives it. Both write a record of every packet: its
//! number, its size, and when it was scheduled, sent and received. [`record`] describes the file,
//! [`packet`] the content of the packets, [`frame`] the sizes.
//!
//! **Clock.** All times are nanoseconds of `CLOCK_MONOTONIC`, which all network namespaces of a
//! machine share, so that one-way delays need no synchronization there. A packet's *sent* time is
//! read right before the system call that sends it; packets that are due together (when the sender
//! is behind its schedule, or at rates beyond one packet per system call) share one call of up to
//! 32 packets and one time, which is then early by up to about 1 us per packet. A packet's
//! *arrival* is the kernel's stamp (`SO_TIMESTAMPNS`), which excludes the time until the receiver
//! is scheduled; [`clock`] describes its conversion from `CLOCK_REALTIME`, with an error well below
//! 1 us. The stamp does not depend on when the packet is read, so packets of a stream accumulate in
//! the socket and are read together. `--user-stamps` takes user space's time instead. TCP's chunks
//! always have user space's time.
//!
//! **Stages.** With `--stages` both ends also record when packets passed the kernel's boundaries:
//! see [`stages`].
//!
//! **Pacing.** Deadlines are absolute, so that errors do not accumulate: the sender sleeps until
//! shortly before a deadline and spins for the rest. The spinning time follows the measured wake-up
//! latency, up to 30 us (`--spin`). The lateness of each packet is in the records and in the
//! summary. A late sender sends all due packets at once; a sender that is still late at the end of
//! its time stops and reports `overrun`.
//!
//! **Ends.** A UDP sender marks its end with five packets; the receiver then waits a moment for
//! late packets. A receiver also ends when no packet arrives any more, or on SIGTERM, and always
//! completes its file. A sender whose receiver is absent gives up after three ICMP refusals. Exit
//! codes are in the help text.

pub mod clock;
pub mod frame;
pub mod hosts;
pub mod net;
pub mod options;
pub mod pacing;
pub mod packet;
pub mod pattern;
pub mod quantity;
pub mod receive;
pub mod record;
pub mod send;
pub mod stages;
pub mod stop;
pub mod summary;
