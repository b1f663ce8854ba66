//! Frames that an access point keeps for its dozing stations.

use std::collections::{BTreeMap, VecDeque};

use crate::medium::mac::waiting::Waiting;

/// Frames for the dozing stations of an Ethernet access point, with their lanes.
#[derive(Debug, Default)]
pub(in crate::medium) struct Dozing(pub(in crate::medium) BTreeMap<u32, VecDeque<(usize, Waiting)>>);

impl Dozing {
    /// All frames.
    pub(in crate::medium) fn frames(&self) -> impl Iterator<Item = &Waiting> {
        self.0.values().flatten().map(|(_, waiting)| waiting)
    }
}
