//! What policies do with requests: the cases of this project. Those of others are in `corpus.rs`.
#![allow(clippy::disallowed_methods, reason = "cases are files")]

use std::path::Path;

use palisade_agreement::cases::own;
use palisade_cel::Minor;

#[test]
fn own_admission_cases_get_the_expected_verdicts() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/apiserver/cases/admission");
    let cases = own(&directory).unwrap();
    assert!(cases.len() >= 40, "{} cases", cases.len());
    let (mut count, mut wrong) = (0, Vec::new());
    for minor in Minor::ALL {
        for case in cases.iter().filter(|case| case.from <= minor) {
            let cluster = match case.cluster(minor) {
                Ok(cluster) => cluster,
                Err(error) => {
                    wrong.push(format!("{minor} {}: {error}", case.name));
                    continue;
                }
            };
            for (index, ask) in case.requests.iter().enumerate() {
                let request = case.request(ask, &cluster).unwrap_or_else(|error| panic!("{}: {error}", case.name));
                count += 1;
                let review = cluster.admit(&request);
                wrong.extend(ask.difference(&review).map(|text| format!("{minor} {} {index}: {text}", case.name)));
            }
        }
    }
    println!("{count} answers, {} right", count - wrong.len());
    assert!(wrong.is_empty(), "{} of {count} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
}
