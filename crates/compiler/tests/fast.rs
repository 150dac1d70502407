//! The fast path of policies.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use palisade_api::ToolSecurityProfile;

const TOOLFORGE: &str = include_str!("../../../examples/toolforge/profile.yaml");

#[test]
fn print() {
    let restricted = r#"{"apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "r"}, "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}"#;
    for text in [TOOLFORGE, restricted] {
        let profile: ToolSecurityProfile = serde_saphyr::from_str(text).unwrap();
        let start = std::time::Instant::now();
        let compiled = palisade_compiler::compile(&profile).unwrap();
        println!("compiled in {:?}", start.elapsed());
        for (shape, pair) in compiled.bundle.pairs() {
            let conditions = pair.policy.spec.clone().unwrap().match_conditions;
            println!("{shape:?}");
            for one in conditions.into_iter().flatten() {
                println!("{} chars\n{}", one.expression.len(), one.expression);
            }
        }
    }
}
