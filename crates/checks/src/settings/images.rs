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
    /// after docker.io and library/ are added; * for all, or $name. Holds for containers and for image
    /// volumes. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    #[x_kube(validation = ("self.all(x, x == '*' || (!x.endsWith('/') && !x.contains('://') && !x.contains(' ')))",
        "a registry is host[:port][/path], without a scheme and without a slash at its end"))]
    pub allowed_registries: Option<Vec<Text>>,
    /// Where images are taken from instead of where a pod says: in each new pod the names of images are changed, of
    /// containers and of image volumes, before anything judges them. Names in pod templates are not. If absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<redirect::Redirect>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("images.allowedRegistries", Texts(at!(images.allowed_registries))),
    setting("images.redirect", Change(&at!(images.redirect))),
];
