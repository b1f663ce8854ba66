//! The engine of Airloom: links, queues, switches and media as pure logic.
//!
//! Time is an argument in integer nanoseconds, never read from the machine; there is no I/O, no
//! thread and no `unsafe`. Whoever drives the engine offers frames at ports, asks when the next
//! event is due, and lets time pass; each frame meets exactly one fate.

#![forbid(unsafe_code)]

mod alarm;
pub mod calendar;
mod check;
mod context;
pub mod element;
pub mod engine;
pub mod error;
pub mod fate;
mod flights;
mod forward;
pub mod frame;
mod impair;
pub mod ledger;
pub mod medium;
mod pace;
mod packet;
mod queue;
mod radios;
pub mod random;
mod receiver;
mod restraint;
pub mod segment;
pub mod settings;
mod shortcuts;
mod switch;
pub mod time;
mod vlan;
mod wire;

pub use element::{Direction, End, LinkId, MediumId, Place, PortId, SwitchId};
pub use engine::{Change, Engine};
pub use error::Error;
pub use fate::{Handed, HostLoss, Outlet, Why};
pub use ledger::{Ledger, Tally};
