//! The findings in the form of all commands.

use palisade_lint::{Finding, Report};
use serde_json::{Value as Json, json};

use crate::findings::{self, Findings, Rule};

/// The report with all rules.
pub(super) fn shared(report: &Report) -> Findings {
    let rule = |rule: &&palisade_lint::Rule| Rule {
        id: rule.id.to_owned(),
        title: rule.title.to_owned(),
        why: rule.why.to_owned(),
        page: Some(rule.help_uri()),
        severity: rule.severity,
        category: Some(rule.category.name()),
    };
    Findings {
        command: "lint",
        rules: palisade_profiles::lint::options().rules().iter().map(rule).collect(),
        found: report.findings.iter().map(finding).collect(),
        objects: report.objects,
    }
}

fn finding(finding: &Finding) -> findings::Finding {
    findings::Finding {
        rule: finding.rule.id.to_owned(),
        severity: finding.severity,
        message: match &finding.help {
            Some(help) => format!("{} ({help})", finding.message),
            None => finding.message.clone(),
        },
        object: finding.object.clone(),
        path: finding.path.clone(),
        source: finding.source.clone(),
        place: finding.place.clone(),
        properties: if finding.kinds.is_empty() { Json::Null } else { json!({"kinds": finding.kinds}) },
    }
}
