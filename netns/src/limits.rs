//! The limit on open descriptors: each namespace and each TAP needs one.

use std::fs;

use crate::error::Error;

/// Reserve for other files of the program: logs, sockets, result files.
const SLACK: u64 = 512;

/// Raises the limit so that `more` descriptors can be opened, if the kernel allows it.
pub(crate) fn raise_to(more: usize) -> Result<(), Error> {
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
