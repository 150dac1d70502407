//! Exceptions: checks that are waived until a date, in the namespaces that a profile lists, or by an approved request
//! of a tenant.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{
    ApprovalState, ContainerException, Diagnostic, Exception, ExceptionCounts, ExceptionScope, MAX_CONTAINERS,
    MAX_WORKLOADS, ScopeKind, ToolSecurityException, ToolSecurityParamsSpec, ToolSecurityProfile,
    ToolSecurityProfileSpec, catalogue, conditions::ExceptionReason, objects,
};
use palisade_checks::image::is_id;

/// The exceptions of a profile, and what tenants can ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exceptions {
    profile: String,
    listed: Vec<Exception>,
    /// The checks that tenants can ask for.
    requestable: BTreeSet<String>,
    /// Those of them that look at containers one by one.
    of_containers: BTreeSet<String>,
    /// Those of them that evaluate objects other than pods and workloads.
    of_objects: BTreeSet<String>,
}

/// An exception request: the fields that its effect depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The profile.
    pub profile: String,
    /// The checks to lift.
    pub checks: Vec<String>,
    /// The containers, workloads or namespace that it applies to.
    pub scope: ExceptionScope,
    /// The time at which it ends.
    pub expires: Timestamp,
    /// Whether an approver has approved exactly this request.
    pub approval: ApprovalState,
}

impl From<&ToolSecurityException> for Request {
    fn from(exception: &ToolSecurityException) -> Self {
        let spec = &exception.spec;
        Self {
            profile: spec.profile.clone(),
            checks: spec.checks.clone(),
            scope: spec.scope.clone(),
            expires: spec.expires.0,
            approval: exception.approval_state(),
        }
    }
}

impl Exceptions {
    /// The exceptions, and the errors in them.
    pub(crate) fn new(name: &str, spec: &ToolSecurityProfileSpec) -> (Self, Vec<Diagnostic>) {
        let own = spec.custom_checks.iter().map(|check| check.id.as_str());
        let ids: Vec<_> = catalogue::ALL
            .iter()
            .map(|check| check.id)
            .chain(objects::ALL.iter().map(|check| check.id))
            .chain(own)
            .collect();
        let listed = spec.exceptions.iter().enumerate().flat_map(|(index, exception)| {
            let at = move |position| format!("spec.exceptions[{index}].checks[{position}]");
            exception.checks.iter().enumerate().map(move |(position, id)| (at(position), id))
        });
        let requests = spec.exception_requests.as_ref();
        let requested = requests.into_iter().flat_map(|requests| {
            let at = |position| format!("spec.exceptionRequests.checks[{position}]");
            requests.checks.iter().enumerate().map(move |(position, id)| (at(position), id))
        });
        let unknown = |(at, id): (String, &String)| {
            (!ids.contains(&id.as_str())).then(|| {
                Diagnostic::new(at, format!("unknown check {id:?}")).help(format!("the checks are {}", ids.join(", ")))
            })
        };
        let mut diagnostics: Vec<_> = listed.chain(requested).filter_map(unknown).collect();
        let message = requests.and_then(|requests| requests.message.as_deref()).unwrap_or_default();
        if message.contains(char::is_control) || message.chars().count() > MAX_MESSAGE {
            diagnostics.push(
                Diagnostic::new("spec.exceptionRequests.message", "must be one line of at most 256 characters")
                    .help("a denial is one line: write one short sentence"),
            );
        }
        let requestable = requests.into_iter().flat_map(|requests| requests.checks.iter().cloned()).collect();
        let listed = spec.exceptions.clone();
        let (of_containers, of_objects) = (BTreeSet::new(), BTreeSet::new());
        (Self { profile: name.to_owned(), listed, requestable, of_containers, of_objects }, diagnostics)
    }

