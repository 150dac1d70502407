//! From a document to a tree of its parts, each with its place.

use std::{borrow::Cow, collections::BTreeMap, ops::Range};

use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, StructureStyle, Tag, options};

use super::{Fault, repair::Repaired, strict};
use crate::node::{Content, Form, Node};

/// More nodes than 15,000 namespaces have, with all fields that an API server adds.
pub(super) const MAX_NODES: usize = 2_000_000;
/// Deeper values would overflow the stack of code that walks them. The API server reads 10,000 (`sigs.k8s.io/json`,
/// `encoding/json`).
pub(super) const MAX_DEPTH: usize = 256;

/// A document.
pub(crate) struct Tree<'a> {
    /// All of it.
    pub root: Node<'a>,
    /// The targets of aliases.
    pub anchors: Anchors<'a>,
    /// Whether it was written as JSON.
    pub json: bool,
}

/// The targets of aliases, by the number of the anchor.
pub(crate) type Anchors<'a> = BTreeMap<usize, Node<'a>>;

/// A list or mapping that has begun but not ended.
struct Open<'a> {
    start: usize,
    block: bool,
    mapping: bool,
    form: Form,
    children: Vec<Node<'a>>,
}

/// Why there is no tree.
enum Failed {
    Scan(ScanError),
    Fault(Fault),
}

/// The document in these bytes of a text; none if they are empty. kubectl ignores everything after its end (`...`).
/// `left` is how many parts it may have, and afterwards how many others may have.
pub(super) fn tree<'a>(
    text: &'a str,
    range: Range<usize>,
    json: bool,
    left: &mut usize,
) -> Result<Option<Tree<'a>>, Fault> {
    let (start, document) = (range.start, &text[range]);
    // Byte order marks are not part of the document.
    let content = if json { document } else { document.trim_start_matches('\u{feff}') };
    let (start, document) = (start + document.len() - content.len(), content);
    if let Some((at, found)) = document.char_indices().find(|(_, c)| !json && is_control(*c)) {
        let message = format!("control characters are not allowed: U+{:04X}", u32::from(found));
        return Err(Fault { message, offset: start + at });
    }
    let mut repaired = Repaired::new(document, json);
    let mut failed = None;
    let whole = start..start + document.len();
    if repaired.is_as_it_was() {
        match parse(document, json, left) {
            Ok(root) => {
                let finish = |root| finished(text, whole, root, json, &|offset| start + offset);
                return root.map(finish).transpose();
            }
            Err(first) => failed = Some(first),
        }
    }
    loop {
        match failed.take() {
            None => {}
            Some(Failed::Fault(fault)) => return Err(fault.moved(&|offset| start + repaired.original(offset))),
            Some(Failed::Scan(error)) if repaired.repair(&error) => {}
            Some(Failed::Scan(error)) => {
                let offset = error.marker().byte_offset().unwrap_or_default().min(repaired.text.len());
                return Err(Fault { message: error.info(), offset: start + repaired.original(offset) });
            }
        }
        match parse(&repaired.text, json, left) {
            Ok(root) => {
                let finish =
                    |root| finished(text, whole, owned(root), json, &|offset| start + repaired.original(offset));
                return root.map(finish).transpose();
            }
            Err(again) => failed = Some(again),
        }
    }
}

/// Whether libyaml rejects the character (`readerc.go`).
fn is_control(c: char) -> bool {
    !matches!(c, '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

fn finished<'a>(
    text: &str,
    document: Range<usize>,
    mut root: Node<'a>,
    json: bool,
    place: &dyn Fn(usize) -> usize,
) -> Result<Tree<'a>, Fault> {
    move_all(&mut root, place);
    if !json {
        strict::check(text, document, &root)?;
    }
    let anchors = anchors(&root)?;
    Ok(Tree { root, anchors, json })
}

fn parse<'a>(text: &'a str, json: bool, left: &mut usize) -> Result<Option<Node<'a>>, Failed> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut root = None;
    let mut options = options! {
        // Comments are not part of any object, however many there are.
        emit_comments: false,
        emit_anchor_events: true,
    };
    if json {
        options.simple_key_max_lookahead = usize::MAX;
    }
    for (count, next) in Parser::new_from_str_with_options(text, options).enumerate() {
        let (event, span) = match next {
            Ok(next) => next,
            // It is not known yet that the document is over, which is all that is read.
            Err(error)
                if root.is_some()
                    && open.is_empty()
                    && matches!(error.kind(), ErrorKind::MissingDocumentEndBeforeDirective) =>
            {
                return Ok(root);
            }
            Err(error) => return Err(Failed::Scan(error)),
        };
        let span = span.byte_range().unwrap_or_default();
        let limit = |message| Err(Failed::Fault(Fault { message, offset: span.start }));
        if count > *left {
            return limit(format!("more than {MAX_NODES} parts in one file"));
        }
        if open.len() > MAX_DEPTH {
            return limit(format!("nested deeper than {MAX_DEPTH}"));
        }
        let node = match event {
            Event::Scalar(value, style, anchor, tag) => Node {
                span,
                block: false,
                content: Content::Scalar(value),
                form: Form { anchor, tag: full(tag.as_deref()), plain: style == ScalarStyle::Plain },
            },
            Event::Alias(id) => Node { span, block: false, content: Content::Alias(id), form: Form::default() },
            Event::SequenceStart(style, anchor, _) => {
                open.push(Open::new(span.start, style, false, anchor));
                continue;
            }
            Event::MappingStart(style, anchor, _) => {
                open.push(Open::new(span.start, style, true, anchor));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(ended) => ended.close(span.end),
                None => continue,
            },
            Event::Anchor(_, name) if !is_name(&name) => {
                return limit(format!(
                    "the name of the anchor &{name} has other characters than letters, digits, _ and -"
                ));
            }
            Event::DocumentEnd => {
                *left = left.saturating_sub(count);
                return Ok(root);
            }
            _ => continue,
        };
        match open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => root = Some(node),
        }
    }
    Ok(root)
}

/// Whether libyaml accepts it as the name of an anchor.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

fn full(tag: Option<&Tag>) -> Option<Box<str>> {
    tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()).into_boxed_str())
}

impl<'a> Open<'a> {
    fn new(start: usize, style: StructureStyle, mapping: bool, anchor: usize) -> Self {
        let form = Form { anchor, ..Form::default() };
        Self { start, block: style == StructureStyle::Block, mapping, form, children: Vec::new() }
    }

    fn close(self, end: usize) -> Node<'a> {
        // The parser notices the end of a block at the next token.
        let end = if self.block { self.children.last().map_or(self.start, |last| last.span.end) } else { end };
        let content = if self.mapping {
            let mut pairs = Vec::with_capacity(self.children.len() / 2);
            let mut children = self.children.into_iter();
            while let (Some(key), Some(value)) = (children.next(), children.next()) {
                pairs.push((key, value));
            }
            Content::Mapping(pairs)
        } else {
            Content::Sequence(self.children)
        };
        Node { span: self.start..end.max(self.start), block: self.block, content, form: self.form }
    }
}

/// The same node with a text of its own.
fn owned(node: Node<'_>) -> Node<'static> {
    let content = match node.content {
        Content::Scalar(text) => Content::Scalar(Cow::Owned(text.into_owned())),
        Content::Sequence(items) => Content::Sequence(items.into_iter().map(owned).collect()),
        Content::Mapping(pairs) => {
            Content::Mapping(pairs.into_iter().map(|(key, value)| (owned(key), owned(value))).collect())
        }
        Content::Alias(id) => Content::Alias(id),
    };
    Node { span: node.span, block: node.block, content, form: node.form }
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
