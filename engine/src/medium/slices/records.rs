//! The records of violations: read in order, and freed after their slice has left.

use crate::medium::Medium;
use crate::medium::slices::policer::Violation;

impl Medium {
    /// The violations so far, in the order of their beginning, and the number of transmissions that
    /// were not recorded, because their slices had too many different violations.
    #[must_use]
    pub fn violations(&self) -> (Vec<&Violation>, u64) {
        let tenants = &self.slices.registry.tenants;
        let mut found: Vec<&Violation> = tenants.iter().flat_map(|tenant| &tenant.records).collect();
        found.sort_by_key(|one| one.from);
        (found, tenants.iter().map(|tenant| tenant.unrecorded).sum())
    }

    /// The number of transmissions of each slice that were not recorded, where there are any.
    pub fn unrecorded(&self) -> impl Iterator<Item = (&str, u64)> {
        let lost = self.slices.registry.tenants.iter().filter(|tenant| tenant.unrecorded > 0);
        lost.map(|tenant| (tenant.name.as_str(), tenant.unrecorded))
    }

    /// Forgets the violations of a slice and frees their memory: after its radios have left, and what
    /// they did was told.
    pub fn forget_violations(&mut self, slice: &str) {
        let Some(at) = self.slices.registry.tenants.iter().position(|tenant| tenant.name == slice) else {
            return;
        };
        (self.slices.registry.tenants[at].records, self.slices.registry.tenants[at].unrecorded) =
            (Vec::new(), 0);
        for policer in self.core.radios.policers() {
            if usize::from(policer.slice) == at {
                policer.latest = None;
            }
        }
    }
}
