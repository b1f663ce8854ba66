//! A guest without a kernel: the front end of a vhost-user device, which shares a file of memory
//! with the engine and keeps real virtqueues in it, valid or invalid as the test requires.
#![allow(dead_code)] // every test takes what it needs

mod bench;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use airloom_ports::offloads::Offloads;
use airloom_ports::vhost::DeviceConfig;
#[allow(unused_imports)] // as above
pub use bench::Bench;

/// Addresses of the memory in the guest and its front end, its offset in the file,
/// and its length in octets.
pub const GUEST: u64 = 0x10_0000;
pub const USER: u64 = 0x7000_0000;
pub const OFFSET: u64 = 0x3000;
pub const OCTETS: u64 = 0x80_0000;
/// Buffers begin here in the memory, the rings before them.
pub const BUFFERS: u64 = 0x2_0000;
/// Length in octets of each receive buffer that the fake driver offers.
pub const BUFFER: u32 = 2048;

pub const RECEIVE: usize = 0;
pub const SEND: usize = 1;
pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;
pub const INDIRECT: u16 = 4;

pub const MERGE: u64 = 1 << 15;
pub const EVENT_IDX: u64 = 1 << 29;
pub const OFFLOADS: u64 = 0b11_1011_1000_0011;
/// The entry at which the rings begin.
pub const BASE: u16 = u16::MAX - 20;
/// Features of every guest: protocol features, virtio 1.
pub const BASIC: u64 = 1 << 30 | 1 << 32;

/// Device configuration of every fake guest.
pub const CARD: DeviceConfig =
    DeviceConfig { mac: [2, 0, 0, 0, 0, 7], mtu: 1500, offloads: Offloads { transmit: true, receive: true } };

/// A descriptor: guest address, length in octets, flags, next.
pub type Descriptor = (u64, u32, u16, u16);

/// One queue in the shared memory.
pub struct Ring {
    pub size: u16,
    /// Offsets of its three parts in the memory.
    pub at: [u64; 3],
    pub available: u16,
    pub used: u16,
    next: u16,
}

/// The guest.
pub struct Guest {
    pub memory: File,
    pub socket: UnixStream,
    pub rings: [Ring; 2],
    pub kicks: [File; 2],
    /// The guest's end of the device's call notifiers: socket pairs, as with User Mode Linux.
    pub calls: [UnixStream; 2],
    device_calls: Vec<OwnedFd>,
    pub features: u64,
}

pub fn eventfd() -> File {
    // SAFETY: no pointers are passed, and the descriptor has no other owner.
    unsafe { File::from_raw_fd(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC)) }
}

pub fn memory(octets: u64) -> File {
    // SAFETY: the name is a constant C string, and the descriptor has no other owner.
    let file = unsafe { File::from_raw_fd(libc::memfd_create(c"guest".as_ptr(), libc::MFD_CLOEXEC)) };
    file.set_len(octets).expect("there is memory");
    file
}

/// Sends a message with its descriptors.
pub fn send(socket: &UnixStream, octets: &[u8], files: &[RawFd]) {
    let mut piece = libc::iovec { iov_base: octets.as_ptr().cast_mut().cast(), iov_len: octets.len() };
    let mut control = [0u64; 16];
    // SAFETY: the message refers to memory that outlives the call, and the control buffer has the
    // room.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        if !files.is_empty() {
            let length = u32::try_from(size_of_val(files)).expect("few");
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(length) as usize;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(length) as usize;
            let data: *mut RawFd = libc::CMSG_DATA(header).cast();
            for (at, file) in files.iter().enumerate() {
                data.add(at).write_unaligned(*file);
            }
        }
        let sent = libc::sendmsg(socket.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL);
        assert_eq!(usize::try_from(sent), Ok(octets.len()), "{}", std::io::Error::last_os_error());
    }
}

/// Encodes a message.
pub fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    let size = u32::try_from(body.len()).expect("short");
    [request, flags, size].iter().flat_map(|word| word.to_ne_bytes()).chain(body.iter().copied()).collect()
}

pub fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

pub fn doubles(doubles: &[u64]) -> Vec<u8> {
    doubles.iter().flat_map(|double| double.to_ne_bytes()).collect()
}

impl Guest {
    /// Connects a guest that has negotiated the basics, with queues of `size` entries.
    pub fn hello(path: &std::path::Path, features: u64, size: u16) -> Self {
        let socket = UnixStream::connect(path).expect("the engine listens");
        socket.set_read_timeout(Some(Duration::from_secs(20))).expect("not zero");
        let pairs = [0, 1].map(|_| UnixStream::pair().expect("sockets"));
        let mut device_calls = Vec::new();
        let calls = pairs.map(|(near, far)| {
            near.set_nonblocking(true).expect("a socket");
            device_calls.push(OwnedFd::from(far));
            near
        });
        let ring =
            |at: u64| Ring { size, at: [at, at + 0x8000, at + 0xc000], available: 0, used: 0, next: 0 };
        let guest = Self {
            memory: memory(OFFSET + OCTETS),
            socket,
            rings: [ring(0), ring(0x1_0000)],
            kicks: [eventfd(), eventfd()],
            calls,
            device_calls,
            features: features | BASIC,
        };
        guest.tell(3, &[], &[]);
        let offered = guest.double(1);
        assert_eq!(guest.features & !offered, 0, "all of it is offered");
        assert_ne!(guest.double(15) & 1 << 3, 0, "answers are offered");
        guest.tell(16, &doubles(&[1 << 3 | 1 << 9]), &[]);
        guest.ack(2, &doubles(&[guest.features]), &[]);
        guest
    }

