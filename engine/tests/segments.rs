//! Super-frames as octets: their segments equal the frames that a network would carry.

mod common;

use airloom_engine::frame::segment::{self, HEADER_MAX};
use airloom_engine::frame::{Checksum, Frame, Pool, Protocol, Segmentation};
use common::internet_sum;
use proptest::prelude::*;

/// Parameters of a test's super-frame.
#[derive(Clone, Debug)]
struct Recipe {
    protocol: Protocol,
    six: bool,
    tags: usize,
    options: usize,
    extension: bool,
    payload: usize,
    size: u16,
    flags: u8,
    sequence: u32,
    identification: u16,
}

/// The octets, the length of the headers, and the offsets of layers 3 and 4.
fn build(recipe: &Recipe) -> (Vec<u8>, usize, usize, usize) {
    let mut octets = vec![0xaa; 12];
    for _ in 0..recipe.tags {
        octets.extend([0x81, 0x00, 0x00, 0x07]);
    }
    octets.extend(if recipe.six { [0x86, 0xdd] } else { [0x08, 0x00] });
    let network = octets.len();
    let udp = recipe.protocol == Protocol::Udp;
    let transport_header = if udp { 8 } else { 20 + 4 * recipe.options };
    let upper = transport_header + recipe.payload;
    let number = if udp { 17 } else { 6 };
    let be = |value: usize| u16::try_from(value).expect("fits").to_be_bytes();
    let addresses;
    if recipe.six {
        let extension = if recipe.extension { 8 } else { 0 };
        octets.extend([0x60, 0, 0, 0]);
        octets.extend(be(upper + extension));
        octets.extend([if recipe.extension { 60 } else { number }, 64]);
        addresses = octets.len()..octets.len() + 32;
        octets.extend(1..=32);
        if recipe.extension {
            octets.extend([number, 0, 1, 4, 0, 0, 0, 0]);
        }
    } else {
        let total = 20 + 4 * recipe.options + upper;
        octets.extend([0x45 + u8::try_from(recipe.options).expect("small"), 0]);
        octets.extend(be(total));
        octets.extend(recipe.identification.to_be_bytes());
        octets.extend([0x40, 0, 64, number, 0, 0]);
        addresses = octets.len()..octets.len() + 8;
        octets.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        octets.extend(vec![1; 4 * recipe.options]);
        let sum = !internet_sum(&octets[network..]);
        octets[network + 10..network + 12].copy_from_slice(&sum.to_be_bytes());
    }
    let mut pseudo = octets[addresses].to_vec();
    pseudo.extend([0, number]);
    pseudo.extend(be(upper));
    let pseudo = internet_sum(&pseudo).to_be_bytes();
    let transport = octets.len();
    octets.extend([0x13, 0x88, 0x13, 0x89]);
    if udp {
        octets.extend(be(upper));
        octets.extend(pseudo);
    } else {
        octets.extend(recipe.sequence.to_be_bytes());
        octets.extend([0, 0, 0, 9]);
        octets.extend([u8::try_from(5 + recipe.options).expect("small") << 4, recipe.flags, 1, 1]);
        octets.extend(pseudo);
        octets.extend([0, 0]);
        octets.extend(vec![1; 4 * recipe.options]);
    }
    let header = octets.len();
    octets.extend((0..recipe.payload).map(|index| u8::try_from(index * 7 % 253).expect("small")));
    (octets, header, network, transport)
}

fn load(pool: &mut Pool, octets: &[u8], cut: Segmentation, checksum: Checksum) -> Frame {
    let buffer = pool.take(octets.len());
    pool.octets_mut(buffer)[..octets.len()].copy_from_slice(octets);
    let frame = Frame::new(buffer, u32::try_from(octets.len()).expect("a frame"), Some(cut), Some(checksum));
    Frame { count: u16::try_from(frame.segments()).expect("a frame"), ..frame }
}

