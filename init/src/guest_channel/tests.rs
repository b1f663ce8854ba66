//! Transfer over a channel, and behaviour with a machine that does not read it.

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use super::{Arrived, GuestChannel};
use crate::frame::{Kind, WINDOW};
use crate::system;

fn pair() -> (GuestChannel, GuestChannel) {
    let (near, far) = UnixStream::pair().unwrap();
    let far = OwnedFd::from(far);
    let host = GuestChannel::to_host(far.try_clone().unwrap(), far).unwrap();
    (GuestChannel::to_machine(OwnedFd::from(near)).unwrap(), host)
}

/// Runs both ends until neither has anything left to do.
fn settle(ends: [&mut GuestChannel; 2]) -> Vec<Arrived> {
    let [a, b] = ends;
    let mut arrived = Vec::new();
    loop {
        let mut idle = true;
        for channel in [&mut *a, &mut *b] {
            let mut entries = channel.interests();
            system::poll(&mut entries, Some(std::time::Duration::ZERO)).unwrap();
            idle &= entries.iter().all(|entry| entry.revents == 0);
            assert!(channel.serve(&entries).unwrap());
            arrived.extend(std::iter::from_fn(|| channel.next().unwrap()));
        }
        if idle {
            return arrived;
        }
    }
}

/// Waits as the node init does, until no wake-up frame is due any more.
fn wait_out(channel: &mut GuestChannel) {
    while let Some(left) = channel.left() {
        let mut entries = channel.interests();
        system::poll(&mut entries, Some(left)).unwrap();
        assert!(channel.serve(&entries).unwrap());
    }
}

#[test]
fn a_machine_that_does_not_read_is_told_again_until_it_does() {
    for waiting in [0, 4 * super::LINE] {
        let (mut host, mut guest) = pair();
        let (mut program, input) = UnixStream::pair().unwrap();
        let (log, mut reader) = UnixStream::pair().unwrap();
        assert!(host.left().is_none());
        host.source(Kind::Input, 5, input.into());
        guest.sink(Kind::Input, 5, log.into());
        host.send(&serde_json::json!({"a": "message"})).unwrap();
        program.write_all(&vec![7; waiting]).unwrap();
        assert!(host.left().is_some());
        let told = |guest: &GuestChannel| {
            let mut octets: libc::c_int = 0;
            // SAFETY: the kernel writes one integer.
            unsafe { libc::ioctl(guest.from.as_raw_fd(), libc::FIONREAD, &raw mut octets) };
            usize::try_from(octets).unwrap()
        };
        let mut entries = host.interests();
        system::poll(&mut entries, Some(std::time::Duration::ZERO)).unwrap();
        assert!(host.serve(&entries).unwrap());
        let first = told(&guest);
        wait_out(&mut host);
        // Nine wake-up frames, and never more than its window.
        assert_eq!(told(&guest), first + 9 * 13);
        assert!(told(&guest) <= super::LINE);
        // Wake-up frames are not part of the content.
        assert!(matches!(settle([&mut host, &mut guest])[..], [Arrived::Message(_)]));
        let mut got = vec![0; waiting];
        reader.read_exact(&mut got).unwrap();
        assert_eq!(got, vec![7; waiting]);
        assert!(host.left().is_none());
        assert_eq!(host.window, Some(super::LINE));
    }
}

#[test]
fn a_stream_goes_over_and_ends() {
    let (mut host, mut guest) = pair();
    let (mut program, output) = UnixStream::pair().unwrap();
    let (log, mut reader) = UnixStream::pair().unwrap();
    guest.source(Kind::Output, 3, output.into());
    host.sink(Kind::Output, 3, log.into());
    program.write_all(b"hello\n").unwrap();
    settle([&mut host, &mut guest]);
    drop(program);
    settle([&mut host, &mut guest]);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "hello\n");
}

