//! Init of a guest, or of a part of one: sets up its file system and network, starts its programs,
//! and communicates with the node init over a character device.
//!
//! It runs from the guest kernel's initramfs. Errors that it cannot report on the channel go to the
//! console, which the host records.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use airloom_netns as nodes;

use crate::control_socket::{self, ControlSocket};
use crate::frame::Kind;
use crate::guest_channel::{Arrived, GuestChannel};
use crate::message::{Order, PROTOCOL, Report, Root, Start, World};
use crate::mounts::{bind, folders, mount};
use crate::programs::Programs;
use crate::system::{self, check};
use crate::{mount_namespace, proc, radios, terminal};

/// Maximum time until the channel's device appears.
const APPEARING: Duration = Duration::from_secs(10);
/// Mount point of the guest's root during set-up.
const ROOT: &str = "/root";
/// Folder of the initramfs with the modules that are loaded first.
const EARLY: &str = "/early";

/// Serves the channel at a device until the guest ends, then powers the machine off.
pub fn serve(device: &str) -> ! {
    if let Err(error) = whole(device).and_then(|mut guest| guest.serve()) {
        eprintln!("airloom-init: {error}");
    }
    // SAFETY: no pointers are passed. What the guest wrote is in memory and goes with it.
    unsafe {
        libc::sync();
        libc::reboot(libc::RB_POWER_OFF);
        libc::_exit(1)
    }
}

/// Serves one of several nodes in this guest, with standard input and output as its channel: the
/// node is a set of namespaces of the guest's kernel, which end with the channel.
pub fn part() -> io::Result<ExitCode> {
    let beyond = File::open("/proc/self/ns/net")?;
    // SAFETY: the caller passes the channel as these descriptors; nothing else here uses them.
    let (from, to) = unsafe { (OwnedFd::from_raw_fd(0), OwnedFd::from_raw_fd(1)) };
    let namespaces =
        libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC | libc::CLONE_NEWNET;
    let pid = system::child_in(namespaces, None)?;
    if pid != 0 {
        drop((from, to));
        return Ok(ExitCode::from(system::end_of(pid)?));
    }
    system::die_with_parent()?;
    mount_namespace::unshare()?;
    Guest::new(GuestChannel::to_host(from, to)?, Some(beyond)).serve()?;
    Ok(ExitCode::SUCCESS)
}

/// Sets up a whole guest: this process is the init of its kernel.
fn whole(device: &str) -> io::Result<Guest> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        folders(Path::new(place))?;
        mount(Some(kind), place, Some(kind), 0, None)?;
    }
    load_early()?;
    let channel = OwnedFd::from(wait_for(Path::new(device))?);
    // A device that is not a terminal passes every octet anyway.
    let _ = terminal::raw(channel.as_raw_fd());
    Ok(Guest::new(GuestChannel::to_host(channel.try_clone()?, channel)?, None))
}

/// A guest, or a part of one.
struct Guest {
    channel: GuestChannel,
    /// For a part of a guest: the network namespace in which the kernel creates its interfaces.
    beyond: Option<File>,
    /// The node's control socket, once the guest has been set up.
    control: Option<ControlSocket>,
    programs: Programs,
    /// End reports of programs with unread output.
    held: Vec<(u64, Report)>,
    /// Terminals of programs, by the program's number.
    terminals: Vec<(u64, OwnedFd)>,
}

impl Guest {
    fn new(channel: GuestChannel, beyond: Option<File>) -> Self {
        let (programs, held, terminals) = (Programs::default(), Vec::new(), Vec::new());
        Self { channel, beyond, control: None, programs, held, terminals }
    }

