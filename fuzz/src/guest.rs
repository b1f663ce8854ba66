//! An untrusted guest on its channel: any octets, in pieces of any size.
//!
//! Octets accepted as frames must encode to the same octets again; invalid frames must be refused
//! at once and permanently.
//!
//! Input: one octet for the size of the pieces, the rest is sent by the guest.

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

/// The decoded fields of a frame encode to its body.
fn mirror(found: &Frame) {
    if let (Kind::Credit, Some((stream, more))) = (found.kind, found.credit()) {
        assert_eq!(frame::credit(stream, more)[..], found.body[..]);
    }
    if let (Kind::Size, Some(size)) = (found.kind, found.size()) {
        assert_eq!(frame::size(size)[..], found.body[..]);
    }
    assert!(found.kind == Kind::Message || found.body.len() <= frame::WINDOW);
}
