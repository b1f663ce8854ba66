//! Indoor path loss, by kind of building and number of floors.

use super::{PathLoss, Site, solve_reach};
use crate::math;

/// `L = 20 log10 f + N log10 d + Lf(n) - 28` dB, f in MHz, d in m (at least 1), n floors between.
///
/// Source: Recommendation ITU-R P.1238, equation 1 with tables 2 and 3, up to edition 10; edition 11 has
/// another model. Range: 1 m and more, within one building. The number of floors is the whole number of
/// storeys between the two antennas' heights.
///
/// | | residential | office | commercial |
/// | --- | --- | --- | --- |
/// | N below 3 GHz | 28 | 30 | 22 |
/// | N above | 28 (house) | 31 | 22 |
/// | Lf below 3 GHz | 4 n | 15 + 4 (n - 1) | 6 + 3 (n - 1) |
/// | Lf above | 13 n | 16 n | 6 + 3 (n - 1) |
///
/// The values below 3 GHz are those of the tables for 1.8 to 2 GHz, those above the ones for 5.2 GHz,
/// where office has one floor alone. For commercial areas the tables have nothing at 5.2 GHz: N is that
/// of 1.8 to 4 GHz, and Lf that of 1.8 to 2 GHz.
#[derive(Clone, Copy, Debug)]
pub struct ItuIndoor {
    /// Kind of building.
    pub building: Building,
    /// Height of a storey in metres.
    pub storey_m: f64,
}

/// Kinds of building in P.1238.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Building {
    /// Flats and houses.
    Residential,
    /// Offices.
    Office,
    /// Shops and halls.
    Commercial,
}

impl ItuIndoor {
    /// Distance power loss coefficient N.
    fn slope(self, megahertz: f64) -> f64 {
        match (self.building, megahertz < 3000.0) {
            (Building::Residential, _) => 28.0,
            (Building::Office, true) => 30.0,
            (Building::Office, false) => 31.0,
            (Building::Commercial, _) => 22.0,
        }
    }

    /// Floor penetration loss Lf(n) in dB.
    fn floors_db(self, floors: f64, megahertz: f64) -> f64 {
        if floors < 1.0 {
            return 0.0;
        }
        match (self.building, megahertz < 3000.0) {
            (Building::Residential, true) => 4.0 * floors,
            (Building::Residential, false) => 13.0 * floors,
            (Building::Office, true) => 15.0 + 4.0 * (floors - 1.0),
            (Building::Office, false) => 16.0 * floors,
            (Building::Commercial, _) => 6.0 + 3.0 * (floors - 1.0),
        }
    }

    fn at(self, metres: f64, floors: f64, hertz: f64) -> f64 {
        let megahertz = hertz / 1e6;
        20.0 * math::log10(megahertz)
            + self.slope(megahertz) * math::log10(metres.max(1.0))
            + self.floors_db(floors, megahertz)
            - 28.0
    }
}

impl PathLoss for ItuIndoor {
    fn loss_db(&self, from: Site, to: Site, hertz: f64) -> f64 {
        let storey = |site: Site| (site.position.z / self.storey_m).floor();
        let floors = (storey(from) - storey(to)).abs();
        self.at(from.position.distance(to.position), floors, hertz)
    }

    fn reach_m(&self, budget_db: f64, hertz: f64) -> Option<f64> {
        Some(solve_reach(budget_db, |metres| self.at(metres, 0.0, hertz)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_values() {
        let office = ItuIndoor { building: Building::Office, storey_m: 3.0 };
        // 20 log10(2400) = 67.604; 30 log10(10) = 30.
        assert!((office.at(10.0, 0.0, 2.4e9) - 69.604).abs() < 1e-3);
        assert!((office.at(10.0, 2.0, 2.4e9) - (69.604 + 19.0)).abs() < 1e-3);
        let home = ItuIndoor { building: Building::Residential, storey_m: 3.0 };
        // 20 log10(5200) = 74.320; 28 log10(20) = 36.429; one floor 13.
        assert!((home.at(20.0, 1.0, 5.2e9) - (74.320 + 36.429 + 13.0 - 28.0)).abs() < 2e-3);
        let hall = ItuIndoor { building: Building::Commercial, storey_m: 4.0 };
        // 20 log10(2000) = 66.021; 22 log10(10) = 22; three floors 6 + 2 * 3.
        assert!((hall.at(10.0, 3.0, 2.0e9) - (66.021 + 22.0 + 12.0 - 28.0)).abs() < 1e-3);
    }
}
