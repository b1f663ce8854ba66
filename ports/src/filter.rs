//! Filters of captures: programs of the classic Berkeley Packet Filter (S. McCanne and V. Jacobson,
//! "The BSD Packet Filter", USENIX Winter 1993), as libpcap compiles them from `tcp port 80`.
//!
//! A program is checked once. After that it ends on every frame: it only jumps forward, and reads
//! nothing but the frame and its own memory.

use crate::error::Error;

/// Words of a program's memory.
const MEMORY: usize = 16;
/// Most instructions of a program, as in Linux.
const MOST: usize = 4096;

// Classes, and what they operate with.
const LD: u16 = 0x00;
const LDX: u16 = 0x01;
const ST: u16 = 0x02;
const STX: u16 = 0x03;
const ALU: u16 = 0x04;
const JMP: u16 = 0x05;
const RET: u16 = 0x06;
const MISC: u16 = 0x07;
const H: u16 = 0x08;
const B: u16 = 0x10;
const IMM: u16 = 0x00;
const ABS: u16 = 0x20;
const IND: u16 = 0x40;
const MEM: u16 = 0x60;
const LEN: u16 = 0x80;
const MSH: u16 = 0xa0;
const X: u16 = 0x08;
const A: u16 = 0x10;
const TXA: u16 = 0x80;
const DIV: u16 = 0x30;
const MOD: u16 = 0x90;
const JA: u16 = 0x00;

/// An instruction, as in `struct bpf_insn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip if a condition holds.
    pub holds: u8,
    /// Instructions to skip if it does not.
    pub fails: u8,
    /// Operand.
    pub k: u32,
}

/// A checked program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Vec<Instruction>);

impl Filter {
    /// Checks a program.
    ///
    /// # Errors
    /// [`Error::Filter`] with the first instruction that is not one, or that leads out of the program.
    pub fn new(program: Vec<Instruction>) -> Result<Self, Error> {
        let refuse = |at, why| Err(Error::Filter { at, why });
        if program.is_empty() || program.len() > MOST {
            return refuse(program.len(), "it has not from 1 to 4096 instructions");
        }
        for (at, one) in program.iter().enumerate() {
            let left = program.len() - at - 1;
            let inside = |skipped: u32| usize::try_from(skipped).is_ok_and(|skipped| skipped < left);
            if let Err(why) = one.check(inside) {
                return refuse(at, why);
            }
        }
        if program.last().is_some_and(|last| last.code & 7 != RET) {
            return refuse(program.len() - 1, "the last instruction does not return");
        }
        Ok(Self(program))
    }

    /// Whether a frame of `length` octets, of which there are these, passes the filter.
    #[must_use]
    pub fn admits(&self, octets: &[u8], length: usize) -> bool {
        self.run(octets, length).is_some_and(|kept| kept > 0)
    }

    /// What the program returns; None if it reads behind the frame, or divides by zero.
    fn run(&self, octets: &[u8], length: usize) -> Option<u32> {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let (mut a, mut x, mut memory) = (0u32, 0u32, [0u32; MEMORY]);
        let mut at = 0;
        loop {
            let Instruction { code, holds, fails, k } = self.0[at];
            at += 1;
            match code & 7 {
                LD | LDX => {
                    let offset = if code & 0xe0 == IND { x.checked_add(k)? } else { k };
                    let value = match code & 0xe0 {
                        IMM => k,
                        MEM => memory[k as usize],
                        LEN => length,
                        MSH => 4 * (read(octets, offset, B)? & 15),
                        _ => read(octets, offset, code & 0x18)?,
                    };
                    *(if code & 7 == LD { &mut a } else { &mut x }) = value;
                }
                ST => memory[k as usize] = a,
                STX => memory[k as usize] = x,
                ALU => a = compute(code & 0xf0, a, if code & X == 0 { k } else { x })?,
                JMP => {
                    let operand = if code & X == 0 { k } else { x };
                    let taken = match code & 0xf0 {
                        JA => k,
                        0x10 if a == operand => holds.into(),
                        0x20 if a > operand => holds.into(),
                        0x30 if a >= operand => holds.into(),
                        0x40 if a & operand != 0 => holds.into(),
                        _ => fails.into(),
                    };
                    at += taken as usize;
                }
                RET => return Some(if code & 0x18 == A { a } else { k }),
                _ if code & TXA != 0 => a = x,
                _ => x = a,
            }
        }
    }
}

impl Instruction {
    /// Checks an instruction; `inside` tells whether a jump over so many instructions stays in the
    /// program.
    fn check(self, inside: impl Fn(u32) -> bool) -> Result<(), &'static str> {
        let Self { code, holds, fails, k } = self;
        let known = match code & 7 {
            LD => match code & 0xe0 {
                IMM | LEN | MEM => code & 0x18 == 0,
                ABS | IND => code & 0x18 != 0x18,
                _ => false,
            },
            LDX => match code & 0xe0 {
                IMM | LEN | MEM => code & 0x18 == 0,
                MSH => code & 0x18 == B,
                _ => false,
            },
            ST | STX => code & !7 == 0,
            ALU => code & 0xf0 <= 0xa0,
            JMP => code & 0xf0 <= 0x40,
            RET => matches!(code & !7, 0 | A),
            _ => matches!(code, MISC | 0x87),
        };
        if !known || code > 0xff {
            return Err("it is not known");
        }
        let of_memory = matches!(code & 7, ST | STX) || (matches!(code & 7, LD | LDX) && code & 0xe0 == MEM);
        if of_memory && k as usize >= MEMORY {
            return Err("it is outside the program's memory");
        }
        if code & 7 == ALU && code & X == 0 && k == 0 && matches!(code & 0xf0, DIV | MOD) {
            return Err("it divides by zero");
        }
        let leads_out = match (code & 7, code & 0xf0) {
            (JMP, JA) => !inside(k),
            (JMP, _) => !inside(holds.into()) || !inside(fails.into()),
            _ => false,
        };
        if leads_out { Err("it leads out of the program") } else { Ok(()) }
    }
}

