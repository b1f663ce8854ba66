//! Notifications and translation of addresses, with a guest that the test emulates. The time is that
//! of the test, so that what it says of it is exact.

mod guest;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::net::UnixListener;

use airloom_engine::frame::Pool;
use airloom_engine::time::{Instant, Span};
use airloom_ports::port::{Incoming, Port};
use airloom_ports::rx::RxBuffers;
use airloom_ports::vhost::{Coalescing, Handling, IoTlb, Standing, Translation, Vhost};
use guest::{BUFFERS, Bench, CARD, EVENT_IDX, GUEST, Guest, MERGE, SEND, until};

const TIME: Span = Span::from_micros(200);

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with an allocation counter per thread.
struct Counting;

// SAFETY: every call is forwarded unchanged to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A device that the test serves itself, and its guest.
struct Pair {
    vhost: Vhost<airloom_ports::vhost::DeviceConfig>,
    guest: Guest,
    buffers: RxBuffers,
    pool: Pool,
}

impl Pair {
    fn new(handling: Handling, features: u64, size: u16) -> Self {
        static NUMBER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("airloom-handling-{}-{number}", std::process::id()));
        let listener = UnixListener::bind(&path).expect("a socket");
        let mut vhost = Vhost::serve(listener.into(), CARD, handling).expect("it listens");
        let guest = std::thread::scope(|scope| {
            let guest = scope.spawn(|| Guest::up(&path, features, size));
            while !guest.is_finished() {
                vhost.negotiate();
            }
            guest.join().expect("it is up")
        });
        std::fs::remove_file(path).expect("it is there");
        while vhost.standing() != Standing::Up {
            vhost.negotiate();
        }
        let mut pool = Pool::default();
        Self { vhost, guest, buffers: RxBuffers::new(&mut pool), pool }
    }

    /// The guest sends a frame, and the device takes it at `now`: it returns one buffer.
    fn send(&mut self, now: Instant) -> Instant {
        self.guest.send([0; 12], &[7; 100], 1);
        self.take();
        self.vhost.notify(now)
    }

    fn take(&mut self) -> Vec<u8> {
        loop {
            if let Incoming::Frame(buffer, octets, _) = self.vhost.receive(&mut self.buffers, &mut self.pool)
            {
                let frame = self.pool.octets(buffer)[..octets as usize].to_vec();
                self.pool.release(buffer);
                return frame;
            }
        }
    }

    fn calls(&self) -> u64 {
        self.vhost.device().counts.calls
    }
}

fn at(micros: u64) -> Instant {
    Instant::from_nanos(1_000_000_000) + Span::from_micros(micros)
}

fn held(frames: u16) -> Handling {
    Handling { coalescing: Coalescing::Held { frames, time: TIME }, ..Handling::default() }
}

#[test]
fn one_notification_stands_for_as_many_buffers_as_the_count() {
    for features in [0, EVENT_IDX] {
        let mut pair = Pair::new(held(4), features, 64);
        for round in 0..25u64 {
            // The guest asks to be told of the next buffer.
            let used = pair.guest.rings[SEND].used;
            pair.guest.wish(SEND, used);
            for number in 1..=4u64 {
                let again = pair.send(at(10 * (4 * round + number)));
                let (calls, told) = (pair.calls(), pair.guest.called(SEND));
                if number < 4 {
                    assert_eq!((calls, told), (round, 0), "buffer {number} of round {round}");
                    assert_eq!(again, at(10 * (4 * round + 1)) + TIME, "the first buffer's time");
                } else {
                    assert_eq!((calls, told), (round + 1, 1));
                }
            }
            assert_eq!(pair.guest.used(SEND).len(), 4, "all of them are there");
            pair.guest.wish(SEND, pair.guest.rings[SEND].used.wrapping_sub(1));
        }
        let counts = pair.vhost.device().counts;
        assert_eq!((counts.taken, counts.calls, counts.longest_hold_ns), (100, 25, 30_000));
    }
}

