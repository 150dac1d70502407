//! Config maps and secrets (`ValidateConfigMap` and `ValidateSecret` in `pkg/apis/core/validation/validation.go`).

use palisade_cel::strfmt::decode_base64;
use serde_json::Value;

use super::{formats, node::Node};
use crate::validation::Checking;

/// The most bytes of one.
const MAX_BYTES: usize = 1 << 20;

/// How many bytes a base64 text is of.
fn size(text: &str) -> usize {
    decode_base64(text).map_or(0, |bytes| bytes.len())
}

pub(super) fn config_map(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let mut total = 0;
    for (key, value) in object.entries("data") {
        checking.each(&value.path, key, &formats::config_key(key));
        if object.map("binaryData").is_some_and(|binary| binary.contains_key(key)) {
            checking.invalid(&value.path, key, "duplicate of key present in binaryData");
        }
        total += value.string().len();
    }
    for (key, value) in object.entries("binaryData") {
        checking.each(&value.path, key, &formats::config_key(key));
        total += size(value.string());
    }
    if total > MAX_BYTES {
        checking.too_long("", MAX_BYTES);
    }
}

pub(super) fn secret(checking: &mut Checking<'_>, object: &Value) {
    let object = Node::new(object, "");
    let mut total = 0;
    for (key, value) in object.entries("data") {
        checking.each(&value.path, key, &formats::config_key(key));
        total += size(value.string());
    }
    if total > MAX_BYTES {
        checking.too_long("data", MAX_BYTES);
    }
    let data = object.map("data");
    let has = |key: &str| data.is_some_and(|data| data.contains_key(key));
    let place = |key: &str| format!("data[{key}]");
    let need = |checking: &mut Checking<'_>, key: &str| {
        if !has(key) {
            checking.required(place(key), "");
        }
    };
    match object.text("type") {
        "kubernetes.io/service-account-token" => {
            let key = "kubernetes.io/service-account.name";
            let name = object.get("metadata").map("annotations").and_then(|map| map.get(key)).and_then(Value::as_str);
            if name.unwrap_or_default().is_empty() {
                checking.required(format!("metadata.annotations[{key}]"), "");
            }
        }
        kind @ ("kubernetes.io/dockercfg" | "kubernetes.io/dockerconfigjson") => {
            let key = if kind.ends_with("json") { ".dockerconfigjson" } else { ".dockercfg" };
            need(checking, key);
            if let Some(text) = data.and_then(|data| data.get(key)).and_then(Value::as_str) {
                registry(checking, place(key), text);
            }
        }
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            need(checking, "username");
            need(checking, "password");
        }
        "kubernetes.io/ssh-auth" => {
            let empty =
                data.and_then(|data| data.get("ssh-privatekey")).and_then(Value::as_str).is_none_or(str::is_empty);
            if empty {
                checking.required(place("ssh-privatekey"), "");
            }
        }
        "kubernetes.io/tls" => {
            need(checking, "tls.crt");
            need(checking, "tls.key");
        }
        _ => {}
    }
}

/// Credentials for registries are an object in JSON.
fn registry(checking: &mut Checking<'_>, field: String, text: &str) {
    let bytes = decode_base64(text).unwrap_or_default();
    let why = match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => {
            let found = match other {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                _ => "array",
            };
            format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
        }
        Err(_) if bytes.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(_) => {
            // The parser of Go names the byte, in words of its own.
            checking.unknown =
                Some(format!("{field} is not JSON; the API server refuses it in words that are not known here"));
            return;
        }
    };
    checking.invalid(field, "<secret contents redacted>", &why);
}