    fn serve(&mut self) -> io::Result<()> {
        let children = system::children()?;
        self.channel.send(&Report::Hello { protocol: PROTOCOL })?;
        loop {
            let control = self.control.as_ref().filter(|_| self.channel.connections() < control_socket::MOST);
            // poll(2) ignores a negative descriptor.
            let clients = control.map_or(system::to_read(-1), ControlSocket::interest);
            let mut entries = vec![system::to_read(children.as_raw_fd()), clients];
            entries.extend(self.channel.interests());
            system::poll(&mut entries, self.programs.left())?;
            if entries[0].revents != 0 {
                system::drain(&children);
            }
            if !self.channel.serve(&entries[2..])? {
                return Ok(());
            }
            if entries[1].revents != 0 {
                self.accept()?;
            }
            while let Some(one) = self.channel.next()? {
                match one {
                    Arrived::Message(body) => self.execute(serde_json::from_slice(&body)?)?,
                    Arrived::Size(program, size) => {
                        if let Some((_, shown)) = self.terminals.iter().find(|(id, _)| *id == program) {
                            terminal::set_size(shown, size)?;
                        }
                    }
                }
            }
            self.held.extend(self.programs.reap());
            self.release()?;
            if self.programs.left().is_some_and(|left| left == Duration::ZERO || no_process_left()) {
                return Ok(());
            }
        }
    }

    /// Accepts a connection to the control socket and joins it with the controller.
    fn accept(&mut self) -> io::Result<()> {
        let Some((id, reader, writer)) = self.control.as_mut().map_or(Ok(None), ControlSocket::accept)?
        else {
            return Ok(());
        };
        self.channel.send(&Report::Connection { id })?;
        self.channel.connect(id, (Kind::Request, reader), (Kind::Answer, writer));
        Ok(())
    }

    /// Reports the ends of programs whose output has all been sent.
    fn release(&mut self) -> io::Result<()> {
        for (id, report) in std::mem::take(&mut self.held) {
            if self.channel.drain(id)? {
                self.channel.forget_input(id);
                self.terminals.retain(|(program, _)| *program != id);
                self.channel.send(&report)?;
            } else {
                self.held.push((id, report));
            }
        }
        Ok(())
    }

    fn execute(&mut self, order: Order) -> io::Result<()> {
        let report = match order {
            Order::World(world) => Some(match make(&world, self.beyond.as_ref()) {
                Ok((notes, control)) => {
                    self.control = Some(control);
                    Report::Ready { notes }
                }
                Err(why) => Report::Broken { why },
            }),
            Order::Start(start) => Some(self.start(&start)?),
            order => self.programs.execute(&order),
        };
        report.map_or(Ok(()), |report| self.channel.send(&report))
    }

    fn start(&mut self, start: &Start) -> io::Result<Report> {
        let streams = if let Some(size) = start.size {
            let (shown, program) = terminal::open(size)?;
            self.channel.sink(Kind::Input, start.id, shown.try_clone()?);
            self.channel.source(Kind::Output, start.id, shown.try_clone()?);
            self.terminals.push((start.id, shown));
            vec![program.try_clone()?, program.try_clone()?, program]
        } else {
            let (input, feed) = system::pipe()?;
            let (shown, output) = system::pipe()?;
            self.channel.sink(Kind::Input, start.id, feed);
            self.channel.source(Kind::Output, start.id, shown);
            let error = if start.merged {
                output.try_clone()?
            } else {
                let (shown, error) = system::pipe()?;
                self.channel.source(Kind::Error, start.id, shown);
                error
            };
            vec![input, output, error]
        };
        let report = self.programs.start(start, &streams);
        if matches!(report, Report::Refused { .. }) {
            self.channel.forget(start.id);
            self.terminals.retain(|(program, _)| *program != start.id);
        }
        Ok(report)
    }
}

