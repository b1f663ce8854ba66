//! State of a radio: reception, contention, exchanges and queues.

pub(super) mod airtime;
mod carrier;
mod hearing;
pub(super) mod hold;
pub(super) mod layer;
pub(super) mod peers;
pub(super) mod reception;
pub(super) mod scan_state;
pub(super) mod sleep_account;
pub(super) mod wideband;

use std::collections::BTreeMap;

use crate::medium::bss::cell::Cell;
use crate::medium::mac::lane::{Answer, Contention, Exchange, Stage};
use crate::medium::phy::Phy;
use crate::medium::radio::airtime::Account;
use crate::medium::radio::hold::Hold;
use crate::medium::radio::layer::Layer;
use crate::medium::radio::peers::PeerCounts;
use crate::medium::radio::reception::{Receiver, Reception};
use crate::medium::radio::scan_state::{Order, Scan, Scanned};
use crate::medium::radio::sleep_account::SleepAccount;
use crate::medium::radio::wideband::Wideband;
use crate::medium::rate::RateControl;
use crate::medium::settings::radio::RadioSettings;
use crate::medium::slices::hops::Sequence;
use crate::random::Stream;
use crate::time::Instant;

/// Counters of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct RadioCounts {
    /// Transmissions of data and management frames, retries included.
    pub sent: u64,
    /// Of these, unicast transmissions, which require an acknowledgment.
    pub expected: u64,
    /// Missing acknowledgments.
    pub unanswered: u64,
    /// Requests to send.
    pub requests: u64,
    /// Requests to send without a response.
    pub requests_unanswered: u64,
    /// Frames given up at the retry limit.
    pub given_up: u64,
    /// Frames refused because the queue was full.
    pub refused: u64,
    /// Frames received without error, addressed to this radio or to all.
    pub received: u64,
    /// Frames discarded as duplicates.
    pub duplicates: u64,
    /// Receptions that ended with an error.
    pub broken: u64,
}

/// The state of a radio.
pub(in crate::medium) struct Radio {
    pub(in crate::medium) name: String,
    pub(in crate::medium) settings: RadioSettings,
    /// The physical layer of the channel that it is tuned to.
    pub(in crate::medium) layer: Layer,
    pub(in crate::medium) random: Stream,
    /// It was taken out and stays off.
    pub(in crate::medium) removed: bool,
    pub(in crate::medium) rate: Box<dyn RateControl>,
    pub(in crate::medium) receiver: Receiver,
    /// What its node, or an event, last set.
    pub(in crate::medium) wanted_on: bool,
    /// The same, if its slice has the radio.
    pub(in crate::medium) switched_on: bool,
    pub(in crate::medium) cell: Cell,
    /// Time in which its stack dozed.
    pub(in crate::medium) dozing: SleepAccount,
    /// True while it scans, or awaits association: data is held.
    pub(in crate::medium) away: bool,
    pub(in crate::medium) scan: Option<Scan>,
    /// A scan requested by its node that has not started.
    pub(in crate::medium) ordered: Option<Order>,
    pub(in crate::medium) scanned: Scanned,
    /// Number of scan steps; identifies timers of earlier scans as obsolete.
    pub(in crate::medium) step: u32,

    /// Reception of the channel that it is tuned to.
    pub(in crate::medium) reception: Reception,
    pub(in crate::medium) transmitting: bool,
    pub(in crate::medium) busy: bool,
    pub(in crate::medium) idle_since: Instant,
    pub(in crate::medium) account: Account,
    /// Consecutive frames received that were not addressed to it alone.
    pub(in crate::medium) overheard: u32,
    /// Its cluster, its rank there; and whether the cluster holds its state.
    pub(in crate::medium) cluster: Option<(usize, usize)>,
    pub(in crate::medium) asleep: bool,
    /// The generation of clusters in which it was found to belong to none.
    pub(in crate::medium) unclustered: u64,

    pub(in crate::medium) contention: Contention,
    pub(in crate::medium) exchange: Exchange,
    pub(in crate::medium) hold: Hold,
    /// Frames in all its lanes.
    pub(in crate::medium) waiting: u32,
    /// Reception on other channels, of a radio for 802.11 frames; and whether it passes on all
    /// frames.
    pub(in crate::medium) wideband: Option<Box<Wideband>>,
    pub(in crate::medium) monitor: bool,
    pub(in crate::medium) counts: RadioCounts,
    pub(in crate::medium) peers: BTreeMap<u32, PeerCounts>,
    /// The sequence of its channels, if it hops.
    pub(in crate::medium) hops: Option<Box<Sequence>>,
}

impl Radio {
    /// True if the radio is in an exchange and does not contend.
    pub(in crate::medium) fn engaged(&self) -> bool {
        self.exchange.stage != Stage::Free || self.exchange.answer.is_some()
    }

    /// The lane whose first frame is in an exchange.
    pub(in crate::medium) fn engaged_lane(&self) -> Option<usize> {
        match self.exchange.stage {
            Stage::Sending(lane) | Stage::Awaiting(lane, ..) => Some(usize::from(lane)),
            _ => self.exchange.answer.filter(Answer::is_own).map(|answer| usize::from(answer.lane)),
        }
    }

    /// The physical layer of all its bands.
    pub(in crate::medium) fn bands(&self) -> &'static Phy {
        self.wideband.as_ref().map_or(self.layer.phy, |wideband| wideband.phy)
    }

    /// The radio's next timer.
    pub(in crate::medium) fn next_at(&self) -> Instant {
        let mut next = self.contention.access_at;
        if let Some(answer) = &self.exchange.answer {
            next = next.min(answer.at);
        }
        if let Stage::Awaiting(_, _, until, false) = self.exchange.stage {
            next = next.min(until);
        }
        next
    }
}

impl Radio {
    /// Takes over another layer. The access categories keep their parameters, which count in slots.
    pub(in crate::medium) fn take_layer(&mut self, layer: Layer) {
        let Layer { phy: old, slot: old_slot, .. } = self.layer;
        for lane in &mut self.contention.lanes {
            let slots = lane.aifs.saturating_sub(old.sifs).nanos() / old_slot.nanos().max(1);
            lane.aifs = layer.phy.sifs + layer.slot * slots;
        }
        self.layer = layer;
    }
}
