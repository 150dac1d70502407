//! The prober with API servers that are slow, silent, wrong or reject. Time is tokio's, and paused.

mod mock;
mod objects;

use k8s_openapi::api::{admissionregistration::v1::ValidatingAdmissionPolicy, core::v1::Namespace};
use kube::{core::PartialObjectMeta, runtime::watcher::Event};
use palisade_api::{ToolSecurityProfile, conditions::Reason};
use serde_json::{Value as Json, json};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use self::mock::{LATENCY, Mock};
use super::{outcome::Outcome, queue::ProbeLease, results::Question, servers::Server, *};
use crate::{options::ApiServers, pacing::Pacing, status::ConditionStatus};

/// A prober, the API servers it asks, and the profiles it is asked about.
struct Setup {
    prober: Prober,
    store: Arc<Store>,
    servers: Vec<Arc<Mock>>,
}

impl Setup {
    fn new(count: usize) -> Self {
        let store = Arc::new(Store::default());
        let namespace: PartialObjectMeta<Namespace> =
            serde_json::from_value(json!({"metadata": {"name": names::PROBE_NAMESPACE}})).unwrap();
        store.observe_namespace(Event::Apply(namespace));
        let (queue, metrics) = (Arc::new(ProfileQueue::new(Duration::ZERO)), Arc::new(Metrics::new()));
        let mocks: Vec<_> = (0..count).map(|_| Mock::new()).collect();
        let known = mocks.iter().enumerate();
        let known = known.map(|(i, mock)| Server::new(format!("https://server-{i}"), mock.client(&mocks[0]))).collect();
        let supervisor = Supervisor::new(CancellationToken::new());
        let which = ApiServers::At((0..count).map(|i| format!("https://server-{i}").parse().unwrap()).collect());
        let config = kube::Config::new("https://server".parse().unwrap());
        let pacing = Arc::<Pacing>::default();
        let servers = Servers::new(mocks[0].client(&mocks[0]), Some(config), which, pacing, Arc::clone(&metrics));
        let servers = Arc::new(servers.knowing(known));
        servers.follow(&store, &queue, &supervisor);
        let prober =
            Prober::new(servers, Arc::clone(&store), Arc::default(), queue, metrics, &Options::default(), supervisor);
        Self { prober, store, servers: mocks }
    }