#[test]
fn a_program_that_nobody_reads_waits_and_others_do_not() {
    let (mut host, mut guest) = pair();
    let (program, output) = UnixStream::pair().unwrap();
    let (log, _reader) = UnixStream::pair().unwrap();
    program.set_nonblocking(true).unwrap();
    guest.source(Kind::Output, 1, output.into());
    host.sink(Kind::Output, 1, log.into());
    let mut total = 0;
    while total < 64 * WINDOW {
        match (&program).write(&[7; 4096]) {
            Ok(written) => total += written,
            Err(_) => {
                let before = total;
                settle([&mut host, &mut guest]);
                total += (&program).write(&[7; 4096]).unwrap_or(0);
                if total == before {
                    break;
                }
            }
        }
    }
    assert!(total < 64 * WINDOW, "what nobody reads was taken");
    guest.send(&serde_json::json!({"still": "here"})).unwrap();
    assert!(matches!(settle([&mut host, &mut guest])[..], [Arrived::Message(_)]));
}

#[test]
fn a_connection_ends_with_its_answer_and_a_client_that_disconnects_is_noticed() {
    let (mut host, mut guest) = pair();
    let connect = |channel: &mut GuestChannel, id, reader, writer| {
        let (near, far) = UnixStream::pair().unwrap();
        channel.connect(id, (reader, far.try_clone().unwrap().into()), (writer, far.into()));
        near
    };
    for goes in [false, true] {
        let mut client = connect(&mut guest, 9, Kind::Request, Kind::Answer);
        let mut controller = connect(&mut host, 9, Kind::Answer, Kind::Request);
        assert_eq!((host.connections(), guest.connections()), (1, 1));
        client.write_all(b"who?\n").unwrap();
        let gone = goes.then(|| client.shutdown(std::net::Shutdown::Write).unwrap());
        settle([&mut host, &mut guest]);
        let mut said = vec![0; 5];
        controller.read_exact(&mut said).unwrap();
        assert_eq!(said, b"who?\n");
        if gone.is_some() {
            assert_eq!(controller.read(&mut said).unwrap(), 0);
        }
        controller.write_all(b"you\n").unwrap();
        drop(controller);
        settle([&mut host, &mut guest]);
        let mut told = String::new();
        client.read_to_string(&mut told).unwrap();
        assert_eq!(told, "you\n");
        assert_eq!((host.connections(), guest.connections()), (0, 0));
        assert!(host.sources.is_empty() && guest.sources.is_empty() && host.sinks.is_empty());
    }
}

#[test]
fn what_is_said_of_a_stream_comes_before_its_octets() {
    let (mut host, mut guest) = pair();
    let (mut client, far) = UnixStream::pair().unwrap();
    let (near, mut controller) = UnixStream::pair().unwrap();
    client.write_all(b"who?").unwrap();
    guest.send(&serde_json::json!({"a": "client"})).unwrap();
    guest.connect(9, (Kind::Request, far.try_clone().unwrap().into()), (Kind::Answer, far.into()));
    let mut entries = guest.interests();
    system::poll(&mut entries, None).unwrap();
    guest.serve(&entries).unwrap();
    // Both have arrived by now.
    let mut entries = host.interests();
    system::poll(&mut entries, None).unwrap();
    assert!(host.serve(&entries).unwrap());
    assert!(matches!(host.next().unwrap(), Some(Arrived::Message(_))));
    host.connect(9, (Kind::Answer, near.try_clone().unwrap().into()), (Kind::Request, near.into()));
    assert!(host.next().unwrap().is_none());
    settle([&mut host, &mut guest]);
    let mut said = [0; 4];
    controller.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"who?");
}

#[test]
fn a_refused_client_reads_the_end_of_the_stream() {
    let (mut host, mut guest) = pair();
    let (mut client, far) = UnixStream::pair().unwrap();
    guest.connect(9, (Kind::Request, far.try_clone().unwrap().into()), (Kind::Answer, far.into()));
    host.refuse(9).unwrap();
    client.write_all(b"not read").unwrap();
    settle([&mut host, &mut guest]);
    assert_eq!(guest.connections(), 0);
    assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
}

#[test]
fn a_closed_reader_lets_the_program_go_on() {
    let (mut host, mut guest) = pair();
    let (mut program, output) = UnixStream::pair().unwrap();
    let (log, reader) = UnixStream::pair().unwrap();
    drop(reader);
    guest.source(Kind::Output, 1, output.into());
    host.sink(Kind::Output, 1, log.into());
    for _ in 0..40 {
        program.write_all(&[1; 4096]).unwrap();
        settle([&mut host, &mut guest]);
    }
    assert!(host.is_flushed(1));
}
