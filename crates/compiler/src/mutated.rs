//! Evaluates a pod template as the pod that it becomes.
//!
//! A profile mutates pods, never templates. So the expressions that evaluate a template read each field as the mutation
//! leaves it in the pod: an unset field with a default has that default, and an image has the reference to which it is
//! redirected. Expressions that evaluate pods need none of this, because the API server mutates pods before it
//! evaluates them.
//!
//! A field is found by its path below the spec, a container or a volume. An expression that uses a whole object with
//! such a field (`container.securityContext == x`) reads the object as the template has it.

mod read;

use std::fmt::Write as _;

use palisade_api::{CustomTarget, names};
use palisade_cel::{
    ast::{Expr, Node},
    parse::parse_unexpanded,
};
use palisade_checks::{
    DefaultValue, Finding, FindingScope, Lowering, Meaning, Rule, Subject, cel, defaults::PodNames,
    settings::redirect::Redirect,
};

use crate::{
    Custom, ExpressionStyle, Lowered, Mutation,
    style::SYNTAX,
    tree::{call, ident, literal, mentions, node, replace, unused},
};

use read::{Owner, Place, Reader, Scope};

/// The variable that is true if the profile's defaults apply to the pod.
pub(crate) const TAKES_DEFAULTS: &str = "takesDefaults";
/// How the conditions of defaults name a template.
const POD: PodNames = PodNames { spec: "variables.spec", annotations: "variables.annotations" };
/// The name of an image in an expression about a redirected one.
const IMAGE: &str = "image";

/// The changes that a profile makes to a pod, as its policy for templates reads them.
pub(crate) struct Mutated {
    defaults: Vec<Default>,
    redirected: Option<Redirected>,
    /// The policy's variables for it: name, meaning, CEL.
    pub variables: Vec<(String, String, String)>,
}

/// A field with a default.
struct Default {
    place: Place,
    /// Whether the field is a list: an empty one counts as unset.
    is_list: bool,
    value: Node,
    /// CEL of type bool: whether the field gets the default if it is unset. The container is `c`.
    applies: Node,
}

struct Redirected {
    /// CEL of type list(string): the references to which the references in the list [`IMAGES`] are redirected.
    references: Node,
    /// CEL of type bool that is true only of an [`IMAGE`] that is not redirected; `None` if none is known to stay.
    stays: Option<Node>,
}

/// The name of the list of references in [`Redirected::references`].
const IMAGES: &str = "images";

/// An expression does not parse. The check of the policies reports why.
pub(crate) struct Unreadable;

