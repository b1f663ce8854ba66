//! Encoding and decoding of vhost-user messages, without their descriptors.
//!
//! The front end (User Mode Linux, QEMU) sends requests, the back end (a port) answers.
//! All octets come from another program and are not trusted. Source: "Vhost-user
//! Protocol" in QEMU's documentation.

/// Octets of the header before each message.
pub const HEADER: usize = 12;
/// Length in octets of the longest accepted message, without its header: a
/// device's whole configuration.
pub const LONGEST: usize = 512;
/// Maximum number of a guest's memory regions.
pub const REGIONS: usize = 8;
/// Maximum length of a device's configuration, in octets.
pub const CONFIG: usize = 256;

const VERSION: u32 = 1;
/// Number of the back end's request VHOST_USER_BACKEND_CONFIG_CHANGE_MSG.
const CONFIG_CHANGE: u32 = 2;
/// Number of the back end's request VHOST_USER_BACKEND_VRING_CALL.
const QUEUE_CALL: u32 = 4;
/// Number of the front end's request VHOST_USER_VRING_KICK.
pub const QUEUE_KICK: u32 = 35;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;
/// Flag in the queue number: no descriptor is attached.
const NO_DESCRIPTOR: u64 = 0x100;
const QUEUE_MASK: u64 = 0xff;

/// Error in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Another version of the protocol, or an answer in place of a request.
    #[error("its flags {0:#x} are not those of a request of version 1")]
    Flags(u32),
    /// Longer than any message.
    #[error("it claims {0} octets, more than {LONGEST}")]
    Long(u32),
    /// Shorter than the message's fields.
    #[error("its {got} octets are fewer than {needed}")]
    Short {
        /// Received octets.
        got: usize,
        /// Required octets.
        needed: usize,
    },
    /// An unknown message, or one of a feature that was not offered.
    #[error("its number is none that was offered")]
    Unknown,
    /// Too many regions, or none.
    #[error("it lists {0} regions of memory, not 1 to {REGIONS}")]
    Regions(u32),
    /// A range outside the configuration.
    #[error("it asks for octets {offset} to {end} of a configuration of {CONFIG}")]
    Config {
        /// Offset of the first octet.
        offset: u32,
        /// Offset after the last octet.
        end: u64,
    },
}

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the request.
    pub request: u32,
    /// Length of the body.
    pub size: usize,
    /// The sender requests an answer, if that was negotiated.
    pub needs_reply: bool,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    /// [`Flaw::Flags`] and [`Flaw::Long`].
    pub fn read(octets: [u8; HEADER]) -> Result<Self, Flaw> {
        let (request, flags, size) = (word(&octets, 0)?, word(&octets, 4)?, word(&octets, 8)?);
        if flags & VERSION_MASK != VERSION || flags & REPLY != 0 {
            return Err(Flaw::Flags(flags));
        }
        let long = |_| Flaw::Long(size);
        let octets = usize::try_from(size).map_err(long)?;
        if octets > LONGEST {
            return Err(Flaw::Long(size));
        }
        Ok(Self { request, size: octets, needs_reply: flags & NEED_REPLY != 0 })
    }
}

/// One region of a guest's memory: a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Address in the guest.
    pub guest: u64,
    /// Length in octets.
    pub octets: u64,
    /// Address in the front end's address space, which it uses for queues.
    pub user: u64,
    /// Offset in the file.
    pub offset: u64,
}

/// Addresses of the three parts of a queue, in the front end's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlaces {
    /// Descriptor table.
    pub descriptors: u64,
    /// Available ring.
    pub available: u64,
    /// Used ring.
    pub used: u64,
}

