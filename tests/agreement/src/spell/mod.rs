//! Objects, written as other tools and people write YAML and JSON: block and flow style, each form of a text, anchors,
//! merge keys, comments, any indentation, tabs, ends of lines of Windows, byte order marks, many documents.
//!
//! kubectl's own reader (`tests/oracle`, `oracle read`) decides what a text means, and `palisade-manifest` is compared
//! with it. So a writer that now and then writes invalid YAML does no harm.

mod scalar;
mod texts;

use serde_json::{Map, Value as Json};

pub use texts::{Tally, Text};

/// Numbers that look random, the same ones for the same seed.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap_or_default() % limit.max(1)
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Objects in one file, spelt in some way.
pub fn file(objects: &[Json], random: &mut Random) -> String {
    let mut text = String::new();
    let mark = random.one_in(12);
    if mark {
        text.push('\u{feff}');
    }
    // After a byte order mark JSON is YAML, which has one document here.
    if random.one_in(8) && !mark {
        // JSON values, one after the other.
        for object in objects {
            text.push_str(&json(object, random));
            text.push_str(random.pick(&["", "\n", "\r\n", "\n\n", " "]));
        }
        return text;
    }
    for (index, object) in objects.iter().enumerate() {
        if index > 0 {
            // With an end of a document before it, what follows is lost.
            text.push_str(random.pick(&["---\n", "---\n", "--- # next\n", "---  \n# comment\n", "---\n---\n"]));
        } else {
            text.push_str(random.pick(&["", "", "", "---\n", "# first\n---\n", "\n\n"]));
        }
        text.push_str(&document(object, random));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        if random.one_in(20) {
            text.push_str("...\n");
        }
    }
    if random.one_in(4) {
        text.truncate(text.trim_end_matches('\n').len());
    }
    if random.one_in(6) { text.replace('\n', "\r\n") } else { text }
}

pub fn damaged(text: &str, random: &mut Random) -> String {
    const PIECES: [&str; 34] = [
        " ",
        "\n",
        "\t",
        "#",
        ": ",
        "- ",
        "'",
        "\"",
        "[",
        "]",
        "{",
        "}",
        ",",
        "&a ",
        "*a",
        "!!str ",
        "!!int ",
        "! ",
        "|",
        ">-\n",
        "<<: *a\n",
        "? ",
        "%YAML 1.1\n",
        "...\n",
        "---\n",
        "~",
        "\\",
        "\r",
        "@",
        "`",
        "=",
        "\u{a0}",
        "\u{85}",
        "\u{2028}",
    ];
    let mut text = text.to_owned();
    for _ in 0..=random.below(2) {
        let at = text.floor_char_boundary(random.below(text.len() + 1));
        match random.below(4) {
            0 => text.insert_str(at, random.pick(&PIECES)),
            1 => text.truncate(at),
            2 => {
                let end = text.floor_char_boundary(at + random.below(6));
                text.replace_range(at..end.max(at), "");
            }
            // A line moves.
            _ => {
                let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
                text.insert_str(line, random.pick(&[" ", "  ", "\t"]));
            }
        }
    }
    text
}

fn json(value: &Json, random: &mut Random) -> String {
    let text = match random.below(3) {
        0 => value.to_string(),
        1 => format!("{value:#}"),
        _ => {
            let lines = format!("{value:#}");
            let tabs = |line: &str| {
                let content = line.trim_start_matches(' ');
                format!("{}{content}\n", "\t".repeat((line.len() - content.len()) / 2))
            };
            lines.lines().map(tabs).collect()
        }
    };
    // As writers do that know only ASCII.
    if random.one_in(2) {
        return text;
    }
    let mut ascii = String::new();
    for c in text.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            ascii.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    ascii
}

fn document(value: &Json, random: &mut Random) -> String {
    if random.one_in(10) {
        return json(value, random);
    }
    let width = random.pick(&[2, 2, 2, 4, 1, 3, 8]);
    let mut writer = Writer {
        comments: random.one_in(3),
        width,
        indented_lists: random.one_in(2),
        anchors: Vec::new(),
        names: 0,
        repeated: if random.one_in(3) { repeated(value) } else { Vec::new() },
        random,
        out: String::new(),
    };
    match value {
        Json::Object(fields) if !fields.is_empty() && !writer.random.one_in(12) => writer.fields(fields, 0, true),
        _ => {
            writer.flow(value, 0);
            writer.end_line();
        }
    }
    writer.out
}

