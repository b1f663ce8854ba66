//! Wrappers for system calls that the standard library lacks.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// The result of a system call, with errno as the error.
pub fn check(answer: impl TryInto<i64>) -> io::Result<i64> {
    match answer.try_into() {
        Ok(value) if value >= 0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A C string; a text with a NUL octet is refused.
pub fn text(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Blocks all signals for this process and returns a descriptor (signalfd) that signals ended
/// children.
pub fn children() -> io::Result<OwnedFd> {
    // SAFETY: the sets are initialised by the calls and outlive them.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut set);
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()))?;
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        check(fd)?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Undoes what [`children`] and Rust's runtime did to signals, before execve(2).
pub fn default_signals() {
    // The kernel's `struct sigaction`: handler (0 is the default), flags, restorer, mask. The
    // system call is used directly: the C library reserves two signals and refuses to change them,
    // although the parent process may have set them to be ignored.
    let default = [0_u64; 4];
    // SAFETY: the kernel reads four words; the set is initialised by the call; the numbers are
    // signals.
    unsafe {
        for number in 1..=libc::SIGRTMAX() {
            let none = std::ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, number, default.as_ptr(), none, size_of::<u64>());
        }
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Drains the descriptor of [`children`].
pub fn drain(fd: &OwnedFd) {
    let mut buffer = [0_u8; 1024];
    while matches!(read(fd, &mut buffer), Ok(1..)) {}
}

/// Waits until one of the descriptors is readable, or until the time-out; returns which ones are.
pub fn wait(fds: &[RawFd], most: Option<Duration>) -> io::Result<Vec<bool>> {
    let mut entries: Vec<libc::pollfd> = fds.iter().map(|&fd| to_read(fd)).collect();
    poll(&mut entries, most)?;
    Ok(entries.iter().map(|entry| entry.revents != 0).collect())
}

/// The poll entry for reading from a descriptor.
pub fn to_read(fd: RawFd) -> libc::pollfd {
    libc::pollfd { fd, events: libc::POLLIN, revents: 0 }
}

/// Waits until one of the entries is ready, or until the time-out.
pub fn poll(entries: &mut [libc::pollfd], most: Option<Duration>) -> io::Result<()> {
    // Rounded up, so that the wait is not shorter than the time-out.
    let most = most.map_or(-1, |most| i32::try_from(most.as_micros().div_ceil(1000)).unwrap_or(i32::MAX));
    let count = libc::nfds_t::try_from(entries.len()).expect("a few descriptors");
    // SAFETY: the entries outlive the call and their number is given.
    match check(unsafe { libc::poll(entries.as_mut_ptr(), count, most) }) {
        Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(()),
    }
}

/// True if a read would not block, also at the end of a stream.
pub fn readable(fd: &OwnedFd) -> bool {
    let mut entry = [to_read(fd.as_raw_fd())];
    poll(&mut entry, Some(Duration::ZERO)).is_ok() && entry[0].revents != 0
}

/// Reads the available octets; returns zero at the end of the stream.
pub fn read(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::read(fd, buffer)?)
}

/// Writes some of the octets; returns how many.
pub fn write(fd: &OwnedFd, octets: &[u8]) -> io::Result<usize> {
    Ok(rustix::io::write(fd, octets)?)
}

/// Shuts a socket down for writing, so that the other end reads the end of the
/// stream; a pipe needs only close.
pub fn end_writing(fd: &OwnedFd) {
    let _ = rustix::net::shutdown(fd, rustix::net::Shutdown::Write);
}

/// Makes the descriptor non-blocking.
pub fn set_nonblocking(fd: &OwnedFd) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}

/// True if both descriptors refer to the same file, pipe or terminal.
pub fn is_same_file(a: &OwnedFd, b: &OwnedFd) -> bool {
    let identity = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|about| (about.st_dev, about.st_ino));
    matches!((identity(a), identity(b)), (Ok(a), Ok(b)) if a == b)
}