/// Sets up the guest; returns the features that its kernel lacks and the node's control socket, or
/// the reason of the failure.
fn make(world: &World, beyond: Option<&File>) -> Result<(Vec<String>, ControlSocket), String> {
    match (&world.root, beyond) {
        (Root::Part, Some(beyond)) => {
            nodes::move_here(&world.network, beyond.as_fd(), APPEARING).map_err(|error| error.to_string())?;
        }
        (root, None) => {
            make_root(world, root)?;
            if let Some(stream) = &world.radios {
                let device = wait_for(Path::new(&stream.device))
                    .map_err(|error| format!("{}: {error}", stream.device))?;
                radios::start(stream.count, device)?;
            }
        }
        (_, Some(_)) => return Err("a part of a guest has the guest's root file system".to_owned()),
    }
    let mut notes = Vec::new();
    mount_namespace::set_up(&world.name, &world.files, &world.visible, &[])?;
    proc::cover(&mut notes).map_err(|error| format!("/proc: {error}"))?;
    nodes::configure_here(&world.network).map_err(|error| error.to_string())?;
    if beyond.is_none() {
        wait_for_clock();
    }
    Ok((notes, ControlSocket::open().map_err(|error| format!("the node's control socket: {error}"))?))
}

/// Waits until the clock of a new kernel, which begins with 0, shows a second. Programs take a time of
/// less for none: ping of iputils then ignores its interval.
fn wait_for_clock() {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicRaw);
    if let (0, Ok(nanos)) = (time.tv_sec, time.tv_nsec.try_into()) {
        std::thread::sleep(Duration::from_secs(1) - Duration::from_nanos(nanos));
    }
}

/// Assembles the root file system of a whole guest and changes to it.
fn make_root(world: &World, root: &Root) -> Result<(), String> {
    let at = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| format!("{what}: {error}")
    };
    folders(Path::new(ROOT)).map_err(at(ROOT))?;
    match root {
        Root::Part => return Err("a guest of its own is no part of another".to_owned()),
        Root::Memory => {
            load(world, "")?;
            bind("/", ROOT).map_err(at(ROOT))?;
        }
        Root::Hostfs { folder } => {
            folders(Path::new("/lower")).map_err(at("/lower"))?;
            mount(Some("none"), "/lower", Some("hostfs"), libc::MS_RDONLY, Some(folder))
                .map_err(at("the host's files (hostfs)"))?;
            load(world, "/lower")?;
            layer()?;
        }
        Root::Shared { tag } => {
            folders(Path::new("/lower")).map_err(at("/lower"))?;
            // Large requests: each one costs an exit from the virtual machine.
            let options = "trans=virtio,version=9p2000.L,msize=512000,cache=loose";
            mount(Some(tag), "/lower", Some("9p"), libc::MS_RDONLY, Some(options))
                .map_err(at("the host's files (9P)"))?;
            load(world, "/lower")?;
            layer()?;
        }
        Root::Disk { device, filesystem, layer: layered } => {
            let (target, flags) = if *layered { ("/lower", libc::MS_RDONLY) } else { (ROOT, 0) };
            load(world, "")?;
            folders(Path::new(target)).map_err(at(target))?;
            wait_for(Path::new(device)).map_err(at(device))?;
            mount(Some(device), target, Some(filesystem), flags, None)
                .map_err(at(&format!("{device} as {filesystem}")))?;
            if *layered {
                layer()?;
            }
        }
    }
    enter()?;
    if let Some(folder) = &world.module_folder {
        // Programs that load modules look for them here.
        folders(Path::new("/lib/modules")).map_err(at("/lib/modules"))?;
        bind(folder, "/lib/modules").map_err(at("/lib/modules"))?;
    }
    Ok(())
}

/// Mounts a writable overlay in memory over /lower.
fn layer() -> Result<(), String> {
    let fail = |error: io::Error| format!("a layer over the root file system: {error}");
    folders(Path::new("/layer")).map_err(fail)?;
    mount(Some("tmpfs"), "/layer", Some("tmpfs"), 0, None).map_err(fail)?;
    for part in ["/layer/upper", "/layer/work"] {
        folders(Path::new(part)).map_err(fail)?;
    }
    let layers = "lowerdir=/lower,upperdir=/layer/upper,workdir=/layer/work";
    mount(Some("overlay"), ROOT, Some("overlay"), 0, Some(layers)).map_err(fail)
}

