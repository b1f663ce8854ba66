//! What a medium is made of: its laws, and its radios.

use std::collections::BTreeMap;

use crate::math::linear;
use crate::medium::airtime::Account;
use crate::medium::bss::Cell;
use crate::medium::card::SleepAccount;
use crate::medium::codes::CodeSettings;
use crate::medium::error::{Decoder, ErrorModel};
use crate::medium::hops::Sequence;
use crate::medium::leakage::Leakage;
use crate::medium::mobility::Mobility;
use crate::medium::propagation::{Fading, PathLoss};
use crate::medium::radio::{Radio, RadioCounts, RadioId, Stage};
use crate::medium::reach::Place;
use crate::medium::scan::Scanned;
use crate::medium::settings::{Membership, RadioSettings, SettingsError};
use crate::medium::slots::SlotSettings;
use crate::medium::wideband::Wideband;
use crate::medium::windows::Windows;
use crate::medium::{Medium, mac, phy, rate, uncontended};
use crate::random::Stream;
use crate::time::{Instant, Span};

impl Medium {
    /// Sets the power in dBm at a receiver, without fading, below which signals are ignored.
    pub fn set_floor(&mut self, floor_dbm: f64) {
        self.dissolve_clusters();
        self.reach.set_floor(floor_dbm);
    }

    /// Sets the fading model.
    pub fn set_fading(&mut self, fading: Fading) {
        self.dissolve_clusters();
        self.reach.set_margin(fading.margin_db());
        self.fading = fading;
    }

    /// Sets the error model.
    pub fn set_error_model(&mut self, model: Box<dyn ErrorModel>) {
        self.dissolve_clusters();
        self.error = model;
        self.decoders.clear();
        for name in &self.decoder_names {
            if let Some(phy) = phy::tables::by_name(name) {
                self.decoders.push(Decoder::new(&*self.error, phy));
            }
        }
    }

    /// Sets the leakage between channels, for radios that are added from now on.
    pub fn set_leakage(&mut self, leakage: Leakage) {
        self.dissolve_clusters();
        self.reach.set_leakage(leakage);
    }

    /// Sets the loss in dB between radios at one place; without it the path loss model decides.
    pub fn set_antenna_isolation(&mut self, loss_db: Option<f64>) {
        self.dissolve_clusters();
        self.reach.set_antenna_isolation(loss_db);
    }

