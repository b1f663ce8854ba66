//! Membership of a radio: its cell, and what it knows about it.

use std::collections::BTreeSet;

use crate::medium::bss::power_save::Dozing;
use crate::medium::phy::Channel;
use crate::medium::settings::radio::{Membership, Roaming};
use crate::medium::types::{RadioId, To};
use crate::time::{Instant, Span};

/// BSS membership of a radio.
#[derive(Debug)]
pub(in crate::medium) enum Cell {
    /// Member of an independent cell: reaches all radios in range with the same cell name.
    AdHoc(Independent),
    /// An access point with its associated stations.
    AccessPoint { ssid: String, beacon: Span, stations: BTreeSet<u32>, dozing: Dozing },
    /// A station, associated with an access point or not.
    Station(Box<Station>),
    /// The node's own 802.11 stack decides.
    Wlan,
}

/// State of a member of an independent cell.
#[derive(Debug)]
pub(in crate::medium) struct Independent {
    pub(in crate::medium) ssid: String,
    pub(in crate::medium) beacon: Span,
    /// When the last beacon of another member was received.
    pub(super) heard: Instant,
    /// True if the radio sent the last beacon; it then answers probe requests.
    pub(super) speaks: bool,
    /// True if its next beacon time is in the calendar.
    pub(super) turns: bool,
}

/// State of a station.
#[derive(Debug)]
pub(in crate::medium) struct Station {
    pub(super) roaming: Roaming,
    pub(super) channels: Vec<Channel>,
    pub(super) joined: Option<RadioId>,
    /// BSSID of its access point, and of the one that it asks.
    pub(super) network: [u8; 6],
    pub(super) asked_network: [u8; 6],
    /// Mean power of its access point's beacons, dBm.
    pub(super) power_dbm: f64,
    pub(super) beacon_at: Instant,
    /// Until then weak beacons do not start a scan.
    pub(super) content_until: Instant,
    /// The access point whose association response the station awaits.
    pub(super) asking: Option<RadioId>,
    /// True if a command to look for another network is pending.
    pub(super) leaving: bool,
}

/// Action for a received data frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::medium) enum Course {
    /// Deliver to the node.
    Deliver,
    /// Retransmit to these receivers.
    Relay(To),
    /// Deliver to the node, and retransmit to all.
    Both,
    /// Ignore: it belongs to another cell, or is the radio's own frame, relayed.
    Ignore,
}

impl Station {
    /// The station's access point.
    pub(in crate::medium) fn home(&self) -> Option<RadioId> {
        self.joined
    }

    /// The access point that the station asks to join, or has joined.
    pub(in crate::medium) fn peer(&self) -> Option<RadioId> {
        self.asking.or(self.joined)
    }

    /// Its BSSID.
    pub(in crate::medium) fn network(&self) -> [u8; 6] {
        if self.asking.is_some() { self.asked_network } else { self.network }
    }

    /// True if the station has joined the network with this BSSID at this radio.
    pub(in crate::medium) fn is_at(&self, radio: RadioId, network: [u8; 6]) -> bool {
        self.joined == Some(radio) && self.network == network
    }
}

impl Cell {
    /// The membership that the settings specify; the channels have been checked.
    pub(in crate::medium) fn new(membership: &Membership, channels: Vec<Channel>) -> Self {
        match membership {
            Membership::AdHoc { ssid, beacon_ns } => Self::AdHoc(Independent {
                ssid: ssid.clone(),
                beacon: Span::from_nanos(*beacon_ns),
                heard: Instant::ZERO,
                speaks: false,
                turns: false,
            }),
            Membership::AccessPoint { ssid, beacon_ns } => Self::AccessPoint {
                ssid: ssid.clone(),
                beacon: Span::from_nanos(*beacon_ns),
                stations: BTreeSet::new(),
                dozing: Dozing::default(),
            },
            Membership::Station(roaming) => Self::Station(Box::new(Station {
                roaming: roaming.clone(),
                channels,
                joined: None,
                network: [0; 6],
                asked_network: [0; 6],
                power_dbm: f64::NEG_INFINITY,
                beacon_at: Instant::ZERO,
                content_until: Instant::ZERO,
                asking: None,
                leaving: false,
            })),
            Membership::Wlan => Self::Wlan,
        }
    }
}
