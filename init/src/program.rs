//! Starts an unmodified program.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;

use crate::credentials::Rights;
use crate::message::Start;
use crate::system::{check, default_signals, pipe, text};

/// The failed step, and the kernel's error.
pub type Refused = (String, io::Error);

/// The file of this program. It is opened before the first program of the node runs, which could mount
/// something else there.
static OWN: OnceLock<io::Result<File>> = OnceLock::new();

/// Starts a program in its own session and process group, on descriptors that become 0, 1, 2 and so
/// on. Returns its process number once execve(2) has succeeded.
pub fn start(start: &Start, streams: &[OwnedFd], rights: &Rights) -> Result<i32, Refused> {
    start_after(start, streams, rights, || Ok(()))
}

/// The same; the new process calls `more` just before execve(2).
pub fn start_after(
    start: &Start,
    streams: &[OwnedFd],
    rights: &Rights,
    more: impl Fn() -> Result<(), Refused>,
) -> Result<i32, Refused> {
    let own = OWN.get_or_init(|| File::open("/proc/self/exe"));
    let prepared = Prepared::new(start, rights)?;
    let (reader, writer) = pipe().map_err(|error| ("pipe".to_owned(), error))?;
    let (mut reader, mut writer) = (File::from(reader), File::from(writer));
    // SAFETY: this process has one thread; the child only prepares itself and becomes the program.
    let pid = check(unsafe { libc::fork() }).map_err(|error| ("fork".to_owned(), error))?;
    if pid == 0 {
        let (step, error) = if start.own {
            prepared.become_own(streams, own)
        } else {
            prepared.become_program(streams, start.tty, rights, more)
        };
        let number = error.raw_os_error().unwrap_or(libc::EINVAL);
        // Short enough for one write; the reader receives it whole.
        let _ = writer.write_all(format!("{number} {step}").as_bytes());
        // SAFETY: leaves without running the exit handlers of the parent.
        unsafe { libc::_exit(127) }
    }
    drop(writer);
    // execve(2) closes the pipe; it carries text only after a failure.
    let mut words = String::new();
    let _ = reader.read_to_string(&mut words);
    match words.split_once(' ') {
        None => i32::try_from(pid).map_err(|error| ("fork".to_owned(), io::Error::other(error))),
        Some((number, step)) => {
            let mut status = 0;
            // SAFETY: the buffer outlives the call; only this process waits for the child.
            unsafe { libc::waitpid(i32::try_from(pid).unwrap_or(-1), &raw mut status, 0) };
            Err((step.to_owned(), io::Error::from_raw_os_error(number.parse().unwrap_or(libc::EINVAL))))
        }
    }
}

/// All data of the child, prepared before the fork.
struct Prepared {
    candidates: Vec<CString>,
    argv: Vec<CString>,
    env: Vec<CString>,
    folder: CString,
    folder_name: String,
    name: String,
}

impl Prepared {
    fn new(start: &Start, rights: &Rights) -> Result<Self, Refused> {
        let fail = |step: &str| {
            let step = step.to_owned();
            move |error| (step, error)
        };
        let name = start.argv.first().filter(|name| !name.is_empty()).cloned().ok_or_else(|| {
            ("program without a name".to_owned(), io::Error::from_raw_os_error(libc::EINVAL))
        })?;
        let candidates: io::Result<Vec<CString>> =
            candidates(&name, start.env.get("PATH").map(String::as_str))
                .iter()
                .map(|path| text(path))
                .collect();
        let argv: io::Result<Vec<CString>> = start.argv.iter().map(|word| text(word)).collect();
        let home = rights.home_in_env().filter(|_| !start.env.contains_key("HOME")).map(|entry| text(&entry));
        let env: io::Result<Vec<CString>> =
            start.env.iter().map(|(key, value)| text(&format!("{key}={value}"))).chain(home).collect();
        Ok(Self {
            candidates: candidates.map_err(fail("name of the program"))?,
            argv: argv.map_err(fail("arguments"))?,
            env: env.map_err(fail("environment"))?,
            folder: text(&start.folder).map_err(fail("working folder"))?,
            folder_name: start.folder.clone(),
            name,
        })
    }

