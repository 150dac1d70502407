//! `palisade report`: the page, and the numbers in it.

use std::{collections::BTreeSet, fs, path::Path};

use palisade_kube_json::json::set;
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use super::{Run, directory, run_in};
use html::Html;
use tenants::Kind;

#[path = "../support/html.rs"]
mod html;
#[path = "../support/tenants.rs"]
mod tenants;

const TIME: &str = "2026-11-25T08:00:00Z";
const COUNT: usize = 40;
/// Where the pages of checks are.
const PAGES: &str = "https://github.com/palisade-dev/palisade/blob/main/docs/checks/";

/// The files of a cluster, in a directory.
fn cluster(count: usize) -> TempDir {
    let files = tenants::cluster(count);
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text)).collect();
    directory(&files)
}

fn files(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("objects-"))
        .collect();
    names.sort();
    names
}

fn report(at: &Path, more: &[&str]) -> Run {
    let files = files(at);
    let mut arguments = vec!["report", "--profile", "profile.yaml", "--time", TIME];
    arguments.extend(files.iter().map(String::as_str));
    run_in(at, &[&arguments[..], more].concat(), "")
}

fn json(at: &Path, more: &[&str]) -> Json {
    let run = report(at, &[&["-o", "json"], more].concat());
    assert_eq!(run.code, Some(0), "{}", run.err);
    serde_json::from_str(&run.out).unwrap()
}

fn page(at: &Path, more: &[&str]) -> (String, Html) {
    let run = report(at, more);
    assert_eq!(run.code, Some(0), "{}", run.err);
    let html = Html::parse(&run.out).unwrap_or_else(|why| panic!("{why}"));
    (run.out, html)
}

/// A figure of the page.
fn figure(html: &Html, name: &str) -> u64 {
    let element = html.elements.iter().find(|element| element.get("data-figure") == Some(name)).expect(name);
    element.text.replace(',', "").parse().expect(name)
}

fn of_kinds(kinds: &[Kind]) -> Vec<usize> {
    (0..COUNT).filter(|&index| kinds.contains(&tenants::kind(index))).collect()
}

fn names(of: &[usize]) -> BTreeSet<String> {
    of.iter().map(|&index| tenants::name(index)).collect()
}

fn set_of<'a>(list: &'a Json, text: impl Fn(&'a Json) -> String) -> BTreeSet<String> {
    list.as_array().unwrap().iter().map(text).collect()
}

fn text(of: &Json) -> String {
    of.as_str().unwrap_or_default().to_owned()
}

#[test]
fn namespaces_are_as_ready_as_what_is_in_them() {
    let at = cluster(COUNT);
    let report = json(at.path(), &[]);
    for (readiness, kinds) in [
        ("ready", &[Kind::Ready][..]),
        ("nearly", &[Kind::Privileged, Kind::Root]),
        ("needsWork", &[Kind::Image, Kind::Parameter]),
        ("notJudged", &[]),
    ] {
        let all = report["namespaces"].as_array().unwrap().iter().filter(|one| one["readiness"] == readiness);
        let found: BTreeSet<_> = all.map(|one| text(&one["name"])).collect();
        assert_eq!(found, names(&of_kinds(kinds)), "{readiness}");
        assert_eq!(report["summary"][readiness], found.len(), "{readiness}");
    }
    assert_eq!(set_of(&report["notSelected"], text), names(&of_kinds(&[Kind::Outside])));
    // One line for a Deployment with its ReplicaSet and pods.
    let mut expected: BTreeSet<_> = BTreeSet::new();
    for index in of_kinds(&[Kind::Privileged, Kind::Root, Kind::Image, Kind::Parameter]) {
        let name = tenants::name(index);
        let workloads: &[&str] = match tenants::kind(index) {
            Kind::Root => &["CronJob/nightly"],
            Kind::Parameter => &["CronJob/nightly", "Deployment/web"],
            _ => &["Deployment/web"],
        };
        expected.extend(workloads.iter().map(|workload| format!("{name}/{workload}")));
    }
    let found = set_of(&report["workloads"], |one| format!("{}/{}", text(&one["namespace"]), text(&one["workload"])));
    assert_eq!(found, expected);
    assert_eq!(report["summary"]["violating"], expected.len());
    for one in report["workloads"].as_array().unwrap() {
        let namespace = report["namespaces"].as_array().unwrap().iter().find(|other| other["name"] == one["namespace"]);
        assert_eq!(one["denied"], namespace.unwrap()["stages"]["tenants"] == "Deny", "{one}");
    }
    let deployment =
        report["workloads"].as_array().unwrap().iter().find(|one| one["workload"] == "Deployment/web").unwrap();
    assert_eq!(deployment["objects"], 3, "the Deployment and two pods: {deployment}");
}

