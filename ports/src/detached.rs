//! A port that is not connected to anything.

use airloom_engine::{Delivery, HostLoss};

use crate::port::{Outgoing, Port};

/// Frames to this port are lost. A TAP keeps its namespace alive, so the TAP of a node must be
/// exchanged for this port before the node ends.
#[derive(Debug)]
pub struct Detached;

impl Port for Detached {
    fn deliver(&mut self, _: Outgoing<'_>) -> Delivery {
        Delivery::Lost(HostLoss::NodeGone)
    }
}
