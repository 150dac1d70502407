//! A certificate in files, for example of cert-manager.

use std::path::Path;

use super::{Leaf, UnusableCertificate};

/// Reads `tls.crt` and `tls.key` of a directory, and `ca.crt` if it exists.
///
/// # Errors
///
/// The file, and its error.
pub fn read(directory: &Path) -> Result<(Leaf, Option<String>), UnusableCertificate> {
    let file = |name: &str| {
        let path = directory.join(name);
        std::fs::read(&path).map_err(|source| UnusableCertificate::File { path: path.display().to_string(), source })
    };
    let leaf = Leaf::read(&file("tls.crt")?, &file("tls.key")?)?;
    let authority = match file("ca.crt") {
        Ok(pem) => Some(String::from_utf8_lossy(&pem).into_owned()).filter(|pem| !pem.trim().is_empty()),
        Err(UnusableCertificate::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok((leaf, authority))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::certificates::generation::Generation;

    #[test]
    fn files_are_read_and_errors_name_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let error = read(directory.path()).unwrap_err().to_string();
        assert!(error.contains("tls.crt cannot be read"), "{error}");
        let made = Generation::make(&["a".into()], Duration::from_mins(1), 0).unwrap();
        for (name, text) in [("tls.crt", &made.certificate), ("tls.key", &made.key)] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let (leaf, authority) = read(directory.path()).unwrap();
        assert_eq!((leaf.not_after, authority), (60, None));
        std::fs::write(directory.path().join("ca.crt"), &made.authority).unwrap();
        assert_eq!(read(directory.path()).unwrap().1, Some(made.authority));
    }
}
