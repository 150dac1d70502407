//! The profiles that are edited, as they should be at a moment.

use palisade_tests::Cluster;
use serde_json::{Value as Json, json};

use crate::{Result, schedule::Mistake, users::UID};

/// Deny for all, parameters, defaults by the API server itself.
pub(crate) const TOOLS: &str = "chaos-tools";
/// The same, with defaults by the webhook.
pub(crate) const WEBHOOK: &str = "chaos-webhook";
/// No parameters; the stage goes up and down, and namespaces have stages of their own.
pub(crate) const STAGED: &str = "chaos-staged";
/// Somebody deletes it again and again.
pub(crate) const SHORT: &str = "chaos-short";
/// Somebody tampers with what it becomes.
pub(crate) const VICTIM: &str = "chaos-victim";

/// Those that are edited, by the numbers of the schedule.
pub(crate) const EDITED: [&str; 3] = [TOOLS, WEBHOOK, STAGED];

/// What was changed of a profile so far. None of it changes what the watched pods get.
#[derive(Clone, Debug)]
pub(crate) struct Revision {
    pub(crate) profile: &'static str,
    pub(crate) ports: usize,
    pub(crate) renamed: bool,
    pub(crate) stage: &'static str,
}

impl Revision {
    pub(crate) fn first(profile: &'static str) -> Self {
        Self { profile, ports: 0, renamed: false, stage: "Deny" }
    }

    pub(crate) fn object(&self) -> Result<Json> {
        let mut profile = Cluster::toolforge_profile(self.profile)?;
        let port = 8_000 + self.ports % 1_000;
        profile["spec"]["host"]["ports"] = json!([{"min": port, "max": port}]);
        profile["spec"]["enforcement"] = json!({"pods": self.stage, "workloads": self.stage});
        match self.profile {
            STAGED | SHORT => {
                profile["spec"]["enforcement"]["namespaceStages"] = json!("ByLabel");
                profile["spec"]["parameters"] = json!([]);
                return Ok(serde_json::from_str(&profile.to_string().replace("\"$uid\"", &UID.to_string()))?);
            }
            WEBHOOK => profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"}),
            _ => profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Auto"}),
        }
        let text = profile.to_string();
        let renamed = || text.replace("$uid", "$toolUid").replace("\"name\":\"uid\"", "\"name\":\"toolUid\"");
        Ok(serde_json::from_str(&if self.renamed { renamed() } else { text.clone() })?)
    }

    /// The profile with a mistake, by which it must not be accepted: what is in force stays.
    pub(crate) fn with(&self, how: Mistake) -> Result<Json> {
        let mut profile = self.object()?;
        let spec = &mut profile["spec"];
        match how {
            Mistake::UnknownParameter => {
                spec["users"]["runAsUser"]["ranges"] = json!([{"min": "$nobody", "max": "$nobody"}]);
            }
            Mistake::Expression => {
                spec["customChecks"] =
                    json!([{"id": "broken", "expression": "variables.spec.nothingLikeThis()", "message": "is broken"}]);
            }
        }
        Ok(profile)
    }
}
