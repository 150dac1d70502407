//! Whatever is in its files, no subcommand panics, and each ends with an exit code that its help names.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, reason = "all of this is tests")]

#[path = "support/commands.rs"]
mod commands;

use std::panic::{AssertUnwindSafe, catch_unwind};

use commands::{COMMANDS, Command, objects, part, parts, run};
use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, TestCaseError, TestRunner},
};
use serde_json::{Value as Json, json};

/// What is put in place of a part.
fn anything() -> impl Strategy<Value = Json> {
    let text = prop_oneof![
        Just("x".to_owned()),
        Just(String::new()),
        Just("2026-01-01T00:00:0é.000000Z".to_owned()),
        Just("日本語: \u{85}\u{2028}😀\u{0}".to_owned()),
        Just("[privileged] pod: forged; [x] ".to_owned()),
        Just("$uid".to_owned()),
        Just("object.spec.containers.all(c, c.name != '')".to_owned()),
        Just("9".repeat(400)),
        Just("é".repeat(300)),
        any::<String>(),
    ];
    let number = prop_oneof![
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(1e300)),
    ];
    let leaf = prop_oneof![
        3 => text.clone().prop_map(Json::from),
        2 => number,
        1 => any::<bool>().prop_map(Json::from),
        1 => Just(Json::Null),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((text.clone(), inner), 0..4)
                .prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

/// A file in place of a good one.
#[derive(Clone, Debug)]
enum Damage {
    /// Parts of its objects are others.
    Parts(Vec<(Index, Json)>),
    /// All of it is something else.
    Whole(Json),
    /// Bytes of its text are others.
    Bytes(Vec<(Index, Vec<u8>)>),
    /// It is these bytes.
    Raw(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        6 => prop::collection::vec((any::<Index>(), anything()), 1..3).prop_map(Damage::Parts),
        1 => anything().prop_map(Damage::Whole),
        2 => prop::collection::vec((any::<Index>(), prop::collection::vec(any::<u8>(), 0..6)), 1..4).prop_map(Damage::Bytes),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Damage::Raw),
    ]
}

impl Damage {
    fn file(&self, good: &str) -> Vec<u8> {
        match self {
            Self::Parts(others) => {
                let mut all = objects(good);
                for (index, other) in others {
                    let count = all.iter().map(parts).sum();
                    let mut wanted = index.index(count);
                    for object in &mut all {
                        let own = parts(object);
                        if wanted < own {
                            *part(object, wanted).unwrap() = other.clone();
                            break;
                        }
                        wanted -= own;
                    }
                }
                all.iter().map(|object| format!("{object:#}\n---\n")).collect::<Vec<_>>().concat().into_bytes()
            }
            Self::Whole(value) => value.to_string().into_bytes(),
            Self::Bytes(others) => {
                let mut bytes = good.as_bytes().to_vec();
                for (index, other) in others {
                    let at = index.index(bytes.len());
                    let end = (at + other.len()).min(bytes.len());
                    bytes.splice(at..end, other.iter().copied());
                }
                bytes
            }
            Self::Raw(bytes) => bytes.clone(),
        }
    }
}

fn tried(command: &Command, input: usize, bytes: &[u8]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let outcome = catch_unwind(AssertUnwindSafe(|| run(command, directory.path(), input, bytes)));
    let what = format!("{} with {:?}", command.line, String::from_utf8_lossy(bytes));
    let outcome = outcome.map_err(|_| TestCaseError::fail(format!("a panic: {what}")))?;
    prop_assert!(outcome.code <= 2, "exit code {}: {}", outcome.code, what);
    prop_assert!(outcome.code != 2 || !outcome.err.is_empty(), "exit code 2 and no reason: {}", what);
    Ok(())
}

#[test]
fn every_command_handles_valid_files() {
    for command in &COMMANDS {
        let directory = tempfile::tempdir().unwrap();
        let outcome = run(command, directory.path(), usize::MAX, &[]);
        // Where a profile is wrong, nothing is printed.
        assert!(outcome.code < 2 && !outcome.out.is_empty(), "{}: {}{}", command.line, outcome.out, outcome.err);
    }
}

#[test]
fn damaged_files_panic_no_command() {
    // Each compiles and checks a profile, or builds a cluster: PROPTEST_CASES=256 makes 64 of them.
    let config = Config::default();
    let mut runner = TestRunner::new(Config { failure_persistence: None, cases: config.cases / 4, ..config });
    let inputs: Vec<_> =
        COMMANDS.iter().flat_map(|command| (0..command.inputs.len()).map(move |at| (command, at))).collect();
    runner
        .run(&(any::<Index>(), damage()), |(which, damage)| {
            let (command, input) = inputs[which.index(inputs.len())];
            tried(command, input, &damage.file(command.inputs[input].1))
        })
        .unwrap();
}

/// What once panicked.
#[test]
fn malformed_metadata_panics_no_command() {
    for value in ["x", "{labels: [7]}"] {
        for command in &COMMANDS {
            for (input, (_, good)) in command.inputs.iter().enumerate() {
                let mut all = objects(good);
                let value: Json = objects(value).pop().unwrap_or_default();
                all.iter_mut().filter_map(Json::as_object_mut).for_each(|object| {
                    object.insert("metadata".to_owned(), value.clone());
                });
                let text = all.iter().map(|object| format!("{object:#}\n---\n")).collect::<Vec<_>>().concat();
                tried(command, input, text.as_bytes()).unwrap();
            }
        }
    }
}