/// A request of the front end. Descriptors are passed beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Get the device's features.
    GetFeatures,
    /// Set the negotiated features.
    SetFeatures(u64),
    /// Get the protocol features.
    GetProtocolFeatures,
    /// Set the negotiated protocol features.
    SetProtocolFeatures(u64),
    /// The sender owns the session.
    SetOwner,
    /// Reset the device.
    Reset,
    /// Set the guest's memory; one descriptor for each region.
    SetMemory(Vec<RegionSpec>),
    /// Set the size of a queue in entries.
    SetQueueSize(u32, u32),
    /// Set the addresses of a queue.
    SetQueuePlaces(u32, QueuePlaces),
    /// Set the index of the next available entry.
    SetQueueBase(u32, u32),
    /// Stop a queue, and get the index of its next available entry.
    GetQueueBase(u32),
    /// Set the guest's notifier of a queue; false if no descriptor is attached.
    SetQueueKick(u32, bool),
    /// Set the device's notifier of a queue; false likewise.
    SetQueueCall(u32, bool),
    /// Set the notifier of errors of a queue; false likewise.
    SetQueueError(u32, bool),
    /// Enable or disable a queue.
    EnableQueue(u32, bool),
    /// Set the guest's MTU in octets.
    SetMtu(u64),
    /// Set the socket for requests of the back end.
    SetChannel,
    /// Get a range of the device's configuration: offset and length.
    GetConfig(u32, u32),
    /// Set a part of the device's configuration.
    SetConfig,
    /// The guest notifies the device of a queue, in place of a kick's descriptor.
    Kick(u32),
}

impl Request {
    /// Decodes the body of a message.
    ///
    /// # Errors
    /// The flaw in it.
    pub fn read(request: u32, body: &[u8]) -> Result<Self, Flaw> {
        Ok(match request {
            1 => Self::GetFeatures,
            2 => Self::SetFeatures(double(body, 0)?),
            3 => Self::SetOwner,
            4 | 34 => Self::Reset,
            5 => Self::SetMemory(regions(body)?),
            8 => Self::SetQueueSize(word(body, 0)?, word(body, 4)?),
            9 => Self::SetQueuePlaces(
                word(body, 0)?,
                QueuePlaces {
                    descriptors: double(body, 8)?,
                    used: double(body, 16)?,
                    available: double(body, 24)?,
                },
            ),
            10 => Self::SetQueueBase(word(body, 0)?, word(body, 4)?),
            11 => Self::GetQueueBase(word(body, 0)?),
            12 => queue(body).map(|(queue, with)| Self::SetQueueKick(queue, with))?,
            13 => queue(body).map(|(queue, with)| Self::SetQueueCall(queue, with))?,
            14 => queue(body).map(|(queue, with)| Self::SetQueueError(queue, with))?,
            15 => Self::GetProtocolFeatures,
            16 => Self::SetProtocolFeatures(double(body, 0)?),
            18 => Self::EnableQueue(word(body, 0)?, word(body, 4)? != 0),
            20 => Self::SetMtu(double(body, 0)?),
            21 => Self::SetChannel,
            24 => {
                let (offset, octets) = (word(body, 0)?, word(body, 4)?);
                let end = u64::from(offset) + u64::from(octets);
                if end > CONFIG as u64 {
                    return Err(Flaw::Config { offset, end });
                }
                Self::GetConfig(offset, octets)
            }
            25 => Self::SetConfig,
            QUEUE_KICK => Self::Kick(word(body, 0)?),
            _ => return Err(Flaw::Unknown),
        })
    }
}

/// Encodes the notice to the front end that the device's configuration changed; `answered` requests an
/// answer.
#[must_use]
pub fn config_change(answered: bool) -> [u8; HEADER] {
    let flags = VERSION | if answered { NEED_REPLY } else { 0 };
    let mut octets = [0; HEADER];
    octets[..4].copy_from_slice(&CONFIG_CHANGE.to_ne_bytes());
    octets[4..8].copy_from_slice(&flags.to_ne_bytes());
    octets
}

/// Octets of [`queue_call`] and of its answer.
pub const QUEUE_CALL_OCTETS: usize = HEADER + 8;

/// Encodes the notice to the front end that buffers of a queue were returned, in place of a call's
/// descriptor. It requests an answer.
#[must_use]
pub fn queue_call(queue: u32) -> [u8; QUEUE_CALL_OCTETS] {
    let mut octets = [0; QUEUE_CALL_OCTETS];
    for (place, word) in octets.chunks_exact_mut(4).zip([QUEUE_CALL, VERSION | NEED_REPLY, 8, queue]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    octets
}

/// Encodes the answer to a request.
#[must_use]
pub fn answer(request: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len()).expect("answers are short");
    let mut octets = Vec::with_capacity(HEADER + body.len());
    for word in [request, VERSION | REPLY, size] {
        octets.extend(word.to_ne_bytes());
    }
    octets.extend(body);
    octets
}