#[test]
fn each_change_that_is_said_to_help_does() {
    let at = cluster(COUNT);
    let report = json(at.path(), &[]);
    let changed: Vec<_> =
        report["workloads"].as_array().unwrap().iter().filter(|one| one["change"]["complies"] == true).collect();
    assert_eq!(report["summary"]["withChange"], changed.len());
    assert_eq!(changed.len(), of_kinds(&[Kind::Privileged, Kind::Root]).len());
    // The same cluster after the changes: pods are made anew by their workloads.
    let mut items: Vec<Json> = Vec::new();
    for index in 0..COUNT {
        for mut object in tenants::objects(index, tenants::kind(index)) {
            let workload = format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]));
            let is_this = |one: &&&Json| {
                one["namespace"] == object["metadata"]["namespace"] && text(&one["workload"]) == workload
            };
            if let Some(one) = changed.iter().find(is_this) {
                let patch: json_patch::Patch = serde_json::from_value(one["change"]["patch"].clone()).unwrap();
                json_patch::patch(&mut object, &patch).unwrap();
            }
            if object["kind"] != "Pod" {
                items.push(object);
            }
        }
    }
    fs::write(
        at.path().join("objects-0.json"),
        json!({"kind": "List", "apiVersion": "v1", "items": items}).to_string(),
    )
    .unwrap();
    let after = json(at.path(), &[]);
    assert_eq!(after["summary"]["nearly"], 0);
    assert_eq!(
        after["summary"]["ready"].as_u64(),
        Some((of_kinds(&[Kind::Ready, Kind::Privileged, Kind::Root])).len() as u64)
    );
}

#[test]
fn the_page_has_the_numbers_of_the_json_and_names_all_offenders() {
    let at = cluster(COUNT);
    let (report, (_, html)) = (json(at.path(), &[]), page(at.path(), &[]));
    for name in ["ready", "nearly", "needsWork", "notJudged", "inDeny", "violating", "withChange"] {
        assert_eq!(Some(figure(&html, name)), report["summary"][name].as_u64(), "{name}");
    }
    let workloads = report["workloads"].as_array().unwrap();
    let articles: Vec<_> = html.all("article").collect();
    assert_eq!(articles.len(), workloads.len());
    for (article, one) in articles.iter().zip(workloads) {
        let head = format!("{} in {}", text(&one["workload"]), text(&one["namespace"]));
        assert!(article.text.contains(&head), "{head} is not in {}", article.text);
        for violation in one["violations"].as_array().unwrap() {
            assert!(article.text.contains(violation["message"].as_str().unwrap()), "{violation}");
        }
        for line in one["change"]["lines"].as_array().into_iter().flatten() {
            assert!(article.text.contains(line.as_str().unwrap()), "{line}");
        }
    }
    let rows: Vec<_> = html.all("tr").filter(|row| row.get("class") == Some("item")).collect();
    assert_eq!(rows.len(), report["namespaces"].as_array().unwrap().len());
    for one in report["checks"].as_array().unwrap() {
        let line = format!("{}{}{}{}", text(&one["check"]), text(&one["title"]), one["workloads"], one["namespaces"]);
        assert!(html.all("tr").any(|row| row.text == line), "{line}");
    }
}

