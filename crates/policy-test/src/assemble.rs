//! From the content of a suite to a cluster and requests.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::Arc,
};

use palisade_admission::requests::{PolicyKind, Request};
use palisade_cel::Minor;
use palisade_manifest::Problem;
use serde_json::Value as Json;

use crate::{
    Case, Server, Suite,
    assertion::Assertion,
    cluster::{self, Member, Source},
    format::ExpectFields,
    loader::Loader,
    places::{Origin, Place},
    request::RequestFields,
    run::unasked,
    test_cluster::TestCluster,
};

/// The namespaces that every cluster has.
const OWN_NAMESPACES: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// A case before there is a cluster.
pub(crate) struct Draft {
    pub name: String,
    pub range: Range<usize>,
    pub minor: Minor,
    pub asked: Question,
    pub expect: ExpectFields,
    pub assertions: Vec<Assertion>,
    /// The objects that only this case adds to the cluster.
    pub extra: Vec<Json>,
    /// The policy to use if its constraints leave the request out.
    pub open: Option<Json>,
}

/// The request of a case.
pub(crate) enum Question {
    Fields(Box<RequestFields>),
    Review(Box<Request>),
}

/// The treatment of policies without a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingBinding {
    /// Bind them.
    Bind,
    /// Report that they do nothing.
    Note,
    /// Nothing: each case binds its own.
    Leave,
}

/// The clusters of a suite, one for each version and each set of objects that single cases add.
#[derive(Default)]
struct ClusterPool {
    /// Without the objects of single cases, and the policies that the API server rejects, with the reason.
    bases: BTreeMap<Minor, (TestCluster, BTreeMap<String, String>)>,
    keys: Vec<(Minor, Vec<Json>)>,
    made: Vec<TestCluster>,
}