    /// Waits for the answer as reconciles do, and returns how long it took.
    async fn answer(&self, accepted: &Arc<AcceptedProfile>) -> (EnforcementAnswer, Duration) {
        let start = Instant::now();
        loop {
            if let (Some(known), _) = self.prober.enforcement(accepted) {
                return (known, start.elapsed());
            }
            sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until the answer is this one, at most this long.
    async fn until(
        &self,
        accepted: &Arc<AcceptedProfile>,
        reason: Reason,
        limit: Duration,
    ) -> crate::status::Condition {
        let start = Instant::now();
        loop {
            let (known, _) = self.prober.enforcement(accepted);
            let condition = known.map(|known| known.condition());
            if let Some(condition) = condition.clone().filter(|condition| condition.reason == reason) {
                return condition;
            }
            assert!(start.elapsed() < limit, "{condition:?}");
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// A profile that denies pods and, if that is so, workloads.
fn accepted(name: &str, generation: i64, more: &Json) -> Arc<AcceptedProfile> {
    let mut spec = json!({"namespaceSelector": {"matchLabels": {"tenancy": name}}, "baseline": "Baseline"});
    palisade_kube_json::pod::merge(&mut spec, more);
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile",
        "metadata": {"name": name, "generation": generation}, "spec": spec,
    }))
    .unwrap();
    let compiled = palisade_gate::check(palisade_compiler::compile(&profile).unwrap()).unwrap();
    Arc::new(AcceptedProfile { profile: Arc::new(profile), compiled })
}

fn pods_only(name: &str) -> Arc<AcceptedProfile> {
    accepted(name, 1, &json!({"enforcement": {"workloads": "Off"}}))
}

fn both(name: &str) -> Arc<AcceptedProfile> {
    accepted(name, 1, &json!({"enforcement": {"workloads": "Deny"}}))
}

const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(start_paused = true)]
async fn enforced_requires_the_policy_for_workloads() {
    let (setup, accepted) = (Setup::new(1), both("a"));
    setup.servers[0].enforce("a.1", &["pods"]);
    let (first, _) = setup.answer(&accepted).await;
    assert!(matches!(first.worst(), Outcome::ViolationAdmitted("pod template", _)), "{first:?}");
    setup.servers[0].enforce("a.1", &["podtemplates"]);
    setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    setup.servers[0].set(|state| state.confused = true);
    let (_, again) = setup.prober.enforcement(&accepted);
    sleep(again.unwrap()).await;
    setup.until(&accepted, Reason::CompliantPodDenied, LIMIT).await;
}

#[tokio::test(start_paused = true)]
async fn warnings_about_workloads_are_observed() {
    let (setup, accepted) = (Setup::new(1), accepted("a", 1, &json!({"enforcement": {"workloads": "Warn"}})));
    setup.servers[0].enforce("a.1", &["pods"]);
    let (silent, _) = setup.answer(&accepted).await;
    assert!(matches!(silent.worst(), Outcome::ViolationAdmitted("pod template", _)), "{silent:?}");
    // A server that warns about every object does not enforce the profile.
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'palisade-a-workloads' with binding\"";
    setup.servers[0].set(|state| state.warning = Some(warning.to_owned()));
    setup.until(&accepted, Reason::CompliantPodDenied, LIMIT).await;
}

#[tokio::test(start_paused = true)]
async fn policies_of_an_earlier_generation_do_not_count_as_enforced() {
    let setup = Setup::new(1);
    setup.servers[0].enforce("a.1", &["pods", "podtemplates"]);
    let new = accepted("a", 2, &json!({"enforcement": {"workloads": "Deny"}}));
    let (answer, _) = setup.answer(&new).await;
    assert!(matches!(answer.worst(), Outcome::ViolationAdmitted("pod", _)), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn probe_result_is_dropped_when_a_policy_is_replaced() {
    let (setup, accepted) = (Setup::new(1), pods_only("a"));
    setup.servers[0].enforce("a.1", &["pods"]);
    setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    // Another policy of the same name and generation, as after a deletion of the former one.
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "palisade-a-pods", "uid": "other", "generation": 1, "resourceVersion": "7"},
    }))
    .unwrap();
    setup.store.wrote_object(policy.clone());
    assert_eq!(setup.prober.enforcement(&accepted).0, None);
    setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    // And another one for workloads.
    setup.store.wrote_object(ValidatingAdmissionPolicy {
        metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta {
            name: Some("palisade-a-workloads".into()),
            ..policy.metadata
        },
        ..policy
    });
    assert_eq!(setup.prober.enforcement(&accepted).0, None);
}

