//! CPU time of a node that has no control group: of its ended children and of all running
//! processes.

use std::fs;

use crate::processes::Processes;
use crate::system::stat_fields;

/// Returns user and system time in nanoseconds of a node whose first process is this one. Time of ended
/// processes whose parent never waited for them is not counted.
pub fn of(processes: Processes) -> (u64, u64) {
    // SAFETY: an rusage is plain integers, and the buffer outlives the call.
    let ended = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        [usage.ru_utime, usage.ru_stime]
    };
    let [mut user, mut system] =
        ended.map(|time| u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000).unwrap_or(0));
    // SAFETY: no pointers are passed.
    let ticks = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1);
    for pid in processes.all() {
        if let Some((in_user, in_system)) =
            fs::read_to_string(format!("/proc/{pid}/stat")).ok().as_deref().and_then(times)
        {
            user += in_user * 1_000_000_000 / ticks;
            system += in_system * 1_000_000_000 / ticks;
        }
    }
    (user, system)
}

/// User and system time in ticks, with that of waited-for children (fields 14 to
/// 17 of `proc_pid_stat(5)`).
fn times(stat: &str) -> Option<(u64, u64)> {
    let fields: Vec<u64> =
        stat_fields(stat)?.iter().skip(11).take(4).map(|field| field.parse().unwrap_or(0)).collect();
    let &[user, system, user_children, system_children] = &fields[..] else { return None };
    Some((user + user_children, system + system_children))
}

#[cfg(test)]
mod tests {
    use super::times;

    #[test]
    fn a_name_may_contain_spaces_and_brackets() {
        let stat = "7 (a) b) R 1 7 7 0 -1 4194304 90 0 0 0 12 34 5 6 20 0 1 0 100 1 1";
        assert_eq!(times(stat), Some((17, 40)));
        assert_eq!(times("7 (a) R 1"), None);
    }
}
