//! URLs (`pkg/cel/library/urls.go`, with Go's `net/url`).

mod escape;

use std::{collections::BTreeMap, fmt};

use super::{ip::parse_address, quote::quote, quote::quote_bytes};
use escape::{Mode, escape, is_valid_encoding, unescape};

/// Go reads no query with more parameters.
const MAX_PARAMETERS: usize = 10_000;

/// A URL. Two are equal if they are written in the same way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Url {
    scheme: String,
    /// The part after a scheme without a slash, as in `mailto:a@b`.
    opaque: String,
    user: Option<(Vec<u8>, Option<Vec<u8>>)>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The path as it was written, if that is not how it would be.
    raw_path: String,
    /// There is no host, and it is not written with `//`.
    omit_host: bool,
    /// The query is empty, and its `?` is written.
    force_query: bool,
    query: String,
    fragment: Vec<u8>,
    raw_fragment: String,
}

impl PartialEq for Url {
    fn eq(&self, other: &Self) -> bool {
        self.to_bytes() == other.to_bytes()
    }
}

/// A text behind the first occurrence of a character, if it is there.
fn cut(text: &str, at: char) -> (&str, &str) {
    text.split_once(at).unwrap_or((text, ""))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Go's `url.ParseRequestURI`, which is what `isURL(string)` and `format.uri()` ask.
pub(crate) fn parse_request_uri(text: &str) -> Result<Url, String> {
    Url::parse_part(text, true).map_err(|error| format!("parse {}: {error}", quote(text)))
}

impl Url {
    /// `url(string)`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let context = |error| format!("URL parse error during conversion from string: {error}");
        parse_request_uri(text).map_err(context)?;
        let (rest, fragment) = cut(text, '#');
        let fail = |whole: &str, error: &str| context(format!("parse {}: {error}", quote(whole)));
        let mut url = Self::parse_part(rest, false).map_err(|error| fail(rest, &error))?;
        if !fragment.is_empty() {
            url.fragment = unescape(fragment, Mode::Fragment).map_err(|error| fail(text, &error))?;
            if escape(&url.fragment, Mode::Fragment) != fragment {
                fragment.clone_into(&mut url.raw_fragment);
            }
        }
        Ok(url)
    }

    /// Go's `parse`: a request's URI must be absolute, and keeps what begins with `#`.
    fn parse_part(text: &str, request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, mut rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        if let Some(before) = rest.strip_suffix('?').filter(|before| !before.contains('?')) {
            (url.force_query, rest) = (true, before);
        } else {
            let query;
            (rest, query) = cut(rest, '?');
            query.clone_into(&mut url.query);
        }
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if request {
                return Err("invalid URI for request".to_owned());
            }
            if cut(rest, '/').0.contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let may_have_host = !url.scheme.is_empty() || !request && !rest.starts_with("///");
        if let Some(authority) = rest.strip_prefix("//").filter(|_| may_have_host) {
            let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            url.set_authority(authority)?;
            rest = path;
        } else if !url.scheme.is_empty() && rest.starts_with('/') {
            url.omit_host = true;
        }
        url.path = unescape(rest, Mode::Path)?;
        if escape(&url.path, Mode::Path) != rest {
            rest.clone_into(&mut url.raw_path);
        }
        Ok(url)
    }

    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let Some((user, host)) = authority.rsplit_once('@') else {
            self.host = parse_host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = parse_host(&self.scheme, host)?;
        if !user.chars().all(|c| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c)) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let decode = |text| unescape(text, Mode::UserPassword);
        self.user = Some(match user.split_once(':') {
            Some((name, password)) => (decode(name)?, Some(decode(password)?)),
            None => (decode(user)?, None),
        });
        Ok(())
    }

    /// `url.getScheme()`.
    pub(crate) fn scheme(&self) -> &str {
        &self.scheme
    }

    /// `url.getHost()`: with the port.
    pub(crate) fn host(&self) -> String {
        lossy(&self.host)
    }

    fn host_and_port(&self) -> (&[u8], &[u8]) {
        let (mut host, mut port) = (&self.host[..], &[][..]);
        if let Some(colon) = host.iter().rposition(|&byte| byte == b':')
            && is_port(&host[colon..])
        {
            (host, port) = (&host[..colon], &host[colon + 1..]);
        }
        let inner = host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]"));
        (inner.unwrap_or(host), port)
    }

    /// `url.getHostname()`: without the port, and without brackets.
    pub(crate) fn hostname(&self) -> String {
        lossy(self.host_and_port().0)
    }

    /// `url.getPort()`.
    pub(crate) fn port(&self) -> String {
        lossy(self.host_and_port().1)
    }

    /// `url.getEscapedPath()`.
    pub(crate) fn escaped_path(&self) -> String {
        let as_written = !self.raw_path.is_empty() && is_valid_encoding(&self.raw_path, Mode::Path);
        if as_written {
            self.raw_path.clone()
        } else if self.path == b"*" {
            "*".to_owned()
        } else {
            escape(&self.path, Mode::Path)
        }
    }

    /// `url.getQuery()`: the values of each name in their order. Malformed parts are left out.
    pub(crate) fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        if self.query.matches('&').count() + 1 > MAX_PARAMETERS {
            return out;
        }
        for parameter in self.query.split('&').filter(|part| !part.is_empty() && !part.contains(';')) {
            let (name, value) = cut(parameter, '=');
            let decode = |text| unescape(text, Mode::Query);
            if let (Ok(name), Ok(value)) = (decode(name), decode(value)) {
                out.entry(lossy(&name)).or_default().push(lossy(&value));
            }
        }
        out
    }

    /// Go's `URL.String`.
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend(format!("{}:", self.scheme).bytes());
        }
        if self.opaque.is_empty() {
            self.write_authority(&mut out);
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, '/').0.contains(':') {
                out.extend(b"./");
            }
            out.extend(path.bytes());
        } else {
            out.extend(self.opaque.bytes());
        }
        if self.force_query || !self.query.is_empty() {
            out.extend(format!("?{}", self.query).bytes());
        }
        if !self.fragment.is_empty() {
            let as_written = !self.raw_fragment.is_empty() && is_valid_encoding(&self.raw_fragment, Mode::Fragment);
            let fragment = if as_written { self.raw_fragment.clone() } else { escape(&self.fragment, Mode::Fragment) };
            out.extend(format!("#{fragment}").bytes());
        }
        out
    }

    fn write_authority(&self, out: &mut Vec<u8>) {
        let omitted = self.omit_host && self.host.is_empty() && self.user.is_none();
        if omitted || self.scheme.is_empty() && self.host.is_empty() && self.user.is_none() {
            return;
        }
        if !self.host.is_empty() || !self.path.is_empty() || self.user.is_some() {
            out.extend(b"//");
        }
        if let Some((name, password)) = &self.user {
            out.extend(escape(name, Mode::UserPassword).bytes());
            if let Some(password) = password {
                out.extend(format!(":{}", escape(password, Mode::UserPassword)).bytes());
            }
            out.push(b'@');
        }
        out.extend(escape(&self.host, Mode::Host).bytes());
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&lossy(&self.to_bytes()))
    }
}

