//! Management frames (802.11-2020 9.3.3 and 9.4): what an access point or a station without an
//! 802.11 stack reads from those of a stack. The counterpart that writes is [`crate::medium::capture`].

/// A management frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Management<'a> {
    /// Beacon.
    Beacon(Announcement<'a>),
    /// Probe response.
    ProbeResponse(Announcement<'a>),
    /// Probe request for this SSID; empty for all.
    ProbeRequest(&'a [u8]),
    /// Authentication.
    Authentication {
        /// Algorithm; 0 is open.
        algorithm: u16,
        /// Number of the frame in the exchange, from 1.
        transaction: u16,
        /// Status; 0 is success.
        status: u16,
    },
    /// Association or reassociation request for this SSID.
    AssociationRequest(&'a [u8]),
    /// Association or reassociation response.
    AssociationResponse {
        /// Status; 0 is success.
        status: u16,
        /// Association identifier, without the two highest bits.
        identifier: u16,
    },
    /// Disassociation or deauthentication, with its reason.
    Leave(u16),
    /// A frame of another subtype.
    Other,
}

/// What a beacon or probe response announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement<'a> {
    /// Timing synchronization function of the sender in microseconds.
    pub timestamp: u64,
    /// Time between beacons in units of 1024 us.
    pub interval: u16,
    /// Capability information.
    pub capability: u16,
    /// SSID; empty if hidden.
    pub ssid: &'a [u8],
}

impl Announcement<'_> {
    /// True if an access point sent it (capability ESS).
    #[must_use]
    pub fn is_access_point(&self) -> bool {
        self.capability & 1 != 0
    }

    /// True if data has to be encrypted (capability Privacy).
    #[must_use]
    pub fn is_private(&self) -> bool {
        self.capability & 0x10 != 0
    }
}

/// Longest SSID.
const LONGEST_SSID: usize = 32;

impl<'a> Management<'a> {
    /// Reads the body of a management frame of this subtype. `None` if a fixed field or an element
    /// is cut short, or the SSID is missing or too long.
    #[must_use]
    pub fn parse(subtype: u8, body: &'a [u8]) -> Option<Self> {
        let word = |at: usize| Some(u16::from_le_bytes([*body.get(at)?, *body.get(at + 1)?]));
        let ssid = |from: usize| {
            let ssid = element(body.get(from..)?, 0)??;
            (ssid.len() <= LONGEST_SSID).then_some(ssid)
        };
        let announcement = || {
            let timestamp = body.get(..8)?.try_into().ok().map(u64::from_le_bytes)?;
            Some(Announcement { timestamp, interval: word(8)?, capability: word(10)?, ssid: ssid(12)? })
        };
        Some(match subtype {
            0 => Self::AssociationRequest(ssid(4)?),
            1 | 3 => {
                element(body.get(6..)?, 0)?;
                Self::AssociationResponse { status: word(2)?, identifier: word(4)? & 0x3fff }
            }
            2 => Self::AssociationRequest(ssid(10)?),
            4 => Self::ProbeRequest(ssid(0)?),
            5 => Self::ProbeResponse(announcement()?),
            8 => Self::Beacon(announcement()?),
            10 | 12 => Self::Leave(word(0)?),
            11 => Self::Authentication { algorithm: word(0)?, transaction: word(2)?, status: word(4)? },
            _ => Self::Other,
        })
    }
}

/// The elements at the start of these octets, with their identifiers; one that is cut short ends them.
pub(in crate::medium) fn elements(mut octets: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    core::iter::from_fn(move || {
        let [identifier, length, rest @ ..] = octets else { return None };
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        octets = rest;
        Some((*identifier, value))
    })
}

/// The first element with this identifier: `None` if an element is cut short, `Some(None)` if there
/// is none.
#[allow(clippy::option_option)]
fn element(mut octets: &[u8], wanted: u8) -> Option<Option<&[u8]>> {
    let mut found = None;
    while let [identifier, length, rest @ ..] = octets {
        let (value, rest) = rest.split_at_checked(usize::from(*length))?;
        if *identifier == wanted && found.is_none() {
            found = Some(value);
        }
        octets = rest;
    }
    octets.is_empty().then_some(found)
}