#[test]
fn the_page_stands_alone_and_can_be_read_aloud() {
    let at = cluster(COUNT);
    let (page, html) = page(at.path(), &[]);
    for outside in
        ["http:", "https:", "//", "url(", "@import", "src=", "<link", "<iframe", "<img", " style=", "onclick"]
    {
        let page = page.replace(&format!("<a href=\"{PAGES}"), "<a href=\"");
        let found = html.elements.iter().filter(|one| ["style", "script"].contains(&one.name.as_str()));
        let raw: Vec<_> = found.map(|one| one.text.as_str()).chain([page.as_str()]).collect();
        assert!(raw.iter().all(|text| !text.contains(outside)), "{outside}");
    }
    let ids: Vec<_> = html.elements.iter().filter_map(|one| one.get("id")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "ids are unique");
    // Only links to the pages of checks lead elsewhere, and nothing is loaded from there.
    for link in html.all("a").filter(|link| link.get("href").is_none_or(|href| !href.starts_with(PAGES))) {
        let target = link.get("href").and_then(|href| href.strip_prefix('#')).expect("a link within the page");
        assert!(ids.contains(&target), "{target}");
    }
    for section in html.elements.iter().filter_map(|one| one.get("aria-labelledby")) {
        assert!(ids.contains(&section), "{section}");
    }
    let tables = html.all("table").count();
    assert!(tables > 3 && html.all("caption").count() == tables && html.all("thead").count() == tables);
    assert!(html.all("th").all(|head| matches!(head.get("scope"), Some("col" | "row"))));
    assert_eq!(html.all("h1").count(), 1);
    assert_eq!(html.all("html").next().and_then(|html| html.get("lang")), Some("en"));
    let policy =
        html.all("meta").find(|meta| meta.get("http-equiv") == Some("Content-Security-Policy")).expect("a policy");
    let policy = policy.get("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    assert!(html.all("form").all(|form| form.get("hidden").is_some()), "without its script there is no filter");
}

/// What a tenant may write where the API server does not look.
const HOSTILE: &str = "\"><img src=x onerror=alert(1)></script><script>alert(2)</script><!-- '&amp;\u{202e}";

#[test]
fn what_tenants_write_is_text() {
    let at = cluster(2);
    let name = tenants::name(0);
    let pod = |pod: &str, owner: Option<&str>| {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod, "namespace": name, "uid": pod},
            "spec": {"containers": [{"name": "app", "image": HOSTILE}]},
        });
        if let Some(owner) = owner {
            let owner = json!([{"apiVersion": "x/v1", "kind": owner, "name": owner, "uid": "x", "controller": true}]);
            set(&mut pod, &["metadata", "ownerReferences"], owner);
        }
        pod
    };
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "tool-z", "labels": {"tenancy": "tool"}, "annotations": {"uid": HOSTILE}},
    });
    let mut nowhere = pod("c", None);
    set(&mut nowhere, &["metadata", "namespace"], HOSTILE);
    let items = json!([namespace, pod("a", None), pod("b", Some(HOSTILE)), nowhere]);
    fs::write(
        at.path().join("objects-9.json"),
        json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string(),
    )
    .unwrap();
    let earlier = json(at.path(), &["--title", HOSTILE]);
    let earlier = earlier.to_string().replace(TIME, "2026-10-25T08:00:00Z").replace("Pod/a", "Pod/<img>");
    fs::write(at.path().join("earlier.json"), earlier).unwrap();
    let (page, html) = page(at.path(), &["--title", HOSTILE, "--earlier", "earlier.json"]);
    let known = [
        "a", "article", "body", "caption", "code", "dd", "details", "div", "dl", "dt", "footer", "form", "h1", "h2",
        "h3", "h4", "head", "header", "html", "input", "label", "li", "main", "meta", "nav", "output", "p", "pre",
        "rect", "script", "section", "span", "style", "summary", "svg", "table", "tbody", "td", "th", "thead", "title",
        "tr", "ul",
    ];
    let strange: Vec<_> = html.elements.iter().filter(|one| !known.contains(&one.name.as_str())).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert_eq!((html.all("script").count(), html.all("style").count()), (1, 1));
    assert!(html.elements.iter().all(|one| one.attributes.iter().all(|(key, _)| !key.starts_with("on"))));
    assert!(!page.contains('\u{202e}') && !page.contains("<!--"));
    // It is all there, as text.
    let seen = |text: &str| html.text.contains(&text.replace('\u{202e}', "\u{fffd}"));
    assert!(seen(HOSTILE) && seen("Pod/<img>"));
    assert!(html.all("h1").any(|head| head.text.starts_with("\"><img src=x")));
    let markdown = report(at.path(), &["-o", "markdown"]);
    assert!(markdown.code == Some(0) && !markdown.out.contains("<img"), "{}", markdown.out);
}