fn all_segments(frame: &Frame, pool: &Pool) -> Vec<Vec<u8>> {
    let write = |segment| {
        let mut out = vec![0; 70_000];
        let length = segment::complete(frame, pool, segment, &mut out);
        out.truncate(length);
        assert_eq!(length, frame.segment_octets(segment) as usize);
        out
    };
    (frame.first..frame.first + frame.count).map(write).collect()
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let shape = (0..4_usize, 0..3_usize, 0..10_usize, any::<bool>());
    let content = (1..9_000_usize, 1..1_500_u16, any::<u8>(), any::<u32>(), any::<u16>());
    (shape, content).prop_map(|((kind, tags, options, extension), content)| {
        let (payload, size, flags, sequence, identification) = content;
        let protocol = [Protocol::Tcp4, Protocol::Tcp6, Protocol::Udp, Protocol::Udp][kind];
        let six = kind % 2 == 1;
        Recipe { protocol, six, tags, options, extension, payload, size, flags, sequence, identification }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn segments_are_whole_frames_that_carry_the_payload(recipe in recipes()) {
        let (octets, header, network, transport) = build(&recipe);
        let udp = recipe.protocol == Protocol::Udp;
        let checksum = Checksum {
            start: u16::try_from(transport).expect("small"),
            offset: if udp { 6 } else { 16 },
        };
        let cut = Segmentation {
            protocol: recipe.protocol,
            header: u16::try_from(header).expect("small"),
            size: recipe.size,
        };
        let mut pool = Pool::default();
        let frame = load(&mut pool, &octets, cut, checksum);
        let segments = all_segments(&frame, &pool);
        let size = usize::from(recipe.size);
        prop_assert_eq!(segments.len(), recipe.payload.div_ceil(size));
        let mut payload: Vec<u8> = Vec::new();
        for (index, segment) in segments.iter().enumerate() {
            let last = index + 1 == segments.len();
            let word = |at: usize| usize::from(u16::from_be_bytes([segment[at], segment[at + 1]]));
            let upper = segment.len() - transport;
            let addresses = if recipe.six {
                prop_assert_eq!(word(network + 4), segment.len() - network - 40);
                network + 8..network + 40
            } else {
                prop_assert_eq!(word(network + 2), segment.len() - network);
                let identification = usize::from(recipe.identification) + index;
                prop_assert_eq!(word(network + 4), identification % 65_536);
                prop_assert_eq!(internet_sum(&segment[network..transport]), 0xffff);
                network + 12..network + 20
            };
            let mut covered = segment[addresses].to_vec();
            covered.extend([0, if udp { 17 } else { 6 }]);
            covered.extend(u16::try_from(upper).expect("small").to_be_bytes());
            covered.extend(&segment[transport..]);
            prop_assert_eq!(internet_sum(&covered), 0xffff);
            if udp {
                prop_assert_eq!(word(transport + 4), upper);
            } else {
                let sequence = recipe.sequence.wrapping_add(u32::try_from(index * size).expect("small"));
                prop_assert_eq!(&segment[transport + 4..transport + 8], &sequence.to_be_bytes());
                let mut flags = recipe.flags;
                if !last { flags &= !0x09; }
                if index > 0 { flags &= !0x80; }
                prop_assert_eq!(segment[transport + 13], flags);
            }
            payload.extend(&segment[header..]);
        }
        prop_assert_eq!(payload, &octets[header..]);

        // Every run is a super-frame that is cut into the same segments.
        let count = frame.count;
        for (first, count) in [(0, count), (0, count.div_ceil(2)), (count / 2, count - count / 2), (count - 1, 1)] {
            let mut head = [0; HEADER_MAX];
            let piece = segment::header(&frame, &pool, first, count, &mut head);
            let mut run = head[..piece.header].to_vec();
            run.extend(&pool.octets(frame.buffer)[piece.payload.clone()]);
            let wanted = &segments[usize::from(first)..usize::from(first + count)];
            match piece.segmentation {
                Some(cut) => {
                    let run = load(&mut pool, &run, cut, piece.checksum.expect("still to be computed"));
                    prop_assert_eq!(&all_segments(&run, &pool)[..], wanted);
                }
                None => {
                    segment::complete_checksum(&mut run, piece.checksum.expect("still to be computed"));
                    prop_assert_eq!(&[run][..], wanted);
                }
            }
        }
    }
}

#[test]
fn a_datagram_never_says_that_it_has_no_checksum() {
    // The sum of this datagram is 0xffff, its complement 0: RFC 768 requires 0xffff instead.
    let mut octets = vec![0; 14];
    octets.extend([0xff, 0xff, 0, 0, 0, 0, 0, 0]);
    segment::complete_checksum(&mut octets, Checksum { start: 14, offset: 6 });
    assert_eq!(octets[20..22], [0xff, 0xff]);
    let untouched = octets.clone();
    segment::complete_checksum(&mut octets, Checksum { start: 20, offset: 6 });
    assert_eq!(octets, untouched, "a description that does not fit changes nothing");
}

#[test]
fn a_frame_in_two_pieces_has_the_checksum_of_the_whole() {
    let whole: Vec<u8> = (0u8..=254).collect();
    let left = Checksum { start: 34, offset: 16 };
    let expected = segment::completed_checksum([&whole, &[]], left);
    assert!(expected.is_some());
    for cut in (54..=whole.len()).step_by(2) {
        let (head, rest) = whole.split_at(cut);
        assert_eq!(segment::completed_checksum([head, rest], left), expected, "cut at {cut}");
    }
    assert_eq!(segment::completed_checksum([&whole[..51], &[]], left), None);
}
