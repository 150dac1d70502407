//! # readOnlyRootFilesystem
//!
//! With a read-only root filesystem, a process cannot change the files of the image: it cannot add binaries or edit
//! configuration. Many images need writable paths; mount `emptyDir` volumes there.
//!
//! ## If your pod was denied
//!
//! Set `securityContext.readOnlyRootFilesystem: true` in each container. Mount an `emptyDir` volume at each path that
//! the program writes to, for example `/tmp`.

use serde_json::json;

use crate::settings::mutation::AdditionalDefault;
use crate::shared::defaulted::defaulted_when;
use crate::{Check, DefaultValue, Field, FieldDefault, FindingScope, Resolve, Rule, Subject, pod};

const FIELD: &str = "c.?securityContext.?readOnlyRootFilesystem";

/// The check.
pub static CHECK: Check = Check {
    id: "readOnlyRootFilesystem",
    title: "Read-only root filesystem",
    settings: &["privileges.readOnlyRootFilesystem"],
    psp: Some("readOnlyRootFilesystem"),
    pss: &[],
    fields: &[Field::Container("securityContext.readOnlyRootFilesystem")],
    fixtures: include_str!("read_only_root_filesystem.yaml"),
    compile: |settings, cx| {
        let violated = cx.when(
            "spec.privileges.readOnlyRootFilesystem",
            settings.privileges.read_only_root_filesystem.as_ref()?,
            &format!("!{FIELD}.orValue(false)"),
        )?;
        let says = format!(
            "'securityContext.readOnlyRootFilesystem is ' + string({FIELD}.orValue('unset')) + ', must be true'"
        );
        Some(Rule::one(FindingScope::Containers, violated, says))
    },
    defaults: |settings, _| {
        let demanded = settings.privileges.read_only_root_filesystem.as_ref();
        let when = defaulted_when(settings, AdditionalDefault::ReadOnlyRootFilesystem, demanded, true);
        let path = &["securityContext", "readOnlyRootFilesystem"];
        let default = |when| FieldDefault::new(Subject::Container, path, DefaultValue::Flag(true), when);
        when.map(default).into_iter().collect()
    },
    comply: |settings, values, pod| {
        let required = settings.privileges.read_only_root_filesystem.as_ref();
        if required.is_some_and(|required| required.resolve(values)) {
            pod::set_containers(pod, &["securityContext", "readOnlyRootFilesystem"], &json!(true));
        }
    },
    violate: |settings, values, pod| {
        let required = settings.privileges.read_only_root_filesystem.as_ref();
        let required = required.is_some_and(|required| required.resolve(values));
        if required {
            pod::set_container(pod, &["securityContext", "readOnlyRootFilesystem"], json!(false));
        }
        required
    },
};
