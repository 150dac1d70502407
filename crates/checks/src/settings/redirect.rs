//! Images from another registry than the one that a pod names: `spec.images.redirect`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Diagnostic, Lowering, Meaning, Resolve, Text, Values, cel,
    image::{
        COMPLETE, ID, IN_REGISTRY, completed, completed_cel, has_host_cel, in_registry, is_valid, surely_in_registry,
    },
};

/// Replacement of image registries. Names are completed first as container runtimes do it: nginx is
/// docker.io/library/nginx. Tags and digests are kept. Invalid image names are not changed. A pod with an image ID,
/// such as sha256:..., violates the profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.target) || (has(self.hosts) && self.hosts.size() > 0)", "target or hosts is required"))]
pub struct Redirect {
    /// The registry, or a path in it, that has all images: host[:port][/path], or with $name. If unset: only images
    /// of hosts are redirected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = TARGET))]
    pub target: Option<Text>,
    /// KeepHost: quay.io/a/b becomes TARGET/quay.io/a/b, so that images of different registries stay separate. Images
    /// of a registry with a port or capital letters in its name are not changed, because a path cannot contain these.
    /// StripHost: quay.io/a/b becomes TARGET/a/b.
    #[serde(default)]
    pub path_style: PathStyle,
    /// Registries with a target that differs from target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["host"]))]
    pub hosts: Vec<RedirectedHost>,
    /// Registries, or paths in them, whose images are not changed, written like allowedRegistries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub skip: Vec<Text>,
}

/// A registry with a separate target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RedirectedHost {
    /// The host[:port] of the registry; docker.io for Docker Hub.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[^/@ ]+$"))]
    pub host: String,
    /// The replacement for the host: host[:port][/path], or with $name.
    #[schemars(extend("pattern" = TARGET))]
    pub target: Text,
}

/// The use of the host of a redirected image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PathStyle {
    /// It becomes the first component of the path.
    #[default]
    KeepHost,
    /// It is removed.
    StripHost,
}

/// The form of a target: no scheme, no leading or trailing slash, and a recognizable host.
const TARGET: &str = r"^(localhost|[^/@ ]*[.:$A-Z][^/@ ]*)(/[^/@: ]+)*$";

/// Maximum length of a reference that is compared before it is completed, because the cost of reading a string grows
/// with its length.
const MAX_REFERENCE_LENGTH: usize = 512;

/// A redirection in one namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirector {
    target: Option<String>,
    path_style: PathStyle,
    hosts: Vec<(String, String)>,
    skip: Vec<String>,
}

impl Redirect {
    /// The redirection in a namespace with these parameters.
    pub fn resolve(&self, values: &Values) -> Redirector {
        Redirector {
            target: self.target.as_ref().map(|target| target.resolve(values)),
            path_style: self.path_style,
            hosts: self.hosts.iter().map(|one| (one.host.clone(), one.target.resolve(values))).collect(),
            skip: self.skip.resolve(values),
        }
    }

