//! From a seed to faults and their times. The same seed gives the same schedule.
//!
//! Each lane deals its kinds of faults from a shuffled deck, so that none of them is left out for long, and knows nothing of
//! the other lanes: faults of different lanes meet each other at any moment.

use std::fmt;

use fastrand::Rng;
use serde::Serialize;
use strum::{EnumIter, IntoStaticStr};

/// How many namespaces the storms of ten minutes create.
const NAMESPACES: u64 = 4_000;
/// Longer than a certificate of the webhook lives here: it ends while the webhook cannot renew it.
pub(crate) const CERTIFICATE_LIFE_MS: u64 = 30_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
pub(crate) enum Fault {
    EtcdKilled { ms: u64 },
    EtcdPaused { ms: u64 },
    ApiServerKilled { ms: u64 },
    ApiServerRestarted,
    ApiServerPaused { ms: u64 },
    ControllerKilled { who: Who, ms: u64 },
    ControllerPaused { who: Who, ms: u64 },
    ControllerRestarted { who: Who },
    WebhookKilled { ms: u64 },
    WebhookPaused { ms: u64 },
    WebhookRestarted,
    CertificateOutlived { ms: u64 },
    Cut { link: Link, ms: u64 },
    Slow { link: Link, delay: u64, ms: u64 },
    Silent { link: Link, ms: u64 },
    Reset { link: Link },
    GoodEdit { profile: usize },
    ParameterRenamed { profile: usize },
    BadEdit { profile: usize, how: Mistake },
    ProfileStage { stage: &'static str },
    NamespaceStage { namespace: usize, stage: Option<&'static str> },
    ParameterEdited { namespace: usize, valid: bool },
    Tampered { what: Tamper },
    ProfileDeleted,
    DefinitionDeleted { ms: u64 },
    Storm { namespaces: u64 },
    NamespacesDeleted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Who {
    Leader,
    Follower,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Link {
    /// From the leading controller to the API server.
    Leader,
    /// From both controllers.
    Controllers,
    /// From the webhook to the API server.
    Webhook,
    /// From the API server to the webhook.
    Calls,
}

/// What is wrong with an edited profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Mistake {
    UnknownParameter,
    Expression,
}

/// What somebody does to generated objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Tamper {
    PolicyDeleted,
    PolicyEdited,
    BindingDeleted,
    BindingEdited,
    ParametersDeleted,
    ParametersEdited,
}

/// What waits for what: faults of one lane come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, EnumIter)]
pub(crate) enum Lane {
    ControlPlane,
    Controllers,
    Webhook,
    Network,
    Users,
    Upheavals,
    Removals,
    Namespaces,
}

/// A fault and its time, in milliseconds from the start. On a busy machine it comes later: after the one before it in its
/// lane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    pub(crate) at: u64,
    pub(crate) lane: Lane,
    pub(crate) fault: Fault,
}

impl Fault {
    /// Whether it is left out when those before it in its lane have taken too long.
    pub(crate) fn may_be_left_out(&self) -> bool {
        matches!(self, Self::Tampered { .. } | Self::ProfileDeleted)
    }

    /// Its name.
    pub(crate) fn kind(&self) -> &'static str {
        self.into()
    }

