//! Ports of the engine and its driver: TAP interfaces, real interfaces, guests, tunnels,
//! captures and the wall clock.
//!
//! | module | content |
//! | --- | --- |
//! | [`world`] | an engine with its ports, and the names of everything in it |
//! | [`port`] | the trait of a port, and the list of its kinds |
//! | [`tap`], [`interface`], [`vhost`], [`tunnel`], [`memory`], [`detached`] | the kinds of ports |
//! | [`runtime`] | the loop that drives a world by the wall clock |
//! | [`virtual_time`] | the calendar that drives a world and its guests in virtual time |
//! | [`capture`] | pcapng captures; a recorder around the engine's egress writes them |
//! | [`vnet`], `rx`, `tx` | virtio-net headers, reading and writing of frames |
//!
//! # Example
//!
//! A stepped world whose ports are in memory; on the wall clock a
//! [`Driver`](runtime::driver::Driver) takes the world instead.
//!
//! ```
//! use airloom_engine::settings::LinkSettings;
//! use airloom_engine::time::Instant;
//! use airloom_ports::memory::{Inbox, Memory};
//! use airloom_ports::world::World;
//!
//! let inbox = Inbox::default();
//! let mut world = World::new(1);
//! let a = world.add("a", false, Box::new(Memory::new(&inbox)))?;
//! let b = world.add("b", false, Box::new(Memory::new(&inbox)))?;
//! let link = LinkSettings { delay_ns: 1_000, ..LinkSettings::default() };
//! world.connect("a-b", "a", "b", &link, &link)?;
//!
//! world.offer(a, Instant::ZERO, &[0xff; 60])?;
//! world.advance(Instant::from_nanos(2_000));
//!
//! let received = inbox.take();
//! assert_eq!(received.len(), 1);
//! assert_eq!((received[0].port, received[0].at), (b, Instant::from_nanos(1_000)));
//! assert_eq!(world.engine.ledger().delivered.frames, 1);
//! # Ok::<(), airloom_ports::error::Error>(())
//! ```

pub mod capture;
pub mod carrier_drops;
pub mod detached;
pub mod error;
pub mod filter;
pub mod interface;
pub mod memory;
pub mod monitor;
pub mod offloads;
mod pcapng;
pub mod port;
mod recorder;
pub mod runtime;
pub mod rx;
mod sys;
pub mod tap;
pub mod tunnel;
mod tx;
pub mod vhost;
pub mod virtual_time;
pub mod vnet;
pub mod wlan;
pub mod world;
