//! Access points whose node bridges them to a wire: announcements of stations.

mod common;

use airloom_engine::medium::mobility::{Position, Static};
use airloom_engine::medium::propagation::LogDistance;
use airloom_engine::medium::{Medium, Membership, RadioSettings, RateSettings, Roaming};
use airloom_engine::time::Instant;
use airloom_engine::{Engine, PortId};
use common::{Book, check_ledger, mac};

/// An access point, port 0, and a station five metres away, port 1.
fn cell(bridged: bool) -> (Engine, Vec<PortId>) {
    let mut engine = Engine::new(1);
    let loss = LogDistance { exponent: 3.0, reference_m: 1.0, reference_db: Some(46.7) };
    let medium = Medium::new(engine.seed(), "air", Box::new(loss));
    let medium = engine.add_medium("air", medium).expect("new");
    let access_point = Membership::AccessPoint { ssid: "lab".into(), beacon_ns: 102_400_000 };
    let station =
        Membership::Station(Roaming { ssid: "lab".into(), channels: vec![36], ..Roaming::default() });
    let ports = [(access_point, bridged), (station, false)].into_iter().zip(0..).map(
        |((membership, bridged), node)| {
            let port = engine.add_port(&format!("n{node}"), false).expect("new");
            let settings = RadioSettings {
                mac: mac(node),
                rate: RateSettings::Constant(54_000_000),
                membership,
                bridged,
                ..RadioSettings::default()
            };
            let place = Box::new(Static(Position::new(5.0 * f64::from(node), 0.0, 0.0)));
            engine.add_radio(medium, port, settings, place).expect("valid");
            port
        },
    );
    let ports = ports.collect();
    (engine, ports)
}

#[test]
fn an_association_is_announced_behind_a_bridge_only() {
    for bridged in [true, false] {
        let (mut engine, ports) = cell(bridged);
        let mut book = Book::default();
        engine.advance(Instant::from_nanos(2_000_000_000), &mut book);
        assert_eq!(book.times(ports[0]).len(), usize::from(bridged), "one association");
        assert!(book.times(ports[1]).is_empty());
        check_ledger(&mut engine);
        for heard in &book.deliveries {
            let octets = &heard.octets;
            // To all, from the station, of length 6: null LSAPs, XID response, IEEE basic format.
            assert_eq!(octets.len(), 60);
            assert_eq!(octets[..6], [0xff; 6]);
            assert_eq!(octets[6..12], mac(1));
            assert_eq!(octets[12..20], [0, 6, 0, 1, 0xaf, 0x81, 1, 0]);
        }
    }
}
