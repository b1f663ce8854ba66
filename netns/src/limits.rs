//! The limit on open descriptors: each namespace and each TAP needs one.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::Error;

/// Reserve for other files of the program: logs, sockets, result files.
const SLACK: u64 = 512;

/// Raises the limit so that `more` descriptors can be opened, if the kernel allows it.
pub(crate) fn raise_to(more: usize) -> Result<(), Error> {
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let needed = u64::try_from(open + more).unwrap_or(u64::MAX).saturating_add(SLACK);
    // None: no limit.
    let Rlimit { current: Some(current), maximum } = getrlimit(Resource::Nofile) else { return Ok(()) };
    if current >= needed {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: maximum.map(|maximum| maximum.max(needed)) };
    setrlimit(Resource::Nofile, raised)
        .map_err(|_| Error::Descriptors { needed, limit: maximum.unwrap_or(current) })
}
