//! The window: memory that a guest's kernel shares with the calendar in place of most messages.
//!
//! The layout is that of `kernel/patches/window.patch` (`include/uapi/linux/um_timetravel.h`): a calendar
//! for this guest alone, what its programs were charged, what its devices and their drivers tell each
//! other, and the log of what it has sent.
//!
//! The guest writes there only while it runs. It is not trusted: what it writes is checked, and garbage
//! is its violation of the protocol.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;

use super::spin::SpinPage;
use crate::vhost::memory::{Mapping, MemoryError};

/// The version by which a kernel knows it, `UM_TIMETRAVEL_WINDOW_VERSION`.
const VERSION: u32 = 0x5749_4e44;
/// Octets of the log: some hundred frames, or some super-frames.
const LOG: usize = 1 << 20;

/// Offsets in the calendar.
const LENGTH: usize = 4;
const FREE_UNTIL: usize = 8;
const CURRENT: usize = 16;
const RUNNING: usize = 24;
const PLACES: usize = 26;
/// The guest's number.
const NUMBER: u16 = 1;
/// Offsets of the places of the engine and of the guest, and in one.
const ENGINE: usize = 4096;
const GUEST: usize = ENGINE + 128;
const FLAGS: usize = 4;
const REQUEST: usize = 8;
/// Capability: it uses shared memory. Flag: it wishes to run.
const SHARES: u32 = 1;
const WISHES: u32 = 1;

/// Offset of what programs were charged.
const SPIN: u64 = 8192;
/// Offsets of what devices and their drivers tell each other.
const USED: usize = 12288;
const SIZE: usize = USED + 4;
const CALLS: usize = USED + 8;
const DEVICES: usize = USED + 16;
const DEVICE: usize = 16;
const LIST: usize = DEVICES + DEVICE * MOST_DEVICES;
const MOST_CALLS: u32 = 256;
/// Offset of the log, and octets of the head of an entry.
const ENTRIES: usize = 16384;
const HEAD: usize = 16;

/// Number of devices of a guest that fit in.
pub const MOST_DEVICES: usize = 64;

/// Flags of the end of an entry.
const END: u16 = 1;
const PARTLY: u16 = 2;
const CALLED: u16 = 4;

/// What a guest has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Logged {
    /// An entry of the queue of a device.
    Entry { at: u64, device: usize, octets: Vec<u8> },
    /// The end of the entries of one notification: whether there are more, for which the log has no room,
    /// and whether the driver was notified that they were returned.
    End { device: usize, partly: bool, called: bool },
}

/// The window of one guest.
#[derive(Debug)]
pub(super) struct Window {
    file: OwnedFd,
    memory: Mapping,
}

impl Window {
    /// A window that shows this time.
    pub fn new(now: u64) -> Result<Self, MemoryError> {
        let refused = |error: Errno| MemoryError::Map(error.into());
        let octets = ENTRIES + LOG;
        let file =
            memfd_create(c"window", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).map_err(refused)?;
        ftruncate(&file, octets as u64).map_err(refused)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW).map_err(refused)?;
        let window = Self { memory: Mapping::new(&file, 0, octets)?, file };
        let fits = |octets: usize| u32::try_from(octets).expect("less than 4 GB");
        window.set_word(0, VERSION);
        window.set_word(LENGTH, fits(octets));
        window.memory.write(PLACES, &(NUMBER + 1).to_ne_bytes());
        window.set_word(ENGINE, SHARES);
        window.set_word(SIZE, fits(LOG));
        window.run(now, now);
        Ok(window)
    }

    /// The page in which programs that spin are listed.
    ///
    /// # Errors
    /// If no descriptor is available.
    pub fn spin(&self) -> Result<SpinPage, Errno> {
        let file = self.file.try_clone().map_err(|_| Errno::MFILE)?;
        Ok(SpinPage::at(file, SPIN))
    }

    /// True once the guest's kernel uses it. A kernel without windows sends messages instead.
    pub fn is_used(&self) -> bool {
        self.word(GUEST) & SHARES != 0
    }

    /// Lets the guest run at a time, and freely up to a limit.
    pub fn run(&self, at: u64, until: u64) {
        self.set_long(CURRENT, at);
        self.set_long(FREE_UNTIL, until);
        self.set_word(USED, 0);
        self.memory.write(RUNNING, &NUMBER.to_ne_bytes());
    }

    /// Notes that the guest waits.
    pub fn stop(&self) {
        self.memory.write(RUNNING, &0u16.to_ne_bytes());
    }

    /// The guest's time.
    pub fn time(&self) -> u64 {
        self.long(CURRENT)
    }

    /// Shows a guest that waits another time.
    pub fn set_time(&self, now: u64) {
        self.set_long(CURRENT, now);
    }

    /// Lowers the limit of a guest that runs.
    pub fn lower(&self, limit: u64) {
        self.set_long(FREE_UNTIL, limit);
    }

    /// When the guest wishes to run, if it has said so.
    pub fn request(&self) -> Option<u64> {
        (self.word(GUEST + FLAGS) & WISHES != 0).then(|| self.long(GUEST + REQUEST))
    }

    /// Has the driver of a device log what it sends on a queue, from which something may come after so
    /// many nanoseconds at the earliest.
    pub fn log(&self, device: usize, queue: u32, ahead: u64) {
        let place = DEVICES + DEVICE * device;
        self.set_long(place + 8, ahead);
        self.set_word(place + 4, queue + 1);
    }

    /// Notifies the driver of a device of its queue when the guest runs; returns false if that needs a
    /// message.
    pub fn call(&self, device: usize, queue: u32) -> bool {
        let count = self.word(CALLS);
        if device >= MOST_DEVICES || count >= MOST_CALLS || self.word(DEVICES + DEVICE * device) == 0 {
            return false;
        }
        let call = u32::try_from(device).unwrap_or(u32::MAX) << 8 | queue;
        self.set_word(LIST + 4 * count as usize, call);
        self.set_word(CALLS, count + 1);
        true
    }

    /// Takes what the guest has logged between two times.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn take_log(&self, mut from: u64, until: u64) -> Result<Vec<Logged>, String> {
        let used = self.word(USED) as usize;
        if used == 0 {
            return Ok(Vec::new());
        }
        let garbage = |at: usize| format!("has garbage in its log, at octet {at} of {used}");
        if used > LOG {
            return Err(garbage(LOG));
        }
        self.set_word(USED, 0);
        let mut log = vec![0; used];
        self.memory.read(ENTRIES, &mut log);
        let (mut found, mut at) = (Vec::new(), 0);
        while at < used {
            let head: &[u8; HEAD] = log[at..].first_chunk().ok_or_else(|| garbage(at))?;
            let [t0, t1, t2, t3, t4, t5, t6, t7, l0, l1, l2, l3, d0, d1, f0, f1] = *head;
            let time = u64::from_ne_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
            let octets = u32::from_ne_bytes([l0, l1, l2, l3]) as usize;
            let device = usize::from(u16::from_ne_bytes([d0, d1]));
            let flags = u16::from_ne_bytes([f0, f1]);
            if time < from || time > until || (flags == 0) == (octets == 0) {
                return Err(garbage(at));
            }
            from = time;
            let body = log.get(at + HEAD..at + HEAD + octets).ok_or_else(|| garbage(at))?;
            found.push(if flags & (END | PARTLY) == 0 {
                Logged::Entry { at: time, device, octets: body.to_vec() }
            } else {
                Logged::End { device, partly: flags & PARTLY != 0, called: flags & CALLED != 0 }
            });
            at += (HEAD + octets).next_multiple_of(8);
        }
        Ok(found)
    }

    fn word(&self, at: usize) -> u32 {
        let mut octets = [0; 4];
        self.memory.read(at, &mut octets);
        u32::from_ne_bytes(octets)
    }

    fn set_word(&self, at: usize, value: u32) {
        self.memory.write(at, &value.to_ne_bytes());
    }

    fn long(&self, at: usize) -> u64 {
        let mut octets = [0; 8];
        self.memory.read(at, &mut octets);
        u64::from_ne_bytes(octets)
    }

    fn set_long(&self, at: usize, value: u64) {
        self.memory.write(at, &value.to_ne_bytes());
    }
}

