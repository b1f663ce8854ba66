//! A guest that lies on its channel: any octets, in any pieces. What is taken for frames must say the
//! same octets again, and what is no frame must be refused at once and for good.
//!
//! Input: one octet that says how long the pieces are, the rest is what the guest sends.

#[path = "../../init/src/frame.rs"]
mod frame;

use frame::{Decoder, Frame, Kind};

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((piece, octets)) = data.split_first() else { return };
    let mut decoder = Decoder::default();
    let mut again = Vec::new();
    for part in octets.chunks(usize::from(*piece).max(1)) {
        decoder.feed(part);
        loop {
            match decoder.next() {
                Ok(Some(found)) => {
                    mirror(&found);
                    frame::put(&mut again, found.kind, found.program, &found.body);
                }
                Ok(None) => break,
                Err(broken) => {
                    assert_eq!(decoder.next(), Err(broken));
                    assert!(octets.starts_with(&again));
                    return;
                }
            }
        }
    }
    assert!(octets.starts_with(&again));
}

/// What a frame says of itself is what was put into it.
fn mirror(found: &Frame) {
    if let (Kind::Credit, Some((stream, more))) = (found.kind, found.credit()) {
        assert_eq!(frame::credit(stream, more)[..], found.body[..]);
    }
    if let (Kind::Size, Some(size)) = (found.kind, found.size()) {
        assert_eq!(frame::size(size)[..], found.body[..]);
    }
    assert!(found.kind == Kind::Message || found.body.len() <= frame::WINDOW);
}
