//! What a row says of one setting. The rows of a group stand beside its schema, and [`all`](super::all) has those of all
//! groups.
//!
//! Whatever goes over the settings one by one goes over the rows: what a level of the standards adds to a profile, which
//! level a profile implies, whether one profile admits what another one admits, and the random and the stricter profiles
//! of tests. None of them has a list of its own to which a new setting must be added.

use super::Settings;
use crate::{Flag, Text};

/// A setting of a profile.
pub struct Setting {
    /// Its path below `spec`.
    pub path: &'static str,
    /// What it holds.
    pub kind: Kind,
}

/// What a setting holds, and which of two values of it is stricter. What is absent restricts nothing.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Whether something may be: false is stricter.
    Allowance(At<Flag>),
    /// Whether something must be: true is stricter.
    Demand(At<Flag>),
    /// Whether some pods need not do what another setting asks for: false is stricter. What is absent relaxes nothing.
    Relaxation(At<Flag>),
    /// What may be: fewer texts are stricter, and `*` stands for any.
    Texts(At<Vec<Text>>),
    /// Something else. Only who knows it can say which of two values is stricter.
    Other(&'static dyn Slot),
    /// What is changed in pods: no pod is denied because of it.
    Change(&'static dyn Slot),
}

/// Where a setting of this type is.
pub struct At<T: 'static> {
    /// The setting.
    pub get: fn(&Settings) -> &Option<T>,
    /// The same, to be changed.
    pub get_mut: fn(&mut Settings) -> &mut Option<T>,
}

impl<T> Clone for At<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for At<T> {}

/// What can be done with a setting of whatever type.
pub trait Slot: Sync {
    /// Whether the settings say it.
    fn is_said(&self, settings: &Settings) -> bool;
    /// Whether both say the same.
    fn is_same(&self, one: &Settings, other: &Settings) -> bool;
    /// Takes what `seed` says, if the settings say nothing.
    fn fill(&self, settings: &mut Settings, seed: &mut Settings);
}

impl<T: PartialEq> Slot for At<T> {
    fn is_said(&self, settings: &Settings) -> bool {
        (self.get)(settings).is_some()
    }

    fn is_same(&self, one: &Settings, other: &Settings) -> bool {
        (self.get)(one) == (self.get)(other)
    }

    fn fill(&self, settings: &mut Settings, seed: &mut Settings) {
        let found = (self.get_mut)(settings);
        if found.is_none() {
            *found = (self.get_mut)(seed).take();
        }
    }
}

impl Setting {
    /// The setting, whatever its type is.
    pub fn slot(&self) -> &dyn Slot {
        match &self.kind {
            Kind::Allowance(at) | Kind::Demand(at) | Kind::Relaxation(at) => at,
            Kind::Texts(at) => at,
            Kind::Other(slot) | Kind::Change(slot) => *slot,
        }
    }
}

/// A row.
pub(super) const fn setting(path: &'static str, kind: Kind) -> Setting {
    Setting { path, kind }
}

/// Where a field of a group is.
macro_rules! at {
    ($group:ident.$field:ident) => {
        $crate::settings::At {
            get: |settings| &settings.$group.$field,
            get_mut: |settings| &mut settings.$group.$field,
        }
    };
}
pub(super) use at;