#[tokio::test(start_paused = true)]
async fn unenforced_profiles_do_not_delay_the_probe_of_another() {
    let setup = Setup::new(2);
    let hopeless: Vec<_> = (0..25).map(|i| pods_only(&format!("hopeless-{i}"))).collect();
    for accepted in &hopeless {
        assert_eq!(setup.prober.enforcement(accepted).0, None);
    }
    sleep(Duration::from_secs(3)).await;
    for server in &setup.servers {
        server.enforce("good.1", &["pods"]);
    }
    let (answer, took) = setup.answer(&pods_only("good")).await;
    assert_eq!(answer.condition().status, ConditionStatus::True, "{answer:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    // Neither do they keep a removal waiting.
    let start = Instant::now();
    assert_eq!(setup.prober.some_denies(&pods_only("good")).await, Some(true));
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    // And if the policy comes into force only later, that is noticed soon, too.
    let late = pods_only("late");
    assert_eq!(setup.prober.enforcement(&late).0, None);
    sleep(Duration::from_millis(1300)).await;
    for server in &setup.servers {
        server.enforce("late.1", &["pods"]);
    }
    let (answer, took) = setup.answer(&late).await;
    assert_eq!(answer.condition().status, ConditionStatus::True, "{answer:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    // They get their answers as well, in the time that is given to each.
    for accepted in &hopeless {
        let (answer, took) = setup.answer(accepted).await;
        assert!(matches!(answer.worst(), Outcome::ViolationAdmitted("pod", _)), "{answer:?}");
        assert!(took < LIMIT, "{took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_failing_api_servers_are_named() {
    let (setup, accepted) = (Setup::new(3), both("a"));
    for server in [0, 2] {
        setup.servers[server].enforce("a.1", &["pods", "podtemplates"]);
    }
    setup.servers[1].enforce("a.1", &["pods"]);
    let condition = setup.until(&accepted, Reason::ViolationAdmitted, LIMIT).await;
    let text = &condition.message;
    assert!(text.contains("https://server-1") && !text.contains("server-0") && !text.contains("server-2"), "{text}");
    setup.servers[1].enforce("a.1", &["podtemplates"]);
    let condition = setup.until(&accepted, Reason::ProbesPassed, Duration::from_mins(2)).await;
    assert!(condition.message.contains("each of 3 API servers"), "{}", condition.message);
}

#[tokio::test(start_paused = true)]
async fn silent_api_server_is_named_and_delays_no_profile() {
    let setup = Setup::new(2);
    let known = (0..5).map(|i| pods_only(&format!("p{i}"))).collect::<Vec<_>>();
    for server in &setup.servers {
        for i in 0..5 {
            server.enforce(&format!("p{i}.1"), &["pods"]);
        }
    }
    setup.servers[1].set(|state| state.latency = None);
    let start = Instant::now();
    for accepted in &known {
        assert_eq!(setup.prober.enforcement(accepted).0, None);
    }
    for accepted in &known {
        let condition = setup.until(accepted, Reason::ProbeFailed, LIMIT).await;
        let text = &condition.message;
        assert!(text.contains("https://server-1: no answer within 2 s") && !text.contains("server-0"), "{text}");
    }
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    setup.servers[1].set(|state| state.latency = Some(LATENCY));
    for accepted in &known {
        setup.until(accepted, Reason::ProbesPassed, Duration::from_mins(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn failed_probe_label_write_is_retried_then_reported() {
    let (setup, accepted) = (Setup::new(1), pods_only("a"));
    setup.servers[0].enforce("a.1", &["pods"]);
    setup.servers[0].set(|state| state.refusals = [409, 429, 500, 409].into());
    let (answer, took) = setup.answer(&accepted).await;
    assert_eq!(answer.condition().status, ConditionStatus::True, "{answer:?}");
    assert!(took < Duration::from_secs(10), "{took:?}");
    for code in [409, 429, 500] {
        let setup = Setup::new(1);
        setup.servers[0].set(|state| state.refuses = Some(code));
        let (answer, took) = setup.answer(&accepted).await;
        let condition = answer.condition();
        assert_eq!((condition.status, condition.reason), (ConditionStatus::Unknown, Reason::ProbeFailed));
        assert!(condition.message.contains(&format!("HTTP {code}")), "{}", condition.message);
        assert!(took < Duration::from_secs(15), "{took:?}");
    }
    // Nor if they never are answered.
    let setup = Setup::new(1);
    setup.servers[0].set(|state| state.latency = None);
    let (answer, took) = setup.answer(&accepted).await;
    assert_eq!(answer.condition().status, ConditionStatus::Unknown, "{answer:?}");
    assert!(took < Duration::from_secs(15), "{took:?}");
    let start = Instant::now();
    assert_eq!(setup.prober.some_denies(&accepted).await, None);
    assert!(setup.prober.unlabel().await.is_err());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn probe_waits_for_slow_api_servers() {
    let (setup, accepted) = (Setup::new(2), both("a"));
    for server in &setup.servers {
        server.enforce("a.1", &["pods", "podtemplates"]);
        server.set(|state| state.latency = Some(Duration::from_millis(1500)));
    }
    let (answer, _) = setup.answer(&accepted).await;
    assert_eq!(answer.condition().status, ConditionStatus::True, "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn probe_result_is_cached_and_refreshed_in_time() {
    let (setup, accepted) = (Setup::new(1), pods_only("a"));
    setup.servers[0].enforce("a.1", &["pods"]);
    setup.until(&accepted, Reason::ProbesPassed, LIMIT).await;
    let asked = setup.servers[0].set(|state| state.requests);
    let (_, again) = setup.prober.enforcement(&accepted);
    let again = again.unwrap();
    assert!(again > Duration::from_mins(4), "{again:?}");
    sleep(again.saturating_sub(Duration::from_secs(1))).await;
    setup.prober.enforcement(&accepted);
    assert_eq!(setup.servers[0].set(|state| state.requests), asked);
    // It stops being right. One wrong answer is not believed yet.
    setup.servers[0].set(|state| state.in_force.clear());
    sleep(Duration::from_secs(2)).await;
    let start = Instant::now();
    setup.until(&accepted, Reason::ViolationAdmitted, LIMIT).await;
    assert!(start.elapsed() >= Options::default().probe_timeout, "{:?}", start.elapsed());
    setup.prober.forget("a");
    assert_eq!(setup.prober.enforcement(&accepted).0, None);
}

#[tokio::test(start_paused = true)]
async fn mutation_probe_detects_the_engine_and_silent_servers() {
    let setup = Setup::new(1);
    let accepted = accepted("a", 1, &json!({"baseline": "Restricted", "mutation": {"defaults": "Secure"}}));
    let ask = async |native: Option<&str>| loop {
        let (known, _) = setup.prober.mutation(&accepted, native).unwrap();
        match known {
            Some(known) => break known,
            None => sleep(Duration::from_millis(5)).await,
        }
    };
    // Until an API server has read the labels of this profile, it may evaluate pods by another profile.
    let unread = ask(None).await;
    assert_eq!((unread.everywhere(), unread.failed().len()), (None, 1), "{unread:?}");
    setup.servers[0].enforce("a.1", &["pods"]);
    let start = Instant::now();
    while ask(None).await.everywhere().is_none() {
        assert!(start.elapsed() < LIMIT, "the labels were not noticed");
        sleep(Duration::from_millis(50)).await;
    }
    let unmutated = ask(None).await;
    assert_eq!(
        (unmutated.everywhere(), unmutated.unmutated()),
        (Some(ObservedMutators::default()), vec!["https://server-0"])
    );
    setup.servers[0].set(|state| state.warning = Some("299 - \"mutated by ToolSecurityProfile a: x\"".to_owned()));
    let start = Instant::now();
    while !ask(None).await.unmutated().is_empty() {
        assert!(start.elapsed() < LIMIT, "the webhook was not noticed");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(ask(None).await.everywhere(), Some(ObservedMutators { native: false, webhook: true }));
    setup.servers[0].set(|state| state.latency = None);
    let silent = ask(Some("v1")).await;
    assert_eq!((silent.everywhere(), silent.failed().len()), (None, 1));
}

/// A server shows that it has read the labels by a denial, which takes the label of the stage where a namespace has its
/// own.
#[tokio::test(start_paused = true)]
async fn mutation_is_probed_at_the_stage_that_denies() {
    let setup = Setup::new(1);
    let enforcement = json!({"pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel"});
    let mutation = json!({"defaults": "Secure"});
    let spec = json!({"baseline": "Restricted", "enforcement": enforcement, "mutation": mutation});
    let accepted = accepted("a", 1, &spec);
    while setup.prober.mutation(&accepted, None).unwrap().0.is_none() {
        sleep(Duration::from_millis(5)).await;
    }
    let stage = setup.servers[0].set(|state| state.labels.get(&names::stage_label("a")).cloned());
    assert_eq!(stage.as_deref(), Some("Deny"));
}

/// A question that panics in its first turn.
struct Panics(std::sync::atomic::AtomicBool);

impl Question for Panics {
    type Answer = Result<(), String>;

    fn profile(&self) -> &'static str {
        "a"
    }

    async fn ask(&self, _turn: &ProbeLease) -> Self::Answer {
        assert!(self.0.load(std::sync::atomic::Ordering::Relaxed), "a mistake");
        Ok(())
    }

    fn is_right(&self, answer: &Self::Answer) -> bool {
        answer.is_ok()
    }

    fn failed(&self, why: String) -> Self::Answer {
        Err(why)
    }

    fn concluded(&self, _answer: &Self::Answer) {}
}

#[tokio::test(start_paused = true)]
async fn probe_is_repeated_after_a_panic() {
    let second = Duration::from_secs(1);
    let (turns, queue) = (Arc::new(ProbeQueue::default()), Arc::new(ProfileQueue::new(Duration::ZERO)));
    let supervisor = Supervisor::new(CancellationToken::new());
    let common = Common { turns: Arc::clone(&turns), pacing: Arc::default(), queue, supervisor };
    let answers = ProbeResults::new(Arc::new(common), Pace { patience: second, interval: second, retry: second });
    let answers = Arc::new(answers);
    let ask = |works: bool| answers.consult(Key { objects: String::new(), servers: 0 }, Panics(works.into())).0;
    assert_eq!(ask(false), None);
    sleep(second).await;
    assert!(matches!(ask(true), Some(Err(why)) if why.contains("panicked")));
    sleep(second * 3).await;
    ask(true);
    sleep(second).await;
    assert_eq!(ask(true), Some(Ok(())));
    assert!(tokio::time::timeout(second, turns.next(Duration::ZERO)).await.is_ok());
}