/// A pipe: the end to read from and the end to write to.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?)
}

/// CLOCK_MONOTONIC in nanoseconds.
pub fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// An ended child.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub pid: i32,
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub user_ns: u64,
    pub system_ns: u64,
}

/// Reaps the next ended child, if any.
pub fn reap() -> Option<Ended> {
    let mut status = 0;
    // SAFETY: an rusage is plain integers; both buffers outlive the call.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(-1, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
    };
    (pid > 0).then(|| Ended {
        pid,
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        user_ns: nanoseconds(usage.ru_utime),
        system_ns: nanoseconds(usage.ru_stime),
    })
}

fn nanoseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_usec * 1_000).unwrap_or(0)
}

/// The fields of `/proc/PID/stat` from the third on (`proc_pid_stat(5)`), after the name, which
/// may contain any character.
pub fn stat_fields(stat: &str) -> Option<Vec<&str>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace().collect())
}

/// Waits for the end of a child; returns its exit code, as a shell does.
pub fn end_of(pid: i32) -> io::Result<u8> {
    let mut status = 0;
    // SAFETY: the buffer outlives the call.
    while let Err(error) = check(unsafe { libc::waitpid(pid, &raw mut status, 0) }) {
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    let code =
        if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) };
    u8::try_from(code).map_err(io::Error::other)
}

/// Sends a signal; a negative number is a process group, -1 all processes that can be signalled.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Forks a child into new namespaces, in a control group if one is given; returns zero in the
/// child.
pub fn child_in(namespaces: i32, group: Option<BorrowedFd<'_>>) -> io::Result<i32> {
    if (namespaces, group.is_none()) == (0, true) {
        // clone3(2) may be refused in a container, since its arguments cannot be filtered.
        // SAFETY: the process has one thread, so nothing in it is held by another.
        return check(unsafe { libc::fork() }).and_then(|pid| i32::try_from(pid).map_err(io::Error::other));
    }
    let mut arguments = libc::clone_args {
        flags: u64::from(namespaces.unsigned_abs()),
        pidfd: 0,
        child_tid: 0,
        parent_tid: 0,
        exit_signal: u64::from(libc::SIGCHLD.unsigned_abs()),
        stack: 0,
        stack_size: 0,
        tls: 0,
        set_tid: 0,
        set_tid_size: 0,
        cgroup: 0,
    };
    if let Some(group) = group {
        arguments.flags |= 0x2_0000_0000; // CLONE_INTO_CGROUP
        arguments.cgroup = u64::from(group.as_raw_fd().unsigned_abs());
    }
    let size = size_of::<libc::clone_args>();
    // SAFETY: without a stack of its own the child goes on as after fork; the process has one
    // thread, so nothing in it is held by another.
    let pid = check(unsafe { libc::syscall(libc::SYS_clone3, &raw mut arguments, size) })?;
    i32::try_from(pid).map_err(io::Error::other)
}

/// Requests SIGKILL when the parent ends.
pub fn die_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Sets the name of this process in process lists; the kernel takes 15 octets of it.
pub fn set_process_name(name: &str) -> io::Result<()> {
    Ok(rustix::thread::set_name(&text(name)?)?)
}

/// A pidfd, which becomes readable when the process has ended.
pub fn process_descriptor(pid: i32) -> io::Result<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty())?)
}

/// Moves `fd` to descriptor 3 and closes all above it.
pub fn keep_only(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() != 3 {
        // SAFETY: the previous owner of descriptor 3 does not use it again in this process.
        check(unsafe { libc::dup3(fd.as_raw_fd(), 3, libc::O_CLOEXEC) })?;
        drop(fd);
    } else {
        std::mem::forget(fd);
    }
    // SAFETY: the previous owners of these descriptors do not use them again in this process.
    check(unsafe { libc::syscall(libc::SYS_close_range, 4, u32::MAX, 0) })?;
    // SAFETY: descriptor 3 is open and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(3) })
}
