//! Types, errors and help.

use super::*;
use crate::Minor;
use crate::{environment::Mode, schema::Admission};

fn environment(minor: Minor, mode: Mode) -> Environment {
    let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
    Environment::kubernetes(minor, mode).with_admission(&admission)
}

/// The type of an expression, or its first error.
fn judge(environment: &Environment, source: &str) -> String {
    match environment.check(source) {
        Ok(checked) => checked.output_type().to_string(),
        Err(issues) => format!("{} {}", issues[0].kind.name(), issues[0]),
    }
}

#[test]
fn types_are_inferred_like_cel_go() {
    let environment = environment(Minor::DEFAULT, Mode::Stored);
    for (source, expected) in [
        ("1 + 2 == 3", "bool"),
        ("object.spec.replicas", "dyn"),
        ("has(object.spec.x) ? object.spec.x : true", "dyn"),
        ("true ? [] : ['a']", "list(string)"),
        ("[1, 2].map(x, {string(x): x})", "list(map(string, int))"),
        ("{'a': [1]}.transformMap(k, v, v.size())", "map(string, int)"),
        ("object.?spec.?x.orValue([]).all(c, c.y == 1)", "bool"),
        ("[optional.of(1)][?0]", "optional_type(optional_type(int))"),
        ("[?optional.of(1), 2]", "list(int)"),
        ("request.userInfo.?extra.a[?0]", "optional_type(string)"),
        ("type([1])", "type(list(int))"),
        ("list", "type(list(dyn))"),
        ("type", "type(type)"),
        ("timestamp('2024-01-01T00:00:00Z') - timestamp('2024-01-01T00:00:00Z')", "duration"),
        ("authorizer.requestResource.check('get')", "kubernetes.authorization.Decision"),
        ("[3, 1].sortBy(x, -x)", "list(int)"),
        ("dyn(1) < 2 || 1 < 2.5", "bool"),
        ("[].exists(x, x.a)", "bool"),
    ] {
        assert_eq!(judge(&environment, source), expected, "{source}");
    }
}

#[test]
fn every_kind_of_type_error_is_found_at_its_position() {
    let environment = environment(Minor::DEFAULT, Mode::Stored);
    for (source, expected) in [
        ("nope", "undeclared-reference 1:1: undeclared reference to 'nope' (in container '')"),
        ("1.nope()", "undeclared-reference 1:7: undeclared reference to 'nope' (in container '')"),
        ("request.nope", "undefined-field 1:8: undefined field 'nope'"),
        ("1 + 'a'", "no-matching-overload 1:3: found no matching overload for '_+_' applied to '(int, string)'"),
        (
            "'a'.substring('b')",
            "no-matching-overload 1:14: found no matching overload for 'substring' applied to 'string.(string)'",
        ),
        ("1 && true", "type-mismatch 1:1: expected type 'bool' but found 'int'"),
        ("[1].all(x, x)", "type-mismatch 1:12: expected type 'bool' but found 'int'"),
        ("[1, 'a']", "type-mismatch 1:5: expected type 'int' but found 'string'"),
        ("[?1]", "type-mismatch 1:3: expected type 'optional_type(int)' but found 'int'"),
        ("request.name.x", "not-selectable 1:13: type 'string' does not support field selection"),
        ("ip('::1').x", "not-selectable 1:10: type 'net.IP' does not support field selection"),
        (
            "1.all(x, true)",
            "not-a-range 1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)",
        ),
        (
            "authorizer.x",
            "failed-resolution 1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
        ),
        ("object{}", "not-a-type 1:7: 'dyn' is not a type"),
        ("int{}", "not-a-message-type 1:4: 'int' is not a message type"),
        (
            "kubernetes.UserInfo{uid: 1}",
            "field-type-mismatch 1:24: expected type of field 'uid' is 'string' but provided type is 'int'",
        ),
        ("duration('1d')", "invalid-literal 1:10: invalid duration argument"),
        ("timestamp('x')", "invalid-literal 1:11: invalid timestamp argument"),
        ("'a'.matches('(')", "invalid-literal 1:13: invalid matches argument"),
        (
            "'%d'.format(['a'])",
            "invalid-literal 1:14: error during formatting: decimal clause can only be used on integers, was given string",
        ),
        (
            "google.protobuf.Int32Value{}",
            "unsupported 1:27: this crate does not know messages of protocol buffers, such as 'google.protobuf.Int32Value'",
        ),
    ] {
        assert_eq!(judge(&environment, source), expected, "{source}");
    }
}

#[test]
fn all_type_errors_are_reported_in_order_of_position() {
    let issues = environment(Minor::DEFAULT, Mode::Stored).check("b + a\n&& [1].all(x, x + c)").unwrap_err();
    let places: Vec<String> = issues.iter().map(|issue| issue.position.to_string()).collect();
    assert_eq!(places, ["1:1", "1:5", "2:17", "2:19"]);
}

#[test]
fn qualified_names_are_resolved_in_the_ast() {
    let checked = environment(Minor::DEFAULT, Mode::Stored).check("optional.of(authorizer.requestResource)").unwrap();
    let crate::ast::Expr::Call { function, target: None, args } = &checked.ast.root.expr else { panic!() };
    assert_eq!(&**function, "optional.of");
    assert!(matches!(&args[0].expr, crate::ast::Expr::Ident(name) if &**name == "authorizer.requestResource"));
    assert!(matches!(checked.reference(args[0].id), Some(Reference::Variable(_))));
    let Some(Reference::Overloads(overloads)) = checked.reference(checked.ast.root.id) else { panic!() };
    assert_eq!(overloads.iter().map(|overload| overload.id).collect::<Vec<_>>(), ["optional_of"]);
}

