//! Room for descriptors: one for each namespace and one for each TAP.

use std::fs;

use super::error::Error;

/// For what the program opens beside its nodes: logs, sockets, result files.
const SLACK: u64 = 512;

/// Sees to it that `more` descriptors can be opened, raising the limit where the kernel allows.
pub(super) fn room_for(more: usize) -> Result<(), Error> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let needed = u64::try_from(open + more).unwrap_or(u64::MAX).saturating_add(SLACK);
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 || limit.rlim_cur >= needed {
        return Ok(());
    }
    let raised = libc::rlimit { rlim_cur: needed.max(limit.rlim_cur), rlim_max: limit.rlim_max.max(needed) };
    // SAFETY: the structure outlives the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
        return Ok(());
    }
    Err(Error::Descriptors { needed, limit: limit.rlim_max })
}
