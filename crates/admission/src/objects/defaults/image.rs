//! Names of images (`distribution/reference`), as far as the default of `imagePullPolicy` depends on them.

/// The tag of an image, `latest` if it has neither tag nor digest, and empty if the name is not valid.
pub(super) fn tag(image: &str) -> &str {
    parse(image).unwrap_or_default()
}

fn parse(image: &str) -> Option<&str> {
    // It would be an image ID.
    if image.len() == 64 && image.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)) {
        return None;
    }
    let (name, digest) = match image.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (image, None),
    };
    let (name, tag) = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (name, None),
    };
    let first = name.split('/').next()?;
    let has_domain =
        name.contains('/') && (first.contains(['.', ':']) || first == "localhost" || first.to_lowercase() != first);
    let path = if has_domain { &name[first.len() + 1..] } else { name };
    let valid = (!has_domain || is_domain(first))
        && path.split('/').all(is_component)
        && tag.is_none_or(is_tag)
        && digest.is_none_or(is_digest);
    if !valid {
        return None;
    }
    Some(match (tag, digest) {
        (Some(tag), _) => tag,
        (None, Some(_)) => "",
        (None, None) => "latest",
    })
}

fn is_domain(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return !address.is_empty()
            && address.bytes().all(|b| b.is_ascii_hexdigit() || b == b':')
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        let edge = |c: Option<u8>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        edge(label.bytes().next())
            && edge(label.bytes().last())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Letters and digits, with `.`, `_`, `__` or any number of `-` between them.
fn is_component(text: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_digit() || b.is_ascii_lowercase();
    let mut rest = text.as_bytes();
    loop {
        let plain = rest.iter().take_while(|b| is_plain(**b)).count();
        if plain == 0 {
            return false;
        }
        rest = &rest[plain..];
        if rest.is_empty() {
            return true;
        }
        let separator = rest.iter().take_while(|b| !is_plain(**b)).count();
        let known = matches!(&rest[..separator], b"." | b"_" | b"__") || rest[..separator].iter().all(|b| *b == b'-');
        if !known {
            return false;
        }
        rest = &rest[separator..];
    }
}

fn is_tag(text: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    text.len() <= 128
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(text: &str) -> bool {
    let Some((algorithm, hex)) = text.split_once(':') else { return false };
    let length = match algorithm {
        "sha256" => hex.len() == 64,
        "sha384" => hex.len() == 96,
        "sha512" => hex.len() == 128,
        _ => return false,
    };
    length && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::tag;

    /// From the tests of `pkg/util/parsers` and of `distribution/reference`.
    #[test]
    fn image_tag_is_parsed_or_defaulted_to_latest() {
        for (image, wanted) in [
            ("root", "latest"),
            ("root:tag", "tag"),
            ("root@sha256:e4dd5d1dd0ae7b6c5b4c5c7b1d7a1f2a1ad9c2a6a5a9f3b5c3a8b7e5d4c3b2a1", ""),
            ("user/repo", "latest"),
            ("user/repo:tag", "tag"),
            ("url:5000/repo", "latest"),
            ("url:5000/repo:tag", "tag"),
            ("localhost/a__b:v1", "v1"),
            ("ROOT", ""),
            ("http://bad.com/foo", ""),
            ("a//b", ""),
            ("a/b:", ""),
            ("docker.io/library/a---b:latest", "latest"),
            ("", ""),
        ] {
            assert_eq!(tag(image), wanted, "{image}");
        }
    }
}
