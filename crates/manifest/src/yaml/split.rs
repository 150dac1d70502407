//! The documents of a text, as kubectl finds them (apimachinery `pkg/util/yaml/decoder.go`): JSON values one after the
//! other, or otherwise the parts between lines that begin with `---`, even within texts.

use std::ops::Range;

use super::Fault;

/// The separator of documents, at the beginning of a line.
const SEPARATOR: &str = "---";

/// A document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document {
    /// Its bytes in the text.
    pub range: Range<usize>,
    /// True if it is read as JSON, where numbers and escapes differ from YAML.
    pub json: bool,
}

/// The documents, in order (`YAMLOrJSONDecoder`).
pub(super) fn documents(text: &str) -> Result<Vec<Document>, Fault> {
    let mut found = Vec::new();
    let mut rest = 0;
    if text.trim_start().starts_with('{') {
        let mut stream = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
        while let Some(next) = stream.next() {
            match next {
                Ok(_) => found.push(Document { range: rest..stream.byte_offset(), json: true }),
                // After two documents, the rest is surely JSON.
                Err(error) if found.len() > 1 => {
                    let offset = stream.byte_offset();
                    return Err(Fault { message: format!("after {} values of JSON: {error}", found.len()), offset });
                }
                Err(error) => {
                    let Some(start) = line_after(text, rest) else {
                        return Err(Fault { message: error.to_string(), offset: stream.byte_offset() });
                    };
                    return Ok(found.into_iter().chain(separated(text, start)?).collect());
                }
            }
            rest = stream.byte_offset();
        }
        return Ok(found);
    }
    Ok(separated(text, 0)?.collect())
}

/// The position after white space, at most to the end of the line (`consumeWhitespace`). It is lost in the last three
/// bytes, as kubectl reads four at a time.
fn line_after(text: &str, start: usize) -> Option<usize> {
    let end = text.len().saturating_sub(3);
    let mut rest = text[start..].char_indices().map(|(at, c)| (start + at, c)).take_while(|(at, _)| *at < end);
    let (at, found) = rest.find(|(_, c)| *c == '\n' || !c.is_whitespace())?;
    Some(if found == '\n' { at + 1 } else { at })
}

/// The documents between separators (`YAMLReader`).
fn separated(text: &str, start: usize) -> Result<impl Iterator<Item = Document>, Fault> {
    let mut found = Vec::new();
    let mut open: Option<usize> = None;
    let mut at = start;
    for line in text[start..].split_inclusive('\n') {
        let here = at;
        at += line.len();
        if let Some(rest) = line.strip_prefix(SEPARATOR) {
            let rest = rest.trim();
            if !rest.is_empty() && !rest.starts_with('#') {
                let message = format!(
                    "invalid Yaml document separator: {rest}: kubectl ends the document at each line that begins \
                     with ---, and only a comment is allowed on that line"
                );
                return Err(Fault { message, offset: here });
            }
            if let Some(begin) = open.take() {
                found.push(begin..here);
                continue;
            }
        }
        open.get_or_insert(here);
    }
    found.extend(open.map(|begin| begin..text.len()));
    Ok(found.into_iter().map(|range| Document { range, json: false }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<(&str, bool)> {
        documents(text).unwrap().into_iter().map(|one| (&text[one.range], one.json)).collect()
    }

    #[test]
    fn documents_are_split_like_kubectl() {
        for (text, expected) in [
            ("", vec![]),
            ("a: 1\n", vec![("a: 1\n", false)]),
            ("---\na: 1\n---\n", vec![("---\na: 1\n", false)]),
            ("---\n---\n# only\n---  # comment\r\nb: 2", vec![("---\n", false), ("# only\n", false), ("b: 2", false)]),
            ("a: |\n  x\n  ---\n", vec![("a: |\n  x\n  ---\n", false)]),
            // Within a text, too.
            ("a: \"x\n---\ny\"\n", vec![("a: \"x\n", false), ("y\"\n", false)]),
            (" {\"a\": 1}{}\n", vec![(" {\"a\": 1}", true), ("{}", true)]),
            ("{\"a\": 1}\n---\n{b: 2}\n", vec![("{\"a\": 1}", true), ("---\n{b: 2}\n", false)]),
            ("{a: 1}\n---\nb: 2\n", vec![("{a: 1}\n", false), ("b: 2\n", false)]),
        ] {
            assert_eq!(parts(text), expected, "{text:?}");
        }
    }

    #[test]
    fn content_after_a_document_separator_is_an_error() {
        for (text, offset) in [("a: 1\n--- {b: 2}\n", 5), ("----\n", 0), ("--- |\n x\n", 0)] {
            let fault = documents(text).unwrap_err();
            assert!(fault.offset == offset && fault.message.starts_with("invalid Yaml document separator: "), "{text}");
        }
        assert_eq!(documents("{}{} x").unwrap_err().offset, 5);
    }
}
