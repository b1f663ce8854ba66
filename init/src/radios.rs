//! The radios of this guest's kernel: passes the messages of `mac80211_hwsim` between generic
//! netlink and a character device, behind which the engine is. It changes nothing in them; on the
//! device each message begins with its own length.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::thread;

use airloom_netns::hwsim::Radios;

use crate::system;

/// Length in octets of the longest message, as on the kernel's virtio transport (a page).
const LONGEST: usize = 4096;
/// Octets of the length of a message.
const LENGTH: usize = 4;
/// Octets of the headers of a message, the shortest one.
const SHORTEST: usize = 20;

/// Creates the radios and starts a thread that passes on their messages until the device is closed.
/// The radios end with it, because without the engine the kernel would connect them itself.
///
/// # Errors
/// The reason in words.
pub fn start(count: u8, device: File) -> Result<(), String> {
    let radios = Radios::create(count)?;
    let act = move || {
        if let Err(error) = pass_on(&radios, &device) {
            eprintln!("airloom-init: the medium of the radios: {error}");
        }
    };
    let started = thread::Builder::new().name("radios".to_owned()).spawn(act);
    started.map(drop).map_err(|error| format!("the medium of the radios: {error}"))
}

fn pass_on(radios: &Radios, mut device: &File) -> io::Result<()> {
    let mut buffer = [0; LONGEST];
    let mut entries = [system::to_read(radios.as_raw_fd()), system::to_read(device.as_raw_fd())];
    loop {
        system::poll(&mut entries, None)?;
        if entries[0].revents != 0
            && let Some(octets) = radios.receive(&mut buffer)?
        {
            device.write_all(&buffer[..octets])?;
        }
        if entries[1].revents & libc::POLLIN != 0 {
            let Some(message) = next(&mut device, &mut buffer)? else { return Ok(()) };
            radios.send(message)?;
        } else if entries[1].revents != 0 {
            return Ok(());
        }
    }
}

/// Reads the next message from a stream; None at its end.
fn next<'a>(from: &mut impl Read, buffer: &'a mut [u8; LONGEST]) -> io::Result<Option<&'a mut [u8]>> {
    let (length, rest) = buffer.split_first_chunk_mut::<LENGTH>().expect("a page");
    match from.read_exact(length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let octets = usize::try_from(u32::from_ne_bytes(*length)).unwrap_or(usize::MAX);
    if !(SHORTEST..=LONGEST).contains(&octets) {
        return Err(io::Error::other(format!("a message of {octets} octets")));
    }
    from.read_exact(&mut rest[..octets - LENGTH])?;
    Ok(Some(&mut buffer[..octets]))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, next};
    use std::io::{Chain, Read};

    fn message(octets: u32) -> Vec<u8> {
        let mut message = vec![7; octets as usize];
        message[..4].copy_from_slice(&octets.to_ne_bytes());
        message
    }

    /// A stream whose reads end at every octet of `cut`.
    fn in_pieces(octets: &[u8], cut: usize) -> Chain<&[u8], &[u8]> {
        octets[..cut].chain(&octets[cut..])
    }

    #[test]
    fn messages_are_separated_wherever_the_reads_end() {
        let octets = [message(20), message(4096), message(23)].concat();
        for cut in [0, 1, 4, 19, 20, 22, 1000, 4116, 4118, octets.len()] {
            let (mut stream, mut buffer) = (in_pieces(&octets, cut), [0; LONGEST]);
            for octets in [20, 4096, 23] {
                assert_eq!(next(&mut stream, &mut buffer).unwrap(), Some(&mut message(octets)[..]));
            }
            assert!(next(&mut stream, &mut buffer).unwrap().is_none());
        }
    }

    #[test]
    fn an_impossible_length_ends_the_stream() {
        let mut buffer = [0; LONGEST];
        for octets in [0_u32, 19, 4097, u32::MAX] {
            let stream = octets.to_ne_bytes();
            let error = next(&mut &stream[..], &mut buffer).unwrap_err();
            assert_eq!(error.to_string(), format!("a message of {octets} octets"));
        }
        assert!(next(&mut &message(30)[..29], &mut buffer).is_err(), "cut");
    }
}
