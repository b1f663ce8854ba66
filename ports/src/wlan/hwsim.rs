//! Messages between the kernel's simulated wireless hardware (`mac80211_hwsim`) and the engine,
//! without their transport.
//!
//! A message is a generic netlink message: a netlink header of 16 octets, a generic header of 4, and
//! attributes, each with length, type and value, padded to 4 octets, in the byte order of the
//! machine. Source: the kernel's `mac80211_hwsim.h`. The octets come from a guest and are not
//! trusted.

use std::ops::Range;

/// The octets of a message, wherever they are. They may change between two reads.
pub trait Content {
    /// Number of octets.
    fn octets(&self) -> usize;

    /// Copies the octets from `at` on, which are there.
    fn copy(&self, at: usize, to: &mut [u8]);
}

impl Content for [u8] {
    fn octets(&self) -> usize {
        self.len()
    }

    fn copy(&self, at: usize, to: &mut [u8]) {
        to.copy_from_slice(&self[at..at + to.len()]);
    }
}

/// A hardware address.
pub type Address = [u8; 6];

/// Steps of a retry chain.
pub const STEPS: usize = 4;
/// Length in octets of the longest message of a guest: a virtio buffer is one page.
pub const LONGEST: usize = 4096;
/// Length in octets of the shortest 802.11 frame (ACK); the kernel ignores shorter ones.
const SHORTEST_FRAME: usize = 10;

const NETLINK: usize = 16;
const HEADER: usize = NETLINK + 4;

const CMD_FRAME: u8 = 2;
const CMD_TX_INFO: u8 = 3;
const CMD_ADD_ADDRESS: u8 = 7;
const CMD_REMOVE_ADDRESS: u8 = 8;
/// Of the kernel patch `hwsim-channel.patch`; no other kernel sends it.
const CMD_CHANNEL: u8 = 64;

const RECEIVER: u16 = 1;
const TRANSMITTER: u16 = 2;
const FRAME: u16 = 3;
const FLAGS: u16 = 4;
const RX_RATE: u16 = 5;
const SIGNAL: u16 = 6;
const TX_INFO: u16 = 7;
const COOKIE: u16 = 8;
const FREQUENCY: u16 = 19;
const TX_INFO_FLAGS: u16 = 21;
/// Bits of an attribute's type that are its type.
const TYPE: u16 = 0x3fff;

/// The kernel does not wait for an acknowledgment.
pub const NO_ACK: u32 = 1 << 1;
/// Flag of a step: a request-to-send precedes its transmissions.
pub const RTS: u16 = 1;
/// An acknowledgment arrived.
pub const ACKNOWLEDGED: u32 = 1 << 2;

/// The Retry bit in the second octet of a frame.
const RETRY: u8 = 0x08;

/// Why a message is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The lengths contradict each other.
    #[error("its length of {0} octets is not that of its content")]
    Length(usize),
    /// An attribute that it must have.
    #[error("attribute {0} is missing")]
    Missing(u16),
    /// An attribute of another length than its type has.
    #[error("attribute {0} has {1} octets")]
    Attribute(u16, usize),
    /// A frame that is too short for 802.11.
    #[error("its frame of {0} octets is no 802.11 frame")]
    Frame(usize),
}

/// One step of a retry chain, as mac80211 writes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Index of the rate in its band, or of the modulation and coding scheme; negative for none.
    pub index: i8,
    /// Number of transmissions.
    pub count: u8,
    /// Flags of the rate (`mac80211_hwsim_tx_rate_flags`).
    pub flags: u16,
}

/// A frame to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// The radio.
    pub radio: Address,
    /// Where the frame is in the message, without its check sequence.
    pub frame: Range<usize>,
    /// Flags ([`NO_ACK`] and others).
    pub flags: u32,
    /// Centre frequency of the channel in MHz.
    pub mhz: u32,
    /// The retry chain.
    pub chain: [Step; STEPS],
    /// The kernel's number of the frame.
    pub cookie: u64,
}

