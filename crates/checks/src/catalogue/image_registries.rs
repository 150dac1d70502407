//! # imageRegistries
//!
//! Images may come only from listed registries, or paths in them. References are completed as container
//! runtimes do it (`nginx` is `docker.io/library/nginx`), and compared by path segment, so that
//! `registry.example` does not cover `registry.example.evil.com`. Holds for containers and image volumes.
//!
//! ## If your pod was denied
//!
//! Push the image to a registry, or a path in one, that the message lists, and write its name in full. A name without a
//! registry, such as `nginx`, is one of Docker Hub.

use serde_json::json;

use crate::settings::any;
use crate::{
    Check, Field, Finding, Over, Resolve, Rule, TextList, cel,
    image::{IN_REGISTRY, completed_cel, surely_in_registry},
    pod,
};

/// CEL of type bool that is true only of an image in a registry that need not be completed.
fn surely_in(image: &str, allowed: &TextList) -> String {
    let mut terms = surely_in_registry(image, &allowed.constants);
    let differing = TextList { constants: vec![], ..allowed.clone() };
    if !(differing.elements.is_empty() && differing.lists.is_empty()) {
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
    settings: &["images.allowedRegistries"],
    psp: None,
    pss: &[],
    fields: &[Field::Container("image"), Field::Volume("image.reference")],
    fixtures: include_str!("image_registries.yaml"),
    compile: |settings, cx| {
        let allowed = settings.images.allowed_registries.as_ref().filter(|allowed| !any(allowed))?;
        let allowed = cx.texts("spec.images.allowedRegistries", allowed);
        let bad = |image: &str| {
            format!(
                "!{}.exists(i, variables.imageRegistriesAllowed.exists(r, {IN_REGISTRY}))",
                completed_cel(&format!("[{image}]"))
            )
        };
        let says = |field: &str, image: &str| {
            format!("'{field} ' + {image} + ' is not from an allowed registry, allowed: ' + {}", allowed.says())
        };
        let reference = "v.image.?reference.orValue('')";
        let of_containers = Finding::new(Over::Containers, bad("c.image"), says("image", "c.image"));
        Some(Rule {
            variables: vec![("imageRegistriesAllowed", allowed.cel())],
            findings: vec![
                of_containers.complies(surely_in("c.image", &allowed)),
                Finding::new(
                    Over::Volumes,
                    format!("has(v.image) && {}", bad(reference)),
                    says("image.reference", reference),
                )
                .complies(format!("!has(v.image) || {}", surely_in(reference, &allowed))),
            ],
        })
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let allowed = settings.images.allowed_registries.as_ref().map(|allowed| allowed.resolve(values));
        if let Some(registry) = allowed.as_ref().and_then(|allowed| allowed.first()).filter(|first| *first != "*") {
            pod::set_containers(pod, &["image"], &json!(format!("{registry}/palisade-probe:1")));
        }
    },
    violate: |settings, values, pod| {
        let Some(allowed) = &settings.images.allowed_registries else { return false };
        if allowed.resolve(values).iter().any(|registry| registry == "*") {
            return false;
        }
        pod::set_container(pod, &["image"], json!("not-allowed.palisade.invalid/probe:1"));
        true
    },
};
