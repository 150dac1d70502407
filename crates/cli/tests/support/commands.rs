//! Each subcommand with each of its inputs, as files that are damaged: for a test and for libFuzzer.

use std::{ffi::OsString, fs, path::Path};

use palisade_cli::{CommandOutput, captured};
use serde_json::Value as Json;

/// A command line; `{name}` is the file of the input with that name.
#[derive(Debug)]
pub struct Command {
    pub line: &'static str,
    pub inputs: &'static [(&'static str, &'static str)],
}

const PROFILE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools, generation: 3}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  privileges: {privileged: false}
  parameters: [{name: uid, type: Integer, sources: [{namespaceAnnotation: uid}], default: 50001}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  images: {redirect: {target: mirror.example}}
  mutation: {defaults: Secure}
  overrides: [{namespaces: [tool-a], parameters: {uid: 7}}]
  exceptions: [{namespaces: [tool-a], checks: [privileged], expires: '2030-01-01T00:00:00Z', reason: x}]
  customChecks:
  - {id: named, target: Containers, expression: size(container.name) > 1, message: a longer name}
";

const NAMESPACE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: tool-a, labels: {tenancy: tool}, annotations: {uid: '50001'}}
";

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: tool-a, labels: {a: b}, finalizers: [example.org/x], creationTimestamp: null}
spec:
  hostPID: true
  terminationGracePeriodSeconds: 30
  securityContext: {runAsUser: 0, fsGroup: 7, sysctls: [{name: a, value: b}]}
  volumes: [{name: v, hostPath: {path: /, type: Directory}}, {name: w, emptyDir: {sizeLimit: 1Gi}}]
  initContainers: [{name: init, image: 'busybox@sha256:0'}]
  containers:
  - name: app
    image: nginx
    ports: [{containerPort: 80, hostPort: 80}]
    resources: {requests: {cpu: 100m}, limits: {cpu: '1'}}
    livenessProbe: {httpGet: {path: /, port: http}}
    securityContext:
      privileged: true
      capabilities: {add: [NET_BIND_SERVICE, NET_RAW]}
";

const LEASE: &str = "
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: l, namespace: tool-a}
spec: {renewTime: '2026-01-01T00:00:00.000000Z', leaseDurationSeconds: 15}
";

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    namespaceSelector: {matchLabels: {tenancy: tool}}
    resourceRules:
    - {apiGroups: ['', coordination.k8s.io], apiVersions: [v1], operations: ['*'], resources: [pods, leases, namespaces]}
  matchConditions: [{name: c, expression: request.operation != 'CONNECT'}]
  variables: [{name: x, expression: object.metadata.name}]
  validations:
  - {expression: variables.x != 'bad', messageExpression: \"'no ' + variables.x\", reason: Invalid}
  auditAnnotations: [{key: k, valueExpression: string(variables.x)}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: a}
spec: {policyName: a, paramRef: {name: p, parameterNotFoundAction: Allow}, validationActions: [Deny, Audit]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: p, namespace: tool-a}
data: {a: b}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Limit, plural: limits}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, x-kubernetes-validations: [{rule: self.a > 0}], properties: {a: {type: integer}}}}
---
apiVersion: example.org/v1
kind: Limit
metadata: {name: l, namespace: tool-a}
spec: {a: 1}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: m}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {\"a\": \"b\"}}}'}
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: \"add\", path: \"/metadata/labels/c\", value: \"d\"}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: m}
spec: {policyName: m}
";

const SUITE: &str = "
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
metadata: {name: s}
kubeVersion: '1.36'
policies: [policy.yaml]
resources: [namespace.yaml, {apiVersion: v1, kind: ConfigMap, metadata: {name: q}}]
defaults: {namespace: tool-a, user: u, groups: [g]}
cases:
- name: a pod
  object: pod.yaml
  expect: {verdict: deny, message: no bad}
  variants:
  - name: another
    set: {metadata.name: good}
    unset: [spec.hostPID]
    patch: {spec: {hostIPC: false}}
    expect: {verdict: allow, assert: object.metadata.name == 'good', objectContains: {spec: {containers: [{name: app}]}}}
- name: a limit
  object: {apiVersion: example.org/v1, kind: Limit, metadata: {name: z}, spec: {a: 0}}
  expect: {verdict: invalid, field: spec, messageContains: failed rule}
- {name: gone, operation: DELETE, old: {file: pod.yaml, kind: Pod}, expect: allow}
";

const REVIEW: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"","version":"v1",
"kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"bad","namespace":"tool-a","operation":"UPDATE",
"userInfo":{"username":"u","groups":["g"],"extra":{"a":["b"]}},"object":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad"},
"spec":{"containers":[{"name":"a","image":"b"}]}},"oldObject":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad"},"spec":
{"containers":[{"name":"a","image":"b"}]}},"dryRun":false,"options":{"apiVersion":"meta.k8s.io/v1","kind":"UpdateOptions"}}}"#;

