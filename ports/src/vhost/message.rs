//! The messages of the vhost-user protocol as octets, and nothing else: no descriptor is touched here.
//!
//! The front end (User Mode Linux, QEMU) asks, the back end (a port) answers. Every octet comes from
//! another program and may be anything. Source: "Vhost-user Protocol" in QEMU's documentation.

/// Octets of the header before each message.
pub const HEADER: usize = 12;
/// Octets of the longest message that is taken, without its header: a device's whole configuration.
pub const LONGEST: usize = 512;
/// Most regions of memory that a guest may have.
pub const REGIONS: usize = 8;
/// Most octets of a device's configuration.
pub const CONFIG: usize = 256;

const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const REPLY: u32 = 4;
const NEED_REPLY: u32 = 8;
/// In the number that comes with a queue's descriptor: there is none.
const NO_DESCRIPTOR: u64 = 0x100;
const QUEUE_MASK: u64 = 0xff;

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Another version of the protocol, or an answer where a request belongs.
    #[error("its flags {0:#x} are not those of a request of version 1")]
    Flags(u32),
    /// More octets than any message has.
    #[error("it claims {0} octets, more than {LONGEST}")]
    Long(u32),
    /// Fewer octets than this message has.
    #[error("its {got} octets are fewer than {needed}")]
    Short {
        /// Octets that came.
        got: usize,
        /// Octets that are needed.
        needed: usize,
    },
    /// A message that belongs to a feature which was not offered, or to none.
    #[error("its number is none that was offered")]
    Unknown,
    /// More regions than there may be, or none.
    #[error("it lists {0} regions of memory, not 1 to {REGIONS}")]
    Regions(u32),
    /// A part of the configuration that does not exist.
    #[error("it asks for octets {offset} to {end} of a configuration of {CONFIG}")]
    Config {
        /// First octet.
        offset: u32,
        /// Octet after the last.
        end: u64,
    },
}

/// The beginning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of the request.
    pub request: u32,
    /// Octets that follow.
    pub size: usize,
    /// The sender waits for an answer, if that was agreed upon.
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

/// One piece of a guest's memory: a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Where the guest has it.
    pub guest: u64,
    /// Its octets.
    pub octets: u64,
    /// Where the front end has it in its own address space, in which it speaks of queues.
    pub user: u64,
    /// Where it begins in the file.
    pub offset: u64,
}

/// Where the three parts of a queue are, in the front end's address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePlaces {
    /// The table of descriptors.
    pub descriptors: u64,
    /// What the guest offers.
    pub available: u64,
    /// What the device has used.
    pub used: u64,
}

/// A request of the front end. Descriptors come beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Which features can the device have?
    GetFeatures,
    /// These it shall have.
    SetFeatures(u64),
    /// Which parts of the protocol are known?
    GetProtocolFeatures,
    /// These shall be used.
    SetProtocolFeatures(u64),
    /// The sender is in charge.
    SetOwner,
    /// Start all over.
    Reset,
    /// The guest's memory; one descriptor for each region.
    SetMemory(Vec<RegionSpec>),
    /// Entries of a queue.
    SetQueueSize(u32, u32),
    /// Where the parts of a queue are.
    SetQueuePlaces(u32, QueuePlaces),
    /// The next entry of a queue to be taken.
    SetQueueBase(u32, u32),
    /// Stop a queue, and say which entry would be the next.
    GetQueueBase(u32),
    /// A descriptor by which the guest says that a queue has something; false if none comes.
    SetQueueKick(u32, bool),
    /// One by which the device says so.
    SetQueueCall(u32, bool),
    /// One by which the device says that a queue is broken.
    SetQueueError(u32, bool),
    /// A queue is to be used or not.
    EnableQueue(u32, bool),
    /// The guest's MTU in octets.
    SetMtu(u64),
    /// A descriptor by which the back end may ask something in its turn.
    SetChannel,
    /// A part of the device's configuration: offset and length.
    GetConfig(u32, u32),
    /// The guest writes into the configuration.
    SetConfig,
}

impl Request {
    /// Reads what follows a header.
    ///
    /// # Errors
    /// What is wrong with it.
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
            _ => return Err(Flaw::Unknown),
        })
    }
}

/// An answer to the request of that number.
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

/// A queue, and whether a descriptor comes for it.
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
    fn a_front_end_may_send_room_for_more_regions_than_it_has() {
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
