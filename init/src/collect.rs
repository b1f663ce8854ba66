//! Writes files of a node to standard output, for the results of a run.
//!
//! The stream is a sequence of records: a letter, the length of what follows in four octets
//! (little-endian), and that.
//!
//! | letter | content |
//! | --- | --- |
//! | `F` | absolute path of a file that begins |
//! | `D` | octets of it |
//! | `N` | a note in words: what was left out, and why |
//! | `Z` | nothing: the end of the stream |
//!
//! A pattern is an absolute path, whose parts may contain `*`, `?` and `[...]` as in the shell; of a
//! folder everything below is written. Only regular files are, and links in a folder, or that a pattern
//! matches, are not followed.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Greatest depth of a folder below the one that a pattern names.
const DEEPEST: u32 = 64;
/// Maximum number of entries of folders that are looked at.
const MOST_ENTRIES: usize = 1 << 20;
/// Octets of one record of data.
const CHUNK: usize = 32 << 10;

/// Limits of what is written.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Octets of all files.
    pub octets: u64,
    /// Number of files.
    pub files: u64,
}

/// Writes the files that match patterns.
///
/// # Errors
/// If the stream cannot be written.
pub fn run(patterns: &[&str], limits: Limits, out: &mut impl Write) -> io::Result<()> {
    let mut writer = Writer { out, left: limits, entries: 0, full: false };
    for &pattern in patterns {
        writer.pattern(pattern)?;
    }
    writer.record(b'Z', &[])?;
    writer.out.flush()
}

struct Writer<'a, W> {
    out: &'a mut W,
    left: Limits,
    entries: usize,
    /// A limit was reached, and a note says so.
    full: bool,
}

impl<W: Write> Writer<'_, W> {
    fn record(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        self.out.write_all(&[kind])?;
        self.out.write_all(&length.to_le_bytes())?;
        self.out.write_all(content)
    }

    fn note(&mut self, path: &Path, why: &str) -> io::Result<()> {
        let text = format!("{}: {why}", path.display());
        self.record(b'N', text.as_bytes())
    }

    fn limit(&mut self, path: &Path, what: &str) -> io::Result<()> {
        if !std::mem::replace(&mut self.full, true) {
            self.note(path, &format!("this and what follows is left out: {what}"))?;
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> io::Result<()> {
        let mut found = vec![PathBuf::from("/")];
        for part in pattern.split('/').filter(|part| !part.is_empty()) {
            if !part.contains(['*', '?', '[']) {
                found.iter_mut().for_each(|path| path.push(part));
                continue;
            }
            let mut next = Vec::new();
            for folder in found {
                for name in self.names(&folder) {
                    let hidden = name.as_bytes().first() == Some(&b'.') && !part.starts_with('.');
                    if !hidden && matches(part.as_bytes(), name.as_bytes()) {
                        next.push(folder.join(name));
                    }
                }
            }
            found = next;
        }
        found.retain(|path| fs::symlink_metadata(path).is_ok());
        if found.is_empty() {
            return self.note(Path::new(pattern), "there is no such file");
        }
        for path in found {
            self.path(&path, 0)?;
        }
        Ok(())
    }

    /// The entries of a folder in order; none if it cannot be read.
    fn names(&mut self, folder: &Path) -> Vec<OsString> {
        let room = MOST_ENTRIES.saturating_sub(self.entries);
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(room);
        let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
        self.entries += names.len();
        names.sort_unstable();
        names
    }

    fn path(&mut self, path: &Path, depth: u32) -> io::Result<()> {
        if self.full {
            return Ok(());
        }
        let kind = match fs::symlink_metadata(path) {
            Ok(about) => about.file_type(),
            Err(error) => return self.note(path, &error.to_string()),
        };
        if kind.is_dir() {
            if depth == DEEPEST || self.entries >= MOST_ENTRIES {
                return self.note(path, "this folder is left out: too many below it");
            }
            if let Err(error) = fs::read_dir(path) {
                return self.note(path, &error.to_string());
            }
            for name in self.names(path) {
                self.path(&path.join(name), depth + 1)?;
            }
            return Ok(());
        }
        if kind.is_file() {
            return self.file(path);
        }
        let what = if kind.is_symlink() { "a link is" } else { "devices, pipes and sockets are" };
        self.note(path, &format!("{what} not collected"))
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path);
        let mut file = match opened.and_then(|file| Ok((file.metadata()?.is_file(), file))) {
            Ok((true, file)) => file,
            Ok((false, _)) => return self.note(path, "it is no file any more"),
            Err(error) => return self.note(path, &error.to_string()),
        };
        if self.left.files == 0 {
            return self.limit(path, "too many files");
        }
        self.left.files -= 1;
        self.record(b'F', path.as_os_str().as_bytes())?;
        let mut buffer = vec![0; CHUNK];
        loop {
            let octets = match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(octets) => octets,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.note(path, &format!("the rest is missing: {error}")),
            };
            let taken = octets.min(usize::try_from(self.left.octets).unwrap_or(usize::MAX));
            self.left.octets -= taken as u64;
            self.record(b'D', &buffer[..taken])?;
            if taken < octets {
                return self.limit(path, "too many octets");
            }
        }
    }
}