/// Makes [`ROOT`] the root, with proc, devtmpfs and devpts mounted in it.
fn enter() -> Result<(), String> {
    let at = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
    for (kind, place) in [("proc", "proc"), ("devtmpfs", "dev")] {
        let place = format!("{ROOT}/{place}");
        folders(Path::new(&place)).map_err(at(kind))?;
        mount(Some(kind), &place, Some(kind), 0, None).map_err(at(kind))?;
    }
    for (place, kind) in [("dev/pts", Some("devpts")), ("dev/shm", None), ("sys", None), ("tmp", None)] {
        let place = format!("{ROOT}/{place}");
        folders(Path::new(&place)).map_err(at("folders"))?;
        if kind.is_some() {
            mount(kind, &place, kind, 0, Some("ptmxmode=666")).map_err(at("devpts"))?;
        }
    }
    // SAFETY: the strings are constants.
    let changed = unsafe {
        check(libc::chdir(c"/root".as_ptr()))
            .and_then(|_| check(libc::chroot(c".".as_ptr())))
            .and_then(|_| check(libc::chdir(c"/".as_ptr())))
    };
    changed.map(drop).map_err(at("the root file system"))
}

/// Loads the modules that the root and the devices need: the files below [`EARLY`], in the order of
/// their names, which are `NUMBER-MODULE`.
fn load_early() -> io::Result<()> {
    let mut paths: Vec<_> =
        fs::read_dir(EARLY).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let line = fs::read_to_string("/proc/cmdline")?;
    for path in paths {
        let name =
            path.file_name().and_then(|name| name.to_str()?.split_once('-')).map_or("", |(_, name)| name);
        insert(&File::open(&path)?, &parameters(&line, name))
            .map_err(|error| io::Error::other(format!("kernel module {}: {error}", path.display())))?;
    }
    Ok(())
}

/// The parameters of a module on the kernel's command line (`MODULE.NAME=VALUE`). The kernel itself
/// gives them only to what is built into it.
fn parameters(line: &str, module: &str) -> String {
    let words = line.split_whitespace().take_while(|word| *word != "--");
    let own = words.filter_map(|word| word.strip_prefix(module)?.strip_prefix('.'));
    own.collect::<Vec<_>>().join(" ")
}

/// Loads one module; a module that is already loaded is not an error.
fn insert(file: &File, parameters: &str) -> io::Result<()> {
    let parameters = system::text(parameters)?;
    // SAFETY: the string outlives the call.
    let answer =
        check(unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) });
    match answer {
        Err(error) if error.raw_os_error() != Some(libc::EEXIST) => Err(error),
        _ => Ok(()),
    }
}

/// Loads the required kernel modules, from the initramfs or from `below`.
fn load(world: &World, below: &str) -> Result<(), String> {
    let mut loaded = BTreeSet::new();
    for path in world.modules.iter().filter(|path| loaded.insert(path.as_str())) {
        let fail = |error: io::Error| format!("kernel module {path}: {error}");
        let file = File::open(path).or_else(|_| File::open(format!("{below}{path}"))).map_err(fail)?;
        insert(&file, "").map_err(fail)?;
    }
    Ok(())
}

/// Opens a device and waits for it to appear.
fn wait_for(device: &Path) -> io::Result<File> {
    let until = Instant::now() + APPEARING;
    loop {
        let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(device);
        match opened {
            Err(error) if Instant::now() < until && error.raw_os_error() != Some(libc::EACCES) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

/// True if no program is left; the kernel's own processes have no command line.
fn no_process_left() -> bool {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| pid != 1)
        .all(|pid| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn a_module_gets_its_parameters_from_the_command_line() {
        let line = "quiet mac80211_hwsim.radios=0 mac80211.a=1 mac80211_hwsim.b=2 -- mac80211_hwsim.c=3";
        assert_eq!(parameters(line, "mac80211_hwsim"), "radios=0 b=2");
        assert_eq!(parameters(line, "mac80211"), "a=1");
        assert_eq!(parameters(line, "9p"), "");
    }
}
