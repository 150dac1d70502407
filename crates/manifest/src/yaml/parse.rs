//! From a document to a tree of its parts, each with its place.

use std::{collections::BTreeMap, ops::Range};

use super::{Fault, json, limits::MAX_NODES, tree};
use crate::node::{Content, Node};

/// A document.
pub(crate) struct Tree<'a> {
    /// All of it.
    pub root: Node<'a>,
    /// The targets of aliases.
    pub anchors: Anchors<'a>,
    /// True if it was written as JSON.
    pub json: bool,
}

/// The targets of aliases, by the number of the anchor.
pub(crate) type Anchors<'a> = BTreeMap<usize, Node<'a>>;

/// The document in these bytes of a text; none if they are empty. kubectl ignores everything after its end (`...`).
/// `left` is how many parts it may have, and afterwards how many others may have.
pub(super) fn tree<'a>(
    text: &'a str,
    range: Range<usize>,
    json: bool,
    left: &mut usize,
) -> Result<Option<Tree<'a>>, Fault> {
    let (start, document) = (range.start, &text[range]);
    // A byte order mark is not part of the document.
    let content = if json { document } else { document.strip_prefix('\u{feff}').unwrap_or(document) };
    // The scanner takes a second one for the beginning of each line, and drops a character of it.
    let content = match content.strip_prefix('\u{feff}') {
        Some(after) if !json && after.trim().contains(['\n', '\r']) => {
            return Err(Fault { message: "duplicate byte order mark".to_owned(), offset: start });
        }
        Some(after) if !json => after,
        _ => content,
    };
    let (start, document) = (start + document.len() - content.len(), content);
    let root = if json {
        Some(json::read(document, left))
    } else {
        if let Some((at, found)) = document.char_indices().find(|(_, c)| is_control(*c)) {
            let message = format!("control characters are not allowed: U+{:04X}", u32::from(found));
            return Err(Fault { message, offset: start + at });
        }
        tree::read(document, left).transpose()
    };
    let place = |offset: usize| start + offset;
    let Some(root) = root else { return Ok(None) };
    let mut root = root.map_err(|fault| fault.moved(&place))?;
    move_all(&mut root, &place);
    let anchors = anchors(&root)?;
    Ok(Some(Tree { root, anchors, json }))
}

/// True if libyaml rejects the character (`readerc.go`).
fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Moves all places.
fn move_all(node: &mut Node<'_>, place: &dyn Fn(usize) -> usize) {
    node.span = place(node.span.start)..place(node.span.end);
    match &mut node.content {
        Content::Sequence(items) => items.iter_mut().for_each(|item| move_all(item, place)),
        Content::Mapping(pairs) => pairs.iter_mut().for_each(|(key, value)| {
            move_all(key, place);
            move_all(value, place);
        }),
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}

/// The targets of aliases.
fn anchors<'a>(root: &Node<'a>) -> Result<Anchors<'a>, Fault> {
    fn aliases(node: &Node<'_>, found: &mut Vec<usize>) {
        match &node.content {
            Content::Alias(id) => found.push(*id),
            Content::Sequence(items) => items.iter().for_each(|item| aliases(item, found)),
            Content::Mapping(pairs) => pairs.iter().for_each(|(key, value)| {
                aliases(key, found);
                aliases(value, found);
            }),
            Content::Scalar(_) => {}
        }
    }
    fn anchored<'n, 'a>(node: &'n Node<'a>, wanted: &[usize], found: &mut Vec<&'n Node<'a>>) {
        if wanted.binary_search(&node.form.anchor).is_ok() {
            found.push(node);
        }
        match &node.content {
            Content::Sequence(items) => items.iter().for_each(|item| anchored(item, wanted, found)),
            Content::Mapping(pairs) => pairs.iter().for_each(|(key, value)| {
                anchored(key, wanted, found);
                anchored(value, wanted, found);
            }),
            Content::Scalar(_) | Content::Alias(_) => {}
        }
    }
    fn parts(node: &Node<'_>) -> usize {
        1 + match &node.content {
            Content::Sequence(items) => items.iter().map(parts).sum(),
            Content::Mapping(pairs) => pairs.iter().map(|(key, value)| parts(key) + parts(value)).sum(),
            Content::Scalar(_) | Content::Alias(_) => 0,
        }
    }
    let mut wanted = Vec::new();
    aliases(root, &mut wanted);
    wanted.sort_unstable();
    wanted.dedup();
    let mut found = Vec::new();
    anchored(root, &wanted, &mut found);
    let mut left = MAX_NODES;
    let mut all = BTreeMap::new();
    for node in found {
        let message = "document contains excessive aliasing".to_owned();
        left = left.checked_sub(parts(node)).ok_or(Fault { message, offset: node.span.start })?;
        all.insert(node.form.anchor, node.clone());
    }
    Ok(all)
}
