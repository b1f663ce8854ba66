//! Scans of a radio, and their results.

use crate::medium::phy::Channel;
use crate::medium::types::RadioId;
use crate::time::Span;

/// Parameters of a scan.
#[derive(Clone, Debug)]
pub(in crate::medium) struct Order {
    pub(in crate::medium) channels: Vec<Channel>,
    /// Time on each channel.
    pub(in crate::medium) dwell: Span,
    /// True to send probe requests.
    pub(in crate::medium) active: bool,
    /// SSID to probe for; empty for all.
    pub(in crate::medium) ssid: String,
    /// True if the node requested the scan; false for a station that looks for its network.
    pub(in crate::medium) asked: bool,
}

/// A network found by a scan.
#[derive(Clone, Debug, PartialEq)]
pub struct Sighting {
    /// The radio that sent the frames.
    pub radio: RadioId,
    /// Its address: the BSSID of an access point.
    pub network: [u8; 6],
    /// SSID.
    pub ssid: String,
    /// True for an access point; false for a member of an independent cell.
    pub access_point: bool,
    /// Channel on which it was received.
    pub channel: Channel,
    /// Power of its strongest frame, dBm, before fading.
    pub signal_dbm: f64,
    /// Time since it was received, if the result comes from the cache of a card; otherwise 0.
    pub age: Span,
}

/// Result of the last scan that a node requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scanned {
    /// Number of completed scans for the node.
    pub times: u64,
    /// The radios found, in the order of their first frames.
    pub found: Vec<Sighting>,
}

/// A scan in progress.
#[derive(Debug)]
pub(in crate::medium) struct Scan {
    pub(in crate::medium) order: Order,
    pub(in crate::medium) at: usize,
    /// The channel to return to.
    pub(in crate::medium) home: Channel,
    pub(in crate::medium) found: Vec<Sighting>,
}

impl Scan {
    /// The SSID it probes for.
    pub(in crate::medium) fn ssid(&self) -> &str {
        &self.order.ssid
    }

    /// The channel of the present step.
    pub(in crate::medium) fn channel(&self) -> Option<Channel> {
        self.order.channels.get(self.at).copied()
    }

    /// Records a received radio.
    pub(in crate::medium) fn sees(&mut self, sighting: Sighting) {
        match self
            .found
            .iter_mut()
            .find(|seen| (seen.radio, seen.network) == (sighting.radio, sighting.network))
        {
            Some(seen) => {
                seen.signal_dbm = seen.signal_dbm.max(sighting.signal_dbm);
                seen.age = seen.age.min(sighting.age);
            }
            None => self.found.push(sighting),
        }
    }
}
