//! Messages of the kernel's time-travel protocol (`include/uapi/linux/um_timetravel.h`): 16 octets, an
//! operation, a sequence number and a time in nanoseconds.

/// Octets of a message.
pub const OCTETS: usize = 16;

/// An operation, from a guest or to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Acknowledges the message with the same sequence number.
    Ack,
    /// A guest begins; its time is the number on its command line.
    Start,
    /// A guest wishes to run at a time.
    Request,
    /// A guest stops until it may run.
    Wait,
    /// A guest asks for the time.
    Get,
    /// A guest has advanced to a time.
    Update,
    /// To a guest: run at a time.
    Run,
    /// To a guest: it may advance its time up to this one without a message.
    FreeUntil,
    /// A guest asks for the time of day.
    GetTimeOfDay,
}

const NUMBERS: [(u32, Operation); 9] = [
    (0, Operation::Ack),
    (1, Operation::Start),
    (2, Operation::Request),
    (3, Operation::Wait),
    (4, Operation::Get),
    (5, Operation::Update),
    (6, Operation::Run),
    (7, Operation::FreeUntil),
    (8, Operation::GetTimeOfDay),
];

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What it says.
    pub operation: Operation,
    /// Its sequence number, by which it is acknowledged.
    pub sequence: u32,
    /// Its time in nanoseconds.
    pub time: u64,
}

impl Message {
    /// Decodes a message; the number of the operation if that is not known.
    ///
    /// # Errors
    /// That number.
    pub fn read(octets: [u8; OCTETS]) -> Result<Self, u32> {
        let [number, sequence, low, high] = std::array::from_fn(|word| {
            u32::from_ne_bytes(std::array::from_fn(|octet| octets[4 * word + octet]))
        });
        let known = NUMBERS.iter().find(|(known, _)| *known == number).ok_or(number)?;
        let halves = [low.to_ne_bytes(), high.to_ne_bytes()];
        let time = u64::from_ne_bytes(std::array::from_fn(|octet| halves[octet / 4][octet % 4]));
        Ok(Self { operation: known.1, sequence, time })
    }

    /// Encodes the message.
    #[must_use]
    pub fn write(self) -> [u8; OCTETS] {
        let number = NUMBERS.iter().find(|(_, known)| *known == self.operation).map_or(0, |one| one.0);
        let mut octets = [0; OCTETS];
        octets[..4].copy_from_slice(&number.to_ne_bytes());
        octets[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        octets[8..].copy_from_slice(&self.time.to_ne_bytes());
        octets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_kernels_layout() {
        let message = Message { operation: Operation::GetTimeOfDay, sequence: 7, time: 1 << 40 | 5 };
        let octets = message.write();
        assert_eq!(octets[..8], [8u32.to_ne_bytes(), 7u32.to_ne_bytes()].concat());
        assert_eq!(octets[8..], (1u64 << 40 | 5).to_ne_bytes());
        assert_eq!(Message::read(octets), Ok(message));
    }

    #[test]
    fn an_unknown_operation_is_named() {
        let mut octets = Message { operation: Operation::Ack, sequence: 0, time: 0 }.write();
        octets[..4].copy_from_slice(&10u32.to_ne_bytes());
        assert_eq!(Message::read(octets), Err(10));
    }
}