    /// Connects a guest whose driver is up. The 16-bit indices of its rings are about to wrap
    /// around.
    pub fn up(path: &std::path::Path, features: u64, size: u16) -> Self {
        let mut guest = Self::hello(path, features, size);
        for queue in [RECEIVE, SEND] {
            let [_, available, used] = guest.rings[queue].at;
            guest.write(available + 2, &BASE.to_le_bytes());
            guest.write(used + 2, &BASE.to_le_bytes());
            // Requests notifications of everything.
            guest.wish(queue, BASE);
            guest.write(used + 4 + 8 * u64::from(size), &BASE.to_le_bytes());
            (guest.rings[queue].available, guest.rings[queue].used) = (BASE, BASE);
        }
        guest.share();
        guest.begin();
        guest
    }

    /// Shares the memory.
    pub fn share(&self) {
        let region = [words(&[1, 0]), doubles(&[GUEST, OCTETS, USER, OFFSET])].concat();
        self.ack(5, &region, &[self.memory.as_raw_fd()]);
    }

    /// Starts both queues.
    pub fn begin(&self) {
        for (number, ring) in (0u32..).zip(&self.rings) {
            let index = usize::try_from(number).expect("two");
            self.ack(13, &doubles(&[u64::from(number)]), &[self.device_calls[index].as_raw_fd()]);
            self.ack(8, &words(&[number, u32::from(ring.size)]), &[]);
            self.ack(10, &words(&[number, u32::from(ring.available)]), &[]);
            let [descriptors, available, used] = ring.at.map(|at| USER + at);
            let places = [words(&[number, 0]), doubles(&[descriptors, used, available, 0])].concat();
            self.ack(9, &places, &[]);
        }
        for number in 0..2u32 {
            let kick = self.kicks[number as usize].as_raw_fd();
            self.ack(12, &doubles(&[u64::from(number)]), &[kick]);
            self.ack(18, &words(&[number, 1]), &[]);
        }
    }

    /// Sends a request without an answer.
    pub fn tell(&self, request: u32, body: &[u8], files: &[RawFd]) {
        send(&self.socket, &message(request, 1, body), files);
    }

    /// Sends a request and checks its acknowledgement.
    pub fn ack(&self, request: u32, body: &[u8], files: &[RawFd]) {
        send(&self.socket, &message(request, 9, body), files);
        assert_eq!(self.answer(request), 0u64.to_ne_bytes(), "request {request} is done");
    }

    /// Sends a request and returns the answer.
    pub fn ask(&self, request: u32, body: &[u8]) -> Vec<u8> {
        self.tell(request, body, &[]);
        self.answer(request)
    }

    fn double(&self, request: u32) -> u64 {
        u64::from_ne_bytes(self.ask(request, &[]).try_into().expect("eight octets"))
    }

    fn answer(&self, request: u32) -> Vec<u8> {
        let mut head = [0; 12];
        (&self.socket).read_exact(&mut head).expect("an answer comes");
        let word = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four"));
        assert_eq!((word(0), word(4)), (request, 5));
        let mut body = vec![0; word(8) as usize];
        (&self.socket).read_exact(&mut body).expect("the rest comes");
        body
    }

    /// True once the engine has closed the connection.
    pub fn is_parted(&self) -> bool {
        matches!((&self.socket).read(&mut [0]), Ok(0) | Err(_))
    }

    /// Writes to the memory; `at` is an offset.
    pub fn write(&self, at: u64, octets: &[u8]) {
        self.memory.write_all_at(octets, OFFSET + at).expect("within the file");
    }

    /// Reads from the memory.
    pub fn read(&self, at: u64, octets: usize) -> Vec<u8> {
        let mut found = vec![0; octets];
        self.memory.read_exact_at(&mut found, OFFSET + at).expect("within the file");
        found
    }

