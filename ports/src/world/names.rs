//! The names of all elements of a world. Beside the engine, which identifies its elements by
//! number, this is the only place that stores them.

use std::collections::HashMap;
use std::sync::Arc;

use airloom_engine::{LinkId, MediumId, PortId, SwitchId};

use crate::error::Error;

/// Elements of one kind, by name and by number.
#[derive(Debug)]
pub struct Table<Id> {
    kind: &'static str,
    /// By number: elements are numbered in the order of their addition.
    entries: Vec<(Arc<str>, Id)>,
    ids: HashMap<Arc<str>, Id>,
}

impl<Id: Copy> Table<Id> {
    fn new(kind: &'static str) -> Self {
        Self { kind, entries: Vec::new(), ids: HashMap::new() }
    }

    /// Adds the element that the engine has just created.
    pub(crate) fn insert(&mut self, name: &str, id: Id) {
        let name: Arc<str> = name.into();
        self.entries.push((Arc::clone(&name), id));
        self.ids.insert(name, id);
    }

    /// The element with this name.
    ///
    /// # Errors
    /// [`Error::Unknown`].
    pub fn id(&self, name: &str) -> Result<Id, Error> {
        self.ids.get(name).copied().ok_or_else(|| Error::unknown(self.kind, name))
    }

    /// The element with this number.
    #[must_use]
    pub(crate) fn at(&self, number: usize) -> Id {
        self.entries[number].1
    }

    /// The name of the element with this number; empty if it does not exist.
    #[must_use]
    pub fn name(&self, number: usize) -> &str {
        self.entries.get(number).map_or("", |(name, _)| name)
    }

    /// All elements, by number.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Id)> {
        self.entries.iter().map(|(name, id)| (&**name, *id))
    }
}

/// The names of a world.
#[derive(Debug)]
pub struct Names {
    /// Ports.
    pub ports: Table<PortId>,
    /// Switches and hubs.
    pub switches: Table<SwitchId>,
    /// Links.
    pub links: Table<LinkId>,
    /// Radio media.
    pub media: Table<MediumId>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            ports: Table::new("port"),
            switches: Table::new("switch"),
            links: Table::new("link"),
            media: Table::new("medium"),
        }
    }
}
