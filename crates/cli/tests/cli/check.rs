//! `palisade check`, as a tenant's CI runs it.

use std::fs;

use serde_json::{Value as Json, json};

use super::{Run, directory, run_in};

pub(crate) const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}]}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  mutation: {defaults: Secure}
";

pub(crate) const GOOD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: good}
spec: {containers: [{name: app, image: nginx}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
";

pub(crate) const BAD: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      hostPID: true
      containers:
      - name: app
        image: nginx
        securityContext:
          privileged: true
";

const GIVEN: [&str; 6] = ["check", "--profile", "profile.yaml", "--namespace=tool-a", "--param=uid=50001", "m.yaml"];

fn check(manifest: &str, arguments: &[&str]) -> Run {
    let files = directory(&[("m.yaml", manifest), ("profile.yaml", PROFILE)]);
    run_in(files.path(), arguments, "")
}

#[test]
fn mutated_pod_passes_and_other_kinds_are_counted() {
    let run = check(GOOD, &GIVEN);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""), "{}", run.out);
    assert_eq!(run.out, "1 object evaluated, no violations; 1 other object of kinds that profiles do not evaluate\n");
}

const INGRESS: &str = "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec: {rules: [{host: other.toolforge.org}]}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
";

#[test]
fn object_of_a_kind_that_a_profile_evaluates_is_evaluated() {
    let profile = format!("{PROFILE}  network: {{allowedHosts: [weather.toolforge.org]}}\n");
    let files = directory(&[("m.yaml", INGRESS), ("profile.yaml", &profile)]);
    let run = run_in(files.path(), &[&GIVEN[..], &["-o", "json"]].concat(), "");
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let report: Json = serde_json::from_str(&run.out).unwrap();
    let object = &report["objects"][0];
    let expected = "Ingress: spec.rules[*].host: forbidden hosts: other.toolforge.org, allowed: weather.toolforge.org";
    assert_eq!(
        (&object["kind"], &object["violations"][0]["check"], &object["violations"][0]["message"]),
        (&json!("Ingress"), &json!("networkHosts"), &json!(expected)),
        "{report}"
    );
    assert_eq!((report["objects"].as_array().unwrap().len(), &object["change"]), (1, &Json::Null), "{report}");
}

const CERTIFICATE: &str = "
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web}
spec: {}
---
apiVersion: example.org/v1
kind: Other
metadata: {name: other}
";

const DEFINITION: &str = "---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: certificates.cert-manager.io}
spec:
  group: cert-manager.io
  scope: Namespaced
  names: {plural: certificates, singular: certificate, kind: Certificate, listKind: CertificateList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, default: {}, properties: {issuer: {type: string, default: letsencrypt}}}}
";

#[test]
fn custom_resources_are_evaluated_with_and_without_their_definition() {
    let profile = format!(
        "{PROFILE}  customChecks: [{{id: issuer, target: Object, message: wrong issuer, \
         expression: \"object.spec.?issuer.orValue('') == 'letsencrypt'\", \
         kinds: [{{group: cert-manager.io, versions: [v1], resource: certificates}}]}}]\n"
    );
    let run = |manifest: &str| {
        let files = directory(&[("m.yaml", manifest), ("profile.yaml", &profile)]);
        run_in(files.path(), &GIVEN, "")
    };
    // Its definition is unknown, and so are the defaults in it.
    let unknown = run(CERTIFICATE);
    assert_eq!(unknown.code, Some(1), "{}{}", unknown.out, unknown.err);
    assert!(unknown.out.contains("[issuer] Certificate: wrong issuer"), "{}", unknown.out);
    assert!(unknown.out.contains("1 other object of kinds that profiles do not evaluate"), "{}", unknown.out);
    let known = run(&format!("{CERTIFICATE}{DEFINITION}"));
    assert_eq!(known.code, Some(0), "{}{}", known.out, known.err);
    let others = run(CERTIFICATE.split_once("---").unwrap().1);
    let expected = "the profiles do not evaluate the kinds of the manifests, which are 1 Other";
    assert!(others.code == Some(2) && others.err.contains(expected), "{}", others.err);
}

#[test]
fn workload_has_all_violations_and_a_change_with_which_it_passes() {
    let run = check(BAD, &[&GIVEN[..], &["-o", "json"]].concat());
    assert_eq!(run.code, Some(1), "{}{}", run.out, run.err);
    let report: Json = serde_json::from_str(&run.out).unwrap();
    let object = &report["objects"][0];
    let checks: Vec<_> = object["violations"].as_array().unwrap().iter().map(|one| &one["check"]).collect();
    assert!(checks.contains(&&json!("privileged")) && checks.contains(&&json!("hostNamespaces")), "{checks:?}");
    let privileged = object["violations"].as_array().unwrap().iter().find(|one| one["check"] == "privileged").unwrap();
    assert_eq!(privileged["path"], "spec.template.spec.containers[0].securityContext.privileged");
    assert_eq!(privileged["line"], 15);
    let patch = object["change"]["patch"].as_array().unwrap();
    assert!(patch.iter().all(|step| step["path"].as_str().unwrap().starts_with("/spec/template/spec")), "{patch:?}");
    let human = check(BAD, &GIVEN);
    assert!(human.out.contains("Deployment/web: with this change it passes:"), "{}", human.out);
    assert!(human.out.contains("spec.template.spec.hostPID: true"), "{}", human.out);
}

