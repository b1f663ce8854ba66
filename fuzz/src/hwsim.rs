//! An untrusted guest of the wireless device: one message of its driver.
//!
//! Input: the message, whose length field is replaced by its true length.

use airloom_engine::Engine;
use airloom_engine::frame::Pool;
use airloom_engine::medium::phy::tables::A;
use airloom_ports::wlan::device::{Taken, Wlan};
use airloom_ports::wlan::hwsim::read;

/// Runs one input.
pub fn run(data: &[u8]) {
    let _ = read(data);
    let mut message = data.to_vec();
    let Some(length) = message.first_chunk_mut::<4>() else { return };
    *length = u32::try_from(data.len()).expect("short").to_ne_bytes();
    let mut pool = Pool::default();
    let mut wlan = Wlan::default();
    wlan.assign(0, Engine::new(1).add_port("a", false).expect("new"), &A);
    if let Ok(Taken::Transmit(_, buffer, octets, _)) = wlan.serve(&message[..], &mut pool) {
        assert!(octets as usize <= data.len());
        pool.release(buffer);
    }
    assert_eq!(pool.in_use(), 0);
}
