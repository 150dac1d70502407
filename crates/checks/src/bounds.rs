//! Bounds of the lists of a pod that checks and defaults loop over.
//!
//! The time that the API server needs for a loop in CEL grows with the square of its length: to count the cost of each
//! step, it searches all values that earlier steps have left (`refValStack` in cel-go `interpreter/runtimecost.go`). So
//! one request can take three seconds and more within CEL's own limits. Therefore every loop is preceded by a bound
//! that costs one comparison, and a pod over a bound is denied without further evaluation (ADR 23).

use serde_json::Value as Json;

use crate::{
    Field,
    defaults::{CONTAINER_LISTS, field, select},
};

/// The bound of a list or string of a pod.
#[derive(Debug, PartialEq, Eq)]
pub struct Bound {
    /// The list or string. [`Field::Container`] with an empty path means all containers together; the same for volumes
    /// and annotations.
    pub of: Field,
    /// The most elements, or characters of a string.
    pub most: usize,
    /// The unit of the bound.
    pub counted: Counted,
}

/// The unit of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The elements of a list or of a map.
    Elements,
    /// The characters of a string.
    Characters,
}

const fn list(of: Field, most: usize) -> Bound {
    Bound { of, most, counted: Counted::Elements }
}

const fn text(of: Field, most: usize) -> Bound {
    Bound { of, most, counted: Counted::Characters }
}

/// Every list of a pod, except those in lists other than containers and volumes, and the strings that checks parse.
/// The bounds are far above the sizes of real pods: they prevent attacks that keep the API server busy.
pub static BOUNDS: &[Bound] = &[
    // First the lists that contain the others.
    list(Field::Container(""), 128),
    list(Field::Volume(""), 256),
    list(Field::Annotation(""), 1024),
    list(Field::Pod("securityContext.supplementalGroups"), 256),
    list(Field::Pod("securityContext.sysctls"), 256),
    list(Field::Pod("tolerations"), 256),
    list(Field::Pod("hostAliases"), 256),
    list(Field::Pod("imagePullSecrets"), 256),
    list(Field::Pod("readinessGates"), 256),
    list(Field::Pod("schedulingGates"), 256),
    list(Field::Pod("topologySpreadConstraints"), 256),
    list(Field::Pod("resourceClaims"), 256),
    list(Field::Pod("nodeSelector"), 256),
    list(Field::Pod("dnsConfig.nameservers"), 256),
    list(Field::Pod("dnsConfig.searches"), 256),
    list(Field::Pod("dnsConfig.options"), 256),
    list(Field::Pod("affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"), 256),
    list(Field::Pod("affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"), 256),
    list(Field::Pod("affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"), 256),
    list(Field::Pod("affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution"), 256),
    list(Field::Pod("affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"), 256),
    list(Field::Pod("affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"), 256),
    list(Field::Container("securityContext.capabilities.add"), 256),
    list(Field::Container("securityContext.capabilities.drop"), 256),
    list(Field::Container("ports"), 1024),
    list(Field::Container("volumeMounts"), 256),
    list(Field::Container("volumeDevices"), 256),
    list(Field::Container("env"), 1024),
    list(Field::Container("envFrom"), 256),
    list(Field::Container("command"), 1024),
    list(Field::Container("args"), 1024),
    list(Field::Container("resizePolicy"), 256),
    list(Field::Container("resources.claims"), 256),
    list(Field::Volume("projected.sources"), 256),
    list(Field::Volume("configMap.items"), 1024),
    list(Field::Volume("secret.items"), 1024),
    list(Field::Volume("downwardAPI.items"), 1024),
    text(Field::Container("image"), 4096),
    text(Field::Volume("image.reference"), 4096),
    text(Field::Volume("hostPath.path"), 4096),
];

impl Bound {
    /// Whether a field is the bounded one, or inside it.
    pub fn covers(&self, field: &Field) -> bool {
        match (&self.of, field) {
            (Field::Pod(bound), Field::Pod(field))
            | (Field::Container(bound), Field::Container(field))
            | (Field::Volume(bound), Field::Volume(field)) => is_prefix(bound, field),
            (Field::Annotation(_), Field::Annotation(_)) => true,
            _ => false,
        }
    }

