//! Additions as CEL.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::Value as Json;

use super::{
    Addition, Group, Injections, Key, MAX_CONTAINERS, MAX_IN_CONTAINERS, Owner, Selected, Template, WINDOWS,
    apply::escaped,
};
use crate::{Lowering, Meaning, Text, cel, defaults::select};

/// The additions of a profile as CEL. The container of an expression in a loop is `c` with the index `i`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoweredInjections {
    /// The variables of the policy: name, comment and expression.
    pub variables: Vec<(&'static str, &'static str, String)>,
    /// CEL of type list(JSONPatch) that adds containers. `operations` are for the pod with them.
    pub containers: Option<String>,
    /// CEL of type list(JSONPatch), each.
    pub operations: Vec<String>,
    /// CEL of type bool: whether an entry matches the pod. It reads neither variables nor parameters.
    pub applies: String,
}

/// The prefix of variables about init containers.
const LISTS: [(&str, &str, &str); 2] =
    [("containers", "mountPaths", "environment"), ("initContainers", "initMountPaths", "initEnvironment")];

impl Selected {
    /// CEL of type bool: whether the entry matches a pod. `metadata` and `spec` are CEL of the pod's parts.
    pub fn cel(&self, metadata: &str, spec: &str) -> String {
        let mut terms = vec![format!("{spec}.?os.?name.orValue('') != 'windows'")];
        terms.extend(requirements(&self.labels, &format!("{metadata}.?labels")));
        terms.extend(requirements(&self.annotations, &format!("{metadata}.?annotations")));
        terms.join(" && ")
    }
}

/// CEL of type bool for each requirement of a selector of a map.
fn requirements(selector: &LabelSelector, map: &str) -> Vec<String> {
    let is_in = |key: &str, values: &[String]| {
        // A value that is not listed, for an absent key.
        let mut absent = String::new();
        while values.contains(&absent) {
            absent.push('/');
        }
        let found = format!("{map}[?{}].orValue({})", cel::quote(key), cel::quote(&absent));
        match values {
            [one] => format!("{found} == {}", cel::quote(one)),
            many => format!("{found} in {}", cel::list(many)),
        }
    };
    let has = |key: &str| format!("{} in {map}.orValue({{}})", cel::quote(key));
    let mut terms: Vec<_> =
        selector.match_labels.iter().flatten().map(|(key, value)| is_in(key, std::slice::from_ref(value))).collect();
    for one in selector.match_expressions.iter().flatten() {
        let values = one.values.as_deref().unwrap_or_default();
        terms.push(match one.operator.as_str() {
            "In" => is_in(&one.key, values),
            "NotIn" => format!("!({})", is_in(&one.key, values)),
            "Exists" => has(&one.key),
            _ => format!("!({})", has(&one.key)),
        });
    }
    terms
}

