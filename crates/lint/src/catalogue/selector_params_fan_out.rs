//! A selector of parameters that selects many.

use palisade_manifest::Severity;

use crate::selector;
use crate::{Category, Rule, policy::Policy};

pub(super) static RULE: Rule = Rule {
    id: "selector-params-fan-out",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "A selector of parameters that selects many",
    why: "\
The policy is evaluated once for each object of parameters that the selector selects, and denies if one of them denies.
An empty selector selects all, in the namespace of the request or, with `namespace`, in that one. What a request costs
grows with each object. Refer to one by its name.",
    bad: include_str!("selector_params_fan_out.bad.yaml"),
    good: include_str!("selector_params_fan_out.good.yaml"),
    check: |cluster, found| {
        for binding in &cluster.bindings {
            let param_ref = &binding.json["spec"]["paramRef"];
            let Some(selector) = param_ref.get("selector").filter(|selector| selector.is_object()) else { continue };
            if selector::is_empty(Some(selector)) {
                let message = "selects all parameters, each of which is an evaluation for each request";
                found.advise(binding, "spec.paramRef.selector", message, "refer to one object by name");
                continue;
            }
            let Some(kind) = cluster.policy_of(binding).and_then(Policy::param_kind) else { continue };
            let selected = cluster.others.iter().filter(|one| {
                let labels = one.json["metadata"]["labels"].as_object();
                let labels: Vec<_> = labels
                    .into_iter()
                    .flatten()
                    .map(|(key, value)| (&**key, value.as_str().unwrap_or_default()))
                    .collect();
                (one.api_version(), &*one.kind) == (&kind.0, &*kind.1) && selector::selects(selector, &labels)
            });
            let count = selected.count();
            if count > MOST {
                let message =
                    format!("selects {count} objects of these files, each of which is an evaluation for each request");
                found.advise(binding, "spec.paramRef.selector", message, "refer to one object by name");
            }
        }
    },
};

/// More than one might mean.
const MOST: usize = 10;