#[test]
fn no_buffer_waits_longer_than_the_time() {
    let mut pair = Pair::new(held(1000), 0, 64);
    let mut now = at(0);
    for round in 0..20 {
        let due = pair.send(now);
        assert_eq!(due, now + TIME);
        let step = Span::from_micros(13 + round);
        pair.send(now + step);
        assert_eq!(pair.vhost.notify(due - Span::from_nanos(1)), due, "not yet");
        assert_eq!(pair.calls(), round);
        pair.vhost.notify(due);
        assert_eq!(pair.calls(), round + 1, "to the nanosecond");
        assert_eq!(pair.guest.used(SEND).len(), 2);
        now = due + Span::from_millis(1);
    }
    assert_eq!(pair.vhost.device().counts.longest_hold_ns, TIME.nanos());
}

#[test]
fn a_guest_that_wants_no_notification_gets_none() {
    // VIRTQ_AVAIL_F_NO_INTERRUPT, and an event index that is far away.
    for features in [0, EVENT_IDX] {
        let mut pair = Pair::new(held(2), features, 64);
        let available = pair.guest.rings[SEND].at[1];
        if features == 0 {
            pair.guest.write(available, &1u16.to_le_bytes());
        } else {
            pair.guest.wish(SEND, pair.guest.rings[SEND].used.wrapping_add(50));
        }
        for number in 0..10 {
            pair.send(at(number));
        }
        let counts = pair.vhost.device().counts;
        assert_eq!((counts.calls, counts.spared, pair.guest.called(SEND)), (0, 5, 0));
    }
}

#[test]
fn without_a_notifier_nothing_is_due() {
    let mut pair = Pair::new(held(1000), 0, 64);
    let due = pair.send(at(0));
    assert_eq!(due, at(0) + TIME);
    // VHOST_USER_SET_VRING_CALL without a descriptor.
    pair.guest.tell(13, &guest::doubles(&[1 | 0x100]), &[]);
    while !pair.vhost.negotiate() {}
    assert_eq!(pair.vhost.notify(due), Instant::NEVER);
    assert_eq!(pair.calls(), 0);
}

#[test]
fn the_timer_of_the_event_loop_ends_a_hold() {
    let bench = Bench::with(&held(1000));
    let mut guest = Guest::up(&bench.path, MERGE, 64);
    guest.provide(8);
    bench.offer(&[7; 100]);
    until(|| guest.called(guest::RECEIVE) >= 1);
    assert_eq!(guest.receive().len(), 1);
    let hold = bench.port(|vhost| vhost.device().counts.longest_hold_ns);
    assert!(hold >= TIME.nanos(), "{hold}");
}

/// Passes frames between a guest and the far end in both directions; returns the device's counters.
fn exchange(handling: &Handling) -> airloom_ports::vhost::Translations {
    let bench = Bench::with(handling);
    let mut guest = Guest::up(&bench.path, MERGE, 64);
    guest.provide(40);
    for number in 0..40u16 {
        let frame: Vec<u8> =
            (0..1400).map(|at| u8::try_from((at + 31 * number) % 251).expect("small")).collect();
        guest.send([0; 12], &frame, 1 + number % 3);
        assert_eq!(*bench.far(1)[0], *frame);
        bench.offer(&frame);
        let mut come = Vec::new();
        until(|| {
            come.extend(guest.receive());
            !come.is_empty()
        });
        assert_eq!(come[0].1, frame);
    }
    bench.port(|vhost| vhost.device().translations())
}

fn translated(translation: Translation) -> Handling {
    Handling { translation, ..Handling::default() }
}

#[test]
fn every_translation_carries_the_same_octets_at_its_own_cost() {
    let direct = exchange(&translated(Translation::Direct));
    assert_eq!(direct, airloom_ports::vhost::Translations::default());

    let bounced = exchange(&translated(Translation::Bounce));
    assert_eq!(bounced.bounced_octets, 2 * 40 * 1412 + 40 * 2, "frames, headers, and the count of buffers");

    // A chain of each direction: 1, 2 or 3 descriptors of the guest, and one of the device.
    let strict = exchange(&translated(Translation::Strict));
    assert_eq!((strict.mapped, strict.cache_hits), (40 + 13 * 6 + 1, 0));

    // The guest reuses 22 places to send from and 40 buffers of half a page each to receive in.
    let cached = exchange(&translated(Translation::Cached(IoTlb::new(1024).expect("valid"))));
    assert_eq!(cached.cache_misses, cached.mapped);
    assert!(cached.mapped < cached.cache_hits, "{cached:?}");
    let small = exchange(&translated(Translation::Cached(IoTlb::new(4).expect("valid"))));
    assert_eq!(small.cache_hits + small.cache_misses, cached.cache_hits + cached.cache_misses);
    assert!(small.cache_misses > cached.cache_misses, "{small:?} {cached:?}");
}