#[test]
fn the_same_input_gives_the_same_bytes() {
    let at = cluster(COUNT);
    let formats = ["html", "json", "markdown"];
    let written = || {
        let outputs: Vec<_> = formats.iter().map(|format| format!("{format}=report.{format}")).collect();
        let arguments: Vec<_> = outputs.iter().flat_map(|output| ["-o", output.as_str()]).collect();
        let run = report(at.path(), &arguments);
        assert_eq!(run.code, Some(0), "{}", run.err);
        formats.map(|format| fs::read_to_string(at.path().join(format!("report.{format}"))).unwrap())
    };
    let once = written();
    assert!(once == written());
    // Also in another order.
    let text = fs::read_to_string(at.path().join("objects-0.json")).unwrap();
    let mut list: Json = serde_json::from_str(&text).unwrap();
    list["items"].as_array_mut().unwrap().reverse();
    fs::write(at.path().join("objects-0.json"), list.to_string()).unwrap();
    assert!(once[0] == written()[0]);
}

#[test]
fn a_dump_and_its_files_are_one() {
    let at = cluster(COUNT);
    let dump = at.path().join("dump");
    let list = |items: &[&Json]| json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string();
    let all: Vec<Json> = (0..COUNT).flat_map(|index| tenants::objects(index, tenants::kind(index))).collect();
    fs::create_dir_all(&dump).unwrap();
    fs::write(dump.join("server.json"), json!({"gitVersion": "v1.36.1"}).to_string()).unwrap();
    for name in ["toolsecurityprofiles", "toolsecurityexceptions"] {
        fs::write(dump.join(format!("{name}.json")), list(&[])).unwrap();
    }
    let namespaces: Vec<_> = all.iter().filter(|object| object["kind"] == "Namespace").collect();
    fs::write(dump.join("namespaces.json"), list(&namespaces)).unwrap();
    for (kind, resource) in
        [("Deployment", "deployments"), ("ReplicaSet", "replicasets"), ("CronJob", "cronjobs"), ("Pod", "pods")]
    {
        for namespace in &namespaces {
            let name = text(&namespace["metadata"]["name"]);
            let here = |object: &&Json| object["kind"] == kind && object["metadata"]["namespace"] == name;
            fs::create_dir_all(dump.join("objects").join(&name)).unwrap();
            let here: Vec<_> = all.iter().filter(here).collect();
            fs::write(dump.join("objects").join(&name).join(format!("{resource}.json")), list(&here)).unwrap();
        }
    }
    let arguments = ["report", "--dump", "dump", "--profile", "profile.yaml", "--time", TIME];
    let run = run_in(at.path(), &arguments, "");
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert!(run.out == report(at.path(), &[]).out);
}

#[test]
fn a_trend_needs_earlier_reports() {
    let at = cluster(COUNT);
    let earlier = json(at.path(), &[]).to_string().replace(TIME, "2026-10-25T08:00:00Z");
    // Then, one workload had another name.
    let earlier = earlier.replacen("CronJob/nightly", "CronJob/hourly", 1);
    fs::write(at.path().join("earlier.json"), &earlier).unwrap();
    let report_now = json(at.path(), &["--earlier", "earlier.json"]);
    let times: Vec<_> = report_now["trend"].as_array().unwrap().iter().map(|point| text(&point["time"])).collect();
    assert_eq!(times, ["2026-10-25T08:00:00Z", TIME]);
    let changed = |key: &str| text(&report_now["since"][key][0]).split('/').next_back().unwrap_or_default().to_owned();
    assert_eq!((changed("new"), changed("gone")), ("nightly".to_owned(), "hourly".to_owned()));
    let (_, html) = page(at.path(), &["--earlier", "earlier.json"]);
    assert!(html.text.contains("1 violating workload fixed or deleted, 1 new"), "{}", html.text);

    fs::write(at.path().join("later.json"), earlier.replace("2026-10", "2026-12")).unwrap();
    fs::write(at.path().join("no.json"), "{}").unwrap();
    for (file, says) in
        [("later.json", "must be earlier than this one"), ("no.json", "requires a file from palisade report -o json")]
    {
        let run = report(at.path(), &["--earlier", file]);
        assert!(run.code == Some(2) && run.err.contains(says) && run.out.is_empty(), "{file}: {}", run.err);
    }
}

