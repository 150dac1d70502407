//! References of images, read as container runtimes read them (`github.com/distribution/reference`).

use std::sync::LazyLock;

use regex::Regex;

use crate::cel;

/// CEL of type list(string): references, completed (`ParseNormalizedNamed`): the first component is a host if it has a
/// dot, a colon or a capital letter, or is `localhost`; without a host it is docker.io; there a single component is
/// below `library/`.
pub(crate) fn completed_cel(images: &str) -> String {
    let host = "i.substring(0, i.indexOf('/'))";
    format!(
        "{images}\
         .map(i, i.contains('/') && ({host}.contains('.') || {host}.contains(':') || {host} == 'localhost' \
         || {host} != {host}.lowerAscii()) ? i : 'docker.io/' + i)\
         .map(i, i.startsWith('index.docker.io/') ? i.substring(6) : i)\
         .map(i, i.startsWith('docker.io/') && !i.substring(10).contains('/') ? 'docker.io/library/' + i.substring(10) : i)"
    )
}

/// CEL of type bool: whether the completed reference `i` is in the registry, or below the path in one, `r`.
pub(crate) const IN_REGISTRY: &str = "i.startsWith(r + '/') || (r.contains('/') \
                                      && (i == r || i.startsWith(r + ':') || i.startsWith(r + '@')))";

/// CEL of type bool: whether the reference `image` has a host. One with none is of docker.io.
pub(crate) fn has_host_cel(image: &str) -> String {
    format!("{image}.matches('^([^/]*[.:A-Z][^/]*|localhost)/')")
}

/// CEL of type bool, as terms of which one must hold, that is true only of a reference `image` that is in one of these
/// registries, or below a path in one, and need not be completed to know it: it begins with the registry. References
/// without a host, or with the other name of docker.io, are completed.
pub(crate) fn surely_in_registry<'a>(image: &str, registries: impl IntoIterator<Item = &'a String>) -> Vec<String> {
    let is_complete = |registry: &&String| {
        let host = registry.split('/').next().unwrap_or_default();
        host != "index.docker.io" && (host == "localhost" || host.contains(['.', ':']))
    };
    let registries: Vec<_> = registries.into_iter().filter(is_complete).collect();
    // What may be a repository itself, with a tag or a digest behind it; one of docker.io may want `library/`.
    let repositories: Vec<_> =
        registries.iter().filter(|registry| registry.contains('/') && !registry.starts_with("docker.io/")).collect();
    let mut begins: Vec<_> = registries.iter().map(|registry| format!("{registry}/")).collect();
    begins.extend(repositories.iter().flat_map(|repository| [':', '@'].map(|end| format!("{repository}{end}"))));
    let mut terms = Vec::new();
    if !begins.is_empty() {
        terms.push(format!("{}.exists(r, {image}.startsWith(r))", cel::list(&begins)));
    }
    if !repositories.is_empty() {
        terms.push(format!("{image} in {}", cel::list(&repositories)));
    }
    terms
}

/// Whether a completed reference is in a registry, or below a path in one.
pub(crate) fn in_registry(image: &str, registry: &str) -> bool {
    image.strip_prefix(registry).is_some_and(|rest| {
        rest.starts_with('/') || (registry.contains('/') && (rest.is_empty() || rest.starts_with([':', '@'])))
    })
}

/// A reference with its host, and with `library/` where Docker Hub implies that. Tag and digest stay.
pub fn completed(image: &str) -> String {
    let has_host = image.split_once('/').is_some_and(|(host, _)| {
        host.contains(['.', ':']) || host == "localhost" || host.chars().any(|c| c.is_ascii_uppercase())
    });
    let full = if has_host { image.to_owned() } else { format!("docker.io/{image}") };
    let full = full.strip_prefix("index.docker.io/").map_or(full.clone(), |rest| format!("docker.io/{rest}"));
    match full.strip_prefix("docker.io/").filter(|rest| !rest.contains('/')) {
        Some(rest) => format!("docker.io/library/{rest}"),
        None => full,
    }
}

/// What a completed reference looks like: host, path, and perhaps a tag and a digest. RE2 and Rust read it alike.
pub(crate) const COMPLETE: &str = "^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:[.][a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*\
                                   |\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?\
                                   (?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)+\
                                   (?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?\
                                   (?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$";

/// The form of an image's id, which no name may have.
pub(crate) const ID: &str = "^[a-f0-9]{64}$";

static COMPLETE_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(COMPLETE).expect("a constant"));
static ID_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(ID).expect("a constant"));

/// Whether a container runtime accepts the reference.
pub fn is_valid(image: &str) -> bool {
    COMPLETE_REGEX.is_match(&completed(image)) && !ID_REGEX.is_match(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of `github.com/distribution/reference`, `normalize_test.go`.
    #[test]
    fn image_references_are_completed_like_in_runtimes() {
        for (image, expected) in [
            ("nginx", "docker.io/library/nginx"),
            ("nginx:1.25", "docker.io/library/nginx:1.25"),
            ("dmcgowan/myapp", "docker.io/dmcgowan/myapp"),
            ("docker.io/nginx", "docker.io/library/nginx"),
            ("index.docker.io/nginx:1", "docker.io/library/nginx:1"),
            ("index.docker.io/a/b", "docker.io/a/b"),
            ("localhost/x", "localhost/x"),
            ("localhost:5000/x", "localhost:5000/x"),
            ("Registry/x", "Registry/x"),
            ("registry/x", "docker.io/registry/x"),
            ("[::1]:5000/x", "[::1]:5000/x"),
            ("a:1/b", "a:1/b"),
        ] {
            assert_eq!(completed(image), expected);
        }
    }

    #[test]
    fn only_image_references_a_runtime_accepts_are_valid() {
        let sha = "0123456789abcdef".repeat(4);
        for image in [
            "nginx",
            "a/b/c",
            "quay.io/a_b/c__d/e-f:v1.0_x",
            "localhost:5000/x:y",
            "[2001:db8::1]:80/x",
            "Registry.Example/x",
            &format!("nginx:1@sha256:{sha}"),
            &format!("nginx@sha512:{sha}{sha}"),
        ] {
            assert!(is_valid(image), "{image}");
        }
        for image in [
            "",
            " nginx",
            "nginx:",
            "nginx@",
            "Nginx",
            "a/B",
            "a//b",
            "/a",
            "a/",
            "a___b",
            "https://a.b/c",
            "-a.b/c",
            "foo_bar.com/x",
            "nginx@sha256:abc",
            &format!("nginx@md5:{sha}"),
            &format!("nginx:{}", "x".repeat(129)),
            &sha,
        ] {
            assert!(!is_valid(image), "{image}");
        }
    }
}