    /// Sets the checks that evaluate each container separately.
    pub(crate) fn set_of_containers<'a>(&mut self, checks: impl IntoIterator<Item = &'a str>) {
        let checks = checks.into_iter().filter(|check| self.requestable.contains(*check));
        self.of_containers = checks.map(str::to_owned).collect();
    }

    /// Sets the checks that evaluate objects other than pods and workloads.
    pub(crate) fn set_of_objects<'a>(&mut self, checks: impl IntoIterator<Item = &'a str>) {
        let checks = checks.into_iter().filter(|check| self.requestable.contains(*check));
        self.of_objects = checks.map(str::to_owned).collect();
    }

    /// Whether there are none, and none can be requested.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.requestable.is_empty()
    }

    /// Adds the exceptions of a namespace to its parameters: those of the profile, and those that were requested there
    /// and approved.
    pub(crate) fn add<'a>(
        &self,
        params: &mut ToolSecurityParamsSpec,
        namespace: &str,
        requests: impl IntoIterator<Item = &'a Request>,
        now: Timestamp,
    ) {
        let (mut everywhere, mut workloads) = (Ends::default(), BTreeMap::<String, Ends>::new());
        let mut containers = BTreeSet::new();
        for exception in self.active(now).filter(|exception| exception.namespaces.iter().any(|one| one == namespace)) {
            everywhere.lift(&exception.checks, exception.expires.0);
        }
        for request in requests {
            if request.profile != self.profile || self.standing(request, now).0 != ExceptionReason::InForce {
                continue;
            }
            let ends = match request.scope.workload() {
                _ if request.scope.is_of_containers() => {
                    containers.extend(of_containers(request));
                    continue;
                }
                Some(workload) => workloads.entry(workload).or_default(),
                None => &mut everywhere,
            };
            ends.lift(&request.checks, request.expires);
        }
        params.exceptions = everywhere.texts();
        // The API server accepts no more. What is left out has no effect, and the controller says so.
        params.workload_exceptions =
            workloads.into_iter().take(MAX_WORKLOADS).map(|(workload, ends)| (workload, ends.texts())).collect();
        params.container_exceptions = containers.into_iter().take(MAX_CONTAINERS).collect();
    }

    /// Whether the parameters of a namespace include an approved request: there may be too many others.
    pub fn has_room(request: &Request, params: &ToolSecurityParamsSpec) -> bool {
        match request.scope.workload() {
            _ if request.scope.is_of_containers() => {
                of_containers(request).all(|one| params.container_exceptions.contains(&one))
            }
            Some(workload) => params.workload_exceptions.contains_key(&workload),
            None => true,
        }
    }

    /// The state of a request for this profile, with a message. It is active if the reason is `InForce`.
    pub fn standing(&self, request: &Request, now: Timestamp) -> (ExceptionReason, String) {
        let profile = &self.profile;
        if let Some(check) = request.checks.iter().find(|check| !self.requestable.contains(*check)) {
            let message = format!("spec.exceptionRequests of profile {profile} does not list check {check}");
            return (ExceptionReason::NotCovered, message);
        }
        if let Some(message) = self.wrong_scope(request) {
            return (ExceptionReason::NotCovered, message);
        }
        if request.scope.is_of_containers()
            && let Some(check) = request.checks.iter().find(|check| !self.of_containers.contains(*check))
        {
            let message =
                format!("check {check} does not evaluate containers separately; remove container and imagePrefix");
            return (ExceptionReason::NotCovered, message);
        }
        // Its text is compared with the beginning of what a pod says. An id is not a name.
        if let Some(prefix) = request.scope.image_prefix.as_ref().filter(|prefix| is_id(prefix)) {
            let message = format!(
                "imagePrefix {prefix} matches image IDs, which any image on a node can have; write a registry or a repository"
            );
            return (ExceptionReason::NotCovered, message);
        }
        if request.expires <= now {
            let message = "the exception has expired; it has no effect and can be deleted";
            return (ExceptionReason::Expired, message.to_owned());
        }
        match request.approval {
            ApprovalState::Current => (ExceptionReason::InForce, format!("active until {}", request.expires)),
            ApprovalState::Missing => {
                let message = "it has no effect until a user with the role palisade-exception-approver approves it";
                (ExceptionReason::AwaitingApproval, message.to_owned())
            }
            ApprovalState::Outdated => {
                let message = "it was changed after its approval; it has no effect until it is approved again";
                (ExceptionReason::ApprovalOutdated, message.to_owned())
            }
        }
    }

    /// The error of a request whose scope has no object that one of its checks evaluates.
    fn wrong_scope(&self, request: &Request) -> Option<String> {
        let scope = &request.scope;
        let is_of_object = scope.kind == ScopeKind::Object;
        if !is_of_object && !scope.is_of_containers() && scope.workload().is_none() {
            return None;
        }
        if is_of_object && scope.is_of_containers() {
            return Some("an object has no containers; remove container and imagePrefix".to_owned());
        }
        let check = request.checks.iter().find(|check| self.of_objects.contains(*check) != is_of_object)?;
        Some(if is_of_object {
            format!(
                "check {check} evaluates only pods and workloads; set scope to a workload, or to {{kind: Namespace}}"
            )
        } else {
            format!(
                "check {check} does not evaluate pods or workloads; set scope to {{kind: Object, resource: ..., name: ...}}, \
                 or to {{kind: Namespace}}"
            )
        })
    }

    /// All of them, as if one namespace and some workload had them all: an upper bound for every namespace.
    pub fn everywhere(&self, params: &mut ToolSecurityParamsSpec) {
        let mut ends = Ends::default();
        for exception in &self.listed {
            ends.lift(&exception.checks, exception.expires.0);
        }
        let mut asked = Ends::default();
        asked.lift(&self.requestable, Timestamp::MAX);
        if !self.requestable.is_empty() {
            params.workload_exceptions = [("Deployment/tenant".to_owned(), asked.texts())].into();
        }
        if let Some(check) = self.of_containers.first() {
            params.container_exceptions = vec![ContainerException {
                check: check.clone(),
                expires: Timestamp::MAX.to_string(),
                ..ContainerException::default()
            }];
        }
        ends.lift(&self.requestable, Timestamp::MAX);
        params.exceptions = ends.texts();
    }

    /// Whether parameters lift all that a request asks for, until its end or longer.
    pub fn has(request: &Request, params: &ToolSecurityParamsSpec) -> bool {
        let until = |end: &str| end.parse::<Timestamp>().is_ok_and(|end| end >= request.expires);
        let lifted = |ends: &BTreeMap<String, String>| {
            request.checks.iter().all(|check| ends.get(check).is_some_and(|end| until(end)))
        };
        match request.scope.workload() {
            _ if request.scope.is_of_containers() => Self::has_room(request, params),
            Some(workload) => params.workload_exceptions.get(&workload).is_some_and(lifted),
            None => lifted(&params.exceptions),
        }
    }

    /// When the next exception of the profile itself ends.
    pub fn next_end(&self, now: Timestamp) -> Option<Timestamp> {
        self.active(now).map(|exception| exception.expires.0).min()
    }

    /// How many the profile itself has; `None` if it has none.
    pub fn counts(&self, now: Timestamp) -> Option<ExceptionCounts> {
        let active = self.active(now).count();
        let counted = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let expired = self.listed.len() - active;
        let counts = ExceptionCounts { active: counted(active), expired: counted(expired), requested: None };
        (!self.listed.is_empty()).then_some(counts)
    }

    fn active(&self, now: Timestamp) -> impl Iterator<Item = &Exception> {
        self.listed.iter().filter(move |exception| exception.expires.0 > now)
    }
}