#[test]
fn sarif_has_fingerprints_and_places() {
    let run = check(BAD, &[&GIVEN[..], &["-o", "sarif"]].concat());
    let sarif: Json = serde_json::from_str(&run.out).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(result["partialFingerprints"]["palisade/v1"].as_str().map(str::len), Some(16));
    assert_eq!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "m.yaml");
}

#[test]
fn what_is_unknown_is_asked_for() {
    let nowhere = check(GOOD, &["check", "--profile", "profile.yaml", "m.yaml"]);
    assert!(nowhere.code == Some(2) && nowhere.err.contains("--namespace NAME"), "{}", nowhere.err);
    let no_uid = check(GOOD, &["check", "--profile", "profile.yaml", "-n", "tool-a", "m.yaml"]);
    assert!(no_uid.code == Some(2) && no_uid.err.contains("--param NAME=VALUE"), "{}", no_uid.err);
    let none = check(GOOD, &["check", "m.yaml", "-n", "tool-a"]);
    assert!(none.code == Some(2) && none.err.contains("specify files with --profile"), "{}", none.err);
    let wrong = check(GOOD, &[&GIVEN[..], &["--param", "gid=1"]].concat());
    assert!(wrong.code == Some(2) && wrong.err.contains("--param gid: no profile has this parameter"), "{}", wrong.err);
}

#[test]
fn file_of_defaults_has_the_version_and_an_option_goes_first() {
    let files = directory(&[("m.yaml", GOOD), ("profile.yaml", PROFILE)]);
    let run = |version: &str, more: &[&str]| {
        let text = format!("profiles: [profile.yaml]\nnamespace: tool-a\nparameters: {{uid: 50001}}\n{version}");
        fs::write(files.path().join(".palisade.yaml"), text).unwrap();
        run_in(files.path(), &[&["check", "m.yaml"], more].concat(), "")
    };
    for (version, more, expected) in [
        ("", &[][..], "1.36"),
        ("kubeVersion: 1.34", &[], "1.34"),
        ("kubeVersion: v1.33.2", &[], "1.33"),
        ("kubeVersion: 1.33", &["--kube-version=1.35"], "1.35"),
    ] {
        let run = run(version, &[&["-o", "json"], more].concat());
        assert_eq!(run.code, Some(0), "{version}: {}{}", run.out, run.err);
        let report: Json = serde_json::from_str(&run.out).unwrap();
        assert_eq!(report["kubeVersion"], expected, "{version} {more:?}");
    }
    for (version, says) in [("1.2", "1.2 is not supported"), ("latest", "not a version")] {
        let run = run(&format!("kubeVersion: {version}"), &[]);
        let said = run.err.contains(says) && run.err.contains(".palisade.yaml:4:14");
        assert!(run.code == Some(2) && said, "{}", run.err);
    }
}

#[test]
fn profile_that_is_wrong_is_no_violation() {
    let files = directory(&[("m.yaml", GOOD), ("profile.yaml", &PROFILE.replace("users:", "user:"))]);
    let run = run_in(files.path(), &GIVEN, "");
    assert!(run.code == Some(2) && run.err.contains("profile.yaml:8:3"), "{}", run.err);
}

/// A pod that shares the processes of the node, and violates nothing else.
const SHARING: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}, annotations: {uid: '50001'}}
---
apiVersion: v1
kind: Pod
metadata: {name: sharing, namespace: tool-a}
spec: {hostPID: true, containers: [{name: app, image: nginx}]}
";

/// A check with a stage of its own, in all commands that judge what exists: by its stage, whatever that of the profile is.
#[test]
fn checks_with_a_stage_of_their_own_are_judged_by_it() {
    let judge = |pods: &str, own: &str, command: &[&str]| {
        let enforcement =
            format!("  enforcement: {{pods: {pods}, workloads: {pods}, checks: {{hostNamespaces: {own}}}}}\n");
        let (namespace, pod) = SHARING.split_once("---").unwrap();
        let files = directory(&[
            ("m.yaml", SHARING),
            ("namespace.yaml", namespace),
            ("pod.yaml", pod),
            ("profile.yaml", &format!("{PROFILE}{enforcement}")),
        ]);
        run_in(files.path(), &[command, &["--profile", "profile.yaml"]].concat(), "")
    };
    let check = ["check", "m.yaml"];
    let explain = ["check", "--explain", "pod.yaml", "--namespaces", "namespace.yaml"];
    let report = ["report", "m.yaml", "-o", "json"];
    for (pods, own, denied) in [("Audit", "Deny", true), ("Deny", "Audit", false), ("Deny", "Warn", false)] {
        let [check, explain, report] = [&check[..], &explain, &report].map(|command| judge(pods, own, command));
        assert_eq!(check.code, Some(i32::from(denied)), "{}", check.out);
        assert!(check.out.contains("[hostNamespaces]"), "{}", check.out);
        assert_eq!(explain.code, Some(i32::from(denied)), "{}", explain.out);
        let heading = if denied { "tool-a: denied" } else { "tool-a: admitted" };
        assert!(explain.out.contains(heading) && explain.out.contains("[hostNamespaces]"), "{}", explain.out);
        let report: Json = serde_json::from_str(&report.out).unwrap();
        let (readiness, profile) = (&report["namespaces"][0]["readiness"], &report["profiles"][0]);
        assert_eq!(*readiness, if denied { json!("nearly") } else { json!("ready") }, "{report}");
        assert_eq!(profile["checks"], json!({"hostNamespaces": own}));
        assert_eq!(report["workloads"].get(0).map(|one| &one["denied"]), denied.then_some(&json!(true)), "{report}");
    }
}
