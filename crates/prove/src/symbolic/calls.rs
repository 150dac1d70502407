//! Operators, macros and functions that have a rule.

use std::rc::Rc;

use palisade_cel::ast::{Expr, Node};

use super::{Choice, Evaluator, Result, Scope, Truth, Value, access::Selection, compare::concat, lookup, unsupported};
use crate::formula::{FALSE, TRUE, Term, TextTest};

impl Evaluator<'_> {
    pub(super) fn call(&mut self, name: &str, target: Option<&Node>, args: &[Node], scope: &Scope) -> Result<Choice> {
        match (name, target, args) {
            ("_&&_", None, [one, other]) => self.both(one, other, scope, false),
            ("_||_", None, [one, other]) => self.both(one, other, scope, true),
            ("!_", None, [of]) => Ok(self.truth_of(of, scope)?.opposite().choice()),
            ("_?_:_", None, [condition, yes, no]) => self.ternary(condition, yes, no, scope),
            ("has", None, [Node { expr: Expr::Select { operand, field, .. }, .. }]) => self.has(operand, field, scope),
            ("_?._", None, [of, Node { expr: Expr::Literal(palisade_cel::ast::Literal::String(name)), .. }]) => {
                let of = self.value(of, scope)?;
                self.field(&of, name, Selection::Optional)
            }
            ("_[_]" | "_[?_]", None, [of, key]) => {
                let (of, key) = (self.value(of, scope)?, self.value(key, scope)?);
                if key.error.is_some() {
                    return unsupported("an index that can fail");
                }
                self.index(&of, &key, if name == "_[_]" { Selection::Plain } else { Selection::Optional })
            }
            ("_==_", None, [one, other]) => {
                let (one, other) = (self.value(one, scope)?, self.value(other, scope)?);
                Ok(self.equal(&one, &other)?.choice())
            }
            ("_!=_", None, [one, other]) => {
                let (one, other) = (self.value(one, scope)?, self.value(other, scope)?);
                Ok(self.equal(&one, &other)?.opposite().choice())
            }
            ("_<=_" | "_<_" | "_>=_" | "_>_", None, [one, other]) => {
                let (one, other) = (self.value(one, scope)?, self.value(other, scope)?);
                let truth = match name {
                    "_<=_" => self.ordered(&one, &other)?,
                    "_>=_" => self.ordered(&other, &one)?,
                    "_<_" => self.ordered(&other, &one)?.opposite(),
                    _ => self.ordered(&one, &other)?.opposite(),
                };
                Ok(truth.choice())
            }
            ("_+_", None, [one, other]) => {
                let (one, other) = (self.value(one, scope)?, self.value(other, scope)?);
                self.sum(&one, &other)
            }
            ("@in", None, [one, list]) => {
                let (one, list) = (self.value(one, scope)?, self.value(list, scope)?);
                Ok(self.contains(&one, &list)?.choice())
            }
            ("dyn", None, [of]) => self.value(of, scope),
            ("string", None, [of]) => {
                let of = self.value(of, scope)?;
                Self::printed(of)
            }
            ("size", None, [of]) | ("size", Some(of), []) => {
                let of = self.value(of, scope)?;
                self.length(&of)
            }
            (name, Some(target), args) => self.member_call(name, target, args, scope),
            _ => unsupported(format!("the function {name}")),
        }
    }

    fn member_call(&mut self, name: &str, target: &Node, args: &[Node], scope: &Scope) -> Result<Choice> {
        if matches!(&target.expr, Expr::Ident(ident) if &**ident == "optional") && lookup(scope, "optional").is_none() {
            return match (name, args) {
                ("of", [of]) => {
                    let of = self.value(of, scope)?;
                    let some = |(guard, value)| (guard, Value::Some(Rc::new(value)));
                    Ok(Choice { values: of.values.into_iter().map(some).collect(), error: of.error })
                }
                ("none", []) => Ok(Choice::of(Value::None)),
                _ => unsupported(format!("the function optional.{name}")),
            };
        }
        let known = [
            "all",
            "exists",
            "filter",
            "map",
            "orValue",
            "or",
            "hasValue",
            "value",
            "optMap",
            "optFlatMap",
            "startsWith",
            "endsWith",
            "contains",
            "lowerAscii",
            "indexOf",
            "substring",
            "join",
            "replace",
        ];
        if !known.contains(&name) {
            return unsupported(format!("the function {name}"));
        }
        let of = self.value(target, scope)?;
        match (name, args) {
            ("all" | "exists", [_, _]) => Ok(self.loops(&of, args, scope, name == "all")?.choice()),
            ("filter", [Node { expr: Expr::Ident(item), .. }, condition]) => {
                self.mapped(&of, item, Some(condition), None, scope)
            }
            ("map", [Node { expr: Expr::Ident(item), .. }, value]) => self.mapped(&of, item, None, Some(value), scope),
            ("map", [Node { expr: Expr::Ident(item), .. }, condition, value]) => {
                self.mapped(&of, item, Some(condition), Some(value), scope)
            }
            ("orValue", [other]) => self.or_value(&of, other, scope, true),
            ("or", [other]) => self.or_value(&of, other, scope, false),
            ("hasValue", []) => Ok(self.has_value(&of)?.choice()),
            ("value", []) => self.unwrapped(&of),
            ("optMap" | "optFlatMap", [_, _]) => self.opt_map(&of, args, scope, name == "optMap"),
            ("startsWith" | "endsWith" | "contains", [part]) => {
                let part = self.value(part, scope)?;
                Ok(self.text_test(name, &of, &part)?.choice())
            }
            ("lowerAscii", []) => Self::texts(&of, |term| match term {
                Term::Text(text) => Term::Text(text.to_ascii_lowercase().into()),
                term => Term::Lower(Rc::new(term)),
            }),
            ("indexOf", [part]) => {
                let part = self.value(part, scope)?;
                Self::index_of(&of, &part)
            }
            ("substring", [_] | [_, _]) => {
                let args = args.iter().map(|arg| self.value(arg, scope)).collect::<Result<Vec<_>>>()?;
                self.substring(&of, &args)
            }
            ("join", [] | [_]) => {
                if !of.values.iter().all(|(_, value)| matches!(value, Value::List(_))) {
                    return unsupported("join() of a value other than a list");
                }
                let fine = self.formulas.not(of.error());
                Ok(Choice::new(vec![(fine, Value::Message)], of.error()))
            }
            ("replace", [_, _]) if of.values.iter().all(|(_, value)| matches!(value, Value::Message)) => Ok(of),
            _ => unsupported(format!("the function {name} with these arguments")),
        }
    }

    /// `one && other`, or `one || other`. An error is absorbed by an operand that decides.
    fn both(&mut self, one: &Node, other: &Node, scope: &Scope, any: bool) -> Result<Choice> {
        let turned = |truth: Truth| if any { truth.opposite() } else { truth };
        let one = turned(self.truth_of(one, scope)?);
        if one.no == TRUE {
            return Ok(turned(one).choice());
        }
        let other = turned(self.truth_of(other, scope)?);
        let yes = self.formulas.and([one.yes, other.yes]);
        let no = self.formulas.or([one.no, other.no]);
        let error = self.formulas.or([one.error, other.error]);
        let decided = self.formulas.not(no);
        let error = self.formulas.and([error, decided]);
        Ok(turned(Truth { yes, no, error }).choice())
    }

    fn ternary(&mut self, condition: &Node, yes: &Node, no: &Node, scope: &Scope) -> Result<Choice> {
        let condition = self.truth_of(condition, scope)?;
        let (mut values, mut errors) = (Vec::new(), vec![condition.error]);
        for (holds, of) in [(condition.yes, yes), (condition.no, no)] {
            if holds == FALSE {
                continue;
            }
            let of = self.value(of, scope)?;
            errors.push(self.formulas.and([holds, of.error()]));
            for (guard, value) in of.values {
                values.push((self.formulas.and([holds, guard]), value));
            }
        }
        let error = self.formulas.or(errors);
        Ok(self.merged(Choice::new(values, error)))
    }

    fn sum(&mut self, one: &Choice, other: &Choice) -> Result<Choice> {
        let lists = |of: &Choice| of.values.iter().all(|(_, value)| matches!(value, Value::List(_)));
        if lists(one) && lists(other) {
            let (mut all, first) = self.elements(one)?;
            let (more, second) = self.elements(other)?;
            all.extend(more);
            let error = self.formulas.or([first, second]);
            let fine = self.formulas.not(error);
            return Ok(Choice::new(vec![(fine, Value::List(all.into()))], error));
        }
        let message = |of: &Choice| of.values.iter().all(|(_, value)| matches!(value, Value::Text(_) | Value::Message));
        let unknown = |of: &Choice| of.values.iter().any(|(_, value)| matches!(value, Value::Message));
        if message(one) && message(other) && (unknown(one) || unknown(other)) {
            let error = self.formulas.or([one.error(), other.error()]);
            let fine = self.formulas.not(error);
            return Ok(Choice::new(vec![(fine, Value::Message)], error));
        }
        let (pairs, error) = self.pairs(one, other);
        let mut values = Vec::new();
        for (guard, one, other) in pairs {
            let value = match (one, other) {
                (Value::Text(one), Value::Text(other)) => Value::Text(concat(one, other)),
                (Value::Int(Term::Int(one)), Value::Int(Term::Int(other))) => match one.checked_add(other) {
                    Some(sum) => Value::Int(Term::Int(sum)),
                    None => return unsupported("a sum that overflows"),
                },
                _ => return unsupported("a sum of values that are neither texts nor lists"),
            };
            values.push((guard, value));
        }
        Ok(Choice::new(values, error))
    }

    /// `string(of)`.
    fn printed(of: Choice) -> Result<Choice> {
        let error = of.error();
        let mut values = Vec::new();
        for (guard, value) in of.values {
            let value = match value {
                Value::Text(_) | Value::Message => value,
                Value::Constant(_) | Value::Holds(_) | Value::Int(_) | Value::Length(_) | Value::TextLength(_) => {
                    Value::Message
                }
                _ => return unsupported("string() of a value of unknown type"),
            };
            values.push((guard, value));
        }
        Ok(Choice::new(values, error))
    }

    fn texts(of: &Choice, change: impl Fn(Term) -> Term) -> Result<Choice> {
        let mut values = Vec::new();
        for (guard, value) in &of.values {
            let Value::Text(term) = value else { return unsupported("a string function of another value") };
            values.push((*guard, Value::Text(change(term.clone()))));
        }
        Ok(Choice::new(values, of.error()))
    }

    fn index_of(of: &Choice, part: &Choice) -> Result<Choice> {
        let [(TRUE, Value::Text(Term::Text(part)))] = part.values.as_slice() else {
            return unsupported("indexOf() of a text that is computed");
        };
        let mut chars = part.chars();
        let (Some(found), None) = (chars.next(), chars.next()) else {
            return unsupported("indexOf() of a text that is not one character");
        };
        let mut values = Vec::new();
        for (guard, value) in &of.values {
            let value = match value {
                Value::Text(Term::Text(text)) => {
                    let index = text.chars().position(|one| one == found);
                    Value::Int(Term::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1)))
                }
                Value::Text(term) => Value::Index(term.clone(), found),
                _ => return unsupported("indexOf() of a value other than a string"),
            };
            values.push((*guard, value));
        }
        Ok(Choice::new(values, of.error()))
    }

    fn substring(&mut self, of: &Choice, args: &[Choice]) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        errors.extend(args.iter().map(Choice::error));
        let broken = self.formulas.or(errors.clone());
        let fine = self.formulas.not(broken);
        let constant = |of: &Choice| match of.values.as_slice() {
            [(_, Value::Int(Term::Int(value)))] => usize::try_from(*value).ok(),
            _ => None,
        };
        for (guard, value) in &of.values {
            let guard = self.formulas.and([*guard, fine]);
            let Value::Text(term) = value else { return unsupported("substring() of a value other than a string") };
            match args {
                [from] => {
                    let Some(from) = constant(from) else { return unsupported("substring() from a computed index") };
                    let long = self.text(TextTest::AtLeast(from), term);
                    let short = self.formulas.not(long);
                    errors.push(self.formulas.and([guard, short]));
                    let rest = match term {
                        Term::Text(text) => Term::Text(text.chars().skip(from).collect::<String>().into()),
                        term => Term::Skip(Rc::new(term.clone()), from),
                    };
                    values.push((self.formulas.and([guard, long]), Value::Text(rest)));
                }
                [from, to] if constant(from) == Some(0) => {
                    for (also, to) in &to.values {
                        let guard = self.formulas.and([guard, *also]);
                        if guard == FALSE {
                            continue;
                        }
                        match to {
                            Value::Index(found_in, end) if found_in == term => {
                                let contains = self.text(TextTest::Contains(end.to_string().into()), term);
                                let none = self.formulas.not(contains);
                                errors.push(self.formulas.and([guard, none]));
                                let before = Value::Text(Term::Before(Rc::new(term.clone()), *end));
                                values.push((self.formulas.and([guard, contains]), before));
                            }
                            Value::Int(Term::Int(to)) => {
                                let Term::Text(text) = term else { return unsupported("substring() to an index") };
                                match usize::try_from(*to).ok().filter(|to| *to <= text.chars().count()) {
                                    Some(to) => {
                                        let part: String = text.chars().take(to).collect();
                                        values.push((guard, Value::Text(Term::Text(part.into()))));
                                    }
                                    None => errors.push(guard),
                                }
                            }
                            _ => return unsupported("substring() to a computed index"),
                        }
                    }
                }
                _ => return unsupported("substring() between computed indices"),
            }
        }
        let error = self.formulas.or(errors);
        Ok(Choice::new(values, error))
    }
}
