//! A request that the match condition of an example profile leaves out has no violation.

use std::time::Instant;

use palisade_api::names::Shape;
use palisade_cel::Minor;
use palisade_prove::{Answer, Operation};

use crate::support::{self, Types};

#[test]
#[allow(clippy::disallowed_methods, reason = "the table has the duration of each proof")]
fn fast_path_of_each_example_is_proved_sound() {
    let types = Types::of(Minor::DEFAULT);
    let mut failed = Vec::new();
    for (name, profile) in support::examples() {
        if std::env::var("ONLY").is_ok_and(|only| only != name) {
            continue;
        }
        let compiled = support::compile(&profile);
        for shape in Shape::OF_PODS {
            let Some(policy) = support::policy(&compiled, shape) else { continue };
            for (kind, short) in support::kinds(shape) {
                let object = types.kind(&kind);
                for operation in [Operation::Create, Operation::Update] {
                    let requests = support::requests(&object, short, operation, &types.params);
                    let start = Instant::now();
                    let answer = requests.left_out_are_admitted(&policy);
                    let text = match &answer {
                        Answer::Proved(proved) => {
                            format!("proved, {} clauses", proved.clauses())
                        }
                        Answer::Counterexample(request) => format!("perhaps not: {request:?}"),
                        Answer::Unknown(why) => format!("unknown: {why}"),
                    };
                    println!("{name} {short} {operation:?}: {text}, {} ms", start.elapsed().as_millis());
                    if !matches!(answer, Answer::Proved(_)) {
                        failed.push(format!("{name} {short} {operation:?}: {text}"));
                    }
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}
