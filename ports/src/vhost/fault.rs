//! Inaccessible memory of a guest: its file was truncated, or the file system of the file is full.
//! An access then raises SIGBUS, which must not end the process with all its guests. The handler
//! maps empty memory in its place and sets a flag, and the port disconnects its guest.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Maximum number of watched mappings: two hundred guests with the maximum number of regions, and
/// sixteen of the largest caches of pages.
const SLOTS: usize = 200 * super::message::REGIONS + 16 * 1024;

struct Slot {
    /// Start address; 0 if the slot is free, 1 while it is being filled.
    start: AtomicUsize,
    octets: AtomicUsize,
    lost: AtomicBool,
}

static WATCHED: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), octets: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; SLOTS];

/// Number of the slot that became free last.
static LAST_FREED: AtomicUsize = AtomicUsize::new(0);

/// The previous action of SIGBUS.
struct Before(libc::sigaction);

// SAFETY: a sigaction is plain integers and function pointers; it is only read after it was set.
unsafe impl Send for Before {}
// SAFETY: likewise.
unsafe impl Sync for Before {}

static BEFORE: OnceLock<Before> = OnceLock::new();

/// Watches a mapping until it is dropped.
#[derive(Debug)]
pub struct Watch(usize);

impl Watch {
    /// Watches a mapping; None if no slot is free.
    pub fn over(start: usize, octets: usize) -> Option<Self> {
        BEFORE.get_or_init(install);
        let free =
            |slot: &Slot| slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        // First the one that became free last: translated buffers take and leave one all the time.
        let last = LAST_FREED.load(Ordering::Relaxed);
        let number = if free(&WATCHED[last]) { last } else { WATCHED.iter().position(free)? };
        let slot = &WATCHED[number];
        slot.lost.store(false, Ordering::Relaxed);
        slot.octets.store(octets, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self(number))
    }

    /// True once a part of the mapping was inaccessible.
    pub fn is_lost(&self) -> bool {
        WATCHED[self.0].lost.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED[self.0].start.store(0, Ordering::Release);
        LAST_FREED.store(self.0, Ordering::Relaxed);
    }
}

fn install() -> Before {
    // SAFETY: a sigaction is plain integers and pointers, for which zero is a value; the handler
    // below does only what a handler may do.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before);
        Before(before)
    }
}

extern "C" fn handle(_: libc::c_int, about: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands over a siginfo with the address of the fault.
    let at = unsafe { (*about).si_addr() } as usize;
    for slot in &WATCHED {
        let start = slot.start.load(Ordering::Acquire);
        let octets = slot.octets.load(Ordering::Relaxed);
        if start > 1 && at >= start && at - start < octets {
            // SAFETY: the range is one mapping of ours, which belongs to its slot as long as that
            // is taken.
            let put = unsafe {
                let both = libc::PROT_READ | libc::PROT_WRITE;
                let how = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
                libc::mmap(start as *mut c_void, octets, both, how, -1, 0)
            };
            if put != libc::MAP_FAILED {
                slot.lost.store(true, Ordering::Relaxed);
                return;
            }
        }
    }
    // Not one of the mappings: restore the previous action, which handles the repeated access.
    if let Some(Before(before)) = BEFORE.get() {
        // SAFETY: it was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const *before, std::ptr::null_mut()) };
    }
}
