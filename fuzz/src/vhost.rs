//! An untrusted guest of the vhost-user device: its messages, or all of its memory.
//!
//! Input: one octet of options; bits 5 and 6 choose the translation of addresses. If its lowest bit is set, messages follow: each a number, a length
//! and so many octets. Otherwise the memory follows, with the rings at its start, and the device
//! processes it.

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use airloom_engine::frame::{Frame, Pool};
use airloom_engine::settings::LinkSettings;
use airloom_engine::time::{Instant, Span};
use airloom_engine::{Delivery, Egress, End, Engine, PortId};
use airloom_ports::offloads::Offloads;
use airloom_ports::vhost::device::Device;
use airloom_ports::vhost::message::{HEADER, Header, QueuePlaces, RegionSpec, Request};
use airloom_ports::vhost::net::FEATURES;
use airloom_ports::vhost::{Coalescing, DeviceConfig, Handling, IoTlb, Translation};

const CARD: DeviceConfig =
    DeviceConfig { mac: [2, 0, 0, 0, 0, 1], mtu: 1500, offloads: Offloads { transmit: true, receive: true } };
/// Guest address of the memory, which has two adjacent regions.
const GUEST: u64 = 0x1000;
const OCTETS: u64 = 0x2000;
const SIZE: u16 = 8;
/// Offsets of the parts of the two queues: descriptors, available, used.
const RINGS: [[u64; 3]; 2] = [[0, 0x80, 0xa0], [0x100, 0x180, 0x1a0]];
/// Required features: without the first two the device sends and receives nothing; indirect tables
/// are always enabled.
const NEEDED: u64 = (1 << 30) | (1 << 32) | (1 << 28);

fn memory() -> File {
    // SAFETY: the name is a constant C string, and the descriptor has no other owner.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len(OCTETS).expect("there is memory");
    file
}

fn eventfd() -> OwnedFd {
    // SAFETY: no pointers are passed, and the descriptor has no other owner.
    unsafe { OwnedFd::from_raw_fd(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)) }
}

/// Delivers all frames to the device.
struct Towards<'a> {
    device: &'a mut Device<DeviceConfig>,
    scratch: Vec<u8>,
}

impl Egress for Towards<'_> {
    fn deliver(&mut self, _port: PortId, _at: Instant, frame: &Frame, pool: &Pool) -> Delivery {
        self.device.put(frame, pool, &mut self.scratch).unwrap_or(Delivery::NotUp)
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    if how & 1 == 1 { messages(*how, rest) } else { rings(*how, rest) }
}

/// The translation and coalescing that two bits choose.
fn handling(bits: u8) -> Handling {
    let translation = match bits & 3 {
        0 => Translation::Direct,
        1 => Translation::Bounce,
        2 => Translation::Strict,
        _ => Translation::Cached(IoTlb::new(4).expect("valid")),
    };
    let coalescing = Coalescing::Adaptive { frames: u16::from(bits & 3), time: Span::from_micros(1) };
    Handling { coalescing, translation, in_band: false }
}

fn messages(how: u8, mut data: &[u8]) {
    let mut device = Device::new(CARD, handling(how >> 5));
    let mut pool = Pool::default();
    while let Some((&[request, size], rest)) = data.split_first_chunk() {
        let (body, rest) = rest.split_at(rest.len().min(usize::from(size)));
        data = rest;
        let files = vec![OwnedFd::from(memory()), eventfd()];
        let files = files.into_iter().skip(usize::from(request >> 7)).take(1).collect();
        let Ok(asked) = Request::read(u32::from(request & 0x3f), body) else { continue };
        if device.serve(&asked, files).is_err() {
            device.reset();
        }
        if let Ok(Some((buffer, ..))) = device.take(&mut pool) {
            pool.release(buffer);
        }
        let _ = device.notify_guest(Instant::ZERO);
    }
    if let Some((head, _)) = data.split_first_chunk::<HEADER>() {
        let _ = Header::read(*head);
    }
}

/// The device with its queues in `file`.
fn device(file: &File, features: u64, handling: Handling) -> Device<DeviceConfig> {
    let mut device = Device::new(CARD, handling);
    let half = OCTETS / 2;
    let region = |at: u64| RegionSpec { guest: GUEST + at, octets: half, user: GUEST + at, offset: at };
    let files = [0, 1].map(|_| OwnedFd::from(file.try_clone().expect("a descriptor is to be had")));
    let mut serve = |request: Request, files: Vec<OwnedFd>| {
        device.serve(&request, files).expect("the beginning is in order");
    };
    serve(Request::SetFeatures(features), Vec::new());
    serve(Request::SetMemory(vec![region(0), region(half)]), files.into());
    for (queue, [descriptors, available, used]) in (0..).zip(RINGS.map(|parts| parts.map(|at| GUEST + at))) {
        serve(Request::SetQueueCall(queue, true), vec![eventfd()]);
        serve(Request::SetQueueSize(queue, u32::from(SIZE)), Vec::new());
        serve(Request::SetQueuePlaces(queue, QueuePlaces { descriptors, available, used }), Vec::new());
        serve(Request::SetQueueKick(queue, true), vec![eventfd()]);
        serve(Request::EnableQueue(queue, true), Vec::new());
    }
    assert!(device.is_up());
    device
}

fn rings(how: u8, data: &[u8]) {
    // Merged buffers, checksums, event index, segmentation.
    let choices = [(1, 1 << 15), (2, 0b11), (3, 1 << 29), (4, FEATURES & (0b111 << 7))];
    let chosen = choices.iter().filter(|(bit, _)| (how >> bit) & 1 == 1);
    let features = chosen.fold(NEEDED, |all, (_, feature)| all | feature);
    let file = memory();
    let mut device = device(&file, features, handling(how >> 5));
    let data = &data[..data.len().min(usize::try_from(OCTETS).expect("small"))];
    file.write_all_at(data, 0).expect("within the file");
    // The number of available buffers must be plausible: only the low octet is used.
    for [_, available, _] in RINGS {
        let offered = data.get(usize::try_from(available).expect("small") + 2).copied().unwrap_or(0);
        file.write_all_at(&[offered % 10, 0], available + 2).expect("within the file");
    }
    let mut engine = Engine::new(1);
    let a = engine.add_port("a", false).expect("new");
    let b = engine.add_port("b", false).expect("new");
    let plain = LinkSettings::default();
    engine.connect("a-b", End::Port(a), End::Port(b), &plain, &plain).expect("valid");
    for _ in 0..2 * SIZE {
        let Ok(Some((buffer, octets, meaning))) = device.take(engine.pool()) else { break };
        // Frames that the guest sends return to it.
        let frame = Frame::new(buffer, octets, meaning.segmentation, meaning.checksum);
        engine.offer(a, Instant::ZERO, frame);
    }
    for octets in [14, 60, 1514, 9000] {
        let buffer = engine.pool().take(octets);
        let octets = u32::try_from(octets).expect("small");
        engine.offer(a, Instant::ZERO, Frame::new(buffer, octets, None, None));
    }
    let scratch = vec![0; airloom_engine::frame::CLASSES[2]];
    engine.advance(Instant::NEVER, &mut Towards { device: &mut device, scratch });
    let _ = device.catch_up();
    let _ = device.listen();
    let _ = device.notify_guest(Instant::ZERO);
    let _ = device.notify_guest(device.reminder().unwrap_or(Instant::ZERO));
    assert_eq!(engine.ledger().in_flight().frames, 0);
    assert_eq!(engine.pool().in_use(), 0);
}
