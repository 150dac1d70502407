//! Seccomp and AppArmor, which `PodSecurityPolicy` had in annotations, and annotations of older Kubernetes.

use std::collections::BTreeSet;

use palisade_api::settings::{AppArmor, Seccomp};
use palisade_checks::Text;
use serde_json::{Value as Json, json};

use super::{PodSecurityPolicy, findings::Findings, lists::texts};
use crate::note::{FieldDefault, Kind};

const SECCOMP_ALLOWED: &str = "seccomp.security.alpha.kubernetes.io/allowedProfileNames";
const SECCOMP_DEFAULT: &str = "seccomp.security.alpha.kubernetes.io/defaultProfileName";
const APP_ARMOR_ALLOWED: &str = "apparmor.security.beta.kubernetes.io/allowedProfileNames";
const APP_ARMOR_DEFAULT: &str = "apparmor.security.beta.kubernetes.io/defaultProfileName";

/// Annotations that restricted pods in versions of Kubernetes before those four, and that later ones do not read.
const OUTDATED: [(&str, &str); 4] = [
    ("security.alpha.kubernetes.io/sysctls", "Kubernetes reads spec.allowedUnsafeSysctls instead since 1.11"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "Kubernetes reads spec.allowedUnsafeSysctls instead since 1.11"),
    ("apparmor.security.alpha.kubernetes.io/allowedProfileNames", "Kubernetes reads the key with beta in it"),
    ("apparmor.security.alpha.kubernetes.io/defaultProfileName", "Kubernetes reads the key with beta in it"),
];

/// Annotations that kubectl writes for itself.
const OF_TOOLS: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// The settings that annotations mean.
pub(super) struct Annotations {
    pub(super) seccomp: Option<Seccomp>,
    pub(super) app_armor: Option<AppArmor>,
}

/// Profiles by name, as types and as files of type Localhost.
#[derive(Default)]
struct Profiles {
    any: bool,
    types: BTreeSet<&'static str>,
    localhost: Vec<String>,
}

impl Annotations {
    pub(super) fn of(psp: &PodSecurityPolicy, found: &mut Findings) -> Self {
        let get =
            |key: &str| psp.metadata.annotations.as_ref()?.get(key).map(|value| value.trim()).filter(|v| !v.is_empty());
        for (key, why) in OUTDATED {
            if let Some(value) = get(key) {
                found.note(Kind::Note, path(key), format!("{value} is not converted, because it has no effect: {why}"));
            }
        }
        unread(psp, found);
        Self {
            seccomp: seccomp(get(SECCOMP_ALLOWED), get(SECCOMP_DEFAULT), found),
            app_armor: app_armor(get(APP_ARMOR_ALLOWED), get(APP_ARMOR_DEFAULT), found),
        }
    }
}

fn path(key: &str) -> String {
    format!("metadata.annotations.{key}")
}

/// Notes the labels and annotations that are not carried over.
fn unread(psp: &PodSecurityPolicy, found: &mut Findings) {
    let read = [SECCOMP_ALLOWED, SECCOMP_DEFAULT, APP_ARMOR_ALLOWED, APP_ARMOR_DEFAULT];
    let annotations = psp.metadata.annotations.iter().flatten().map(|(key, _)| key.as_str());
    let others: Vec<_> = annotations
        .filter(|key| !read.contains(key) && !OF_TOOLS.contains(key) && !OUTDATED.iter().any(|(old, _)| old == key))
        .collect();
    let labels: Vec<_> = psp.metadata.labels.iter().flatten().map(|(key, _)| key.as_str()).collect();
    for (what, keys) in [("annotations", others), ("labels", labels)] {
        if !keys.is_empty() {
            let message = format!("not converted, because they had no effect on pods: {}", keys.join(", "));
            found.note(Kind::Note, format!("metadata.{what}"), message);
        }
    }
}

fn profiles(key: &str, list: &str, defaults: &[&str], found: &mut Findings) -> Profiles {
    let mut profiles = Profiles::default();
    for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match name {
            // Only seccomp accepts it; the API server rejects it in a list of AppArmor profiles.
            "*" if key == SECCOMP_ALLOWED => profiles.any = true,
            "unconfined" => drop(profiles.types.insert("Unconfined")),
            name if defaults.contains(&name) => drop(profiles.types.insert("RuntimeDefault")),
            name => match name.strip_prefix("localhost/").filter(|file| !file.is_empty()) {
                Some(file) => {
                    profiles.types.insert("Localhost");
                    profiles.localhost.push(file.to_owned());
                }
                None => found.mistake(
                    path(key),
                    format!("{name:?} is not a valid profile name"),
                    &format!("must be {}, localhost/... or unconfined", defaults.join(", ")),
                ),
            },
        }
    }
    profiles
}

impl Profiles {
    fn types(&self) -> Vec<Text> {
        // The runtime's profile first: the message recommends it to a pod.
        let order = ["RuntimeDefault", "Localhost", "Unconfined"];
        if self.any {
            vec!["*".into()]
        } else {
            order.into_iter().filter(|t| self.types.contains(t)).map(Text::from).collect()
        }
    }

    fn localhost(&self) -> Vec<Text> {
        if self.localhost.is_empty() { vec!["*".into()] } else { texts(&self.localhost) }
    }

