//! The plan of a rollout: namespaces, their target stages, and the next step. Pure.

use std::collections::BTreeMap;

use palisade_api::{HELD_BY_VIOLATIONS, HeldNamespace, OnViolation, Rollout, Stage, Stages, Wave, names};
use palisade_compiler::Namespace;
use palisade_kube_json::{selector, text::fnv1a};

/// How many held namespaces a status names.
const MAX_NAMED_NAMESPACES: usize = 10;
/// The longest reason in a status, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Prefix of the generation of the profile in the annotation of a held namespace.
const GENERATION: &str = "by generation ";

/// Reason for holding a namespace, from its annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Objects in it violate the profile. They are evaluated again periodically.
    Violations {
        /// The first of them, and why.
        why: String,
        /// The generation of the profile by which they were evaluated; `None` if an earlier version wrote the
        /// annotation.
        generation: Option<i64>,
    },
    /// A user wrote the annotation. The namespace is held until a user removes it.
    Manual(String),
}

impl Hold {
    /// The hold of a namespace on the rollout of a profile.
    pub fn of(namespace: &Namespace, profile: &str) -> Option<Self> {
        let text = namespace.annotations.get(&names::rollout_annotation(profile))?;
        Some(match text.strip_prefix(HELD_BY_VIOLATIONS) {
            Some(rest) => {
                let written = rest.strip_prefix(GENERATION).and_then(|rest| rest.split_once(": "));
                let known = written.and_then(|(generation, why)| Some((generation.parse().ok()?, why)));
                Self::Violations {
                    why: known.map_or(rest, |(_, why)| why).to_owned(),
                    generation: known.map(|(generation, _)| generation),
                }
            }
            None => Self::Manual(text.clone()),
        })
    }

    /// As an annotation.
    pub fn text(&self) -> String {
        match self {
            Self::Violations { why, generation: Some(generation) } => {
                format!("{HELD_BY_VIOLATIONS}{GENERATION}{generation}: {why}")
            }
            Self::Violations { why, generation: None } => format!("{HELD_BY_VIOLATIONS}{why}"),
            Self::Manual(why) => why.clone(),
        }
    }
}

/// A namespace that the profile selects.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub namespace: &'a Namespace,
    pub stages: Stages,
}

/// The stages of namespaces by the waves up to one of them.
#[derive(Debug)]
pub struct Plan<'a> {
    /// Namespaces to evaluate and to promote, with their target stages; without held ones.
    pub pending: BTreeMap<&'a str, Stage>,
    /// The same, of those whose objects violated the profile when they were evaluated last.
    pub violating: BTreeMap<&'a str, Stage>,
    /// Number of namespaces at the target stage of all waves.
    pub promoted: usize,
    pub held: usize,
    /// How many have yet to be promoted, in this wave or a later one.
    pub outstanding: usize,
    /// The first held ones, and why.
    pub named: Vec<HeldNamespace>,
}

impl<'a> Plan<'a> {
    /// The plan of the first `wave` waves.
    pub fn new(profile: &str, rollout: &Rollout, wave: usize, members: &[Member<'a>]) -> Self {
        let mut plan = Self {
            pending: BTreeMap::new(),
            violating: BTreeMap::new(),
            promoted: 0,
            held: 0,
            outstanding: 0,
            named: Vec::new(),
        };
        let (now, all) = (&rollout.waves[..wave.min(rollout.waves.len())], rollout.waves.as_slice());
        for member in members {
            let name = member.namespace.name.as_str();
            let due = goal(now, member.namespace).filter(|goal| member.stages.rise_to(*goal));
            if !goal(all, member.namespace).is_some_and(|goal| member.stages.rise_to(goal)) {
                plan.promoted += 1;
                continue;
            }
            match (Hold::of(member.namespace, profile), due) {
                (Some(hold), due) => {
                    plan.held += 1;
                    if plan.named.len() < MAX_NAMED_NAMESPACES {
                        let message = hold.text().chars().take(MAX_REASON_CHARS).collect();
                        plan.named.push(HeldNamespace { name: name.to_owned(), message });
                    }
                    if let (Hold::Violations { .. }, Some(goal)) = (hold, due) {
                        plan.violating.insert(name, goal);
                    }
                }
                (None, due) => {
                    plan.outstanding += 1;
                    plan.pending.extend(due.map(|goal| (name, goal)));
                }
            }
        }
        plan
    }

    /// True if no namespace may be promoted.
    pub fn is_stopped(&self, rollout: &Rollout) -> bool {
        rollout.on_violation == OnViolation::Stop && !self.violating.is_empty()
    }
}

/// The target stage of a namespace; `None` if it is not part of a wave.
fn goal(waves: &[Wave], namespace: &Namespace) -> Option<Stage> {
    let stages = waves.iter().filter(|wave| contains(wave, namespace)).map(|wave| wave.stage);
    stages.reduce(|one, other| if other.is_stricter_than(one) { other } else { one })
}

fn contains(wave: &Wave, namespace: &Namespace) -> bool {
    let named = wave.names.iter().flatten().any(|name| *name == namespace.name);
    let selected = wave.selector.as_ref().is_some_and(|selector| selector::matches(selector, &namespace.labels));
    let drawn = wave.percent.is_some_and(|percent| i64::from(percent) > i64::from(percentile(&namespace.name)));
    named || selected || drawn
}

/// A digest of the waves, for the status.
pub fn digest(waves: &[Wave]) -> String {
    format!("{:016x}", fnv1a(&serde_json::to_vec(waves).unwrap_or_default()))
}

/// From 0 to 99, by the name alone.
fn percentile(name: &str) -> u8 {
    let hash = fnv1a(name.as_bytes());
    // The low bits of similar names are similar.
    u8::try_from((hash ^ (hash >> 32)) % 100).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn namespaces(count: usize) -> Vec<Namespace> {
        (0..count).map(|index| Namespace { name: format!("tool-{index}"), ..Namespace::default() }).collect()
    }

    fn rollout(waves: &serde_json::Value) -> Rollout {
        serde_json::from_value(json!({"waves": waves})).expect("a rollout")
    }

    fn members(namespaces: &[Namespace], stage: Stage) -> Vec<Member<'_>> {
        let stages = Stages { pods: stage, workloads: None, objects: None };
        namespaces.iter().map(|namespace| Member { namespace, stages }).collect()
    }

