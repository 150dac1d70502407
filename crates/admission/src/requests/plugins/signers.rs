//! Who may do something with the certificates of a signer (`pkg/certauthorization`).

use palisade_cel::authorizer::{Attributes as Question, User};

use super::Attributes;
use crate::objects::Refused;

/// Whether the user may `verb` for a signer, by its name or that of its domain. `why` is the message if not.
pub(super) fn authorized(
    attributes: &Attributes<'_>,
    plugin: &str,
    verb: &str,
    signer: &str,
    why: &str,
) -> Result<(), Refused> {
    let by = &attributes.request.user;
    let user = User { name: by.name.clone(), groups: by.groups.clone(), extra: by.extra.clone() };
    let domain = format!("{}/*", signer.split('/').next().unwrap_or_default());
    let authorizer = attributes.cluster.authorizer();
    let mut known = true;
    for name in [signer.to_owned(), domain] {
        let question = Question {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Question::default()
        };
        match authorizer.answer(&user, &question) {
            Some(decision) if decision.allowed => return Ok(()),
            Some(_) => {}
            None => known = false,
        }
    }
    if known {
        return Err(attributes.forbidden(why));
    }
    Err(Refused::NoVerdict(format!(
        "admission plugin {plugin}: it is not known whether {:?} may {verb} for the signer {signer:?}, which the API \
         server asks its authorizer",
        by.name
    )))
}