/// A message of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A radio is to send a frame.
    Transmit(Transmission),
    /// An interface of a radio receives frames to this address from now on.
    Add {
        /// The radio.
        radio: Address,
        /// The address.
        address: Address,
    },
    /// It does so no longer.
    Remove {
        /// The radio.
        radio: Address,
        /// The address.
        address: Address,
    },
    /// A radio listens on the channel with this centre in MHz from now on; on none with 0.
    Listen {
        /// The radio.
        radio: Address,
        /// The centre of its channel.
        mhz: u32,
    },
    /// A message of another kind, such as a request for a distance measurement.
    Other(u8),
}

/// Decodes a message. What it consists of is read once each, and the frame is not read at all.
///
/// # Errors
/// The flaw in it.
pub fn read<C: Content + ?Sized>(content: &C) -> Result<Message, Flaw> {
    let flaw = Flaw::Length(content.octets());
    if content.octets() < HEADER {
        return Err(flaw);
    }
    let mut header = [0; HEADER];
    content.copy(0, &mut header);
    let length = length(&header).filter(|length| (HEADER..=content.octets()).contains(length)).ok_or(flaw)?;
    let attributes = Attributes::read(content, HEADER..length)?;
    Ok(match header[NETLINK] {
        CMD_FRAME => Message::Transmit(attributes.transmission()?),
        CMD_ADD_ADDRESS => {
            Message::Add { radio: attributes.fixed(TRANSMITTER)?, address: attributes.fixed(RECEIVER)? }
        }
        CMD_REMOVE_ADDRESS => {
            Message::Remove { radio: attributes.fixed(TRANSMITTER)?, address: attributes.fixed(RECEIVER)? }
        }
        CMD_CHANNEL => Message::Listen {
            radio: attributes.fixed(TRANSMITTER)?,
            mhz: u32::from_ne_bytes(attributes.fixed(FREQUENCY)?),
        },
        other => Message::Other(other),
    })
}

/// The length in octets that a message gives for itself; None if its header has not arrived.
#[must_use]
pub fn length(octets: &[u8]) -> Option<usize> {
    usize::try_from(u32::from_ne_bytes(*octets.first_chunk()?)).ok()
}

/// Where the values of a message's attributes are, by type; of several with one type, the last one
/// counts, as in the kernel.
struct Attributes<'a, C: ?Sized> {
    content: &'a C,
    places: [Option<(usize, usize)>; 22],
}

impl<'a, C: Content + ?Sized> Attributes<'a, C> {
    fn read(content: &'a C, body: Range<usize>) -> Result<Self, Flaw> {
        let (mut at, end) = (body.start, body.end);
        let mut places = [None; 22];
        while end - at >= 4 {
            let mut head = [0; 4];
            content.copy(at, &mut head);
            let [a, b, c, d] = head;
            let (length, kind) = (usize::from(u16::from_ne_bytes([a, b])), u16::from_ne_bytes([c, d]) & TYPE);
            if length < 4 || length > end - at {
                return Err(Flaw::Length(length));
            }
            if let Some(place) = places.get_mut(usize::from(kind)) {
                *place = Some((at + 4, length - 4));
            }
            at = end.min(at + length.next_multiple_of(4));
        }
        if at == end { Ok(Self { content, places }) } else { Err(Flaw::Length(end - at)) }
    }

    /// Offset and length of a value.
    fn of(&self, kind: u16) -> Result<(usize, usize), Flaw> {
        self.places[usize::from(kind)].ok_or(Flaw::Missing(kind))
    }

    fn fixed<const N: usize>(&self, kind: u16) -> Result<[u8; N], Flaw> {
        let (at, octets) = self.of(kind)?;
        if octets != N {
            return Err(Flaw::Attribute(kind, octets));
        }
        let mut value = [0; N];
        self.content.copy(at, &mut value);
        Ok(value)
    }

