//! Values of parameters for all namespaces: `--param`, and `parameters` in `.palisade.yaml`.

use std::collections::BTreeMap;

use palisade_api::{IntOrText, ToolSecurityProfile};

use crate::{
    options::INPUT,
    profiles::{self, Accepted},
    report::{Failure, Problem},
};

/// The arguments for values of parameters.
#[derive(Debug, Default, clap::Args)]
pub struct ParamArgs {
    /// Value of a profile parameter, for all namespaces. Repeatable.
    #[arg(long = "param", value_name = "NAME=VALUE", value_parser = parse, help_heading = INPUT)]
    pub params: Vec<(String, IntOrText)>,
}

impl ParamArgs {
    /// The profiles with these values.
    ///
    /// # Errors
    /// No profile has one of the parameters, or rejects its value.
    pub fn set(&self, accepted: Vec<Accepted>) -> Result<Vec<Accepted>, Failure> {
        set(accepted, &self.params.iter().cloned().collect())
    }
}

fn parse(text: &str) -> Result<(String, IntOrText), String> {
    let Some((name, value)) = text.split_once('=').filter(|(name, _)| !name.is_empty()) else {
        return Err("must be NAME=VALUE, for example uid=50001".to_owned());
    };
    let value = value.parse().map_or_else(|_| IntOrText::Text(value.to_owned()), IntOrText::Int);
    Ok((name.to_owned(), value))
}

/// The profiles with values of parameters for all namespaces, compiled and checked again.
///
/// # Errors
/// No profile has one of the parameters, or rejects its value.
pub fn set(accepted: Vec<Accepted>, values: &BTreeMap<String, IntOrText>) -> Result<Vec<Accepted>, Failure> {
    for name in values.keys() {
        let declares = |one: &Accepted| one.profile.spec.parameters.iter().any(|parameter| parameter.name == *name);
        if !accepted.iter().any(declares) {
            let problem = Problem::new(format!("--param {name}: no profile has this parameter"));
            return Err(Failure::CouldNotRun(vec![problem]));
        }
    }
    let again = |one: Accepted| {
        let profile = with(&one.profile, values);
        if profile == one.profile { Ok(one) } else { profiles::accept_live(profile) }
    };
    accepted.into_iter().map(again).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)
}

/// A profile in which these values are the only ones of its parameters.
fn with(profile: &ToolSecurityProfile, values: &BTreeMap<String, IntOrText>) -> ToolSecurityProfile {
    let mut profile = profile.clone();
    for parameter in &mut profile.spec.parameters {
        if let Some(value) = values.get(&parameter.name) {
            parameter.sources.clear();
            parameter.default = Some(value.clone());
            for one in &mut profile.spec.overrides {
                one.parameters.remove(&parameter.name);
            }
        }
    }
    profile.spec.overrides.retain(|one| !one.parameters.is_empty());
    profile
}
