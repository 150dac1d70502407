//! How far Palisade's CEL agrees with the API server's.

use std::path::{Path, PathBuf};

use palisade_agreement::{Error, MINORS, Report, Subject, cases::Cases, file, goldens, oracle};

/// Prints the report; whether all differences are listed and none fails open.
pub(crate) fn run(files: &[PathBuf], minor: u8, cases: Option<&Path>) -> Result<bool, Error> {
    if let Some(directory) = cases {
        let cases = Cases::compare(directory)?;
        print!("{cases}");
        return Ok(cases.agree());
    }
    let mut report = Report::default();
    if files.is_empty() {
        for minor in MINORS {
            let lines = goldens(&oracle(), minor)?;
            report.compare(&format!("1.{minor}"), &mut Subject::new(&oracle(), minor)?, &lines, true);
        }
    } else {
        let mut subject = Subject::new(&oracle(), minor)?;
        for path in files {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            report.compare(&name, &mut subject, &file(path)?, false);
        }
    }
    print!("{report}");
    Ok(report.unlisted.is_empty())
}
