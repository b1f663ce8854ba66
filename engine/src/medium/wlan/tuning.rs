//! Tuning of radios that receive on all channels of their bands.

use std::collections::BTreeMap;

use crate::medium::Medium;
use crate::medium::phy::Channel;
use crate::medium::types::RadioId;

impl Medium {
    /// Tunes a radio that receives on all channels. It has not sensed the new channel before, and
    /// knows no reservation of it.
    pub(in crate::medium) fn tune(&mut self, index: usize, channel: Channel) {
        let now = self.core.now;
        let radio = self.core.radios.awake(index);
        let Some(wideband) = &mut radio.wideband else { return };
        wideband.tune(channel, &mut radio.reception);
        let layer = wideband.layer(channel);
        if let Some(layer) = layer.filter(|layer| !core::ptr::eq(layer.phy, radio.layer.phy)) {
            radio.take_layer(layer);
        }
        if self.core.reach.places[index].channel == channel {
            return;
        }
        self.dissolve_clusters();
        self.core.reach.places[index].channel = channel;
        self.core.reach.power_changed(index);
        self.core.reach.retuned();
        let radio = self.core.radios.awake(index);
        radio.settings.channel = channel.number;
        (radio.contention.extended, radio.contention.broken_at, radio.contention.reserved_until) =
            (false, None, now);
        (radio.busy, radio.idle_since) = (radio.senses(), now);
        radio.book(now, false);
        radio.recount(now);
        radio.restart(now);
        self.follow_channel(index);
        self.core.arm(index);
        self.review_card_of(index);
    }

    /// Frames that a radio's stack wanted to send where the radio has no channel, by frequency in MHz.
    #[must_use]
    pub fn foreign(&self, id: RadioId) -> BTreeMap<u16, u64> {
        let wideband = self.core.radios[id.index()].wideband.as_ref();
        wideband.map(|wideband| wideband.foreign().clone()).unwrap_or_default()
    }
}
