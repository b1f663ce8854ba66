//! Medium access: the distributed coordination function of IEEE 802.11 and its four-category form.
//!
//! `contention` decides when to send, `exchange` what follows what, `receive` what a received
//! frame causes, `queue` what waits.

mod classify;
mod contention;
mod exchange;
mod queue;
mod receive;

pub(super) use classify::lanes;
