//! Which kinds there are.

use palisade_cel::schema::Kind;
use serde_json::Value as Json;

use super::{ResourceId, matching::Trouble};

/// Which kinds there are: those that parameters are taken from, and those that definitions add.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    crds: Vec<Json>,
}

impl Discovery {
    pub fn add_crd(&mut self, crd: &Json) {
        self.crds.retain(|one| one["metadata"]["name"] != crd["metadata"]["name"]);
        self.crds.push(crd.clone());
    }

    fn crd(&self, kind: &Kind) -> Option<&Json> {
        self.crds.iter().find(|crd| {
            let served = |version: &Json| version["name"] == *kind.version && version["served"] == true;
            crd["spec"]["group"] == *kind.group
                && crd["spec"]["names"]["kind"] == *kind.kind
                && crd["spec"]["versions"].as_array().is_some_and(|versions| versions.iter().any(served))
        })
    }

    pub fn is_namespaced(&self, kind: &Kind) -> Option<bool> {
        if let ("", "v1", of @ ("ConfigMap" | "Secret" | "Namespace")) = (&*kind.group, &*kind.version, &*kind.kind) {
            return Some(of != "Namespace");
        }
        self.crd(kind).map(|crd| crd["spec"]["scope"] == "Namespaced")
    }

    pub fn equivalents(&self, resource: &ResourceId, _: &str) -> Vec<(ResourceId, Kind)> {
        let crd = self.crds.iter().find(|crd| {
            crd["spec"]["group"] == *resource.group && crd["spec"]["names"]["plural"] == *resource.resource
        });
        let versions = crd.and_then(|crd| crd["spec"]["versions"].as_array().map(|versions| (crd, versions)));
        let Some((crd, versions)) = versions else { return vec![] };
        let served = versions.iter().filter(|version| version["served"] == true);
        let names = served.filter_map(|version| version["name"].as_str());
        names
            .map(|version| {
                let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default().to_owned();
                let id = ResourceId { version: version.to_owned(), ..resource.clone() };
                (id, Kind { group: resource.group.clone(), version: version.to_owned(), kind })
            })
            .collect()
    }

    pub fn convert(&self, object: &Json, from: &Kind, to: &Kind) -> Result<Json, Trouble> {
        let unknown = || Trouble::NoVerdict(format!("an object of {from} cannot be converted to {to} offline"));
        let crd = self.crd(to).filter(|_| from.group == to.group && from.kind == to.kind).ok_or_else(unknown)?;
        let schema = |version: &str| {
            crd["spec"]["versions"].as_array()?.iter().find(|one| one["name"] == *version).map(|one| &one["schema"])
        };
        let by_name = matches!(crd["spec"]["conversion"]["strategy"].as_str(), None | Some("None"));
        if !by_name || schema(&from.version) != schema(&to.version) {
            return Err(unknown());
        }
        let mut object = object.clone();
        object["apiVersion"] = format!("{}/{}", to.group, to.version).into();
        Ok(object)
    }
}
