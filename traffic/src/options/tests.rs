use super::*;

fn send(words: &str) -> Result<Send, String> {
    match parse(words.split_ascii_whitespace()) {
        Ok(Request::Send(send)) => Ok(*send),
        Ok(_) => panic!("not a send"),
        Err(error) => Err(error.to_string()),
    }
}

fn receive(words: &str) -> Result<Receive, String> {
    match parse(words.split_ascii_whitespace()) {
        Ok(Request::Receive(receive)) => Ok(receive),
        Ok(_) => panic!("not a receive"),
        Err(error) => Err(error.to_string()),
    }
}

const TO: &str = "send --to 10.0.0.2 --port 5000 --count 1";

fn gap_of(words: &str) -> u64 {
    let send = send(&format!("{TO} {words}")).unwrap();
    let mut schedule = send.pattern.schedule(send.size, 0);
    schedule.next();
    schedule.next().unwrap().at.nanos()
}

#[test]
fn a_rate_becomes_a_gap() {
    assert_eq!(gap_of("--rate 10Mbit/s"), 1_176_000);
    assert_eq!(gap_of("--rate 10Mbit/s --size 1250B"), 1_000_000);
    assert_eq!(gap_of("--rate 10Mbit/s --frame 1518B --rate-of frame"), 1_214_400);
    assert_eq!(gap_of("--rate 10Mbit/s --frame 1518B --rate-of wire"), 1_230_400);
    assert_eq!(gap_of("--interval 5ms"), 5_000_000);
}

#[test]
fn a_frame_becomes_a_payload() {
    let size = |words: &str| send(&format!("{TO} --interval 1ms {words}")).map(|send| send.size);
    assert_eq!(size("--frame 1518B"), Ok(1472));
    assert_eq!(size("--frame 64B"), Ok(18));
    assert_eq!(size("--frame 63B"), Err("--frame must be 64 B or more here".into()));
    assert_eq!(size("--protocol rtp --frame 1518B"), Ok(1472));
    assert_eq!(size("--protocol rtp --frame 75B"), Err("--frame must be 76 B or more here".into()));
    assert!(size("--protocol tcp --frame 1518B").unwrap_err().contains("TCP makes its own frames"));
    assert!(size("--size 65508B").unwrap_err().contains("18 to 65507"));
}

#[test]
fn class_holds_dscp_and_ecn() {
    assert_eq!(send(&format!("{TO} --rate max --dscp 46 --ecn 1")).unwrap().class, 46 << 2 | 1);
    assert!(send(&format!("{TO} --rate max --dscp 64")).is_err());
}

#[test]
fn what_makes_no_sense_is_refused_with_the_cure() {
    for (words, says) in [
        ("send", "--to is needed"),
        ("send --to nowhere --port 1", "neither an address nor a name"),
        ("send --to ::1 --port 1 --rate max", "--count or --duration is needed"),
        ("send --to ::1 --rate max --count 1", "--port is needed"),
        ("send --to ::1 --port 1 --count 1", "--rate or --interval is needed"),
        ("send --to ::1 --port 1 --count 1 --rate 5", "needs one of the units bit/s"),
        ("send --to ::1 --port 1 --count 1 --rate 0bit/s", "above 0"),
        ("send --to ::1 --port 1 --count 1 --interval 0ms", "above 0"),
        ("send --to ::1 --port 1 --count 1 --rate 1bit/s --interval 1s", "not both"),
        ("send --to ::1 --port 1 --count 1 --rate 1bit/s --on 1s", "belong to --pattern on-off"),
        ("send --to ::1 --port 1 --count 1 --rate 1bit/s --pattern on-off --on 1s", "needs --on"),
        ("send --to ::1 --port 1 --count 1 --rate 1bit/s --pattern bursts", "expected constant"),
        ("send --to ::1 --port 1 --pattern trace", "belong together"),
        ("send --to ::1 --port 1 --pattern trace --trace /nonexistent", "/nonexistent: No such file"),
        ("send --to ::1 --port 1 --count 1 --rate max --pattern poisson", "constant only"),
        ("send --to ::1 --port 1 --count 1 --rate max --protocol sctp", "expected udp, tcp or rtp"),
        ("send --to ::1 --port 1 --count 1 --rate max --idle 1s", "`send` has no option `--idle`"),
        ("send --to ::1 --port 1 --count x --rate max", "x"),
    ] {
        let said = send(words).unwrap_err();
        assert!(said.contains(says), "{words}: {said}");
    }
    for (words, says) in [
        ("receive", "--port is needed"),
        ("receive --port 0", "--port is needed"),
        ("receive --port 1 --rate max", "`receive` has no option `--rate`"),
        ("receive --port 1 --idle 5", "needs one of the units"),
        ("receive --port 1 extra", "extra"),
    ] {
        let said = receive(words).unwrap_err();
        assert!(said.contains(says), "{words}: {said}");
    }
    assert!(parse(["fly"]).is_err());
    assert!(parse(Vec::<String>::new()).is_err());
}

#[test]
fn defaults_of_a_receiver() {
    let receive = receive("receive --port 7 --bind 127.0.0.1").unwrap();
    assert_eq!(receive.at, "127.0.0.1:7".parse().unwrap());
    assert_eq!((receive.idle, receive.linger), (Span::from_secs(10), Span::from_millis(500)));
    assert_eq!(receive.common.flow, None);
}

#[test]
fn help_names_every_option() {
    for option in include_str!("../options.rs").split('"').filter(|word| {
        word.len() > 1 && word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-')
    }) {
        let is_an_option = include_str!("../options.rs").contains(&format!("\"{option}\" => given."));
        assert!(!is_an_option || HELP.contains(&format!("--{option}")), "{option}");
    }
}
