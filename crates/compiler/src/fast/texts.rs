//! Tests of concatenated texts, rewritten as tests of the parts, so that nothing need be concatenated.

use palisade_cel::ast::{Expr, Literal, Node};

use super::formula::Test;
use crate::tree::{call, literal, node};

/// A test that holds only where the atom has this value; `None` if the atom stays as it is.
pub(super) fn rewritten(atom: &Node, wanted: bool) -> Option<Test> {
    let Expr::Call { function, target: Some(target), args } = &atom.expr else { return None };
    let [Node { expr: Expr::Literal(Literal::String(asked)), .. }] = args.as_slice() else { return None };
    match (&**function, wanted) {
        ("startsWith", _) => {
            let (text, after) = with_end(target)?;
            let mut after = after.chars();
            let (Some(last), None) = (after.next(), after.next()) else { return None };
            // With one character appended, the text begins so, or equals the prefix without that character.
            let mut tests = vec![Test::Is(of_text("startsWith", text.clone(), asked), true)];
            if let Some(whole) = asked.strip_suffix(last) {
                tests.push(Test::Is(call("_==_", vec![text.clone(), literal::string(whole)]), true));
            }
            let either = Test::Any(tests);
            Some(if wanted { either } else { either.opposite() })
        }
        // If the whole contains the text, then the part between the ends contains it, less what the ends can supply.
        ("contains", false) => {
            let (inner, after) = with_end(target).unwrap_or((target, ""));
            let (text, before) = with_start(inner).unwrap_or((inner, ""));
            if before.is_empty() && after.is_empty() {
                return None;
            }
            let characters: Vec<_> = asked.chars().collect();
            let end = characters.len().checked_sub(after.chars().count())?;
            let core: String = characters.get(before.chars().count()..end)?.iter().collect();
            (!core.is_empty()).then(|| Test::Is(of_text("contains", text.clone(), &core), false))
        }
        _ => None,
    }
}

fn of_text(function: &str, text: Node, asked: &str) -> Node {
    node(Expr::Call { function: function.into(), target: Some(Box::new(text)), args: vec![literal::string(asked)] })
}

/// The parts of `text + 'end'`.
fn with_end(of: &Node) -> Option<(&Node, &str)> {
    match sum(of)? {
        [text, Node { expr: Expr::Literal(Literal::String(end)), .. }] => Some((text, end)),
        _ => None,
    }
}

/// The parts of `'start' + text`.
fn with_start(of: &Node) -> Option<(&Node, &str)> {
    match sum(of)? {
        [Node { expr: Expr::Literal(Literal::String(start)), .. }, text] => Some((text, start)),
        _ => None,
    }
}

fn sum(of: &Node) -> Option<&[Node; 2]> {
    match &of.expr {
        Expr::Call { function, target: None, args } if &**function == "_+_" => args.as_slice().try_into().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use palisade_cel::{
        Admission, Environment, Minor, Mode, ResultType,
        eval::{Activation, PER_CALL_LIMIT},
        format::print,
        parse::parse_unexpanded,
        value::Value,
    };
    use serde_json::json;

    use super::*;
    use crate::{fast::simplify::simplified, style::SYNTAX};

    /// The value of an expression over a text.
    fn is(expression: &str, text: &str) -> bool {
        let environment = Environment::kubernetes(Minor::OLDEST, Mode::New).with_admission(&Admission::default());
        let program = environment.compile(expression, ResultType::Bool).unwrap();
        let object = json!({"path": text});
        let activation = Activation::new().bind("object", Value::from_json(&object));
        program.evaluate(&activation, PER_CALL_LIMIT).result.unwrap().as_bool().unwrap()
    }

    #[test]
    fn tests_of_concatenations_are_rewritten_to_their_parts() {
        let texts = [
            "", "/", "/a", "/a/", "/a/b", "/ab", "/a/../b", "..", "../", "/..", "a..b", "/a/..", "/a/.../b", "/a/b/",
            "/b",
        ];
        for (sum, expected) in [
            ("(object.path + '/').startsWith('/a/')", "object.path.startsWith('/a/') || object.path == '/a'"),
            ("(object.path + '/').startsWith('/a')", "object.path.startsWith('/a')"),
            ("('/' + object.path + '/').contains('/../')", "object.path.contains('..')"),
            ("(object.path + '/').contains('b/')", "object.path.contains('b')"),
        ] {
            let root = parse_unexpanded(sum, SYNTAX).unwrap().root;
            for wanted in [true, false] {
                let Some(test) = rewritten(&root, wanted) else {
                    assert!(wanted && sum.contains("contains"), "{sum}");
                    continue;
                };
                let found = print(&simplified(test.clone()).node(), usize::MAX, &[]).unwrap().text;
                if wanted || sum.contains("contains") {
                    assert_eq!(found.trim_start_matches('!'), expected);
                }
                for text in texts {
                    let (before, after) = (is(sum, text) == wanted, is(&found, text));
                    assert!(before || !after, "{sum} {wanted} of {text:?}");
                    assert!(!before || after || sum.contains("contains"), "{sum} {wanted} of {text:?}");
                }
            }
        }
    }

    #[test]
    fn unsupported_concatenation_is_not_rewritten() {
        for sum in [
            "(object.path + object.path).startsWith('/')",
            "(object.path + 'ab').startsWith('/')",
            "object.path.contains('a')",
        ] {
            let root = parse_unexpanded(sum, SYNTAX).unwrap().root;
            assert_eq!(rewritten(&root, true), None, "{sum}");
        }
        let root = parse_unexpanded("('//' + object.path).contains('/')", SYNTAX).unwrap().root;
        assert_eq!(rewritten(&root, false), None);
    }
}
