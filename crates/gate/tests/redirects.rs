//! A pod whose images all stay where they are is passed over by what redirects images, and no pod besides.

use palisade_admission::requests::MATCH_CONDITIONS_BUDGET;
use palisade_api::{ToolSecurityProfile, catalogue};
use palisade_cel::eval::PER_CALL_LIMIT;
use palisade_checks::fixture::Fixture;
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Judgement, Operation, ValidationRequest, Validator};
use palisade_kube_json::pod;
use palisade_mutation::{self as mutation, Plan};
use serde_json::{Value as Json, json};

/// A profile that redirects images so, and what else it says.
fn compiled(redirect: &Json, more: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged", "images": {"redirect": redirect},
        },
    });
    pod::merge(&mut profile["spec"], more);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    compile(&profile).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The match conditions of what mutates pods.
struct Conditions(Validator);

impl Conditions {
    fn new(compiled: &Compiled) -> Self {
        let conditions = palisade_compiler::match_conditions(compiled.mutation.as_ref().unwrap());
        let spec = json!({"validations": [{"expression": "true"}], "matchConditions": conditions});
        let policy = serde_json::from_value(json!({"metadata": {"name": "conditions"}, "spec": spec})).unwrap();
        Self(Validator::new(&policy).unwrap_or_else(|error| panic!("{error:?}")))
    }

    fn judge(&self, request: &ValidationRequest<'_>) -> Judgement {
        self.0.judge(request).unwrap_or_else(|error| panic!("{error}\n{:.1000}", request.object.to_string()))
    }

    fn hold(&self, pod: &Json) -> bool {
        self.judge(&ValidationRequest::create("Pod", pod)).matched
    }
}

/// Ways to redirect, each with images that it leaves alone and of which that is known at once.
fn redirects() -> Vec<(Json, Vec<&'static str>)> {
    vec![
        (json!({"target": "sea.hub:5000"}), vec!["sea.hub:5000/x", "other.example:1/x", "REGISTRY/x"]),
        (
            json!({"target": "sea.hub:5000", "pathStyle": "StripHost", "skip": ["docker.io", "quay.io/kept"]}),
            vec![
                "sea.hub:5000/x",
                "nginx",
                "a/b",
                "docker.io/nginx:1",
                "quay.io/kept",
                "quay.io/kept:1",
                "quay.io/kept/x",
            ],
        ),
        (
            json!({
                "target": "mirror.example/proxy", "skip": ["docker.io/library", "docker.io/own/x", "localhost", "REG", "$skip"],
                "hosts": [{"host": "ghcr.io", "target": "mirror.example/ghcr"}, {"host": "a:1", "target": "$other/x"}],
            }),
            vec![
                "mirror.example/proxy/x",
                "mirror.example/ghcr/a/b:1",
                "nginx",
                "nginx:1",
                "docker.io/library/x",
                "localhost/x",
                "b:1/x",
                "Reg.Example/x",
            ],
        ),
        (
            json!({"hosts": [{"host": "docker.io", "target": "hub.example:443/a/b"}]}),
            vec!["hub.example:443/a/b/x", "quay.io/x", "localhost/x", "localhost:5000/x", "REGISTRY/x"],
        ),
        (
            json!({"hosts": [{"host": "ghcr.io", "target": "mirror.example/a"}, {"host": "index.docker.io", "target": "b.example"}]}),
            vec!["nginx", "a/b", "docker.io/x", "quay.io/x", "mirror.example/a/x", ""],
        ),
        // What differs by namespace is not known to a webhook's registration.
        (json!({"target": "$other.example/x", "pathStyle": "StripHost", "skip": ["quay.io"]}), vec!["quay.io/x"]),
    ]
}

const PARAMETERS: [(&str, &str, &str); 2] =
    [("other", "String", "own.example"), ("skip", "StringList", "kept.example,x.example:1")];

fn declared() -> Json {
    let one = |(name, kind, value): (&str, &str, &str)| json!({"name": name, "type": kind, "default": value});
    json!({"parameters": PARAMETERS.map(one)})
}