    /// CEL of type list(string): the redirected references for the list `images`; reports errors.
    pub fn lower(&self, cx: &mut Lowering<'_>, images: &str) -> String {
        let path = "spec.images.redirect";
        if self.target.is_none() && self.hosts.is_empty() {
            cx.report(Diagnostic::new(path, "has no target").help("set target or hosts"));
        }
        let mut target = |path: &str, text: &Text| match cx.text(path, text, Meaning::Registry) {
            Ok(constant) => {
                let host = constant.split('/').next().unwrap_or_default();
                if !is_valid(&format!("{constant}/x")) || completed(&format!("{host}/x")) != format!("{host}/x") {
                    cx.report(
                        Diagnostic::new(path, format!("{constant:?} is neither a registry nor a path in a registry"))
                            .help("write host[:port][/path]; a host must have a dot or a port, or be localhost"),
                    );
                }
                cel::quote(&constant)
            }
            Err(template) => template.cel,
        };
        let base = self.target.as_ref().map(|text| target(&format!("{path}.target"), text));
        let hosts: Vec<_> = self
            .hosts
            .iter()
            .enumerate()
            .map(|(index, one)| (cel::quote(&one.host), target(&format!("{path}.hosts[{index}].target"), &one.target)))
            .collect();
        let skip =
            (!self.skip.is_empty()).then(|| cx.texts(&format!("{path}.skip"), &self.skip, Meaning::Registry).cel());
        // `n` is the name in the pod, `i` the completed name.
        let targets: Vec<_> = base.iter().chain(hosts.iter().map(|(_, target)| target)).cloned().collect();
        let mut kept: Vec<_> = targets
            .iter()
            .flat_map(|target| ["n", "i"].map(|name| format!("{name}.startsWith({target} + '/')")))
            .collect();
        if let Some(skip) = skip {
            kept.push(format!("{skip}.exists(r, {IN_REGISTRY})"));
        }
        kept.push(format!("n.matches({})", cel::quote(ID)));
        kept.push(format!("!i.matches({})", cel::quote(COMPLETE)));
        let host = "i.substring(0, i.indexOf('/'))";
        let rest = "i.substring(i.indexOf('/'))";
        let mut becomes = match (&base, self.path_style) {
            (None, _) => "n".to_owned(),
            (Some(target), PathStyle::StripHost) => format!("{target} + {rest}"),
            (Some(target), PathStyle::KeepHost) => {
                format!("({host}.contains(':') || {host} != {host}.lowerAscii() ? n : {target} + '/' + i)")
            }
        };
        for (known, target) in hosts.iter().rev() {
            becomes = format!("({host} == {known} ? {target} + {rest} : {becomes})");
        }
        let i = completed_cel("[n]");
        format!("{images}.map(n, {i}.map(i, {} ? n : {becomes})[0])", kept.join(" || "))
    }

    /// CEL of type bool that is true only if a reference `image` (CEL of type string, empty if there is none) is not
    /// changed in any namespace; `None` if that cannot be decided for any image. It reads nothing else, and it need not
    /// complete most of the unchanged references.
    pub fn stays(&self, cx: &mut Lowering<'_>, image: &str) -> Option<String> {
        let begins = |with: &str| format!("{image}.startsWith({})", cel::quote(&format!("{with}/")));
        let mut constant = |text: &Text| cx.text("", text, Meaning::Registry).ok();
        let hosts = self.hosts.iter().map(|one| &one.target);
        // Already in its target.
        let mut terms: Vec<_> =
            self.target.iter().chain(hosts).filter_map(&mut constant).map(|target| begins(&target)).collect();
        let skip = if self.skip.is_empty() { vec![] } else { cx.texts("", &self.skip, Meaning::Registry).constants };
        terms.extend(surely_in_registry(image, &skip));
        if skip.iter().any(|registry| registry == "docker.io") {
            terms.push(format!("!{}", has_host_cel(image)));
        } else if skip.iter().any(|registry| registry == "docker.io/library") {
            terms.push(format!("!{image}.contains('/')"));
        }
        // In a registry that is not redirected: with a target, only those with names that a path cannot contain.
        let has_a_place = self.target.is_none() || self.path_style == PathStyle::KeepHost;
        if has_a_place {
            let docker = self.target.is_none() && self.hosts.iter().any(|one| one.host == "docker.io");
            let mut others: Vec<_> = self.hosts.iter().map(|one| format!("!{}", begins(&one.host))).collect();
            if self.target.is_some() {
                others.push(format!("{image}.matches('^[^/]*[:A-Z][^/]*/')"));
            } else if docker {
                others.extend([format!("!{}", begins("index.docker.io")), has_host_cel(image)]);
            }
            if !others.is_empty() {
                terms.push(format!("({})", others.join(" && ")));
            }
        }
        (!terms.is_empty())
            .then(|| format!("({image}.size() <= {MAX_REFERENCE_LENGTH} && ({image} == '' || {}))", terms.join(" || ")))
    }
}

impl Redirector {
    /// Whether images that another redirection has changed are not changed again.
    pub fn leaves_alone(&self, other: &Self) -> bool {
        let mut targets = other.target.iter().chain(other.hosts.iter().map(|(_, target)| target));
        targets.all(|target| self.redirect(&format!("{target}/x")).is_none())
    }

