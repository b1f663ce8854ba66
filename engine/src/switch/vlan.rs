//! Virtual LANs (IEEE 802.1Q, 2018): classification and tagging of frames.
//!
//! A port of a switch is an access port of one VLAN, or a trunk that carries several VLANs, all
//! tagged except the native VLAN. Only an outermost tag of type 0x8100 counts; inner tags and tags
//! of other types are payload.

use crate::error::Error;
use crate::frame::segment;
use crate::frame::{Frame, Pool};
use crate::settings::VlanSettings;

/// Octets of the two addresses, which precede the tag.
const ADDRESSES: usize = 12;
/// Octets of a tag.
pub(crate) const TAG: usize = 4;
const TYPE: [u8; 2] = [0x81, 0x00];
const NUMBER: u16 = 0x0fff;
/// The VLAN of a port that is not configured, in a VLAN-aware switch (clause 9.6).
const DEFAULT: u16 = 1;
/// Valid VLAN numbers; 0 and 4095 are reserved.
const NUMBERS: core::ops::Range<u16> = 1..4095;

/// VLAN classification of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The VLAN.
    pub vlan: u16,
    /// Priority code point and drop eligibility, at their positions in a tag.
    priority: u16,
    /// True if the frame is tagged.
    tagged: bool,
}

/// VLAN membership of a switch's port.
#[derive(Clone, Debug)]
pub(crate) enum Member {
    Access(u16),
    Trunk { allowed: Box<[u64; 64]>, native: Option<u16> },
}

impl VlanSettings {
    /// Checks every number.
    ///
    /// # Errors
    /// Names the first number that is not from 1 to 4094.
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

    /// A trunk of all VLANs, all tagged.
    pub fn every() -> Self {
        Self::Trunk { allowed: Box::new([u64::MAX; 64]), native: None }
    }

    /// True if the port is a member of the VLAN.
    fn carries(&self, vlan: u16) -> bool {
        match self {
            Self::Access(own) => *own == vlan,
            Self::Trunk { allowed, .. } => allowed[usize::from(vlan >> 6)] >> (vlan & 63) & 1 == 1,
        }
    }

    /// The untagged VLAN of the port, if any.
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

/// The VLAN class of a frame that came in at `member`; `None` if the port does not accept it.
pub(crate) fn classify(member: &Member, octets: &[u8]) -> Option<Class> {
    let tagged = octets.len() >= ADDRESSES + TAG + 2 && octets[ADDRESSES..ADDRESSES + 2] == TYPE;
    let tag = if tagged { u16::from_be_bytes([octets[14], octets[15]]) } else { 0 };
    // A VLAN number of zero is a priority tag without a VLAN.
    let vlan = match tag & NUMBER {
        0 => member.untagged()?,
        number => number,
    };
    let takes = NUMBERS.contains(&vlan) && member.carries(vlan);
    takes.then_some(Class { vlan, priority: tag & !NUMBER, tagged })
}

/// True if a frame of this class may leave at `member`.
pub(crate) fn leaves(member: &Member, class: Class) -> bool {
    member.carries(class.vlan)
}

/// The frame as it leaves at `member`, tagged or untagged. It gets a new buffer only if its tag
/// changes. `None` if its headers leave no room for a tag.
pub(crate) fn leaving(member: &Member, class: Class, frame: &Frame, pool: &mut Pool) -> Option<Frame> {
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