    #[test]
    fn percentage_is_approximate_and_contains_smaller_ones() {
        let all = namespaces(3500);
        let members = members(&all, Stage::Audit);
        let mut before = Vec::new();
        for percent in [1, 10, 50, 90, 100] {
            let rollout = rollout(&json!([{"percent": percent}]));
            let drawn: Vec<_> = Plan::new("p", &rollout, 1, &members).pending.into_keys().collect();
            let share = drawn.len() * 100 / 3500;
            let percent = usize::try_from(percent).expect("positive");
            assert!(share.abs_diff(percent) <= 2, "{share} for {percent}");
            assert!(before.iter().all(|name| drawn.contains(name)));
            before = drawn;
        }
        assert_eq!(before.len(), 3500);
        // All later versions must treat a name in the same way.
        assert_eq!(["a", "tool-wikibugs", "kube-ops"].map(percentile), [24, 9, 67]);
    }

    #[test]
    fn a_wave_promotes_its_namespaces_and_those_of_the_waves_before() {
        let mut all = namespaces(4);
        all[2].labels.insert("tier".into(), "beta".into());
        let rollout = rollout(&json!([
            {"names": ["tool-1"], "stage": "Warn"}, {"selector": {"matchLabels": {"tier": "beta"}}}, {"percent": 100},
        ]));
        let pending = |wave, stage| Plan::new("p", &rollout, wave, &members(&all, stage)).pending;
        assert_eq!(pending(1, Stage::Audit), BTreeMap::from([("tool-1", Stage::Warn)]));
        assert_eq!(pending(1, Stage::Warn), BTreeMap::new());
        assert_eq!(pending(2, Stage::Audit), BTreeMap::from([("tool-1", Stage::Warn), ("tool-2", Stage::Deny)]));
        assert_eq!(pending(3, Stage::Warn).len(), 4);
        // Nothing becomes weaker.
        for wave in 1..=3 {
            assert!(pending(wave, Stage::Deny).is_empty());
        }
        let plan = Plan::new("p", &rollout, 1, &members(&all, Stage::Audit));
        assert_eq!((plan.promoted, plan.outstanding, plan.held), (0, 4, 0));
    }

    #[test]
    fn hold_annotation_round_trips() {
        let of = |text: &str| {
            let annotations = [(names::rollout_annotation("p"), text.to_owned())].into();
            Hold::of(&Namespace { annotations, ..Namespace::default() }, "p")
        };
        for hold in [
            Hold::Violations { why: "Pod a: [x] b".into(), generation: Some(3) },
            Hold::Violations { why: "Pod a: [x] b".into(), generation: None },
            Hold::Violations { why: "by generation of pods: x".into(), generation: None },
            Hold::Manual("by generation 3: x".into()),
        ] {
            assert_eq!(of(&hold.text()), Some(hold));
        }
        let held = Hold::Violations { why: "1 object".into(), generation: Some(3) };
        assert_eq!(held.text(), "Violations: by generation 3: 1 object");
    }

    #[test]
    fn held_namespaces_stay_and_are_named() {
        let mut all = namespaces(3);
        all[0].annotations.insert(names::rollout_annotation("p"), "Violations: pod x".into());
        all[1].annotations.insert(names::rollout_annotation("p"), "until the audit in May".into());
        all[2].annotations.insert(names::rollout_annotation("other"), "Hold".into());
        let mut rollout = rollout(&json!([{"percent": 100}]));
        let plan = Plan::new("p", &rollout, 1, &members(&all, Stage::Audit));
        assert_eq!(plan.pending.keys().collect::<Vec<_>>(), [&"tool-2"]);
        assert_eq!(plan.violating.keys().collect::<Vec<_>>(), [&"tool-0"]);
        assert_eq!((plan.held, plan.outstanding), (2, 1));
        assert_eq!(plan.named[0].message, "Violations: pod x");
        assert_eq!(plan.named[1].message, "until the audit in May");
        assert!(!plan.is_stopped(&rollout));
        rollout.on_violation = OnViolation::Stop;
        assert!(plan.is_stopped(&rollout));
        // Where it need not go any further, nothing holds it.
        assert_eq!(Plan::new("p", &rollout, 1, &members(&all, Stage::Deny)).held, 0);
    }
}