impl Injections {
    /// CEL of these additions; reports errors in their texts.
    pub fn lower(&self, cx: &mut Lowering<'_>) -> LoweredInjections {
        let mut found = LoweredInjections::default();
        if self.is_empty() {
            return LoweredInjections { applies: "false".to_owned(), ..found };
        }
        let entries: Vec<_> = self.entries.iter().map(|entry| entry.cel("object.metadata", "object.spec")).collect();
        found.applies = cel::any(&entries.iter().map(|entry| format!("({entry})")).collect::<Vec<_>>());
        found.variables.push((
            "injects",
            "whether each entry of spec.mutation.inject matches",
            format!("[{}]", entries.join(", ")),
        ));
        if !self.volumes.is_empty() {
            let names = cel::list(self.volumes.iter().map(|(name, _)| name));
            let volumes: Vec<_> = self.volumes.iter().map(|(_, value)| format!("dyn({})", value.cel(cx))).collect();
            let taken = format!(
                "object.spec.?volumes.orValue([]).filter(v, v.name in {names} && !(v in [{}])).map(v, string(v.name))",
                volumes.join(", ")
            );
            found.variables.push(("takenVolumes", "names of injected volumes that other volumes have", taken));
        }
        let adding = self.of(Owner::Before).next();
        if adding.is_some() || self.of_containers().next().is_some() || !self.removals.is_empty() {
            let counts: Vec<_> =
                ["env", "volumeMounts", "volumeDevices"].map(|list| format!("c.?{list}.orValue([]).size()")).into();
            let sum = format!(
                "variables.containers.size() <= {MAX_CONTAINERS} \
                 && variables.containers.map(c, {}).sum() <= {MAX_IN_CONTAINERS}",
                counts.join(" + ")
            );
            found.variables.push(("injectsInContainers", "", sum));
            let names = "variables.containers.map(c, string(c.name))";
            found.variables.push(("containerNames", "", names.to_owned()));
            for (list, mounts, environment) in LISTS {
                let elements = elements(list);
                let paths = "c.?volumeMounts.orValue([]).map(m, string(m.mountPath)) \
                             + c.?volumeDevices.orValue([]).map(d, string(d.devicePath))";
                found.variables.push((mounts, "", format!("{elements}.map(c, {paths})")));
                let names = "c.?env.orValue([]).map(e, string(e.name))";
                found.variables.push((environment, "", format!("{elements}.map(c, {names})")));
            }
        }
        found.containers = adding.map(|group| Self::lower_containers(group, cx));
        for group in self.of(Owner::Pod) {
            let mut terms = Vec::new();
            Self::lower_in_pod(group, cx, &mut terms);
            found.operations.push(sum(&terms));
        }
        let mut in_each = Vec::new();
        for (list, mounts, environment) in LISTS {
            let of = Each { list, mounts, environment, is_init: list == LISTS[1].0 };
            for group in self.of_containers() {
                Self::lower_in_containers(&of, group, cx, &mut in_each);
            }
            in_each.extend(self.removal(&of));
        }
        if !in_each.is_empty() {
            found.operations.push(format!("(variables.injectsInContainers ? {} : [])", sum(&in_each)));
        }
        found
    }

    /// Reports errors in the texts of these additions, and the uses of parameters in them.
    pub fn report(&self, cx: &mut Lowering<'_>) {
        for one in self.groups.iter().flat_map(|group| &group.additions) {
            one.value.cel(cx);
        }
    }

    /// CEL of type list(JSONPatch): each container is added before those that are there, so the last one is the first.
    fn lower_containers(group: &Group, cx: &mut Lowering<'_>) -> String {
        let wanted = |one: &Addition| {
            let term = with_volumes(wanted(one, false), one);
            format!("{term} && !({} in variables.containerNames)", cel::quote(&one.key))
        };
        let conditions: Vec<_> = group.additions.iter().map(wanted).collect();
        let path = format!("/{}", group.path.join("/"));
        let list = add(&cel::quote(&path), "[]");
        let unset = unset("object", group.path, true);
        let mut terms = vec![format!("({unset} && {} ? [{list}] : [])", any_of(&conditions))];
        for (one, condition) in group.additions.iter().zip(&conditions).rev() {
            let operation = add(&cel::quote(&format!("{path}/0")), &one.value.cel(cx));
            terms.push(format!("({condition} ? [{operation}] : [])"));
        }
        let is_windows = format!(
            "object.spec.?{WINDOWS}.hasValue() || variables.containers.exists(c, c.?{WINDOWS}.hasValue())",
            WINDOWS = WINDOWS.join(".?")
        );
        format!("(variables.injectsInContainers && !({is_windows}) ? {} : [])", sum(&terms))
    }