fn regions(body: &[u8]) -> Result<Vec<RegionSpec>, Flaw> {
    let count = word(body, 0)?;
    let flaw = Flaw::Regions(count);
    let number = usize::try_from(count).map_err(|_| flaw)?;
    if !(1..=REGIONS).contains(&number) {
        return Err(flaw);
    }
    let region = |index: usize| {
        let at = 8 + index * 32;
        Ok(RegionSpec {
            guest: double(body, at)?,
            octets: double(body, at + 8)?,
            user: double(body, at + 16)?,
            offset: double(body, at + 24)?,
        })
    };
    (0..number).map(region).collect()
}

/// Queue number, and whether a descriptor is attached.
fn queue(body: &[u8]) -> Result<(u32, bool), Flaw> {
    let value = double(body, 0)?;
    let queue = u32::try_from(value & QUEUE_MASK).expect("eight bits");
    Ok((queue, value & NO_DESCRIPTOR == 0))
}

fn word(octets: &[u8], at: usize) -> Result<u32, Flaw> {
    Ok(u32::from_ne_bytes(field(octets, at)?))
}

fn double(octets: &[u8], at: usize) -> Result<u64, Flaw> {
    Ok(u64::from_ne_bytes(field(octets, at)?))
}

fn field<const N: usize>(octets: &[u8], at: usize) -> Result<[u8; N], Flaw> {
    let short = Flaw::Short { got: octets.len(), needed: at + N };
    octets.get(at..).and_then(<[u8]>::first_chunk).copied().ok_or(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header(request: u32, flags: u32, size: u32) -> [u8; HEADER] {
        let mut octets = [0; HEADER];
        for (place, value) in octets.chunks_exact_mut(4).zip([request, flags, size]) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        octets
    }

    #[test]
    fn a_header_says_who_waits() {
        let plain = Header { request: 5, size: 72, needs_reply: false };
        assert_eq!(Header::read(header(5, 1, 72)), Ok(plain));
        assert_eq!(Header::read(header(5, 9, 72)), Ok(Header { needs_reply: true, ..plain }));
        assert_eq!(Header::read(header(5, 5, 72)), Err(Flaw::Flags(5)), "an answer");
        assert_eq!(Header::read(header(5, 2, 72)), Err(Flaw::Flags(2)), "another version");
        assert_eq!(Header::read(header(5, 1, 513)), Err(Flaw::Long(513)));
    }

    #[test]
    fn a_front_end_may_send_space_for_more_regions_than_it_has() {
        // As User Mode Linux does: one region, and octets of a second one.
        let mut body = vec![0; 72];
        body[0] = 1;
        for (place, value) in body[8..40].chunks_exact_mut(8).zip([1u64, 2, 3, 4]) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
        let one = RegionSpec { guest: 1, octets: 2, user: 3, offset: 4 };
        assert_eq!(Request::read(5, &body), Ok(Request::SetMemory(vec![one])));
        body[0] = 2;
        assert!(matches!(Request::read(5, &body), Ok(Request::SetMemory(both)) if both.len() == 2));
        body[0] = 3;
        assert_eq!(Request::read(5, &body), Err(Flaw::Short { got: 72, needed: 80 }));
        body[0] = 9;
        assert_eq!(Request::read(5, &body), Err(Flaw::Regions(9)));
        body[0] = 0;
        assert_eq!(Request::read(5, &body), Err(Flaw::Regions(0)));
    }

    #[test]
    fn a_part_of_the_configuration_must_exist() {
        let ask = |offset: u32, octets: u32| {
            let body = [offset.to_ne_bytes(), octets.to_ne_bytes(), [0; 4]].concat();
            Request::read(24, &body)
        };
        assert_eq!(ask(0, 6), Ok(Request::GetConfig(0, 6)));
        assert_eq!(ask(200, 56), Ok(Request::GetConfig(200, 56)));
        assert_eq!(ask(200, 57), Err(Flaw::Config { offset: 200, end: 257 }));
        assert!(ask(u32::MAX, u32::MAX).is_err());
    }

    proptest! {
        #[test]
        fn any_octets_are_a_request_or_a_flaw(
            request in 0u32..50,
            body in proptest::collection::vec(any::<u8>(), 0..300),
            head in any::<[u8; HEADER]>(),
        ) {
            let _ = Header::read(head);
            let _ = Request::read(request, &body);
        }
    }
}
