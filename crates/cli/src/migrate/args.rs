//! The command line of `palisade migrate psp`.

use std::collections::BTreeMap;

use clap::ValueEnum;

const EXAMPLES: &str = "\
Examples:
  palisade migrate psp policies.yaml > profiles.yaml
  kubectl get psp,clusterroles,clusterrolebindings -o yaml > policies.yaml
  kubectl get roles,rolebindings -A -o yaml > grants.yaml
  palisade migrate psp policies.yaml grants.yaml --stage Warn
  palisade migrate psp restricted.yaml --namespace-selector tenancy=tool --strict

Exit codes: 0 migrated, 1 a file has errors (or, with --strict, a profile differs), 2 could not run.

Kinds of notes: stricter (pods that were admitted are denied), looser (pods that were denied are admitted), \
defaulted (a default is kept), default (a default is lost), selection (which namespaces), note (good to know). See \
docs/migrate.md.";

/// The arguments of `palisade migrate psp`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct PspArgs {
    /// YAML or JSON files with PodSecurityPolicies, and with the Roles, ClusterRoles and bindings that grant their use;
    /// directories of such files; or - for standard input.
    #[arg(value_name = "FILE|DIR", required = true)]
    pub files: Vec<String>,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", default_value = "yaml")]
    pub output: Format,
    /// Enforcement of the profiles. Audit reports violations, and denies no request.
    #[arg(long, value_name = "STAGE", default_value = "Audit")]
    pub stage: StageArg,
    /// Labels of the namespaces to select, as key=value[,key=value], instead of the namespaces in the bindings.
    #[arg(long, value_name = "LABELS", value_parser = labels)]
    pub namespace_selector: Option<BTreeMap<String, String>>,
    /// Exit with 1 if a policy could not be converted exactly. The profiles are printed nevertheless.
    #[arg(long)]
    pub strict: bool,
}

/// The stage of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageArg {
    /// Violations are denied.
    #[value(name = "Deny")]
    Deny,
    /// Violations are admitted with a warning.
    #[value(name = "Warn")]
    Warn,
    /// Violations are admitted and recorded in the audit log.
    #[value(name = "Audit")]
    Audit,
}

/// The format of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Documents separated by ---.
    Yaml,
    /// One List, for kubectl and jq.
    Json,
}

/// Labels in the notation of `kubectl -l`, but only with equality.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',') {
        let (key, value) = pair.split_once('=').ok_or_else(|| format!("{pair:?} must be key=value"))?;
        let key_ok =
            !key.is_empty() && key.len() <= 317 && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        let value_ok = value.len() <= 63 && value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !key_ok || !value_ok {
            return Err(format!("{pair:?} is not a valid label"));
        }
        if labels.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(format!("duplicate key {key}"));
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_option_takes_key_value_pairs() {
        let expected = [("a.b/c", "d"), ("e", "")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(labels("a.b/c=d,e="), Ok(expected.into()));
        for text in ["", "a", "=b", "a=b,", "a=b,a=c", "a=b c", "a!=b"] {
            assert!(labels(text).is_err(), "{text}");
        }
    }
}
