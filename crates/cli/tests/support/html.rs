//! Reads a page strictly: elements that are closed in their order, attributes in quotes, no text that could be markup.

use std::collections::BTreeSet;

/// A page.
#[derive(Debug, Default)]
pub struct Html {
    /// The elements, in their order.
    pub elements: Vec<Element>,
    /// The text of all elements but style and script, with references replaced.
    pub text: String,
}

/// An element.
#[derive(Debug)]
pub struct Element {
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Vec<(String, String)>,
    /// The text in it and in its children.
    pub text: String,
    open: bool,
}

impl Element {
    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

const VOID: [&str; 3] = ["meta", "input", "link"];
const RAW: [&str; 2] = ["style", "script"];

impl Html {
    /// The page, or where it is wrong.
    pub fn parse(page: &str) -> Result<Self, String> {
        let mut rest = page.strip_prefix("<!doctype html>").ok_or("no doctype")?;
        let (mut html, mut open) = (Self::default(), Vec::<usize>::new());
        while let Some(at) = rest.find('<') {
            html.say(&open, &rest[..at])?;
            rest = &rest[at + 1..];
            let wrong = |why: &str, rest: &str| Err(format!("{why} at <{}", rest.chars().take(60).collect::<String>()));
            if let Some(after) = rest.strip_prefix('/') {
                let (name, after) = after.split_once('>').ok_or("an end tag without an end")?;
                match open.pop() {
                    Some(index) if html.elements[index].name == name => html.elements[index].open = false,
                    _ => return wrong("another element is open", rest),
                }
                rest = after;
                continue;
            }
            let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            if name.is_empty() {
                return wrong("no tag", rest);
            }
            rest = &rest[name.len()..];
            let mut attributes = Vec::new();
            let empty = loop {
                rest = rest.trim_start();
                if let Some(after) = rest.strip_prefix("/>") {
                    rest = after;
                    break true;
                }
                if let Some(after) = rest.strip_prefix('>') {
                    rest = after;
                    break false;
                }
                let key: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
                if key.is_empty() {
                    return wrong("no attribute", rest);
                }
                rest = &rest[key.len()..];
                let mut value = "";
                if let Some(after) = rest.strip_prefix("=\"") {
                    (value, rest) = after.split_once('"').ok_or("an attribute without an end")?;
                    if value.contains('<') {
                        return wrong("markup in an attribute", value);
                    }
                }
                attributes.push((key, unescaped(value)?));
            };
            let keys: BTreeSet<_> = attributes.iter().map(|(key, _)| key).collect();
            if keys.len() < attributes.len() {
                return wrong("an attribute twice", rest);
            }
            let index = html.elements.len();
            let void = empty || VOID.contains(&name.as_str());
            html.elements.push(Element { name: name.clone(), attributes, text: String::new(), open: !void });
            if RAW.contains(&name.as_str()) {
                let (text, after) = rest.split_once(&format!("</{name}>")).ok_or("raw text without an end")?;
                text.clone_into(&mut html.elements[index].text);
                html.elements[index].open = false;
                rest = after;
            } else if !void {
                open.push(index);
            }
        }
        if open.is_empty() && rest.trim().is_empty() { Ok(html) } else { Err(format!("{rest:?} at the end")) }
    }

    fn say(&mut self, open: &[usize], text: &str) -> Result<(), String> {
        let text = unescaped(text)?;
        for &index in open {
            self.elements[index].text.push_str(&text);
        }
        self.text.push_str(&text);
        Ok(())
    }

    /// The elements with a name.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Element> {
        self.elements.iter().filter(move |element| element.name == name)
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, after) = part.split_once(';').ok_or_else(|| format!("a bare & before {part:?}"))?;
        out.push(match name {
            "amp" | "#38" => '&',
            "lt" | "#60" => '<',
            "gt" | "#62" => '>',
            "quot" | "#34" => '"',
            "#39" | "#x27" => '\'',
            _ => return Err(format!("an unknown reference &{name};")),
        });
        out.push_str(after);
    }
    if text.contains('>') { Err(format!("a bare > in {text:?}")) } else { Ok(out) }
}
