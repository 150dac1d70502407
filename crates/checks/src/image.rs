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

/// CEL of type bool: whether the reference `image`, as the pod has it, is the id of an image. See [`ID`].
pub(crate) fn is_id_cel(image: &str) -> String {
    // Most references have a slash, and no id has one.
    format!("(!{image}.contains('/') && {image}.matches({}))", cel::quote(ID))
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

/// The pattern of a completed reference: host, path, and optionally a tag and a digest. It has the same meaning in RE2
/// and Rust.
pub(crate) const COMPLETE: &str = "^(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:[.][a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*\
                                   |\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?\
                                   (?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)+\
                                   (?::[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127})?\
                                   (?:@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128}))?$";

/// The id of an image: not a name, but the digest of what is on a node already, from whatever registry it came. As a
/// name it would be one of docker.io/library. RE2 and Rust read it alike.
///
/// - 64 hexadecimal digits. Docker takes them for an id. `ParseNormalizedNamed`, by which the kubelet reads references,
///   rejects them ("cannot specify 64-byte hexadecimal strings").
/// - The name of an algorithm and a colon. The kubelet takes `sha256:abc` for an image with a tag and passes it on as it
///   is. containerd looks for an id first (`LocalResolve`), and takes any beginning of one (`Set.Lookup` in
///   `github.com/opencontainers/go-digest/digestset`). So the length of the rest does not count, nor do its letters. The
///   algorithms are those of the OCI image specification and of go-digest. With a slash behind the colon, the part before
///   it is the host of a registry: `sha256:5000/x`.
///
/// Fewer digits without an algorithm are a name: the kubelet adds `:latest` to them.
pub(crate) const ID: &str = "^(?:[a-fA-F0-9]{64}|(?:sha256|sha384|sha512|blake3):[^/]*)$";

static COMPLETE_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(COMPLETE).expect("a constant"));
static ID_REGEX: LazyLock<Regex> = LazyLock::new(|| Regex::new(ID).expect("a constant"));

/// Whether a reference is the id of an image, which no registry and no prefix of names covers: 64 hexadecimal digits,
/// or the name of a digest's algorithm with a colon and no slash behind it.
pub fn is_id(image: &str) -> bool {
    ID_REGEX.is_match(image)
}

/// Whether a reference is the name of an image in one of the registries, or below one of the paths in them: what the
/// check imageRegistries admits.
pub fn is_from(image: &str, registries: &[impl AsRef<str>]) -> bool {
    let completed = completed(image);
    !is_id(image) && registries.iter().any(|registry| in_registry(&completed, registry.as_ref()))
}

/// Whether a container runtime accepts the reference as the name of an image.
pub fn is_valid(image: &str) -> bool {
    COMPLETE_REGEX.is_match(&completed(image)) && !is_id(image)
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
            &format!("sha256:{sha}"),
        ] {
            assert!(!is_valid(image), "{image}");
        }
    }

    #[test]
    fn an_id_is_no_name_of_any_registry() {
        let sha = "0123456789abcdef".repeat(4);
        let anywhere = ["docker.io", "docker.io/library", "docker.io/library/sha256", "sha256", &sha];
        for image in [
            sha.clone(),
            sha.to_uppercase(),
            format!("sha256:{sha}"),
            format!("sha256:{}", sha.to_uppercase()),
            format!("sha512:{sha}{sha}"),
            format!("sha384:{sha}"),
            format!("blake3:{sha}"),
            format!("sha256:{}", &sha[..1]),
            format!("sha256:{sha}0"),
            "sha256:".to_owned(),
            "sha256:latest".to_owned(),
            format!("sha256:a@sha256:{sha}"),
            "sha256:a\nb".to_owned(),
        ] {
            assert!(is_id(&image) && !is_from(&image, &anywhere) && !is_valid(&image), "{image}");
        }
        for name in [
            sha[..63].to_owned(),
            format!("{sha}0"),
            format!("{sha}:1"),
            "sha256".to_owned(),
            format!("sha256@sha256:{sha}"),
            format!("docker.io/library/sha256:{sha}"),
            format!("sha256:5000/{sha}"),
            format!("sha1:{sha}"),
            format!("x/{sha}"),
            "deadbeef".to_owned(),
        ] {
            assert!(!is_id(&name), "{name}");
        }
        assert!(is_from("docker.io/library/sha256:1", &anywhere) && is_from("deadbeef", &anywhere));
    }
}