    /// The bounded field, as messages name it.
    pub fn name(&self) -> &'static str {
        match &self.of {
            Field::Container("") => "containers, initContainers and ephemeralContainers together",
            Field::Volume("") => "volumes",
            Field::Annotation(_) => "annotations",
            Field::Pod(path) | Field::Container(path) | Field::Volume(path) => path,
        }
    }

    /// The unit of the count, as messages name it.
    pub fn unit(&self) -> &'static str {
        match self.counted {
            Counted::Elements => "elements",
            Counted::Characters => "characters",
        }
    }

    /// CEL of type int: the length, given the names of the parts of a pod.
    pub fn size(&self, names: &Names<'_>) -> String {
        let empty = match (self.counted, &self.of) {
            (Counted::Characters, _) => "''",
            (Counted::Elements, Field::Pod("nodeSelector")) => "{}",
            (Counted::Elements, _) => "[]",
        };
        let below = |object: &str, path: &str| {
            format!("{}.orValue({empty}).size()", select(object, &path.split('.').collect::<Vec<_>>()))
        };
        match &self.of {
            Field::Container("") => {
                names.containers.iter().map(|list| format!("{list}.size()")).collect::<Vec<_>>().join(" + ")
            }
            Field::Volume("") => format!("{}.size()", names.volumes),
            Field::Annotation(_) => format!("{}.size()", names.annotations),
            Field::Pod(path) => below(names.spec, path),
            Field::Container(path) => below("c", path),
            Field::Volume(path) => below("v", path),
        }
    }

    /// Whether a pod is within it.
    pub fn holds(&self, pod: &Json) -> bool {
        let spec = field(pod, &["spec"]);
        let length = |found: &Json| match found {
            Json::Array(list) => list.len(),
            Json::Object(map) => map.len(),
            Json::String(text) => text.chars().count(),
            _ => 0,
        };
        let of = |object: &Json, path: &str| length(field(object, &path.split('.').collect::<Vec<_>>()));
        let each = |list: &str, path: &str| {
            let elements = field(spec, &[list]).as_array();
            elements.into_iter().flatten().all(|element| of(element, path) <= self.most)
        };
        match &self.of {
            Field::Container("") => CONTAINER_LISTS.iter().map(|list| of(spec, list)).sum::<usize>() <= self.most,
            Field::Volume("") => of(spec, "volumes") <= self.most,
            Field::Annotation(_) => of(pod, "metadata.annotations") <= self.most,
            Field::Pod(path) => of(spec, path) <= self.most,
            Field::Container(path) => CONTAINER_LISTS.iter().all(|list| each(list, path)),
            Field::Volume(path) => each("volumes", path),
        }
    }
}

/// The names of the parts of a pod in CEL.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// Its specification.
    pub spec: &'a str,
    /// Its lists of containers.
    pub containers: &'a [&'a str],
    /// Its volumes.
    pub volumes: &'a str,
    /// Its annotations.
    pub annotations: &'a str,
}

/// CEL of type bool: whether all of these are within their bounds. It counts containers and volumes before anything
/// loops over them.
pub fn hold(bounds: &[&Bound], names: &Names<'_>) -> String {
    let term = |bound: &&Bound| format!("{} <= {}", bound.size(names), bound.most);
    let (lists, volumes, containers) = split(bounds);
    let mut terms: Vec<_> = lists.iter().map(term).collect();
    let mut each = |lists: &[&str], name: &str, bounds: &[&Bound]| {
        let all: Vec<_> = bounds.iter().map(term).collect();
        if !all.is_empty() {
            terms.extend(lists.iter().map(|list| format!("{list}.all({name}, {})", all.join(" && "))));
        }
    };
    each(&[names.volumes], "v", &volumes);
    each(names.containers, "c", &containers);
    if terms.is_empty() { "true".to_owned() } else { terms.join(" && ") }
}

/// CEL of type list(string): the messages for lists and strings over their bounds.
pub fn says(bounds: &[&Bound], names: &Names<'_>) -> String {
    let over = |bound: &Bound| format!("{} > {}", bound.size(names), bound.most);
    let text = |bound: &Bound| {
        format!(
            "{} has ' + string({}) + ' {}, at most {} are allowed'",
            bound.name(),
            bound.size(names),
            bound.unit(),
            bound.most
        )
    };
    let (lists, volumes, containers) = split(bounds);
    let of_pod: Vec<_> =
        lists.iter().map(|bound| format!("({} ? ['[bounds] pod: {}] : [])", over(bound), text(bound))).collect();
    let mut of_each = Vec::new();
    for bound in &volumes {
        let volumes = names.volumes;
        of_each.push(format!(
            "{volumes}.map(v, {}, '[bounds] volume \"' + v.name + '\": {})",
            over(bound),
            text(bound)
        ));
    }
    for bound in &containers {
        of_each.extend(names.containers.iter().map(|list| {
            format!("{list}.map(c, {}, '[bounds] container \"' + c.name + '\": {})", over(bound), text(bound))
        }));
    }
    if of_pod.is_empty() {
        return "[]".to_owned();
    }
    if of_each.is_empty() {
        return of_pod.join(" + ");
    }
    // Nothing may loop over a list of the pod that is over its bound.
    let within: Vec<_> = lists.iter().map(|bound| format!("{} <= {}", bound.size(names), bound.most)).collect();
    format!("{} ? {} : {}", within.join(" && "), of_each.join(" + "), of_pod.join(" + "))
}

type Split<'a> = (Vec<&'a Bound>, Vec<&'a Bound>, Vec<&'a Bound>);

/// The bounds of a pod's own lists, of each volume and of each container.
fn split<'a>(bounds: &[&'a Bound]) -> Split<'a> {
    let (mut lists, mut volumes, mut containers) = (vec![], vec![], vec![]);
    for bound in bounds {
        match &bound.of {
            Field::Volume(path) if !path.is_empty() => volumes.push(*bound),
            Field::Container(path) if !path.is_empty() => containers.push(*bound),
            _ => lists.push(*bound),
        }
    }
    (lists, volumes, containers)
}

/// Whether the first path leads to something that the second one is in, or is.
fn is_prefix(one: &str, other: &str) -> bool {
    let mut other = other.split('.').map(|segment| segment.trim_end_matches("[*]"));
    one.is_empty() || one.split('.').all(|segment| other.next() == Some(segment))
}
