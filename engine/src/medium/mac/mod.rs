//! Medium access: the distributed coordination function (DCF) of IEEE 802.11, and EDCA.
//!
//! `contention` decides when to send, `exchange` implements frame sequences, `receive` handles
//! received frames, `queue` holds frames to be sent, `mpdu` those of a node's own stack, and
//! `edca` the parameters that such a station takes over from its access point.

mod classify;
mod contention;
mod edca;
mod exchange;
mod mpdu;
mod queue;
mod receive;
mod times;

pub(super) use classify::{lanes, priority};
pub(super) use edca::AccessPoint;
pub(super) use mpdu::Mpdu;
