//! The bodies of the fuzz targets.
//!
//! They use public interfaces only, so that the ordinary tests can include them by path and run
//! them on the seeds and on random octets.

pub mod engine;
pub mod frame;
pub mod guest;
pub mod hwsim;
pub mod matrix;
pub mod radiotap;
pub mod trace;
pub mod tunnel;
pub mod vhost;
pub mod vnet;
pub mod wlan;
