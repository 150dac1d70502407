//! XML in the format of `JUnit`, as CI systems read it.

use std::fmt::Write as _;

/// A suite of cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suite {
    /// The name.
    pub name: String,
    /// The file of the cases. If it is set, the report has the lines of the cases.
    pub file: Option<String>,
    /// The cases, in order.
    pub cases: Vec<Case>,
}

/// A case with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The name.
    pub name: String,
    /// The group of the case: servers show `a.b` as the class `b` in the package `a`.
    pub class: String,
    /// The line in the file of the suite.
    pub line: usize,
    /// The result.
    pub outcome: TestOutcome,
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TestOutcome {
    /// It passed.
    Passed,
    /// It passed with this output.
    Noted(String),
    /// It failed.
    Failed(Problem),
    /// It has no result.
    Error(Problem),
}

/// The reason why a case did not pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Its type, if it has one.
    pub kind: Option<&'static str>,
    /// One line.
    pub message: String,
    /// All lines.
    pub text: String,
}

/// The document of all suites, with a title if there is one.
pub fn write(title: Option<&str>, suites: &[Suite]) -> String {
    let cases: Vec<_> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let (name, counts) = (attribute("name", title), counts(&cases));
    let mut xml = format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites{name} {counts}>\n");
    for suite in suites {
        write_suite(&mut xml, suite);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn write_suite(xml: &mut String, suite: &Suite) {
    let (name, file) = (escape(&suite.name), attribute("file", suite.file.as_deref()));
    let counts = counts(&suite.cases.iter().collect::<Vec<_>>());
    let _ = writeln!(xml, "  <testsuite name=\"{name}\"{file} {counts}>");
    for case in &suite.cases {
        let (name, class) = (escape(&case.name), escape(&case.class));
        let line = suite.file.as_ref().map(|_| format!("{file} line=\"{}\"", case.line)).unwrap_or_default();
        let _ = write!(xml, "    <testcase name=\"{name}\" classname=\"{class}\"{line}");
        let (tag, problem) = match &case.outcome {
            TestOutcome::Passed => {
                xml.push_str("/>\n");
                continue;
            }
            TestOutcome::Noted(text) => {
                let _ = writeln!(xml, "><system-out>{}</system-out></testcase>", escape(text));
                continue;
            }
            TestOutcome::Failed(problem) => ("failure", problem),
            TestOutcome::Error(problem) => ("error", problem),
        };
        let (kind, message) = (attribute("type", problem.kind), escape(&problem.message));
        let text = escape(&problem.text);
        let _ = writeln!(xml, ">\n      <{tag}{kind} message=\"{message}\">{text}</{tag}>\n    </testcase>");
    }
    xml.push_str("  </testsuite>\n");
}

fn counts(cases: &[&Case]) -> String {
    let failures = cases.iter().filter(|case| matches!(case.outcome, TestOutcome::Failed(_))).count();
    let errors = cases.iter().filter(|case| matches!(case.outcome, TestOutcome::Error(_))).count();
    format!("tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\"", cases.len())
}

/// An attribute with a space before it, if it has a value.
fn attribute(name: &str, value: Option<&str>) -> String {
    value.map(|value| format!(" {name}=\"{}\"", escape(value))).unwrap_or_default()
}

/// Text in XML 1.0, also between quotes. Parsers normalize line breaks and tabs that are no references, and XML 1.0
/// allows no other control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => drop(write!(out, "&#{};", u32::from(c))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_read_back_except_characters_that_xml_forbids() {
        let text = "<a b=\"&\">\r\n\t\u{1}\u{fffe}ü]]>";
        let problem = Problem { kind: Some("error"), message: text.to_owned(), text: text.to_owned() };
        let case = |outcome| Case { name: text.to_owned(), class: text.to_owned(), line: 7, outcome };
        let cases = [
            TestOutcome::Passed,
            TestOutcome::Noted(text.to_owned()),
            TestOutcome::Failed(problem.clone()),
            TestOutcome::Error(Problem { kind: None, ..problem }),
        ];
        let suite = Suite { name: text.to_owned(), file: Some(text.to_owned()), cases: cases.map(case).into() };
        let xml = write(Some(text), &[suite, Suite::default()]);

        let document = roxmltree::Document::parse(&xml).unwrap();
        let expected = text.replace(['\u{1}', '\u{fffe}'], "\u{fffd}");
        let root = document.root_element();
        assert_eq!((root.tag_name().name(), root.attribute("name")), ("testsuites", Some(&*expected)));
        assert_eq!(root.children().filter(roxmltree::Node::is_element).count(), 2);
        for node in root.descendants().filter(roxmltree::Node::is_element) {
            let (known, count) = match node.tag_name().name() {
                "testsuites" => (&["name"][..], Some("4")),
                "testsuite" if node.attribute("name") == Some("") => (&[][..], Some("0")),
                "testsuite" => (&["name", "file"][..], Some("4")),
                "testcase" => (&["name", "classname", "file"][..], None),
                "failure" | "error" => (&["message"][..], None),
                _ => (&[][..], None),
            };
            assert!(known.iter().all(|name| node.attribute(*name) == Some(&*expected)), "{node:?}");
            assert_eq!(node.attribute("tests"), count, "{node:?}");
            if matches!(node.tag_name().name(), "failure" | "error" | "system-out") {
                assert_eq!(node.text(), Some(&*expected));
            }
        }
        let of = |name: &str| root.descendants().filter(|node| node.has_tag_name(name)).count();
        assert_eq!(["testcase", "failure", "error", "system-out"].map(of), [4, 1, 1, 1]);
        assert_eq!((root.attribute("failures"), root.attribute("errors")), (Some("1"), Some("1")));
    }
}
