//! EDCA parameters that a station with an 802.11 stack takes over from its access point.
//!
//! The stack gives its hardware the parameters of its association, but the kernel's simulated
//! hardware does not pass them on. So the radio reads them where the stack does, and applies them as
//! mac80211 does:
//!
//! | frame to the station | parameters from then on |
//! | --- | --- |
//! | association response with valid parameters (WMM) | these |
//! | association response without, or with invalid ones | those of DCF for every access category |
//! | beacon of its access point with another parameter set count | its parameters |
//! | deauthentication or disassociation from or to its access point | the default ones |
//!
//! Sources: Wi-Fi Multimedia, parameter element, whose records are those of 802.11-2020 9.4.2.28:
//! AIFSN 2 to 15 slots (lower ones count as 2), ECWmin and ECWmax 0 to 15 for windows of
//! `2^ECW - 1` slots, TXOP limit in units of 32 us, 0 for one frame. A smallest window of no slot, or
//! one above the largest, is invalid.

use crate::medium::mac::lane::{AccessPoint, Countdown, Lane};
use crate::medium::phy::Phy;
use crate::medium::radio::Radio;
use crate::medium::types::RadioId;
use crate::medium::wlan::header::Header;
use crate::medium::wlan::management::{Management, elements};
use crate::medium::{Medium, mac};
use crate::time::Span;

/// Parameters of an access category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Access {
    /// Slots after SIFS.
    aifsn: u64,
    cw_min: u16,
    cw_max: u16,
    txop: Span,
}

/// Identifier of a vendor's element, and what the value of the WMM parameter element begins with:
/// organization, type, subtype, version.
const VENDOR: u8 = 221;
const PARAMETERS: [u8; 6] = [0x00, 0x50, 0xf2, 2, 1, 1];

/// The parameter set count and the parameters in these elements, in the order of the lanes; `None`
/// without valid ones.
fn parameters(octets: &[u8]) -> Option<(u8, [Access; 4])> {
    let mut all = elements(octets).filter(|&(identifier, _)| identifier == VENDOR);
    let value = all.find_map(|(_, value)| value.strip_prefix(&PARAMETERS))?;
    let [information, _, records @ ..] = value.first_chunk::<18>()?;
    let mut lanes = [None; 4];
    for record in records.chunks_exact(4) {
        let window = |exponent: u8| u16::try_from((1u32 << exponent) - 1).unwrap_or(u16::MAX);
        let (cw_min, cw_max) = (window(record[1] & 15), window(record[1] >> 4));
        if cw_min == 0 || cw_min > cw_max {
            return None;
        }
        let txop = Span::from_micros(32 * u64::from(u16::from_le_bytes([record[2], record[3]])));
        // Best effort, background, video, voice.
        let lane = [2, 3, 1, 0][usize::from(record[0] >> 5 & 3)];
        lanes[lane] = Some(Access { aifsn: u64::from(record[0] & 15).max(2), cw_min, cw_max, txop });
    }
    let [Some(voice), Some(video), Some(best_effort), Some(background)] = lanes else { return None };
    Some((information & 15, [voice, video, best_effort, background]))
}

impl Lane {
    fn set(&mut self, sifs: Span, slot: Span, access: Access, countdown: Countdown) {
        let Access { aifsn, cw_min, cw_max, txop } = access;
        self.countdown = countdown;
        (self.aifs, self.cw_min, self.cw_max, self.txop) = (sifs + slot * aifsn, cw_min, cw_max, txop);
        self.cw = self.cw.clamp(cw_min, cw_max);
    }
}

impl Radio {
    /// Contends with these parameters, or with those of DCF.
    fn contend_with(&mut self, lanes: Option<[Access; 4]>) {
        let Phy { sifs, cw_min, cw_max, .. } = *self.layer.phy;
        let dcf = Access { aifsn: 2, cw_min, cw_max, txop: Span::ZERO };
        let countdown = lanes.map_or(Countdown::AfterSlots, |_| Countdown::AtBoundaries);
        let lanes = lanes.unwrap_or([dcf; 4]);
        let lanes = self.contention.lanes.iter_mut().zip(lanes);
        lanes.for_each(|(lane, access)| lane.set(sifs, self.layer.slot, access, countdown));
    }

