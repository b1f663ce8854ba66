//! Seccomp filter (`seccomp(2)`) that prevents programs of an image from creating cgroup
//! namespaces.
//!
//! A process with a cgroup namespace in its own user namespace may mount control-group
//! hierarchies. Their files belong to root; for the kernel a container's root is that user, so it
//! could write them. All other system calls are allowed, most of them by the kernel's cache
//! without running the filter.

use std::io;

use crate::system::check;

/// Numbers of the system calls that create namespaces, for one ABI of the processor.
struct Abi {
    /// `AUDIT_ARCH_*`.
    architecture: u32,
    unshare: u32,
    clone: u32,
}

#[cfg(target_arch = "x86_64")]
const ABIS: [Abi; 2] = [
    Abi { architecture: 0xc000_003e, unshare: 272, clone: 56 },
    Abi { architecture: 0x4000_0003, unshare: 310, clone: 120 },
];
#[cfg(target_arch = "aarch64")]
const ABIS: [Abi; 2] = [
    Abi { architecture: 0xc000_00b7, unshare: 97, clone: 220 },
    Abi { architecture: 0x4000_0028, unshare: 337, clone: 120 },
];

/// The same on every architecture. A filter cannot read its flags; on ENOSYS, C
/// libraries fall back to `clone`.
const CLONE3: u32 = 435;
/// Added to the numbers of the x32 ABI of x86-64.
const X32: u32 = 0x4000_0000;

pub const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs();
const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();

/// Offsets in `struct seccomp_data`.
pub const NUMBER: u32 = 0;
pub const ARCHITECTURE: u32 = 4;
/// Offset of the lower half of the first argument, on little-endian processors.
const FLAGS: u32 = 16;

/// Loads 32 bits of `struct seccomp_data`.
pub fn load(place: u32) -> libc::sock_filter {
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, place, 0, 0)
}

/// Ends the filter with an answer.
pub fn answer(value: u32) -> libc::sock_filter {
    instruction(libc::BPF_RET | libc::BPF_K, value, 0, 0)
}

/// Skips `is` instructions if the loaded number equals a value, else `is_not`.
pub fn if_equal(value: u32, is: u8, is_not: u8) -> libc::sock_filter {
    instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value, is, is_not)
}

fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code: u16::try_from(code).expect("codes have 16 bits"), jt, jf, k }
}

fn filter() -> Vec<libc::sock_filter> {
    let mut filter = vec![load(ARCHITECTURE)];
    for abi in &ABIS {
        let calls = [
            load(NUMBER),
            instruction(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, !X32, 0, 0),
            if_equal(CLONE3, 6, 0),
            if_equal(abi.unshare, 1, 0),
            if_equal(abi.clone, 0, 2),
            load(FLAGS),
            instruction(
                libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
                libc::CLONE_NEWCGROUP.unsigned_abs(),
                1,
                0,
            ),
            answer(ALLOW),
            answer(REFUSE),
            answer(UNKNOWN),
        ];
        filter.push(if_equal(abi.architecture, 0, u8::try_from(calls.len()).expect("a few")));
        filter.extend(calls);
    }
    filter.push(answer(UNKNOWN));
    filter
}

/// Installs this filter on this process permanently; requires `CAP_SYS_ADMIN` in its user namespace.
pub fn refuse_control_group_namespaces() -> io::Result<()> {
    install(filter())
}

/// Installs a filter on this process permanently; requires `CAP_SYS_ADMIN` in its user namespace.
pub fn install(mut filter: Vec<libc::sock_filter>) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(filter.len()).map_err(io::Error::other)?,
        filter: filter.as_mut_ptr(),
    };
    // The filter protects no secret from the program itself, so speculation stays enabled.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program and its instructions outlive the call, and their number is given.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program)
    })
    .map(drop)
}

/// Evaluates a filter, by the rules of `bpf(4)`.
#[cfg(test)]
pub fn evaluated(filter: &[libc::sock_filter], architecture: u32, number: u32, arguments: &[u32]) -> u32 {
    let (mut at, mut loaded) = (0, 0);
    loop {
        let one = filter[at];
        at += 1;
        match u32::from(one.code) {
            0x20 => {
                loaded = match one.k {
                    NUMBER => number,
                    ARCHITECTURE => architecture,
                    place => arguments[usize::try_from((place - FLAGS) / 8).expect("a few")],
                }
            }
            0x54 => loaded &= one.k,
            0x06 => return one.k,
            0x15 => at += usize::from(if loaded == one.k { one.jt } else { one.jf }),
            0x45 => at += usize::from(if loaded & one.k != 0 { one.jt } else { one.jf }),
            other => panic!("an instruction that is not in the test: {other:#x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ABIS, ALLOW, Abi, CLONE3, REFUSE, UNKNOWN, X32, evaluated, filter};

    fn answered(architecture: u32, number: u32, flags: u32) -> u32 {
        evaluated(&filter(), architecture, number, &[flags])
    }

    #[test]
    fn only_control_group_namespaces_are_refused() {
        let (group, others) = (0x0200_0000, 0x1000_0000 | 0x0002_0000 | 0x4000_0000 | 17);
        for Abi { architecture, unshare, clone } in ABIS {
            for call in [unshare, clone] {
                assert_eq!(answered(architecture, call, group | others), REFUSE);
                assert_eq!(answered(architecture, call, others), ALLOW);
            }
            assert_eq!(answered(architecture, CLONE3, 0), UNKNOWN);
            assert_eq!(answered(architecture, 1, group), ALLOW);
        }
        assert_eq!(answered(ABIS[0].architecture, X32 | ABIS[0].unshare, group), REFUSE);
        assert_eq!(answered(0x1234, 1, 0), UNKNOWN);
    }
}