impl AsFd for Window {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes to the log as the kernel does.
    fn log(window: &Window, time: u64, device: u16, flags: u16, body: &[u8]) {
        let at = window.word(USED) as usize;
        let octets = u32::try_from(body.len()).expect("few");
        let head =
            [&time.to_ne_bytes()[..], &octets.to_ne_bytes(), &device.to_ne_bytes(), &flags.to_ne_bytes()];
        window.memory.write(ENTRIES + at, &[&head.concat(), body].concat());
        let used = at + (HEAD + body.len()).next_multiple_of(8);
        window.set_word(USED, u32::try_from(used).expect("few"));
    }

    #[test]
    fn the_log_is_read_once_as_the_kernel_writes_it() {
        let window = Window::new(5).expect("memory");
        assert_eq!((window.take_log(5, 9), window.time()), (Ok(vec![]), 5));
        log(&window, 6, 0, 0, b"frame");
        log(&window, 6, 0, END | CALLED, b"");
        log(&window, 8, 3, 0, b"another");
        log(&window, 8, 3, PARTLY, b"");
        let entry = |at, device, octets: &[u8]| Logged::Entry { at, device, octets: octets.to_vec() };
        let expected = vec![
            entry(6, 0, b"frame"),
            Logged::End { device: 0, partly: false, called: true },
            entry(8, 3, b"another"),
            Logged::End { device: 3, partly: true, called: false },
        ];
        assert_eq!(window.take_log(5, 9), Ok(expected));
        assert_eq!(window.take_log(5, 9), Ok(vec![]));
    }

    #[test]
    fn garbage_in_the_log_is_found() {
        let window = Window::new(5).expect("memory");
        let refused = |window: &Window| window.take_log(5, 9).expect_err("garbage");
        log(&window, 10, 0, 0, b"of a time after its limit");
        assert_eq!(refused(&window), "has garbage in its log, at octet 0 of 48");
        log(&window, 7, 0, 0, b"late");
        log(&window, 6, 0, 0, b"early");
        assert_eq!(refused(&window), "has garbage in its log, at octet 24 of 48");
        log(&window, 7, 0, 0, b"");
        assert_eq!(refused(&window), "has garbage in its log, at octet 0 of 16");
        window.memory.write(ENTRIES, &[0xff; 64]);
        window.set_word(USED, 64);
        assert_eq!(refused(&window), "has garbage in its log, at octet 0 of 64");
        window.set_word(USED, u32::MAX);
        assert!(refused(&window).starts_with("has garbage in its log"));
    }

    #[test]
    fn notifications_wait_for_a_device_that_is_ready_and_need_room() {
        let window = Window::new(0).expect("memory");
        assert!(!window.call(1, 0), "its driver is not there yet");
        window.set_word(DEVICES + DEVICE, 1);
        for _ in 0..MOST_CALLS {
            assert!(window.call(1, 7));
        }
        assert!(!window.call(1, 7));
        assert_eq!((window.word(LIST), window.word(CALLS)), (1 << 8 | 7, MOST_CALLS));
        assert!(!window.call(MOST_DEVICES, 0));
    }
}
