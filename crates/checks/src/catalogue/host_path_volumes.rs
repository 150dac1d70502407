//! # hostPathVolumes
//!
//! A hostPath volume exposes a part of the node's file system. Paths are compared by segment: `/data` covers `/data/x`
//! but not `/database`. Paths with `..` are denied. Every container must mount a read-only path read-only. If a
//! writable and a read-only prefix match, the writable one applies.
//!
//! Nothing is created in a read-only path: the types `DirectoryOrCreate` and `FileOrCreate` are denied, because the
//! kubelet would create the missing path as root. A volume without a `type` is admitted.
//!
//! `readOnly` does not cover file systems that are mounted below the path on the node: they stay writable in the
//! container. With `recursiveReadOnly: true` in the profile, each mount of a read-only path must set
//! `recursiveReadOnly: Enabled`. If the container runtime of the node does not support this, the pod does not start.
//!
//! A parameter in a path is the name of one file or directory. A namespace whose value has a slash, or is `.` or `..`,
//! violates the profile. If the path begins with a parameter, its value is an absolute path.
//!
//! The check cannot see symbolic links on the node: a tenant with write access below an allowed path can create a link
//! there. Prefer `readOnly`.
//!
//! ## If your pod was denied
//!
//! Use an `emptyDir` for temporary data, a `persistentVolumeClaim` for data that must persist, and a path that the
//! message lists for files of the node. If the message requires it, set `readOnly: true`, or also
//! `recursiveReadOnly: Enabled`, in the `volumeMounts` of each container that mounts the volume, and remove the
//! volume's `type`.

use serde_json::json;

use crate::settings::{HostPath, kind_allowed, kind_refused};
use crate::{
    Check, Diagnostic, Field, Finding, FindingScope, Level, Lowering, Meaning, Pss, Resolve, Rule, TextList, cel, pod,
};