/// Whether a name matches a pattern with `*`, `?` and `[...]`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut place) = (0, 0);
    // Where the last star is, and the part of the name that it takes.
    let mut star: Option<(usize, usize)> = None;
    while place < name.len() {
        let one = one_of(&pattern[at..], name[place]);
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, place));
            at += 1;
        } else if let Some(length) = one {
            (at, place) = (at + length, place + 1);
        } else if let Some((after, taken)) = star {
            star = Some((after, taken + 1));
            (at, place) = (after, taken + 1);
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|&octet| octet == b'*')
}

/// Length of the pattern's first element if it matches this octet.
fn one_of(pattern: &[u8], octet: u8) -> Option<usize> {
    match pattern.first()? {
        b'?' => Some(1),
        b'[' => match set(pattern) {
            Some((length, members, inverted)) => (contains(members, octet) != inverted).then_some(length),
            None => (octet == b'[').then_some(1),
        },
        &first => (first == octet && first != b'*').then_some(1),
    }
}

/// Length, members and inversion of the set at the beginning of a pattern.
fn set(pattern: &[u8]) -> Option<(usize, &[u8], bool)> {
    let inverted = matches!(pattern.get(1), Some(b'!' | b'^'));
    let begin = 1 + usize::from(inverted);
    // A bracket that comes first is a member.
    let end = begin + 1 + pattern.get(begin + 1..)?.iter().position(|&octet| octet == b']')?;
    Some((end + 1, &pattern[begin..end], inverted))
}

fn contains(members: &[u8], octet: u8) -> bool {
    let mut rest = members;
    while let [first, after @ ..] = rest {
        rest = match after {
            [b'-', last, more @ ..] => {
                if (*first..=*last).contains(&octet) {
                    return true;
                }
                more
            }
            _ if *first == octet => return true,
            _ => after,
        };
    }
    false
}

/// The number that a word of the command line gives; 0 for another word.
pub fn number(word: &str) -> u64 {
    word.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Limits, matches, run};
    use std::fs;
    use std::os::unix::fs::symlink;

    const LIMITS: Limits = Limits { octets: 1 << 20, files: 100 };

    /// The records of a stream: letter and content.
    fn records(patterns: &[&str], limits: Limits) -> Vec<(char, String)> {
        let mut stream = Vec::new();
        run(patterns, limits, &mut stream).unwrap();
        let mut rest = &stream[..];
        let mut found = Vec::new();
        while let [kind, a, b, c, d, after @ ..] = rest {
            let length = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
            found.push((char::from(*kind), String::from_utf8_lossy(&after[..length]).into_owned()));
            rest = &after[length..];
        }
        assert!(rest.is_empty());
        assert_eq!(found.pop(), Some(('Z', String::new())));
        found
    }

    #[test]
    fn names_match_as_in_the_shell() {
        let yes =
            [("*.log", "a.log"), ("*", "x"), ("a?c", "abc"), ("[a-c]1", "b1"), ("[!a]", "b"), ("[", "[")];
        for (pattern, name) in yes.into_iter().chain([("a*b*c", "a-b-bc"), ("[]x]", "]"), ("**", "")]) {
            assert!(matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        for (pattern, name) in
            [("*.log", "a.logs"), ("a?c", "ac"), ("[a-c]1", "d1"), ("[!a]", "a"), ("", "x")]
        {
            assert!(!matches(pattern.as_bytes(), name.as_bytes()), "{pattern} {name}");
        }
        // Time that grows with the square at most.
        assert!(!matches(&b"*a".repeat(200), &b"a".repeat(199)));
    }

    #[test]
    fn files_and_folders_are_written_and_links_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        fs::create_dir(at("logs")).unwrap();
        fs::write(at("logs/b.log"), "two").unwrap();
        fs::write(at("logs/a.log"), "one").unwrap();
        fs::write(at("logs/.hidden"), "not matched by a star").unwrap();
        fs::write(at("empty"), "").unwrap();
        symlink("/etc/passwd", at("logs/link")).unwrap();
        let one = ('F', at("logs/a.log"));
        let expected = [
            one.clone(),
            ('D', "one".to_owned()),
            ('F', at("logs/b.log")),
            ('D', "two".to_owned()),
            ('N', format!("{}: a link is not collected", at("logs/link"))),
        ];
        assert_eq!(records(&[&at("logs/*")], LIMITS), expected);
        let whole = records(&[&at("logs")], LIMITS);
        assert_eq!(whole.len(), expected.len() + 2);
        assert_eq!(records(&[&at("l*s/[a]*")], LIMITS), expected[..2]);
        assert_eq!(records(&[&at("empty")], LIMITS), [('F', at("empty"))]);
        let missing = [('N', format!("{}: there is no such file", at("none*")))];
        assert_eq!(records(&[&at("none*")], LIMITS), missing);
        assert_eq!(records(&["/dev/null"], LIMITS)[0].0, 'N');
    }

    #[test]
    fn limits_end_the_stream_with_one_note() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            fs::write(folder.path().join(name), [b'x'; 40_000]).unwrap();
        }
        let all = folder.path().join("*").to_str().unwrap().to_owned();
        for limits in [Limits { octets: 50_000, ..LIMITS }, Limits { files: 1, ..LIMITS }] {
            let found = records(&[&all, &all], limits);
            let octets: usize =
                found.iter().filter(|(kind, _)| *kind == 'D').map(|(_, data)| data.len()).sum();
            assert_eq!(octets, if limits.files == 1 { 40_000 } else { 50_000 });
            let notes: Vec<_> = found.iter().filter(|(kind, _)| *kind == 'N').collect();
            assert_eq!(notes.len(), 1);
            assert!(notes[0].1.contains("left out"), "{notes:?}");
        }
    }
}
