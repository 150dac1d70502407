//! Kinds of objects that profiles may generate, as the chart's values list them.

use std::str::FromStr;

use kube::api::{ApiResource, GroupVersionKind};
use palisade_compiler::ObjectType;

/// A kind of objects that the controller may write in all namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKind {
    pub object_type: ObjectType,
    /// The plural name, as in RBAC rules.
    pub resource: String,
}

impl ObjectKind {
    /// For requests.
    pub fn api_resource(&self) -> ApiResource {
        let ObjectType { api_version, kind } = &self.object_type;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), &self.resource)
    }
}

impl FromStr for ObjectKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Option<Vec<_>> = text.split('/').map(|part| (!part.is_empty()).then_some(part)).collect();
        let (api_version, kind, resource) = match parts.as_deref() {
            Some([version, kind, resource]) => ((*version).to_owned(), kind, resource),
            Some([group, version, kind, resource]) => (format!("{group}/{version}"), kind, resource),
            _ => {
                return Err(format!(
                    "{text:?} must be APIVERSION/KIND/RESOURCE, for example apps/v1/Deployment/deployments"
                ));
            }
        };
        let object_type = ObjectType { api_version, kind: (*kind).to_owned() };
        Ok(Self { object_type, resource: (*resource).to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_an_api_version_a_name_and_a_plural() {
        let kind: ObjectKind = "rbac.authorization.k8s.io/v1/RoleBinding/rolebindings".parse().unwrap();
        let resource = kind.api_resource();
        assert_eq!((resource.group.as_str(), resource.version.as_str()), ("rbac.authorization.k8s.io", "v1"));
        assert_eq!((resource.kind.as_str(), resource.plural.as_str()), ("RoleBinding", "rolebindings"));
        assert_eq!("v1/Service/services".parse::<ObjectKind>().unwrap().api_resource().api_version, "v1");
        for wrong in ["", "v1", "v1/Service", "v1/Service/", "/v1/Service/services", "a/b/c/d/e"] {
            assert!(wrong.parse::<ObjectKind>().is_err(), "{wrong}");
        }
    }
}
