//! Messages of this machine's own kernel, without a guest: its `mac80211_hwsim` takes this process for
//! the medium of the radios that were created for it.

use std::os::fd::{AsRawFd, RawFd};

use airloom_engine::HostLoss;
use airloom_engine::egress::Delivery;
use airloom_engine::frame::Pool;
use airloom_engine::time::Instant;
use airloom_netns::hwsim::Radios;

use super::Transport;
use super::device::{Taken, Wlan};
use super::hwsim::LONGEST;
use crate::port::Report;
use crate::vhost::device::Counts;
use crate::vhost::{DisconnectReason, Standing, Translations, figures};

/// The netlink socket of the radios.
#[derive(Debug)]
pub struct Netlink {
    radios: Radios,
    wlan: Wlan,
    /// The message that is received or sent.
    message: Box<[u8; LONGEST]>,
    counts: Counts,
    /// Messages of the kernel that were lost, as far as they have been reported.
    lost: u32,
    /// Why the most recent message was not executed.
    reason: Option<DisconnectReason>,
}

impl Netlink {
    /// Is the medium of these radios.
    #[must_use]
    pub fn serve(radios: Radios) -> Self {
        let wlan = Wlan::of_kernel(radios.numbers());
        let (message, counts) = (Box::new([0; LONGEST]), Counts::default());
        Self { radios, wlan, message, counts, lost: 0, reason: None }
    }

    fn next(&mut self, pool: &mut Pool) -> Result<Option<Taken>, DisconnectReason> {
        let received = self.radios.receive(&mut *self.message).map_err(DisconnectReason::Socket)?;
        let Some(octets) = received else { return Ok(None) };
        let taken = self.wlan.serve(&self.message[..octets], pool).map_err(DisconnectReason::Wlan)?;
        self.counts.taken += 1;
        if let Taken::Transmit(_, _, octets, _) = taken {
            self.counts.taken_octets += u64::from(octets);
        }
        Ok(Some(taken))
    }
}

impl Transport for Netlink {
    fn wlan(&mut self) -> &mut Wlan {
        &mut self.wlan
    }

    fn descriptor(&self) -> RawFd {
        self.radios.as_raw_fd()
    }

    /// A message that is not understood is passed over: there is no connection that could end.
    fn take(&mut self, pool: &mut Pool) -> Option<Taken> {
        self.next(pool).unwrap_or_else(|reason| {
            self.reason = Some(reason);
            None
        })
    }

    fn put(&mut self, message: [&[u8]; 3]) -> Delivery {
        let mut octets = 0;
        for part in message {
            let Some(place) = self.message.get_mut(octets..octets + part.len()) else {
                return Delivery::Lost(HostLoss::TooBig);
            };
            place.copy_from_slice(part);
            octets += part.len();
        }
        if self.radios.send(&mut self.message[..octets]).is_err() {
            return Delivery::Lost(HostLoss::Refused);
        }
        self.counts.put += 1;
        self.counts.put_octets += octets as u64;
        Delivery::Taken
    }

    fn negotiate(&mut self) -> bool {
        false
    }

    fn notify(&mut self, _: Instant) -> Instant {
        Instant::NEVER
    }

    fn missed(&mut self) -> u64 {
        let lost = self.radios.lost();
        u64::from(lost.wrapping_sub(std::mem::replace(&mut self.lost, lost)))
    }

    fn is_gone(&self) -> bool {
        false
    }

    fn disconnect_reason(&self) -> Option<&DisconnectReason> {
        self.reason.as_ref()
    }

    fn figures(&self) -> Report {
        let unserved = self.wlan.strangers();
        figures(Standing::Up, self.reason.as_ref(), 1, 0, self.counts, Translations::default(), unserved)
    }
}
