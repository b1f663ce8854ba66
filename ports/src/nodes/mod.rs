//! Namespaces of nodes: made many at a time, and taken down in one act of the kernel.
//!
//! A node's network stack is a network namespace without a name. It is held by one descriptor,
//! and by those of its TAPs, so it goes when the process that made it goes, whatever the cause.
//! No process lives in it until a program is wanted.

mod bring_up;
mod error;
mod here;
mod limits;
mod namespace;
mod netlink;
mod rtnetlink;
mod shape;
mod spec;
mod sysctl;

pub use bring_up::{bring_up, tear_down};
pub use error::Error;
pub use here::{bring_here, configure_here};
pub use namespace::{Counters, Namespace, counters_of, enter_network, inside};
pub use shape::Shape;
pub use spec::{InterfaceSpec, NeighbourSpec, NodeSpec, RouteSpec, WireEnd, WireSpec, read_mac};