    /// The value of a field for the only profile in here.
    fn field(&self) -> Option<Json> {
        let file = self.localhost.first();
        Some(match *self.types.first()? {
            "Localhost" => json!({"type": "Localhost", "localhostProfile": file?}),
            other => json!({"type": other}),
        })
    }
}

/// Puts an element of a list first.
fn first(list: &mut [Text], element: Option<&str>) {
    if let Some(at) = list.iter().position(|text| Some(text.0.as_str()) == element) {
        list[..=at].rotate_right(1);
    }
}

fn seccomp(allowed: Option<&str>, default: Option<&str>, found: &mut Findings) -> Option<Seccomp> {
    const DEFAULTS: [&str; 2] = ["runtime/default", "docker/default"];
    let default_profile = default.map(|name| profiles(SECCOMP_DEFAULT, name, &DEFAULTS, found));
    let (profiles, key) = match (allowed, default) {
        (Some(allowed), _) => (profiles(SECCOMP_ALLOWED, allowed, &DEFAULTS, found), SECCOMP_ALLOWED),
        (None, Some(default)) => {
            found.note(
                Kind::Looser,
                path(SECCOMP_DEFAULT),
                format!(
                    "without allowedProfileNames the admission plugin denied the default itself, and so every pod; \
                     {default} is now the only allowed profile"
                ),
            );
            (profiles(SECCOMP_DEFAULT, default, &DEFAULTS, found), SECCOMP_DEFAULT)
        }
        (None, None) => {
            found.note(
                Kind::Note,
                path(SECCOMP_ALLOWED),
                "is omitted, so a pod with any seccomp profile was denied; now RuntimeDefault is admitted, which \
                 confines more than no profile",
            );
            let allowed = vec!["RuntimeDefault".into()];
            return Some(Seccomp { allowed, required: false.into(), ..Seccomp::default() });
        }
    };
    if profiles.any && default.is_none() {
        return None;
    }
    let (mut allowed, mut localhost_profiles) = (profiles.types(), profiles.localhost());
    let field = default_profile.as_ref().unwrap_or(&profiles).field();
    // The default is the first allowed profile that confines.
    let wanted = |key: &str| field.as_ref().and_then(|field| field[key].as_str());
    first(&mut allowed, wanted("type"));
    first(&mut localhost_profiles, wanted("localhostProfile"));
    let is_defaulted = match wanted("type") {
        Some("RuntimeDefault") => true,
        Some("Localhost") => !profiles.any && !profiles.localhost.is_empty(),
        _ => false,
    };
    if let Some(value) = field.clone() {
        let field_default = FieldDefault::pod(&["securityContext", "seccompProfile"], value);
        let at = path(if default.is_some() { SECCOMP_DEFAULT } else { key });
        match (default, is_defaulted) {
            (Some(default), true) => {
                let message = format!("pods without a profile get {default}, as before");
                found.defaulted(Kind::Defaulted, &at, message, field_default);
            }
            (Some(default), false) => {
                let message = format!("pods without a profile got {default}, and no longer get it");
                found.defaulted(Kind::Stricter, &at, message, field_default);
            }
            (None, _) => {
                let message = "pods without a profile were denied, and now get the first allowed profile that \
                               confines them; use the field instead of the annotation, which no maintained version \
                               reads";
                found.defaulted(Kind::Defaulted, &at, message, field_default);
            }
        }
    }
    Some(Seccomp { allowed, localhost_profiles, required: true.into(), ..Seccomp::default() })
}

fn app_armor(allowed: Option<&str>, default: Option<&str>, found: &mut Findings) -> Option<AppArmor> {
    const DEFAULTS: [&str; 1] = ["runtime/default"];
    let default_profile = default.map(|name| profiles(APP_ARMOR_DEFAULT, name, &DEFAULTS, found));
    let profiles = allowed.map(|allowed| profiles(APP_ARMOR_ALLOWED, allowed, &DEFAULTS, found));
    // The profile of a container that names none: on a node with AppArmor, the runtime's.
    let of_runtime = |profiles: &Profiles| profiles.types.contains("RuntimeDefault");
    match (&default_profile, &profiles) {
        (Some(of_default), _) if !of_runtime(of_default) => {
            let field_default =
                of_default.field().map(|value| FieldDefault::pod(&["securityContext", "appArmorProfile"], value));
            let message = format!(
                "containers without a profile ran under {}, and now run under the profile of the runtime; no setting \
                 requires a profile",
                default.unwrap_or_default()
            );
            match field_default {
                Some(field_default) => found.defaulted(Kind::Default, &path(APP_ARMOR_DEFAULT), message, field_default),
                None => found.note(Kind::Default, path(APP_ARMOR_DEFAULT), message),
            }
        }
        (None, Some(listed)) if !of_runtime(listed) => found.note(
            Kind::Looser,
            path(APP_ARMOR_ALLOWED),
            "containers without a profile were denied, and now run under the profile of the runtime; no setting \
             requires a profile",
        ),
        (Some(_), _) | (None, Some(_)) => found.note(
            Kind::Note,
            path(if default.is_some() { APP_ARMOR_DEFAULT } else { APP_ARMOR_ALLOWED }),
            "a container without a profile has the profile of the runtime on nodes with AppArmor; this is the former \
             default or requirement",
        ),
        (None, None) => {}
    }
    profiles.map(|profiles| AppArmor { allowed: profiles.types(), localhost_profiles: profiles.localhost() })
}
