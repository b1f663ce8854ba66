//! Traffic generator and collector that runs inside any kind of node.
//!
//! `airloom-traffic send` sends one flow (UDP, TCP or RTP; constant, Poisson, on/off or from a trace) and
//! `airloom-traffic receive` takes it in. Both write a record of every packet: its number, its size, when it was
//! scheduled, sent and received. [`record`] describes the file, [`packet`] what the packets carry, [`frame`] how
//! sizes are counted.
//!
//! **Clock.** All times are nanoseconds of `CLOCK_MONOTONIC`, which all network namespaces of a machine share, so
//! that one-way delays need no synchronization there. A packet's *sent* time is read right before the system
//! call that sends it; packets that are due together (when the sender is behind its schedule, or at rates beyond
//! one packet a system call) share one call of up to 32 packets and one time, which is then early by up to
//! about 1 us a packet. A packet's *arrival* is the kernel's stamp (`SO_TIMESTAMPNS`), which leaves out the time
//! until the receiver is scheduled; [`clock`] says how it is moved from `CLOCK_REALTIME`, with an error well below
//! 1 us. Since it is right however late a packet is read, packets of a stream gather in the socket and are read together.
//! `--user-stamps` takes user space's time instead. TCP's chunks always have user space's time.
//!
//! **Stages.** With `--stages` both ends also record when packets passed the kernel's boundaries: see [`stages`].
//!
//! **Pacing.** Deadlines are absolute, so that no error piles up: the sender sleeps to shortly before a
//! deadline and watches the clock for the rest, as long as it has learnt that waking takes, at most 30 us (`--spin`). How late each packet was is in the records and in the summary. A
//! sender that is late sends what is due at once; one that is still late at the end of its time stops and says so
//! (`overrun`).
//!
//! **Ends.** A UDP sender marks its end with five packets; the receiver then waits a moment for late packets. A
//! receiver also ends when nothing comes any more, or on SIGTERM, and always writes out its file. A sender whose
//! receiver is absent gives up after three ICMP refusals. Exit codes are in the help text.

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