/// Reads a word, a half-word or an octet; None if it is not in the frame.
fn read(octets: &[u8], offset: u32, size: u16) -> Option<u32> {
    let rest = octets.get(offset as usize..)?;
    match size {
        H => rest.first_chunk().map(|octets| u16::from_be_bytes(*octets).into()),
        B => rest.first().map(|octet| (*octet).into()),
        _ => rest.first_chunk().map(|octets| u32::from_be_bytes(*octets)),
    }
}

fn compute(operation: u16, a: u32, operand: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(operand),
        0x10 => a.wrapping_sub(operand),
        0x20 => a.wrapping_mul(operand),
        DIV => a.checked_div(operand)?,
        0x40 => a | operand,
        0x50 => a & operand,
        0x60 => a.checked_shl(operand).unwrap_or(0),
        0x70 => a.checked_shr(operand).unwrap_or(0),
        0x80 => a.wrapping_neg(),
        MOD => a.checked_rem(operand)?,
        _ => a ^ operand,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn program(instructions: &[(u16, u8, u8, u32)]) -> Result<Filter, Error> {
        let all = instructions.iter().map(|&(code, holds, fails, k)| Instruction { code, holds, fails, k });
        Filter::new(all.collect())
    }

    /// `tcpdump -y EN10MB -ddd 'udp dst port 53'` of IPv4 and IPv6.
    const DNS: [(u16, u8, u8, u32); 14] = [
        (40, 0, 0, 12),
        (21, 0, 4, 34525),
        (48, 0, 0, 20),
        (21, 0, 11, 17),
        (40, 0, 0, 56),
        (21, 8, 9, 53),
        (21, 0, 8, 2048),
        (48, 0, 0, 23),
        (21, 0, 6, 17),
        (40, 0, 0, 20),
        (69, 4, 0, 8191),
        (177, 0, 0, 14),
        (72, 0, 0, 16),
        (21, 0, 1, 53),
    ];

    fn dns() -> Filter {
        let end = [(6, 0, 0, 262_144), (6, 0, 0, 0)];
        program(&[&DNS[..], &end].concat()).expect("libpcap's program")
    }

    /// An Ethernet frame with IPv4 and UDP.
    fn datagram(port: u16, fragment: u16) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend_from_slice(&[8, 0, 0x45, 0, 0, 36, 0, 0]);
        frame.extend_from_slice(&fragment.to_be_bytes());
        frame.extend_from_slice(&[64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10, 0]);
        frame.extend_from_slice(&port.to_be_bytes());
        frame.extend_from_slice(&[0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        frame
    }

    #[test]
    fn a_program_tells_frames_apart() {
        let filter = dns();
        let one = datagram(53, 0);
        assert!(filter.admits(&one, one.len()));
        assert!(!filter.admits(&datagram(54, 0), 50));
        assert!(!filter.admits(&datagram(53, 7), 50), "a later fragment has no port");
        assert!(!filter.admits(&one[..30], 50), "what is not there does not match");
        assert!(!filter.admits(&[], 0));
    }

    #[test]
    fn registers_memory_and_arithmetic() {
        // x = 3; memory[2] = x; a = length; a = a % memory[2] (via x); a *= 5; return a
        let filter = program(&[
            (0x01, 0, 0, 3),
            (0x03, 0, 0, 2),
            (0x80, 0, 0, 0),
            (0x61, 0, 0, 2),
            (0x9c, 0, 0, 0),
            (0x24, 0, 0, 5),
            (0x16, 0, 0, 0),
        ])
        .expect("it is one");
        assert_eq!(filter.run(&[], 11), Some(10));
        assert_eq!(filter.run(&[], 12), Some(0));
    }

    #[test]
    fn a_division_by_zero_does_not_match() {
        let filter = program(&[(0x3c, 0, 0, 0), (0x06, 0, 0, 1)]).expect("x is known at run time only");
        assert!(!filter.admits(&[], 0));
    }

    #[test]
    fn a_program_that_is_none_is_refused() {
        let refused =
            |instructions: &[(u16, u8, u8, u32)]| program(instructions).expect_err("none").to_string();
        assert!(refused(&[]).contains("4096"));
        assert!(refused(&[(0x00, 0, 0, 1)]).contains("does not return"));
        assert!(refused(&[(0x15, 1, 0, 0), (6, 0, 0, 0)]).contains("leads out"));
        assert!(refused(&[(0x05, 0, 0, u32::MAX), (6, 0, 0, 0)]).contains("leads out"));
        assert!(refused(&[(0x02, 0, 0, 16), (6, 0, 0, 0)]).contains("memory"));
        assert!(refused(&[(0x34, 0, 0, 0), (6, 0, 0, 0)]).contains("zero"));
        assert!(refused(&[(0xff, 0, 0, 0), (6, 0, 0, 0)]).contains("not known"));
    }

    proptest! {
        #[test]
        fn a_checked_program_ends_on_every_frame(
            instructions in proptest::collection::vec((0u16..256, 0u8..8, 0u8..8, 0u32..40), 1..40),
            frame in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut all = instructions;
            all.push((6, 0, 0, 1));
            // The instructions that are refused are left out; jumps then lead elsewhere, or out.
            let end = [(6, 0, 0, 0); 40];
            all.retain(|one| program(&[&[*one][..], &end].concat()).is_ok());
            if let Ok(filter) = program(&all) {
                let _ = filter.admits(&frame, frame.len());
            }
        }
    }
}
