//! Literals of lists, maps and messages.

use std::sync::Arc;

use super::{
    Reference,
    checker::{Checker, unwrap_optional},
    unify::most_general,
};
use crate::{
    ast::{Entry, FieldInit, Node, NodeId},
    environment::Lookup,
    issue::IssueKind,
    types::Type,
};

impl Checker<'_> {
    pub(super) fn list(&mut self, id: NodeId, elements: &mut [Node], optional: &[usize]) {
        let mut joined = None;
        for (index, element) in elements.iter_mut().enumerate() {
            self.check(element);
            let of = self.element_type(element, optional.binary_search(&index).is_ok());
            joined = Some(self.join(joined, of));
        }
        // cel-go takes elements without a type for no elements.
        let of = joined.filter(|of| !of.is_untyped()).unwrap_or_else(|| self.mapping.fresh());
        self.set_type(id, Type::List(Arc::new(of)));
    }

    pub(super) fn map(&mut self, id: NodeId, entries: &mut [Entry]) {
        let (mut keys, mut values) = (None, None);
        for Entry { key, value, optional, .. } in entries {
            self.check(key);
            let of = self.type_of(key);
            keys = Some(self.join(keys, of));
            self.check(value);
            let of = self.element_type(value, *optional);
            values = Some(self.join(values, of));
        }
        let (keys, values) = match (keys, values) {
            (Some(keys), Some(values)) if !keys.is_untyped() => (keys, values),
            _ => (self.mapping.fresh(), self.mapping.fresh()),
        };
        self.set_type(id, Type::Map(Arc::new(keys), Arc::new(values)));
    }

    /// The type of an element; of an optional one what it holds.
    fn element_type(&mut self, node: &Node, optional: bool) -> Type {
        let of = self.type_of(node);
        if !optional {
            return of;
        }
        let (inner, is_optional) = unwrap_optional(&of);
        if !is_optional && *inner != Type::Dyn {
            self.mismatch(node.id, &Type::Optional(Arc::new(of.clone())), &of);
        }
        inner.clone()
    }

    /// The type of all elements so far and this one (cel-go `joinTypes`); elements of several types are the
    /// validators' business.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if previous.is_untyped() => current,
            Some(previous) if self.mapping.assignable(&previous, &current) => most_general(&previous, &current).clone(),
            Some(_) => Type::Dyn,
        }
    }

    pub(super) fn message(&mut self, id: NodeId, name: &mut Arc<str>, fields: &mut [FieldInit]) {
        let of = match self.lookup_message(name) {
            None => {
                let name = Arc::clone(name);
                self.undeclared(id, &name, None);
                return;
            }
            // All of these are messages of protocol buffers, by one name or another.
            Some(
                Lookup::Unsupported(_)
                | Lookup::Type(_, Type::Null | Type::Timestamp | Type::Duration)
                | Lookup::Variable(_, Type::Type(_)),
            ) => {
                let message = format!("this crate does not know messages of protocol buffers, such as '{name}'");
                self.report(id, IssueKind::Unsupported, message);
                return;
            }
            Some(Lookup::Variable(full, Type::Error)) => {
                *name = full;
                Type::Error
            }
            Some(Lookup::Variable(full, of)) => {
                *name = full;
                self.report(id, IssueKind::NotAType, format!("'{}' is not a type", of.erased()));
                Type::Error
            }
            Some(Lookup::Type(full, of @ Type::Object(_))) => {
                *name = full;
                self.set_reference(id, Reference::Type(of.clone()));
                of
            }
            Some(Lookup::Type(full, of)) => {
                *name = full;
                self.report(id, IssueKind::NotAMessageType, format!("'{}' is not a message type", of.erased()));
                Type::Error
            }
        };
        self.set_type(id, of.clone());
        // What has no fields is looked up by its name all the same.
        let of = if of == Type::Error { Type::Object(Arc::clone(name)) } else { of };
        for FieldInit { id, field, value, optional } in fields {
            self.check(value);
            let expected = self.struct_field(*id, &of, field);
            let found = self.element_type(value, *optional);
            if !self.mapping.assignable(&expected, &found) {
                let message =
                    format!("expected type of field '{field}' is '{expected}' but provided type is '{found}'");
                self.report(*id, IssueKind::FieldTypeMismatch, message);
            }
        }
    }
}
