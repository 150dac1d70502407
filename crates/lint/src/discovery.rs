//! Which resources the API server serves: those that are built in, and those that definitions in the input add.

use palisade_admission::objects::{Kinds, Resource};
use palisade_cel::Minor;

use crate::{item::Item, policy::ResourceRule};

/// The kinds that the API server serves. Definitions that it would not serve add nothing.
pub(crate) fn served(minor: Minor, definitions: &[Item<'_>]) -> Kinds {
    let mut kinds = Kinds::builtin(minor);
    for crd in definitions {
        drop(kinds.add_crd(&crd.json));
    }
    kinds
}

/// The versions of a resource.
pub(crate) fn versions<'k>(kinds: &'k Kinds, group: &str, plural: &str) -> impl Iterator<Item = &'k Resource> {
    kinds.resources().iter().filter(move |r| r.group == group && r.plural == plural)
}

/// Whether a known resource is served in a group.
pub(crate) fn has_group(kinds: &Kinds, group: &str) -> bool {
    kinds.resources().iter().any(|r| r.group == group)
}

impl ResourceRule {
    /// The resources that a rule names without a subresource, as group and plural, which may be `*`. Resources that a
    /// known group does not have are left out.
    pub(crate) fn whole<'s>(&'s self, kinds: &'s Kinds) -> impl Iterator<Item = (&'s str, &'s str)> {
        let plurals = || self.resources.iter().filter_map(|name| if name == "*/*" { Some("*") } else { plain(name) });
        self.groups.iter().flat_map(move |group| plurals().map(move |plural| (group.as_str(), plural))).filter(
            move |(group, plural)| {
                [*group, *plural].contains(&"*")
                    || !has_group(kinds, group)
                    || versions(kinds, group, plural).next().is_some()
            },
        )
    }
}

fn plain(name: &str) -> Option<&str> {
    (!name.contains('/')).then_some(name)
}
