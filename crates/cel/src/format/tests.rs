//! The printed expression has the same tree and the expected layout.

use super::*;
use crate::parse::parse;

const SYNTAX: Syntax = Syntax { two_variables: true, sort_by: true, escaped_names: true, before_1_33: false };

/// Formats a source, and checks that it stays what it was at any width.
fn formatted(source: &str) -> String {
    let tree =
        |source: &str| parse_unexpanded(source, SYNTAX).unwrap_or_else(|issues| panic!("{source}: {issues:?}")).root;
    let (root, expanded) = (tree(source), parse(source, SYNTAX).map(|ast| ast.root));
    for width in [0, 10, 20, 40, 60, WIDTH, 120, usize::MAX] {
        let text = print(&root, width, &[]).unwrap_or_else(|| panic!("{source}")).text;
        assert_eq!(tree(&text), root, "{source}\n{text}");
        assert_eq!(parse(&text, SYNTAX).map(|ast| ast.root).ok(), expanded.clone().ok(), "{source}\n{text}");
        assert!(text.lines().all(|line| !line.is_empty() && line.trim_end() == line), "{source}\n{text}");
        assert!(width < usize::MAX || !text.contains('\n'), "{source}\n{text}");
        let again = print(&tree(&text), width, &[]).map(|printed| printed.text);
        assert_eq!(again.as_deref(), Some(&*text), "{source}");
    }
    format(source, SYNTAX).unwrap_or_default()
}