/// Values that stand more than once in a document.
fn repeated(value: &Json) -> Vec<Json> {
    fn walk<'v>(value: &'v Json, seen: &mut Vec<&'v Json>, found: &mut Vec<Json>) {
        let large = match value {
            Json::Object(fields) => !fields.is_empty(),
            Json::Array(items) => !items.is_empty(),
            Json::String(text) => text.len() > 3,
            _ => false,
        };
        if large {
            if seen.contains(&value) {
                if !found.contains(value) {
                    found.push(value.clone());
                }
            } else if seen.len() < 200 {
                seen.push(value);
            }
        }
        match value {
            Json::Object(fields) => fields.values().for_each(|value| walk(value, seen, found)),
            Json::Array(items) => items.iter().for_each(|value| walk(value, seen, found)),
            _ => {}
        }
    }
    let (mut seen, mut found) = (Vec::new(), Vec::new());
    walk(value, &mut seen, &mut found);
    found
}

struct Writer<'r> {
    random: &'r mut Random,
    out: String,
    width: usize,
    indented_lists: bool,
    comments: bool,
    repeated: Vec<Json>,
    /// Those that were written with an anchor.
    anchors: Vec<(Json, String)>,
    /// How many anchors have a name.
    names: usize,
}

impl Writer<'_> {
    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    fn end_line(&mut self) {
        if self.comments && self.random.one_in(8) {
            let comment = self.random.pick(&[" # comment", "  # a: [b", "\t# tab", " #", " # 'é\"", "   "]);
            self.out.push_str(comment);
        }
        self.out.push('\n');
        if self.comments && self.random.one_in(6) {
            let many = if self.random.one_in(30) { 120 } else { 1 + self.random.below(3) };
            for _ in 0..many {
                let indent = self.random.below(9);
                self.indent(indent);
                let line = self.random.pick(&["# line\n", "\n", "#\n", "# - x: {\n", "#\ttab\n"]);
                self.out.push_str(line);
            }
        }
    }

    fn fields(&mut self, fields: &Map<String, Json>, indent: usize, first_line: bool) {
        let mut merged = Vec::new();
        let mut first = first_line;
        if fields.len() > 2 && self.random.one_in(25) {
            // The first two by a merge key.
            let two: Map<_, _> = fields.iter().take(2).map(|(key, value)| (key.clone(), value.clone())).collect();
            merged = two.keys().cloned().collect();
            if !std::mem::take(&mut first) || !first_line {
                self.indent(indent);
            }
            self.out.push_str("<<: ");
            self.flow(&Json::Object(two), indent);
            self.end_line();
            first = false;
        }
        for (key, value) in fields.iter().filter(|(key, _)| !merged.contains(key)) {
            if !std::mem::take(&mut first) {
                self.indent(indent);
            }
            if self.random.one_in(60) {
                self.out.push_str("? ");
                self.key(key);
                self.out.push('\n');
                self.indent(indent);
                self.out.push(':');
            } else {
                self.key(key);
                let before = if self.random.one_in(40) { " :" } else { ":" };
                self.out.push_str(before);
            }
            self.block(value, indent, true);
        }
    }

    /// A value after `key:` or `-`, and the end of its last line.
    fn block(&mut self, value: &Json, indent: usize, of_key: bool) {
        if let Some((_, name)) = self.anchors.iter().find(|(written, _)| written == value) {
            let alias = format!(" *{name}");
            self.out.push_str(&alias);
            return self.end_line();
        }
        let anchored = self.repeated.contains(value);
        if anchored {
            let name = format!("a{}", self.names);
            self.names += 1;
            let anchor = format!(" &{name}");
            self.out.push_str(&anchor);
            if !value.is_object() && !value.is_array() {
                self.anchors.push((value.clone(), name));
            } else if self.random.one_in(2) {
                // What is in it is written before it can be referred to.
                self.nested(value, indent, of_key, true);
                self.anchors.push((value.clone(), name));
                return;
            }
        }
        self.nested(value, indent, of_key, anchored);
    }

    fn nested(&mut self, value: &Json, indent: usize, of_key: bool, anchored: bool) {
        match value {
            Json::Object(fields) if !fields.is_empty() && !self.random.one_in(12) => {
                if of_key || anchored || self.random.one_in(10) {
                    self.end_line();
                    let indent = if of_key { indent + self.width } else { indent + 2 };
                    self.indent(indent);
                    self.fields(fields, indent, true);
                } else {
                    let spaces = if self.random.one_in(10) { 3 } else { 1 };
                    self.indent(spaces);
                    self.fields(fields, indent + 1 + spaces, true);
                }
            }
            Json::Array(items) if !items.is_empty() && !self.random.one_in(12) => {
                let deeper = if !of_key || self.indented_lists { indent + self.width.max(2) } else { indent };
                let compact = !of_key && !anchored && self.random.one_in(2);
                let (deeper, mut inline) = if compact { (indent + 2, true) } else { (deeper, false) };
                if compact {
                    self.out.push(' ');
                } else {
                    self.end_line();
                }
                for item in items {
                    if !std::mem::take(&mut inline) {
                        self.indent(deeper);
                    }
                    self.out.push('-');
                    self.block(item, deeper, false);
                }
            }
            Json::Object(_) | Json::Array(_) => {
                self.out.push(' ');
                self.flow(value, indent);
                self.end_line();
            }
            Json::String(text) if self.random.one_in(3) && scalar::can_be_block(text) => {
                let written = scalar::block(text, indent, self.width, self.random);
                self.out.push_str(&written);
            }
            _ => {
                let separator = if self.random.one_in(20) { "\t" } else { " " };
                self.out.push_str(separator);
                let written = scalar::inline(value, indent, false, self.random);
                self.out.push_str(&written);
                self.end_line();
            }
        }
    }

    fn flow(&mut self, value: &Json, indent: usize) {
        let space = self.random.pick(&["", " ", " ", "\n", "\t"]);
        let (open, close) = match value {
            Json::Object(_) => ('{', '}'),
            Json::Array(_) => ('[', ']'),
            _ => {
                let written = scalar::inline(value, indent, true, self.random);
                self.out.push_str(&written);
                return;
            }
        };
        self.out.push(open);
        let lead = if space == "\n" {
            format!("\n{}", " ".repeat(self.random.below(2 * indent + 4)))
        } else {
            space.to_owned()
        };
        let mut first = true;
        let fields = value.as_object().into_iter().flatten().map(|(key, value)| (Some(key), value));
        for (key, value) in fields.chain(value.as_array().into_iter().flatten().map(|value| (None, value))) {
            if !std::mem::take(&mut first) {
                self.out.push(',');
            }
            self.out.push_str(&lead);
            if let Some(key) = key {
                self.key(key);
                self.out.push_str(": ");
            }
            self.flow(value, indent);
        }
        if !first && self.random.one_in(10) {
            self.out.push(',');
        }
        self.out.push_str(&lead);
        self.out.push(close);
    }

    fn key(&mut self, key: &str) {
        let written = if self.random.one_in(10) || !scalar::is_plain(key) {
            scalar::quoted_key(key, self.random)
        } else {
            key.to_owned()
        };
        self.out.push_str(&written);
    }
}

