//! Links: the path of a frame through one direction, from the queue to the far end.

pub(crate) mod bucket;
pub(crate) mod charge;
pub(crate) mod impairments;
pub(crate) mod in_flight;
pub(crate) mod load;
pub(crate) mod pacing;
pub(crate) mod queue;
pub(crate) mod receiver;
pub(crate) mod serializer;
pub(crate) mod wire;
