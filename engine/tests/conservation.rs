//! Conservation: every frame has one outcome, no buffer leaks, and order and rates hold.

mod common;

use airloom_engine::frame::{ETHERNET_HEADER, Frame};
use airloom_engine::settings::{
    CakeIsolation, CakeTins, Carrier, Class, Counts, Discipline, Jitter, Late, LinkSettings, Loss, Policer,
    QueueSettings, Rate, Receiver, Segments, SwitchSettings,
};
use airloom_engine::time::Instant;
use airloom_engine::{Change, Direction, End, Engine, Gathers, LinkId, PortId};
use common::{Book, check_ledger, mac, offer_octets, offer_super, offer_super_that_came, run_dry};
use proptest::prelude::*;

fn rates() -> impl Strategy<Value = Rate> {
    let trace = (proptest::collection::vec(0..2_000_000_u64, 1..20), 1..2_000_u32).prop_map(
        |(mut opportunities_ns, octets)| {
            opportunities_ns.sort_unstable();
            Rate::Trace { opportunities_ns, period_ns: 2_000_000, octets }
        },
    );
    prop_oneof![
        2 => Just(Rate::Unlimited),
        4 => (10_000..2_000_000_000_u64).prop_map(Rate::BitsPerSecond),
        1 => trace,
        1 => (10_000..200_000_000_u64, 1..50_000_u64, proptest::option::of(0..1_000_000_000_u64)).prop_map(
            |(bits_per_second, burst_octets, more)| Rate::TokenBucket {
                bits_per_second,
                burst_octets,
                peak_bits_per_second: more.map(|more| bits_per_second + more),
            }
        ),
    ]
}

fn disciplines() -> impl Strategy<Value = Discipline> {
    let red = (1..20_000_u64, 1..20_000_u64, 0.01..1.0, 0.001..1.0).prop_map(
        |(min_octets, more, probability, weight)| Discipline::Red {
            min_octets,
            max_octets: min_octets + more,
            probability,
            weight,
            packet_octets: 500,
            marks_above: more % 2 == 0,
        },
    );
    let times = || (1..5_000_000_u64, 0..50_000_000_u64);
    prop_oneof![
        2 => Just(Discipline::DropTail),
        1 => red,
        1 => times().prop_map(|(target_ns, more)| Discipline::CoDel { target_ns, interval_ns: target_ns + more }),
        1 => (times(), 64..3_000_u32, 1..40_u32).prop_map(|((target_ns, more), quantum, flows)| {
            Discipline::FqCoDel { target_ns, interval_ns: target_ns + more, quantum, flows }
        }),
        1 => (times(), 100_000..30_000_000_u64, 0.0..10.0, 0.0..10.0).prop_map(
            |((target_ns, burst_ns), update_ns, alpha, beta)| Discipline::Pie {
                target_ns,
                update_ns,
                burst_ns,
                alpha,
                beta,
            }
        ),
        1 => (times(), 100_000..30_000_000_u64, 0.0..10.0, 0.01..10.0, 0.0..0.9).prop_map(
            |((target_ns, ramp_ns), update_ns, alpha, coupling, classic)| Discipline::DualPi2 {
                target_ns,
                update_ns,
                alpha,
                beta: 10.0 * alpha,
                coupling,
                step_ns: target_ns / 8,
                ramp_ns: ramp_ns / 64,
                classic,
            }
        ),
        1 => (times(), cakes()).prop_map(|((target_ns, more), (isolation, tins))| Discipline::Cake {
            target_ns,
            interval_ns: target_ns + more,
            isolation,
            tins,
        }),
        1 => (0..30_u64).prop_map(|packets| Discipline::Step {
            packets: Some(packets),
            octets: None,
            time_ns: None,
        }),
        1 => classes().prop_map(|classes| Discipline::Priority { classes }),
        1 => classes().prop_map(|classes| Discipline::Drr { classes }),
    ]
}