/// An object that nobody would write, with texts that look like something else.
pub fn arbitrary(random: &mut Random) -> Json {
    let fields = (0..=random.below(6)).map(|_| (text(random), value(random, 0))).collect();
    Json::Object(fields)
}

fn value(random: &mut Random, depth: usize) -> Json {
    match random.below(if depth > 4 { 8 } else { 12 }) {
        0 => Json::Null,
        1 => random.one_in(2).into(),
        2 => i64::try_from(random.below(2000)).unwrap_or_default().into(),
        3 => random.pick(&[i64::MAX, i64::MIN, -1, 1_000_000, 511, 0o777, 8]).into(),
        4 => random.pick(&[0.1, 1.5e300, -2.5e-7, 1e21, 123_456.75, 9.3e18]).into(),
        5..=7 => text(random).into(),
        8 | 9 => (0..random.below(4)).map(|_| value(random, depth + 1)).collect::<Vec<_>>().into(),
        _ => Json::Object((0..random.below(4)).map(|_| (text(random), value(random, depth + 1))).collect()),
    }
}

fn text(random: &mut Random) -> String {
    const WORDS: [&str; 59] = [
        "a",
        "name",
        "app.kubernetes.io/name",
        "nginx:1.25",
        "true",
        "yes",
        "Off",
        "null",
        "~",
        "",
        " ",
        "0777",
        "1e3",
        "0x1F",
        "1_000",
        "12:30",
        "2001-01-01",
        ".inf",
        "<<",
        "=",
        "-",
        "- a",
        "a: b",
        ": ",
        "#",
        " # c",
        "a #b",
        "'",
        "\"",
        "\\",
        "it's",
        "\t",
        "\n",
        "\n\n",
        " lead",
        "trail ",
        "é",
        "😀",
        "\u{a0}",
        "\u{85}",
        "\u{feff}",
        "\u{7f}",
        "\u{1}",
        "\r\n",
        "---",
        "...",
        "%",
        "@",
        "`",
        "!tag",
        "&a",
        "*a",
        "[",
        "{",
        "}",
        ",",
        "? b",
        "|",
        ">",
    ];
    let mut text = String::new();
    for part in 0..=random.below(5) {
        if part > 0 && random.one_in(2) {
            text.push(' ');
        }
        text.push_str(random.pick(&WORDS));
    }
    text
}