#[test]
fn exceptions_count_until_they_end() {
    let at = cluster(COUNT);
    let exception = "\n  exceptions: [{namespaces: ['*'], checks: [privileged, hostNamespaces], expires: '2026-12-01T00:00:00Z', reason: x}]\n";
    let offender = tenants::name(3);
    fs::write(
        at.path().join("profile.yaml"),
        format!("{}{}", tenants::PROFILE.trim_end(), exception.replace("'*'", &offender)),
    )
    .unwrap();
    let files = files(at.path());
    let violates = |time: &str| {
        let mut arguments = vec!["report", "--profile", "profile.yaml", "-o", "json", "--time", time];
        arguments.extend(files.iter().map(String::as_str));
        let run = run_in(at.path(), &arguments, "");
        let report: Json = serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.err));
        report["workloads"].as_array().unwrap().iter().any(|one| one["namespace"] == offender.as_str())
    };
    assert!(!violates("2026-11-30T00:00:00Z"));
    assert!(violates("2026-12-02T00:00:00Z"));
}

#[test]
fn what_cannot_be_judged_is_not_ready() {
    let at = cluster(2);
    let mut rejected = tenants::objects(0, Kind::Ready).remove(1);
    set(&mut rejected, &["metadata", "name"], "Not_A_Name");
    let mut nowhere = tenants::objects(1, Kind::Ready).remove(1);
    set(&mut nowhere, &["metadata", "namespace"], "nowhere");
    let items = json!({"apiVersion": "v1", "kind": "List", "items": [rejected, nowhere]});
    fs::write(at.path().join("objects-9.json"), items.to_string()).unwrap();
    let report = json(at.path(), &[]);
    assert_eq!((&report["summary"]["notJudged"], &report["summary"]["ready"]), (&json!(2), &json!(1)));
    let places = set_of(&report["notJudged"], |one| format!("{} {}", text(&one["namespace"]), text(&one["workload"])));
    assert_eq!(places, [format!("{} Deployment/Not_A_Name", tenants::name(0)), "nowhere ".to_owned()].into());
}

#[test]
fn what_is_asked_for_must_be_said() {
    let at = cluster(2);
    let run = run_in(at.path(), &["report"], "");
    assert!(run.code == Some(2) && run.err.contains("--live"), "{}", run.err);
    let run = run_in(at.path(), &["report", "objects-0.json"], "");
    assert!(run.code == Some(2) && run.err.contains("at least one profile is required"), "{}", run.err);
    let run = report(at.path(), &["-o", "html", "-o", "json"]);
    assert!(run.code == Some(2) && run.err.contains("only one output can be standard output"), "{}", run.err);
    let run = report(at.path(), &["-o", "html=a.html", "-o", "json"]);
    assert_eq!((run.code, at.path().join("a.html").is_file()), (Some(0), true), "{}", run.err);
    let run = run_in(at.path(), &["report", "--dump", "."], "");
    assert!(run.code == Some(2) && run.err.contains("not a complete dump"), "{}", run.err);
}

