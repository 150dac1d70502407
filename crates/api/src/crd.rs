//! The CustomResourceDefinitions, as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray,
};
use kube::CustomResourceExt;

use crate::{ToolSecurityParams, ToolSecurityProfile};

/// All of them, in the order of their names.
pub fn all() -> Vec<CustomResourceDefinition> {
    let mut all = vec![ToolSecurityParams::crd(), ToolSecurityProfile::crd()];
    for crd in &mut all {
        for version in &mut crd.spec.versions {
            if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
                tidy(schema);
            }
        }
    }
    all
}

/// Makes a schema say no more than it means: absent, not null, is how a field is left out.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    // Line breaks of the source code are none of the text.
    schema.description =
        schema.description.take().map(|text| text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n"));
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        tidy(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy(items),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(tidy),
        None => {}
    }
}