    /// Turns this process into the program; returns only on failure, with the step that failed.
    fn become_program(
        &self,
        streams: &[OwnedFd],
        tty: bool,
        rights: &Rights,
        more: impl Fn() -> Result<(), Refused>,
    ) -> Refused {
        let steps = || -> Result<(), Refused> {
            // SAFETY: no pointers are passed.
            check(unsafe { libc::setsid() }).map_err(|error| ("setsid".to_owned(), error))?;
            take_places(streams).map_err(|error| ("streams".to_owned(), error))?;
            if tty {
                // SAFETY: TIOCSCTTY takes its argument by value.
                check(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) })
                    .map_err(|error| ("terminal".to_owned(), error))?;
            }
            // SAFETY: the string outlives the call.
            check(unsafe { libc::chdir(self.folder.as_ptr()) })
                .map_err(|error| (format!("working folder {}", self.folder_name), error))?;
            rights.enter().map_err(|error| ("user and capabilities".to_owned(), error))?;
            more()
        };
        if let Err(refused) = steps() {
            return refused;
        }
        // SAFETY: no pointers are passed. A death signal asked for by the parent is not inherited.
        unsafe { libc::umask(0o022) };
        default_signals();
        (self.name.clone(), self.execute())
    }

    /// Turns this process into this program itself, with the rights of the init.
    fn become_own(&self, streams: &[OwnedFd], own: &io::Result<File>) -> Refused {
        // SAFETY: no pointers are passed.
        let steps = check(unsafe { libc::setsid() }).and_then(|_| take_places(streams));
        let Ok(file) = own else {
            return ("own program".to_owned(), io::Error::from_raw_os_error(libc::ENOENT));
        };
        if let Err(error) = steps {
            return ("streams".to_owned(), error);
        }
        default_signals();
        let (argv, env) = (pointers(&self.argv), pointers(&[]));
        let argv: Vec<_> = std::iter::once(c"airloom-init".as_ptr()).chain(argv).collect();
        // SAFETY: the arrays end with a null pointer and outlive the call; the path is empty.
        unsafe {
            libc::execveat(
                file.as_raw_fd(),
                c"".as_ptr(),
                argv.as_ptr().cast(),
                env.as_ptr().cast(),
                libc::AT_EMPTY_PATH,
            );
        }
        ("own program".to_owned(), io::Error::last_os_error())
    }

    fn execute(&self) -> io::Error {
        let argv = pointers(&self.argv);
        let env = pointers(&self.env);
        let mut worst = io::Error::from_raw_os_error(libc::ENOENT);
        for path in &self.candidates {
            // SAFETY: the arrays end with a null pointer and outlive the call.
            unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENOTDIR) => {}
                // A script without `#!` is run by the shell, as usual.
                Some(libc::ENOEXEC) => return shell(path, &self.argv, &env),
                // In a folder without search permission, the existence of the file is unknown.
                Some(libc::EACCES) if Path::new(&*path.to_string_lossy()).exists() => worst = error,
                Some(libc::EACCES) => {}
                _ => return error,
            }
        }
        worst
    }
}

/// Makes the descriptors 0, 1, 2 and so on of a process that is about to execute a program.
fn take_places(streams: &[OwnedFd]) -> io::Result<()> {
    let count = i32::try_from(streams.len()).map_err(io::Error::other)?;
    let mut aside = Vec::with_capacity(streams.len());
    for stream in streams {
        // Above all targets, so that none is overwritten before it is duplicated.
        // SAFETY: no pointers are passed.
        aside.push(check(unsafe { libc::fcntl(stream.as_raw_fd(), libc::F_DUPFD_CLOEXEC, count) })?);
    }
    for (stream, number) in aside.into_iter().zip(0..) {
        let stream = i32::try_from(stream).map_err(io::Error::other)?;
        // SAFETY: both are descriptors of this process, which is about to become another.
        check(unsafe { libc::dup2(stream, number) })?;
    }
    Ok(())
}

fn shell(path: &CStr, argv: &[CString], env: &[*const libc::c_char]) -> io::Error {
    let mut words = vec![c"/bin/sh".as_ptr(), path.as_ptr()];
    words.extend(argv.iter().skip(1).map(|word| word.as_ptr()));
    words.push(std::ptr::null());
    // SAFETY: the arrays end with a null pointer and outlive the call.
    unsafe { libc::execve(c"/bin/sh".as_ptr(), words.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

/// Candidate paths of a program: its own path if the name contains one, else each folder of `PATH`.
fn candidates(name: &str, path: Option<&str>) -> Vec<String> {
    if name.contains('/') {
        return vec![name.to_owned()];
    }
    path.unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        .split(':')
        .map(|folder| if folder.is_empty() { format!("./{name}") } else { format!("{folder}/{name}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs::File;
    use std::os::fd::OwnedFd;

    use super::{candidates, start};
    use crate::credentials::Rights;
    use crate::message::Start;

    fn wish(argv: &[&str], folder: &str) -> Start {
        Start {
            id: 1,
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            env: BTreeMap::new(),
            folder: folder.to_owned(),
            tty: false,
            size: None,
            merged: false,
            own: false,
        }
    }

    fn streams() -> [OwnedFd; 3] {
        [(); 3].map(|()| File::open("/dev/null").unwrap().into())
    }

    #[test]
    fn a_program_is_looked_for_along_the_path() {
        assert_eq!(candidates("a", Some("/x::/y")), ["/x/a", "./a", "/y/a"]);
        assert_eq!(candidates("./a", Some("/x")), ["./a"]);
    }

    #[test]
    fn what_cannot_run_says_which_step_failed() {
        let (step, error) = start(&wish(&["no-such-program"], "/"), &streams(), &Rights::All).unwrap_err();
        assert_eq!((step.as_str(), error.raw_os_error()), ("no-such-program", Some(libc::ENOENT)));
        let (step, error) = start(&wish(&["/etc/passwd"], "/"), &streams(), &Rights::All).unwrap_err();
        assert_eq!((step.as_str(), error.raw_os_error()), ("/etc/passwd", Some(libc::EACCES)));
        let (step, _) = start(&wish(&["true"], "/no/such/folder"), &streams(), &Rights::All).unwrap_err();
        assert!(step.contains("/no/such/folder"));
        assert!(start(&wish(&[], "/"), &streams(), &Rights::All).is_err());
    }

    #[test]
    fn a_program_runs() {
        let pid = start(&wish(&["true"], "/"), &streams(), &Rights::All).unwrap();
        let mut status = 0;
        // SAFETY: the buffer outlives the call.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0);
    }
}