    /// How long it lasts by itself, in milliseconds.
    fn lasts(&self) -> u64 {
        match self {
            Self::EtcdKilled { ms }
            | Self::EtcdPaused { ms }
            | Self::ApiServerKilled { ms }
            | Self::ApiServerPaused { ms }
            | Self::ControllerKilled { ms, .. }
            | Self::ControllerPaused { ms, .. }
            | Self::WebhookKilled { ms }
            | Self::WebhookPaused { ms }
            | Self::CertificateOutlived { ms }
            | Self::Cut { ms, .. }
            | Self::Slow { ms, .. }
            | Self::Silent { ms, .. }
            | Self::DefinitionDeleted { ms } => *ms,
            _ => 0,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

type Deal = fn(&mut Rng) -> Fault;

fn who(rng: &mut Rng) -> Who {
    [Who::Leader, Who::Leader, Who::Follower, Who::Both][rng.usize(..4)]
}

fn link(rng: &mut Rng) -> Link {
    [Link::Leader, Link::Controllers, Link::Webhook, Link::Calls][rng.usize(..4)]
}

fn stage(rng: &mut Rng) -> &'static str {
    ["Deny", "Warn", "Audit"][rng.usize(..3)]
}

const CONTROL_PLANE: [Deal; 5] = [
    |rng| Fault::EtcdKilled { ms: rng.u64(0..3_000) },
    |rng| Fault::EtcdPaused { ms: rng.u64(500..6_000) },
    |rng| Fault::ApiServerKilled { ms: rng.u64(0..5_000) },
    |_| Fault::ApiServerRestarted,
    |rng| Fault::ApiServerPaused { ms: rng.u64(500..10_000) },
];
const CONTROLLERS: [Deal; 4] = [
    |rng| Fault::ControllerKilled { who: who(rng), ms: rng.u64(0..5_000) },
    |rng| Fault::ControllerKilled { who: Who::Leader, ms: rng.u64(0..12_000) },
    |rng| Fault::ControllerPaused { who: who(rng), ms: rng.u64(1_000..15_000) },
    |rng| Fault::ControllerRestarted { who: who(rng) },
];
const WEBHOOK: [Deal; 4] = [
    |rng| Fault::WebhookKilled { ms: rng.u64(0..8_000) },
    |rng| Fault::WebhookPaused { ms: rng.u64(1_000..8_000) },
    |_| Fault::WebhookRestarted,
    |rng| Fault::CertificateOutlived { ms: CERTIFICATE_LIFE_MS + rng.u64(1_000..6_000) },
];
const NETWORK: [Deal; 4] = [
    |rng| Fault::Cut { link: link(rng), ms: rng.u64(500..9_000) },
    |rng| Fault::Slow { link: link(rng), delay: rng.u64(20..400), ms: rng.u64(2_000..12_000) },
    |rng| Fault::Silent { link: link(rng), ms: rng.u64(500..9_000) },
    |rng| Fault::Reset { link: link(rng) },
];
const USERS: [Deal; 9] = [
    |rng| Fault::GoodEdit { profile: rng.usize(..3) },
    |rng| Fault::GoodEdit { profile: rng.usize(..3) },
    |rng| Fault::ParameterRenamed { profile: rng.usize(..2) },
    |rng| Fault::BadEdit { profile: rng.usize(..3), how: Mistake::UnknownParameter },
    |rng| Fault::BadEdit { profile: rng.usize(..3), how: Mistake::Expression },
    |rng| Fault::ProfileStage { stage: stage(rng) },
    |rng| Fault::ProfileStage { stage: stage(rng) },
    |rng| Fault::NamespaceStage { namespace: rng.usize(..3), stage: rng.bool().then(|| stage(rng)) },
    |rng| Fault::ParameterEdited { namespace: rng.usize(..2), valid: rng.bool() },
];
const UPHEAVALS: [Deal; 1] = [|rng| Fault::Tampered { what: tamper(rng) }];
const REMOVALS: [Deal; 1] = [|_| Fault::ProfileDeleted];
const DEFINITION: Deal = |rng| Fault::DefinitionDeleted { ms: rng.u64(0..8_000) };
const STORMS: [Deal; 3] =
    [|_| Fault::Storm { namespaces: 0 }, |_| Fault::Storm { namespaces: 0 }, |_| Fault::NamespacesDeleted];

fn tamper(rng: &mut Rng) -> Tamper {
    [
        Tamper::PolicyDeleted,
        Tamper::PolicyEdited,
        Tamper::BindingDeleted,
        Tamper::BindingEdited,
        Tamper::ParametersDeleted,
        Tamper::ParametersEdited,
    ][rng.usize(..6)]
}

/// The faults of so many seconds, by time.
pub(crate) fn schedule(seed: u64, seconds: u64) -> Vec<Step> {
    let lanes: [(Lane, &[Deal], (u64, u64)); 8] = [
        (Lane::ControlPlane, &CONTROL_PLANE, (20_000, 45_000)),
        (Lane::Controllers, &CONTROLLERS, (25_000, 60_000)),
        (Lane::Webhook, &WEBHOOK, (6_000, 20_000)),
        (Lane::Network, &NETWORK, (12_000, 30_000)),
        (Lane::Users, &USERS, (1_500, 5_000)),
        (Lane::Upheavals, &UPHEAVALS, (3_000, 12_000)),
        (Lane::Removals, &REMOVALS, (20_000, 60_000)),
        (Lane::Namespaces, &STORMS, (15_000, 35_000)),
    ];
    let end = seconds * 1_000;
    let mut steps = Vec::new();
    for (number, (lane, deals, gaps)) in (0_u64..).zip(lanes) {
        // Each lane has numbers of its own: another kind of fault in one changes nothing in the others.
        let mut rng = Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number);
        let mut deck: Vec<Deal> = Vec::new();
        let mut at = rng.u64(gaps.0 / 4..gaps.1 / 2);
        while at < end {
            if deck.is_empty() {
                deck.extend(deals);
                rng.shuffle(&mut deck);
            }
            let Some(deal) = deck.pop() else { break };
            let fault = deal(&mut rng);
            let lasts = fault.lasts();
            steps.push(Step { at, lane, fault });
            at += lasts + rng.u64(gaps.0..gaps.1);
        }
    }
    // It closes namespaces until all is back, so it is rare: once in 200 s.
    let mut rng = Rng::with_seed(seed ^ 0xDEF1);
    for turn in 0..seconds / 200 {
        let at = turn * 200_000 + rng.u64(30_000..140_000);
        steps.push(Step { at, lane: Lane::Removals, fault: DEFINITION(&mut rng) });
    }
    steps.sort_by_key(|step| (step.at, step.lane));
    let storms = steps.iter().filter(|step| matches!(step.fault, Fault::Storm { .. })).count() as u64;
    for step in &mut steps {
        if let Fault::Storm { namespaces } = &mut step.fault {
            *namespaces = (NAMESPACES * seconds / 600 / storms).max(1);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_same_seed_gives_the_same_schedule(seed: u64, seconds in 1_u64..900) {
            prop_assert_eq!(schedule(seed, seconds), schedule(seed, seconds));
        }

        #[test]
        fn steps_are_sorted_and_within_the_time(seed: u64, seconds in 1_u64..900) {
            let steps = schedule(seed, seconds);
            prop_assert!(steps.is_sorted_by_key(|step| step.at));
            prop_assert!(steps.iter().all(|step| step.at < seconds * 1_000));
        }

        #[test]
        fn ten_minutes_have_faults_of_every_kind(seed: u64) {
            let steps = schedule(seed, 600);
            let kinds: BTreeSet<_> = steps.iter().map(|step| step.fault.kind()).collect();
            prop_assert_eq!(kinds.len(), 27, "{:?}", kinds);
        }

        #[test]
        fn faults_of_a_lane_leave_each_other_time(seed: u64) {
            let steps = schedule(seed, 600);
            let of_lane: Vec<_> = steps.iter().filter(|step| step.lane == Lane::ControlPlane).collect();
            for pair in of_lane.windows(2) {
                prop_assert!(pair[0].at + pair[0].fault.lasts() < pair[1].at);
            }
        }
    }

    #[test]
    fn different_seeds_give_different_schedules() {
        assert_ne!(schedule(1, 600), schedule(2, 600));
    }

    #[test]
    fn storms_create_four_thousand_namespaces_in_ten_minutes() {
        let created: u64 = schedule(1, 600)
            .iter()
            .map(|step| if let Fault::Storm { namespaces } = step.fault { namespaces } else { 0 })
            .sum();
        assert!((3_900..=4_000).contains(&created), "{created}");
    }
}
