//! Credentials of a node's programs: user, groups and capabilities.

use std::fs;
use std::io;

use crate::seccomp;
use crate::system::check;

/// Capabilities that programs of an image keep (`capabilities(7)`): the default set of container
/// engines, without the creation of device files and with administration of the node's own network.
const KEPT: [u32; 14] = [
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    8,  // CAP_SETPCAP
    10, // CAP_NET_BIND_SERVICE
    12, // CAP_NET_ADMIN
    13, // CAP_NET_RAW
    18, // CAP_SYS_CHROOT
    29, // CAP_AUDIT_WRITE
    31, // CAP_SETFCAP
];

/// Capabilities that affect the whole machine, or give access to the node's init: programs that run
/// on the host's files do not get them.
const MACHINES: [u32; 5] = [
    17, // CAP_SYS_RAWIO
    19, // CAP_SYS_PTRACE
    22, // CAP_SYS_BOOT
    23, // CAP_SYS_NICE
    25, // CAP_SYS_TIME
];
const LAST_CAPABILITY: u32 = 63;

/// Privileges of the programs of a node or guest.
#[derive(Debug, Default)]
pub enum Rights {
    /// All privileges of this process: used in a guest, which has its own kernel.
    #[default]
    All,
    /// All privileges that do not affect the machine: a node on the host's kernel and files.
    Node,
    /// The user of an image, with the capabilities that container engines grant.
    Image(Credentials),
}

impl Rights {
    /// The `HOME=` entry of the environment, if the programs get one.
    pub fn home_in_env(&self) -> Option<String> {
        match self {
            Self::Image(credentials) => Some(format!("HOME={}", credentials.home)),
            _ => None,
        }
    }

    /// Restricts this process and every program that it executes.
    pub fn enter(&self) -> io::Result<()> {
        match self {
            Self::All => Ok(()),
            Self::Node => {
                drop_from_bounding_set(|number| MACHINES.contains(&number))?;
                // Within these limits no capability is needed, so the limits are zero.
                none_of(libc::RLIMIT_RTPRIO)?;
                none_of(libc::RLIMIT_NICE)
            }
            Self::Image(credentials) => credentials.enter(),
        }
    }
}

/// Drops capabilities from the bounding set of this process: programs that it executes
/// as root do not regain them.
pub fn drop_from_bounding_set(is_dropped: impl Fn(u32) -> bool) -> io::Result<()> {
    for number in (0..=LAST_CAPABILITY).filter(|&number| is_dropped(number)) {
        // SAFETY: no pointers are passed.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), 0, 0, 0) }) {
            // Above the last capability of this kernel.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
            other => other?,
        };
    }
    Ok(())
}

fn none_of(resource: libc::__rlimit_resource_t) -> io::Result<()> {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit outlives the call.
    check(unsafe { libc::setrlimit(resource, &raw const none) }).map(drop)
}

/// True if the user namespace of this process maps both this user and this group number.
pub fn is_mapped(uid: u32, gid: u32) -> bool {
    let mapped = |file: &str, wanted: u32| {
        fs::read_to_string(file).unwrap_or_default().lines().any(|line| {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            matches!(numbers[..], [first, _, count] if (first..first + count).contains(&u64::from(wanted)))
        })
    };
    mapped("/proc/self/uid_map", uid) && mapped("/proc/self/gid_map", gid)
}

/// The user and groups of a node's programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    home: String,
}

impl Credentials {
    /// Resolves `user[:group]` in the root file system of this process.
    pub fn of(user: &str) -> Result<Self, String> {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::from_texts(user, &read("/etc/passwd"), &read("/etc/group"))
    }