const SECURITY_POLICY: &str = "
apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: restricted, annotations: {seccomp.security.alpha.kubernetes.io/allowedProfileNames: runtime/default}}
spec:
  privileged: false
  allowedCapabilities: [NET_BIND_SERVICE]
  requiredDropCapabilities: [ALL]
  volumes: [configMap, emptyDir, hostPath]
  allowedHostPaths: [{pathPrefix: /var, readOnly: true}]
  hostPorts: [{min: 1, max: 80}]
  runAsUser: {rule: MustRunAs, ranges: [{min: 1, max: 65535}]}
  runAsGroup: {rule: RunAsAny}
  seLinux: {rule: MustRunAs, seLinuxOptions: {level: 's0:c1,c2'}}
  supplementalGroups: {rule: MayRunAs, ranges: [{min: 1, max: 65535}]}
  fsGroup: {rule: RunAsAny}
  allowedUnsafeSysctls: ['kernel.*']
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: r}
rules: [{apiGroups: [policy], resources: [podsecuritypolicies], verbs: [use], resourceNames: [restricted]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: tool-a}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: Group, name: 'system:serviceaccounts', apiGroup: rbac.authorization.k8s.io}]
";

const EVENT: &str = r#"{"stage":"ResponseComplete","requestURI":"/api/v1/namespaces/a/pods","requestReceivedTimestamp":"2026-01-01T00:00:00Z","objectRef":{"resource":"pods","namespace":"a"},"requestObject":{"metadata":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","controller":true}]}},"annotations":{"authorization.k8s.io/decision":"allow","validation.policy.admission.k8s.io/validation_failure":"[{\"message\":\"[a] b\",\"policy\":\"palisade-t-pods\",\"validationActions\":[\"Audit\"]}]"},"responseStatus":{"code":403,"message":"pods \"r-\" is forbidden: ValidatingAdmissionPolicy 'palisade-t-pods' with binding 'b' denied request: 1 violation of ToolSecurityProfile t: [a] b"}}"#;
const CREATION: &str = r#"{"level":"Request","stage":"ResponseComplete","verb":"create","requestURI":"/api/v1/namespaces/tool-a/pods","user":{"username":"u","groups":["g"]},"requestReceivedTimestamp":"2026-01-01T00:00:00Z","objectRef":{"resource":"pods","namespace":"tool-a","apiVersion":"v1"},"requestObject":{"metadata":{"generateName":"r-","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"u","controller":true}]},"spec":{"hostPID":true,"containers":[{"name":"app","image":"a"}]}},"responseStatus":{"code":201}}"#;
const STRICTER: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Restricted
  parameters: [{name: uid, type: Integer, sources: [{namespaceLabel: uid}], default: 50001}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{min: $uid, max: $uid}]}}
  images: {allowedRegistries: [registry.example]}
";
const BASELINE: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec: {namespaceSelector: {matchLabels: {tenancy: tool}}, baseline: Baseline}
";
const RESTRICTED: &str = "
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec: {namespaceSelector: {matchLabels: {tenancy: tool}}, baseline: Restricted}
";
const CONFIG: &str = "{namespace: tool-a, parameters: {uid: 50001}, output: [human], failOn: warning}";

