//! Paths of files, and their modes.

use super::super::node::Node;
use crate::validation::Checking;

const FILE_MODE: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Texts that must not be empty.
pub(super) fn need(checking: &mut Checking<'_>, of: &Node<'_>, keys: &[&str]) {
    for key in keys {
        if of.text(key).is_empty() {
            checking.required(of.field(key), "");
        }
    }
}

pub(super) fn mode(checking: &mut Checking<'_>, of: &Node<'_>, key: &str) {
    if of.int(key).is_some_and(|mode| !(0..=0o777).contains(&mode)) {
        checking.wrong(&of.get(key), FILE_MODE);
    }
}

pub(super) fn key_to_path(checking: &mut Checking<'_>, item: &Node<'_>) {
    need(checking, item, &["key", "path"]);
    local(checking, &item.field("path"), item.text("path"));
    mode(checking, item, "mode");
}

/// A path without `..` (`validatePathNoBacksteps`).
pub(super) fn no_backsteps(checking: &mut Checking<'_>, field: impl Into<String>, path: &str) {
    if path.split('/').any(|part| part == "..") {
        checking.invalid(field, path, "must not contain '..'");
    }
}

/// A path below the one at hand (`validateLocalDescendingPath`).
pub(super) fn descending(checking: &mut Checking<'_>, field: &str, path: &str) {
    if path.starts_with('/') {
        checking.invalid(field, path, "must be a relative path");
    }
    no_backsteps(checking, field, path);
}

/// The same, not beginning with two dots (`ValidateLocalNonReservedPath`).
pub(super) fn local(checking: &mut Checking<'_>, field: &str, path: &str) {
    descending(checking, field, path);
    if path.starts_with("..") && !path.starts_with("../") {
        checking.invalid(field, path, "must not start with '..'");
    }
}
