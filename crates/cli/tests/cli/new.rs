//! `palisade new`, as its users meet it.

use std::fs;

use palisade_cel::Minor;

use super::{Run, run_in};

#[test]
fn new_policy_is_lint_clean_and_its_suite_complete() {
    let directory = tempfile::tempdir().unwrap();
    // Kinds in several groups, with and without a namespace, by kind and by plural.
    let kinds = [
        "Pod",
        "deployments",
        "CronJob",
        "Service",
        "ingresses",
        "Role",
        "ClusterRoleBinding",
        "Namespace",
        "PersistentVolumeClaim",
        "HorizontalPodAutoscaler",
        "CustomResourceDefinition",
        "ConfigMap",
    ];
    for kind in kinds {
        let name = format!("of-{}", kind.to_lowercase());
        let made = run_in(directory.path(), &["new", "policy", &name, "--kind", kind], "");
        assert_eq!((made.code, made.err.as_str()), (Some(0), ""), "{kind}");
        assert_eq!(made.out.lines().count(), 5, "{}", made.out);
        let minors = if kind == "Pod" { &Minor::ALL[..] } else { &[Minor::DEFAULT] };
        for minor in minors.iter().map(ToString::to_string) {
            let arguments =
                ["test", "--kube-version", &minor, "--min-coverage", "100", "--fail-on-survivors=all", &name];
            let Run { code, out, err } = run_in(directory.path(), &arguments, "");
            assert_eq!((code, err.as_str()), (Some(0), ""), "{kind} {minor}: {out}");
            // As it is, and once it denies.
            for binding in ["Warn, Audit", "Deny"] {
                let path = directory.path().join(&name).join("binding.yaml");
                let text = fs::read_to_string(&path).unwrap();
                let (head, _) = text.split_once("  validationActions:").unwrap();
                fs::write(&path, format!("{head}  validationActions: [{binding}]\n")).unwrap();
                let files = ["policy.yaml", "binding.yaml"].map(|file| format!("{name}/{file}"));
                let arguments = ["lint", "--kube-version", &minor, "--fail-on", "info", &files[0], &files[1]];
                let Run { code, out, err } = run_in(directory.path(), &arguments, "");
                assert_eq!((code, err.as_str()), (Some(0), ""), "{kind} {minor}: {out}");
            }
        }
    }
}

#[test]
fn new_policy_replaces_nothing_and_names_what_is_wrong() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("mine")).unwrap();
    for (arguments, expected) in [
        (&["mine"][..], "cannot create ./mine"),
        (&["My_policy"], "is not a valid policy name"),
        (&["../up"], "is not a valid policy name"),
        (&["a", "--kind", "Wombat"], "has no kind Wombat"),
        (&["a", "--kind", "APIService"], "cannot create a policy for APIService"),
        (&["a", "--directory", "nowhere"], "cannot create nowhere/a"),
    ] {
        let Run { code, out, err } = run_in(directory.path(), &[&["new", "policy"], arguments].concat(), "");
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing else is there");
}
