//! From the text of an expression to a program, with what an environment has.

use crate::{
    check::{self, Checked, ResultType},
    environment::Environment,
    eval::Program,
    issue::Issue,
    parse,
};

impl Environment {
    /// Parses and checks an expression, but does not evaluate constants yet.
    ///
    /// # Errors
    /// The errors in it, by position.
    pub fn check(&self, source: &str) -> Result<Checked, Vec<Issue>> {
        check::check(parse::parse(source, self.syntax())?, self)
    }

    /// Parses and checks an expression, and makes a program of it: all steps of the API server before evaluation.
    ///
    /// # Errors
    /// The errors in it, by position.
    pub fn compile(&self, source: &str, result: ResultType) -> Result<Program, Vec<Issue>> {
        let checked = self.check(source)?;
        if let Some(issue) = result.refuses(checked.output_type()) {
            return Err(vec![issue]);
        }
        Program::new(&checked, self).map_err(|issue| vec![issue])
    }
}
