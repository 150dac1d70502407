//! Objects of one kind, kept by a watch.

use std::{borrow::Borrow, collections::BTreeMap, ops::RangeBounds};

use kube::{core::ObjectMeta, runtime::watcher::Event};

/// Objects by key. Values are the parts of an object that are kept; they are cheap to clone.
#[derive(Debug)]
pub struct Table<K, V> {
    rows: BTreeMap<K, Row<V>>,
    /// The objects of a list that is not complete yet.
    listing: Option<BTreeMap<K, Row<V>>>,
    synced: bool,
    /// The highest version that the watch has shown. It shows them in their order.
    shown: u64,
}

#[derive(Debug)]
struct Row<V> {
    /// The resource version; 0 if it is not a number. Kubernetes promises since 1.35 that they can be compared,
    /// and etcd made them so before.
    version: u64,
    value: V,
}

#[derive(Debug, PartialEq)]
pub struct Change<K, V> {
    pub key: K,
    /// Before, if it existed.
    pub before: Option<V>,
    /// After, if it exists.
    pub after: Option<V>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), listing: None, synced: false, shown: 0 }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> Table<K, V> {
    /// True if a list has been read to its end.
    pub fn synced(&self) -> bool {
        self.synced
    }

    /// A list begins. Until it is complete, the known objects stay.
    pub fn begin(&mut self) {
        self.listing = Some(BTreeMap::new());
    }

    /// An object of a list.
    pub fn list(&mut self, key: K, version: u64, value: V) {
        self.listing.get_or_insert_default().insert(key, Row { version, value });
    }

    /// A list is complete. Objects that are not in it are gone.
    pub fn finish(&mut self) -> Vec<Change<K, V>> {
        self.synced = true;
        let mut old = std::mem::take(&mut self.rows);
        let mut changes = Vec::new();
        for (key, mut row) in self.listing.take().unwrap_or_default() {
            let before = old.remove(&key);
            if let Some(before) = before {
                if before.version > row.version && row.version > 0 {
                    // The controller wrote it after the list was made.
                    row = before;
                } else if before.value != row.value {
                    let after = Some(row.value.clone());
                    changes.push(Change { key: key.clone(), before: Some(before.value), after });
                }
            } else {
                changes.push(Change { key: key.clone(), before: None, after: Some(row.value.clone()) });
            }
            self.rows.insert(key, row);
        }
        changes.extend(old.into_iter().map(|(key, row)| Change { key, before: Some(row.value), after: None }));
        changes
    }

    /// Sets an object. Ignores an older version than the known one.
    pub fn set(&mut self, key: K, version: u64, value: V) -> Option<Change<K, V>> {
        if self.rows.get(&key).is_some_and(|row| row.version > version && version > 0) {
            return None;
        }
        let before = self.rows.insert(key.clone(), Row { version, value: value.clone() }).map(|row| row.value);
        (before.as_ref() != Some(&value)).then_some(Change { key, before, after: Some(value) })
    }

    /// Sets an object from the response to a write. A late response is ignored: if the watch is beyond its version and
    /// the object does not exist, it was deleted since.
    pub fn wrote(&mut self, key: K, version: u64, value: V) -> Option<Change<K, V>> {
        if version > 0 && version <= self.shown && !self.rows.contains_key(&key) {
            return None;
        }
        self.set(key, version, value)
    }

    /// Removes an object. Ignores an older version than the known one: the object was created again since.
    pub fn remove(&mut self, key: K, version: u64) -> Option<Change<K, V>> {
        if self.rows.get(&key).is_some_and(|row| row.version > version && version > 0) {
            return None;
        }
        let before = self.rows.remove(&key)?;
        Some(Change { key, before: Some(before.value), after: None })
    }

    /// The version of an object; without it 1, so that any of this name is newer.
    pub fn version_of(&self, key: &K) -> u64 {
        self.rows.get(key).map_or(1, |row| row.version)
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.rows.get(key).map(|row| &row.value)
    }

    /// All objects in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.rows.iter().map(|(key, row)| (key, &row.value))
    }

    /// The objects of a range in order.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        self.rows.range(range).map(|(key, row)| (key, &row.value))
    }
}

