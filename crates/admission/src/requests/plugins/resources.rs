//! The resources that a pod requests: the sum over its containers that run at the same time
//! (`k8s.io/component-helpers/resource/helpers.go`, and its simpler forms in `plugin/pkg/admission/limitranger`).

use std::collections::BTreeMap;

use palisade_cel::Quantity;
use serde_json::Value as Json;

/// Amounts by the names of resources.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// The amounts that are counted in addition to those of the containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// Nothing.
    Containers,
    /// `spec.resources` instead of the processors and memory of the containers.
    Pod,
    /// `spec.resources` instead of the processors, memory and huge pages of the containers, and the overhead of the
    /// runtime class.
    WithOverhead,
    /// The overhead of the runtime class alone.
    OverheadAlone,
}

/// A list of resources in its JSON form.
pub(super) fn read(list: &Json) -> Amounts {
    let amount = |(name, value): (&String, &Json)| Some((name.clone(), Quantity::parse(value.as_str()?).ok()?));
    list.as_object().into_iter().flatten().filter_map(amount).collect()
}

/// Adds to the amounts. If a sum cannot be computed, because it has a hundred thousand digits, the amount is unchanged.
pub(super) fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = to.get(name).map_or_else(|| amount.clone(), |have| have.add(amount).unwrap_or_else(|_| have.clone()));
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|have| amount.compare(have).is_gt()) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

/// The amounts that a pod with this `spec` requests (`requests`), or may use (`limits`).
pub(super) fn amounts(spec: &Json, which: &str, level: Level) -> Amounts {
    let items = |list: &str| spec[list].as_array().into_iter().flatten();
    let of = |container: &Json| read(&container["resources"][which]);
    let mut total = Amounts::new();
    for container in items("containers") {
        add(&mut total, &of(container));
    }
    // An init container runs beside the sidecars that were started before it.
    let (mut sidecars, mut most) = (Amounts::new(), Amounts::new());
    for container in items("initContainers") {
        let mut running = of(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &running);
            add(&mut sidecars, &running);
            running.clone_from(&sidecars);
        } else {
            add(&mut running, &sidecars);
        }
        raise(&mut most, &running);
    }
    raise(&mut total, &most);
    let of_pod = |name: &str| match level {
        Level::Containers | Level::OverheadAlone => false,
        Level::Pod => matches!(name, "cpu" | "memory"),
        Level::WithOverhead => is_pod_level(name),
    };
    total.extend(read(&spec["resources"][which]).into_iter().filter(|(name, _)| of_pod(name)));
    if matches!(level, Level::WithOverhead | Level::OverheadAlone) {
        let mut overhead = read(&spec["overhead"]);
        // What has no limit gets none.
        overhead.retain(|name, _| which == "requests" || total.get(name).is_some_and(|limit| limit.sign() != 0));
        add(&mut total, &overhead);
    }
    total
}

/// Whether a pod can have an amount for all its containers together.
pub(super) fn is_pod_level(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}
