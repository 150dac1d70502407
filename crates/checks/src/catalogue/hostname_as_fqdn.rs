//! # hostnameAsFqdn
//!
//! With `setHostnameAsFQDN: true` the kernel's host name of the pod is its full name with `subdomain`, namespace and the
//! cluster's domain. Software that takes the host name for an identity (mail servers, licence servers, log collectors)
//! then states the cluster's internal domain to others. A full name of more than 64 characters keeps the pod from
//! starting. No other pod is concerned.
//!
//! ## If your pod was denied
//!
//! Remove `setHostnameAsFQDN`. `hostname -f` prints the full name in any case, and programs can be told their name by an
//! environment variable.

use serde_json::json;

use crate::{Check, Field, Over, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "hostnameAsFqdn",
    title: "The full name as host name",
    settings: &["host.hostnameAsFqdn"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("setHostnameAsFQDN")],
    fixtures: include_str!("hostname_as_fqdn.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.host.hostnameAsFqdn",
            settings.host.hostname_as_fqdn.as_ref()?,
            "variables.spec.?setHostnameAsFQDN.orValue(false)",
        )?;
        Some(Rule::one(Over::Pod, violated, "'spec.setHostnameAsFQDN is true, must be false or unset'"))
    },
    fills: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let allowed = settings.host.hostname_as_fqdn.as_ref();
        let forbidden = allowed.is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set(pod, &["setHostnameAsFQDN"], json!(true));
        }
        forbidden
    },
};
