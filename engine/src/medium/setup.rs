//! What a medium is made of: its laws, and its radios.

use std::collections::BTreeMap;

use crate::math::linear;
use crate::medium::bss::cell::Cell;
use crate::medium::error::ErrorModel;
use crate::medium::mac::lane::{Contention, Exchange};
use crate::medium::mobility::Mobility;
use crate::medium::propagation::{Fading, PathLoss};
use crate::medium::radio::airtime::Account;
use crate::medium::radio::hold::Hold;
use crate::medium::radio::layer::Layer;
use crate::medium::radio::reception::{Receiver, Reception};
use crate::medium::radio::scan_state::Scanned;
use crate::medium::radio::sleep_account::SleepAccount;
use crate::medium::radio::wideband::Wideband;
use crate::medium::radio::{Radio, RadioCounts};
use crate::medium::reach::Place;
use crate::medium::reach::leakage::Leakage;
use crate::medium::settings::error::SettingsError;
use crate::medium::settings::radio::{Membership, RadioSettings};
use crate::medium::slices::codes::CodeSettings;
use crate::medium::slices::hops::Sequence;
use crate::medium::slices::slots::SlotSettings;
use crate::medium::slices::windows::Windows;
use crate::medium::types::RadioId;
use crate::medium::{Medium, mac, phy, rate, uncontended};
use crate::random::Stream;
use crate::time::Span;

impl RadioSettings {
    /// Energy detection threshold in dBm of a radio with this physical layer.
    pub(super) fn energy_threshold_dbm(&self, phy: &phy::Phy) -> f64 {
        self.carrier_sense_dbm.unwrap_or_else(|| phy.energy_threshold_dbm(self.power_dbm))
    }
}

impl Medium {
    /// Sets the power in dBm at a receiver, without fading, below which signals are ignored.
    pub fn set_floor(&mut self, floor_dbm: f64) {
        self.dissolve_clusters();
        self.core.reach.set_floor(floor_dbm);
    }

    /// Sets the fading model.
    pub fn set_fading(&mut self, fading: Fading) {
        self.dissolve_clusters();
        self.core.reach.set_margin(fading.margin_db());
        self.fading = fading;
    }

    /// Sets the error model.
    pub fn set_error_model(&mut self, model: Box<dyn ErrorModel>) {
        self.dissolve_clusters();
        self.errors.set_model(model);
    }

    /// Sets the leakage between channels, for radios that are added from now on.
    pub fn set_leakage(&mut self, leakage: Leakage) {
        self.dissolve_clusters();
        self.core.reach.set_leakage(leakage);
    }

    /// Sets the loss in dB between radios at one place; without it the path loss model decides.
    pub fn set_antenna_isolation(&mut self, loss_db: Option<f64>) {
        self.dissolve_clusters();
        self.core.reach.set_antenna_isolation(loss_db);
    }

    /// Sets the path loss model.
    pub fn set_loss(&mut self, loss: Box<dyn PathLoss>) {
        self.dissolve_clusters();
        self.core.reach.set_loss(loss);
    }

    /// Sets the frame error probability (0 to 1) from one radio to another. It applies in addition
    /// to all other losses, independent of length and rate.
    pub fn set_frame_error(&mut self, from: RadioId, to: RadioId, probability: f64) {
        self.dissolve_clusters();
        self.errors.set_pair(from.0, to.0, probability);
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
            let other = self.core.radios[other.index()].name.clone();
            return Err(SettingsError::Address { radio: name.to_owned(), other });
        }
        if !mobility.position(self.core.now).is_sane() {
            return Err(SettingsError::Position { radio: name.to_owned() });
        }
        self.dissolve_clusters();
        if let (Some(state), Some(rate)) = (&mut self.uncontended, rate) {
            uncontended::check_membership(name, &settings.membership)?;
            state.add(rate, self.core.now);
        }
        let id = RadioId(u32::try_from(self.core.radios.len()).unwrap_or(u32::MAX));
        let phy = checked.phy;
        self.aggregates |= settings.aggregation.is_some();
        let own = Layer::new(phy, &settings, self.errors.decoder_of(phy));
        let wlan = settings.membership == Membership::Wlan;
        let bands = checked.bands;
        let layers: Vec<Layer> = bands
            .layers
            .iter()
            .filter(|_| wlan)
            .map(|&phy| Layer::new(phy, &settings, self.errors.decoder_of(phy)))
            .collect();
        let slot = own.slot;
        let windows = Windows::of(&settings);
        let watched = settings.slots.as_ref().filter(|slots| !slots.hold).map(SlotSettings::windows);
        let in_window = windows.as_ref().is_none_or(|windows| windows.window_end(self.core.now).is_some());
        let hops = settings.hops.as_ref().map(|hops| Sequence::new(hops, checked.hops));
        if !wlan {
            self.addresses.insert(settings.mac, id);
        }
        self.core.reach.add(Place {
            mobility,
            eirp_dbm: settings.power_dbm + settings.gain_dbi,
            gain_dbi: settings.gain_dbi,
            channel: hops.as_ref().map_or(checked.channel, |hops| hops.channel(self.core.now)),
            wide: phy.is_wide(),
            up: true,
            wideband: if wlan { bands.bands } else { &[] },
            card: 0,
            code: settings.code,
        });
        self.core.timers.add();
        // Thermal noise at 290 K: -174 dBm/Hz (k T = 1.380649e-23 J/K * 290 K).
        let noise =
            1.380_649e-23 * 290.0 * 1e3 * f64::from(phy.bandwidth_hz) * linear(settings.noise_figure_db);
        // After the correlation with its code.
        let despread = settings.code.map_or(1.0, CodeSettings::noise);
        self.core.radios.push(Radio {
            name: name.to_owned(),
            layer: own,
            random: Stream::named(self.seed, &format!("{}/{name}", self.name)),
            removed: false,
            rate: rate::controller(&settings, phy),
            receiver: Receiver {
                noise: noise * despread,
                sense: linear(settings.energy_threshold_dbm(phy)),
                sensitivity: linear(settings.receive_dbm) * despread,
                preamble_ratio: settings.preamble_db.map_or(0.0, linear),
                capture_ratio: settings.capture_db.map_or(f64::INFINITY, linear),
                capture_window: Span::from_nanos(settings.capture_ns.unwrap_or(u64::MAX)),
            },
            wanted_on: true,
            switched_on: true,
            cell: Cell::new(&settings.membership, checked.channels),
            dozing: SleepAccount::default(),
            away: false,
            scan: None,
            ordered: None,
            scanned: Scanned::default(),
            step: 0,
            reception: Reception::default(),
            transmitting: false,
            busy: false,
            idle_since: self.core.now,
            account: Account::new(self.core.now),
            overheard: 0,
            cluster: None,
            asleep: false,
            unclustered: 0,
            contention: Contention::new(
                mac::lanes(phy, slot, settings.qos || wlan),
                in_window,
                self.core.now,
            ),
            exchange: Exchange::new(),
            hold: Hold::new(windows, in_window, watched),
            waiting: 0,
            wideband: wlan
                .then(|| Box::new(Wideband::new(bands, layers, checked.channel, self.core.reach.leakage))),
            monitor: settings.monitor,
            counts: RadioCounts::default(),
            peers: BTreeMap::new(),
            hops,
            settings,
        });
        self.watch_windows(id.0);
        self.watch_hops(id.index());
        self.soak(id.index());
        self.enlist(id.index());
        Ok(id)
    }
}
