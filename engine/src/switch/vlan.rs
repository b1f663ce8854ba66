//! Virtual LANs (IEEE 802.1Q, 2018): to which one a frame belongs, and its tag.
//!
//! A port of a switch is an access port of one VLAN, or a trunk that carries several, all tagged
//! but one: the native VLAN. Only the outermost tag of type 0x8100 counts; one behind it, or of
//! another type, is content.

use crate::error::Error;
use crate::frame::segment;
use crate::frame::{Frame, Pool};
use crate::settings::VlanSettings;

/// Octets of the two addresses, after which a tag stands.
const ADDRESSES: usize = 12;
/// Octets of a tag.
pub(crate) const TAG: usize = 4;
const TYPE: [u8; 2] = [0x81, 0x00];
const NUMBER: u16 = 0x0fff;
/// The VLAN of a port of which nothing is said, in a switch that knows VLANs (clause 9.6).
const DEFAULT: u16 = 1;
/// Numbers of VLANs; 0 and 4095 are reserved.
const NUMBERS: core::ops::Range<u16> = 1..4095;

/// What the tag of a frame says, or would say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The VLAN.
    pub vlan: u16,
    /// Priority code point and drop eligibility, in their places in a tag.
    priority: u16,
    /// Whether the frame bears a tag.
    tagged: bool,
}

/// A switch's port, as its VLANs see it.
#[derive(Clone, Debug)]
pub(crate) enum Member {
    Access(u16),
    Trunk { allowed: Box<[u64; 64]>, native: Option<u16> },
}

impl VlanSettings {
    /// Checks every number.
    ///
    /// # Errors
    /// The first that is not from 1 to 4094.
    pub fn check(&self) -> Result<(), Error> {
        let (numbers, native) = match self {
            Self::Access { vlan } => (std::slice::from_ref(vlan), &None),
            Self::Trunk { allowed, native } => (allowed.as_slice(), native),
        };
        match numbers.iter().chain(native).find(|number| !NUMBERS.contains(number)) {
            None => Ok(()),
            Some(number) => Err(Error::Range {
                code: "link.vlan",
                field: "vlan",
                value: number.to_string(),
                allowed: "a VLAN's number is from 1 to 4094",
            }),
        }
    }
}

impl Member {
    pub fn new(settings: &VlanSettings) -> Self {
        match settings {
            VlanSettings::Access { vlan } => Self::Access(*vlan),
            VlanSettings::Trunk { allowed, native } => {
                let mut bits = Box::new([0u64; 64]);
                for &vlan in allowed.iter().chain(native) {
                    bits[usize::from(vlan >> 6)] |= 1 << (vlan & 63);
                }
                Self::Trunk { allowed: bits, native: *native }
            }
        }
    }

    /// Whether frames of a VLAN come and go here.
    fn carries(&self, vlan: u16) -> bool {
        match self {
            Self::Access(own) => *own == vlan,
            Self::Trunk { allowed, .. } => allowed[usize::from(vlan >> 6)] >> (vlan & 63) & 1 == 1,
        }
    }

    /// The VLAN whose frames bear no tag here.
    fn untagged(&self) -> Option<u16> {
        match self {
            Self::Access(own) => Some(*own),
            Self::Trunk { native, .. } => *native,
        }
    }
}

impl Default for Member {
    fn default() -> Self {
        Self::Access(DEFAULT)
    }
}

/// To which VLAN a frame belongs that came in at `member`; none if the port does not take it.
pub(crate) fn classify(member: &Member, octets: &[u8]) -> Option<Class> {
    let tagged = octets.len() >= ADDRESSES + TAG + 2 && octets[ADDRESSES..ADDRESSES + 2] == TYPE;
    let tag = if tagged { u16::from_be_bytes([octets[14], octets[15]]) } else { 0 };
    // A number of zero says a priority and no VLAN.
    let vlan = match tag & NUMBER {
        0 => member.untagged()?,
        number => number,
    };
    let takes = NUMBERS.contains(&vlan) && member.carries(vlan);
    takes.then_some(Class { vlan, priority: tag & !NUMBER, tagged })
}

/// Whether a frame of this class may leave at `member`.
pub(crate) fn leaves(member: &Member, class: Class) -> bool {
    member.carries(class.vlan)
}

/// The frame as it leaves at `member`: with a tag, or without. Only where its tag changes it gets
/// a buffer of its own. None if its headers leave no room for a tag.
pub(crate) fn dress(member: &Member, class: Class, frame: &Frame, pool: &mut Pool) -> Option<Frame> {
    let wanted = member.untagged() != Some(class.vlan);
    let bare = if class.tagged { TAG } else { 0 };
    if !wanted {
        return if class.tagged { segment::retag(frame, pool, bare, None) } else { Some(*frame) };
    }
    let [a, b] = (class.priority | class.vlan).to_be_bytes();
    if class.tagged {
        let octets = &pool.octets(frame.buffer)[..ADDRESSES + TAG];
        if octets[14..] == [a, b] {
            return Some(*frame);
        }
    }
    segment::retag(frame, pool, bare, Some([TYPE[0], TYPE[1], a, b]))
}
