//! Type inference by unification, as cel-go does it (`checker/types.go`, `checker/mapping.go`).

use std::sync::Arc;

use crate::types::Type;

/// The types bound to the type variables of an inference.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    bindings: Vec<Option<Type>>,
    /// The previous bindings, to undo an attempt.
    log: Vec<(u32, Option<Type>)>,
}

impl Mapping {
    /// A variable that nothing is known of.
    pub fn fresh(&mut self) -> Type {
        let number = u32::try_from(self.bindings.len()).unwrap_or(u32::MAX);
        self.bindings.push(None);
        Type::Var(number)
    }

    /// Whether a value of `from` may be where `to` is expected; learns what the variables must be for that.
    pub fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.all_assignable(std::iter::once((from, to)))
    }

    /// As [`Self::assignable`] for several at once: all or nothing is learnt.
    pub fn all_assignable<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a Type, &'a Type)>) -> bool {
        self.log.clear();
        if pairs.into_iter().all(|(from, to)| self.unify(from, to)) {
            return true;
        }
        while let Some((number, before)) = self.log.pop() {
            self.bindings[number as usize] = before;
        }
        false
    }

    fn bind(&mut self, number: u32, to: Type) {
        let before = self.bindings[number as usize].replace(to);
        self.log.push((number, before));
    }

    /// cel-go `internalIsAssignable`.
    fn unify(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Var(number) = to {
            match self.substitutes(from, to, *number) {
                Fit::Yes => return true,
                // It stands for something else already.
                Fit::Bound => return false,
                Fit::Occurs => {}
            }
        }
        if let Type::Var(number) = from {
            return matches!(self.substitutes(to, from, *number), Fit::Yes);
        }
        match (from, to) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) | (Type::Type(_), Type::Type(_)) => true,
            (Type::Null, other) | (other, Type::Null) => nullable(other),
            (Type::List(from), Type::List(to)) | (Type::Optional(from), Type::Optional(to)) => self.unify(from, to),
            (Type::Map(from_key, from), Type::Map(to_key, to)) => self.unify(from_key, to_key) && self.unify(from, to),
            _ => from == to && !from.is_untyped(),
        }
    }

    /// Whether the variable can be bound to `other` (cel-go `isValidTypeSubstitution`).
    fn substitutes(&mut self, other: &Type, variable: &Type, number: u32) -> Fit {
        if other == variable {
            return Fit::Yes;
        }
        if let Some(bound) = self.bindings[number as usize].clone() {
            if *other == bound && !other.has_untyped() {
                return Fit::Yes;
            }
            if !self.unify(other, &bound) {
                return Fit::Bound;
            }
            let general = most_general(other, &bound);
            if self.free_of(variable, general) {
                self.bind(number, general.clone());
            }
            return Fit::Yes;
        }
        if self.free_of(variable, other) {
            self.bind(number, other.clone());
            return Fit::Yes;
        }
        Fit::Occurs
    }

    /// The occurs check (cel-go `notReferencedIn`).
    fn free_of(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return false;
        }
        match within {
            Type::Var(number) => {
                self.bindings[*number as usize].as_ref().is_none_or(|bound| self.free_of(variable, bound))
            }
            Type::List(of) | Type::Optional(of) | Type::Type(of) => self.free_of(variable, of),
            Type::Map(key, value) => self.free_of(variable, key) && self.free_of(variable, value),
            _ => true,
        }
    }

    /// The type with each variable replaced by its bound type; free variables become dyn if `close`.
    pub fn substitute(&self, of: &Type, close: bool) -> Type {
        if !has_variables(of) {
            return of.clone();
        }
        let inner = |of: &Type| Arc::new(self.substitute(of, close));
        match of {
            Type::Var(number) => match &self.bindings[*number as usize] {
                Some(bound) => self.substitute(bound, close),
                None if close => Type::Dyn,
                None => of.clone(),
            },
            Type::Param(_) if close => Type::Dyn,
            Type::List(of) => Type::List(inner(of)),
            Type::Optional(of) => Type::Optional(inner(of)),
            Type::Type(of) => Type::Type(inner(of)),
            Type::Map(key, value) => Type::Map(inner(key), inner(value)),
            _ => of.clone(),
        }
    }
}

/// Whether a variable can be bound to a type.
enum Fit {
    Yes,
    /// No: it is bound to a different type.
    Bound,
    /// No: it is part of that type.
    Occurs,
}

fn has_variables(of: &Type) -> bool {
    match of {
        Type::Var(_) | Type::Param(_) => true,
        Type::List(of) | Type::Optional(of) | Type::Type(of) => has_variables(of),
        Type::Map(key, value) => has_variables(key) || has_variables(value),
        _ => false,
    }
}

/// Whether null is assignable to the type (cel-go `isLegacyNullable`).
fn nullable(of: &Type) -> bool {
    !of.is_missing()
        && matches!(
            of,
            Type::Null | Type::Optional(_) | Type::Object(_) | Type::Opaque(_) | Type::Duration | Type::Timestamp
        )
}

/// The more general one of two types that unify.
pub(super) fn most_general<'a>(one: &'a Type, other: &'a Type) -> &'a Type {
    if says_no_more(one, other) { one } else { other }
}

/// cel-go `isEqualOrLessSpecific`.
fn says_no_more(one: &Type, other: &Type) -> bool {
    match (one, other) {
        (Type::Dyn | Type::Var(_) | Type::Param(_), _) | (Type::Type(_), Type::Type(_)) => true,
        (_, Type::Dyn | Type::Var(_) | Type::Param(_)) => false,
        (Type::List(one), Type::List(other)) | (Type::Optional(one), Type::Optional(other)) => says_no_more(one, other),
        (Type::Map(one_key, one), Type::Map(other_key, other)) => {
            says_no_more(one_key, other_key) && says_no_more(one, other)
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(of: Type) -> Type {
        Type::List(Arc::new(of))
    }

    #[test]
    fn variables_take_the_most_general_type() {
        let mut mapping = Mapping::default();
        let variable = mapping.fresh();
        assert!(mapping.assignable(&Type::Int, &variable));
        assert!(!mapping.assignable(&Type::String, &variable));
        assert!(mapping.assignable(&Type::Dyn, &variable));
        assert_eq!(mapping.substitute(&list(variable), false), list(Type::Dyn));
    }

    #[test]
    fn failed_assignment_binds_no_type_variable() {
        let mut mapping = Mapping::default();
        let variable = mapping.fresh();
        assert!(!mapping.all_assignable([(&Type::Int, &variable), (&Type::Int, &Type::String)]));
        assert_eq!(mapping.substitute(&variable, false), variable);
        assert_eq!(mapping.substitute(&variable, true), Type::Dyn);
    }

    #[test]
    fn type_variable_is_not_bound_to_a_type_containing_it() {
        let mut mapping = Mapping::default();
        let variable = mapping.fresh();
        assert!(!mapping.assignable(&list(variable.clone()), &variable));
    }

    #[test]
    fn null_is_assignable_to_objects_but_not_scalars() {
        let mut mapping = Mapping::default();
        let object = Type::Object("a".into());
        assert!(mapping.assignable(&Type::Null, &object) && mapping.assignable(&object, &Type::Null));
        assert!(mapping.assignable(&Type::Null, &Type::Duration));
        assert!(!mapping.assignable(&Type::Null, &Type::Int) && !mapping.assignable(&list(Type::Int), &Type::Null));
    }
}
