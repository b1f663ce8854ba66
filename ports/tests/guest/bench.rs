//! An engine that serves a guest.

use std::os::unix::net::UnixListener;

use airloom_engine::settings::LinkSettings;
use airloom_ports::memory::{Inbox, Memory};
use airloom_ports::port::Port;
use airloom_ports::runtime::driver::Driver;
use airloom_ports::vhost::{DeviceConfig, Handling, Vhost};
use airloom_ports::world::World;

use super::{CARD, until};

/// An engine with a guest's port and a memory port of the test, joined by a link.
pub struct Bench {
    pub driver: Driver,
    pub path: std::path::PathBuf,
    /// Socket of the far end's guest.
    pub other: std::path::PathBuf,
    inbox: Inbox,
    _folder: Folder,
}

fn serve(path: &std::path::Path, handling: &Handling) -> Box<dyn Port> {
    let listener = UnixListener::bind(path).expect("a socket");
    Box::new(Vhost::serve(listener.into(), CARD, handling.clone()).expect("it listens"))
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Bench {
    pub fn new() -> Self {
        Self::with(&Handling::default())
    }

    /// With a device that handles its guest in this way.
    pub fn with(handling: &Handling) -> Self {
        Self::make(handling, false)
    }

    /// With a guest at the far end too.
    pub fn pair() -> Self {
        Self::make(&Handling::default(), true)
    }

    fn make(handling: &Handling, two: bool) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("airloom-vhost-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for the socket");
        let (path, other) = (folder.join("port"), folder.join("other"));
        let mut world = World::new(1);
        world.add("guest", false, serve(&path, handling)).expect("new");
        let inbox = Inbox::default();
        let far = if two { serve(&other, handling) } else { Box::new(Memory::new(&inbox)) };
        world.add("far", false, far).expect("new");
        let plain = LinkSettings::default();
        world.connect("wire", "guest", "far", &plain, &plain).expect("both ends are there");
        let driver = Driver::start(world).expect("the loop starts");
        Self { driver, path, other, inbox, _folder: Folder(folder) }
    }

    /// Sends a frame, or part of one, from the far end.
    pub fn offer(&self, octets: &[u8]) {
        let octets = octets.to_vec();
        let done = self.driver.ask(move |driven| {
            let far = driven.world.names.ports.id("far").expect("there");
            let now = driven.world.engine.now();
            driven.world.offer(far, now, &octets)
        });
        done.expect("it runs").expect("it fits");
    }

    /// Frames received at the far end, once there are `count`.
    pub fn far(&self, count: usize) -> Vec<Box<[u8]>> {
        let mut found = Vec::new();
        until(|| {
            found.extend(self.inbox.take().into_iter().map(|frame| frame.octets));
            found.len() >= count
        });
        found
    }

    /// Evaluates a function on the guest's port.
    pub fn port<T: Send + 'static>(&self, read: impl Fn(&Vhost<DeviceConfig>) -> T + Send + 'static) -> T {
        self.port_at(0, read)
    }

    /// Evaluates a function on the port with a number.
    pub fn port_at<T: Send + 'static>(
        &self,
        number: usize,
        read: impl Fn(&Vhost<DeviceConfig>) -> T + Send + 'static,
    ) -> T {
        let answer = self.driver.ask(move |driven| {
            let port = &*driven.world.edge.ports[number].port;
            read(port.as_any().downcast_ref().expect("a guest's port"))
        });
        answer.expect("it runs")
    }

    /// The reason of the disconnection, once it has occurred.
    pub fn cause(&self) -> String {
        let mut found = None;
        until(|| {
            found = self.port(|vhost| vhost.disconnect_reason().map(ToString::to_string));
            found.is_some()
        });
        found.expect("there is one")
    }
}