/// The check.
pub static CHECK: Check = Check {
    id: "hostPathVolumes",
    title: "Host path volumes",
    settings: &["volumes.hostPaths", "volumes.allowed", "volumes.recursiveReadOnly"],
    psp: Some("allowedHostPaths"),
    pss: &[Pss { level: Level::Baseline, id: "hostPathVolumes", since: 0 }],
    fields: &[
        Field::Volume("hostPath.path"),
        Field::Volume("hostPath.type"),
        Field::Container("volumeMounts[*].readOnly"),
        Field::Container("volumeMounts[*].recursiveReadOnly"),
    ],
    fixtures: include_str!("host_path_volumes.yaml"),
    compile: |settings, cx| {
        let paths = settings.volumes.host_paths.as_ref()?;
        if kind_refused(settings, "hostPath") {
            return None;
        }
        if paths.is_empty() {
            return Some(Rule::one(
                FindingScope::Volumes,
                "has(v.hostPath)",
                "'hostPath ' + v.hostPath.path + ' is not allowed, allowed: none'",
            ));
        }
        let (writable, read_only) = lower(paths, cx);
        let path = "v.hostPath.path";
        // Prefixes end with a slash, so that one comparison is both "it is the path" and "it is below".
        let below = |list: &str| format!("{list}.exists(a, ({path} + '/').startsWith(a))");
        let (in_writable, in_read_only) = (below(&writable.cel()), below(&read_only.cel()));
        let not_recursive = "m.?recursiveReadOnly.orValue('Disabled') != 'Enabled'";
        let recursive = settings.volumes.recursive_read_only.as_ref();
        let recursive = recursive.and_then(|flag| cx.when("spec.volumes.recursiveReadOnly", flag, not_recursive));
        let (writes, demanded) = match &recursive {
            None => ("!m.?readOnly.orValue(false)".to_owned(), "readOnly: true"),
            Some(writes) => (
                format!("(!m.?readOnly.orValue(false) || ({writes}))"),
                "readOnly: true and recursiveReadOnly: Enabled",
            ),
        };
        let says = says(&writable, &read_only);
        let created = "v.hostPath.?type.orValue('') in ['DirectoryOrCreate', 'FileOrCreate']";
        Some(Rule {
            // Most volumes are of another kind or in a writable path. Only the rest needs a closer look.
            variables: vec![
                (
                    "hostPathsNotWritable",
                    format!(
                        "variables.volumes.filter(v, has(v.hostPath) \
                         && (('/' + {path} + '/').contains('/../') || !{in_writable}))"
                    ),
                ),
                // Looks at each mount once, and not once for each volume.
                (
                    "writableMounts",
                    format!(
                        "variables.hostPathsNotWritable.size() == 0 ? [] : variables.containers.map(c, {{\
                         'container': [c.name], \
                         'volumes': c.?volumeMounts.orValue([]).filter(m, {writes}).map(m, m.name)}})"
                    ),
                ),
            ],
            findings: vec![
                Finding::new(
                    FindingScope::List("hostPathsNotWritable"),
                    format!("('/' + {path} + '/').contains('/../') || !{in_read_only}"),
                    format!("'hostPath ' + {path} + ' is not allowed, allowed: ' + {says}"),
                ),
                Finding::new(
                    FindingScope::List("hostPathsNotWritable"),
                    format!("{in_read_only} && variables.writableMounts.exists(w, v.name in w.volumes)"),
                    format!(
                        "'hostPath ' + {path} + ' must be mounted with {demanded}, but is not in container ' \
                         + variables.writableMounts.filter(w, v.name in w.volumes)\
                         .map(w, '\"' + w.container[0] + '\"').join(', ')"
                    ),
                ),
                Finding::new(
                    FindingScope::List("hostPathsNotWritable"),
                    format!("{in_read_only} && {created}"),
                    format!(
                        "'hostPath ' + {path} + ' is read-only and must not be created, but its type is ' + v.hostPath.type"
                    ),
                ),
            ],
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let prefixes: Vec<_> = match &settings.volumes.host_paths {
            Some(paths) if kind_allowed(settings, values, "hostPath") => {
                paths.iter().map(|path| path.path_prefix.resolve(values)).collect()
            }
            _ => return false,
        };
        if prefixes.iter().any(|prefix| prefix == "/") {
            return false;
        }
        pod::set(pod, &["volumes"], json!([{"name": "violation", "hostPath": {"path": "/"}}]));
        true
    },
};

/// CEL of type string that names the prefixes.
fn says(writable: &TextList, read_only: &TextList) -> String {
    if [writable, read_only].iter().all(|list| list.is_constant()) {
        let shown =
            |prefix: &String| if prefix == "/" { prefix.clone() } else { prefix.trim_end_matches('/').to_owned() };
        let read_only = read_only.constants.iter().map(|prefix| format!("{} (read-only)", shown(prefix)));
        let all: Vec<_> = writable.constants.iter().map(shown).chain(read_only).collect();
        return cel::quote(&all.join(", "));
    }
    format!("({} + {}.map(a, a + ' (read-only)')).join(', ')", writable.cel(), read_only.cel())
}

/// The writable and the read-only prefixes, with slashes at their ends.
fn lower(paths: &[HostPath], cx: &mut Lowering<'_>) -> (TextList, TextList) {
    let (mut writable, mut read_only) = (TextList::default(), TextList::default());
    for (index, HostPath { path_prefix, read_only: flag }) in paths.iter().enumerate() {
        let at = format!("spec.volumes.hostPaths[{index}]");
        let has_parents = path_prefix.0.split('/').any(|segment| segment == "..");
        let prefix = cx.text(&format!("{at}.pathPrefix"), path_prefix, Meaning::Path);
        if has_parents || prefix.as_ref().is_ok_and(|constant| !constant.starts_with('/')) {
            let message = format!("{:?} is not a valid host path", path_prefix.0);
            cx.report(Diagnostic::new(format!("{at}.pathPrefix"), message).help("write an absolute path without .."));
        }
        let prefix = prefix.map(|constant| format!("{}/", constant.trim_end_matches('/')));
        // A text with parameters may or may not end with a slash.
        let prefix = prefix.map_err(|template| template.map(|cel| format!("({cel} + '/').replace('//', '/')")));
        let add = |list: &mut TextList| match &prefix {
            Ok(constant) => list.constants.push(constant.clone()),
            Err(template) => list.templates.push(template.clone()),
        };
        match cx.flag(&format!("{at}.readOnly"), flag) {
            Ok(true) => add(&mut read_only),
            Ok(false) => add(&mut writable),
            Err(differs) => {
                let mut one = TextList::default();
                add(&mut one);
                read_only.lists.push(one.cel());
                writable.lists.push(format!("({differs} ? [] : {})", one.cel()));
            }
        }
    }
    (writable, read_only)
}