const EARLIER: &str = r#"{"apiVersion":"report.toolsecurity.dev/v1alpha1","kind":"Report","title":"t","time":"2025-01-01T00:00:00Z","server":"1.36","summary":{"namespaces":1,"ready":0,"nearly":1,"needsWork":0,"notJudged":0,"inDeny":0,"workloads":1,"violating":1,"withChange":1,"objects":2},"profiles":[{"name":"tools","stage":"Audit","namespaces":1,"deny":0,"warn":0,"audit":1,"violating":1}],"checks":[{"check":"privileged","title":"x","workloads":1,"namespaces":1}],"namespaces":[{"name":"a","readiness":"nearly","stages":{"tools":"Audit"},"workloads":1,"violating":1,"checks":{"privileged":1}}],"workloads":[{"namespace":"a","workload":"Pod/b","objects":1,"denied":false,"violations":[{"profile":"tools","check":"privileged","message":"m","objects":1}],"change":{"complies":true,"patch":[],"lines":["- a: b"]}}],"notJudged":[{"namespace":"a","workload":"","why":"w"}],"notSelected":["b"]}"#;

const P: (&str, &str) = ("profile", PROFILE);
const N: (&str, &str) = ("namespace", NAMESPACE);
const O: (&str, &str) = ("pod", POD);
const V: (&str, &str) = ("policy", POLICY);
const L: (&str, &str) = ("lease", LEASE);
const S: (&str, &str) = ("suite", SUITE);

/// All of them.
pub const COMMANDS: [Command; 32] = [
    Command { line: "render {profile}", inputs: &[P] },
    Command { line: "render {profile} --namespaces {namespace} --kube-version 1.33 -o json", inputs: &[P, N] },
    Command { line: "render {profile} --namespaces {namespace} --pod {pod} -o diff", inputs: &[P, N, O] },
    Command { line: "check --explain -p {profile} {pod} -n tool-b --param uid=7", inputs: &[P, O] },
    Command { line: "check --explain -p {profile} {pod} --namespaces {namespace} -o json", inputs: &[P, O, N] },
    Command { line: "eval --policies {policy} --policies {namespace} {pod} {lease} -v", inputs: &[V, N, O, L] },
    Command {
        line: "eval --policies {policy} --operation update --old {old} {pod} -o json",
        inputs: &[V, ("old", POD), O],
    },
    Command {
        line: "eval --policies {policy} --operation update --old {old} {lease} --namespace n",
        inputs: &[V, ("old", LEASE), L],
    },
    Command {
        line: "eval --policies {profile} --policies {namespace} --operation delete {pod} --namespace tool-a",
        inputs: &[P, N, O],
    },
    Command { line: "eval {pod} -o json", inputs: &[O] },
    Command { line: "eval --policies {policy} --kube-version 1.33 {review}", inputs: &[V, ("review", REVIEW)] },
    Command {
        line: "check --profile {profile} --namespaces {namespace} --config {config} {pod} {lease} -o human -o sarif={directory}/c.sarif",
        inputs: &[P, N, ("config", CONFIG), O, L],
    },
    Command { line: "check --profile {profile} -n tool-b --param uid=7 -o json {pod}", inputs: &[P, O] },
    Command { line: "test {suite} --jobs 1", inputs: &[S, V, N, O] },
    Command { line: "test {suite} --jobs 1 --coverage -o json", inputs: &[S, V, N, O] },
    Command { line: "test --init {policy}", inputs: &[V] },
    Command { line: "lint {policy} {profile} -o json", inputs: &[V, P] },
    Command {
        line: "lint {policy} -o human -o sarif={directory}/out.sarif -o junit={directory}/out.xml -o github={directory}/out",
        inputs: &[V],
    },
    Command {
        line: "report {profile} {namespace} {pod} --time 2026-01-01T00:00:00Z --earlier {earlier}",
        inputs: &[P, N, O, ("earlier", EARLIER)],
    },
    Command {
        line: "report {pod} --profile {profile} --namespaces {namespace} --time 2026-01-01T00:00:00Z -o markdown -o json={directory}/r.json -l tenancy=tool --owner-annotation uid --sort owner",
        inputs: &[O, P, N],
    },
    Command { line: "suggest {profile} {namespace} {pod} --time 2026-01-01T00:00:00Z -o json", inputs: &[P, N, O] },
    Command {
        line: "suggest {pod} --profile {profile} --namespaces {namespace} --time 2026-01-01T00:00:00Z --top 2",
        inputs: &[O, P, N],
    },
    Command {
        line: "infer {pod} --namespaces {namespace} -l tenancy=tool --outliers 1 --time 2026-01-01T00:00:00Z -o json",
        inputs: &[O, N],
    },
    Command { line: "audit {log} -o json", inputs: &[("log", EVENT)] },
    Command { line: "replay -p {profile} --namespaces {namespace} {log} -o json", inputs: &[P, N, ("log", CREATION)] },
    Command {
        line: "diff {profile} {other} --manifests {pod} --manifests {lease} --manifests {namespace} -n tool-a -o markdown",
        inputs: &[P, ("other", STRICTER), O, L, N],
    },
    Command {
        line: "diff {profile} {other} --manifests {pod} --namespaces {namespace} -o json",
        inputs: &[P, ("other", STRICTER), O, N],
    },
    Command { line: "prove {profile} {other}", inputs: &[("profile", BASELINE), ("other", RESTRICTED)] },
    Command { line: "prove {profile} --implies restricted", inputs: &[("profile", BASELINE)] },
    Command { line: "prove {profile} --never has(object.spec.hostname)", inputs: &[("profile", BASELINE)] },
    Command { line: "migrate psp {psp}", inputs: &[("psp", SECURITY_POLICY)] },
    Command { line: "migrate psp {psp} -o json --stage Deny", inputs: &[("psp", SECURITY_POLICY)] },
];