    /// The redirected name of the image; `None` if it is already in its target, is skipped, or is not a valid name.
    pub fn redirect(&self, image: &str) -> Option<String> {
        let full = completed(image);
        let mut targets = self.target.iter().chain(self.hosts.iter().map(|(_, target)| target));
        let below = |image: &str, target: &str| image.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
        if targets.any(|target| below(image, target) || below(&full, target))
            || self.skip.iter().any(|skip| in_registry(&full, skip))
            || !is_valid(image)
        {
            return None;
        }
        let (host, path) = full.split_once('/')?;
        if let Some((_, target)) = self.hosts.iter().find(|(known, _)| known == host) {
            return Some(format!("{target}/{path}"));
        }
        let target = self.target.as_ref()?;
        match self.path_style {
            PathStyle::StripHost => Some(format!("{target}/{path}")),
            PathStyle::KeepHost => {
                let in_path = !host.contains(':') && !host.chars().any(|c| c.is_ascii_uppercase());
                in_path.then(|| format!("{target}/{full}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirect_leaves_skipped_or_equal_targets_alone() {
        let to = |target: &str, skip: &[&str]| Redirector {
            target: Some(target.to_owned()),
            path_style: PathStyle::StripHost,
            hosts: vec![],
            skip: skip.iter().map(|&one| one.to_owned()).collect(),
        };
        let (one, other) = (to("a.example", &[]), to("b.example/x", &[]));
        assert!(one.leaves_alone(&one) && !one.leaves_alone(&other) && !other.leaves_alone(&one));
        assert!(to("a.example", &["b.example"]).leaves_alone(&other));
        assert!(!to("a.example", &["b.example/y"]).leaves_alone(&other));
        let by_host =
            Redirector { target: None, hosts: vec![("ghcr.io".to_owned(), "c.example".to_owned())], ..one.clone() };
        assert!(by_host.leaves_alone(&one) && !one.leaves_alone(&by_host));
    }

    fn redirector(path_style: PathStyle) -> Redirector {
        Redirector {
            target: Some("sea.hub:5000".to_owned()),
            path_style,
            hosts: vec![("ghcr.io".to_owned(), "mirror.example/ghcr".to_owned())],
            skip: vec!["registry.example".to_owned(), "quay.io/kept".to_owned()],
        }
    }

    #[test]
    fn images_are_redirected_once() {
        let digest = format!("@sha256:{}", "0".repeat(64));
        for (image, stripped, kept) in [
            ("nginx", Some("sea.hub:5000/library/nginx"), Some("sea.hub:5000/docker.io/library/nginx")),
            ("docker.io/nginx:1", Some("sea.hub:5000/library/nginx:1"), Some("sea.hub:5000/docker.io/library/nginx:1")),
            ("quay.io/a/b:c", Some("sea.hub:5000/a/b:c"), Some("sea.hub:5000/quay.io/a/b:c")),
            ("localhost:5000/x", Some("sea.hub:5000/x"), None),
            ("localhost/x", Some("sea.hub:5000/x"), Some("sea.hub:5000/localhost/x")),
            ("ghcr.io/a/b", Some("mirror.example/ghcr/a/b"), Some("mirror.example/ghcr/a/b")),
            ("registry.example/x", None, None),
            ("registry.example.evil/x", Some("sea.hub:5000/x"), Some("sea.hub:5000/registry.example.evil/x")),
            ("quay.io/kept:1", None, None),
            ("quay.io/kept/x", None, None),
            ("sea.hub:5000/x", None, None),
            ("Not An Image", None, None),
            ("", None, None),
        ] {
            for (style, expected) in [(PathStyle::StripHost, stripped), (PathStyle::KeepHost, kept)] {
                let redirector = redirector(style);
                assert_eq!(redirector.redirect(image).as_deref(), expected, "{image} {style:?}");
                assert!(expected.is_none_or(|again| redirector.redirect(again).is_none()), "{image} {style:?}");
            }
        }
        let found = redirector(PathStyle::StripHost).redirect(&format!("quay.io/a/b:c{digest}"));
        assert_eq!(found, Some(format!("sea.hub:5000/a/b:c{digest}")));
    }
}