/// Images of all forms, also such as no runtime takes.
fn images() -> Vec<String> {
    let sha = "0123456789abcdef".repeat(4);
    let hosts = [
        "",
        "docker.io/",
        "index.docker.io/",
        "docker.io/library/",
        "index.docker.io/library/",
        "library/",
        "localhost/",
        "localhost:5000/",
        "sea.hub:5000/",
        "sea.hub:50001/",
        "sea.hub/",
        "mirror.example/proxy/",
        "mirror.example/ghcr/",
        "mirror.example/",
        "mirror.example/proxy",
        "quay.io/kept/",
        "quay.io/kepta/",
        "quay.io/",
        "ghcr.io/",
        "ghcr.io.evil.example/",
        "a:1/",
        "b:1/",
        "REGISTRY/",
        "Reg.Example/",
        "REG/",
        "own.example/x/",
        "kept.example/",
        "$x/",
        "hub.example:443/a/b/",
        "[2001:db8::1]:80/",
        "a_b/",
        "ünicode/",
        "a.b\n/",
        "/",
        "localhostx/",
        "xlocalhost/",
        "DOCKER.IO/",
        "docker.io:443/",
        "docker.io./",
        "b.example/",
    ];
    let rests = ["x", "x:1", "own/x", "a/b/c", "", "X", ":1", "@x", "localhost/x", "docker.io/x", "a.b/x"];
    let mut all: Vec<_> = hosts.iter().flat_map(|host| rests.iter().map(move |rest| format!("{host}{rest}"))).collect();
    all.extend(
        ["quay.io/kept", "quay.io/kept:1", "quay.io/kept@x", "docker.io", "localhost", "nginx:", "it's/a\\b"]
            .map(str::to_owned),
    );
    all.extend([
        format!("x@sha256:{sha}"),
        format!("quay.io/kept@sha256:{sha}"),
        format!("docker.io/own/x@sha256:{sha}"),
        sha,
    ]);
    all
}

/// A pod with an image in one of the places that have one.
fn with(place: &str, image: &str, other: &str) -> Json {
    let mut pod = pod::minimal("pod");
    let container = |name: &str, image: &str| match image {
        "" => json!({"name": name}),
        _ => json!({"name": name, "image": image}),
    };
    pod["spec"]["containers"] = json!([container("main", if place == "containers" { image } else { other })]);
    match place {
        "containers" => {}
        "initContainers" => pod["spec"][place] = json!([container("init", image)]),
        _ => {
            let reference = if image.is_empty() { json!({}) } else { json!({"reference": image}) };
            pod["spec"][place] = json!([{"name": "e", "emptyDir": {}}, {"name": "v", "image": reference}]);
        }
    }
    pod
}

#[test]
fn skipped_pod_has_no_image_to_redirect() {
    let (mut over, mut moved, mut asked) = (0, 0, 0);
    for (redirect, stay) in redirects() {
        let compiled = compiled(&redirect, &declared());
        palisade_gate::check(compiled.clone()).unwrap_or_else(|error| panic!("{redirect}: {error}"));
        let conditions = Conditions::new(&compiled);
        let plan = Plan::new([(compiled.mutation.as_ref().unwrap(), compiled.probes.params.as_ref())]);
        for image in stay.iter().map(|&one| one.to_owned()).chain(images()) {
            for place in ["containers", "initContainers", "volumes"] {
                let pod = with(place, &image, stay[0]);
                let patch = plan.patch(&mutation::MutationRequest::create("tenant", &pod));
                let holds = conditions.hold(&pod);
                assert!(holds || patch.is_empty(), "{redirect}: {image:?} in {place} is passed over, but {patch:?}");
                assert!(!holds || !stay.contains(&&*image), "{redirect}: {image:?} in {place} is not passed over");
                over += usize::from(!holds);
                moved += usize::from(!patch.is_empty());
                asked += usize::from(holds && patch.is_empty());
            }
        }
    }
    println!("{over} are passed over, {moved} redirected, {asked} asked about for nothing");
    assert!(over > 1_000 && moved > 1_000, "{over} {moved}");
}

/// The pods of the catalogue, with every profile: with what is defaulted and without.
#[test]
fn no_catalogue_pod_with_a_change_is_skipped() {
    let fixtures =
        catalogue::ALL.iter().flat_map(|check| serde_saphyr::from_str::<Vec<Fixture>>(check.fixtures).unwrap());
    let pods: Vec<_> = fixtures.map(|fixture| fixture.pod()).collect();
    let mut over = 0;
    for (redirect, _) in redirects() {
        for defaults in [json!({}), json!({"mutation": {"defaults": "Secure"}, "users": {"requireRunAsNonRoot": true}})]
        {
            let mut more = declared();
            pod::merge(&mut more, &defaults);
            let compiled = compiled(&redirect, &more);
            let conditions = Conditions::new(&compiled);
            let plan = Plan::new([(compiled.mutation.as_ref().unwrap(), compiled.probes.params.as_ref())]);
            for pod in &pods {
                let patch = plan.patch(&mutation::MutationRequest::create("tenant", pod));
                let holds = conditions.hold(pod);
                assert!(holds || patch.is_empty(), "{redirect}: {patch:?}\n{pod}");
                let mut after = pod.clone();
                patch.apply(&mut after).unwrap();
                over += usize::from(!holds) + usize::from(!conditions.hold(&after));
            }
        }
    }
    println!("{over} times nobody was asked");
    assert!(over > 100, "{over}");
}

