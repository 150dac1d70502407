//! Probes of single policies: whether API servers deny a violating object by them. Stages that change or delete
//! policies wait for these answers.

use futures::future::join_all;
use palisade_api::names::{self, Part};

use super::namespace::{PolicyAnswer, ProbeNamespace};
use crate::generations::accepted::AcceptedProfile;

/// True if an API server denies a violating object by one of the policies that deny. `None` if that is unknown.
pub async fn some_denies(namespace: &ProbeNamespace, accepted: &AcceptedProfile) -> Option<bool> {
    let answers = denials(namespace, accepted, accepted.compiled.denying_part()?).await?;
    if answers.contains(&Denial::Shown) {
        return Some(true);
    }
    answers.iter().all(|answer| *answer == Denial::Missing).then_some(false)
}

/// True if all API servers deny a violating object by the policy for this part. `None` if that cannot be determined.
pub async fn all_deny(namespace: &ProbeNamespace, accepted: &AcceptedProfile, part: Part) -> Option<bool> {
    let answers = denials(namespace, accepted, part).await?;
    let has = |wanted: &[Denial]| answers.iter().any(|answer| wanted.contains(answer));
    if has(&[Denial::Missing, Denial::NoAnswer]) {
        return Some(false);
    }
    (!has(&[Denial::Hidden])).then_some(true)
}

/// The answer of a server about a violating object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denial {
    /// The policy of this generation denies it.
    Shown,
    /// The policy does not deny it.
    Missing,
    /// The server does not answer in time.
    NoAnswer,
    /// The server is known not to answer, or another component denies the object.
    Hidden,
}

/// The answer of each API server; `None` if the policy cannot be probed.
async fn denials(namespace: &ProbeNamespace, accepted: &AcceptedProfile, part: Part) -> Option<Vec<Denial>> {
    let compiled = &accepted.compiled;
    let (labels, objects) = (compiled.probe_labels()?, compiled.probes.question(part)?);
    if !namespace.store.has_namespace(names::PROBE_NAMESPACE) {
        return None;
    }
    if namespace.label(&labels).await.is_err() {
        return Some(vec![Denial::NoAnswer]);
    }
    let policy = names::policy(&compiled.profile, part);
    let set = namespace.servers.current().await;
    let asked = set.servers.iter().map(|server| async {
        match namespace.ask(server, &objects.path, &objects.violating).await.map(|reply| reply.of_policy(&policy)) {
            Ok(PolicyAnswer::Denied(_) | PolicyAnswer::Broken(_)) => Denial::Shown,
            Ok(PolicyAnswer::Admitted { .. }) => Denial::Missing,
            Ok(PolicyAnswer::Other(_)) => Denial::Hidden,
            Err(_) if server.silent().is_some() => Denial::Hidden,
            Err(_) => Denial::NoAnswer,
        }
    });
    Some(join_all(asked).await).filter(|answers| !answers.is_empty())
}
