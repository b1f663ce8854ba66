//! Where the engine meets the machine: TAP interfaces, real interfaces, guests, tunnels, captures
//! and the wall clock.

mod alarm;
pub mod capture;
pub mod clock;
pub mod driver;
pub mod edge;
pub mod error;
mod intake;
pub mod interface;
pub mod lateness;
pub mod media;
mod moderation;
mod outgo;
mod patience;
mod pcapng;
mod placing;
mod poller;
mod precedence;
pub mod status;
pub mod tap;
pub mod tunnel;
pub mod vhost;
pub mod vnet;
mod wakeful;
pub mod world;