#[test]
fn one_cache_serves_several_guests_and_forgets_the_one_that_ends() {
    let tlb = IoTlb::new(64).expect("valid");
    let handling = translated(Translation::Cached(tlb));
    let mut pairs = [0, 0].map(|features| Pair::new(handling.clone(), features, 16));
    for turn in 0..10u8 {
        for (number, pair) in (0u8..).zip(&mut pairs) {
            let frame = [turn, number].repeat(50);
            // Always the same buffer of one page, at the same address in both guests.
            pair.guest.write(BUFFERS, &[vec![0; 12], frame.clone()].concat());
            pair.guest.describe(SEND, 0, (GUEST + BUFFERS, 112, 0, 0));
            pair.guest.offer(SEND, 0);
            pair.guest.kick(SEND);
            assert_eq!(pair.take(), frame, "its own page");
        }
    }
    for pair in &pairs {
        let found = pair.vhost.device().translations();
        assert_eq!((found.cache_misses, found.cache_hits), (1, 9));
    }
    // The next guest of the device has another memory: nothing of the old one is found.
    let [mut first, second] = pairs;
    drop(second);
    let (guest, vhost) = (&first.guest, &mut first.vhost);
    std::thread::scope(|scope| {
        let sharing = scope.spawn(|| guest.share());
        while !sharing.is_finished() {
            vhost.negotiate();
        }
    });
    let frame = [5; 100];
    first.guest.write(BUFFERS, &[vec![0; 12], frame.to_vec()].concat());
    first.guest.describe(SEND, 0, (GUEST + BUFFERS, 112, 0, 0));
    first.guest.offer(SEND, 0);
    first.guest.kick(SEND);
    assert_eq!(first.take(), frame);
    assert_eq!(first.vhost.device().translations().cache_misses, 2);
}

#[test]
fn a_frame_allocates_nothing_whatever_the_translation() {
    let cached = || Translation::Cached(IoTlb::new(4).expect("valid"));
    for translation in [Translation::Direct, Translation::Bounce, Translation::Strict, cached()] {
        let coalescing = Coalescing::Adaptive { frames: 4, time: TIME };
        let mut pair = Pair::new(Handling { coalescing, translation, in_band: false }, EVENT_IDX, 64);
        let mut allocations = 0;
        for number in 0..100u64 {
            pair.guest.send([0; 12], &[7; 1000], 3);
            let before = ALLOCATIONS.get();
            let incoming = pair.vhost.receive(&mut pair.buffers, &mut pair.pool);
            pair.vhost.notify(at(10 * number));
            // Buffers of the pool, the lists of places and the like are made with the first frames.
            allocations += if number < 10 { 0 } else { ALLOCATIONS.get() - before };
            if let Incoming::Frame(buffer, ..) = incoming {
                pair.pool.release(buffer);
            }
        }
        assert_eq!(allocations, 0, "{:?}", pair.vhost.device().translations());
        assert!(pair.vhost.device().counts.taken >= 99);
    }
}

#[test]
fn a_cache_has_a_valid_number_of_entries() {
    for entries in [0, 3, 6, 1028] {
        assert!(IoTlb::new(entries).is_none(), "{entries}");
    }
    assert!(IoTlb::new(4).is_some() && IoTlb::new(1024).is_some());
}

#[test]
fn a_memory_that_vanishes_under_a_translated_buffer_ends_its_guest_alone() {
    for translation in [Translation::Strict, Translation::Cached(IoTlb::new(16).expect("valid"))] {
        let mut pair = Pair::new(translated(translation), 0, 16);
        pair.send(at(0));
        pair.guest.send([0; 12], &[1; 100], 1);
        pair.guest.memory.set_len(0).expect("it is the guest's");
        for _ in 0..4 {
            let _ = pair.vhost.receive(&mut pair.buffers, &mut pair.pool);
            pair.vhost.notify(at(1));
        }
        let reason = pair.vhost.disconnect_reason().map(ToString::to_string);
        assert!(reason.is_some_and(|reason| reason.contains("memory is gone")));
    }
}