    /// Sets the path loss model.
    pub fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.dissolve_clusters();
        self.reach.set_loss(loss);
    }

    /// Sets the frame error probability (0 to 1) from one radio to another. It applies in addition
    /// to all other losses, independent of length and rate.
    pub fn set_frame_error(&mut self, from: RadioId, to: RadioId, probability: f64) {
        self.dissolve_clusters();
        self.frame_errors.insert((from.0, to.0), probability);
    }

    /// Adds a radio.
    ///
    /// # Errors
    /// Names the first invalid setting, or an address that is already in use.
    pub fn add_radio(
        &mut self,
        name: &str,
        settings: RadioSettings,
        mut mobility: Box<dyn Mobility>,
    ) -> Result<RadioId, SettingsError> {
        let checked = settings.check(name)?;
        let rate = uncontended::rate_of(name, &settings.rate, self.uncontended.is_some())?;
        if let Some(other) = self.addresses.get(&settings.mac) {
            let other = self.radios[other.index()].name.clone();
            return Err(SettingsError::Address { radio: name.to_owned(), other });
        }
        if !mobility.position(self.now).is_sane() {
            return Err(SettingsError::Position { radio: name.to_owned() });
        }
        self.dissolve_clusters();
        if let (Some(state), Some(rate)) = (&mut self.uncontended, rate) {
            uncontended::check_membership(name, &settings.membership)?;
            state.add(rate, self.now);
        }
        let id = RadioId(u32::try_from(self.radios.len()).unwrap_or(u32::MAX));
        let phy = checked.phy;
        let known = self.decoder_names.iter().position(|known| *known == phy.name);
        let decoder = known.unwrap_or_else(|| {
            self.decoders.push(Decoder::new(&*self.error, phy));
            self.decoder_names.push(phy.name);
            self.decoders.len() - 1
        });
        let wlan = settings.membership == Membership::Wlan;
        let slot = phy.slot + Span::from_micros(3 * u64::from(settings.coverage_class));
        let windows = Windows::of(&settings);
        let watched = settings.slots.as_ref().filter(|slots| !slots.hold).map(SlotSettings::windows);
        let in_window = windows.as_ref().is_none_or(|windows| windows.window_end(self.now).is_some());
        let hops = settings.hops.as_ref().map(|hops| Sequence::new(hops, checked.hops));
        if !wlan {
            self.addresses.insert(settings.mac, id);
        }
        self.reach.add(Place {
            mobility,
            eirp_dbm: settings.power_dbm + settings.gain_dbi,
            gain_dbi: settings.gain_dbi,
            channel: hops.as_ref().map_or(checked.channel, |hops| hops.channel(self.now)),
            up: true,
            wideband: wlan,
            card: 0,
            code: settings.code,
        });
        self.timers.add();
        // Thermal noise at 290 K: -174 dBm/Hz (k T = 1.380649e-23 J/K * 290 K).
        let noise =
            1.380_649e-23 * 290.0 * 1e3 * f64::from(phy.bandwidth_hz) * linear(settings.noise_figure_db);
        // After the correlation with its code.
        let despread = settings.code.map_or(1.0, CodeSettings::noise);
        self.radios.push(Radio {
            name: name.to_owned(),
            phy,
            slot,
            extension: phy.eifs().saturating_sub(phy.difs()),
            basic: checked.basic,
            control: checked.control,
            decoder: u8::try_from(decoder).unwrap_or(0),
            random: Stream::named(self.seed, &format!("{}/{name}", self.name)),
            rate: rate::controller(&settings.rate, phy),
            noise: noise * despread,
            ambient: 0.0,
            sense: linear(settings.carrier_sense_dbm),
            sensitivity: linear(settings.receive_dbm) * despread,
            preamble_ratio: settings.preamble_db.map_or(0.0, linear),
            capture_ratio: settings.capture_db.map_or(f64::INFINITY, linear),
            capture_window: Span::from_nanos(settings.capture_ns.unwrap_or(u64::MAX)),
            wanted_on: true,
            switched_on: true,
            cell: Cell::new(&settings.membership, checked.channels),
            dozing: SleepAccount::default(),
            away: false,
            scan: None,
            ordered: None,
            scanned: Scanned::default(),
            step: 0,
            energy: 0.0,
            signals: 0,
            lock: None,
            transmitting: false,
            busy: false,
            idle_since: self.now,
            account: Account::new(self.now),
            overheard: 0,
            cluster: None,
            asleep: false,
            unclustered: 0,
            lanes: mac::lanes(phy, slot, settings.qos || wlan),
            counting: in_window,
            stopped: Instant::ZERO,
            stopped_self: true,
            free_since: self.now,
            reserved_until: self.now,
            extended: false,
            broken_at: None,
            access_at: Instant::NEVER,
            stage: Stage::Free,
            answer: None,
            txop_until: Instant::ZERO,
            sequence: 0,
            heard_from: BTreeMap::new(),
            waiting: 0,
            wideband: wlan.then(|| {
                Box::new(Wideband::new(checked.channel, phy::Channel::all(phy.bands), self.reach.leakage))
            }),
            monitor: settings.monitor,
            card: None,
            held: false,
            counts: RadioCounts::default(),
            peers: BTreeMap::new(),
            policer: None,
            share: None,
            in_window,
            window_epoch: 0,
            windows,
            hops,
            watched,
            settings,
        });
        self.watch_windows(id.0);
        self.watch_hops(id.index());
        self.soak(id.index());
        self.enlist(id.index());
        Ok(id)
    }
}
