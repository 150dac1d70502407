//! What policies of other projects do with requests, which an API server has answered.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "all of this is tests")]

use std::{path::Path, process::ExitCode};

use palisade_agreement::cases::Cases;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = palisade_needs::corpus(&root, "cases");
    palisade_needs::run(vec![cases.trial("cases_of_others_get_the_answers_of_an_api_server", |path| {
        let cases = Cases::compare(&path).unwrap();
        println!("{cases}");
        assert!(cases.agree(), "{cases}");
    })])
}
