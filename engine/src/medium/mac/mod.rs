//! Medium access: the distributed coordination function (DCF) of IEEE 802.11, and EDCA.
//!
//! `lane` has the state, `ampdu` that of A-MPDUs. `contention` decides when to send, `exchange` implements
//! frame sequences, `recovery` handles failures, `receive` received frames, `aggregate` A-MPDUs. `queue` holds
//! frames to be sent, `mpdu` those of a node's own stack. `edca` has the parameters that such a station takes
//! over from its access point.

mod aggregate;
pub(super) mod ampdu;
mod classify;
mod contention;
mod edca;
mod exchange;
pub(super) mod lane;
mod mpdu;
mod queue;
mod receive;
mod recovery;
mod times;
pub(super) mod waiting;

pub(super) use classify::{PRIORITIES, lanes, priority};
