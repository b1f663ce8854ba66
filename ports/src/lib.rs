//! Where the engine meets the machine: TAP interfaces, real interfaces, guests, tunnels, captures
//! and the wall clock.

mod alarm;
pub mod capture;
pub mod clock;
pub mod detached;
pub mod driver;
pub mod error;
pub mod interface;
pub mod lateness;
pub mod memory;
mod moderation;
mod patience;
mod pcapng;
mod placing;
mod poller;
pub mod port;
mod precedence;
mod recorder;
mod rx;
pub mod status;
mod sys;
pub mod tap;
pub mod tunnel;
mod tx;
pub mod vhost;
pub mod vnet;
mod wakeful;
pub mod world;
