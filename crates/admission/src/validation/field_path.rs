//! `fieldPath` of a rule: a path to a field below its schema (`pkg/apiserver/schema/cel/validation.go`,
//! `ValidFieldPath`).

use serde_json::Value as Json;

/// The path as error messages write it, if it leads to a field of the schema.
pub(crate) fn field_path(path: &str, schema: &Json) -> Option<String> {
    let (mut out, mut schema) = (String::new(), schema);
    let mut rest = path;
    while !rest.is_empty() {
        let name;
        if let Some(after) = rest.strip_prefix("['") {
            let end = closing_quote(after)?;
            name = unescaped(&after[..end])?;
            rest = after[end + 1..].strip_prefix(']')?;
        } else {
            let after = rest.strip_prefix('.')?;
            // A delimiter right behind the dot is taken for the name.
            let end = after.find(['.', '[', ']']).unwrap_or(after.len()).max(usize::from(!after.is_empty()));
            name = after.get(..end).filter(|name| !name.is_empty())?.to_owned();
            rest = &after[end..];
        }
        let properties = schema.get("properties").and_then(Json::as_object).filter(|of| !of.is_empty());
        if let Some(properties) = properties {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(&name);
            schema = properties.get(&name)?;
        } else {
            schema = schema.get("additionalProperties").filter(|values| values.is_object())?;
            out.push('[');
            out.push_str(&name);
            out.push(']');
        }
    }
    Some(out)
}

/// The field of a schema by whose value objects can be selected, and its path, or the error in the path.
pub(crate) fn selectable_field<'s>(path: &str, schema: &'s Json) -> Result<(String, &'s Json), String> {
    let (mut out, mut schema) = (String::new(), schema);
    let mut rest = path;
    while let Some(mark) = token(&mut rest) {
        match mark {
            "." => {}
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        let name = token(&mut rest).ok_or("unexpected end of JSON path")?;
        let properties = schema.get("properties").and_then(Json::as_object).filter(|of| !of.is_empty());
        let found = if let Some(properties) = properties {
            if !out.is_empty() {
                out.push('.');
            }
            out.push_str(name);
            properties.get(name)
        } else {
            out.extend(["[", name, "]"]);
            schema.get("additionalProperties").filter(|values| values.is_object())
        };
        schema = found.ok_or("does not refer to a valid field")?;
    }
    Ok((out, schema))
}

/// Takes the first part of a path: a delimiter, a text in single quotes, or what is before the next delimiter.
fn token<'p>(rest: &mut &'p str) -> Option<&'p str> {
    let text = *rest;
    let end = match text.chars().next()? {
        '.' | '[' | ']' => 1,
        '\'' => closing_quote(&text[1..]).map_or(text.len(), |at| at + 2),
        _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
    };
    *rest = &text[end..];
    Some(&text[..end])
}

/// Where a text in single quotes ends.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|index| bytes[*index] == b'\'' && (*index == 0 || bytes[*index - 1] != b'\\'))
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'a' => '\x07',
                'b' => '\x08',
                'f' => '\x0c',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\x0b',
                same @ ('\'' | '\\') => same,
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn field_path_is_resolved_against_the_schema() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b": {"type": "string"}, "c.d'e": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "object", "properties": {"x": {"type": "string"}}}},
        }});
        for (path, expected) in [
            (".a", Some("a")),
            (".a.b", Some("a.b")),
            ("['a'].b", Some("a.b")),
            (r".a['c.d\'e']", Some("a.c.d'e")),
            (".m['k'].x", Some("m[k].x")),
            (".m.k.x", Some("m[k].x")),
            ("a", None),
            (".", None),
            (".a.", None),
            (".a[0]", None),
            (".a.z", None),
            (".a['b'", None),
            (".a.b.c", None),
        ] {
            assert_eq!(field_path(path, &schema).as_deref(), expected, "{path}");
        }
    }
}