/// The parameters for an exception request for some containers, one for each check.
fn of_containers(request: &Request) -> impl Iterator<Item = ContainerException> {
    let Request { scope, expires, checks, .. } = request;
    checks.iter().map(|check| ContainerException {
        check: check.clone(),
        workload: scope.workload().unwrap_or_default(),
        container: scope.container.clone().unwrap_or_default(),
        image_prefix: scope.image_prefix.clone().unwrap_or_default(),
        expires: expires.to_string(),
    })
}

/// How exceptions can lift a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExemptionScope {
    /// Not at all.
    Never,
    /// For all containers of an object.
    Whole,
    /// Also for some of them.
    Containers,
}

impl ExemptionScope {
    pub fn of(spec: &ToolSecurityProfileSpec, id: &str) -> Self {
        if requestable(spec).any(|one| one == id) {
            Self::Containers
        } else if spec.exceptions.iter().any(|exception| exception.checks.iter().any(|one| one == id)) {
            Self::Whole
        } else {
            Self::Never
        }
    }
}

/// CEL of type bool, after another term: whether no exception lifts a check for one container.
pub(crate) fn unless_lifted(id: &str, container: &str) -> String {
    format!(
        " && !variables.liftedContainers.exists(e, e.check == '{id}' && (e.container == '' || e.container == {container}.name) \
         && {container}.?image.orValue('').startsWith(e.imagePrefix))"
    )
}

/// The longest sentence that says how to ask, in characters.
const MAX_MESSAGE: usize = 256;

/// Checks, each with the last time at which an exception from it ends.
#[derive(Default)]
struct Ends(BTreeMap<String, Timestamp>);

impl Ends {
    fn lift<'a>(&mut self, checks: impl IntoIterator<Item = &'a String>, expires: Timestamp) {
        for check in checks {
            let end = self.0.entry(check.clone()).or_insert(expires);
            *end = expires.max(*end);
        }
    }

    fn texts(self) -> BTreeMap<String, String> {
        self.0.into_iter().map(|(check, end)| (check, end.to_string())).collect()
    }
}

/// The ids of the checks that an exception waives or can waive on request.
pub(crate) fn excepted_checks(spec: &ToolSecurityProfileSpec) -> BTreeSet<&str> {
    let listed = spec.exceptions.iter().flat_map(|exception| &exception.checks);
    listed.chain(requestable(spec)).map(String::as_str).collect()
}

/// The ids of the checks that tenants can request exceptions from.
fn requestable(spec: &ToolSecurityProfileSpec) -> impl Iterator<Item = &String> {
    spec.exception_requests.iter().flat_map(|requests| &requests.checks)
}

/// CEL of type bool: whether tenants can request an exception from one of a list `violations`, and the sentence that
/// explains how; `None` if the profile has no such sentence.
pub(crate) fn how_to_ask(profile: &ToolSecurityProfile, violations: &str) -> Option<(String, String)> {
    let message = profile.spec.exception_requests.as_ref()?.message.clone().filter(|text| !text.is_empty())?;
    let begins: Vec<_> = requestable(&profile.spec).map(|id| format!("v.startsWith('[{id}] ')")).collect();
    Some((format!("{violations}.exists(v, {})", begins.join(" || ")), message))
}
