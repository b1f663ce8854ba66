//! The calendar with guests that the test emulates: who runs when, and what becomes of a guest that
//! does not keep to the protocol.

use std::fs::File;
use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airloom_engine::settings::LinkSettings;
use airloom_engine::time::Instant;
use airloom_ports::error::Error;
use airloom_ports::memory::{Inbox, Memory};
use airloom_ports::virtual_time::protocol::{Message, OCTETS, Operation};
use airloom_ports::virtual_time::{
    Calendar, Pause, Prices, Processor, Scheduler, TIME_OF_DAY, Turns, Worked,
};
use airloom_ports::world::World;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

const LONG: Duration = Duration::from_secs(20);

/// A guest's side of the connection.
struct Guest {
    socket: UnixStream,
    sequence: u32,
    free_until: u64,
    now: u64,
    /// What came with the answer to its start.
    shared: Option<File>,
    uses_window: bool,
}

/// Offsets in the window (`kernel/patches/window.patch`).
const FREE_UNTIL: u64 = 8;
const CURRENT: u64 = 16;
const PLACE: u64 = 4096 + 128;
const LOG_USED: u64 = 12288;

impl Guest {
    fn connect(path: &std::path::Path) -> Self {
        let socket = UnixStream::connect(path).expect("the calendar listens");
        socket.set_read_timeout(Some(LONG)).expect("not zero");
        Self { socket, sequence: 0, free_until: 0, now: 0, shared: None, uses_window: false }
    }

    /// Sends its first message; returns its number, and keeps the first file that comes with that.
    fn start(&mut self, id: u64) -> u64 {
        self.sequence += 1;
        self.send(Operation::Start, self.sequence, id);
        let mut octets = [0; OCTETS];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let pieces = &mut [IoSliceMut::new(&mut octets)];
        let got = recvmsg(&self.socket, pieces, &mut ancillary, RecvFlags::empty()).expect("an answer");
        assert_eq!(got.bytes, OCTETS);
        let files = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        self.shared = files.flatten().next().map(File::from);
        Message::read(octets).expect("a known operation").time
    }

    fn load(&self, at: u64) -> u64 {
        let mut octets = [0; 8];
        self.shared.as_ref().expect("it has started").read_exact_at(&mut octets, at).expect("it is there");
        u64::from_ne_bytes(octets)
    }

    fn store(&self, at: u64, octets: &[u8]) {
        self.shared.as_ref().expect("it has started").write_all_at(octets, at).expect("there is room");
    }

    /// Uses its window from now on, as the kernel does at once after its start.
    fn use_window(&mut self) {
        self.store(PLACE, &1u32.to_ne_bytes());
        self.uses_window = true;
    }

    /// Moves its time as the kernel does with a window.
    fn move_in_window(&mut self, time: u64) -> Option<()> {
        if time >= self.load(FREE_UNTIL) {
            self.store(PLACE + 8, &time.to_ne_bytes());
            self.store(PLACE + 4, &1u32.to_ne_bytes());
            self.send(Operation::Wait, 0, u64::MAX);
            let run = self.receive()?;
            assert_eq!(run.operation, Operation::Run);
            self.store(PLACE + 4, &0u32.to_ne_bytes());
            assert!(run.time >= time.max(self.now));
            assert_eq!(self.load(CURRENT), run.time);
            self.now = run.time;
            return Some(());
        }
        self.now = time;
        self.store(CURRENT, &time.to_ne_bytes());
        Some(())
    }

    fn receive(&mut self) -> Option<Message> {
        let mut octets = [0; OCTETS];
        self.socket.read_exact(&mut octets).ok()?;
        Some(Message::read(octets).expect("a known operation"))
    }

    fn send(&mut self, operation: Operation, sequence: u32, time: u64) {
        let octets = Message { operation, sequence, time }.write();
        self.socket.write_all(&octets).expect("the calendar reads");
    }

    /// Sends a message and returns the time of its acknowledgment.
    fn ask(&mut self, operation: Operation, time: u64) -> u64 {
        self.sequence += 1;
        self.send(operation, self.sequence, time);
        let answer = self.receive().expect("an answer");
        assert_eq!((answer.operation, answer.sequence), (Operation::Ack, self.sequence));
        answer.time
    }

