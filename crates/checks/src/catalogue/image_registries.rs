//! # imageRegistries
//!
//! Images may come only from the listed registries, or from paths in them. Image names are completed as container
//! runtimes do it (`nginx` is `docker.io/library/nginx`) and compared by path segment, so `registry.example` does not
//! cover `registry.example.evil.com`. The check covers containers and image volumes.
//!
//! Image IDs are denied, because they are not names: `sha256:` with any part of a digest, the same with `sha384:`,
//! `sha512:` or `blake3:`, or 64 hexadecimal digits. A container runtime that has an image with this ID runs it,
//! whatever registry another pod pulled it from. `images.redirect` also denies IDs, because it cannot redirect them.
//!
//! ## If your pod was denied
//!
//! Push the image to a registry, or to a path in a registry, that the message lists, and write its full name. A name
//! without a registry, such as `nginx`, refers to Docker Hub. Replace an image ID with the name of the image. To pin
//! its content, append a digest to the name: `registry.example/app@sha256:...`.

use serde_json::json;

use crate::settings::any;
use crate::{
    Check, Field, Finding, FindingScope, Meaning, Resolve, Rule, TextList, cel,
    image::{IN_REGISTRY, completed_cel, is_id_cel, surely_in_registry},
    pod,
};

/// CEL of type string: the reference of a volume.
const REFERENCE: &str = "v.image.?reference.orValue('')";

/// How a message names the fault of an image ID.
const IS_ID: &str = "is an image ID, which any image on the node can have: write the name of an image";

/// CEL of type bool that is true only of an image in a registry that need not be completed.
fn surely_in(image: &str, allowed: &TextList) -> String {
    let mut terms = surely_in_registry(image, &allowed.constants);
    let differing = TextList { constants: vec![], ..allowed.clone() };
    if !differing.is_constant() {
        terms.push(format!(
            "({image}.matches('^[^/]*[.:][^/]*/') && !{image}.startsWith('index.docker.io/') \
             && {}.exists(r, r.size() <= 256 && {image}.startsWith(r + '/')))",
            differing.cel()
        ));
    }
    cel::any(&terms)
}

/// The check.
pub static CHECK: Check = Check {
    id: "imageRegistries",
    title: "Image registries",
    settings: &["images.allowedRegistries", "images.redirect"],
    psp: None,
    pss: &[],
    fields: &[Field::Container("image"), Field::Volume("image.reference")],
    fixtures: include_str!("image_registries.yaml"),
    compile: |settings, cx| {
        let Some(allowed) = settings.images.allowed_registries.as_ref().filter(|allowed| !any(allowed)) else {
            return settings.images.redirect.as_ref().map(|_| no_ids());
        };
        let allowed = cx.texts("spec.images.allowedRegistries", allowed, Meaning::Registry);
        let bad = |image: &str| {
            format!(
                "(!{}.exists(i, variables.imageRegistriesAllowed.exists(r, {IN_REGISTRY})) || {})",
                completed_cel(&format!("[{image}]")),
                is_id_cel(image)
            )
        };
        let says = |field: &str, image: &str| {
            format!(
                "'{field} ' + {image} + ({} ? ' {IS_ID}' : ' is not from an allowed registry') + ', allowed: ' + {}",
                is_id_cel(image),
                allowed.says()
            )
        };
        let of_containers = Finding::new(FindingScope::Containers, bad("c.image"), says("image", "c.image"));
        // What begins with a registry and a slash, a colon or an @, or is a path in one, is not an id.
        Some(Rule {
            variables: vec![("imageRegistriesAllowed", allowed.cel())],
            findings: vec![
                of_containers.complies(surely_in("c.image", &allowed)),
                Finding::new(
                    FindingScope::Volumes,
                    format!("has(v.image) && {}", bad(REFERENCE)),
                    says("image.reference", REFERENCE),
                )
                .complies(format!("!has(v.image) || {}", surely_in(REFERENCE, &allowed))),
            ],
        })
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let allowed = settings.images.allowed_registries.as_ref().map(|allowed| allowed.resolve(values));
        // Any name will do where images are only redirected.
        let anywhere = settings.images.redirect.as_ref().map(|_| "docker.io/library");
        let registry =
            allowed.as_ref().and_then(|allowed| allowed.first()).map(String::as_str).filter(|first| *first != "*");
        if let Some(registry) = registry.or(anywhere) {
            pod::set_containers(pod, &["image"], &json!(format!("{registry}/palisade-probe:1")));
        }
    },
    violate: |settings, values, pod| {
        let allowed = settings.images.allowed_registries.as_ref().map(|allowed| allowed.resolve(values));
        let image = if allowed.is_some_and(|allowed| !allowed.iter().any(|registry| registry == "*")) {
            "not-allowed.palisade.invalid/probe:1"
        } else if settings.images.redirect.is_some() {
            "sha256:0000000000000000000000000000000000000000000000000000000000000000"
        } else {
            return false;
        };
        pod::set_container(pod, &["image"], json!(image));
        true
    },
};

/// Where images may come from any registry and are redirected: an image ID would be none of them.
fn no_ids() -> Rule {
    let says = |field: &str, image: &str| format!("'{field} ' + {image} + ' {IS_ID}'");
    Rule {
        variables: vec![],
        findings: vec![
            Finding::new(FindingScope::Containers, is_id_cel("c.image"), says("image", "c.image"))
                .complies("c.image.contains('/')"),
            Finding::new(
                FindingScope::Volumes,
                format!("has(v.image) && {}", is_id_cel(REFERENCE)),
                says("image.reference", REFERENCE),
            )
            .complies(format!("!has(v.image) || {REFERENCE}.contains('/')")),
        ],
    }
}
