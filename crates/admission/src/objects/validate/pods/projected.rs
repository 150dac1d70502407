//! Volumes that combine others, and facts of the cluster about the pod (`validateProjectionSources`).

use std::collections::BTreeSet;

use super::{
    super::{super::gates::Gate, formats, node::Node, selectors::wrong_selector, shown},
    Pod, env, paths,
};
use crate::validation::{Checking, names, quote};

/// The fields that the downward API provides for files.
const FIELDS: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];

/// A volume of the downward API. Errors in files are reported without the index of the file.
pub(super) fn downward(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    paths::mode(checking, of, "defaultMode");
    for file in of.list("items") {
        downward_file(checking, &file.at(of.path.clone()));
    }
}

fn downward_file(checking: &mut Checking<'_>, file: &Node<'_>) {
    let path = file.text("path");
    if path.is_empty() {
        checking.required(file.field("path"), "");
    }
    paths::local(checking, &file.field("path"), path);
    match (file.part("fieldRef"), file.part("resourceFieldRef")) {
        (Some(field), resource) => {
            env::object_field(checking, &field, FIELDS);
            if resource.is_some() {
                let text = "fieldRef and resourceFieldRef can not be specified simultaneously";
                checking.invalid(&file.path, "resource", text);
            }
        }
        (None, Some(resource)) => env::resource_field(checking, &resource, true),
        (None, None) => checking.required(&file.path, "one of fieldRef and resourceFieldRef is required"),
    }
    paths::mode(checking, file, "mode");
}

/// A volume of several sources.
pub(super) fn projected(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    paths::mode(checking, of, "defaultMode");
    let mut paths = Paths { of, taken: BTreeSet::new() };
    for source in of.list("sources") {
        let mut count = 0;
        for key in ["secret", "configMap"] {
            let Some(part) = source.part(key) else { continue };
            count += 1;
            if part.text("name").is_empty() {
                checking.required(part.field("name"), "");
            }
            for item in part.list("items") {
                paths::key_to_path(checking, &item);
                paths.take(checking, item.text("path"), part.text("name"));
            }
        }
        if let Some(part) = source.part("downwardAPI") {
            count += 1;
            for file in part.list("items") {
                downward_file(checking, &file.at(part.path.clone()));
                paths.take(checking, file.text("path"), file.text("path"));
            }
        }
        if let Some(part) = source.part("serviceAccountToken") {
            count += 1;
            token(checking, &part, of);
        }
        if let Some(part) = source.part("clusterTrustBundle") {
            count += 1;
            bundle(checking, &part, &mut paths);
        }
        if let Some(part) = source.part("podCertificate").filter(|_| Gate::PodCertificateRequest.is_on(checking.minor))
        {
            count += 1;
            certificate(checking, &part, &mut paths);
        }
        if count > 1 {
            checking.forbidden(&source.path, "may not specify more than 1 volume type per source");
        }
    }
}

/// The paths that files of a volume have.
struct Paths<'a, 'n> {
    of: &'n Node<'a>,
    taken: BTreeSet<String>,
}

impl Paths<'_, '_> {
    fn take(&mut self, checking: &mut Checking<'_>, path: &str, shown: &str) {
        if !path.is_empty() {
            self.take_any(checking, path, shown);
        }
    }

    fn take_any(&mut self, checking: &mut Checking<'_>, path: &str, shown: &str) {
        if !self.taken.insert(path.to_owned()) {
            checking.invalid(&self.of.path, shown, "conflicting duplicate paths");
        }
    }
}

fn token(checking: &mut Checking<'_>, token: &Node<'_>, volume: &Node<'_>) {
    let lifetime = token.get("expirationSeconds");
    match lifetime.value.as_i64() {
        Some(seconds) if seconds < 600 => {
            checking.wrong(&lifetime, "may not specify a duration less than 10 minutes");
        }
        Some(seconds) if seconds > 1 << 32 => {
            checking.wrong(&lifetime, "may not specify a duration larger than 2^32 seconds");
        }
        _ => {}
    }
    // The place is that of the volume.
    let (path, field) = (token.text("path"), volume.field("path"));
    if path.is_empty() {
        checking.required(field, "");
    } else {
        paths::local(checking, &field, path);
    }
}

