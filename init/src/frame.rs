//! Frames on the channel of a guest: one character device carries messages, the octets of programs'
//! streams and of connections to the node's control socket, and credits for flow control.
//!
//! A frame consists of its kind (one octet), the number of its program or connection (eight,
//! little-endian), the length of its body (four) and the body. Received frames come from a
//! guest and are not trusted.

/// Length of the header, in octets.
pub const HEAD: usize = 13;
/// Maximum length of a message, as on sockets.
const LONGEST_MESSAGE: usize = 16 << 20;
/// Flow-control window of one stream: octets sent but not yet consumed at the other end.
pub const WINDOW: usize = 64 << 10;

/// Kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A message in JSON; belongs to no program.
    Message,
    /// Standard input of a program, towards the guest; an empty body is its end.
    Input,
    /// Standard output of a program; an empty body is its end.
    Output,
    /// Standard error of a program; an empty body is its end.
    Error,
    /// Credit to send further octets of a stream: the stream's kind and four octets. With
    /// [`Kind::Message`] as kind it applies to the whole channel.
    Credit,
    /// New size of a program's terminal: rows and columns, two octets each.
    Size,
    /// Octets that a program in the guest sent to the control socket; an empty body is the end.
    Request,
    /// Octets from the controller, towards the guest; an empty body closes the connection.
    Answer,
}

impl Kind {
    const ALL: [Self; 8] = [
        Self::Message,
        Self::Input,
        Self::Output,
        Self::Error,
        Self::Credit,
        Self::Size,
        Self::Request,
        Self::Answer,
    ];

    fn number(self) -> u8 {
        self as u8
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    fn longest(self) -> usize {
        if self == Self::Message { LONGEST_MESSAGE } else { WINDOW }
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Kind of the frame.
    pub kind: Kind,
    /// Number of the program or connection.
    pub program: u64,
    /// Content.
    pub body: Vec<u8>,
}

impl Frame {
    /// Returns the stream and the number of octets of a [`Kind::Credit`].
    #[must_use]
    pub fn credit(&self) -> Option<(Kind, usize)> {
        let (&stream, more) = self.body.split_first()?;
        let more = u32::from_le_bytes(more.try_into().ok()?);
        let stream = Kind::from_number(stream)?;
        Some((stream, usize::try_from(more).ok()?))
    }

    /// Returns rows and columns of a [`Kind::Size`].
    #[must_use]
    pub fn size(&self) -> Option<[u16; 2]> {
        let octets: [u8; 4] = self.body.as_slice().try_into().ok()?;
        let [a, b, c, d] = octets;
        Some([u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])])
    }
}

/// The body of a [`Kind::Credit`].
#[must_use]
pub fn credit(stream: Kind, octets: usize) -> [u8; 5] {
    let [a, b, c, d] = u32::try_from(octets).unwrap_or(u32::MAX).to_le_bytes();
    [stream.number(), a, b, c, d]
}

/// The body of a [`Kind::Size`].
#[must_use]
pub fn size([rows, columns]: [u16; 2]) -> [u8; 4] {
    let ([a, b], [c, d]) = (rows.to_le_bytes(), columns.to_le_bytes());
    [a, b, c, d]
}

/// Appends a frame to the buffer.
pub fn put(octets: &mut Vec<u8>, kind: Kind, program: u64, body: &[u8]) {
    octets.push(kind.number());
    octets.extend_from_slice(&program.to_le_bytes());
    octets.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    octets.extend_from_slice(body);
}

/// The received octets are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Unknown kind.
    #[error("a frame of the unknown kind {0}")]
    Kind(u8),
    /// The body exceeds the maximum of its kind.
    #[error("a frame of {0} octets")]
    Long(usize),
}

/// Decodes frames from a stream of octets.
#[derive(Debug, Default)]
pub struct Decoder {
    octets: Vec<u8>,
    /// Offset of the first undecoded octet.
    start: usize,
}

impl Decoder {
    /// Appends received octets.
    pub fn feed(&mut self, piece: &[u8]) {
        if self.start > 0 {
            self.octets.drain(..self.start);
            self.start = 0;
        }
        if self.octets.is_empty() {
            // Frees the memory of one long message.
            self.octets.shrink_to(WINDOW);
        }
        self.octets.extend_from_slice(piece);
    }

    /// Returns the next complete frame, if any. After an error the stream cannot be resynchronized.
    ///
    /// # Errors
    /// [`Broken`] if the next octets are not a valid frame.
    pub fn next(&mut self) -> Result<Option<Frame>, Broken> {
        let Some((head, rest)) = self.octets[self.start..].split_first_chunk::<HEAD>() else {
            return Ok(None);
        };
        let [number, program @ .., a, b, c, d] = *head;
        let kind = Kind::from_number(number).ok_or(Broken::Kind(number))?;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > kind.longest() {
            return Err(Broken::Long(length));
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = Frame { kind, program: u64::from_le_bytes(program), body: body.to_vec() };
        self.start += HEAD + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::{Broken, Decoder, Frame, Kind, WINDOW, credit, put, size};

    #[test]
    fn frames_survive_any_cut() {
        let bodies: [(Kind, u64, &[u8]); 4] = [
            (Kind::Message, 0, b"{}"),
            (Kind::Output, 7, &[0, 255, 17, 19, 10]),
            (Kind::Output, 7, b""),
            (Kind::Credit, u64::MAX, &credit(Kind::Input, 5)),
        ];
        let mut octets = Vec::new();
        for (kind, program, body) in bodies {
            put(&mut octets, kind, program, body);
        }
        for piece in 1..octets.len() {
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in octets.chunks(piece) {
                decoder.feed(part);
                while let Some(frame) = decoder.next().unwrap() {
                    found.push(frame);
                }
            }
            let wanted: Vec<Frame> = bodies
                .iter()
                .map(|&(kind, program, body)| Frame { kind, program, body: body.to_vec() })
                .collect();
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut decoder = Decoder::default();
        decoder.feed(&[9; 13]);
        assert_eq!(decoder.next(), Err(Broken::Kind(9)));
        let mut octets = Vec::new();
        put(&mut octets, Kind::Output, 1, &vec![0; WINDOW + 1]);
        let mut decoder = Decoder::default();
        decoder.feed(&octets[..20]);
        assert_eq!(decoder.next(), Err(Broken::Long(WINDOW + 1)));
    }

    #[test]
    fn credits_and_sizes_say_what_was_put_in() {
        let frame = |kind, body: &[u8]| Frame { kind, program: 1, body: body.to_vec() };
        assert_eq!(frame(Kind::Credit, &credit(Kind::Error, 300)).credit(), Some((Kind::Error, 300)));
        assert_eq!(frame(Kind::Credit, &[9, 1, 0, 0, 0]).credit(), None);
        assert_eq!(frame(Kind::Size, &size([24, 80])).size(), Some([24, 80]));
        assert_eq!(frame(Kind::Size, b"").size(), None);
    }
}
