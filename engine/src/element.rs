//! Identifiers of the elements of an emulated network.

/// One attachment of a node to the emulated network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub(crate) u32);

/// A switch or hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub(crate) u32);

/// A radio medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MediumId(pub(crate) u32);

impl MediumId {
    /// Media are numbered from 0 in the order in which they were added.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A link, both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

impl PortId {
    /// Ports are numbered from 0 in the order in which they were added.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl SwitchId {
    /// Switches are numbered from 0 in the order in which they were added.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Links are numbered from 0 in the order in which they were connected.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An element that a link can be attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A node's port; it takes one link.
    Port(PortId),
    /// A switch or hub; it takes any number of links.
    Switch(SwitchId),
}

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the end named first to the end named second.
    Forward,
    /// From the end named second to the end named first.
    Backward,
}

impl Direction {
    /// Name of the direction in scenarios and ledgers.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Backward => "backward",
        }
    }
}

/// Element at which a frame was delivered or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// At a port, before it reached a link, or in the radio behind the port.
    Port(PortId),
    /// On one direction of a link: in its queue or on its wire.
    Link(LinkId, Direction),
    /// In a switch or hub.
    Switch(SwitchId),
}
