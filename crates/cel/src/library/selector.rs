//! Field and label selectors (`pkg/fields` and `pkg/labels` of `k8s.io/apimachinery`), from their texts to requirements.

use std::{borrow::Cow, collections::BTreeSet};

use super::{
    authorization::{Operator, Requirement},
    format::Format,
    quote::quote,
};

/// `fields.ParseSelector(text)`, and of that the requirements.
pub(crate) fn fields(text: &str) -> Result<Vec<Requirement>, String> {
    let mut terms = terms(text);
    terms.sort_unstable();
    let mut requirements = Vec::new();
    for term in terms.into_iter().filter(|term| !term.is_empty()) {
        let not_understood = || format!("invalid selector: '{text}'; can't understand '{term}'");
        let at = term.find("!=").into_iter().chain(term.find('=')).min().ok_or_else(not_understood)?;
        let (key, rest) = term.split_at(at);
        let (operator, value) = match rest.strip_prefix("!=") {
            Some(value) => (Operator::NotEquals, value),
            None => (Operator::Equals, rest.strip_prefix("==").unwrap_or(&rest[1..])),
        };
        let value = unescape(value)?.into_owned();
        if !(key.is_empty() && value.is_empty()) {
            requirements.push(Requirement { key: key.to_owned(), operator, values: vec![value] });
        }
    }
    Ok(requirements)
}

/// The terms of a selector, split at commas that are not escaped with a backslash.
fn terms(text: &str) -> Vec<&str> {
    let mut escaped = false;
    let is_end = |c| {
        let end = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        end
    };
    text.split(is_end).collect()
}

fn unescape(value: &str) -> Result<Cow<'_, str>, String> {
    if !value.contains(['\\', ',', '=']) {
        return Ok(value.into());
    }
    let (mut out, mut chars) = (String::new(), value.chars());
    while let Some(c) = chars.next() {
        out.push(match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => c,
                other => {
                    let sequence: String = [Some('\\'), other].into_iter().flatten().collect();
                    return Err(format!("invalid field selector: invalid escape sequence: {sequence}"));
                }
            },
            (',' | '=', _) => {
                return Err(format!("invalid field selector: unescaped character in value: {}", u32::from(c)));
            }
            _ => c,
        });
    }
    Ok(out.into())
}

/// `labels.ParseToRequirements(text)`, as since 1.35: before, a list that ends with two commas is an error.
pub(crate) fn labels(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    loop {
        match tokens.peek() {
            "" => break,
            "!" => {}
            symbol if is_symbol(symbol) => {
                return Err(format!("found '{symbol}', expected: !, identifier, or 'end of string'"));
            }
            _ => {}
        }
        let requirement = requirement(&mut tokens).map_err(|error| format!("unable to parse requirement: {error}"))?;
        requirements.push(requirement);
        match tokens.next() {
            "" => break,
            "," => {
                let next = tokens.peek();
                if next != "!" && is_symbol(next) {
                    return Err(format!("found '{next}', expected: identifier after ','"));
                }
            }
            other => return Err(format!("found '{other}', expected: ',' or 'end of string'")),
        }
    }
    requirements.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(requirements)
}

/// The tokens of a label selector: symbols and words. An empty one is the end.
struct Tokens<'a> {
    rest: &'a str,
}

/// Whether a token is not a word.
fn is_symbol(token: &str) -> bool {
    token.chars().next().is_none_or(is_special)
}