    fn transmission(&self) -> Result<Transmission, Flaw> {
        let (at, octets) = self.of(FRAME)?;
        if octets < SHORTEST_FRAME {
            return Err(Flaw::Frame(octets));
        }
        let rates: [u8; 2 * STEPS] = self.fixed(TX_INFO)?;
        // Kernels before 5.10 do not send the flags.
        let flags = match self.of(TX_INFO_FLAGS) {
            Ok(_) => self.fixed(TX_INFO_FLAGS)?,
            Err(_) => [0; 3 * STEPS],
        };
        let mut chain = [Step::default(); STEPS];
        for (number, step) in chain.iter_mut().enumerate() {
            let (rate, flag) = (2 * number, 3 * number);
            let index = i8::from_ne_bytes([rates[rate]]);
            let bits = u16::from_ne_bytes([flags[flag + 1], flags[flag + 2]]);
            *step = Step { index, count: rates[rate + 1], flags: bits };
        }
        Ok(Transmission {
            radio: self.fixed(TRANSMITTER)?,
            frame: at..at + octets,
            flags: u32::from_ne_bytes(self.fixed(FLAGS)?),
            mhz: u32::from_ne_bytes(self.fixed(FREQUENCY)?),
            chain,
            cookie: u64::from_ne_bytes(self.fixed(COOKIE)?),
        })
    }
}

/// How a frame was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The radio that received it.
    pub radio: Address,
    /// Centre frequency of the channel in MHz.
    pub mhz: u32,
    /// Index of the rate in its band.
    pub rate: u32,
    /// Signal in dBm.
    pub signal_dbm: i8,
    /// The transmission was a repetition.
    pub retry: bool,
}

/// Octets before a received frame, the first two of the frame among them.
pub const RECEPTION: usize = HEADER + 12 + 3 * 8 + 4 + 2;

/// A message about a received frame, in order.
pub type Parts<'a> = ([u8; RECEPTION], &'a [u8], &'static [u8]);

/// Encodes the message about a received frame: what precedes the third octet of the frame, the rest
/// of the frame, and what follows it. None if the frame is too short or too long for a message.
#[must_use]
pub fn received<'a>(how: &Reception, frame: &'a [u8]) -> Option<Parts<'a>> {
    let (&[first, second], rest) = frame.split_first_chunk::<2>()?;
    let padding = &[0; 3][..frame.len().next_multiple_of(4) - frame.len()];
    let mut writer = Writer::<RECEPTION>::new(CMD_FRAME, RECEPTION + rest.len() + padding.len());
    writer.put(RECEIVER, &how.radio);
    writer.put(RX_RATE, &how.rate.to_ne_bytes());
    writer.put(SIGNAL, &i32::from(how.signal_dbm).to_ne_bytes());
    writer.put(FREQUENCY, &how.mhz.to_ne_bytes());
    writer.head(FRAME, u16::try_from(frame.len()).ok().filter(|&octets| octets < u16::MAX - 4)?);
    writer.append(&[first, if how.retry { second | RETRY } else { second }]);
    Some((writer.octets, rest, padding))
}

/// Outcome of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// The radio that sent it.
    pub radio: Address,
    /// The flags of the request.
    pub flags: u32,
    /// Whether an acknowledgment arrived.
    pub acknowledged: bool,
    /// Its signal in dBm.
    pub ack_dbm: i8,
    /// Rates and transmissions; the first negative index ends them.
    pub used: [(i8, u8); STEPS],
    /// The number of the request.
    pub cookie: u64,
}

/// Octets of a status.
pub const STATUS: usize = HEADER + 12 + 2 * 8 + 12 + 12;

/// Encodes the outcome of a transmission.
#[must_use]
pub fn transmitted(status: &Status) -> [u8; STATUS] {
    let mut writer = Writer::<STATUS>::new(CMD_TX_INFO, STATUS);
    let flags = if status.acknowledged { status.flags | ACKNOWLEDGED } else { status.flags & !ACKNOWLEDGED };
    writer.put(TRANSMITTER, &status.radio);
    writer.put(FLAGS, &flags.to_ne_bytes());
    writer.put(SIGNAL, &i32::from(status.ack_dbm).to_ne_bytes());
    writer.put(TX_INFO, status.used.map(|(index, count)| [index.to_ne_bytes()[0], count]).as_flattened());
    writer.put(COOKIE, &status.cookie.to_ne_bytes());
    writer.octets
}

