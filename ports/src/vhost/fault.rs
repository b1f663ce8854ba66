//! Memory of a guest that cannot be had any more: its file was cut short, or the file system that it lies
//! on is full. The processor then stops whoever touches it, with SIGBUS; that must not be the end of all
//! guests. So the handler puts empty memory in its place and takes note, and the port parts from its guest.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings that can be watched at once: two hundred guests with as many regions as there may be.
const SLOTS: usize = 200 * super::message::REGIONS;

struct Slot {
    /// Address of its first octet; 0 if the slot is free, 1 while it is being filled.
    start: AtomicUsize,
    octets: AtomicUsize,
    lost: AtomicBool,
}

static WATCHED: [Slot; SLOTS] = [const {
    Slot { start: AtomicUsize::new(0), octets: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; SLOTS];

/// What the process did on SIGBUS before.
struct Before(libc::sigaction);

// SAFETY: a sigaction is plain integers and function pointers; it is only read after it was set.
unsafe impl Send for Before {}
// SAFETY: likewise.
unsafe impl Sync for Before {}

static BEFORE: OnceLock<Before> = OnceLock::new();

/// A mapping that is watched as long as this lives.
#[derive(Debug)]
pub struct Watch(usize);

impl Watch {
    /// Watches a mapping; none if too many are watched already.
    pub fn over(start: usize, octets: usize) -> Option<Self> {
        BEFORE.get_or_init(install);
        let free =
            |slot: &Slot| slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let number = WATCHED.iter().position(free)?;
        let slot = &WATCHED[number];
        slot.lost.store(false, Ordering::Relaxed);
        slot.octets.store(octets, Ordering::Relaxed);
        slot.start.store(start, Ordering::Release);
        Some(Self(number))
    }

    /// True once a part of it could not be had.
    pub fn is_lost(&self) -> bool {
        WATCHED[self.0].lost.load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHED[self.0].start.store(0, Ordering::Release);
    }
}

fn install() -> Before {
    // SAFETY: a sigaction is plain integers and pointers, for which zero is a value; the handler below
    // does only what a handler may do.
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
            // SAFETY: the range is one mapping of ours, which belongs to its slot as long as that is taken.
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
    // Not ours: what was done before is done now, when the same access fails again.
    if let Some(Before(before)) = BEFORE.get() {
        // SAFETY: it was in force before.
        unsafe { libc::sigaction(libc::SIGBUS, &raw const *before, std::ptr::null_mut()) };
    }
}
