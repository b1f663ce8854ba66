//! Slices of a medium: grants and their police, time slots, hopping, codes, shares of airtime.

pub(super) mod codes;
pub(super) mod hops;
pub(super) mod periodic;
pub(super) mod police;
pub(super) mod policer;
pub(super) mod records;
pub(super) mod share;
pub(super) mod shares;
pub(super) mod slots;
pub(super) mod windows;

/// The slices of a medium, their violations, and their shares of airtime.
#[derive(Default)]
pub(super) struct Slices {
    registry: policer::Registry,
    /// Slices that share channels by weights.
    groups: Vec<share::Group>,
}