impl Mutated {
    /// The changes that a mutation makes.
    pub fn new(mutation: &Mutation) -> Result<Self, Unreadable> {
        // Mistakes in the settings were reported when they were lowered for the checks.
        let mut cx = Lowering::new(&mutation.parameters);
        let mut variables = Vec::new();
        let mut defaults = Vec::new();
        let node_labels: Vec<_> = mutation.injections.node_labels().collect();
        if !mutation.defaults.is_empty() || !node_labels.is_empty() {
            let about = "the profile sets no defaults in pods for Windows, and none in probes";
            let lowered = format!("{} && variables.spec.?os.?name.orValue('') != 'windows'", not_a_probe());
            variables.push((TAKES_DEFAULTS.to_owned(), about.to_owned(), lowered));
        }
        for (_, default) in &mutation.defaults {
            let owner = match default.of {
                Subject::Pod | Subject::PodOrContainer => Owner::Spec,
                Subject::Container | Subject::LastingContainer => Owner::Container,
            };
            let mut terms = vec![format!("variables.{TAKES_DEFAULTS}")];
            terms.extend(default.when.iter().map(|condition| condition.cel(POD, &mut cx)));
            let mut applies = terms.join(" && ");
            if owner == Owner::Spec && terms.len() > 1 {
                // It is the same for all containers that inherit the field.
                let name = format!("defaults{}", default.path.iter().map(|key| capitalized(key)).collect::<String>());
                let about = format!("whether an unset {} gets its default", default.path.join("."));
                variables.push((name.clone(), about, applies));
                applies = format!("variables.{name}");
            }
            defaults.push(Default {
                place: Place { owner, path: default.path.iter().map(|key| key.as_str().into()).collect() },
                is_list: default.value.is_list(),
                value: value(&default.value, &mut cx)?,
                applies: parsed(&applies)?,
            });
        }
        for (index, entry) in mutation.injections.entries.iter().enumerate() {
            if node_labels.iter().any(|label| label.entry == index || label.earlier.contains(&index)) {
                let about = format!("whether spec.mutation.inject[{index}] matches");
                let applies = entry.cel("variables.template.?metadata", "variables.spec");
                variables.push((format!("injects{index}"), about, applies));
            }
        }
        for label in node_labels {
            let mut applies = format!("variables.{TAKES_DEFAULTS} && variables.injects{}", label.entry);
            for earlier in &label.earlier {
                let _ = write!(applies, " && !variables.injects{earlier}");
            }
            let value = cx.text("", &label.value, Meaning::Word);
            let value = value.map_or_else(|template| template.cel, |constant| cel::quote(&constant));
            defaults.push(Default {
                place: Place { owner: Owner::Spec, path: vec!["nodeSelector".into(), label.key.into()] },
                is_list: false,
                value: parsed(&value)?,
                applies: parsed(&applies)?,
            });
        }
        let redirected = mutation.redirect.as_ref().map(|redirect| Redirected::new(redirect, &mut cx)).transpose()?;
        Ok(Self { defaults, redirected, variables })
    }

    /// A check as it evaluates templates.
    pub fn lowered(&self, one: &Lowered) -> Result<Lowered, Unreadable> {
        let Lowered { check, rule, reads_parameters } = one;
        let variables = rule.variables.iter().map(|(name, text)| Ok((*name, self.text(text, &Scope::default())?)));
        let rule = Rule {
            variables: variables.collect::<Result<_, _>>()?,
            findings: rule.findings.iter().map(|finding| self.finding(finding)).collect::<Result<_, _>>()?,
        };
        Ok(Lowered { check, rule, reads_parameters: *reads_parameters })
    }

    fn finding(&self, finding: &Finding) -> Result<Finding, Unreadable> {
        let Finding { scope: finding_scope, violated, says, complies } = finding;
        let scope = match finding_scope {
            FindingScope::Pod => Scope::default(),
            FindingScope::Containers => Scope::of_item("c", Owner::Container),
            FindingScope::Volumes | FindingScope::List(_) => Scope::of_item("v", Owner::Volume),
        };
        let complies = complies.as_ref().map(|complies| self.complies(complies, &scope)).transpose()?;
        let (violated, says) = (self.condition(violated, &scope)?, self.string(says, &scope)?);
        Ok(Finding { scope: *finding_scope, violated, says, complies })
    }

    /// A custom check as it evaluates templates.
    pub fn custom(&self, custom: &Custom, style: ExpressionStyle) -> Result<Custom, Unreadable> {
        let scope = match custom.check.target {
            CustomTarget::Pod | CustomTarget::Object => Scope::default(),
            CustomTarget::Containers => Scope::of_item("container", Owner::Container),
            CustomTarget::Volumes => Scope::of_item("volume", Owner::Volume),
        };
        let expression = self.condition(&custom.check.expression, &scope)?;
        let message = custom.check.message_expression.as_ref();
        let message = message.map(|message| self.string(message, &scope)).transpose()?;
        Ok(custom.with_expressions(expression, message, style))
    }

    /// An expression of type bool.
    fn condition(&self, text: &str, scope: &Scope) -> Result<String, Unreadable> {
        match self.of_redirected(text, scope, "exists")? {
            Some(looped) => written(&looped),
            None => self.text(text, scope),
        }
    }

    /// An expression of type string.
    fn string(&self, text: &str, scope: &Scope) -> Result<String, Unreadable> {
        match self.of_redirected(text, scope, "map")? {
            Some(looped) => written(&call("_[_]", vec![looped, literal::int(0)])),
            None => self.text(text, scope),
        }
    }

