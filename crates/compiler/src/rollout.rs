//! The errors in `spec.rollout`. It is not part of a policy: the controller executes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use palisade_api::{Diagnostic, ToolSecurityProfileSpec};

/// The selectors of waves, each with the index of its wave. Whether they are valid, the gate says.
pub(crate) fn selectors(spec: &ToolSecurityProfileSpec) -> Vec<(usize, LabelSelector)> {
    let waves = spec.rollout.iter().flat_map(|rollout| &rollout.waves).enumerate();
    waves.filter_map(|(index, wave)| Some((index, wave.selector.clone()?))).collect()
}

/// The errors. The CRD says the same, but a file may never have met an API server.
pub(crate) fn mistakes(spec: &ToolSecurityProfileSpec) -> Vec<Diagnostic> {
    let Some(rollout) = &spec.rollout else { return Vec::new() };
    let mut mistakes = Vec::new();
    if spec.enforcement.namespace_stages.is_uniform() {
        let message = "a rollout sets stages of namespaces, but enforcement.namespaceStages is Uniform";
        mistakes.push(Diagnostic::new("spec.rollout", message).help("write enforcement.namespaceStages: ByLabel"));
    }
    if rollout.waves.is_empty() {
        let help = "to promote all namespaces at once, write waves: [{percent: 100}]";
        mistakes.push(Diagnostic::new("spec.rollout.waves", "must have at least one wave").help(help));
    }
    for (index, wave) in rollout.waves.iter().enumerate() {
        let at = |field: &str| format!("spec.rollout.waves[{index}]{field}");
        let ways = [wave.names.is_some(), wave.selector.is_some(), wave.percent.is_some()];
        if ways.into_iter().filter(|way| *way).count() != 1 {
            let message = "exactly one of names, selector and percent must be set";
            mistakes.push(Diagnostic::new(at(""), message));
        }
        if let Some(percent) = wave.percent.filter(|percent| !(1..=100).contains(percent)) {
            mistakes.push(Diagnostic::new(at(".percent"), format!("{percent} is not between 1 and 100")));
        }
        let stages = spec.enforcement.stages(None);
        // Without a stage of their own, objects have that of pods.
        let objects = stages.objects.filter(|_| spec.enforcement.objects.is_some());
        let of_shapes = [("pods", Some(stages.pods)), ("workloads", stages.workloads), ("objects", objects)];
        for (shape, stage) in of_shapes.into_iter().filter_map(|(shape, stage)| Some((shape, stage?))) {
            if stage.is_stricter_than(wave.stage) {
                let message = format!("{} is weaker than {stage}, the stage of enforcement.{shape}", wave.stage);
                let help = "a wave can only raise the stage: set a stage that is at least as strict";
                mistakes.push(Diagnostic::new(at(".stage"), message).help(help));
            }
        }
        if wave.soak_seconds < 0 {
            mistakes.push(Diagnostic::new(at(".soakSeconds"), format!("{} must not be negative", wave.soak_seconds)));
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistakes_of(enforcement: &serde_json::Value, waves: &serde_json::Value) -> Vec<String> {
        let spec = json!({
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "enforcement": enforcement, "rollout": {"waves": waves},
        });
        let spec = serde_json::from_value(spec).expect("a spec");
        mistakes(&spec).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_mistake_in_a_rollout_has_its_place() {
        let by_label = json!({"pods": "Audit", "namespaceStages": "ByLabel"});
        assert!(mistakes_of(&by_label, &json!([{"percent": 10}, {"names": ["a"], "soakSeconds": 5}])).is_empty());
        let wrong = json!([
            {}, {"percent": 0}, {"names": ["a"], "selector": {}}, {"percent": 5, "soakSeconds": -1},
            {"percent": 5, "stage": "Audit"},
        ]);
        let found = mistakes_of(&by_label, &wrong);
        let at = [
            "waves[0]: exactly one",
            "waves[1].percent: 0 is not",
            "waves[2]: exactly",
            "waves[3].soakSeconds: -1",
            "waves[4].stage: Audit is weaker than Warn, the stage of enforcement.workloads",
        ];
        assert_eq!(found.len(), at.len(), "{found:?}");
        for (found, at) in found.iter().zip(at) {
            assert!(found.contains(at), "{found:?} {at}");
        }
        assert!(mistakes_of(&json!({}), &json!([{"percent": 1}]))[0].contains("is Uniform"));
        assert!(mistakes_of(&by_label, &json!([]))[0].contains("at least one wave"));
    }
}
