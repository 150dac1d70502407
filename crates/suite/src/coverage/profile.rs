//! What of a profile the cases never exercised, in the profile's own terms: its checks, by their ids and the settings
//! that turn them on, and the branches in the expressions of custom checks.

use palisade_api::catalogue;
use palisade_apiserver::admission::{Evaluation, PolicyKind, Review};
use palisade_cel::eval::WatchKind;
use serde_json::Value as Json;

use super::{Coverage, Point, outcomes};
use crate::{Suite, cluster::Profile, places::Locator, world::World};

/// What a check came to in some case.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    nothing: bool,
    violation: bool,
}

pub(super) fn of_profile(profile: &Profile, suite: &Suite, reviews: &[Review], coverage: &mut Coverage) {
    let locator = Locator::new(&profile.member.origin);
    let mut add = |at: &str, path: &str, what: &str, missing: &'static str, covered: bool| {
        let (place, of) = (locator.field(at), profile.member.name().to_owned());
        coverage.add(Point { place, of, path: path.to_owned(), missing, what: what.to_owned() }, covered);
    };
    let checks = profile.compiled.checks.iter().map(|id| ((*id).to_owned(), *id, setting(profile, id)));
    let customs = profile.compiled.customs.iter();
    let customs = customs.map(|custom| (custom.variable(), custom.check.id.as_str(), custom.path.clone()));
    for (variable, id, path) in checks.chain(customs) {
        let (found, what) = (found(profile, &variable, id, reviews), format!("check {id}"));
        add(&path, &path, &what, "never passes", found.nothing);
        add(&path, &path, &what, "never finds a violation", found.violation);
    }
    for custom in &profile.compiled.customs {
        let variables = profile.variables(&custom.variable());
        let is_one = |policy: &str, path: &str| variables.iter().any(|one| (one.0, one.1.as_str()) == (policy, path));
        let expressions = suite.worlds.iter().flat_map(World::expressions);
        let own = expressions.filter(|one| one.kind == PolicyKind::Validating && is_one(one.policy, one.path));
        for watch in own.flat_map(|one| one.watches).filter(|watch| watch.kind != WatchKind::Whole) {
            // What is around the admin's expression in the policy has no line in the profile.
            let at = custom.relocate(&format!(":{}:{}", watch.position.line, watch.position.column));
            let Some((path, _)) = at.split_once(':') else { continue };
            for (what, missing, covered) in outcomes(path, watch) {
                add(&at, path, what, missing, covered);
            }
        }
    }
}

/// The path of the setting that turns a check on; of several the first that the profile has.
fn setting(profile: &Profile, id: &str) -> String {
    let settings = catalogue::ALL.iter().find(|check| check.id == id).map_or(&[][..], |check| check.settings);
    let is_written = |setting: &&&str| {
        let pointer = format!("/spec/{}", setting.replace('.', "/"));
        profile.member.object.pointer(&pointer).is_some()
    };
    let setting = settings.iter().find(is_written).or(settings.first()).copied().unwrap_or_default();
    format!("spec.{setting}")
}

/// What a check came to, where no exception left it out.
fn found(profile: &Profile, variable: &str, id: &str, reviews: &[Review]) -> Found {
    let (checks, exceptions) = (profile.variables(variable), profile.variables("excepted"));
    let is_of = |variables: &[(&str, String, &str)], one: &Evaluation| {
        let same = |(policy, path, _): &(&str, String, &str)| (*policy, path) == (&*one.policy, &one.path);
        one.kind == PolicyKind::Validating && variables.iter().any(same)
    };
    let mut found = Found::default();
    for review in reviews {
        let is_excepted = |of: &Evaluation| {
            let same =
                |one: &&Evaluation| (&one.policy, &one.binding, &one.param) == (&of.policy, &of.binding, &of.param);
            let listed = |one: &Evaluation| one.json().as_array().is_some_and(|ids| ids.contains(&Json::from(id)));
            review.evaluations.iter().filter(|one| is_of(&exceptions, one)).filter(same).any(listed)
        };
        for evaluation in review.evaluations.iter().filter(|one| is_of(&checks, one)) {
            let Json::Array(violations) = evaluation.json() else { continue };
            found.violation |= !violations.is_empty();
            found.nothing |= violations.is_empty() && !is_excepted(evaluation);
        }
    }
    found
}
