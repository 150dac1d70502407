//! The grammar: from tokens to the parts of a document (`parserc.go` of `go.yaml.in/yaml/v2`).

use std::collections::BTreeMap;

use super::{
    Fault,
    limits::{MAX_DEPTH, MAX_NODES},
    scalar::CORE,
    scan::{Kind, Scanner, Token},
};
use crate::node::{Content, Form, Node};

type Parsed<T> = Result<T, Fault>;

struct Reader<'a, 'l> {
    scanner: Scanner<'a>,
    /// How many parts there may be.
    left: &'l mut usize,
    depth: usize,
    /// The handles of tags, and the prefixes that they abbreviate.
    handles: Vec<(String, String)>,
    /// The numbers of anchors. Of two with the same name, an alias means the one before it.
    anchors: BTreeMap<&'a str, usize>,
    anchored: usize,
}

/// The optional anchor and tag before a part.
#[derive(Default)]
struct Properties {
    anchor: usize,
    tag: Option<String>,
    end: Option<usize>,
}

/// The first document of a text; none if it has none.
pub(super) fn read<'a>(text: &'a str, left: &mut usize) -> Parsed<Option<Node<'a>>> {
    let scanner = Scanner::new(text);
    let mut reader = Reader { scanner, left, depth: 0, handles: Vec::new(), anchors: BTreeMap::new(), anchored: 0 };
    reader.document()
}

