//! A suite, and its cases.

use std::sync::Arc;

use palisade_admission::requests::{PolicyKind, Request, Review};
use palisade_cel::Minor;
use palisade_manifest::Source;

use crate::{
    assertion::Assertion,
    cluster::{self, Member},
    format::{ExpectFields, Verdict},
    places::{Origin, Place},
    test_cluster::TestCluster,
};

/// A suite that can be run.
#[derive(Clone)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// Its file.
    pub source: Arc<Source>,
    /// Its cases, in the order of the file.
    pub cases: Vec<Case>,
    /// Notes for its author: assumptions, and the parts of an imported suite that are not carried over.
    pub notes: Vec<String>,
    pub(crate) clusters: Vec<TestCluster>,
    /// The objects in its cluster.
    pub(crate) members: Arc<Vec<Member>>,
    /// The objects that some of them were made from.
    pub(crate) sources: Arc<Vec<cluster::Source>>,
}

impl Suite {
    /// The minor of the API server that a case asks.
    pub fn minor(&self, case: &Case) -> Minor {
        self.clusters[case.cluster].kinds().minor()
    }

    /// The API server's answer to another request, in the cluster of a case.
    pub fn ask(&self, case: &Case, request: &Request) -> Review {
        let cluster = &self.clusters[case.cluster];
        if case.decoded { cluster.review(request) } else { cluster.admit(request) }
    }

    /// The policies in its cluster.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Member> {
        cluster::policies(&self.members)
    }

    /// The CustomResourceDefinitions in its cluster that it tests: a case expects an invalid object of them, or there are no
    /// policies. Others only define what policies are about, or their parameters.
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &Member> {
        let no_policies = self.policies().next().is_none();
        let is_of = |case: &Case, member: &Member| case.request.resource.group_resource() == member.name();
        let expects = move |member: &Member| {
            self.cases.iter().any(|case| case.expect.verdict == Verdict::Invalid && is_of(case, member))
        };
        let definitions = self.members.iter().filter(|member| member.kind() == cluster::DEFINITION);
        definitions.filter(move |member| !member.origin.generated && (no_policies || expects(member)))
    }

    /// Where a policy is.
    pub(crate) fn policy(&self, kind: PolicyKind, name: &str) -> Option<&Origin> {
        let mut policies = self.policies();
        policies.find(|member| member.policy_kind() == kind && member.name() == name).map(|member| &member.origin)
    }
}

/// One request, and its expectation.
#[derive(Clone, Debug)]
pub struct Case {
    /// A description of the case.
    pub name: String,
    /// Where it is in the suite's file.
    pub place: Place,
    pub(crate) cluster: usize,
    pub(crate) request: Request,
    /// Whether the objects are as policies see them, and not as clients send them.
    pub(crate) decoded: bool,
    /// Why no request is sent, if none is.
    pub(crate) unjudged: Option<String>,
    pub(crate) expect: ExpectFields,
    /// Those of `expect.assert`, compiled.
    pub(crate) assertions: Vec<Assertion>,
}

impl Case {
    /// The request.
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The API server's answer, in the case's own cluster or in one like it.
    pub(crate) fn ask(&self, cluster: &TestCluster) -> Review {
        if self.decoded { cluster.review(&self.request) } else { cluster.admit(&self.request) }
    }
}
