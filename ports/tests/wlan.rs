//! Wireless devices over real memory, sockets and notifiers, with guests that the test emulates: they
//! write the messages of the kernel's driver.

mod guest;

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::phy::tables::A;
use airloom_engine::medium::{MediumSettings, Membership, RadioSettings};
use airloom_ports::runtime::driver::Driver;
use airloom_ports::wlan::WlanDevice;
use airloom_ports::world::World;
use guest::{BUFFERS, GUEST, Guest, WRITE, until};

/// Numbers of the queues on which the guest sends and receives.
const SENDS: usize = 0;
const RECEIVES: usize = 1;
const RADIO: [u8; 6] = [0x42, 0, 0, 0, 0, 0];
/// Octets of a receive buffer, and where those begin in the memory.
const BUFFER: u32 = 2048;
const INBOX: u64 = BUFFERS + 0x10_0000;

fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len() + 4).expect("short");
    let mut octets = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
    octets.extend(value);
    octets.resize(octets.len().next_multiple_of(4), 0);
    octets
}

fn message(command: u8, attributes: &[Vec<u8>]) -> Vec<u8> {
    let body = attributes.concat();
    let mut octets = u32::try_from(20 + body.len()).expect("short").to_ne_bytes().to_vec();
    octets.resize(16, 0);
    octets.extend([command, 1, 0, 0]);
    octets.extend(body);
    octets
}

/// A data frame of an independent cell.
fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    let cell = [2, 0xca, 0xff, 0xee, 0xba, 0xbe];
    [&[0x08, 0, 0, 0][..], &to, &from, &cell, &[0, 0], &[7; 60]].concat()
}

/// A guest whose messages `airloom-init` passes on.
struct StreamGuest {
    device: WlanDevice,
    stream: UnixStream,
}

impl StreamGuest {
    /// The next message: its command and its octets.
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut octets = vec![0; 4];
        self.stream.read_exact(&mut octets).expect("a message");
        let length = u32::from_ne_bytes(octets[..].try_into().expect("four octets")) as usize;
        octets.resize(length, 0);
        self.stream.read_exact(&mut octets[4..]).expect("the rest of a message");
        (octets[16], octets)
    }
}

struct Station {
    device: WlanDevice,
    guest: Guest,
    mac: [u8; 6],
}

impl Station {
    fn send(&mut self, message: &[u8]) {
        self.guest.write(BUFFERS, message);
        let length = u32::try_from(message.len()).expect("short");
        self.guest.describe(SENDS, 0, (GUEST + BUFFERS, length, 0, 0));
        self.guest.offer(SENDS, 0);
        self.guest.kick(SENDS);
        until(|| !self.guest.used(SENDS).is_empty());
    }

    /// Offers buffers, each once.
    fn provide(&mut self) {
        for number in 0..16u16 {
            let at = GUEST + INBOX + u64::from(number) * u64::from(BUFFER);
            self.guest.describe(RECEIVES, number, (at, BUFFER, WRITE, 0));
            self.guest.offer(RECEIVES, number);
        }
        self.guest.kick(RECEIVES);
    }

    /// The next message: its command and its octets.
    fn receive(&mut self) -> (u8, Vec<u8>) {
        let mut come = Vec::new();
        until(|| {
            come.extend(self.guest.used(RECEIVES));
            !come.is_empty()
        });
        assert_eq!(come.len(), 1);
        let (head, octets) = come[0];
        let octets = self.guest.read(INBOX + u64::from(head) * u64::from(BUFFER), octets as usize);
        (octets[16], octets)
    }
}

type Serve = fn(std::os::fd::OwnedFd) -> Result<WlanDevice, airloom_ports::error::Error>;

fn serve_virtio(listener: std::os::fd::OwnedFd) -> Result<WlanDevice, airloom_ports::error::Error> {
    WlanDevice::serve(listener, airloom_ports::vhost::Handling::default())
}

/// The devices of two guests with one radio each, with the paths of their sockets and their
/// addresses.
fn devices(
    folder: &std::path::Path,
    serve: [Serve; 2],
) -> (Driver, [(WlanDevice, std::path::PathBuf, [u8; 6]); 2]) {
    let mut world = World::new(1);
    world.add_medium("air", &MediumSettings::default()).expect("valid");
    let devices = [1u8, 2].map(|number| {
        let (name, path) = (format!("n{number}"), folder.join(number.to_string()));
        let listener = UnixListener::bind(&path).expect("a socket");
        let device = serve[usize::from(number) - 1](listener.into()).expect("it listens");
        world.add(&name, false, Box::new(device.port(0, &A).expect("few"))).expect("new");
        let mac = [2, 0, 0, 0, 0, number];
        let settings = RadioSettings { mac, membership: Membership::Wlan, ..RadioSettings::default() };
        let place = Static(Position { x: f64::from(number), y: 0.0, z: 0.0 });
        world.add_radio("air", &name, settings, Box::new(place)).expect("valid");
        (device, path, mac)
    });
    (Driver::start(world).expect("the loop starts"), devices)
}

fn station((device, path, mac): (WlanDevice, std::path::PathBuf, [u8; 6])) -> Station {
    let mut station = Station { device, guest: Guest::up(&path, 0, 16), mac };
    station.provide();
    station.send(&message(7, &[attribute(2, &RADIO), attribute(1, &mac)]));
    station
}

fn stations(folder: &std::path::Path) -> (Driver, [Station; 2]) {
    let (driver, devices) = devices(folder, [serve_virtio; 2]);
    (driver, devices.map(station))
}

