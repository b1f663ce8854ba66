//! Classification of Ethernet frames: length on the air and access category.

use std::collections::VecDeque;

use crate::medium::mac::lane::{Countdown, Lane};
use crate::medium::phy::Phy;
use crate::time::Span;

/// Octets of the 802.11 header of data between two stations.
pub(super) const DATA_HEADER: u32 = 24;
/// Octets that the QoS control field adds to it.
pub(super) const QOS_FIELD: u32 = 2;
/// Octets of the frame check sequence.
pub(super) const CHECK: u32 = 4;
/// Largest frame body before encryption (802.11-2020 9.2.4.8.1).
pub(super) const LARGEST_BODY: u32 = 2304;

/// Octets of the frame body that carries an Ethernet frame of `length` octets.
///
/// Frames with an EtherType get the LLC and SNAP header, 8 octets (RFC 1042); frames with a length
/// field carry their own LLC.
pub(super) fn body_octets(octets: &[u8], length: u32) -> u32 {
    let kind = octets.get(12..14).map_or(0x0800, |kind| u16::from_be_bytes([kind[0], kind[1]]));
    length.saturating_sub(14) + if kind >= 0x0600 { 8 } else { 0 }
}

/// Number of the lane for a frame: 0 voice, 1 video, 2 best effort, 3 background.
///
/// By the DSCP of IPv4 and IPv6 as RFC 8325 maps it; everything else is best effort.
pub(super) fn category(octets: &[u8]) -> usize {
    let dscp = match (octets.get(12..14), octets.get(14..16)) {
        (Some([0x08, 0x00]), Some(ip)) => ip[1] >> 2,
        (Some([0x86, 0xdd]), Some(ip)) => (ip[0] & 0x0f) << 2 | ip[1] >> 6,
        _ => 0,
    };
    match dscp {
        // EF, VOICE-ADMIT, CS6, CS7
        46 | 44 | 48 | 56 => 0,
        // AF4x, AF3x, CS5, CS4, CS3
        34 | 36 | 38 | 26 | 28 | 30 | 40 | 32 | 24 => 1,
        // CS1, lower effort
        8 | 1 => 3,
        _ => 2,
    }
}

/// Traffic identifier of an Ethernet frame: the user priority of its access category that is
/// usual for it (802.11-2020 table 10-1).
pub(in crate::medium) fn priority(octets: &[u8]) -> u8 {
    PRIORITIES[category(octets)]
}

/// The user priorities of the lanes.
pub(in crate::medium) const PRIORITIES: [u8; 4] = [6, 5, 0, 1];

/// The lanes of a radio: one for DCF, four for EDCA with its default parameters.
///
/// AIFSN and windows: 802.11-2020 table 9-155. Limits of transmission opportunities: Wi-Fi
/// Multimedia and 802.11-2012 table 8-105, for OFDM 1.504 ms (voice), 3.008 ms (video) and one frame
/// (others), with the window of 802.11b 3.264 ms, 6.016 ms and one frame. They are the ones in use:
/// `hostapd` announces those of OFDM. From 802.11-2016 on the table has others, for OFDM 2.080 ms,
/// 4.096 ms, and 2.528 ms for best effort and background too.
pub(in crate::medium) fn lanes(phy: &Phy, slot: Span, qos: bool) -> Vec<Lane> {
    let lane = |aifsn: u64, cw_min: u16, cw_max: u16, txop_us: u64| Lane {
        queue: VecDeque::new(),
        aifs: phy.sifs + slot * aifsn,
        countdown: if qos { Countdown::AtBoundaries } else { Countdown::AfterSlots },
        cw_min,
        cw_max,
        txop: Span::from_micros(txop_us),
        cw: cw_min,
        failures: 0,
        unanswered: 0,
        backing_off: false,
        slots: 0,
        from: crate::time::Instant::ZERO,
        deferred: false,
    };
    let (low, high) = (phy.cw_min, phy.cw_max);
    if !qos {
        return vec![lane(2, low, high, 0)];
    }
    let (voice, video) = if low > 15 { (3264, 6016) } else { (1504, 3008) };
    vec![
        lane(2, low / 4, low / 2, voice),
        lane(2, low / 2, low, video),
        lane(3, low, high, 0),
        lane(7, low, high, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip4(dscp: u8) -> Vec<u8> {
        let mut octets = vec![0; 34];
        octets[12..16].copy_from_slice(&[0x08, 0x00, 0x45, dscp << 2]);
        octets
    }

    #[test]
    fn lengths_and_categories() {
        assert_eq!(body_octets(&ip4(0), 1512), 1506);
        assert_eq!(body_octets(&[0; 14], 60), 46);
        assert_eq!([46, 34, 0, 8, 10].map(|dscp| category(&ip4(dscp))), [0, 1, 2, 3, 2]);
        let mut ip6 = vec![0; 54];
        ip6[12..16].copy_from_slice(&[0x86, 0xdd, 0x60 | 46 >> 2, (46 & 3) << 6]);
        assert_eq!(category(&ip6), 0);
        assert_eq!(category(&[]), 2);
    }
}