    /// Contends with the default parameters.
    fn contend_by_default(&mut self) {
        for (lane, default) in
            self.contention.lanes.iter_mut().zip(mac::lanes(self.layer.phy, self.layer.slot, true))
        {
            (lane.aifs, lane.cw_min, lane.cw_max) = (default.aifs, default.cw_min, default.cw_max);
            lane.countdown = default.countdown;
            (lane.txop, lane.cw) = (default.txop, lane.cw.clamp(default.cw_min, default.cw_max));
        }
    }
}

impl Medium {
    /// Takes over the parameters that a received management frame has for the station.
    pub(in crate::medium) fn read_access_parameters(&mut self, index: usize, octets: &[u8]) {
        let known = self.core.radios[index].wideband.as_ref().and_then(|wideband| wideband.access_point);
        let concerns = match octets.first() {
            // Responses to association and reassociation.
            Some(0x10 | 0x30) => true,
            // Beacons, disassociation, deauthentication.
            Some(0x80 | 0xa0 | 0xc0) => known.is_some(),
            _ => false,
        };
        let Some(header) = Header::parse(octets).filter(|_| concerns) else { return };
        let body = octets.get(header.length..).unwrap_or(&[]);
        let own = self.addresses.get(&header.receiver).is_some_and(|radio| radio.index() == index);
        let address = header.transmitter;
        match (Management::parse(header.subtype(), body), known) {
            (Some(Management::AssociationResponse { status: 0, .. }), _) if own => {
                let found = parameters(&body[6..]);
                let count = found.map(|(count, _)| count);
                let station = header.receiver;
                self.set_access_point(index, Some(AccessPoint { address, station, count }));
                self.core.radios.awake(index).contend_with(found.map(|(_, lanes)| lanes));
            }
            (Some(Management::Beacon(_)), Some(AccessPoint { address: its, station, count: Some(last) }))
                if its == address =>
            {
                if let Some((count, lanes)) = parameters(&body[12..]).filter(|&(count, _)| count != last) {
                    self.set_access_point(index, Some(AccessPoint { address, station, count: Some(count) }));
                    self.core.radios.awake(index).contend_with(Some(lanes));
                }
            }
            (Some(Management::Leave(_)), Some(its)) if its.address == address => {
                self.has_left(index, its.station);
            }
            _ => {}
        }
    }

    /// Returns to the default parameters if the stack sends this frame to leave its access point; by any
    /// other frame the address is back.
    pub(in crate::medium) fn read_departure(&mut self, id: RadioId, header: &Header) {
        let leaves = matches!(header.control[0], 0xa0 | 0xc0);
        let access_point = self.core.radios[id.index()].wideband.as_ref().and_then(|w| w.access_point);
        if leaves && access_point.is_some_and(|known| known.address == header.receiver) {
            self.has_left(id.index(), header.transmitter);
        } else if let Some(wideband) = &mut self.core.radios.awake(id.index()).wideband {
            wideband.left.retain(|left| *left != header.transmitter);
        }
    }

    /// Records that an address of the radio has left its network.
    fn has_left(&mut self, index: usize, address: [u8; 6]) {
        self.forget_access_point(index);
        if let Some(wideband) = &mut self.core.radios.awake(index).wideband
            && !wideband.left.contains(&address)
        {
            wideband.left.push(address);
        }
    }

    /// Returns to the default parameters if the radio has any of an access point.
    pub(in crate::medium) fn forget_access_point(&mut self, index: usize) {
        if self.core.radios[index].wideband.as_ref().is_some_and(|wideband| wideband.access_point.is_some()) {
            self.set_access_point(index, None);
            self.core.radios.awake(index).contend_by_default();
        }
    }

    fn set_access_point(&mut self, index: usize, access_point: Option<AccessPoint>) {
        if let Some(wideband) = &mut self.core.radios.awake(index).wideband {
            wideband.access_point = access_point;
        }
    }
}