/// A guest with a virtio device, and one whose messages are passed on.
fn mixed(folder: &std::path::Path) -> (Driver, Station, StreamGuest, [u8; 6]) {
    let (driver, [near, (device, path, mac)]) = devices(folder, [serve_virtio, WlanDevice::serve_stream]);
    let near = station(near);
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a socket");
    stream.write_all(&message(7, &[attribute(2, &RADIO), attribute(1, &mac)])).expect("connected");
    (driver, near, StreamGuest { device, stream }, mac)
}

fn transmission(frame: &[u8], cookie: u64) -> Vec<u8> {
    message(
        2,
        &[
            attribute(2, &RADIO),
            attribute(3, frame),
            attribute(4, &1u32.to_ne_bytes()),
            attribute(19, &5180u32.to_ne_bytes()),
            attribute(7, &[7, 4, 0, 2, 255, 0, 255, 0]),
            attribute(21, &[0; 12]),
            attribute(8, &cookie.to_ne_bytes()),
        ],
    )
}

#[test]
fn a_frame_reaches_the_other_guest_and_its_status_the_sender() {
    let folder = tempfile();
    let (_driver, [mut near, mut far]) = stations(&folder.0);
    let sent = frame(far.mac, near.mac);
    near.send(&transmission(&sent, 9));
    let (command, octets) = far.receive();
    assert_eq!(command, 2);
    assert_eq!(&octets[60..60 + sent.len()], sent, "the frame");
    assert_eq!(octets[36..40], 7u32.to_ne_bytes(), "received at 54 Mbit/s");
    let (command, octets) = near.receive();
    assert_eq!(command, 3);
    assert_eq!(octets[36..40], 5u32.to_ne_bytes(), "acknowledged");
    assert_eq!(octets[52..60], [7, 1, 255, 0, 255, 0, 255, 0], "one transmission at 54 Mbit/s");
    assert_eq!(octets[64..72], 9u64.to_ne_bytes(), "its cookie");
}

#[test]
fn a_message_that_is_none_harms_only_its_guest() {
    let folder = tempfile();
    let (_driver, [mut near, mut far]) = stations(&folder.0);
    far.guest.write(BUFFERS, &message(2, &[attribute(2, &RADIO), attribute(3, &[0; 9])]));
    far.guest.describe(SENDS, 0, (GUEST + BUFFERS, 200, 0, 0));
    far.guest.offer(SENDS, 0);
    far.guest.kick(SENDS);
    until(|| far.device.transport().disconnect_reason().is_some());
    let reason = far.device.transport().disconnect_reason().map(ToString::to_string);
    let wanted = "a message of the guest's wireless driver: its frame of 9 octets is no 802.11 frame";
    assert_eq!(reason.as_deref(), Some(wanted));
    // Its radio acknowledges nothing any more, and the other guest learns that.
    let sent = frame(far.mac, near.mac);
    near.send(&transmission(&sent, 5));
    let (command, octets) = near.receive();
    assert_eq!(command, 3);
    assert_eq!(octets[36..40], 1u32.to_ne_bytes(), "not acknowledged");
    assert_eq!(octets[52..60], [7, 4, 0, 2, 255, 0, 255, 0], "the whole chain was used");
}

#[test]
fn both_transports_carry_the_same_messages() {
    let folder = tempfile();
    let (_driver, mut near, mut far, mac) = mixed(&folder.0);
    // In one piece with a request of another kind, and cut in the middle.
    let sent = frame(near.mac, mac);
    let octets = [message(9, &[]), transmission(&sent, 4)].concat();
    far.stream.write_all(&octets[..50]).expect("connected");
    std::thread::sleep(std::time::Duration::from_millis(5));
    far.stream.write_all(&octets[50..]).expect("connected");
    let (command, octets) = near.receive();
    assert_eq!(command, 2);
    assert_eq!(&octets[60..60 + sent.len()], sent, "the frame");
    let (command, octets) = far.receive();
    assert_eq!((command, octets.len()), (3, 72));
    assert_eq!(octets[36..40], 5u32.to_ne_bytes(), "acknowledged");
    assert_eq!(octets[64..72], 4u64.to_ne_bytes(), "its cookie");
    // The other way.
    let sent = frame(mac, near.mac);
    near.send(&transmission(&sent, 9));
    let (command, octets) = far.receive();
    assert_eq!(command, 2);
    assert_eq!(&octets[60..60 + sent.len()], sent, "the frame");
}

#[test]
fn a_stream_without_messages_ends_and_the_next_guest_connects() {
    let folder = tempfile();
    let (_driver, mut near, mut far, mac) = mixed(&folder.0);
    far.stream.write_all(&5000u32.to_ne_bytes()).expect("connected");
    until(|| far.device.transport().disconnect_reason().is_some());
    let reason = far.device.transport().disconnect_reason().map(ToString::to_string);
    let wanted =
        "a message of the guest's wireless driver: its length of 5000 octets is not that of its content";
    assert_eq!(reason.as_deref(), Some(wanted));
    assert_eq!(far.stream.read(&mut [0; 1]).expect("closed"), 0);
    assert!(far.device.transport().is_gone());
    far.stream = UnixStream::connect(folder.0.join("2")).expect("it listens again");
    far.stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("a socket");
    far.stream.write_all(&message(7, &[attribute(2, &RADIO), attribute(1, &mac)])).expect("connected");
    until(|| !far.device.transport().is_gone());
    far.stream.write_all(&transmission(&frame(near.mac, mac), 1)).expect("connected");
    assert_eq!(near.receive().0, 2);
    assert_eq!(far.receive().0, 3);
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn tempfile() -> Folder {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("airloom-wlan-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new folder");
    Folder(folder)
}