fn is_special(c: char) -> bool {
    "=!(),><".contains(c)
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> &'a str {
        Self { rest: self.rest }.next()
    }

    fn next(&mut self) -> &'a str {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let end = match text.chars().next() {
            // For Go's lexer, a NUL is the end.
            None | Some('\0') => {
                self.rest = "";
                return "";
            }
            Some('=' | '!') if text[1..].starts_with('=') => 2,
            Some(c) if is_special(c) => 1,
            _ => text.find(|c| is_special(c) || " \t\r\n\0".contains(c)).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(end);
        // One behind a token is read with it.
        self.rest = rest.strip_prefix('\0').unwrap_or(rest);
        token
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let mut key = tokens.next();
    let absent = key == "!";
    if absent {
        key = tokens.next();
    }
    if is_symbol(key) {
        return Err(format!("found '{key}', expected: identifier"));
    }
    let wrong = Format::QualifiedName.validate(key);
    if !wrong.is_empty() {
        return Err(invalid("<nil>", key, &wrong.join("; ")));
    }
    let new = |operator, values| Ok(Requirement { key: key.to_owned(), operator, values });
    if absent {
        return new(Operator::DoesNotExist, Vec::new());
    }
    if ["", ","].contains(&tokens.peek()) {
        return new(Operator::Exists, Vec::new());
    }
    let operator = match tokens.next() {
        "in" => Operator::In,
        "notin" => Operator::NotIn,
        "=" => Operator::Equals,
        "==" => Operator::DoubleEquals,
        "!=" => Operator::NotEquals,
        ">" => Operator::GreaterThan,
        "<" => Operator::LessThan,
        other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
    };
    let values: Vec<_> = match operator {
        Operator::In | Operator::NotIn => values(tokens)?.into_iter().map(str::to_owned).collect(),
        _ => vec![exact_value(tokens)?.to_owned()],
    };
    let errors = errors(key, operator, &values);
    match &errors[..] {
        [] => new(operator, values),
        [error] => Err(error.clone()),
        _ => Err(format!("[{}]", errors.join(", "))),
    }
}

fn values<'a>(tokens: &mut Tokens<'a>) -> Result<BTreeSet<&'a str>, String> {
    let open = tokens.next();
    if open != "(" {
        return Err(format!("found '{open}' expected: '('"));
    }
    let first = tokens.peek();
    let mut values = BTreeSet::new();
    if first == ")" {
        tokens.next();
        return Ok([""].into());
    }
    if is_symbol(first) && first != "," {
        return Err(format!("found '{first}', expected: ',', ')' or identifier"));
    }
    loop {
        match tokens.next() {
            "," => {
                let next = tokens.peek();
                if values.is_empty() || [")", ","].contains(&next) {
                    values.insert("");
                }
                if next == ")" {
                    break;
                }
            }
            word if !is_symbol(word) => {
                values.insert(word);
                match tokens.peek() {
                    "," => {}
                    ")" => break,
                    other => return Err(format!("found '{other}', expected: ',' or ')'")),
                }
            }
            other => return Err(format!("found '{other}', expected: ',', or identifier")),
        }
    }
    tokens.next();
    Ok(values)
}

fn exact_value<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, String> {
    if ["", ","].contains(&tokens.peek()) {
        return Ok("");
    }
    let value = tokens.next();
    if is_symbol(value) { Err(format!("found '{value}', expected: identifier")) } else { Ok(value) }
}

fn errors(key: &str, operator: Operator, values: &[String]) -> Vec<String> {
    let mut errors = Vec::new();
    if matches!(operator, Operator::GreaterThan | Operator::LessThan) && values[0].parse::<i64>().is_err() {
        let rule = "for 'Gt', 'Lt' operators, the value must be an integer";
        errors.push(invalid("values[0]", &values[0], rule));
    }
    for (index, value) in values.iter().enumerate() {
        let wrong = Format::LabelValue.validate(value);
        if !wrong.is_empty() {
            errors.push(invalid(&format!("values[{index}][{key}]"), value, &wrong.join("; ")));
        }
    }
    errors
}

/// `field.Invalid`.
fn invalid(path: &str, value: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {}: {detail}", quote(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{check, string, texts};

    #[test]
    fn selector_requirements_match_the_api_server() {
        check(include_str!("testdata/selector.jsonl"), |call, args| {
            let text = string(&args[0]);
            let requirements = if call == "fields" { fields(text) } else { labels(text) }?;
            Ok(json!(requirements.iter().map(ToString::to_string).collect::<Vec<_>>()))
        });
    }

    #[test]
    fn any_text_parses_as_a_selector_or_is_rejected() {
        let pieces = ["a", "=", "!", ",", "(", ")", " in ", "notin", "\\", "é", "\0", "\n", "<", "1"];
        for text in texts(&pieces, 20_000) {
            let _ = (fields(&text), labels(&text));
        }
    }
}