    fn from_texts(said: &str, passwd: &str, group: &str) -> Result<Self, String> {
        let (user, wanted) = said.split_once(':').map_or((said, None), |(user, group)| (user, Some(group)));
        let user = if user.is_empty() { "0" } else { user };
        let entry = rows(passwd).find(|row| row.len() > 5 && (row[0] == user || row[2] == user));
        let number = |text: &str| text.parse::<u32>().ok();
        let uid = entry
            .as_ref()
            .map_or_else(|| number(user), |row| number(row[2]))
            .ok_or_else(|| format!("the image's user {user:?} is not in its /etc/passwd"))?;
        let gid = match wanted.filter(|group| !group.is_empty()) {
            None => entry.as_ref().and_then(|row| number(row[3])).unwrap_or(0),
            Some(wanted) => rows(group)
                .find(|row| row.len() > 2 && row[0] == wanted)
                .map_or_else(|| number(wanted), |row| number(row[2]))
                .ok_or_else(|| format!("the image's group {wanted:?} is not in its /etc/group"))?,
        };
        let name = entry.as_ref().map(|row| row[0]);
        let member = |row: &Vec<&str>| row.len() > 3 && row[3].split(',').any(|one| Some(one) == name);
        let groups = match wanted {
            Some(_) => vec![gid],
            None => rows(group).filter(member).filter_map(|row| number(row[2])).chain([gid]).collect(),
        };
        let home = entry.map_or("/", |row| row[5]);
        Ok(Self { uid, gid, groups, home: home.to_owned() })
    }

    /// Falls back to root, with a note, if this user namespace does not map the user.
    pub fn or_root(self, notes: &mut Vec<String>) -> Self {
        if is_mapped(self.uid, self.gid) {
            return self;
        }
        notes.push(format!(
            "without root there is no user {} here: its programs run as root of the node",
            self.uid
        ));
        Self { home: self.home, ..Self::default() }
    }

    fn enter(&self) -> io::Result<()> {
        seccomp::refuse_control_group_namespaces()?;
        drop_from_bounding_set(|number| !KEPT.contains(&number))?;
        // SAFETY: the list outlives the call and its length is given.
        let grouped = check(unsafe { libc::setgroups(self.groups.len(), self.groups.as_ptr()) });
        // In the user namespace of an unprivileged user, setgroups(2) is not permitted.
        if let Err(error) = grouped
            && (self.uid != 0 || error.raw_os_error() != Some(libc::EPERM))
        {
            return Err(error);
        }
        // SAFETY: no pointers are passed.
        check(unsafe { libc::setresgid(self.gid, self.gid, self.gid) })?;
        // SAFETY: no pointers are passed.
        check(unsafe { libc::setresuid(self.uid, self.uid, self.uid) })?;
        if self.uid == 0 { keep_capabilities() } else { Ok(()) }
    }
}

/// Reduces the effective and permitted capabilities to [`KEPT`]; the inheritable set becomes empty.
fn keep_capabilities() -> io::Result<()> {
    let kept = KEPT.iter().fold(0_u32, |bits, number| bits | 1 << number);
    // The kernel's `__user_cap_header_struct`, version 3, for this process, and two
    // `__user_cap_data_struct`: effective, permitted, inheritable; first the low 32 bits.
    let header = [0x2008_0522_u32, 0];
    let rights = [[kept, kept, 0_u32], [0, 0, 0]];
    // SAFETY: both outlive the call and have the kernel's layout.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), rights.as_ptr()) }).map(drop)
}

fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

#[cfg(test)]
mod tests {
    use super::Credentials;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/srv/app:/bin/sh\nbroken\n";
    const GROUP: &str = "root:x:0:\napp:x:1001:\nwheel:x:10:root,app\nvideo:x:44:app\n";

    fn credentials(said: &str) -> Result<Credentials, String> {
        Credentials::from_texts(said, PASSWD, GROUP)
    }

    #[test]
    fn a_user_is_a_name_or_a_number_with_or_without_a_group() {
        let app =
            Credentials { uid: 1000, gid: 1001, groups: vec![10, 44, 1001], home: "/srv/app".to_owned() };
        assert_eq!(credentials("app"), Ok(app));
        assert_eq!(credentials("1000").unwrap().groups, [10, 44, 1001]);
        let wheel = Credentials { uid: 1000, gid: 10, groups: vec![10], home: "/srv/app".to_owned() };
        assert_eq!(credentials("app:wheel"), Ok(wheel));
        assert_eq!(credentials("").unwrap().home, "/root");
        let stranger = Credentials { uid: 7, gid: 8, groups: vec![8], home: "/".to_owned() };
        assert_eq!(credentials("7:8"), Ok(stranger));
    }

    #[test]
    fn who_is_not_there_is_named() {
        assert_eq!(
            credentials("nobody").unwrap_err(),
            "the image's user \"nobody\" is not in its /etc/passwd"
        );
        assert_eq!(
            credentials("app:none").unwrap_err(),
            "the image's group \"none\" is not in its /etc/group"
        );
        assert!(Credentials::from_texts("", "", "").is_ok());
    }
}