fn cakes() -> impl Strategy<Value = (CakeIsolation, CakeTins)> {
    use CakeIsolation::{DualDsthost, DualSrchost, Flows, TripleIsolate};
    let isolations = proptest::sample::select(vec![Flows, DualSrchost, DualDsthost, TripleIsolate]);
    let tins = vec![CakeTins::Besteffort, CakeTins::Diffserv3, CakeTins::Diffserv4];
    (isolations, proptest::sample::select(tins))
}

fn classes() -> impl Strategy<Value = Vec<Class>> {
    let class = (0..64_u8, 64..3_000_u32, proptest::option::of(0..20_u32));
    let class = class.prop_map(|(dscp, quantum, packets)| Class { dscp: vec![dscp, 0], quantum, packets });
    proptest::collection::vec(class, 1..4)
}

fn receivers() -> impl Strategy<Value = Receiver> {
    (0..50_000_u64, 0..500_000_u64, jitters(), 0..2_000_000_u64).prop_map(
        |(latency_ns, moderation_ns, service, tick_ns)| Receiver {
            latency_ns,
            moderation_ns,
            service,
            tick_ns,
        },
    )
}

fn queues() -> impl Strategy<Value = QueueSettings> {
    let packets = proptest::option::of(0..50_u32);
    let octets = proptest::option::of(0..50_000_u64);
    let time = proptest::option::of(0..20_000_000_u64);
    (packets, octets, time, disciplines(), any::<bool>()).prop_map(
        |(packets, octets, time_ns, discipline, ecn)| QueueSettings {
            packets,
            octets,
            time_ns,
            discipline,
            ecn,
        },
    )
}

fn jitters() -> impl Strategy<Value = Jitter> {
    prop_oneof![
        3 => Just(Jitter::None),
        1 => (0..3_000_000_u64).prop_map(|spread_ns| Jitter::Uniform { spread_ns }),
        1 => (0..3_000_000_u64).prop_map(|sigma_ns| Jitter::Normal { sigma_ns }),
        1 => (0..3_000_000_u64, 1.1..5.0).prop_map(|(scale_ns, shape)| Jitter::Pareto { scale_ns, shape }),
        1 => proptest::collection::vec(-1_000_000..3_000_000_i64, 1..5).prop_map(|values_ns| Jitter::Table { values_ns }),
    ]
}

fn losses() -> impl Strategy<Value = Loss> {
    prop_oneof![
        3 => Just(Loss::None),
        1 => (0.0..=1.0).prop_map(|probability| Loss::Bernoulli { probability }),
        1 => (0.0..0.5, 0.0..=1.0, 0.0..0.1, 0.0..=1.0).prop_map(|(good_to_bad, bad_to_good, loss_good, loss_bad)| {
            Loss::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad }
        }),
    ]
}

fn small_chance() -> impl Strategy<Value = f64> {
    prop_oneof![2 => Just(0.0), 1 => 0.0..0.5]
}

fn links() -> impl Strategy<Value = LinkSettings> {
    let chances = (small_chance(), small_chance(), small_chance(), any::<bool>());
    let sizes = (prop_oneof![Just(1500_u32), 68..9216_u32], 0..100_u32, 0..100_u32, any::<bool>());
    let layers = prop_oneof![3 => Just(Counts::Frame), 1 => Just(Counts::Packet)];
    let policers = proptest::option::weighted(0.2, (10_000..50_000_000_u64, 1..50_000_u64));
    let equipment = (0..10_000_u64, receivers(), layers, policers);
    (rates(), 0..5_000_000_u64, jitters(), losses(), chances, sizes, queues(), equipment).prop_map(
        |(rate, delay_ns, jitter, loss, chances, sizes, queue, (gap_ns, receiver, counts, policer))| {
            let (duplicate, corrupt, reorder, jitter_reorders) = chances;
            let (mtu, overhead, shortest, timed) = sizes;
            let segments = if timed { Segments::Timed } else { Segments::Carried };
            LinkSettings {
                rate,
                delay_ns,
                jitter,
                jitter_reorders,
                loss,
                duplicate,
                corrupt,
                reorder,
                mtu,
                counts,
                overhead,
                shortest,
                queue,
                policer: policer
                    .map(|(bits_per_second, burst_octets)| Policer { bits_per_second, burst_octets }),
                segments,
                late: Late::CatchUp,
                carrier: Carrier::default(),
                gap_ns,
                receiver,
                coalesce_ns: delay_ns,
            }
        },
    )
}

