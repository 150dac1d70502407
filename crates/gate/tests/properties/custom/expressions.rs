//! Random expressions of custom checks: nested over all macros, with names of loops that hide others. They do not fail, but
//! for some that the API server would reject or that fail on purpose.

use super::kinds::{Kind, TEXTS};
use crate::properties::random::Random;

/// Names of loops: such as the policy or the fast path has, too.
const NAMES: [&str; 24] = [
    "object",
    "params",
    "variables",
    "request",
    "oldObject",
    "namespaceObject",
    "k",
    "spec",
    "c",
    "c2",
    "c3",
    "x",
    "y",
    "p",
    "v",
    "m",
    "list",
    "list2",
    "container",
    "e",
    "s",
    "t",
    "template",
    "cc",
];

/// What is in scope: an expression and the kind of its value, outermost first.
pub(crate) type Scope = Vec<(String, Kind)>;

/// Writes expressions.
pub(crate) struct Expressions<'r> {
    pub random: &'r mut Random,
    /// Whether some expressions read fields that may be absent, and fail.
    pub failing: bool,
}

impl Expressions<'_> {
    fn text(&mut self) -> String {
        format!("'{}'", self.random.one(&TEXTS))
    }

    fn name(&mut self) -> String {
        self.random.one(&NAMES).to_owned()
    }

    fn no(&mut self) -> &'static str {
        self.random.one(&["", "!"])
    }

    fn truth(&mut self) -> &'static str {
        self.random.one(&["true", "false"])
    }

    /// A comparison of a text.
    fn of_text(&mut self, of: &str, scope: &Scope) -> String {
        match self.random.below(16) {
            0 | 1 => format!("{of} == {}", self.text()),
            2 => format!("{of} != {}", self.text()),
            3 => format!("{of} in [{}, {}]", self.text(), self.text()),
            4 => format!("!({of} in [{}, {}])", self.text(), self.text()),
            5 => format!("{of}.startsWith({})", self.text()),
            6 => format!("!{of}.endsWith({})", self.text()),
            7 => format!("{}{of}.contains({})", self.no(), self.text()),
            8 => {
                let compared = self.random.one(&["<=", "<", ">", ">=", "==", "!="]);
                format!("{of}.size() {compared} {}", self.random.one(&[0, 1, 2, 4000]))
            }
            9 => format!("{}({of} + '/').startsWith({})", self.no(), self.text()),
            10 => {
                let part = self.random.one(&["'/../'", "'/a/'", "'a'", "'/'", "'//'"]);
                format!("{}('/' + {of} + '/').contains({part})", self.no())
            }
            11 => format!("{of}.lowerAscii() == {}", self.text()),
            12 => {
                let other = self.text_of(scope);
                format!("{of} {} {other}", self.random.one(&["==", "!=", "<", ">="]))
            }
            13 => format!("{of}.matches('^[a-z]*$')"),
            14 => {
                let list = self.texts_of(scope);
                format!("{}({of} in {list})", self.no())
            }
            _ => format!("[{}, {}].exists(w, {of}.startsWith(w))", self.text(), self.text()),
        }
    }

    /// A list of texts.
    fn texts_of(&mut self, scope: &Scope) -> String {
        match self.random.below(4) {
            0 => "params.spec.stringLists['texts']".to_owned(),
            1 => format!("[{}, {}]", self.text(), self.text()),
            2 => {
                let (list, kind) = self.list(scope);
                let name = self.name();
                match kind.texts().first() {
                    _ if kind == Kind::Text => list,
                    Some((field, true)) => format!("{list}.map({name}, {name}.{field})"),
                    Some((field, false)) => format!("{list}.map({name}, has({name}.{field}), {name}.{field})"),
                    None => format!("[{}]", self.text()),
                }
            }
            _ => {
                let (of, kind) = self.in_scope(scope);
                match kind.lists().iter().find(|(_, of, _)| *of == Kind::Text) {
                    Some((field, ..)) => format!("{of}.?{field}.orValue([])"),
                    None => format!("[{}]", self.text()),
                }
            }
        }
    }

    /// A text.
    fn text_of(&mut self, scope: &Scope) -> String {
        let (of, kind) = self.in_scope(scope);
        if kind == Kind::Text {
            return of;
        }
        if !kind.texts().is_empty() {
            let (field, required) = self.random.one(kind.texts());
            let other = self.text();
            return match self.random.below(4) {
                _ if required => format!("{of}.{field}"),
                0 => format!("(has({of}.{field}) ? {of}.{field} : {other})"),
                1 => format!("{of}[?'{field}'].orValue({other})"),
                2 => format!("{of}.?{field}.or(optional.of({other})).value()"),
                _ => format!("{of}.?{field}.orValue({other})"),
            };
        }
        match self.random.below(4) {
            0 => "params.spec.strings['text']".to_owned(),
            1 => "variables.annotations[?'k'].orValue('')".to_owned(),
            2 => "object.metadata.?labels[?'a'].orValue('q')".to_owned(),
            _ => self.text(),
        }
    }

    /// Something in scope, mostly of the loops around, that no name hides.
    fn in_scope(&mut self, scope: &Scope) -> (String, Kind) {
        let inner = scope.len().min(2);
        let at = if self.random.percent(80) {
            scope.len() - 1 - self.random.below(inner)
        } else {
            self.random.below(scope.len())
        };
        let root = |of: &str| of.split(['.', '[']).next().unwrap_or_default().to_owned();
        let hidden = scope[at + 1..].iter().any(|(name, _)| *name == root(&scope[at].0));
        if hidden { scope[scope.len() - 1].clone() } else { scope[at].clone() }
    }

    fn list(&mut self, scope: &Scope) -> (String, Kind) {
        let variables = !scope.iter().any(|(name, _)| name == "variables");
        for _ in 0..6 {
            let (of, kind) = self.in_scope(scope);
            if variables && self.random.percent(30) {
                return match self.random.below(4) {
                    0 => ("variables.containers".to_owned(), Kind::Container),
                    1 => ("variables.volumes".to_owned(), Kind::Volume),
                    2 => ("variables.spec.containers".to_owned(), Kind::Container),
                    _ => {
                        let sum = "(variables.spec.containers + variables.spec.?initContainers.orValue([]))";
                        (sum.to_owned(), Kind::Container)
                    }
                };
            }
            if kind.lists().is_empty() {
                continue;
            }
            let (field, element, required) = self.random.one(kind.lists());
            let list = match self.random.below(3) {
                _ if required => format!("{of}.{field}"),
                0 => format!("(has({of}.{field}) ? {of}.{field} : [])"),
                _ => format!("{of}.?{field}.orValue([])"),
            };
            return (list, element);
        }
        ("object.?spec.?containers.orValue([])".to_owned(), Kind::Container)
    }

    /// A condition, nested this deep.
    pub(crate) fn condition(&mut self, depth: usize, scope: &Scope) -> String {
        let Some(depth) = depth.checked_sub(1) else { return self.leaf(scope) };
        match self.random.below(16) {
            0 | 1 => format!("({} && {})", self.condition(depth, scope), self.condition(depth, scope)),
            2 | 3 => format!("({} || {})", self.condition(depth, scope), self.condition(depth, scope)),
            4 => format!("!({})", self.condition(depth, scope)),
            5 | 6 => {
                let condition = self.condition(depth, scope);
                format!("({condition} ? {} : {})", self.condition(depth, scope), self.condition(depth, scope))
            }
            7..=10 => {
                let (list, kind) = self.list(scope);
                let name = self.name();
                let body = self.condition(depth, &inside(scope, &name, kind));
                match self.random.below(24) {
                    0..=3 => format!("{}{list}.exists({name}, {body})", self.no()),
                    4 => format!("{list}.all(i, {name}, {body})"),
                    _ => format!("{list}.all({name}, {body})"),
                }
            }
            11 => self.filtered(depth, scope),
            12 if self.random.percent(25) => self.uncommon(depth, scope),
            13 => {
                let (one, other) = (self.condition(depth, scope), self.condition(depth, scope));
                format!("(({one}) {} ({other}))", self.random.one(&["==", "!="]))
            }
            _ => self.leaf(scope),
        }
    }

    /// A condition of a list that is made of another one.
    fn filtered(&mut self, depth: usize, scope: &Scope) -> String {
        let (list, kind) = self.list(scope);
        let name = self.name();
        let within = inside(scope, &name, kind);
        let body = self.condition(depth, &within);
        let (compared, number) = (self.random.one(&["==", "<=", "<", ">", "!="]), self.random.below(3));
        match self.random.below(5) {
            0 => format!("{list}.filter({name}, {body}).size() {compared} {number}"),
            1 => {
                let other = self.name();
                let test = self.condition(depth, &inside(scope, &other, kind));
                format!("{list}.filter({name}, {body}).all({other}, {test})")
            }
            2 => {
                let text = self.text_of(&within);
                let other = self.name();
                let test = self.of_text(&other, &inside(scope, &other, Kind::Text));
                format!("{list}.map({name}, {body}, {text}).all({other}, {test})")
            }
            3 => {
                let test = self.condition(depth, scope);
                format!("({body_free} ? {list} : []).all({name}, {test})", body_free = self.condition(depth, scope))
            }
            _ => format!("{list}.size() {compared} {number}"),
        }
    }

    /// What the fast path does not derive, or not always.
    fn uncommon(&mut self, depth: usize, scope: &Scope) -> String {
        let (list, kind) = self.list(scope);
        let name = self.name();
        let body = self.condition(depth, &inside(scope, &name, kind));
        let (number, truth) = (self.random.below(3), self.truth());
        match self.random.below(7) {
            0 => format!("{list}.exists_one({name}, {body})"),
            1 => {
                let (text, test) = (self.text_of(scope), self.condition(depth, scope));
                format!("{text}.split('/').all(part, part != 'a' && {test})")
            }
            2 => {
                let test = self.of_text(&name, &inside(scope, &name, Kind::Text));
                format!("object.metadata.?annotations[?'k'].optMap({name}, {test}).orValue({truth})")
            }
            3 => {
                let compared = self.random.one(&["==", "<=", ">"]);
                format!("{list}.map({name}, {body} ? 1 : 0).sum() {compared} {number}")
            }
            4 => {
                let test = self.condition(depth, scope);
                format!("(oldObject == null || oldObject.spec == object.spec || {test})")
            }
            // Fails on some pods: an error in the condition denies, and so must what is derived from it.
            5 => format!("(object.spec.nodeName == 'a' ? {truth} : {truth})"),
            _ => {
                let text = self.text_of(scope);
                format!("{list}.transformList(i, {name}, {text} + 'x').all(t, t != 'ax' && {})", self.truth())
            }
        }
    }

    fn leaf(&mut self, scope: &Scope) -> String {
        let (of, kind) = self.in_scope(scope);
        if self.failing && self.random.percent(20) && !kind.texts().is_empty() {
            let (field, _) = self.random.one(kind.texts());
            return format!("{of}.{field} {} {}", self.random.one(&["==", "!="]), self.text());
        }
        match kind {
            Kind::Text => return self.of_text(&of, scope),
            Kind::Number => {
                return format!("{of} {} {}", self.random.one(&["==", "<", ">=", "!="]), self.random.below(3));
            }
            _ => {}
        }
        match self.random.below(12) {
            0 if !kind.booleans().is_empty() => self.of_boolean(&of, kind),
            1 if !kind.numbers().is_empty() => self.of_number(&of, kind),
            2 if kind.object().is_some() => {
                let (field, kind) = kind.object().unwrap();
                let (boolean, truth) = (self.random.one(kind.booleans()), self.truth());
                match self.random.below(2) {
                    0 => {
                        let below = format!("{of}.{field}");
                        let test = if self.random.percent(50) {
                            self.of_boolean(&below, kind)
                        } else {
                            self.of_number(&below, kind)
                        };
                        format!("(!has({below}) || {test})")
                    }
                    _ => format!("{of}.?{field}.?{boolean}.orValue({truth})"),
                }
            }
            3..=6 if kind.texts().iter().any(|(_, required)| !required) => {
                let optional: Vec<_> = kind.texts().iter().filter(|(_, required)| !required).copied().collect();
                let field = self.random.one(&optional).0;
                let (path, truth) = (format!("{of}.{field}"), self.truth());
                let test = self.of_text(&path, scope);
                match self.random.below(6) {
                    0 => format!("has({path})"),
                    1 => format!("!has({path})"),
                    2 => format!("(has({path}) && {test})"),
                    3 => format!("(has({path}) ? {test} : {truth})"),
                    4 => format!("{of}.?{field}.hasValue()"),
                    _ => format!("(!has({path}) || {test})"),
                }
            }
            7 => {
                let selector =
                    "object.?spec.?nodeSelector.orValue({}).all(k, k == 'a' || object.spec.nodeSelector[k] == 'a')";
                let annotations = "object.metadata.?annotations.orValue({}).all(k, k != 'k' || object.metadata.annotations[k] != 'b')";
                let all = [
                    "request.operation == 'CREATE'",
                    "params.spec.booleans['on']",
                    "'k' in object.metadata.?annotations.orValue({})",
                    "has(object.metadata.labels)",
                    selector,
                    annotations,
                ];
                let one = self.random.one(&all);
                let root =
                    one.split(|c: char| !c.is_ascii_alphanumeric()).find(|word| !word.is_empty() && *word != "k");
                let hidden =
                    scope.iter().any(|(name, _)| Some(name.as_str()) == root || name == "object" || name == "k");
                if hidden { self.truth().to_owned() } else { one.to_owned() }
            }
            _ => {
                let text = self.text_of(scope);
                self.of_text(&text, scope)
            }
        }
    }

    fn of_boolean(&mut self, of: &str, kind: Kind) -> String {
        let field = self.random.one(kind.booleans());
        match self.random.below(3) {
            0 => format!("!has({of}.{field})"),
            1 => format!("{of}.?{field}.orValue({})", self.truth()),
            _ => format!("(!has({of}.{field}) || !{of}.{field})"),
        }
    }

    fn of_number(&mut self, of: &str, kind: Kind) -> String {
        let (field, required) = self.random.one(kind.numbers());
        let compared = format!("{} {}", self.random.one(&["==", "<", ">=", "!=", "<="]), self.random.below(3));
        match self.random.below(3) {
            _ if required => format!("{of}.{field} {compared}"),
            0 => format!("{of}.?{field}.orValue({}) {compared}", self.random.below(3)),
            1 => format!("(has({of}.{field}) && {of}.{field} {compared})"),
            _ => format!("(!has({of}.{field}) || {of}.{field} {compared})"),
        }
    }
}

fn inside(scope: &Scope, name: &str, kind: Kind) -> Scope {
    let mut inner = scope.clone();
    inner.push((name.to_owned(), kind));
    inner
}