/// The files of the command in a directory, with one input in place of its own.
pub fn run(command: &Command, directory: &Path, input: usize, bytes: &[u8]) -> CommandOutput {
    for (index, (name, text)) in command.inputs.iter().enumerate() {
        let content = if index == input { bytes } else { text.as_bytes() };
        fs::write(directory.join(format!("{name}.yaml")), content).expect("the directory can be written to");
    }
    let place = directory.display().to_string();
    let argument = |word: &str| {
        let mut word = word.replace("{directory}", &place);
        for (name, _) in command.inputs {
            word = word.replace(&format!("{{{name}}}"), &format!("{place}/{name}.yaml"));
        }
        OsString::from(word)
    };
    captured(std::iter::once("palisade".into()).chain(command.line.split(' ').map(argument)))
}

/// The objects of an input, to be changed and written again.
pub fn objects(text: &str) -> Vec<Json> {
    let source = std::sync::Arc::new(palisade_manifest::Source::new("seed", text.to_owned()));
    let objects = palisade_manifest::objects(&source).expect("it is YAML");
    objects.iter().map(|object| object.json().expect("it is an object")).collect()
}

/// How many parts some JSON has: itself, its fields and elements, and theirs.
pub fn parts(value: &Json) -> usize {
    1 + match value {
        Json::Object(fields) => fields.values().map(parts).sum(),
        Json::Array(items) => items.iter().map(parts).sum(),
        _ => 0,
    }
}

/// One of these parts, in the order in which they are counted.
pub fn part(value: &mut Json, mut index: usize) -> Option<&mut Json> {
    if index == 0 {
        return Some(value);
    }
    index -= 1;
    let below: Vec<&mut Json> = match value {
        Json::Object(fields) => fields.values_mut().collect(),
        Json::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    for one in below {
        let count = parts(one);
        if index < count {
            return part(one, index);
        }
        index -= count;
    }
    None
}
