//! Announcements of stations in the distribution system.
//!
//! The switches of a LAN with several access points learn at which of them a station is from the
//! frames that it sends. A station that only receives would be lost to them when it roams.
//! Therefore an access point sends a frame in its name when it associates: an 802.2 XID response to
//! all, the "layer 2 update frame" of IEEE 802.11F-2003, as access points of Linux do.

use crate::medium::Medium;
use crate::medium::bss::number;
use crate::medium::outside::Outside;
use crate::medium::types::RadioId;

/// Octets of the shortest Ethernet frame, without frame check sequence.
const SHORTEST: usize = 60;
/// Length of the LLC header and the XID information field: DSAP null, SSAP null with the response
/// bit, control XID with the final bit, and the formats and classes of IEEE 802.2 (type 1 only).
const XID: [u8; 6] = [0x00, 0x01, 0xaf, 0x81, 0x01, 0x00];

/// The frame in the name of a station with this address.
fn update(station: [u8; 6]) -> [u8; SHORTEST] {
    let mut octets = [0; SHORTEST];
    octets[..6].fill(0xff);
    octets[6..12].copy_from_slice(&station);
    octets[13] = 6;
    octets[14..20].copy_from_slice(&XID);
    octets
}

impl Medium {
    /// Announces a station that has associated with an access point to the wire behind it.
    pub(super) fn announce_station(
        &self,
        index: usize,
        station: RadioId,
        address: [u8; 6],
        outside: &mut impl Outside,
    ) {
        let radio = &self.core.radios[index];
        if radio.settings.bridged {
            let frame = outside.make(&update(address));
            outside.announce(station, RadioId(number(index)), self.core.now, frame);
        }
    }
}