#[test]
fn schema_types_cannot_be_used_as_values() {
    for source in
        ["type(request) == kubernetes.AdmissionRequest", "[kubernetes.Namespace]", "duration", "[int].all(t, t == int)"]
    {
        let issues = environment(Minor::DEFAULT, Mode::Stored).compile(source, ResultType::Any).unwrap_err();
        assert!(issues[0].message.contains("reference to undefined type: "), "{source}: {}", issues[0]);
    }
    assert!(environment(Minor::DEFAULT, Mode::Stored).compile("type(1) == int", ResultType::Bool).is_ok());
}

#[test]
fn new_expressions_may_use_only_features_of_the_previous_minor() {
    for (source, since) in [("[2, 1].sort()", 34), ("semver('1.0.0')", 33), ("[1].all(i, v, true)", 32)] {
        for minor in Minor::ALL {
            let accepted = |mode| environment(minor, mode).check(source).is_ok();
            assert_eq!(accepted(Mode::New), minor.number() > since, "{source} new in {minor}");
            assert_eq!(accepted(Mode::Stored), minor.number() >= since, "{source} stored in {minor}");
        }
    }
}

#[test]
fn macro_variables_shadow_qualified_names_since_1_37() {
    let source = "[{'requestResource': 1}].all(authorizer, authorizer.requestResource == 1)";
    assert!(judge(&environment(Minor::DEFAULT, Mode::Stored), source).starts_with("no-matching-overload"));
    assert_eq!(judge(&environment(Minor::V1_37, Mode::Stored), source), "bool");
}

#[test]
fn type_error_help_suggests_a_fix() {
    let environment = environment(Minor::V1_33, Mode::New).compose("containers", Some(&Type::Dyn));
    for (source, expected) in [
        ("obejct.spec", "did you mean 'object'?"),
        ("'a'.startWith('b')", "did you mean 'startsWith'?"),
        ("namespaceObject.metadata.lables", "did you mean 'labels'?"),
        ("variables.container", "did you mean 'containers'?"),
        ("request.labels", "it exists on kubernetes.NamespaceMetadata"),
        ("[1].sort()", "'sort' is available from Kubernetes 1.34 on"),
        (
            "semver('1.0.0')",
            "'semver' is available from Kubernetes 1.33 on, but new expressions may use it only from 1.34 on",
        ),
        (
            "[1].all(true)",
            "write `list.all(element, condition)`: a name, then a condition; the same for exists, exists_one and filter",
        ),
        ("'a' + 1", "convert the other value with `string(...)`"),
        ("[1] + ['a']", "wrap one of the lists in `dyn(...)` if their elements are alike"),
        ("true && object.?b", "read the optional with `.orValue(false)`"),
        ("contains('a', 'b')", "call it as `x.contains()`"),
        ("'a'.split(1)", "use string.split(string), string.split(string, int)"),
        ("request.userInfo.groups.x", "read an element of the list: `[0]`, or `.exists(e, e.field == ...)`"),
    ] {
        let help = environment.check(source).unwrap_err()[0].help.clone();
        assert_eq!(help.as_deref(), Some(expected), "{source}");
    }
}

#[test]
fn result_type_must_match_exactly() {
    for (result, of, expected) in [
        (ResultType::Bool, Type::Dyn, Some("must evaluate to bool but got dyn")),
        (ResultType::Bool, Type::Bool, None),
        (ResultType::String, Type::Null, Some("must evaluate to string but got null_type")),
        (ResultType::StringOrNull, Type::Null, None),
        (
            ResultType::StringOrNull,
            Type::Timestamp,
            Some("must evaluate to one of [string null_type] but got google.protobuf.Timestamp"),
        ),
        (ResultType::Any, Type::Dyn, None),
    ] {
        assert_eq!(result.refuses(&of).map(|issue| issue.message).as_deref(), expected);
    }
}

#[test]
fn composed_variables_keep_scalars_lists_and_maps() {
    let environment = environment(Minor::DEFAULT, Mode::Stored);
    let of = |source: &str| environment.check(source).unwrap().output_type().clone();
    let environment = environment
        .clone()
        .compose("list", Some(&of("[1]")))
        .compose("struct", Some(&of("request.userInfo")))
        .compose("optional", Some(&of("optional.of(1)")))
        .compose("broken", None);
    for (source, expected) in [
        ("variables.list", "list(int)"),
        ("variables.struct", "dyn"),
        ("variables.optional", "dyn"),
        ("variables.broken", "dyn"),
        ("variables.later", "undefined-field 1:10: undefined field 'later'"),
    ] {
        assert_eq!(judge(&environment, source), expected, "{source}");
    }
}

#[test]
fn type_checker_handles_deep_and_large_expressions() {
    let environment = environment(Minor::DEFAULT, Mode::Stored);
    for source in [
        format!("{}1{}", "[".repeat(249), "]".repeat(249)),
        format!("{}1{}", "[1].map(a, ".repeat(124), ")".repeat(124)),
        format!("{}1{}", "object.?a.optMap(a, ".repeat(120), ")".repeat(120)),
        format!("object{}", ".a".repeat(250)),
        vec!["1"; 251].join(" + "),
        vec!["true"; 10_000].join(" && "),
        format!("[{}]", vec!["1"; 30_000].join(",")),
    ] {
        assert!(environment.check(&source).is_ok(), "{}", &source[..20]);
    }
    // A type that doubles with each call.
    let calls: Vec<String> = (0..30).map(|i| format!(".map(x{i}, {{x{i}: x{i}}})")).collect();
    let doubling = format!("[1]{}", calls.concat());
    assert_eq!(environment.check(&doubling).unwrap_err()[0].kind, IssueKind::Unsupported);
}
