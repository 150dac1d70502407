//! Choosing admission plugins by their names.

use std::collections::BTreeSet;

use palisade_cel::Minor;
use thiserror::Error;

use super::{ALL, Plugin};
use crate::requests::chosen::Plugins;

/// A name that is none of an admission plugin that runs by default.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name:?} is not an admission plugin that can be chosen here; these can: {}", names().join(", "))]
pub struct UnknownPlugin {
    /// The name.
    pub name: String,
}

/// The names of all plugins that can be chosen, in their order.
fn names() -> Vec<&'static str> {
    ALL.iter().map(|plugin| plugin.name).collect()
}

fn known<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<BTreeSet<&'static str>, UnknownPlugin> {
    let find = |name: &str| ALL.iter().map(|plugin| plugin.name).find(|known| *known == name);
    names.into_iter().map(|name| find(name).ok_or_else(|| UnknownPlugin { name: name.to_owned() })).collect()
}

impl Plugins {
    /// No plugins but these, as far as the minor has them, and the policies, which [`Self::without`] alone turns off.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn only<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownPlugin> {
        Ok(Self { only: Some(known(names)?), without: BTreeSet::new() })
    }

    /// The same without these.
    ///
    /// # Errors
    /// A name that is not known.
    pub fn without<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownPlugin> {
        self.without.extend(known(names)?);
        Ok(self)
    }

    /// Whether a plugin runs in a minor.
    pub(crate) fn runs(&self, plugin: &Plugin, minor: Minor) -> bool {
        let chosen = self.only.as_ref().is_none_or(|only| plugin.is_policies() || only.contains(plugin.name));
        (plugin.since..=plugin.until).contains(&minor.number()) && chosen && !self.without.contains(plugin.name)
    }

    /// Whether the plugin of this name runs in a minor.
    pub(crate) fn runs_named(&self, name: &str, minor: Minor) -> bool {
        ALL.iter().find(|plugin| plugin.name == name).is_some_and(|plugin| self.runs(plugin, minor))
    }
}