fn bundle(checking: &mut Checking<'_>, bundle: &Node<'_>, paths: &mut Paths<'_, '_>) {
    match (bundle.part("name"), bundle.part("signerName")) {
        (Some(_), Some(_)) => {
            let shown = shown::trust_bundle(checking.minor, bundle);
            checking.invalid_shown(&bundle.path, &shown, "only one of name and signerName may be used");
        }
        (Some(name), None) => {
            if name.string().is_empty() {
                checking.required(&name.path, "must be a valid object name");
            }
            let wrong = bundle_name(name.string());
            let wrong: Vec<_> =
                wrong.iter().map(|text| format!("not a valid clustertrustbundlename: {text}")).collect();
            checking.each(&name.path, name.string(), &wrong);
            if let Some(selector) = bundle.part("labelSelector") {
                let text = "labelSelector must be unset if name is specified";
                wrong_selector(checking, &selector, text);
            }
        }
        (None, Some(signer)) => {
            if signer.string().is_empty() {
                checking.required(&signer.path, "must be a valid signer name");
            }
            signer_name(checking, &signer);
            formats::selector(checking, &bundle.get("labelSelector"));
        }
        (None, None) => checking.required(&bundle.path, "either name or signerName must be specified"),
    }
    let path = bundle.text("path");
    if path.is_empty() {
        checking.required(bundle.field("path"), "");
    }
    paths::local(checking, &bundle.field("path"), path);
    paths.take_any(checking, path, path);
}

/// The name of a bundle, which has that of its signer before it (`ValidateClusterTrustBundleName`).
fn bundle_name(name: &str) -> Vec<String> {
    match name.rsplit_once(':') {
        // The prefix is what the signer's name is made of.
        Some((_, rest)) => names::subdomain(rest),
        None => names::subdomain(name),
    }
}

/// The name of a signer (`ValidateSignerName`).
fn signer_name(checking: &mut Checking<'_>, node: &Node<'_>) {
    let (name, field) = (node.string(), node.path.as_str());
    if name.is_empty() {
        checking.required(field, "");
        return;
    }
    let parts: Vec<_> = name.split('/').collect();
    let [domain, path] = parts[..] else {
        let text = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        checking.invalid(field, name, text);
        return;
    };
    if domain.len() > 253 {
        checking.too_long(field, 253);
    }
    let say = |checking: &mut Checking<'_>, part: &str, form: fn(&str) -> Vec<String>| {
        let first = part.split('.').map(|label| (label, form(label))).find(|(_, wrong)| !wrong.is_empty());
        if let Some((label, wrong)) = first {
            let wrong: Vec<_> = wrong.iter().map(|text| format!("validating label {}: {text}", quote(label))).collect();
            checking.each(field, part, &wrong);
        }
    };
    say(checking, domain, names::label);
    if !domain.contains('.') {
        checking.invalid(field, domain, "should be a domain with at least two segments separated by dots");
    }
    say(checking, path, names::subdomain);
    if name.len() > 253 + 253 + 63 + 1 + 1 {
        checking.too_long(field, 253 + 253 + 63 + 1 + 1);
    }
}

fn certificate(checking: &mut Checking<'_>, of: &Node<'_>, paths: &mut Paths<'_, '_>) {
    signer_name(checking, &of.get("signerName"));
    for key in of.map("userAnnotations").into_iter().flatten().map(|(key, _)| key.to_lowercase()) {
        let (field, wrong) = (of.field("userAnnotations"), names::qualified(checking.minor, &key));
        if wrong.is_empty() && !key.contains('/') {
            checking.invalid(field, &key, "must be a domain-prefixed key (such as \"acme.io/foo\")");
        } else {
            checking.each(field, &key, &wrong);
        }
    }
    let kinds = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
    checking.one_of(&of.get("keyType"), &kinds);
    if let Some(most) = of.int("maxExpirationSeconds") {
        let node = of.get("maxExpirationSeconds");
        if most < 3600 {
            checking.wrong(&node, "if provided, maxExpirationSeconds must be >= 3600");
        }
        let host = of.text("signerName").split('/').next().unwrap_or_default();
        let is_own = host == "kubernetes.io" || host.ends_with(".kubernetes.io");
        let limit = if is_own { 86_400 } else { 91 * 86_400 };
        if most > limit {
            checking.wrong(&node, &format!("if provided, maxExpirationSeconds must be <= {limit}"));
        }
    }
    let mut count = 0;
    for key in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = of.text(key);
        if !path.is_empty() {
            count += 1;
            paths::local(checking, &of.field(key), path);
            paths.take(checking, path, path);
        }
    }
    if count == 0 {
        let text = "specify at least one of credentialBundlePath, keyPath, and certificateChainPath";
        checking.required(&of.path, text);
    }
}
