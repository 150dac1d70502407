//! `spec.images`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Change, Texts},
    Setting, at, redirect, setting,
};
use crate::Text;

/// Images that pods may run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Images {
    /// Registries, or paths in them, that images may come from: host[:port][/path], compared by path segment
    /// after docker.io and library/ are added; * for all, or $name. Applies to containers and image volumes.
    /// If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = ("self.all(x, x == '*' || (!x.endsWith('/') && !x.contains('://') && !x.contains(' ')))",
        "must be host[:port][/path], without a scheme and without a trailing slash"))]
    pub allowed_registries: Option<Vec<Text>>,
    /// Replacement of image registries. The image names of containers and image volumes are changed in each new pod,
    /// before policies are evaluated. Names in pod templates are not changed. If unset: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<redirect::Redirect>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("images.allowedRegistries", Texts(at!(images.allowed_registries))),
    setting("images.redirect", Change(&at!(images.redirect))),
];
