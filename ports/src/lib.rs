//! Where the engine meets the machine: TAP interfaces, real interfaces, captures, namespaces and
//! the wall clock.

pub mod error;
pub mod nodes;
pub mod tap;
pub mod vnet;