    fn word(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.read(at, 2).try_into().expect("two"))
    }

    /// Writes one descriptor of a queue.
    pub fn describe(&self, queue: usize, number: u16, descriptor: Descriptor) {
        let at = self.rings[queue].at[0] + 16 * u64::from(number);
        self.write(at, &encode(descriptor));
    }

    /// Offers the chain that begins at descriptor `head`. Returns true if the
    /// device requests a notification.
    pub fn offer(&mut self, queue: usize, head: u16) -> bool {
        let Ring { size, at, available, .. } = self.rings[queue];
        self.write(at[1] + 4 + 2 * u64::from(available % size), &head.to_le_bytes());
        let next = available.wrapping_add(1);
        self.write(at[1] + 2, &next.to_le_bytes());
        self.rings[queue].available = next;
        if self.features & EVENT_IDX != 0 {
            self.word(at[2] + 4 + 8 * u64::from(size)) == available
        } else {
            self.word(at[2]) & 1 == 0
        }
    }

    pub fn kick(&self, queue: usize) {
        (&self.kicks[queue]).write_all(&1u64.to_ne_bytes()).expect("an eventfd");
    }

    /// Sends a frame with its header, split into `cuts` descriptors; kicks if the device requests
    /// it.
    pub fn send(&mut self, header: [u8; 12], frame: &[u8], cuts: u16) {
        let queue = SEND;
        let octets = [&header, frame].concat();
        let size = self.rings[queue].size;
        let (head, buffer) = self.slot(queue, cuts);
        self.write(buffer, &octets);
        let step = octets.len().div_ceil(usize::from(cuts));
        for cut in 0..cuts {
            let from = (usize::from(cut) * step).min(octets.len());
            let length = u32::try_from(step.min(octets.len() - from)).expect("short");
            let (flags, next) = if cut + 1 < cuts { (NEXT, (head + cut + 1) % size) } else { (0, 0) };
            let at = GUEST + buffer + from as u64;
            self.describe(queue, (head + cut) % size, (at, length, flags, next));
        }
        if self.offer(queue, head) {
            self.kick(queue);
        }
    }

    /// Allocates descriptors and a buffer. The fake driver never checks whether they are free.
    fn slot(&mut self, queue: usize, descriptors: u16) -> (u16, u64) {
        let ring = &mut self.rings[queue];
        let head = ring.next;
        ring.next = (head + descriptors) % ring.size;
        let side = if queue == SEND { OCTETS / 2 } else { 0 };
        (head, BUFFERS + side + u64::from(head % 32) * 0x1_1000)
    }

    /// Offers `count` receive buffers of [`BUFFER`] octets.
    pub fn provide(&mut self, count: u16) {
        for _ in 0..count {
            let size = self.rings[RECEIVE].size;
            let number = self.rings[RECEIVE].next;
            self.rings[RECEIVE].next = (number + 1) % size;
            let at = GUEST + BUFFERS + u64::from(number) * u64::from(BUFFER);
            self.describe(RECEIVE, number, (at, BUFFER, WRITE, 0));
            if self.offer(RECEIVE, number) {
                self.kick(RECEIVE);
            }
        }
    }

    /// The entries that the device returned since the last call: first descriptor and octets
    /// written.
    pub fn used(&mut self, queue: usize) -> Vec<(u16, u32)> {
        let Ring { size, at, used, .. } = self.rings[queue];
        let now = self.word(at[2] + 2);
        let mut found = Vec::new();
        let mut next = used;
        while next != now {
            let entry = self.read(at[2] + 4 + 8 * u64::from(next % size), 8);
            let field = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four"));
            found.push((u16::try_from(field(0)).expect("a descriptor"), field(4)));
            next = next.wrapping_add(1);
        }
        self.rings[queue].used = now;
        found
    }

    /// Sets the entry at which the device is to notify.
    pub fn wish(&self, queue: usize, entry: u16) {
        let Ring { size, at, .. } = self.rings[queue];
        self.write(at[1] + 4 + 2 * u64::from(size), &entry.to_le_bytes());
    }

    /// Received frames, each with its header, reassembled from several buffers if necessary.
    pub fn receive(&mut self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        let mut used = self.used(RECEIVE).into_iter();
        while let Some((head, octets)) = used.next() {
            let mut whole = self.buffer(head, octets);
            let merged = u16::from_le_bytes([whole[10], whole[11]]);
            for _ in 1..merged {
                let (head, octets) = used.next().expect("all of it was given back at once");
                whole.extend(self.buffer(head, octets));
            }
            let frame = whole.split_off(12);
            found.push((whole, frame));
        }
        found
    }

    fn buffer(&self, head: u16, octets: u32) -> Vec<u8> {
        self.read(BUFFERS + u64::from(head) * u64::from(BUFFER), octets as usize)
    }

    /// Number of notifications by the device.
    pub fn called(&self, queue: usize) -> usize {
        let mut octets = [0; 4096];
        match (&self.calls[queue]).read(&mut octets) {
            Ok(got) => got / 8,
            Err(_) => 0,
        }
    }
}

pub fn encode((address, octets, flags, next): Descriptor) -> Vec<u8> {
    let mut found = address.to_le_bytes().to_vec();
    found.extend(octets.to_le_bytes());
    found.extend(flags.to_le_bytes());
    found.extend(next.to_le_bytes());
    found
}

/// A unique frame of `octets` octets.
pub fn frame(number: u16, octets: usize) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 9, 0x88, 0xb5]);
    frame.extend(number.to_be_bytes());
    frame.extend(
        (frame.len()..octets).map(|at| u8::try_from((at ^ usize::from(number)) % 251).expect("small")),
    );
    frame
}

/// Waits until `done` returns true.
pub fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "it takes too long");
        std::thread::sleep(Duration::from_millis(1));
    }
}
