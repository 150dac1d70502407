//! Tests of the fields that expressions read.

use super::*;

const ALL: &str = "annotations finalizers generateName labels ownerReferences selfLink";

/// The parts that an expression reads, as words.
fn read(expression: &str, shape: Shape) -> String {
    let words = Reads::of([expression], shape).parts.into_iter().map(|part| match part {
        Part::Metadata(field) => field.to_string(),
        Part::Key(map, key) => format!("{map}[{key}]"),
        Part::Field(field) => format!("/{field}"),
        Part::Spec(field) => format!("/spec/{field}"),
        Part::Fields => "/*".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn what_an_expression_reads_beside_the_spec_is_found() {
    for (expression, expected) in [
        ("variables.spec.?hostNetwork.orValue(false) && container.image != volume.name", ""),
        ("params.spec.strings['a'] == namespaceObject.metadata.labels['a']", ""),
        ("request.namespace + request.kind.kind + object.kind + object.metadata.name == ''", ""),
        ("object.spec.hostNetwork || variables.podSecurityContext.runAsNonRoot", ""),
        ("variables.containers.all(object, object.metadata.labels.a == '')", ""),
        ("variables.containers.all(i, object, object.metadata.labels.a == i)", ""),
        ("variables.containers.all(c, c.?image.optMap(request, request.operation == '').orValue(true))", ""),
        ("variables.containers.all(object, .object.metadata.labels.a == '')", "labels[a]"),
        (
            "variables.annotations['a'] == '' && variables.annotations[?'b'] == optional.none()",
            "annotations[a] annotations[b]",
        ),
        ("'a' in variables.annotations || object.metadata.?labels.hasValue()", "labels annotations[a]"),
        ("object.metadata.labels['a'] == '' && object.metadata.labels.size() == 1", "labels"),
        ("has(object.metadata.labels.a)", "labels[a]"),
        (
            "object.metadata.?labels.orValue({'x': object.metadata.generateName}).?a == optional.none()",
            "generateName labels[a]",
        ),
        ("object.metadata.labels[variables.spec.hostname] == ''", "labels"),
        ("object.metadata.labels[object.metadata.annotations['a']] == ''", "labels annotations[a]"),
        ("object.metadata.labels.__a__ == ''", "labels"),
        ("object.metadata.?labels[?'a'].optMap(v, v == '').orValue(true)", "labels[a]"),
        ("object.metadata.labels.exists(k, k == 'a')", "labels"),
        ("object.metadata.ownerReferences[0].kind == 'a'", "ownerReferences"),
        ("'x' in object.metadata.finalizers", "finalizers"),
        ("object.metadata.deletionTimestamp == object.metadata.creationTimestamp", ""),
        ("object.metadata == object.metadata", ALL),
        ("object.metadata.managedFields.size() == 1", ALL),
        ("[object].size() == 1", ALL),
        ("dyn(object)[variables.spec.hostname] == 1", ALL),
        ("request.operation == 'CREATE'", ALL),
        ("request.userInfo.username == 'a'", ALL),
        ("oldObject == null", ALL),
        ("variables.exempt", ALL),
        ("{'a': oldObject.spec}.a == 1", ALL),
        ("not ( an expression", ALL),
    ] {
        assert_eq!(read(expression, Shape::Pods), expected, "{expression}");
    }
}

#[test]
fn of_a_workload_fields_beside_the_template_are_read() {
    let everything = format!("{ALL} /spec");
    for (expression, expected) in [
        ("variables.annotations['a'] == '' && variables.template.spec.hostNetwork", ""),
        ("object.spec.template.metadata.labels['a'] == '' || object.template.spec.hostNetwork", ""),
        (
            "dyn(object).spec.replicas == 1 && dyn(object).?spec.?strategy.?type.hasValue()",
            "/spec/replicas /spec/strategy",
        ),
        ("dyn(object)['spec']['jobTemplate'].metadata.labels.a == ''", "/spec/jobTemplate"),
        ("dyn(object).spec.size() == 1 && dyn(object).spec.replicas == 1", "/spec"),
        ("dyn(object).data.a == ''", "/data"),
        ("object.metadata.?labels[?'a'].orValue('') == ''", "labels[a]"),
        ("oldObject == null", everything.as_str()),
    ] {
        assert_eq!(read(expression, Shape::Workloads), expected, "{expression}");
    }
}

#[test]
fn comparisons_are_written_as_people_would() {
    let terms = |expression: &str| Reads::of([expression], Shape::Workloads).unchanged().join("; ");
    assert_eq!(
        terms("object.metadata.labels[\"it's\"] == '' && dyn(object).spec.replicas == 1"),
        "object.metadata.?labels[?'it\\'s'] == oldObject.metadata.?labels[?'it\\'s']; \
         dyn(object).?spec.?replicas == dyn(oldObject).?spec.?replicas"
    );
    assert_eq!(terms("dyn(object)['in'] == 1"), "dyn(object)[?'in'] == dyn(oldObject)[?'in']");
}

#[test]
fn of_an_object_the_spec_and_all_other_fields_are_found() {
    for (expression, expected) in [
        ("true", "/spec"),
        ("object.kind == 'A' && object.metadata.name == request.namespace", "/spec"),
        ("object.spec.a == 1 || object.?status.?b.hasValue()", "/spec /status"),
        ("object.data['a'] == params.spec.strings['a']", "/data /spec"),
        ("variables.object.?data.orValue({}).size() == 0", "/data /spec"),
        ("object.metadata.?labels[?'a'].hasValue() && has(object.metadata.annotations)", "annotations labels[a] /spec"),
        ("object.rules.all(object, object.verbs == [])", "/rules /spec"),
        ("'a' in variables.annotations", &format!("{ALL} /*")),
        ("object[params.spec.strings['a']] == 1", &format!("{ALL} /*")),
        ("oldObject.spec.a == 1 && object.data == {}", &format!("{ALL} /*")),
        ("request.userInfo.username == 'a'", &format!("{ALL} /*")),
    ] {
        assert_eq!(read(expression, Shape::Objects), expected, "{expression}");
    }
}