/// The scheme and what is behind its colon; no scheme if there is none.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if index > 0 => {}
            b':' if index == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..index], &text[index + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// Whether it is nothing, or a colon and digits.
fn is_port(text: &[u8]) -> bool {
    text.is_empty() || text[0] == b':' && text[1..].iter().all(u8::is_ascii_digit)
}

fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let wrong_port = |port: &str| Err(format!("invalid port {} after host", quote(port)));
    match host.rfind('[') {
        None => {}
        Some(0) => {
            let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
            let port = &host[end + 1..];
            if !is_port(port.as_bytes()) {
                return wrong_port(port);
            }
            let inner = &host[1..end];
            let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
            let mut name = unescape(address, Mode::Host)?;
            name.extend(unescape(zone, Mode::Zone)?);
            let parsed = parse_address(&name).map_err(|error| format!("invalid host: {error}"))?;
            if parsed.address.is_ipv4() {
                return Err("invalid IP-literal".to_owned());
            }
            return Ok([b"[", &name[..], b"]", port.as_bytes()].concat());
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
    }
    // Only the web's schemes insist on one colon: elsewhere a host may be a list.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon
        && !is_port(&host.as_bytes()[colon..])
    {
        return wrong_port(&host[colon..]);
    }
    unescape(host, Mode::Host)
}

/// The error of an escape that is none, of which these are the first three bytes.
fn bad_escape<T>(bytes: &[u8]) -> Result<T, String> {
    Err(format!("invalid URL escape {}", quote_bytes(&bytes[..bytes.len().min(3)])))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, string, texts};

    #[test]
    fn results_match_the_api_server() {
        check(include_str!("../testdata/url.jsonl"), |call, args| {
            let url = |index: usize| Url::parse(string(&args[index]));
            Ok(match call {
                "url(x0)" => json!(url(0)?.to_string()),
                "isURL(x0)" => json!(parse_request_uri(string(&args[0])).is_ok()),
                "url(x0).getScheme()" => json!(url(0)?.scheme()),
                "url(x0).getHost()" => json!(url(0)?.host()),
                "url(x0).getHostname()" => json!(url(0)?.hostname()),
                "url(x0).getPort()" => json!(url(0)?.port()),
                "url(x0).getEscapedPath()" => json!(url(0)?.escaped_path()),
                "url(x0).getQuery()" => json!({"map": url(0)?.query().into_iter().collect::<Vec<_>>()}),
                "url(x0) == url(x1)" => json!(url(0)? == url(1)?),
                call => panic!("{call}"),
            })
        });
    }

    #[test]
    fn any_text_parses_as_a_url_or_is_rejected() {
        let pieces =
            ["http", ":", "//", "/", "a", "[", "]", "::1", "%", "25", "%41", "é", "?", "#", "&", "=", "@", ";", "8"];
        for text in texts(&pieces, 20_000) {
            if let Ok(url) = Url::parse(&text) {
                let _ = (url.to_string(), url.query(), url.port(), url.hostname(), url.escaped_path());
            }
        }
    }
}
