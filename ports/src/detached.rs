//! A port with nothing behind it.

use airloom_engine::{Delivery, HostLoss};

use crate::port::{Outgoing, Port};

/// Nothing, for now: frames to the port are lost. A TAP keeps its namespace alive, so the TAP of a
/// node that is to end has to be exchanged for this first.
#[derive(Debug)]
pub struct Detached;

impl Port for Detached {
    fn deliver(&mut self, _: Outgoing<'_>) -> Delivery {
        Delivery::Lost(HostLoss::NodeGone)
    }
}
