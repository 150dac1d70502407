//! # serviceAccounts
//!
//! A pod may run as any service account of its namespace, and has its permissions. So a user with permission to create
//! pods has the permissions of all of them, including accounts that an operator or an administrator created there for
//! another purpose.
//!
//! If a pod has no service account, the API server sets `default` before policies run. A pod template without one is
//! treated in the same way. `serviceAccount` is a deprecated name of the field.
//!
//! The probe pods of Palisade run as `default` if that is allowed, and otherwise as the first account of the list,
//! which must then exist in the namespace `palisade-probe`. Palisade uses them to test whether a profile is enforced.
//!
//! ## If your pod was denied
//!
//! Set the pod's `serviceAccountName` to an account that the message lists, and remove `serviceAccount`.

use crate::json::Change as _;
use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, Finding, FindingScope, Meaning, Resolve, Rule, pod};

const DEFAULT: &str = "default";

/// The check.
pub static CHECK: Check = Check {
    id: "serviceAccounts",
    title: "Service accounts",
    settings: &["identity.serviceAccounts"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("serviceAccountName"), Field::Pod("serviceAccount")],
    fixtures: include_str!("service_accounts.yaml"),
    compile: |settings, cx| {
        let accounts = settings.identity.service_accounts.as_ref().filter(|accounts| !any(accounts))?;
        let allowed = cx.texts("spec.identity.serviceAccounts", accounts, Meaning::Word);
        Some(Rule {
            // The API server writes each name into the other where that is unset.
            variables: vec![(
                "serviceAccountName",
                format!(
                    "[string(variables.spec.?serviceAccountName.orValue('')), \
                     string(variables.spec.?serviceAccount.orValue('')), '{DEFAULT}'].filter(a, a != '')[0]"
                ),
            )],
            findings: vec![
                Finding::new(
                    FindingScope::Pod,
                    format!("!(variables.serviceAccountName in {})", allowed.cel()),
                    format!(
                        "'spec.serviceAccountName is ' + variables.serviceAccountName + ', allowed: ' + {}",
                        allowed.says()
                    ),
                )
                .complies(format!(
                    "has(variables.spec.serviceAccountName) \
                     ? variables.spec.serviceAccountName != '' && variables.spec.serviceAccountName in {} \
                     : !has(variables.spec.serviceAccount) && '{DEFAULT}' in {}",
                    allowed.cel(),
                    allowed.cel()
                )),
            ],
        })
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let accounts = settings.identity.service_accounts.as_ref().map(|accounts| accounts.resolve(values));
        let accounts = accounts.unwrap_or_default();
        if let Some(first) = accounts.first()
            && !accounts.iter().any(|one| one == DEFAULT || one == "*")
        {
            pod::set(pod, &["serviceAccountName"], json!(first));
        }
    },
    violate: |settings, values, pod| {
        // Only by the default one: the API server rejects an account that does not exist before policies run.
        let accounts = settings.identity.service_accounts.as_ref().map(|accounts| accounts.resolve(values));
        let forbidden = accounts.is_some_and(|accounts| !accounts.iter().any(|one| one == DEFAULT || one == "*"));
        if forbidden && let Some(spec) = pod.at_mut(&["spec"]).as_object_mut() {
            spec.remove("serviceAccountName");
        }
        forbidden
    },
};