    fn lower_in_pod(group: &Group, cx: &mut Lowering<'_>, out: &mut Vec<String>) {
        let wanted: Vec<_> = group.additions.iter().map(|one| wanted(one, false)).collect();
        let any = any_of(&wanted);
        for length in 1..=group.path.len() {
            let path = &group.path[..length];
            // A pod always has these.
            if path == ["metadata"] || path == ["spec"] {
                continue;
            }
            let is_list = length == group.path.len() && group.key != Key::Map;
            let operation = add(&cel::quote(&format!("/{}", path.join("/"))), if is_list { "[]" } else { "{}" });
            out.push(format!("({} && {any} ? [{operation}] : [])", unset("object", path, is_list)));
        }
        for (one, wanted) in group.additions.iter().zip(&wanted) {
            let value = one.value.cel(cx);
            let list = format!("{}.orValue([])", select("object", group.path));
            let exists = match group.key {
                Key::Map => format!("{} in {}.orValue({{}})", cel::quote(&one.key), select("object", group.path)),
                Key::Fields(fields) => {
                    let equal: Vec<_> = fields
                        .iter()
                        .map(|name| format!("e.?{name}.orValue('') == {}", one.value.field(name, cx)))
                        .collect();
                    format!("{list}.exists(e, {})", equal.join(" && "))
                }
                Key::Whole => format!("{list}.exists(e, e == dyn({value}))"),
                Key::Mount | Key::Variable => "true".to_owned(),
            };
            let end = if group.key == Key::Map { escaped(&one.key) } else { "-".to_owned() };
            let operation = add(&cel::quote(&format!("/{}/{end}", group.path.join("/"))), &value);
            out.push(format!("({wanted} && !({exists}) ? [{operation}] : [])"));
        }
    }

    fn lower_in_containers(of: &Each<'_>, group: &Group, cx: &mut Lowering<'_>, out: &mut Vec<String>) {
        let field = group.path.join("/");
        let additions: Vec<_> = group.additions.iter().filter(|one| one.init || !of.is_init).collect();
        if additions.is_empty() {
            return;
        }
        let conditions: Vec<_> = additions.iter().map(|one| of.wanted(one)).collect();
        let any = any_of(&conditions);
        let unset = unset("c", group.path, true);
        out.push(of.each(&format!("{unset} && {any}"), &field, |path| add(path, "[]")));
        for (one, condition) in additions.iter().zip(&conditions) {
            let value = one.value.cel(cx);
            let (name, names) =
                (cel::quote(&one.key), if group.key == Key::Mount { of.mounts } else { of.environment });
            let exists = format!("{name} in variables.{names}[i]");
            if one.replaces {
                let last = format!("variables.{names}[i].lastIndexOf({name})");
                let differs = format!("{condition} && {exists} && c.env[{last}] != dyn({value})");
                out.push(of.each(&differs, &field, |path| {
                    format!("JSONPatch{{op: 'replace', path: {path} + '/' + string({last}), value: {value}}}")
                }));
            }
            out.push(of.each(&format!("{condition} && !({exists})"), &format!("{field}/-"), |path| add(path, &value)));
        }
    }

    fn removal(&self, of: &Each<'_>) -> Option<String> {
        let removals = self.removals.iter().filter(|(_, init, _)| *init || !of.is_init);
        let terms: Vec<_> = removals
            .map(|(entry, _, names)| format!("(variables.injects[{entry}] && {})", any_of(&of.set(names))))
            .collect();
        let condition = format!("has(c.workingDir) && {}", any_of(&terms));
        let remove = |path: &str| format!("JSONPatch{{op: 'remove', path: {path}}}");
        (!terms.is_empty()).then(|| of.each(&condition, "workingDir", remove))
    }
}

/// A loop over a list of containers.
struct Each<'a> {
    list: &'a str,
    mounts: &'a str,
    environment: &'a str,
    is_init: bool,
}

impl Each<'_> {
    /// CEL of type list(JSONPatch): an operation in each container with the condition.
    fn each(&self, condition: &str, field: &str, operation: impl Fn(&str) -> String) -> String {
        let path = format!("'/spec/{}/' + string(i) + {}", self.list, cel::quote(&format!("/{field}")));
        format!("{}.transformList(i, c, {condition}, {})", elements(self.list), operation(&path))
    }

    /// CEL of type bool, each: whether the container sets a variable.
    fn set(&self, names: &[String]) -> Vec<String> {
        names.iter().map(|name| format!("{} in variables.{}[i]", cel::quote(name), self.environment)).collect()
    }

    /// CEL of type bool: whether an entry and no earlier one wants an addition.
    fn wanted(&self, one: &Addition) -> String {
        let mut term = with_volumes(wanted(one, self.is_init), one);
        for set in self.set(&one.unless_set) {
            term = format!("{term} && !({set})");
        }
        term
    }
}

