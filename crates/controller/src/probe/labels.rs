//! The labels of the probe namespace: those of the probed profile, and those of the installation, which a profile may
//! require with other values. The latter are restored when no probe needs another value. Pure.
//!
//! The previous value of such a label is kept in another label, so that it survives a restart.

use kube::core::ObjectMeta;
use palisade_api::names;
use palisade_kube_json::{selector::Labels, text::fnv1a};
use serde_json::Value as Json;

/// How the names of labels begin that hold former values.
const KEPT_LABEL_PREFIX: &str = "kept.toolsecurity.dev/";

/// The labels to write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Relabelling {
    /// Labels of the installation that get their values back; afterwards no probe owns them.
    pub restored: Labels,
    /// All labels that the probe owns from now on.
    pub applied: Labels,
}

impl Relabelling {
    /// From the namespace as it is, with who wrote which field, to these labels.
    pub fn new(found: &ObjectMeta, wanted: &Labels) -> Self {
        let labels = found.labels.clone().unwrap_or_default();
        let mut next = Self { restored: Labels::new(), applied: wanted.clone() };
        for (key, value) in &labels {
            let owners = Owners::of(found, key);
            let wish = wanted.get(key);
            if owners.others && wish.is_some_and(|wish| wish != value) {
                next.applied.insert(kept(key), value.clone());
            } else if owners.probe
                && !owners.others
                && let Some(former) = labels.get(&kept(key))
            {
                if wish.is_some() {
                    next.applied.insert(kept(key), former.clone());
                } else {
                    next.restored.insert(key.clone(), former.clone());
                }
            }
        }
        next
    }
}

/// The writer of a label.
#[derive(Clone, Copy, Debug, Default)]
struct Owners {
    probe: bool,
    others: bool,
}

impl Owners {
    fn of(found: &ObjectMeta, label: &str) -> Self {
        let field = format!("f:{label}");
        let mut owners = Self::default();
        for entry in found.managed_fields.iter().flatten() {
            let fields = entry.fields_v1.as_ref().map_or(&Json::Null, |fields| &fields.0);
            if !fields["f:metadata"]["f:labels"][&field].is_null() {
                let probe = entry.manager.as_deref() == Some(names::field_manager::PROBE);
                (owners.probe, owners.others) = (owners.probe || probe, owners.others || !probe);
            }
        }
        // A label without an owner is not the probe's.
        owners.others |= !owners.probe;
        owners
    }
}

/// The label that keeps the former value of another one, whose name may be too long to be a part of it.
fn kept(label: &str) -> String {
    format!("{KEPT_LABEL_PREFIX}{:016x}", fnv1a(label.as_bytes()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(all: &[(&str, &str)]) -> Labels {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn found(all: &[(&str, &str, &[&str])]) -> ObjectMeta {
        let mut managers: std::collections::BTreeMap<&str, Json> = std::collections::BTreeMap::new();
        for (key, _, owners) in all {
            for owner in *owners {
                let fields = managers.entry(owner).or_insert_with(|| json!({"f:metadata": {"f:labels": {".": {}}}}));
                fields["f:metadata"]["f:labels"][format!("f:{key}")] = json!({});
            }
        }
        let managed: Vec<_> =
            managers.into_iter().map(|(manager, fields)| json!({"manager": manager, "fieldsV1": fields})).collect();
        let values: Labels = all.iter().map(|(key, value, _)| ((*key).to_owned(), (*value).to_owned())).collect();
        serde_json::from_value(json!({"labels": values, "managedFields": managed})).expect("metadata")
    }

    const PROBE: &str = names::field_manager::PROBE;

    #[test]
    fn label_of_the_installation_is_restored() {
        let demanded = labels(&[("part-of", "tools")]);
        let saved = kept("part-of");
        let installed = found(&[("part-of", "palisade", &["helm"]), ("name", "x", &["helm"])]);
        let first = Relabelling::new(&installed, &demanded);
        let applied = labels(&[("part-of", "tools"), (&saved, "palisade")]);
        assert_eq!(first, Relabelling { restored: Labels::new(), applied: applied.clone() });
        // Also across another probe that demands it.
        let probed = found(&[("part-of", "tools", &[PROBE]), (&saved, "palisade", &[PROBE]), ("name", "x", &["helm"])]);
        let other = Relabelling::new(&probed, &labels(&[("part-of", "others")]));
        assert_eq!(other.applied, labels(&[("part-of", "others"), (&saved, "palisade")]));
        let ended = Relabelling::new(&probed, &labels(&[("a", "b")]));
        let restored = labels(&[("part-of", "palisade")]);
        assert_eq!(ended, Relabelling { restored, applied: labels(&[("a", "b")]) });
    }

    #[test]
    fn labels_of_probes_are_removed() {
        let probed = found(&[("tenancy", "tool", &[PROBE]), ("name", "x", &["helm"])]);
        assert_eq!(Relabelling::new(&probed, &Labels::new()), Relabelling::default());
    }

    #[test]
    fn label_changed_by_an_upgrade_during_a_probe_is_kept() {
        let saved = kept("version");
        let upgraded = found(&[("version", "2", &["helm"]), (&saved, "1", &[PROBE])]);
        let again = Relabelling::new(&upgraded, &labels(&[("version", "x")]));
        assert_eq!(again.applied, labels(&[("version", "x"), (&saved, "2")]));
        // And what the installation has already put back stays as it is.
        assert_eq!(Relabelling::new(&upgraded, &Labels::new()), Relabelling::default());
    }

    #[test]
    fn a_label_with_the_same_value_is_shared() {
        let installed = found(&[("part-of", "palisade", &["helm", PROBE])]);
        let demanded = labels(&[("part-of", "palisade")]);
        assert_eq!(Relabelling::new(&installed, &demanded).applied, demanded);
    }
}
