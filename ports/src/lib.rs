//! Where the engine meets the machine: TAP interfaces, real interfaces, guests, tunnels, captures
//! and the wall clock.

pub mod capture;
pub mod detached;
pub mod error;
pub mod interface;
pub mod memory;
mod pcapng;
pub mod port;
mod recorder;
pub mod runtime;
mod rx;
mod sys;
pub mod tap;
pub mod tunnel;
mod tx;
pub mod vhost;
pub mod vnet;
pub mod world;