/// A new ephemeral container is always looked at: its pod says nothing of which one is new.
#[test]
fn ephemeral_containers_are_never_skipped() {
    for (redirect, stay) in redirects() {
        let conditions = Conditions::new(&compiled(&redirect, &declared()));
        let old = with("containers", stay[0], stay[0]);
        let mut new = old.clone();
        for image in [stay[0], "evil.example/x"] {
            new["spec"]["ephemeralContainers"] = json!([{"name": "e", "image": image}]);
            let request = ValidationRequest {
                operation: Operation::Update,
                subresource: "ephemeralcontainers",
                old_object: &old,
                ..ValidationRequest::create("Pod", &new)
            };
            assert!(conditions.judge(&request).matched, "{redirect}: {image}");
        }
    }
}

/// Where it could not be known of any image, nothing is asked.
#[test]
fn no_condition_is_generated_that_always_holds() {
    let condition = |redirect: &Json| {
        let conditions = compiled(redirect, &declared()).mutation.unwrap().match_conditions();
        conditions.get("something-to-change").cloned().unwrap_or_default()
    };
    assert!(condition(&json!({"target": "sea.hub"})).contains("startsWith('sea.hub/')"));
    assert!(!condition(&json!({"target": "$other/x", "pathStyle": "StripHost", "skip": ["$skip"]})).contains("CREATE"));
    // Within the bounds, it is looked at all the same.
    assert!(condition(&json!({"target": "$other/x", "pathStyle": "StripHost"})).contains("initContainers"));
}

/// The longest lists within the bounds, and the longest that the condition looks at; the longest settings, and such as
/// are left out for it.
#[test]
fn redirect_condition_stays_within_its_budget() {
    let skip = |count: usize, length: usize| -> Json {
        (0..count).map(|n| json!(format!("r{n:02}.{}/x", "x".repeat(length)))).collect()
    };
    let hosts = |count: usize| -> Json {
        (0..count)
            .map(|n| json!({"host": format!("h{n:02}.{}", "x".repeat(240)), "target": format!("t{n:02}.example/x")}))
            .collect()
    };
    let mut left_out = 0;
    for redirect in [
        json!({"target": "sea.hub"}),
        json!({"target": "sea.hub", "skip": skip(4, 20)}),
        json!({"target": "sea.hub", "skip": ["docker.io"], "pathStyle": "StripHost"}),
        json!({"target": "sea.hub", "skip": skip(64, 20), "hosts": hosts(4)}),
        json!({"target": "sea.hub", "skip": skip(64, 240), "hosts": hosts(32)}),
        json!({"hosts": [{"host": "docker.io", "target": "sea.hub"}]}),
        json!({"hosts": hosts(32)}),
    ] {
        for more in [json!({}), json!({"baseline": "Restricted", "mutation": {"defaults": "Secure"}})] {
            let compiled = compiled(&redirect, &more);
            let condition =
                compiled.mutation.as_ref().unwrap().match_conditions().remove("something-to-change").unwrap();
            left_out += usize::from(!condition.contains("CREATE"));
            let conditions = Conditions::new(&compiled);
            for (containers, volumes, length) in [
                (32, 32, 4096),
                (32, 32, 512),
                (32, 32, 1),
                (33, 32, 512),
                (64, 256, 4096),
                (64, 256, 512),
                (64, 257, 4097),
            ] {
                // As long as no test of it holds before the last, and all are found to stay only by that.
                let image = format!("T31.{}", "x".repeat(length)).chars().take(length).collect::<String>();
                let container = |n: usize| json!({"name": format!("c{n}"), "image": image});
                let mut pod = pod::minimal("long");
                pod["spec"]["containers"] = (0..containers).map(container).collect();
                pod["spec"]["initContainers"] = (0..containers).map(|n| container(100 + n)).collect();
                pod["spec"]["volumes"] =
                    (0..volumes).map(|n| json!({"name": format!("v{n}"), "image": {"reference": image}})).collect();
                let judgement = conditions.judge(&ValidationRequest::create("Pod", &pod));
                let size = format!("2 x {containers} containers, {volumes} volumes, images of {length}: {redirect}");
                println!("{} of {MATCH_CONDITIONS_BUDGET}: {}", judgement.matching, &size[..size.len().min(150)]);
                assert!(judgement.matching < PER_CALL_LIMIT, "{}: {size}", judgement.matching);
            }
        }
    }
    assert!(left_out > 0 && left_out < 8, "{left_out}");
}