/// A message of fixed length that is being written.
struct Writer<const N: usize> {
    octets: [u8; N],
    at: usize,
}

impl<const N: usize> Writer<N> {
    /// Begins a message of `octets` octets in total.
    fn new(command: u8, octets: usize) -> Self {
        let mut writer = Self { octets: [0; N], at: 0 };
        writer.append(&u32::try_from(octets).unwrap_or(u32::MAX).to_ne_bytes());
        writer.octets[NETLINK] = command;
        writer.at = HEADER;
        writer
    }

    fn head(&mut self, kind: u16, octets: u16) {
        self.append(&(octets + 4).to_ne_bytes());
        self.append(&kind.to_ne_bytes());
    }

    fn put(&mut self, kind: u16, value: &[u8]) {
        self.head(kind, u16::try_from(value.len()).expect("a few octets"));
        self.append(value);
        self.at = self.at.next_multiple_of(4);
    }

    fn append(&mut self, octets: &[u8]) {
        self.octets[self.at..self.at + octets.len()].copy_from_slice(octets);
        self.at += octets.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RADIO: Address = [0x42, 0, 0, 0, 3, 0];

    fn message(command: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut octets = vec![0; HEADER];
        octets[NETLINK] = command;
        for (kind, value) in attributes {
            octets.extend((u16::try_from(value.len()).unwrap() + 4).to_ne_bytes());
            octets.extend(kind.to_ne_bytes());
            octets.extend(*value);
            octets.resize(octets.len().next_multiple_of(4), 0);
        }
        let length = u32::try_from(octets.len()).unwrap();
        octets[..4].copy_from_slice(&length.to_ne_bytes());
        octets
    }

    #[test]
    fn a_frame_of_a_kernel_is_read_with_its_retry_chain() {
        // As a kernel sends it: in a buffer longer than the message.
        let frame = [0xd0; 30];
        let mut octets = message(
            CMD_FRAME,
            &[
                (TRANSMITTER, &RADIO),
                (FRAME, &frame),
                (FLAGS, &3u32.to_ne_bytes()),
                (FREQUENCY, &2437u32.to_ne_bytes()),
                (TX_INFO, &[11, 4, 7, 2, 255, 0, 255, 0]),
                (TX_INFO_FLAGS, &[11, 0, 0, 7, 8, 0, 255, 0, 0, 255, 0, 0]),
                (COOKIE, &77u64.to_ne_bytes()),
            ],
        );
        octets.extend([0xee; 500]);
        let step = |index, count, flags| Step { index, count, flags };
        let chain = [step(11, 4, 0), step(7, 2, 8), step(-1, 0, 0), step(-1, 0, 0)];
        let place = HEADER + 12 + 4..HEADER + 12 + 4 + frame.len();
        let expected = Transmission { radio: RADIO, frame: place, flags: 3, mhz: 2437, chain, cookie: 77 };
        assert_eq!(read(&octets[..]), Ok(Message::Transmit(expected)));
    }

    #[test]
    fn a_flaw_is_named() {
        let address = message(CMD_ADD_ADDRESS, &[(TRANSMITTER, &RADIO), (RECEIVER, &[1; 6])]);
        assert_eq!(read(&address[..]), Ok(Message::Add { radio: RADIO, address: [1; 6] }));
        assert_eq!(read(&address[..30]), Err(Flaw::Length(30)));
        assert_eq!(read(&[][..]), Err(Flaw::Length(0)));
        assert_eq!(
            read(&message(CMD_ADD_ADDRESS, &[(TRANSMITTER, &RADIO)])[..]),
            Err(Flaw::Missing(RECEIVER))
        );
        let channel = [(TRANSMITTER, &RADIO[..]), (FREQUENCY, &2437u32.to_ne_bytes())];
        let listen = Message::Listen { radio: RADIO, mhz: 2437 };
        assert_eq!(read(&message(CMD_CHANNEL, &channel)[..]), Ok(listen));
        assert_eq!(read(&message(CMD_CHANNEL, &channel[..1])[..]), Err(Flaw::Missing(FREQUENCY)));
        let short = message(CMD_REMOVE_ADDRESS, &[(TRANSMITTER, &RADIO[..5]), (RECEIVER, &[1; 6])]);
        assert_eq!(read(&short[..]), Err(Flaw::Attribute(TRANSMITTER, 5)));
        assert_eq!(read(&message(CMD_FRAME, &[(FRAME, &[0; 9])])[..]), Err(Flaw::Frame(9)));
        assert_eq!(read(&message(9, &[])[..]), Ok(Message::Other(9)));
        // An attribute shorter than its own header.
        let mut none = message(9, &[(9, &[])]);
        none[HEADER] = 0;
        assert_eq!(read(&none[..]), Err(Flaw::Length(0)));
    }

    #[test]
    fn a_status_has_the_attributes_that_the_kernel_requires() {
        let status = Status {
            radio: RADIO,
            flags: 1,
            acknowledged: true,
            ack_dbm: -40,
            used: [(3, 2), (0, 1), (-1, 0), (-1, 0)],
            cookie: 9,
        };
        let octets = transmitted(&status);
        let attributes = Attributes::read(&octets[..], HEADER..octets.len()).unwrap();
        assert_eq!(octets[NETLINK], CMD_TX_INFO);
        assert_eq!(attributes.fixed(TRANSMITTER), Ok(RADIO));
        assert_eq!(attributes.fixed(FLAGS), Ok(5u32.to_ne_bytes()));
        assert_eq!(attributes.fixed(SIGNAL), Ok((-40i32).to_ne_bytes()));
        assert_eq!(attributes.fixed(TX_INFO), Ok([3, 2, 0, 1, 255, 0, 255, 0]));
        assert_eq!(attributes.fixed(COOKIE), Ok(9u64.to_ne_bytes()));
    }

    proptest! {
        #[test]
        fn a_received_frame_is_whole_and_a_repetition_is_marked(
            frame in proptest::collection::vec(any::<u8>(), 2..3000), retry in any::<bool>(),
        ) {
            let how = Reception { radio: RADIO, mhz: 5180, rate: 7, signal_dbm: -61, retry };
            let (head, rest, padding) = received(&how, &frame).unwrap();
            let octets = [&head, rest, padding].concat();
            prop_assert_eq!(octets.len() % 4, 0);
            let length = u32::from_ne_bytes(octets[..4].try_into().unwrap());
            prop_assert_eq!(length as usize, octets.len());
            let attributes = Attributes::read(&octets[..], HEADER..octets.len()).unwrap();
            let mut expected = frame.clone();
            expected[1] |= if retry { RETRY } else { 0 };
            let (at, length) = attributes.of(FRAME).unwrap();
            prop_assert_eq!(&octets[at..at + length], &expected[..]);
            prop_assert_eq!(attributes.fixed(RX_RATE), Ok(7u32.to_ne_bytes()));
            prop_assert_eq!(attributes.fixed(SIGNAL), Ok((-61i32).to_ne_bytes()));
            prop_assert_eq!(attributes.fixed(FREQUENCY), Ok(5180u32.to_ne_bytes()));
        }

        #[test]
        fn any_octets_are_a_message_or_a_flaw(mut octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&octets[..]);
            if octets.len() > NETLINK {
                let length = u32::try_from(octets.len()).unwrap();
                octets[..4].copy_from_slice(&length.to_ne_bytes());
                octets[NETLINK] %= 12;
                let _ = read(&octets[..]);
            }
        }
    }
}