/// CEL of type bool: a condition, and that no other volumes have the names of those that an addition needs.
fn with_volumes(condition: String, one: &Addition) -> String {
    one.volumes
        .iter()
        .fold(condition, |term, volume| format!("{term} && !({} in variables.takenVolumes)", cel::quote(volume)))
}

fn wanted(one: &Addition, is_init: bool) -> String {
    let earlier = one.earlier.iter().filter(|(_, init)| *init || !is_init);
    earlier.fold(format!("variables.injects[{}]", one.entry), |term, (entry, _)| {
        format!("{term} && !variables.injects[{entry}]")
    })
}

/// CEL of type list: these lists one after another. The nesting of a sum in the parser grows with its length, and is
/// limited (`maxRecursionDepth` in cel-go `parser`), so long sums are sums of sums.
fn sum(terms: &[String]) -> String {
    const MOST: usize = 16;
    if terms.len() <= MOST {
        return format!("({})", terms.join(" + "));
    }
    sum(&terms.chunks(MOST).map(sum).collect::<Vec<_>>())
}

/// CEL of type bool: whether one of the conditions holds, each condition once.
fn any_of(conditions: &[String]) -> String {
    let mut terms: Vec<String> = Vec::new();
    for condition in conditions {
        let term = if condition.contains(" && ") { format!("({condition})") } else { condition.clone() };
        if !terms.contains(&term) {
            terms.push(term);
        }
    }
    cel::any(&terms)
}

fn elements(list: &str) -> String {
    if list == "containers" { "object.spec.containers".to_owned() } else { format!("object.spec.?{list}.orValue([])") }
}

fn unset(object: &str, path: &[&str], is_list: bool) -> String {
    let found = select(object, path);
    if is_list { format!("{found}.orValue([]).size() == 0") } else { format!("!{found}.hasValue()") }
}

fn add(path: &str, value: &str) -> String {
    format!("JSONPatch{{op: 'add', path: {path}, value: {value}}}")
}

impl Template {
    /// CEL of the value.
    fn cel(&self, cx: &mut Lowering<'_>) -> String {
        literal(&self.path, &self.value, cx)
    }

    /// CEL of type string: a field of the value.
    fn field(&self, name: &str, cx: &mut Lowering<'_>) -> String {
        match self.value.get(name) {
            Some(value) => literal(&format!("{}.{name}", self.path), value, cx),
            None => "''".to_owned(),
        }
    }
}

/// CEL of a value in which each string is a text.
fn literal(path: &str, value: &Json, cx: &mut Lowering<'_>) -> String {
    let element = |text: String, one_type: bool| if one_type { text } else { format!("dyn({text})") };
    match value {
        Json::String(text) => {
            let meaning = if path.ends_with(".hostPath.path") { Meaning::Path } else { Meaning::Word };
            let text = cx.text(path, &Text(text.clone()), meaning);
            text.map_or_else(|template| template.cel, |constant| cel::quote(&constant))
        }
        Json::Array(items) => {
            let same = items.iter().all(Json::is_string);
            let items: Vec<_> = items
                .iter()
                .enumerate()
                .map(|(index, item)| element(literal(&format!("{path}[{index}]"), item, cx), same))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(fields) => {
            let same = fields.values().all(Json::is_string);
            let fields: Vec<_> = fields
                .iter()
                .map(|(key, value)| {
                    let value = element(literal(&format!("{path}.{key}"), value, cx), same);
                    format!("{}: {value}", cel::quote(key))
                })
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        other => other.to_string(),
    }
}
