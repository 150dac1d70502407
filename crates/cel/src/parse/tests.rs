//! Trees, places, errors and limits, as cel-go has them.

use super::*;

use crate::ast::{Expr, Node};

const SYNTAX: Syntax = Syntax { two_variables: true, sort_by: true, escaped_names: false, before_1_33: false };

/// A tree as text, each node with its place.
fn dump(ast: &Ast, node: &Node) -> String {
    let all = |nodes: &[Node]| nodes.iter().map(|node| dump(ast, node)).collect::<Vec<_>>().join(" ");
    let inner = match &node.expr {
        Expr::Literal(value) => format!("{value:?}"),
        Expr::Ident(name) => name.to_string(),
        Expr::Select { operand, field, test } => format!("sel {} {field} {test}", dump(ast, operand)),
        Expr::Call { function, target, args } => match target {
            Some(target) => format!("mcall {function} {} {}", dump(ast, target), all(args)),
            None => format!("call {function} {}", all(args)),
        },
        Expr::List { elements, optional } => format!("list {optional:?} {}", all(elements)),
        Expr::Map(entries) => {
            let entry = |e: &crate::ast::Entry| {
                format!("{} {} {} {}", ast.position(e.id), e.optional, dump(ast, &e.key), dump(ast, &e.value))
            };
            format!("map {}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        Expr::Struct { name, fields } => {
            let field = |f: &crate::ast::FieldInit| {
                format!("{} {} {} {}", ast.position(f.id), f.optional, f.field, dump(ast, &f.value))
            };
            format!("struct {name} {}", fields.iter().map(field).collect::<Vec<_>>().join(" "))
        }
        Expr::Comprehension(of) => format!(
            "fold {} {} {} {} {}",
            of.variable,
            of.second.as_deref().unwrap_or(""),
            of.accumulator,
            dump(ast, &of.range),
            [&of.init, &of.condition, &of.step, &of.result].map(|node| dump(ast, node)).join(" ")
        ),
    };
    format!("({}@{})", inner, ast.position(node.id))
}

#[test]
fn ast_and_positions_match_cel_go() {
    // As cel-go 0.26.0 parses them.
    for (source, expected) in [
        ("-9 - -x.y", "(call _-_ (Int(-9)@1:1) (call -_ (sel (x@1:7) y false@1:8)@1:6)@1:4)"),
        ("--5", "(Int(5)@1:3)"),
        ("a.b.c{d: 1}", "(struct a.b.c 1:8 false d (Int(1)@1:10)@1:6)"),
        (".f(a)[?0].?b", "(call _?._ (call _[?_] (call .f (a@1:4)@1:3) (Int(0)@1:8)@1:6) (String(\"b\")@1:12)@1:10)"),
        ("a.f(1 in [?b,])", "(mcall f (a@1:1) (call @in (Int(1)@1:5) (list [0] (b@1:12)@1:10)@1:7)@1:4)"),
        (
            "a && b && c\n&& d ? has(a.b) : {?k: v}",
            "(call _?_:_ (call _&&_ (call _&&_ (a@1:1) (b@1:6)@1:3) (call _&&_ (c@1:11) (d@2:4)@2:1)@1:8) \
             (sel (a@2:12) b true@2:11) (map 2:22 true (k@2:21) (v@2:24)@2:19)@2:6)",
        ),
        (
            "é.map(x, p, x)",
            "", // Not a name.
        ),
        (
            "a.filter(x, x)",
            "(fold x  @result (a@1:1) (list [] @1:9) (Bool(true)@1:9) (call _?_:_ (x@1:13) (call _+_ (@result@1:9) \
             (list [] (x@1:10)@1:9)@1:9) (@result@1:9)@1:9) (@result@1:9)@1:9)",
        ),
        (
            "a.exists_one(i, v, v)",
            "(fold i v @result (a@1:1) (Int(0)@1:13) (Bool(true)@1:13) (call _?_:_ (v@1:20) (call _+_ (@result@1:13) \
             (Int(1)@1:13)@1:13) (@result@1:13)@1:13) (call _==_ (@result@1:13) (Int(1)@1:13)@1:13)@1:13)",
        ),
        (
            "a.transformMap(k, v, p, v)",
            "(fold k v @result (a@1:1) (map @1:15) (Bool(true)@1:15) (call _?_:_ (p@1:22) (call cel.@mapInsert \
             (@result@1:15) (k@1:15) (v@1:25)@1:15) (@result@1:15)@1:15) (@result@1:15)@1:15)",
        ),
        (
            "a.?b.optMap(x, x)",
            "(call _?_:_ (mcall hasValue (call _?._ (a@1:1) (String(\"b\")@1:4)@1:2) @1:12) (call optional.of (fold \
             #unused  x (list [] @1:12) (mcall value (call _?._ (a@1:1) (String(\"b\")@1:4)@1:2) @1:12) \
             (Bool(false)@1:12) (x@1:12) (x@1:16)@1:12)@1:12) (call optional.none @1:12)@1:12)",
        ),
    ] {
        let found = parse(source, SYNTAX).map(|ast| dump(&ast, &ast.root)).unwrap_or_default();
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn unavailable_macros_parse_as_calls() {
    let without = Syntax { two_variables: false, sort_by: false, escaped_names: false, before_1_33: false };
    for (source, syntax) in [
        ("a.all(i, v, v)", without),
        ("a.sortBy(e, e)", without),
        ("a.existsOne(x, x)", SYNTAX),
        ("cel.bind(x, 1, x)", SYNTAX),
    ] {
        let ast = parse(source, syntax).unwrap();
        assert!(dump(&ast, &ast.root).starts_with("(mcall"), "{source}");
    }
}

#[test]
fn syntax_errors_match_cel_go() {
    for (source, expected) in [
        ("", "1:0: Syntax error: mismatched input '<EOF>'"),
        ("1 +", "1:4: Syntax error: mismatched input '<EOF>'"),
        ("a b", "1:3: Syntax error: extraneous input 'b' expecting <EOF>"),
        ("a b c", "1:3: Syntax error: mismatched input 'b' expecting <EOF>"),
        ("1 == = 2", "1:6: Syntax error: token recognition error at: '= '"),
        ("object.spec.", "1:13: Syntax error: no viable alternative at input '.'"),
        ("a.true", "1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"),
        ("'a\\q'", "1:1: Syntax error: token recognition error at: ''a\\q'"),
        ("[1,2", "1:5: Syntax error: mismatched input '<EOF>' expecting {']', ','}"),
        ("*a", "1:1: Syntax error: extraneous input '*' expecting"),
        ("a &&\n  )", "2:3: Syntax error: mismatched input ')'"),
        ("namespace.x(if)", "1:1: reserved identifier: namespace"),
        ("a.`b`", "1:3: unsupported syntax: '`'"),
        ("9223372036854775808", "1:1: invalid int literal"),
        ("[1].all(1, true)", "1:9: argument must be a simple name"),
        ("[1].map(a.b, true)", "1:10: argument is not an identifier"),
        ("[1].all(a, a, true)", "1:12: duplicate variable name: a"),
        ("[1].map(__result__, true)", "1:9: iteration variable overwrites accumulator variable"),
        ("has(a[0])", "1:6: invalid argument to has() macro"),
        ("a.optMap(1, 2)", "1:10: optMap() variable name must be a simple identifier"),
    ] {
        let issues = parse(source, SYNTAX).unwrap_err();
        assert!(issues[0].to_string().starts_with(expected), "{source}: {}", issues[0]);
    }
}

#[test]
fn syntax_error_is_shown_with_its_source_line() {
    let source = "a\n  + 'é\t' b";
    let issue = &parse(source, SYNTAX).unwrap_err()[0];
    let expected =
        "ERROR: <input>:2:10: Syntax error: extraneous input 'b' expecting <EOF>\n |   + 'é ' b\n | .....．...^";
    assert_eq!(issue.display(source).to_string(), expected);
}

#[test]
fn parser_limits_match_cel_go() {
    let nested = |n: usize, open: &str, close: &str| format!("{}1{}", open.repeat(n), close.repeat(n));
    for (fits, breaks, message) in [
        (nested(249, "(", ")"), nested(250, "(", ")"), "expression recursion limit exceeded: 250"),
        (nested(124, "1 + (", ")"), nested(125, "1 + (", ")"), "expression recursion limit exceeded: 250"),
        (nested(249, "a ? b : ", ""), nested(250, "a ? b : ", ""), "expression recursion limit exceeded: 250"),
        (nested(249, "f(", ")"), nested(250, "f(", ")"), "expression recursion limit exceeded: 250"),
        (vec!["1"; 251].join("+"), vec!["1"; 252].join("+"), "max recursion depth exceeded"),
        (format!("a{}", ".a".repeat(250)), format!("a{}", ".a".repeat(251)), "max recursion depth exceeded"),
        (
            "a".repeat(100_000),
            " ".repeat(100_001),
            "expression code point size exceeds limit: size: 100001, limit 100000",
        ),
    ] {
        assert!(parse(&fits, SYNTAX).is_ok(), "{message}");
        let issues = parse(&breaks, SYNTAX).unwrap_err();
        assert_eq!((issues[0].to_string(), issues[0].kind), (format!("-1:0: {message}"), IssueKind::Limit));
    }
    // Long, but not deep.
    assert!(parse(&vec!["a"; 20_000].join(" && "), SYNTAX).is_ok());
    assert!(parse(&format!("{}a", "!".repeat(50_000)), SYNTAX).is_ok());
}

#[test]
fn oversized_or_deep_input_is_rejected() {
    for source in ["(", "[", "{", "a.b(", "1+", "a.", "!", "-", "a?", "a?b:", "'", "a{b:", "1+(", "a.all(b,", "//\n("] {
        assert!(parse(&source.repeat(100_000 / source.len()), SYNTAX).is_err(), "{source}");
    }
    let doubling = format!("a{}", ".optMap(x, x)".repeat(40));
    assert_eq!(parse(&doubling, SYNTAX).unwrap_err()[0].kind, IssueKind::Unsupported);
}
