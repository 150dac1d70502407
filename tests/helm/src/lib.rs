//! The chart in `charts/palisade`: helm, which renders it, and what can be said of it without helm.
#![allow(clippy::disallowed_methods, reason = "reads the project's files")]

use std::path::PathBuf;

use palisade_needs::Need;

/// The module and version of helm that `cargo xtask helm-program` builds.
const MODULE: &str = include_str!("../go.mod");

pub fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub fn helm() -> Need {
    let version = MODULE.lines().find_map(|line| line.trim().strip_prefix("helm.sh/helm/v4 ")?.split(' ').next());
    palisade_needs::helm(version.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
    };

    use serde_json::Value as Json;

    use super::*;

    fn read(path: &str) -> String {
        fs::read_to_string(root().join(path)).unwrap()
    }

    fn yaml(path: &str) -> Json {
        serde_saphyr::from_str(&read(path)).unwrap()
    }

    #[test]
    fn versions_are_those_of_the_project() {
        let (chart, crds) = (yaml("charts/palisade/Chart.yaml"), yaml("crds/kustomization.yaml"));
        let label = &crds["labels"][0]["pairs"]["app.kubernetes.io/version"];
        for (what, version) in [("version", &chart["version"]), ("appVersion", &chart["appVersion"]), ("label", label)]
        {
            assert_eq!(version, env!("CARGO_PKG_VERSION"), "{what}");
        }
    }

    /// The paths of all values, as far as the schema names their parts.
    fn values(at: &str, values: &Json, schema: &Json, whole: &Json, out: &mut BTreeSet<String>) {
        let schema = match schema["$ref"].as_str() {
            Some(reference) => whole.pointer(reference.trim_start_matches('#')).unwrap(),
            None => schema,
        };
        // What is empty by default is one value, whatever may be in it.
        let empty = values.as_object().is_none_or(serde_json::Map::is_empty);
        let Some(properties) = schema["properties"].as_object().filter(|_| !empty) else {
            out.insert(at.to_owned());
            return;
        };
        assert_eq!(schema["additionalProperties"], false, "{at}: a key with a slip would be passed over");
        for (key, schema) in properties.iter().filter(|(key, _)| *key != "global") {
            self::values(&format!("{at}.{key}"), &values[key], schema, whole, out);
        }
        let there = values.as_object().unwrap_or_else(|| panic!("{at} is not in values.yaml"));
        let unknown: Vec<_> = there.keys().filter(|key| !properties.contains_key(*key)).collect();
        assert!(unknown.is_empty(), "{at}: not in the schema: {unknown:?}");
    }

    #[test]
    fn schema_has_exactly_the_values() {
        let schema: Json = serde_json::from_str(&read("charts/palisade/values.schema.json")).unwrap();
        let (file, mut paths) = (yaml("charts/palisade/values.yaml"), BTreeSet::new());
        values("", &file, &schema, &schema, &mut paths);
        assert!(paths.len() > 40, "{paths:?}");
        for path in paths {
            let pointer = path.replace('.', "/");
            assert!(file.pointer(&pointer).is_some(), "{path} is not in values.yaml");
        }
    }

    /// The series that the programs have, each with its labels.
    fn series() -> BTreeMap<String, BTreeSet<String>> {
        let text = palisade_controller::example_metrics().unwrap() + &palisade_webhook::example_metrics().unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let of = |line: &str| {
            let (name, labels) = line.split_once('{').unwrap_or_else(|| (line.split(' ').next().unwrap(), ""));
            let labels = labels.split("\",").filter_map(|label| Some(label.split_once("=\"")?.0.to_owned()));
            // Which process it is of, Prometheus says.
            (name.to_owned(), labels.chain(["namespace".to_owned(), "pod".to_owned()]).collect())
        };
        lines.map(of).collect()
    }

    /// The labels that a query asks for, all of which its metric has.
    fn labels(query: &str) -> BTreeSet<&str> {
        let within = |open: &'static str, close: char| {
            query.split(open).skip(1).filter_map(move |rest| rest.split(close).next()).flat_map(|list| list.split(','))
        };
        let matched = within("{", '}').filter_map(|one| one.split(['=', '!']).next());
        matched.chain(within(" by (", ')')).map(str::trim).collect()
    }

    fn metrics(query: &str) -> Vec<&str> {
        let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let ours = ["palisade_", "process_", "leader_election_"];
        words.filter(|word| ours.iter().any(|start| word.starts_with(start))).collect()
    }

    #[test]
    fn alerts_and_dashboard_query_metrics_that_exist() {
        let alerts = yaml("charts/palisade/files/alerts.yaml");
        let dashboard: Json = serde_json::from_str(&read("charts/palisade/files/dashboard.json")).unwrap();
        let mut queries: Vec<&str> = alerts["groups"][0]["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rule| rule["expr"].as_str().unwrap())
            .collect();
        for panel in dashboard["panels"].as_array().unwrap() {
            queries.extend(panel["targets"].as_array().unwrap().iter().map(|target| target["expr"].as_str().unwrap()));
        }
        let series = series();
        assert!(queries.len() > 20 && series.len() > 20, "{queries:?} {series:?}");
        for query in queries {
            let metrics = metrics(query);
            assert!(!metrics.is_empty(), "{query}");
            for metric in metrics {
                let known = series.get(metric);
                let known = known.unwrap_or_else(|| panic!("{metric} of {query} is not a metric: {series:#?}"));
                // Where a Prometheus has several clusters, it names them by a label of its own.
                for label in labels(query).into_iter().filter(|label| *label != "cluster") {
                    assert!(known.contains(label), "{query}: {metric} has no label {label}: {known:?}");
                }
            }
        }
    }

    /// The place of a heading in a page, as GitHub and mdBook make it.
    fn places(page: &str) -> BTreeSet<String> {
        let headings = page.lines().filter_map(|line| line.strip_prefix("## "));
        headings.map(|heading| heading.to_lowercase().replace(' ', "-")).collect()
    }

    #[test]
    fn each_alert_says_what_to_do_and_is_tested() {
        let alerts = yaml("charts/palisade/files/alerts.yaml");
        let tests = read("tests/alerts/alerts.test.yaml");
        let mut sections = places(&read("docs/runbooks/alerts.md"));
        for rule in alerts["groups"][0]["rules"].as_array().unwrap() {
            let name = rule["alert"].as_str().unwrap();
            let severity = rule["labels"]["severity"].as_str().unwrap_or_default();
            assert!(["critical", "warning"].contains(&severity), "{name}: severity {severity:?}");
            for text in ["summary", "description"] {
                let said = rule["annotations"][text].as_str().unwrap_or_default();
                assert!(said.len() > 20, "{name}: {text} is {said:?}");
            }
            let place = name.to_lowercase();
            let url = format!("{}/blob/main/docs/runbooks/alerts.md#{place}", env!("CARGO_PKG_REPOSITORY"));
            assert_eq!(rule["annotations"]["runbook_url"], url, "{name}");
            assert!(sections.remove(&place), "docs/runbooks/alerts.md has no section {name}");
            for case in ["fires", "is quiet"] {
                let case = format!("name: \"{name}: {case}\"");
                assert!(tests.contains(&case), "tests/alerts/alerts.test.yaml has no test {case}");
            }
        }
        assert!(sections.is_empty(), "sections of docs/runbooks/alerts.md that are of no alert: {sections:?}");
    }

    #[test]
    fn dashboard_can_be_imported_into_grafana() {
        let dashboard: Json = serde_json::from_str(&read("charts/palisade/files/dashboard.json")).unwrap();
        assert!(dashboard["uid"].is_string() && dashboard["schemaVersion"].as_i64() > Some(35), "uid, schemaVersion");
        assert!(dashboard["id"].is_null(), "an id is that of one Grafana");
        let sources = dashboard["templating"]["list"].as_array().unwrap();
        let source = sources.iter().find(|variable| variable["type"] == "datasource").unwrap();
        let reference = format!("${{{}}}", source["name"].as_str().unwrap());
        let variables: Vec<_> = sources.iter().filter_map(|variable| variable["name"].as_str()).collect();
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_i64().unwrap()), "{title}: two panels have its id");
            assert!(panel["description"].as_str().is_some_and(|said| said.len() > 10), "{title} is not explained");
            assert!(panel["fieldConfig"]["defaults"]["unit"].is_string(), "{title} has no unit");
            let at = &panel["gridPos"];
            let number = |key: &str| at[key].as_i64().unwrap();
            for (x, y) in (0..number("w")).flat_map(|x| (0..number("h")).map(move |y| (x, y))) {
                let cell = (number("x") + x, number("y") + y);
                assert!(cell.0 < 24 && cells.insert(cell), "{title} is over another panel, or outside: {cell:?}");
            }
            for target in panel["targets"].as_array().unwrap() {
                assert_eq!(target["datasource"]["uid"], reference, "{title}");
                let query = target["expr"].as_str().unwrap();
                for used in query.split("\"$").skip(1).filter_map(|rest| rest.split('"').next()) {
                    assert!(variables.contains(&used), "{title}: no variable {used}");
                }
                assert!(query.contains("cluster=~\"$cluster\""), "{title} is about all clusters");
            }
        }
    }
}
