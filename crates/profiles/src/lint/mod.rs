//! Profiles in `palisade lint`: it lints the policies that they become, and has three rules about profiles themselves.

mod exempts_tenants;
mod profile_rejected;
mod redirected_twice;

use palisade_api::{ToolSecurityProfile, ToolSecurityProfileSpec, crd, names};
use palisade_lint::{Extension, ExtensionFinding, ExtensionKind, NotMade, Options, Rule};
use palisade_manifest::Object;
use serde_json::Value as Json;

/// The rules about profiles.
pub static RULES: &[&Rule] = &[&profile_rejected::RULE, &exempts_tenants::RULE, &redirected_twice::RULE];

/// Profiles, for `palisade lint`.
#[derive(Clone, Copy, Debug)]
pub struct Profiles;

/// How to lint where there may be profiles, in the minor that is the default.
pub fn options() -> Options {
    Options { extension: Some(&Profiles), ..Options::default() }
}

const fn kind(kind: &'static str, makes_policies: bool) -> ExtensionKind {
    ExtensionKind { group: names::GROUP, version: "v1alpha1", kind, makes_policies }
}

impl Extension for Profiles {
    fn kinds(&self) -> &'static [ExtensionKind] {
        const {
            &[
                kind("ToolSecurityProfile", true),
                kind("ToolSecurityParams", false),
                kind("ToolSecurityException", false),
            ]
        }
    }

    fn rules(&self) -> &'static [&'static Rule] {
        RULES
    }

    fn definitions(&self) -> Vec<Json> {
        crd::all().into_iter().map(|crd| serde_json::to_value(crd).unwrap_or_default()).collect()
    }

    fn make(&self, object: &Object<'_>) -> Result<Vec<Json>, NotMade> {
        let rejected = |diagnostics| NotMade::Rejected(profile_rejected::find(diagnostics));
        let profile = object.parse::<ToolSecurityProfile>().map_err(NotMade::Unreadable)?;
        let compiled = palisade_compiler::compile(&profile).map_err(rejected)?;
        let bundle = compiled.bundle.clone();
        // The policies have the same mistakes.
        palisade_gate::check(compiled).map_err(|found| rejected(found.diagnostics))?;
        let mut objects = Vec::new();
        for (_, pair) in bundle.pairs() {
            let bindings = pair.bindings().map(serde_json::to_value);
            objects.extend([serde_json::to_value(&pair.policy)].into_iter().chain(bindings).flatten());
        }
        Ok(objects)
    }

    fn findings(&self, made: &[&Object<'_>]) -> Vec<(usize, ExtensionFinding)> {
        let mut before: Vec<(String, ToolSecurityProfileSpec)> = Vec::new();
        let mut reported = Vec::new();
        for (index, object) in made.iter().enumerate() {
            let Ok(profile) = object.parse::<ToolSecurityProfile>() else { continue };
            let found = exempts_tenants::find(&profile.spec).into_iter();
            let found = found.chain(redirected_twice::find(&profile.spec, &before));
            reported.extend(found.map(|one| (index, one)));
            before.push((profile.metadata.name.unwrap_or_default(), profile.spec));
        }
        reported
    }
}