#[test]
fn a_tenant_gets_a_page_of_its_own() {
    let at = cluster(COUNT);
    let name = tenants::name(3);
    let one = json(at.path(), &["-n", &name]);
    let names = |report: &Json| set_of(&report["namespaces"], |one| text(&one["name"]));
    assert_eq!(names(&one), [name.clone()].into());
    assert_eq!(set_of(&one["workloads"], |one| text(&one["namespace"])), [name.clone()].into());
    assert_eq!(
        (&one["notSelected"], &one["notJudged"], &one["summary"]["namespaces"]),
        (&json!([]), &json!([]), &json!(1))
    );
    let all = json(at.path(), &[]);
    let of_one = |report: &Json| {
        let found = report["workloads"].as_array().unwrap().iter().filter(|one| one["namespace"] == name.as_str());
        found.cloned().collect::<Vec<_>>()
    };
    assert_eq!(of_one(&one), of_one(&all));
    let (page, _) = page(at.path(), &["-n", &name]);
    assert!(page.contains(&name) && !page.contains(&tenants::name(4)));
    let staged = json(at.path(), &["-l", "stage.toolsecurity.dev/tenants=Deny,tenancy"]);
    assert!(names(&staged).contains(&name) && names(&staged).len() < names(&all).len(), "{:?}", names(&staged));
    for (arguments, says) in [
        (["-n", "nowhere"], "namespace nowhere not found"),
        (["-l", "a=nothing"], "no namespace has these labels"),
        (["-l", "a b"], "must be key=value"),
    ] {
        let run = report(at.path(), &arguments);
        assert!(run.code == Some(2) && run.err.contains(says), "{}", run.err);
    }
}

#[test]
fn owners_are_named_and_namespaces_sorted() {
    let at = cluster(COUNT);
    let by_owner = json(at.path(), &["--owner-annotation", "uid", "--sort", "owner"]);
    let ready = by_owner["namespaces"].as_array().unwrap().iter().filter(|one| one["readiness"] == "ready");
    let owners: Vec<_> = ready.map(|one| text(&one["owner"])).collect();
    assert!(owners.len() > 5 && owners.is_sorted() && owners.iter().all(|one| one.starts_with("500")), "{owners:?}");
    let (_, html) = page(at.path(), &["--owner-annotation", "uid"]);
    assert!(html.all("th").any(|head| head.text == "Owner") && html.text.contains("50003"));
    let (_, html) = page(at.path(), &[]);
    assert!(!html.all("th").any(|head| head.text == "Owner"));
    let markdown = report(at.path(), &["--owner-annotation", "uid", "-o", "markdown"]).out;
    assert!(markdown.contains(&format!("in {} (50003)", tenants::name(3))), "{markdown}");
    let busiest = json(at.path(), &["--sort", "violating"]);
    let counts = busiest["namespaces"].as_array().unwrap().iter().filter(|one| one["readiness"] == "needsWork");
    let counts: Vec<_> = counts.map(|one| one["violating"].as_u64().unwrap()).collect();
    assert!(counts.is_sorted_by(|a, b| a >= b) && counts[0] == 2, "{counts:?}");
}

#[test]
fn checks_link_to_their_pages() {
    let at = cluster(COUNT);
    let (_, html) = page(at.path(), &[]);
    let links: Vec<_> = html.all("a").filter_map(|link| link.get("href")?.strip_prefix(PAGES)).collect();
    assert!(links.contains(&"privileged.md") && links.contains(&"imageRegistries.md"), "{links:?}");
    for link in links {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/checks");
        assert!(root.join(link).is_file(), "{link}");
    }
}

#[test]
fn owners_are_not_blamed_for_a_line_of_the_profile() {
    let at = cluster(COUNT);
    let line = |arguments: &[&str]| report(at.path(), &[&["-o", "markdown"], arguments].concat()).out;
    assert!(!line(&[]).contains("palisade suggest"), "two workloads of two namespaces are few");
    // Now most images are from a registry that the profile lacks.
    let profile = tenants::PROFILE.replace("registry.example", "other.example");
    fs::write(at.path().join("profile.yaml"), profile).unwrap();
    let text = line(&[]);
    let says = "One change of profile tenants admits ";
    assert!(text.contains(says) && text.contains("images.allowedRegistries += registry.example"), "{text}");
    let (_, html) = page(at.path(), &[]);
    assert!(html.text.contains(says), "{}", html.text);
    assert!(!line(&["-n", &tenants::name(0)]).contains(says));
}