/// Enters an event into a table.
pub fn feed<O, K: Ord + Clone, V: Clone + PartialEq>(
    table: &mut Table<K, V>,
    event: Event<O>,
    row: impl FnOnce(O) -> (K, u64, V),
) -> Vec<Change<K, V>> {
    match event {
        Event::Init => {
            table.begin();
            Vec::new()
        }
        Event::InitApply(object) => {
            let (key, version, value) = row(object);
            table.shown = version.max(table.shown);
            table.list(key, version, value);
            Vec::new()
        }
        Event::InitDone => table.finish(),
        Event::Apply(object) => {
            let (key, version, value) = row(object);
            table.shown = version.max(table.shown);
            table.set(key, version, value).into_iter().collect()
        }
        Event::Delete(object) => {
            let (key, version, _) = row(object);
            table.shown = version.max(table.shown);
            table.remove(key, version).into_iter().collect()
        }
    }
}

/// The name and the version of an object.
pub fn identity(meta: &ObjectMeta) -> (String, u64) {
    (meta.name.clone().unwrap_or_default(), version(meta))
}

/// The resource version as a number, or 0.
pub fn version(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// The metadata without the parts that change with each write.
pub fn slim(meta: ObjectMeta) -> ObjectMeta {
    ObjectMeta { managed_fields: None, resource_version: None, ..meta }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complete_list_replaces_known_objects() {
        let mut table = Table::default();
        table.set("a", 1, 'x');
        table.set("b", 2, 'y');
        table.begin();
        table.list("b", 5, 'z');
        table.list("c", 4, 'w');
        assert_eq!(table.get("a"), Some(&'x'));
        assert!(!table.synced());
        let changes = table.finish();
        assert!(table.synced());
        assert_eq!(
            changes,
            [
                Change { key: "b", before: Some('y'), after: Some('z') },
                Change { key: "c", before: None, after: Some('w') },
                Change { key: "a", before: Some('x'), after: None },
            ]
        );
    }

    #[test]
    fn older_versions_are_ignored() {
        let mut table = Table::default();
        // Our own write, known from its answer.
        table.set("a", 7, 'n');
        // The events of the watch arrive later.
        assert_eq!(table.set("a", 5, 'o'), None);
        assert_eq!(table.remove("a", 6), None);
        assert_eq!(table.set("a", 7, 'n'), None);
        assert_eq!(table.get("a"), Some(&'n'));
        assert_eq!(table.remove("a", 8), Some(Change { key: "a", before: Some('n'), after: None }));
    }

    #[test]
    fn late_response_does_not_restore_a_deleted_object() {
        let mut table = Table::default();
        let shows = |table: &mut Table<_, _>, event| feed(table, event, |(version, value)| ("a", version, value));
        // The answer to a write comes before its event, or after it.
        assert!(table.wrote("a", 7, 'x').is_some());
        assert_eq!(shows(&mut table, Event::Apply((7, 'x'))), []);
        assert_eq!(table.wrote("a", 7, 'x'), None);
        // It was written again, and deleted, and both shown before the answer came.
        shows(&mut table, Event::Apply((8, 'y')));
        assert_eq!(shows(&mut table, Event::Delete((9, 'y'))).len(), 1);
        assert_eq!(table.wrote("a", 8, 'y'), None);
        assert_eq!(table.get("a"), None);
        // A new one is there.
        assert!(table.wrote("a", 10, 'z').is_some());
        // It was deleted and created again, and both shown before the answer to the deletion came.
        let deleted = table.version_of(&"a");
        shows(&mut table, Event::Delete((11, 'z')));
        shows(&mut table, Event::Apply((12, 'w')));
        assert_eq!(table.remove("a", deleted), None);
        assert_eq!(table.get("a"), Some(&'w'));
    }

    #[test]
    fn a_write_during_a_list_survives_it() {
        let mut table = Table::default();
        table.set("a", 1, 'x');
        table.begin();
        table.list("a", 1, 'x');
        table.set("a", 9, 'y');
        assert_eq!(table.finish(), []);
        assert_eq!(table.get("a"), Some(&'y'));
    }
}