#[test]
fn short_expression_stays_on_one_line_without_extra_parentheses() {
    for (source, expected) in [
        ("( ((a)) )", "a"),
        ("a&&b||c", "(a && b) || c"),
        ("a && (b || c)", "a && (b || c)"),
        ("(a && b) && c", "a && b && c"),
        ("a && (b && c)", "a && (b && c)"),
        ("a && b && c && d", "a && b && c && d"),
        ("(a ? b : c) ? d : (e ? f : g)", "(a ? b : c) ? d : e ? f : g"),
        ("a ? (b ? c : d) : e", "a ? (b ? c : d) : e"),
        ("a - (b - c) + d * (e + f) * g", "a - (b - c) + d * (e + f) * g"),
        ("a * (b / c)", "a * (b / c)"),
        ("(a == b) == (c < d)", "a == b == (c < d)"),
        ("!(!a)", "!(!a)"),
        ("!!a", "a"),
        ("-(-x)", "-(-x)"),
        ("-(1) - -1 - -x", "-(1) - -1 - -x"),
        ("!(a in [])", "!(a in [])"),
        ("(a + b).size()", "(a + b).size()"),
        ("(-1).f() + 2.0.g() + 1e300 + 1e-7 + 5u", "-1.f() + 2.0.g() + 1e300 + 1e-7 + 5u"),
        (".a.?b[?0][1].c(d)", ".a.?b[?0][1].c(d)"),
        ("[1, ?a, null,]", "[1, ?a, null]"),
        ("{'a': 1, ?b: c ? d : e, (f ? g : h): i}", "{'a': 1, ?b: c ? d : e, (f ? g : h): i}"),
        ("a.B{c: 1, ?d: e}", "a.B{c: 1, ?d: e}"),
        ("has(a.b) && a.all(x, y, x > y)", "has(a.b) && a.all(x, y, x > y)"),
        ("a.`b-c`", "a.`b-c`"),
        (
            r#""it's" + 'a"b' + '\'"' + r'\d' + '''é
'''"#,
            r#""it's" + 'a"b' + '\'"' + '\\d' + 'é\n'"#,
        ),
        (r"'\u2028\U0001F600\x7f\t' + b'\xff\'a'", r"'\u2028\U0001f600\u007f\t' + b'\xff\'a'"),
        ("a // why\n + b", "a + b"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        assert_eq!(formatted(source), expected, "{source}");
    }
}

#[test]
fn long_expression_breaks_at_its_outermost_operator() {
    for (source, expected) in [
        (
            "request.operation == 'UPDATE' && object.spec == oldObject.spec || request.namespace == 'probes' && !object.a",
            "\
(request.operation == 'UPDATE' && object.spec == oldObject.spec)
|| (request.namespace == 'probes' && !object.a)",
        ),
        (
            "variables.containers.map(c, !(c.?securityContext.?procMount.orValue('Default') in ['Default', 'None']), \
             '[procMount] container \"' + c.name + '\": securityContext.procMount is ' + c.?securityContext.?procMount.orValue(''))",
            "\
variables.containers.map(c,
  !(c.?securityContext.?procMount.orValue('Default') in ['Default', 'None']),
  '[procMount] container \"' + c.name + '\": securityContext.procMount is '
  + c.?securityContext.?procMount.orValue('')
)",
        ),
        (
            "variables.exempt ? [] : !variables.withinBounds ? variables.overBounds : variables.privileged + \
             variables.hostNamespaces + variables.capabilities + variables.runAsNonRoot + variables.seccompProfile",
            "\
variables.exempt
  ? []
: !variables.withinBounds
  ? variables.overBounds
: variables.privileged + variables.hostNamespaces + variables.capabilities
  + variables.runAsNonRoot + variables.seccompProfile",
        ),
        (
            "(variables.spec.?hostNetwork.orValue(false) ? ['[hostNamespaces] pod: spec.hostNetwork is true'] : []) + [object.a]",
            "\
(
  variables.spec.?hostNetwork.orValue(false)
    ? ['[hostNamespaces] pod: spec.hostNetwork is true']
  : []
) + [object.a]",
        ),
        (
            "object.name in ['kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range', 'net.ipv4.tcp_syncookies', 'kernel.a']",
            "\
object.name in [
  'kernel.shm_rmid_forced', 'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies', 'kernel.a'
]",
        ),
        (
            "object.spec.containers.transformList(i, c, !c.?securityContext.?privileged.hasValue(), \
             JSONPatch{op: 'add', path: '/spec/containers/' + string(i) + '/securityContext/privileged', value: false})",
            "\
object.spec.containers.transformList(i, c,
  !c.?securityContext.?privileged.hasValue(),
  JSONPatch{
    op: 'add',
    path: '/spec/containers/' + string(i) + '/securityContext/privileged',
    value: false
  }
)",
        ),
    ] {
        assert_eq!(formatted(source), expected, "{source}");
    }
}

#[test]
fn verbatim_text_is_printed_on_its_own_lines() {
    let root = parse_unexpanded("ns == 'x' ? [] : cs.map(c, !A, 'own: ' + B)", SYNTAX).expect("it is one").root;
    let text = "a\n  && b // why \n";
    let verbatim = [Verbatim { name: "A", text }, Verbatim { name: "B", text: "'b'" }, Verbatim { name: "C", text }];
    let printed = print(&root, WIDTH, &verbatim).expect("no macro is expanded");
    let expected = "\
ns == 'x'
  ? []
: cs.map(c,
    !(
a
  && b // why
    ),
    'own: '
    + (
'b'
    )
  )";
    assert_eq!((&*printed.text, &*printed.lines), (expected, &[5, 10, 0][..]));
}

#[test]
fn syntax_errors_and_expanded_macros_are_not_formatted() {
    assert!(format("a &&", SYNTAX).is_err());
    let expanded = parse("a.all(x, x)", SYNTAX).expect("it is one").root;
    assert_eq!(print(&expanded, WIDTH, &[]), None);
}

/// All valid expressions in the other tests.
#[test]
fn formatting_keeps_the_expressions_of_other_tests_equal() {
    let mut count = 0;
    for line in include_str!("../parse/tests.rs").lines().chain(include_str!("../check/tests.rs").lines()) {
        for source in line.split('"').filter(|source| parse_unexpanded(source, SYNTAX).is_ok()) {
            formatted(source);
            count += 1;
        }
    }
    assert!(count > 100, "{count}");
}
