//! Links: what one direction does with a frame, from the queue to the far end.

pub(crate) mod charge;
pub(crate) mod impairments;
pub(crate) mod in_flight;
pub(crate) mod pacing;
pub(crate) mod queue;
pub(crate) mod receiver;
pub(crate) mod serializer;
pub(crate) mod wire;
