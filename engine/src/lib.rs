//! The engine of Airloom: links, queues, switches and media as pure logic.
//!
//! Time is an argument in integer nanoseconds, never read from the machine; there is no I/O, no
//! thread and no `unsafe`. Whoever drives the engine offers frames at ports, asks when the next
//! event is due, and lets time pass; each frame meets exactly one fate.

#![forbid(unsafe_code)]

pub mod calendar;
mod check;
mod deadline;
pub mod drop_reason;
pub mod egress;
pub mod element;
pub mod engine;
pub mod error;
pub mod frame;
pub mod ledger;
mod link;
pub mod medium;
pub mod random;
pub mod settings;
mod switch;
pub mod time;

pub use drop_reason::{DropReason, HostLoss};
pub use egress::{Clock, Delivery, Egress};
pub use element::{Direction, End, LinkId, MediumId, Place, PortId, SwitchId};
pub use engine::{Change, Engine};
pub use error::Error;
pub use ledger::{Ledger, Tally};