    /// Moves its time as the kernel does: without a message below the limit, else by a request.
    fn move_to(&mut self, time: u64) -> Option<()> {
        if self.uses_window {
            return self.move_in_window(time);
        }
        if time < self.free_until {
            self.now = time;
            return Some(());
        }
        self.ask(Operation::Request, time);
        self.free_until = 0;
        self.ask(Operation::Wait, u64::MAX);
        loop {
            let message = self.receive()?;
            self.send(Operation::Ack, message.sequence, 0);
            match message.operation {
                Operation::FreeUntil => self.free_until = message.time,
                Operation::Run => {
                    self.now = message.time;
                    return Some(());
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

type Log = Arc<Mutex<Vec<(u64, usize)>>>;

/// A calendar with guests, each of which is played on a thread of its own after its start.
fn calendar(plays: Vec<Box<dyn FnOnce(Guest) + Send>>) -> (Calendar, Vec<JoinHandle<()>>) {
    let mut calendar = Calendar::new(World::new(1));
    let mut threads = Vec::new();
    for (number, play) in plays.into_iter().enumerate() {
        let folder = std::env::temp_dir().join(format!(
            "airloom-virtual-{}-{:?}-{number}",
            std::process::id(),
            thread::current().id()
        ));
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join("time");
        let (time, console) = (
            UnixListener::bind(&path).expect("a socket"),
            UnixListener::bind(folder.join("console")).expect("a socket"),
        );
        let (wire, _) = UnixStream::pair().expect("sockets");
        let fds: [OwnedFd; 3] = [time.into(), console.into(), wire.into()];
        let [time, console, wire] = fds;
        calendar.add_guest(&format!("g{number}"), time, console, wire).expect("sockets");
        threads.push(thread::spawn(move || {
            let mut guest = Guest::connect(&path);
            std::fs::remove_dir_all(&folder).expect("it is there");
            assert_eq!(guest.start(number as u64 + 1), 1, "it is alone in its calendar");
            play(guest);
        }));
    }
    (calendar, threads)
}

/// A guest that wakes at a period and notes when.
fn ticking(number: usize, period: u64, log: &Log) -> Box<dyn FnOnce(Guest) + Send> {
    let log = Arc::clone(log);
    Box::new(move |mut guest| {
        for turn in 1.. {
            if guest.move_to(turn * period).is_none() {
                return;
            }
            log.lock().expect("no panic").push((guest.now, number));
        }
    })
}

fn until(calendar: &mut Calendar, time: u64) {
    while calendar.run(time, LONG).expect("good guests") != Pause::Reached {}
}

fn ticks(plain: bool) -> (Vec<(u64, usize)>, u64) {
    let log = Log::default();
    let periods = [30, 20, 10];
    let plays = periods.iter().enumerate().map(|(number, &period)| ticking(number, period, &log));
    let (mut calendar, threads) = calendar(plays.collect());
    calendar.plain = plain;
    until(&mut calendar, 601);
    let messages = calendar.counts.messages;
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let log = log.lock().expect("no panic").clone();
    (log, messages)
}

#[test]
fn the_earliest_runs_and_of_equal_times_the_first_guest() {
    let mut expected: Vec<(u64, usize)> = (1..=600)
        .flat_map(|time| [30, 20, 10].iter().enumerate().map(move |(number, period)| (time, number, *period)))
        .filter_map(|(time, number, period)| (time % period == 0).then_some((time, number)))
        .collect();
    expected.sort_unstable();
    assert_eq!(ticks(true).0, expected);
}

#[test]
fn windows_without_messages_change_nothing_but_their_number() {
    let log = Log::default();
    let alone = |plain| {
        let (mut calendar, threads) = calendar(vec![ticking(0, 10, &log), ticking(1, 1000, &log)]);
        calendar.plain = plain;
        until(&mut calendar, 5001);
        let messages = calendar.counts.messages;
        drop(calendar);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let mut log = log.lock().expect("no panic");
        (std::mem::take(&mut *log), messages)
    };
    let ((plain, all), (free, few)) = (alone(true), alone(false));
    assert_eq!(plain, free);
    assert!(10 * few < all, "{few} of {all}");
    assert_eq!(ticks(true).0, ticks(false).0);
}

#[test]
fn a_window_saves_all_messages_but_two_a_turn() {
    let played = |windows: bool| {
        let log = Log::default();
        let plays = [30, 20, 10].iter().enumerate().map(|(number, &period)| {
            let play = ticking(number, period, &log);
            Box::new(move |mut guest: Guest| {
                if windows {
                    guest.use_window();
                }
                play(guest);
            }) as Box<dyn FnOnce(Guest) + Send>
        });
        let (mut calendar, threads) = calendar(plays.collect());
        calendar.plain = !windows;
        until(&mut calendar, 601);
        let counts = calendar.counts;
        drop(calendar);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        (log.lock().expect("no panic").clone(), counts)
    };
    let ((steps, _), (windows, counts)) = (played(false), played(true));
    assert_eq!(steps, windows);
    // Each of the three guests waits once more than it is let run.
    assert_eq!(counts.messages, 2 * counts.runs + 3, "{counts:?}");
}

/// A guest that wakes at a period and notes when; a time that has passed meanwhile is one for now.
fn waking(number: usize, period: u64, windows: bool, log: &Log) -> Box<dyn FnOnce(Guest) + Send> {
    let log = Arc::clone(log);
    Box::new(move |mut guest| {
        if windows {
            guest.use_window();
        }
        for turn in 1.. {
            if guest.move_to((turn * period).max(guest.now)).is_none() {
                return;
            }
            log.lock().expect("no panic").push((guest.now, number));
        }
    })
}

/// When each of three guests that wake each 10 ns has acted; the first two take turns of 25 ns from 100 ns on.
fn in_turns(windows: bool, plain: bool) -> Vec<Vec<u64>> {
    let log = Log::default();
    let plays = (0..3).map(|number| waking(number, 10, windows, &log)).collect();
    let (mut calendar, threads) = calendar(plays);
    calendar.plain = plain;
    calendar.take_turns(Turns { guests: vec![0, 1], quantum: 25, phase: 0, spans: vec![(50, Some(150))] });
    until(&mut calendar, 50);
    calendar.begin().expect("good guests");
    until(&mut calendar, 251);
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let log = log.lock().expect("no panic");
    let of = |number| log.iter().filter(|one| one.1 == number).map(|one| one.0).collect();
    (0..3).map(of).collect()
}

#[test]
fn guests_that_take_turns_act_in_their_slots_and_catch_up_at_their_begin() {
    let regular = |from: u64, until: u64| (from / 10..=until / 10).map(|turn| 10 * turn);
    // Their turns are taken from 100 to 200 ns: 0 and 50 ns of those are the begins of the first one's.
    let first: Vec<u64> = regular(10, 120).chain([150; 3]).chain(regular(160, 170)).chain([200; 3]).collect();
    let second: Vec<u64> = regular(10, 90)
        .chain([125; 3])
        .chain(regular(130, 140))
        .chain([175; 3])
        .chain(regular(180, 200))
        .collect();
    let third: Vec<u64> = regular(10, 250).collect();
    for (windows, plain) in [(true, false), (false, false), (false, true)] {
        let found = in_turns(windows, plain);
        let begin = |acted: &[u64]| acted.iter().copied().filter(|&at| at <= 200).collect::<Vec<_>>();
        assert_eq!(begin(&found[0]), first, "windows: {windows}, plain: {plain}");
        assert_eq!(begin(&found[1]), second, "windows: {windows}, plain: {plain}");
        assert_eq!(found[2], third, "it takes no turns");
        for acted in &found[..2] {
            assert_eq!(acted.len(), 25, "nothing is left out");
            assert!(acted[20..].iter().copied().eq(regular(210, 250)), "afterwards all act");
        }
    }
}

const US: u64 = 1000;

/// When each of three guests that wake each 100 us has acted, and what the first two have worked, which share
/// a processor from 50 us on.
fn on_a_processor(windows: bool, plain: bool) -> (Vec<Vec<u64>>, Vec<Worked>) {
    let log = Log::default();
    let plays = (0..3).map(|number| waking(number, 100 * US, windows, &log)).collect();
    let (mut calendar, threads) = calendar(plays);
    calendar.plain = plain;
    let one = std::num::NonZeroU64::MIN;
    calendar.add_processor(Processor {
        name: "p".into(),
        guests: vec![0, 1],
        prices: Prices { interrupt: 30 * US, context_switch: 5 * US, ..Prices::default() },
        scheduler: Scheduler::RoundRobin,
        quantum: 1,
        weights: vec![one, one],
    });
    until(&mut calendar, 50 * US);
    calendar.begin().expect("good guests");
    until(&mut calendar, 1050 * US);
    let worked = calendar.worked();
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let log = log.lock().expect("no panic");
    let of = |number| log.iter().filter(|one| one.1 == number).map(|one| one.0 / US).collect();
    ((0..3).map(of).collect(), worked)
}

#[test]
fn guests_on_a_processor_act_when_its_work_for_them_is_done() {
    // Both wake at once: the first acts after its 30 us and a context switch, the second 35 us later.
    let regular = |first: u64, late: u64| std::iter::once(first).chain((2..=10).map(move |n| 100 * n + late));
    for (windows, plain) in [(true, false), (false, false), (false, true)] {
        let (acted, worked) = on_a_processor(windows, plain);
        let words = format!("windows: {windows}, plain: {plain}");
        assert!(acted[0].iter().copied().eq(regular(130, 35)), "{words}: {:?}", acted[0]);
        // The last one wakes at 1000 us and acts after the end.
        assert!(acted[1].iter().copied().eq(regular(165, 70).take(9)), "{words}: {:?}", acted[1]);
        assert!(acted[2].iter().copied().eq((1..=10).map(|n| 100 * n)), "it has no processor: {words}");
        let counts = worked.iter().map(|one| (one.nanoseconds / US, one.interrupts, one.context_switches));
        assert!(counts.eq([(345, 10, 9), (350, 10, 10)]), "{words}: {worked:?}");
    }
}

#[test]
fn time_stands_still_at_the_limit_and_guests_read_it() {
    let (mut calendar, threads) = calendar(vec![Box::new(|mut guest| {
        assert_eq!(guest.ask(Operation::Get, 0), 0);
        guest.move_to(500);
        assert_eq!(guest.now, 500);
        assert_eq!(guest.ask(Operation::Get, 0), 500);
        assert_eq!(guest.ask(Operation::GetTimeOfDay, 0), TIME_OF_DAY + 500);
        guest.ask(Operation::Request, i64::MAX as u64);
        guest.ask(Operation::Wait, 0);
        let _ = guest.receive();
    })]);
    until(&mut calendar, 500);
    assert_eq!((calendar.now(), calendar.counts.runs), (500, 0), "it wishes to run then, not before");
    until(&mut calendar, 10_000);
    assert_eq!((calendar.now(), calendar.counts.runs), (10_000, 1));
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn a_guest_that_ends_pauses_the_world() {
    let (mut calendar, threads) = calendar(vec![
        Box::new(|mut guest| {
            guest.move_to(70);
        }),
        ticking(1, 100, &Log::default()),
    ]);
    let mut pause = calendar.run(1000, LONG).expect("good guests");
    while pause == Pause::Later {
        pause = calendar.run(1000, LONG).expect("good guests");
    }
    assert_eq!((pause, calendar.gone(), calendar.now()), (Pause::Ended, vec!["g0".to_owned()], 70));
    until(&mut calendar, 1000);
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

fn refused(play: impl FnOnce(Guest) + Send + 'static, patience: Duration) -> String {
    let (mut calendar, threads) = calendar(vec![Box::new(play)]);
    calendar.patience = patience;
    let error = loop {
        match calendar.run(1000, Duration::from_millis(20)) {
            Ok(Pause::Later | Pause::Spoke(_)) => {}
            Ok(pause) => panic!("{pause:?}"),
            Err(error) => break error,
        }
    };
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert!(matches!(&error, Error::Guest { .. }), "{error}");
    error.to_string()
}

#[test]
fn a_guest_that_breaks_the_protocol_is_named_with_what_it_does() {
    let said = refused(
        |mut guest| {
            guest.move_to(50);
            guest.sequence += 1;
            guest.send(Operation::Update, guest.sequence, 20);
            let _ = guest.receive();
        },
        LONG,
    );
    assert_eq!(said, "guest g0 moves its time from 50 to 20 ns, at 0.00000005 s of its time");
    let said = refused(
        |mut guest| {
            guest.send(Operation::Run, 1, 5);
            let _ = guest.receive();
        },
        LONG,
    );
    assert_eq!(said, "guest g0 sends Run out of turn, at 0 s of its time");
}

#[test]
fn a_guest_that_writes_garbage_into_its_window_is_named() {
    let waits = |guest: &mut Guest| {
        guest.send(Operation::Wait, 0, u64::MAX);
        let _ = guest.receive();
    };
    let said = refused(
        move |mut guest| {
            guest.use_window();
            guest.move_to(50);
            guest.store(CURRENT, &u64::MAX.to_ne_bytes());
            waits(&mut guest);
        },
        LONG,
    );
    assert!(said.starts_with("guest g0 moves its time from 50 to 18446744073709551615 ns"), "{said}");
    let said = refused(
        move |mut guest| {
            guest.use_window();
            guest.move_to(50);
            guest.store(LOG_USED, &64u32.to_ne_bytes());
            waits(&mut guest);
        },
        LONG,
    );
    assert_eq!(said, "guest g0 has garbage in its log, at octet 0 of 64, at 0.00000005 s of its time");
    let said = refused(
        move |mut guest| {
            guest.use_window();
            guest.move_to(50);
            // A frame of one octet of the device with the number 9.
            let head = [&50u64.to_ne_bytes()[..], &1u32.to_ne_bytes(), &9u16.to_ne_bytes(), &[0; 10]];
            guest.store(16384, &head.concat());
            guest.store(LOG_USED, &24u32.to_ne_bytes());
            waits(&mut guest);
        },
        LONG,
    );
    assert!(said.starts_with("guest g0 logs frames of a device that it does not have"), "{said}");
}

#[test]
fn a_guest_that_stays_at_one_instant_for_ever_is_named() {
    // Its process is that of this test: what it computes counts.
    let computes = |mut guest: Guest| {
        guest.socket.set_nonblocking(true).expect("a socket");
        let mut octet = [0];
        while !matches!(guest.socket.read(&mut octet), Ok(0)) {}
    };
    let said = refused(computes, Duration::from_millis(300));
    assert!(said.starts_with("guest g0 has run for 0."), "{said}");
    let end = " s of processor time and does not reach the next instant, at 0 s of its time";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn time_stands_still_at_each_frame_if_it_is_asked_to() {
    let log = Log::default();
    let (mut calendar, threads) = calendar(vec![ticking(0, 7_000_000, &log)]);
    let inbox = Inbox::default();
    for name in ["a", "b"] {
        calendar.world.add(name, false, Box::new(Memory::new(&inbox))).expect("new");
    }
    let link = LinkSettings { delay_ns: 5_000_000, ..LinkSettings::default() };
    calendar.world.connect("a-b", "a", "b", &link, &link).expect("two ports");
    until(&mut calendar, 1_000_000);
    calendar.begin().expect("good guests");
    let a = calendar.world.names.ports.id("a").expect("there is");
    let mut frame = [0; 100];
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    for at in [2_000_000, 3_000_000] {
        calendar.world.offer(a, Instant::from_nanos(at), &frame).expect("short");
    }
    calendar.stop_at_frames(true);
    let mut seen = Vec::new();
    loop {
        match calendar.run(20_000_000, LONG).expect("good guests") {
            Pause::Frames(frames) => {
                for one in frames {
                    assert_eq!(calendar.now(), 1_000_000 + one.at.nanos());
                    seen.push((one.at.nanos(), one.port.index(), one.sent, one.octets));
                }
            }
            Pause::Reached => break,
            other => assert_eq!(other, Pause::Later),
        }
    }
    let expected = [(2, 0, true), (3, 0, true), (7, 1, false), (8, 1, false)];
    let expected = expected.map(|(at, port, sent)| (at * 1_000_000, port, sent, 100));
    assert_eq!(seen, expected);

    calendar.stop_at_frames(false);
    calendar.world.offer(a, Instant::from_nanos(20_000_000), &frame).expect("short");
    until(&mut calendar, 40_000_000);
    assert_eq!(inbox.take().len(), 3, "nobody follows them, and they arrive");
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}

#[test]
fn what_is_asked_of_the_engine_takes_place_at_the_present_instant() {
    let log = Log::default();
    let (mut calendar, threads) = calendar(vec![ticking(0, 7_000_000, &log)]);
    until(&mut calendar, 1_000_000);
    calendar.begin().expect("good guests");
    until(&mut calendar, 50_000_000);
    assert_eq!(calendar.world.engine.now(), Instant::ZERO, "it had nothing to do");
    calendar.catch_up_engine().expect("good guests");
    assert_eq!(calendar.world.engine.now().nanos(), 49_000_000);
    drop(calendar);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}
