//! The private directory of one control plane, and the removal of those that a killed program left behind.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use tempfile::TempDir;

use crate::Error;

const PREFIX: &str = "palisade-controlplane-";
const LOCK: &str = "lock";

/// A directory that is removed when dropped. It is locked while in use, so that others can tell it from a leftover.
#[derive(Debug)]
pub(crate) struct WorkDir {
    // Declared first, dropped first: the lock lasts as long as there is something to protect.
    dir: TempDir,
    _lock: File,
}

impl WorkDir {
    pub(crate) fn create() -> Result<Self, Error> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> Result<Self, Error> {
        remove_leftovers(parent);
        loop {
            // tempfile creates it with mode 0700.
            let dir = tempfile::Builder::new()
                .prefix(PREFIX)
                .tempdir_in(parent)
                .map_err(Error::io("cannot create a temporary directory"))?;
            let path = dir.path().join(LOCK);
            let lock = File::create(&path)
                .and_then(|lock| lock.lock().map(|()| lock))
                .map_err(Error::io("cannot lock the temporary directory"))?;
            // Another start may have taken it for a leftover before it was locked. That one held the lock until the
            // directory was gone.
            if path.exists() {
                return Ok(Self { dir, _lock: lock });
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn remove(self) -> Result<(), Error> {
        self.dir.close().map_err(Error::io("cannot remove the temporary directory"))
    }
}

/// A killed program cannot remove its directory, and etcd's takes 130 MB. The next start does it.
fn remove_leftovers(parent: &Path) {
    for dir in ours(parent) {
        // No lock file: its owner is about to lock it. No lock to be had: its owner lives.
        // Nothing here may fail a start; the directories of other users fail right here.
        if let Ok(lock) = File::open(dir.join(LOCK))
            && lock.try_lock().is_ok()
        {
            let _ = fs::remove_dir_all(&dir);
        }
    }
}

fn ours(parent: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(parent) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unlocked_leftover_directories_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let [left, used, fresh, other] =
            ["palisade-controlplane-a", "palisade-controlplane-b", "palisade-controlplane-c", "other"]
                .map(|name| parent.path().join(name));
        for dir in [&left, &used, &fresh, &other] {
            fs::create_dir(dir).unwrap();
        }
        for dir in [&left, &used, &other] {
            File::create(dir.join(LOCK)).unwrap();
        }
        let held = File::open(used.join(LOCK)).unwrap();
        held.lock().unwrap();

        remove_leftovers(parent.path());

        let exists = [&left, &used, &fresh, &other].map(|dir| dir.exists());
        assert_eq!(exists, [false, true, true, true]);
    }

    #[test]
    fn starts_at_once_take_no_directory_from_each_other() {
        let parent = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..200 {
                        let dir = WorkDir::create_in(parent.path()).unwrap();
                        std::thread::yield_now();
                        File::create(dir.path().join("a file")).unwrap();
                        dir.remove().unwrap();
                    }
                });
            }
        });
    }
}
