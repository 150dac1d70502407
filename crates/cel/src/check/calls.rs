//! Overloads that a call may mean (cel-go `checker.resolveOverload`).

use std::sync::Arc;

use super::{
    Reference,
    checker::{Checker, qualified_name},
    help,
    unify::Mapping,
};
use crate::{
    ast::{Expr, Node, NodeId},
    functions::Overload,
    issue::IssueKind,
    types::{Decl, Type},
};

impl Checker<'_> {
    pub(super) fn call(&mut self, node: &mut Node) {
        let Expr::Call { function, target, args } = &mut node.expr else { return };
        for arg in args.iter_mut() {
            self.check(arg);
        }
        let Some(receiver) = target else {
            let name: Arc<str> = function.strip_prefix('.').unwrap_or(function).into();
            let environment = self.environment;
            if let Some(overloads) = environment.function(&name) {
                self.resolve_call(node.id, &name, overloads, None, args);
                *function = name;
            } else {
                let (name, help) = (Arc::clone(function), help::function(&name, false, self.environment));
                self.undeclared(node.id, &name, help);
            }
            return;
        };
        let environment = self.environment;
        if let Some(prefix) = qualified_name(receiver, |first| environment.is_namespace(first)) {
            let name = format!("{}.{function}", prefix.strip_prefix('.').unwrap_or(&prefix));
            if let Some(overloads) = environment.function(&name) {
                self.resolve_call(node.id, &name, overloads, None, args);
                *function = name.into();
                *target = None;
                return;
            }
        }
        self.check(receiver);
        if let Some(overloads) = environment.function(function) {
            self.resolve_call(node.id, function, overloads, Some(receiver), args);
        } else {
            let (name, help) = (Arc::clone(function), help::function(function, true, self.environment));
            self.undeclared(node.id, &name, help);
        }
    }

    fn resolve_call(
        &mut self,
        id: NodeId,
        function: &str,
        overloads: &[&'static Overload],
        target: Option<&Node>,
        args: &[Node],
    ) {
        let types: Vec<Type> = target.into_iter().chain(args).map(|arg| self.type_of(arg)).collect();
        let member = target.is_some();
        let candidates = overloads.iter().copied().filter(|overload| overload.member == member);
        if matches!(function, "_&&_" | "_||_") {
            self.logic(id, candidates.collect(), &types, args);
            return;
        }
        let mut found = Vec::new();
        let mut result: Option<Type> = None;
        for overload in candidates {
            let Some(of) = self.fits(overload, &types) else { continue };
            found.push(overload);
            result = Some(match result {
                // The first one decides, but what another would make different is known at run time only.
                Some(before) if before != Type::Dyn && before != of => Type::Dyn,
                Some(before) => before,
                None => of,
            });
        }
        if let Some(of) = result {
            self.set_type(id, of);
            self.set_reference(id, Reference::Overloads(found));
            return;
        }
        self.set_type(id, Type::Error);
        let types: Vec<Type> = types.iter().map(|of| self.mapping.substitute(of, true)).collect();
        let signature = signature(&types, member);
        let message = format!("found no matching overload for '{function}' applied to '{signature}'");
        let help = help::overload(function, overloads, &types, member);
        self.report_with(id, IssueKind::NoMatchingOverload, message, help);
    }

    fn logic(&mut self, id: NodeId, found: Vec<&'static Overload>, types: &[Type], args: &[Node]) {
        let mut of = Type::Bool;
        for (arg, found) in args.iter().zip(types) {
            if !self.mapping.assignable(found, &Type::Bool) {
                self.mismatch(arg.id, &Type::Bool, found);
                of = Type::Error;
            }
        }
        self.set_type(id, of);
        self.set_reference(id, Reference::Overloads(found));
    }

    /// The type of the result if the overload takes arguments of these types.
    fn fits(&mut self, overload: &Overload, types: &[Type]) -> Option<Type> {
        let mut instance = Instance { params: Vec::new() };
        let expected: Vec<Type> = overload.args.iter().map(|arg| instance.of(*arg, &mut self.mapping)).collect();
        let result = instance.of(overload.result, &mut self.mapping);
        let fits = expected.len() == types.len() && self.mapping.all_assignable(types.iter().zip(&expected));
        fits.then(|| self.mapping.substitute(&result, false))
    }
}

/// An overload's declaration with its type parameters replaced by fresh variables.
struct Instance {
    params: Vec<(&'static str, Type)>,
}

impl Instance {
    fn of(&mut self, decl: Decl, mapping: &mut Mapping) -> Type {
        match decl {
            Decl::Param(name) => {
                if let Some((_, of)) = self.params.iter().find(|(known, _)| *known == name) {
                    return of.clone();
                }
                let fresh = mapping.fresh();
                self.params.push((name, fresh.clone()));
                fresh
            }
            Decl::List(of) => Type::List(Arc::new(self.of(*of, mapping))),
            Decl::Optional(of) => Type::Optional(Arc::new(self.of(*of, mapping))),
            Decl::Type(of) => Type::Type(Arc::new(self.of(*of, mapping))),
            Decl::Map(key, value) => Type::Map(Arc::new(self.of(*key, mapping)), Arc::new(self.of(*value, mapping))),
            scalar => scalar.to_type(),
        }
    }
}

/// `(int, string)`, or `int.(string)` of a member call.
fn signature(types: &[Type], member: bool) -> String {
    let (target, args) = types.split_at(usize::from(member && !types.is_empty()));
    let args: Vec<String> = args.iter().map(ToString::to_string).collect();
    let target = target.first().map(|of| format!("{of}.")).unwrap_or_default();
    format!("{target}({})", args.join(", "))
}
