//! Runs the program from a sealed copy of itself.
//!
//! A program in a node can open the executable of its parent (`/proc/PID/exe`); a hostile one could
//! wait until the file is writable. The supervisor, and with it every node init, therefore runs
//! from a sealed memfd, and the file on disk is out of reach.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStringExt;

use crate::system::check;

/// Starts this program again from a sealed copy; returns if it already runs from one, or on
/// failure.
pub fn run() -> io::Result<()> {
    if fs::read_link("/proc/self/exe")?.to_string_lossy().starts_with("/memfd:airloom-init") {
        return Ok(());
    }
    let name = c"airloom-init";
    // SAFETY: the string outlives the call.
    let fd =
        check(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let mut copy = unsafe { File::from_raw_fd(i32::try_from(fd).map_err(io::Error::other)?) };
    io::copy(&mut File::open("/proc/self/exe")?, &mut copy)?;
    let seals = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fcntl(copy.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    let words = |words: Vec<Vec<u8>>| -> io::Result<Vec<CString>> {
        words.into_iter().map(|word| CString::new(word).map_err(io::Error::other)).collect()
    };
    let argv = words(std::env::args_os().map(OsStringExt::into_vec).collect())?;
    let env = words(
        std::env::vars_os()
            .map(|(key, value)| [key.into_vec(), b"=".to_vec(), value.into_vec()].concat())
            .collect(),
    )?;
    let pointers = |words: &[CString]| -> Vec<*const libc::c_char> {
        words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(&argv), pointers(&env));
    // SAFETY: the arrays end with a null pointer, and all outlives the call.
    unsafe { libc::fexecve(copy.as_raw_fd(), argv.as_ptr(), env.as_ptr()) };
    Err(io::Error::last_os_error())
}
