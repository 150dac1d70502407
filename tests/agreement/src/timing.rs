//! How long Palisade's CEL takes, measured as `tests/oracle/bench.go` measures the API server's.

use std::{hint::black_box, time::Instant};

use palisade_cel::{Mode, eval::PER_CALL_LIMIT};
use serde::Deserialize;

use crate::{
    bindings::bind,
    compare::{Subject, result_type},
    lines::Line,
};

/// How long an expression takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Timing {
    /// From its source to what can be evaluated.
    pub compile: u32,
    /// Evaluating it, with its cost.
    pub evaluate: u32,
}

/// Of so many batches the fastest counts.
const BATCHES: u32 = 15;
/// The least time of a batch, in nanoseconds.
const BATCH_MIN: u128 = 200_000;

impl Subject {
    /// Whether it is fit for measuring: both accept it, it has a value, and no variables, whose values stay.
    pub fn is_measurable(&mut self, line: &Line) -> bool {
        line.variables.is_empty()
            && !line.mutation
            && line.answer.value.is_some()
            && self.environment(line, Mode::Stored).compile(&line.expr, result_type(line)).is_ok()
    }

    /// Measures an expression; nothing if Palisade rejects it.
    pub fn measure(&mut self, line: &Line) -> Option<Timing> {
        let (environment, expected) = (self.environment(line, Mode::Stored), result_type(line));
        let program = environment.compile(&line.expr, expected).ok()?;
        let compile = fastest(|| environment.compile(black_box(&line.expr), expected));
        let activation = bind(self.fixture(line));
        let evaluate = fastest(|| program.evaluate(black_box(&activation), PER_CALL_LIMIT));
        Some(Timing { compile, evaluate })
    }
}

fn fastest<T>(call: impl Fn() -> T) -> u32 {
    let batch = |size: u32| {
        let start = Instant::now();
        for _ in 0..size {
            black_box(call());
        }
        start.elapsed().as_nanos()
    };
    let mut size = 1;
    while batch(size) < BATCH_MIN && size < 1 << 20 {
        size *= 2;
    }
    let best = (0..BATCHES).map(|_| batch(size)).min().unwrap_or_default();
    u32::try_from(best / u128::from(size)).unwrap_or(u32::MAX)
}
