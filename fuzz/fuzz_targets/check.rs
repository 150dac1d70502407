//! Any text as an expression: parsed and checked without a panic, a stack overflow or a long run.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palisade_cel::{Environment, ResultType};

static ENVIRONMENTS: LazyLock<[Environment; 2]> = LazyLock::new(palisade_fuzz::environments);

fuzz_target!(|source: &str| {
    for environment in ENVIRONMENTS.iter() {
        if let Err(issues) = environment.compile(source, ResultType::Any) {
            // Each can be shown to whoever wrote the expression.
            assert!(!issues.is_empty());
            for issue in issues {
                let _ = issue.display(source).to_string();
            }
        }
    }
});