impl Loader<'_> {
    /// The suite, given its cluster and its requests.
    pub fn finish(
        mut self,
        name: String,
        members: Vec<Member>,
        drafts: Vec<Draft>,
        unbound: MissingBinding,
    ) -> Result<Suite, Vec<Problem>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let (mut members, sources) = cluster::lower(members, self.server.extension, self.files.now())?;
        self.bind(&mut members, unbound);
        let mut clusters = ClusterPool::default();
        let mut cases = Vec::new();
        for draft in drafts {
            cases.extend(self.assemble(draft, (&members, &sources), &mut clusters)?);
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let (source, clusters) = (Arc::clone(self.source), clusters.made);
        Ok(Suite {
            name,
            source,
            cases,
            notes: self.notes,
            clusters,
            members: Arc::new(members),
            sources: Arc::new(sources),
        })
    }

    fn assemble(
        &mut self,
        draft: Draft,
        (members, sources): (&[Member], &[Source]),
        clusters: &mut ClusterPool,
    ) -> Result<Option<Case>, Vec<Problem>> {
        let policies: BTreeSet<_> = cluster::policies(members).map(Member::name).collect();
        if let Some(wanted) = draft.expect.policy.as_ref().filter(|wanted| !policies.contains(wanted.as_str())) {
            let known = policies.iter().copied().collect::<Vec<_>>().join(", ");
            let problem = Problem::new(format!("{}: there is no policy {wanted:?}", draft.name));
            self.problems.push(problem.at(self.source, draft.range).help(format!("known here: {known}")));
            return Ok(None);
        }
        let mut index = self.cluster((members, sources), clusters, (draft.minor, draft.extra.clone()))?;
        let cluster = &mut clusters.made[index];
        let (request, mut decoded) = match draft.asked {
            Question::Review(request) => (*request, true),
            Question::Fields(asked) => match asked.request(cluster.kinds()) {
                Ok(request) => (request, false),
                Err(error) => {
                    let problem = Problem::new(format!("{}: {error}", draft.name));
                    self.problems.push(problem.at(self.source, draft.range));
                    return Ok(None);
                }
            },
        };
        let named = |member: &Member| member.kind() == "Namespace" && member.name() == request.namespace;
        let there = OWN_NAMESPACES.contains(&&*request.namespace) || members.iter().any(named);
        if !there && !request.namespace.is_empty() {
            cluster.ensure_namespace(&request.namespace);
        }
        let left_out = cluster.trace(PolicyKind::Validating, &request).iter().any(|trace| {
            trace.matched == Some(false)
                && trace.binding.is_none()
                && draft.expect.policy.as_ref() == Some(&trace.policy)
        });
        if let Some(open) = draft.open.filter(|_| left_out) {
            self.notes.push(format!(
                "{}: the matchConstraints of the policy exclude this request: an API server does not evaluate it, but \
                 the suite does",
                draft.name
            ));
            let extra = std::iter::once(open).chain(draft.extra).collect();
            index = self.cluster((members, sources), clusters, (draft.minor, extra))?;
            if !there && !request.namespace.is_empty() {
                clusters.made[index].ensure_namespace(&request.namespace);
            }
        }
        let refused = &clusters.bases[&draft.minor].1;
        let unjudged = draft.expect.policy.as_ref().and_then(|policy| refused.get(policy)).cloned();
        if self.imported && unjudged.is_none() {
            // The other tools let policies judge any object.
            if let Some(why) = unasked(&clusters.made[index].admit(&request)) {
                self.notes.push(format!(
                    "{}: the object is evaluated unprocessed, unlike in an API server: {why}",
                    draft.name
                ));
                decoded = true;
            }
        }
        let place = Place::of(self.source, draft.range.start);
        let (name, expect, assertions) = (draft.name, draft.expect, draft.assertions);
        Ok(Some(Case { name, place, cluster: index, request, decoded, unjudged, expect, assertions }))
    }

    fn bind(&mut self, members: &mut Vec<Member>, unbound: MissingBinding) {
        if unbound == MissingBinding::Leave {
            return;
        }
        let mut bindings = Vec::new();
        for policy in cluster::unbound(members) {
            if unbound == MissingBinding::Bind {
                let object = cluster::generated_binding(policy);
                bindings.push(Member { object, origin: Origin { generated: true, ..policy.origin.clone() } });
            } else {
                let (kind, name) = (policy.kind(), policy.name());
                self.notes.push(format!(
                    "{kind} {name} has no binding in this suite, so it is never evaluated: add its binding to policies, \
                     or set generateBindings: true"
                ));
            }
        }
        members.extend(bindings);
    }

    /// The cluster for a version and the objects of one case. Policies are compiled once for a version.
    fn cluster(
        &mut self,
        (members, sources): (&[Member], &[Source]),
        clusters: &mut ClusterPool,
        key: (Minor, Vec<Json>),
    ) -> Result<usize, Vec<Problem>> {
        if let Some(known) = clusters.keys.iter().position(|known| *known == key) {
            return Ok(known);
        }
        let (minor, extra) = &key;
        if !clusters.bases.contains_key(minor) {
            let base = self.base(*minor, members, sources)?;
            clusters.bases.insert(*minor, base);
        }
        let mut cluster = clusters.bases[minor].0.clone();
        for object in extra {
            match cluster.apply(object.clone()) {
                // A policy that is rejected was reported, and cannot be bound.
                Err(why) if !self.imported => return Err(vec![self.object.problem("", why)]),
                _ => {}
            }
        }
        clusters.made.push(cluster);
        clusters.keys.push(key);
        Ok(clusters.keys.len() - 1)
    }

    /// The cluster with all members in it, and the policies that it rejects.
    fn base(
        &mut self,
        minor: Minor,
        members: &[Member],
        sources: &[Source],
    ) -> Result<(TestCluster, BTreeMap<String, String>), Vec<Problem>> {
        let server = Server { minor, ..self.server.clone() };
        let (cluster, notes, refused) = cluster::build(&server, members, sources);
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let message =
            |member: &Member, why: &str| format!("the API server rejects {} {}: {why}", member.kind(), member.name());
        if !self.imported && !refused.is_empty() {
            let problem = |(member, why): &(&Member, String)| {
                member.problem(message(member, why)).help("palisade lint lists all errors in it")
            };
            return Err(refused.iter().map(problem).collect());
        }
        self.notes.extend(refused.iter().map(|(member, why)| message(member, why)));
        let policies = refused.into_iter().filter(|(member, _)| member.kind().ends_with("AdmissionPolicy"));
        Ok((cluster, policies.map(|(member, why)| (member.name().to_owned(), message(member, &why))).collect()))
    }
}