impl<'a> Reader<'a, '_> {
    fn fail<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
        Err(Fault { message: message.into(), offset: at })
    }

    /// The beginning of the next token.
    fn here(&mut self) -> Parsed<usize> {
        self.scanner.peek().map(|token| token.start)
    }

    fn next_is(&mut self, of: fn(&Kind<'a>) -> bool) -> Parsed<bool> {
        self.scanner.peek().map(|token| of(&token.kind))
    }

    /// Takes the next token if it is of this kind, and returns its end.
    fn take_if(&mut self, of: fn(&Kind<'a>) -> bool) -> Parsed<Option<usize>> {
        if self.next_is(of)? { Ok(Some(self.scanner.take()?.end)) } else { Ok(None) }
    }

    fn document(&mut self) -> Parsed<Option<Node<'a>>> {
        let root = match self.scanner.peek()?.kind {
            Kind::StreamEnd => return Ok(None),
            Kind::Version(..) | Kind::TagDirective { .. } | Kind::DocumentStart => {
                self.directives()?;
                let start = self.here()?;
                if self.take_if(|kind| matches!(kind, Kind::DocumentStart))?.is_none() {
                    return Self::fail(start, "did not find expected <document start>");
                }
                let empty = |kind: &Kind<'_>| {
                    matches!(
                        kind,
                        Kind::Version(..)
                            | Kind::TagDirective { .. }
                            | Kind::DocumentStart
                            | Kind::DocumentEnd
                            | Kind::StreamEnd
                    )
                };
                if self.next_is(empty)? { self.empty_here()? } else { self.node(true, false)? }
            }
            _ => {
                self.directives()?;
                self.node(true, false)?
            }
        };
        // What follows is not read, but for the next token.
        self.scanner.peek()?;
        Ok(Some(root))
    }

    fn directives(&mut self) -> Parsed<()> {
        let mut version = false;
        loop {
            let start = self.here()?;
            match &self.scanner.peek()?.kind {
                Kind::Version(major, minor) => {
                    if version {
                        return Self::fail(start, "found duplicate %YAML directive");
                    }
                    if (*major, *minor) != (1, 1) {
                        return Self::fail(start, "found incompatible YAML document: kubectl reads YAML 1.1");
                    }
                    version = true;
                }
                Kind::TagDirective { handle, prefix } => {
                    if self.handles.iter().any(|(known, _)| known == handle) {
                        return Self::fail(start, "found duplicate %TAG directive");
                    }
                    self.handles.push((handle.clone(), prefix.clone()));
                }
                _ => break,
            }
            self.scanner.take()?;
        }
        for (handle, prefix) in [("!", "!"), ("!!", CORE)] {
            if self.handles.iter().all(|(known, _)| known != handle) {
                self.handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
        Ok(())
    }

    /// Counts a part of the document.
    fn count(&mut self, at: usize) -> Parsed<()> {
        match self.left.checked_sub(1) {
            Some(left) => *self.left = left,
            None => return Self::fail(at, format!("more than {MAX_NODES} parts in one file")),
        }
        Ok(())
    }

    fn empty(&mut self, at: usize) -> Parsed<Node<'a>> {
        self.count(at)?;
        let form = Form { anchor: 0, tag: None, plain: true };
        Ok(Node { span: at..at, block: false, content: Content::Scalar("".into()), form })
    }

    fn empty_here(&mut self) -> Parsed<Node<'a>> {
        let at = self.here()?;
        self.empty(at)
    }

    fn node(&mut self, block: bool, indentless: bool) -> Parsed<Node<'a>> {
        let first = self.here()?;
        self.count(first)?;
        if let Kind::Alias(name) = self.scanner.peek()?.kind {
            let Token { start, end, .. } = self.scanner.take()?;
            let Some(id) = self.anchors.get(name) else {
                return Self::fail(start, format!("unknown anchor '{name}' referenced"));
            };
            return Ok(Node { span: start..end, block: false, content: Content::Alias(*id), form: Form::default() });
        }
        let Properties { anchor, tag, end } = self.properties()?;
        let form = |plain: bool| Form { anchor, tag: tag.clone().map(String::into_boxed_str), plain };
        let start = self.here()?;
        match &self.scanner.peek()?.kind {
            Kind::BlockEntry if indentless => self.deeper(start, form(false), Self::indentless_sequence),
            Kind::Scalar { .. } => {
                let Token { kind, start, end } = self.scanner.take()?;
                let Kind::Scalar { value, plain } = kind else { return Self::fail(start, "no text") };
                Ok(Node { span: start..end, block: false, content: Content::Scalar(value), form: form(plain) })
            }
            Kind::FlowSequenceStart => self.deeper(start, form(false), Self::flow_sequence),
            Kind::FlowMappingStart => self.deeper(start, form(false), Self::flow_mapping),
            Kind::BlockSequenceStart if block => self.deeper(start, form(false), Self::block_sequence),
            Kind::BlockMappingStart if block => self.deeper(start, form(false), Self::block_mapping),
            _ => {
                // With an anchor or tag there may be nothing else.
                if let Some(end) = end {
                    let content = Content::Scalar("".into());
                    return Ok(Node { span: end..end, block: false, content, form: form(true) });
                }
                let of = if block { "block" } else { "flow" };
                Self::fail(start, format!("did not find expected node content while parsing a {of} node"))
            }
        }
    }

    fn properties(&mut self) -> Parsed<Properties> {
        let mut found = Properties::default();
        let (mut has_anchor, mut has_tag) = (false, false);
        loop {
            match &self.scanner.peek()?.kind {
                Kind::Anchor(name) if !has_anchor => {
                    let name = *name;
                    self.anchored += 1;
                    self.anchors.insert(name, self.anchored);
                    found.anchor = self.anchored;
                    has_anchor = true;
                }
                Kind::Tag { .. } if !has_tag => has_tag = true,
                _ => return Ok(found),
            }
            let Token { kind, start, end } = self.scanner.take()?;
            found.end = Some(end);
            if let Kind::Tag { handle, suffix } = kind {
                found.tag = Some(if handle.is_empty() {
                    suffix
                } else {
                    let known = self.handles.iter().find(|(known, _)| *known == handle);
                    let Some((_, prefix)) = known else {
                        return Self::fail(start, format!("found undefined tag handle {handle}"));
                    };
                    format!("{prefix}{suffix}")
                });
            }
        }
    }

    /// Reads the parts of a list or mapping, which is as long as they are.
    fn deeper(
        &mut self,
        start: usize,
        form: Form,
        read: fn(&mut Self) -> Parsed<(Content<'a>, bool, usize)>,
    ) -> Parsed<Node<'a>> {
        if self.depth >= MAX_DEPTH {
            return Self::fail(start, format!("nested deeper than {MAX_DEPTH}"));
        }
        self.depth += 1;
        let (content, block, end) = read(self)?;
        self.depth -= 1;
        // The end of a block is where its last part ends.
        let last = match &content {
            Content::Sequence(items) => items.last().map(|item| item.span.end),
            Content::Mapping(pairs) => pairs.last().map(|(_, value)| value.span.end),
            Content::Scalar(_) | Content::Alias(_) => None,
        };
        let end = if block { last.unwrap_or(start) } else { end };
        Ok(Node { span: start..end.max(start), block, content, form })
    }

    fn block_sequence(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        self.scanner.take()?;
        let mut items = Vec::new();
        while let Some(after) = self.take_if(|kind| matches!(kind, Kind::BlockEntry))? {
            let none = self.next_is(|kind| matches!(kind, Kind::BlockEntry | Kind::BlockEnd))?;
            items.push(if none { self.empty(after)? } else { self.node(true, false)? });
        }
        match self.take_if(|kind| matches!(kind, Kind::BlockEnd))? {
            Some(end) => Ok((Content::Sequence(items), true, end)),
            None => Self::fail(self.here()?, "did not find expected '-' indicator while parsing a block collection"),
        }
    }

    fn indentless_sequence(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        let mut items = Vec::new();
        while let Some(after) = self.take_if(|kind| matches!(kind, Kind::BlockEntry))? {
            let ends = |kind: &Kind<'_>| matches!(kind, Kind::BlockEntry | Kind::Key | Kind::Value | Kind::BlockEnd);
            let none = self.next_is(ends)?;
            items.push(if none { self.empty(after)? } else { self.node(true, false)? });
        }
        Ok((Content::Sequence(items), true, self.here()?))
    }

    fn block_mapping(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        let ends = |kind: &Kind<'_>| matches!(kind, Kind::Key | Kind::Value | Kind::BlockEnd);
        self.scanner.take()?;
        let mut pairs = Vec::new();
        while let Some(after) = self.take_if(|kind| matches!(kind, Kind::Key))? {
            let key = if self.next_is(ends)? { self.empty(after)? } else { self.node(true, true)? };
            let value = match self.take_if(|kind| matches!(kind, Kind::Value))? {
                Some(after) if self.next_is(ends)? => self.empty(after)?,
                Some(_) => self.node(true, true)?,
                None => self.empty_here()?,
            };
            pairs.push((key, value));
        }
        match self.take_if(|kind| matches!(kind, Kind::BlockEnd))? {
            Some(end) => Ok((Content::Mapping(pairs), true, end)),
            None => Self::fail(self.here()?, "did not find expected key while parsing a block mapping"),
        }
    }

    fn flow_sequence(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        let closes = |kind: &Kind<'_>| matches!(kind, Kind::FlowSequenceEnd);
        self.scanner.take()?;
        let mut items = Vec::new();
        loop {
            if let Some(end) = self.take_if(closes)? {
                return Ok((Content::Sequence(items), false, end));
            }
            if !items.is_empty() {
                let at = self.here()?;
                if self.take_if(|kind| matches!(kind, Kind::FlowEntry))?.is_none() {
                    return Self::fail(at, "did not find expected ',' or ']' while parsing a flow sequence");
                }
            }
            let start = self.here()?;
            if self.next_is(|kind| matches!(kind, Kind::Key))? {
                self.count(start)?;
                items.push(self.deeper(start, Form::default(), Self::pair)?);
            } else if !self.next_is(closes)? {
                items.push(self.node(false, false)?);
            }
        }
    }

    /// A mapping of one key within a list.
    fn pair(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        let ends = |kind: &Kind<'_>| matches!(kind, Kind::FlowEntry | Kind::FlowSequenceEnd);
        self.scanner.take()?;
        let none = self.next_is(|kind| matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowSequenceEnd))?;
        let key = if none {
            // kubectl takes the token for the key, whatever it is.
            let after = self.scanner.take()?.end;
            self.empty(after)?
        } else {
            self.node(false, false)?
        };
        let valued = self.take_if(|kind| matches!(kind, Kind::Value))?.is_some();
        let value = if valued && !self.next_is(ends)? { self.node(false, false)? } else { self.empty_here()? };
        let end = value.span.end;
        Ok((Content::Mapping(vec![(key, value)]), false, end))
    }

    fn flow_mapping(&mut self) -> Parsed<(Content<'a>, bool, usize)> {
        let closes = |kind: &Kind<'_>| matches!(kind, Kind::FlowMappingEnd);
        let ends = |kind: &Kind<'_>| matches!(kind, Kind::FlowEntry | Kind::FlowMappingEnd);
        self.scanner.take()?;
        let mut pairs = Vec::new();
        loop {
            if let Some(end) = self.take_if(closes)? {
                return Ok((Content::Mapping(pairs), false, end));
            }
            if !pairs.is_empty() {
                let at = self.here()?;
                if self.take_if(|kind| matches!(kind, Kind::FlowEntry))?.is_none() {
                    return Self::fail(at, "did not find expected ',' or '}' while parsing a flow mapping");
                }
            }
            if self.take_if(|kind| matches!(kind, Kind::Key))?.is_some() {
                let none = self.next_is(|kind| matches!(kind, Kind::Value | Kind::FlowEntry | Kind::FlowMappingEnd))?;
                let key = if none { self.empty_here()? } else { self.node(false, false)? };
                let valued = self.take_if(|kind| matches!(kind, Kind::Value))?.is_some();
                let value = if valued && !self.next_is(ends)? { self.node(false, false)? } else { self.empty_here()? };
                pairs.push((key, value));
            } else if !self.next_is(closes)? {
                let key = self.node(false, false)?;
                let value = self.empty_here()?;
                pairs.push((key, value));
            }
        }
    }
}
