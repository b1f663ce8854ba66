//! The cell of a guest's machine: a process that emulates a machine sees the host read-only, has
//! one place in memory to write to, and none of root's rights but those that are named.
//!
//! A guest is whoever has broken out of it at worst, so what the machine may not do, the guest may
//! not either: its file system over the host's (hostfs) is opened by this process.

use std::io;
use std::mem::size_of;
use std::os::fd::OwnedFd;

use crate::message::{Host, Scheduling, Start};
use crate::mounts::{mount, read_only};
use crate::program::{Refused, start_after};
use crate::room::cut_off;
use crate::system::check;

/// Where it may write.
const SCRATCH: &str = "/dev/shm";
const LAST_CAPABILITY: u32 = 63;

/// Starts the machine; gives its process number once it runs.
pub fn start(host: &Host, streams: &[OwnedFd]) -> Result<i32, Refused> {
    let start = Start {
        id: host.id,
        argv: host.argv.clone(),
        env: host.env.clone(),
        folder: "/".to_owned(),
        tty: false,
        size: None,
        merged: false,
    };
    start_after(&start, streams, None, || {
        let step = |what: &str| {
            let what = what.to_owned();
            move |error| (what, error)
        };
        schedule(&host.scheduling)?;
        close_in(host.cell.memory).map_err(step("a read-only view of the host (Linux 5.12 or later)"))?;
        // User Mode Linux takes a random gap behind its program for its own memory.
        // SAFETY: no pointers are passed.
        check(unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) })
            .map_err(step("personality"))?;
        drop_rights(&host.cell.capabilities).map_err(step("giving up rights"))
    })
}

fn schedule(wish: &Scheduling) -> Result<(), Refused> {
    let fail = |what: &str, error: io::Error| (format!("scheduling: {what}"), error);
    if !wish.processors.is_empty() {
        // SAFETY: a set is plain integers, for which zero is a value; it outlives the calls.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            for &number in wish.processors.iter().filter(|&&number| number < libc::CPU_SETSIZE as usize) {
                libc::CPU_SET(number, &mut set);
            }
            check(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set))
                .map_err(|error| fail(&format!("processors {:?}", wish.processors), error))?;
        }
    }
    if wish.policy != libc::SCHED_OTHER {
        let priority = libc::sched_param { sched_priority: wish.priority };
        // SAFETY: the parameter outlives the call.
        check(unsafe { libc::sched_setscheduler(0, wish.policy, &raw const priority) }).map_err(|error| {
            fail(&format!("policy {} with priority {}", wish.policy, wish.priority), error)
        })?;
    }
    if wish.nice != 0 {
        // SAFETY: no pointers are passed.
        check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, wish.nice) })
            .map_err(|error| fail(&format!("nice {}", wish.nice), error))?;
    }
    Ok(())
}

/// Makes all that is mounted read-only for this process, except a place of its own.
fn close_in(memory: u64) -> io::Result<()> {
    cut_off()?;
    read_only("/")?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    mount(Some("tmpfs"), SCRATCH, Some("tmpfs"), flags, Some(&format!("mode=700,size={memory}")))
}

/// Keeps only the named capabilities, also of what this process will become.
fn drop_rights(kept: &[u32]) -> io::Result<()> {
    for number in (0..=LAST_CAPABILITY).filter(|number| !kept.contains(number)) {
        // SAFETY: no pointers are passed. The kernel refuses numbers that it does not have.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) };
    }
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // The kernel's `struct __user_cap_header_struct`, version 3, and two `__user_cap_data_struct`.
    let header = [0x2008_0522_u32, 0];
    let mask = |word: u32| {
        kept.iter().filter(|&&number| number / 32 == word).fold(0, |mask, number| mask | 1 << (number % 32))
    };
    let (low, high) = (mask(0), mask(1));
    let data: [u32; 6] = [low, low, low, high, high, high];
    // SAFETY: both arrays outlive the call and have the layout that the version says.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) }).map(drop)
}
