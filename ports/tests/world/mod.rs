//! A network namespace for each test, on a thread that dies with it.

/// Runs `test` on a thread in a fresh network namespace. Where the machine does not permit
/// namespaces it says so and does nothing.
pub fn inside(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(move || {
        // SAFETY: only this thread leaves its network namespace.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            println!("skipped: no namespaces here: {}", std::io::Error::last_os_error());
            return;
        }
        test();
    });
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