    /// A macro with an expression about the item's image over a list of one: the reference to which the image is
    /// redirected. So it is evaluated once. `None` if the expression does not read the image.
    fn of_redirected(&self, text: &str, scope: &Scope, looping: &str) -> Result<Option<Node>, Unreadable> {
        let of = parsed(text)?;
        let (Some(redirected), Some(image)) = (&self.redirected, scope.image()) else { return Ok(None) };
        if !scope.reads_image(&of) {
            return Ok(None);
        }
        let name = unused(IMAGE, &|name| mentions(&of, name));
        let target = Some(Box::new(redirected.references(image)));
        let body = self.reader().rewrite(of, &scope.with_image(&name));
        Ok(Some(node(Expr::Call { function: looping.into(), target, args: vec![ident(&name), body] })))
    }

    /// A cheap test. It cannot redirect an image, so it only knows images that stay.
    fn complies(&self, text: &str, scope: &Scope) -> Result<String, Unreadable> {
        let of = parsed(text)?;
        let (Some(redirected), Some(image), true) = (&self.redirected, scope.image(), scope.reads_image(&of)) else {
            return self.text(text, scope);
        };
        let Some(stays) = &redirected.stays else { return Ok("false".to_owned()) };
        let reader = Reader { redirected: None, ..self.reader() };
        written(&call("_&&_", vec![replace(stays.clone(), IMAGE, &image), reader.rewrite(of, scope)]))
    }

    fn text(&self, text: &str, scope: &Scope) -> Result<String, Unreadable> {
        let of = parsed(text)?;
        let changed = self.reader().rewrite(of.clone(), scope);
        if changed == of { Ok(text.to_owned()) } else { written(&changed) }
    }

    fn reader(&self) -> Reader<'_> {
        Reader { defaults: &self.defaults, redirected: self.redirected.as_ref() }
    }
}

impl Redirected {
    fn new(redirect: &Redirect, cx: &mut Lowering<'_>) -> Result<Self, Unreadable> {
        let stays = redirect.stays(cx, IMAGE).map(|stays| parsed(&stays)).transpose()?;
        let references = format!("({} ? {} : {IMAGES})", not_a_probe(), redirect.lower(cx, IMAGES));
        Ok(Self { references: parsed(&references)?, stays })
    }

    /// CEL of type list(string): the one reference to which `image` is redirected.
    fn references(&self, image: Node) -> Node {
        replace(self.references.clone(), IMAGES, &literal::list(vec![image]))
    }

    /// CEL of type string: the reference to which `image` is redirected.
    fn reference(&self, image: Node) -> Node {
        call("_[_]", vec![self.references(image), literal::int(0)])
    }
}

/// CEL of type bool: whether the request is not a probe. The pods of probes are not mutated.
fn not_a_probe() -> String {
    format!("request.namespace != '{}'", names::PROBE_NAMESPACE)
}

fn parsed(text: &str) -> Result<Node, Unreadable> {
    parse_unexpanded(text, SYNTAX).map(|parsed| parsed.root).map_err(|_| Unreadable)
}

fn written(of: &Node) -> Result<String, Unreadable> {
    ExpressionStyle::AsLowered.tree("", of).ok_or(Unreadable)
}

/// The value of a default. A list or map is dynamic, because its type is not that of the field in the schema.
fn value(of: &DefaultValue, cx: &mut Lowering<'_>) -> Result<Node, Unreadable> {
    let value = parsed(&of.cel(cx))?;
    let is_scalar = match of {
        DefaultValue::Flag(_) | DefaultValue::Word(_) | DefaultValue::Integer(_) => true,
        DefaultValue::Integers(_) | DefaultValue::Texts(_) | DefaultValue::Fields(_) => false,
        DefaultValue::Constant(value) => !value.is_array() && !value.is_object(),
    };
    Ok(if is_scalar { value } else { call("dyn", vec![value]) })
}

fn capitalized(key: &str) -> String {
    let mut chars = key.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
