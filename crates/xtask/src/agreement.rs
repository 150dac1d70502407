//! How far Palisade's CEL agrees with the API server's.

use std::path::{Path, PathBuf};

use palisade_agreement::{Error, Report, Specification, Subject, cases::Cases, file, goldens, oracle};
use palisade_cel::Minor;

/// Prints the report. Returns whether all differences are listed and none fails open.
pub(crate) fn run(files: &[PathBuf], minor: Minor) -> Result<bool, Error> {
    let mut report = Report::default();
    if files.is_empty() {
        for minor in Minor::ALL {
            let lines = goldens(&oracle(), minor)?;
            report.compare(&minor.to_string(), &mut Subject::new(&oracle(), minor)?, &lines, true);
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

/// Prints the results of the CEL specification's tests. Returns whether Palisade and the API server agree in all.
pub(crate) fn specification(path: &Path, minor: Minor) -> Result<bool, Error> {
    let mut specification = Specification::default();
    specification.compare(&mut Subject::new(&oracle(), minor)?, path)?;
    print!("{specification}");
    Ok(specification.differing.is_empty())
}

/// Prints how far the offline API server agrees with an API server's answers to policies and requests. Returns whether
/// all agree.
pub(crate) fn cases(directory: &Path) -> Result<bool, Error> {
    let cases = Cases::compare(directory)?;
    print!("{cases}");
    Ok(cases.agree())
}
