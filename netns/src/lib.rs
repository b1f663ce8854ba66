//! Network namespaces of nodes: created in batches, configured by rtnetlink, and removed by the
//! kernel.
//!
//! A node's network stack is an anonymous network namespace. One descriptor, and those of its TAPs,
//! keep it alive, so it ends with the process that created it, even if that process is killed. No
//! process runs in it until a program is started there.
//!
//! | module | what it does |
//! | --- | --- |
//! | [`spec`] | the description of a node's network stack, as it comes from a plan |
//! | [`bring_up`](mod@bring_up) | makes and configures the namespaces of many nodes |
//! | [`in_place`] | configures a stack that exists already: that of a guest, seen from inside |
//! | [`namespace`] | one namespace while the run lasts: counters, up and down, shaping |
//! | `change` | changes the network stack of a node while its programs run |
//! | [`tap`] | makes TAP interfaces |
//! | [`carrier`] | the carrier of a TAP, and its dropped frames |
//! | [`offloads`] | what interfaces leave to their devices |
//! | `netlink`, `rtnetlink` | batches of rtnetlink requests, and their encoding |
//! | [`htb`] | the kernel's own shaping, for links between native nodes |
//! | `sysctl` | kernel parameters |
//! | [`hwsim`] | simulated radios of the kernel, with a medium in user space |
//! | `wireless` | moves radios between namespaces |

pub mod bring_up;
pub mod carrier;
mod change;
pub mod error;
pub mod htb;
pub mod hwsim;
pub mod in_place;
mod limits;
pub mod namespace;
mod netlink;
pub mod offloads;
mod rtnetlink;
pub mod spec;
mod sysctl;
pub mod tap;
mod wireless;

pub use bring_up::{bring_up, tear_down};
pub use carrier::{LinkState, TapLink};
pub use error::Error;
pub use htb::Shape;
pub use in_place::{configure_here, move_here};
pub use namespace::{Counters, Namespace, counters_of, enter_network, inside};
pub use spec::{InterfaceSpec, NeighbourSpec, NodeSpec, RouteSpec, VethEnd, VethSpec, read_mac};