fn bare(mtu: u32) -> LinkSettings {
    LinkSettings { mtu, ..LinkSettings::default() }
}

/// Other links have no receiver model, which would have state, and keep no super-frames together.
fn mostly_bare() -> impl Strategy<Value = LinkSettings> {
    let other = |link| LinkSettings { receiver: Receiver::default(), segments: Segments::Timed, ..link };
    prop_oneof![6 => prop_oneof![Just(9216), 68..2_000_u32].prop_map(bare), 1 => links().prop_map(other)]
}

/// A bare wire gets a receiver model without effect; any other wire is unchanged.
fn ticking(settings: &LinkSettings) -> LinkSettings {
    let mut ticking = settings.clone();
    if *settings == bare(settings.mtu) {
        ticking.receiver.tick_ns = 1;
    }
    ticking
}

#[derive(Clone, Debug)]
enum Act {
    Frame { port: usize, to: u8, octets: usize },
    Super { port: usize, payload: usize, size: u16, over: u64 },
    Settings { link: usize, direction: bool, settings: Box<LinkSettings> },
    UpDown { link: usize, up: bool },
    Pass { nanos: u64 },
}

fn acts<S: Strategy<Value = LinkSettings>>(links: impl Fn() -> S) -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0..8_usize, any::<u8>(), 0..2_000_usize).prop_map(|(port, to, octets)| Act::Frame { port, to, octets }),
        3 => (0..8_usize, 1..20_000_usize, 1..3_000_u16, prop_oneof![Just(0), 0..2_000_000_u64])
            .prop_map(|(port, payload, size, over)| Act::Super { port, payload, size, over }),
        1 => (0..20_usize, any::<bool>(), links()).prop_map(|(link, direction, settings)| {
            Act::Settings { link, direction, settings: Box::new(settings) }
        }),
        1 => (0..20_usize, any::<bool>()).prop_map(|(link, up)| Act::UpDown { link, up }),
        4 => (0..3_000_000_u64).prop_map(|nanos| Act::Pass { nanos }),
    ]
}

/// A tree of switches and hubs with ports; `shape` gives the parent of each.
fn tree(seed: u64, shape: &[(u8, bool, LinkSettings, LinkSettings)]) -> (Engine, Vec<PortId>, Vec<LinkId>) {
    let mut engine = Engine::new(seed);
    let table = SwitchSettings::Switch { ageing_ns: 3_000_000, addresses: 4 };
    let shortest =
        SwitchSettings::ShortestPath { ageing_ns: 3_000_000, addresses: 4, convergence_ns: 1_000_000 };
    let mut switches = vec![engine.add_switch("root", &table).expect("new")];
    let (mut ports, mut links) = (Vec::new(), Vec::new());
    for (index, (parent, leaf, forward, backward)) in shape.iter().enumerate() {
        let name = format!("{index}");
        let parent = End::Switch(switches[usize::from(*parent) % switches.len()]);
        let end = if *leaf {
            let port = engine.add_port(&name, index % 3 == 0).expect("new");
            if index % 2 == 0 {
                engine.let_gather(port, Gathers { tcp: true, udp: index % 4 == 0 });
            }
            ports.push(port);
            End::Port(ports[ports.len() - 1])
        } else {
            let kind = [&table, &SwitchSettings::Hub, &shortest, &shortest][index % 4];
            switches.push(engine.add_switch(&name, kind).expect("new"));
            End::Switch(switches[switches.len() - 1])
        };
        links.push(engine.connect(&name, parent, end, forward, backward).expect("a tree"));
    }
    // A port without a link.
    ports.push(engine.add_port("alone", false).expect("new"));
    (engine, ports, links)
}

