//! Programs that change their user, in a user namespace with a single user.
//!
//! Daemons that are started as root give up that user: they call `setgroups`, `setuid` and `chown`.
//! A user namespace that an ordinary user makes without `newuidmap(1)` has one user and one group, so
//! the kernel refuses these calls, and the daemons end. A seccomp filter (`seccomp(2)`) answers them
//! with success instead and changes nothing: the program stays the namespace's root, who is that
//! ordinary user. A number that the namespace has is passed to the kernel.

use std::fs;
use std::io;

use crate::seccomp::{ALLOW, ARCHITECTURE, NUMBER, answer, if_equal, install, load};

/// Success, without execution of the call.
const PRETEND: u32 = libc::SECCOMP_RET_ERRNO;
/// Offset of the lower half of the first argument in `struct seccomp_data`, on little-endian
/// processors; each argument has eight octets.
const FIRST: u32 = 16;
/// As an argument: the number stays as it is.
const UNCHANGED: u32 = u32::MAX;

#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

/// A system call, and which of its arguments are numbers of users or groups.
struct Call {
    number: libc::c_long,
    first: u32,
    count: u32,
}

const fn call(number: libc::c_long, first: u32, count: u32) -> Call {
    Call { number, first, count }
}

const CALLS: &[Call] = &[
    call(libc::SYS_setuid, 0, 1),
    call(libc::SYS_setgid, 0, 1),
    call(libc::SYS_setreuid, 0, 2),
    call(libc::SYS_setregid, 0, 2),
    call(libc::SYS_setresuid, 0, 3),
    call(libc::SYS_setresgid, 0, 3),
    call(libc::SYS_fchown, 1, 2),
    call(libc::SYS_fchownat, 2, 2),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_chown, 1, 2),
    #[cfg(target_arch = "x86_64")]
    call(libc::SYS_lchown, 1, 2),
];

/// Installs the filter if the user namespace of this process has a single user: its groups cannot be
/// set then (`user_namespaces(7)`).
pub fn keep() -> io::Result<()> {
    if fs::read_to_string("/proc/self/setgroups").is_ok_and(|word| word.trim() == "deny") {
        install(filter())?;
    }
    Ok(())
}

fn filter() -> Vec<libc::sock_filter> {
    let number = |call: libc::c_long| u32::try_from(call).expect("numbers of calls are small");
    let mut filter = vec![
        load(ARCHITECTURE),
        if_equal(NATIVE, 1, 0),
        answer(ALLOW),
        load(NUMBER),
        if_equal(number(libc::SYS_setgroups), 0, 1),
        answer(PRETEND),
    ];
    for Call { number: called, first, count } in CALLS {
        let mut body = Vec::new();
        for argument in *first..first + count {
            body.extend([
                load(FIRST + 8 * argument),
                if_equal(0, 2, 0),
                if_equal(UNCHANGED, 1, 0),
                answer(PRETEND),
            ]);
        }
        body.push(answer(ALLOW));
        filter.push(if_equal(number(*called), 0, u8::try_from(body.len()).expect("a few")));
        filter.extend(body);
    }
    filter.push(answer(ALLOW));
    filter
}

#[cfg(test)]
mod tests {
    use super::{NATIVE, PRETEND, UNCHANGED, filter};
    use crate::seccomp::{ALLOW, evaluated};

    fn answered(call: libc::c_long, arguments: [u32; 5]) -> u32 {
        evaluated(&filter(), NATIVE, u32::try_from(call).unwrap(), &arguments)
    }

    #[test]
    fn a_change_to_another_user_or_group_is_answered_with_success() {
        assert_eq!(answered(libc::SYS_setgroups, [1, 0, 0, 0, 0]), PRETEND);
        assert_eq!(answered(libc::SYS_setuid, [105, 0, 0, 0, 0]), PRETEND);
        assert_eq!(answered(libc::SYS_setresgid, [0, UNCHANGED, 113, 0, 0]), PRETEND);
        assert_eq!(answered(libc::SYS_fchownat, [3, 4, 105, UNCHANGED, 0]), PRETEND);
        assert_eq!(answered(libc::SYS_fchown, [3, 0, 113, 0, 0]), PRETEND);
    }

    #[test]
    fn root_and_all_other_calls_go_to_the_kernel() {
        assert_eq!(answered(libc::SYS_setuid, [0; 5]), ALLOW);
        assert_eq!(answered(libc::SYS_setresuid, [0, UNCHANGED, 0, 7, 7]), ALLOW);
        assert_eq!(answered(libc::SYS_fchownat, [3, 4, 0, 0, 9]), ALLOW);
        assert_eq!(answered(libc::SYS_write, [1, 2, 3, 4, 5]), ALLOW);
        assert_eq!(evaluated(&filter(), 0x4000_0003, 213, &[105, 0, 0, 0, 0]), ALLOW);
    }
}