/// Performs all acts, and lets frames in flight reach their end.
fn play(engine: &mut Engine, ports: &[PortId], links: &[LinkId], acts: &[Act], book: &mut Book) {
    let mut now = 0;
    for act in acts {
        match act {
            Act::Frame { port, to, octets } => {
                let mut content = vec![0; *octets];
                let addresses = [mac(*to % 10), mac(u8::try_from(*port).expect("small"))].concat();
                for (octet, address) in content.iter_mut().zip(addresses) {
                    *octet = address;
                }
                offer_octets(engine, ports[port % ports.len()], now, &content);
            }
            Act::Super { port, payload, size, over } => {
                let port = ports[port % ports.len()];
                if *over == 0 {
                    offer_super(engine, port, now, *payload, *size);
                } else {
                    offer_super_that_came(engine, port, now.saturating_sub(*over)..now, *payload, *size);
                }
            }
            Act::Settings { link, direction, settings } => {
                let direction = if *direction { Direction::Forward } else { Direction::Backward };
                let change = Change::Link(links[link % links.len()], direction, settings.clone());
                engine.schedule(Instant::from_nanos(now), change).expect("valid");
            }
            Act::UpDown { link, up } => {
                let link = links[link % links.len()];
                let change = if *up { Change::Up(link) } else { Change::Down(link) };
                engine.schedule(Instant::from_nanos(now), change).expect("valid");
            }
            Act::Pass { nanos } => {
                now += nanos;
                engine.advance(Instant::from_nanos(now), book);
                check_ledger(engine);
            }
        }
    }
    run_dry(engine, book);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn every_frame_has_one_fate(
        seed in any::<u64>(),
        shape in proptest::collection::vec((any::<u8>(), any::<bool>(), links(), links()), 1..8),
        acts in proptest::collection::vec(acts(links), 1..120),
        lose_every in proptest::option::of(2..9_usize),
    ) {
        let (mut engine, ports, links) = tree(seed, &shape);
        let mut book = Book { lose_every, ..Book::default() };
        play(&mut engine, &ports, &links, &acts, &mut book);
        let ledger = engine.ledger();
        let accounts = || links.iter().flat_map(|&link| {
            [Direction::Forward, Direction::Backward].map(|direction| ledger.link(link, direction))
        });
        // Every frame that entered a wire, or was made there, left it or was dropped there.
        for account in accounts() {
            let mut came = account.entered;
            came += account.duplicated;
            let mut went = account.left;
            went += account.dropped.total();
            prop_assert_eq!(came, went);
            prop_assert_eq!(account.queue.frames, 0);
        }
        let copies: u64 = accounts().map(|account| account.duplicated.frames).sum();
        prop_assert!(ledger.copies.frames >= copies);
        prop_assert_eq!(book.drops.iter().map(|drop| u64::from(drop.frames)).sum::<u64>(), ledger.dropped.total().frames);
        prop_assert_eq!(u64::try_from(book.deliveries.len()).expect("few"), ledger.delivered.frames);
    }

    /// A wire with default settings takes a shorter path through the engine. Arrivals, their times
    /// and the counters equal those of wires on the long path, whose receivers have a clock of 1 ns
    /// granularity.
    #[test]
    fn a_bare_wire_does_what_others_do(
        seed in any::<u64>(),
        shape in proptest::collection::vec((any::<u8>(), any::<bool>(), mostly_bare(), mostly_bare()), 1..8),
        acts in proptest::collection::vec(acts(mostly_bare), 1..120),
    ) {
        let run = |dressed: fn(&LinkSettings) -> LinkSettings| {
            let shape: Vec<_> =
                shape.iter().map(|(at, leaf, forth, back)| (*at, *leaf, dressed(forth), dressed(back))).collect();
            // Of segments known late, and after a change of settings while frames are in flight, the two
            // differ: a receiver with a clock hands over nothing in the past, and keeps its own order.
            let acts: Vec<_> = acts.iter().filter(|act| !matches!(act, Act::Settings { .. })).map(|act| match act {
                Act::Super { port, payload, size, .. } => {
                    Act::Super { port: *port, payload: *payload, size: *size, over: 0 }
                }
                other => other.clone(),
            }).collect();
            let (mut engine, ports, links) = tree(seed, &shape);
            let mut book = Book::default();
            play(&mut engine, &ports, &links, &acts, &mut book);
            (book.deliveries, book.drops, engine.ledger().clone())
        };
        prop_assert_eq!(run(LinkSettings::clone), run(ticking));
    }

    /// Without jitter and receiver model, no window of deliveries is faster than the rate, from the
    /// first frame on, and no frame overtakes another, for any queue and losses.
    #[test]
    fn no_window_is_faster_than_the_rate(
        rate in 10_000..10_000_000_000_u64,
        settings in links(),
        sizes in proptest::collection::vec((14..1_500_u32, 0..400_000_u64), 2..80),
    ) {
        let settings = LinkSettings {
            rate: Rate::BitsPerSecond(rate),
            jitter: Jitter::None,
            jitter_reorders: false,
            reorder: 0.0,
            corrupt: 0.0,
            mtu: 9216,
            receiver: Receiver::default(),
            ..settings
        };
        let mut engine = Engine::new(1);
        let a = engine.add_port("a", false).expect("new");
        let b = engine.add_port("b", false).expect("new");
        engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
        let mut book = Book::default();
        let mut at = 0;
        for (number, &(octets, gap)) in sizes.iter().enumerate() {
            let mut content = vec![0; octets as usize];
            content[..8].copy_from_slice(&(number as u64).to_be_bytes());
            offer_octets(&mut engine, a, at, &content);
            at += gap;
        }
        run_dry(&mut engine, &mut book);
        let charge = |octets: &[u8]| {
            let octets = u64::try_from(octets.len()).expect("small");
            let charged = match settings.counts {
                Counts::Frame => octets.max(settings.shortest.into()),
                Counts::Packet => octets - u64::from(ETHERNET_HEADER),
            };
            charged + u64::from(settings.overhead)
        };
        for from in 0..book.deliveries.len() {
            let mut bits = 0;
            for to in from + 1..book.deliveries.len() {
                let octets = &book.deliveries[to].octets;
                bits += 8 * charge(octets);
                let window = book.deliveries[to].at - book.deliveries[from].at;
                // Each instant is rounded up to a whole nanosecond, so a window is less than one
                // nanosecond short.
                prop_assert!(u128::from(bits) * 1_000_000_000 < u128::from(rate) * u128::from(window + 1));
            }
        }
        // Flow queues keep order only within a flow.
        if !matches!(settings.queue.discipline, Discipline::FqCoDel { .. } | Discipline::Cake { .. }) {
            let order: Vec<&[u8]> = book.deliveries.iter().map(|delivery| &delivery.octets[..8]).collect();
            prop_assert!(order.is_sorted());
        }
    }

    /// On a link with jitter, no frame overtakes another unless that is allowed.
    #[test]
    fn jitter_keeps_the_order(jitter in jitters(), rate in rates(), delay_ns in 0..2_000_000_u64, changed in 0..2_000_000_u64) {
        let settings = LinkSettings { jitter, rate, delay_ns, ..LinkSettings::default() };
        let mut engine = Engine::new(3);
        let a = engine.add_port("a", false).expect("new");
        let b = engine.add_port("b", false).expect("new");
        let link = engine.connect("a-b", End::Port(a), End::Port(b), &settings, &settings).expect("valid");
        let later = LinkSettings { delay_ns: changed, ..settings };
        engine
            .schedule(Instant::from_nanos(2_000_000), Change::Link(link, Direction::Forward, Box::new(later)))
            .expect("valid");
        let mut book = Book::default();
        for number in 0..60_u64 {
            let mut content = vec![0; 64];
            content[..8].copy_from_slice(&number.to_be_bytes());
            offer_octets(&mut engine, a, number * 100_000, &content);
        }
        run_dry(&mut engine, &mut book);
        prop_assert_eq!(book.deliveries.len(), 60);
        prop_assert!(book.deliveries.iter().map(|delivery| &delivery.octets[..8]).is_sorted());
        prop_assert!(book.deliveries.iter().map(|delivery| delivery.at).is_sorted());
    }
}

#[test]
fn a_frame_is_small() {
    assert!(size_of::<Frame>() <= 40);
}
