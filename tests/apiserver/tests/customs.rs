//! Custom resources of random kinds, and custom resource definitions with one change each: the answers of the real API
//! server, compared with the offline ones.
//!
//! The objects are those of `tests/oracle/custom` and `tests/oracle/definitions`. `PALISADE_CUSTOMS=all` compares all of
//! them; `CUSTOM_RESOURCES=file` those of another file of the oracle (`cargo xtask fuzz-custom` writes one).

use std::{collections::BTreeMap, env, fs, io::Read, path::Path};

use flate2::read::GzDecoder;
use palisade_admission::requests::{Cluster as Offline, Operation, Outcome, Request, User};
use palisade_tests::{Cluster, TestResult, ensure, eventually, root};
use serde_json::{Value as Json, json};

use crate::{
    admission::{Answer, ask_server},
    stored::is_like,
};

crate::groups::scenarios! {
    custom_resources_get_the_answers_of_the_api_server: Answers 50;
    definitions_get_the_answers_of_the_api_server: Answers 60;
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Definitions that the API server has at once: each costs it memory.
const BATCH: usize = 40;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn lines(file: &Path) -> Result<Vec<Json>, Failure> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(file)?).read_to_string(&mut text)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Every how many lines one is compared.
fn step(some: usize) -> usize {
    if env::var("PALISADE_CUSTOMS").is_ok_and(|which| which == "all") { 1 } else { some }
}

/// How many answers are equal, and the others by kind of difference.
#[derive(Default)]
struct Compared {
    equal: usize,
    refused: usize,
    other_words: Vec<String>,
    verdicts: Vec<String>,
    no_verdict: BTreeMap<String, usize>,
}

impl Compared {
    fn add(&mut self, offline: &Offline, request: &Request, found: &Answer) {
        let review = offline.admit(request);
        let ours = match &review.outcome {
            Outcome::NoVerdict(why) => return *self.no_verdict.entry(why.clone()).or_default() += 1,
            Outcome::Allowed => None,
            Outcome::Denied(denials) => denials.first().map(|one| one.message.clone()),
        };
        let theirs = found.refused.as_ref().map(|(text, ..)| text.clone());
        self.refused += usize::from(theirs.is_some());
        let mut warnings = [review.warnings, found.warnings.clone()];
        for warnings in &mut warnings {
            warnings.sort();
        }
        let shown = || {
            let object = request.object.as_ref().map(Json::to_string).unwrap_or_default();
            format!("{object}\n  offline:    {ours:?} {:?}\n  API server: {theirs:?} {:?}", warnings[0], warnings[1])
        };
        match (&ours, &theirs) {
            (None, None) if warnings[0] == warnings[1] => self.equal += 1,
            (Some(ours), Some(theirs)) if same_words(ours, theirs) => self.equal += 1,
            _ if ours.is_some() == theirs.is_some() => self.other_words.push(shown()),
            _ => self.verdicts.push(shown()),
        }
    }

    /// Fails if a verdict differs, or more than one text in `texts`.
    fn finish(&self, what: &str, texts: usize) -> TestResult {
        let count = self.equal + self.other_words.len() + self.verdicts.len();
        println!(
            "{what}: {count} answers, {} of them rejections; {} verdicts and {} texts differ; no verdict: {:?}",
            self.refused,
            self.verdicts.len(),
            self.other_words.len(),
            self.no_verdict,
        );
        for text in self.other_words.iter().take(20) {
            println!("{what}, other words: {text}");
        }
        ensure!(self.verdicts.is_empty(), "{} verdicts differ:\n{}", self.verdicts.len(), self.verdicts.join("\n"));
        ensure!(self.refused > 0 && self.refused < count, "{what}: all or none are rejected");
        ensure!(
            self.other_words.len() * texts <= count,
            "{} of {count} texts differ, see above",
            self.other_words.len()
        );
        Ok(())
    }
}

/// Whether two rejections have the same causes: Go collects some of them in random order, and reports of several fields that
/// cannot be decoded the first one of a map.
fn same_words(ours: &str, theirs: &str) -> bool {
    let undecoded = |text: &str| text.split_once(" cannot be handled as a ").map(|(kind, _)| kind.to_owned());
    if undecoded(ours).is_some() && undecoded(ours) == undecoded(theirs) {
        return true;
    }
    let causes = |text: &str| {
        let (head, body) = text.split_once(" is invalid: ").unwrap_or(("", text));
        let mut causes: Vec<_> = body.trim_matches(['[', ']']).split(", ").map(str::to_owned).collect();
        causes.sort();
        (head.to_owned(), causes)
    };
    let (head, ours) = causes(ours);
    let (their_head, theirs) = causes(theirs);
    let alike = |(ours, theirs): (&String, &String)| is_like(ours, theirs);
    head == their_head && ours.len() == theirs.len() && ours.iter().zip(&theirs).all(alike)
}

fn create(offline: &Offline, object: &Json) -> Result<Request, String> {
    let mut request = offline.request(Operation::Create, "", object, None)?;
    let groups = vec!["system:masters".to_owned(), "system:authenticated".to_owned()];
    request.user = User { name: "tester".to_owned(), groups, ..User::default() };
    request.dry_run = true;
    request.options = Request::default_options(Operation::Create, true);
    Ok(request)
}

/// The definition with a group of its own, so that many have their kinds at once, and its objects.
fn renamed(definition: &Json, index: usize) -> (String, Json) {
    let group = format!("k{index}.example.org");
    let mut definition = definition.clone();
    definition["spec"]["group"] = json!(group);
    definition["metadata"]["name"] = json!(format!("cases.{group}"));
    (group, definition)
}

pub(crate) async fn custom_resources_get_the_answers_of_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    let all = match env::var_os("CUSTOM_RESOURCES") {
        Some(file) => lines(Path::new(&file))?,
        None => lines(&root().join("tests/oracle/custom/golden/1.36.jsonl.gz"))?,
    };
    let mut kinds: Vec<(&Json, Vec<&Json>)> = Vec::new();
    for line in &all {
        match (line.get("crd"), kinds.last_mut()) {
            (Some(definition), _) => kinds.push((definition, Vec::new())),
            // Objects in a later state are compared with the API server's code only.
            (None, Some((_, objects))) if line.get("old").is_none() && line["status"] != true => {
                objects.push(&line["sent"]);
            }
            _ => {}
        }
    }
    let step = if env::var_os("CUSTOM_RESOURCES").is_some() { 1 } else { step(4) };
    let kinds: Vec<_> = kinds.into_iter().step_by(step).enumerate().collect();
    let (mut definitions, mut objects) = (Compared::default(), Compared::default());
    for batch in kinds.chunks(BATCH) {
        let mut created = Vec::new();
        for (index, (definition, sent)) in batch {
            let (group, definition) = renamed(definition, *index);
            let mut offline = palisade_gate::cluster(minor);
            let request = create(&offline, &definition)?;
            let found = ask_server(cluster, &request).await?;
            definitions.add(&offline, &request, &found);
            if found.refused.is_none() {
                cluster.answer_to("POST", DEFINITIONS, &definition).await?;
                offline.apply(definition.clone()).map_err(|refused| format!("{definition}: {refused:?}"))?;
                created.push((group, offline, sent));
            }
        }
        for (group, offline, sent) in &created {
            cluster.wait_established(&["crd", &format!("cases.{group}")])?;
            let path = format!("/apis/{group}/v1/namespaces/default/cases");
            eventually(&path, || cluster.answer_to("GET", &path, &Json::Null)).await?;
            for object in *sent {
                let mut object = (*object).clone();
                if object.get("apiVersion").is_none() {
                    continue;
                }
                object["apiVersion"] = json!(format!("{group}/v1"));
                let request = create(offline, &object)?;
                objects.add(offline, &request, &ask_server(cluster, &request).await?);
            }
            cluster.answer_to("DELETE", &format!("{DEFINITIONS}/cases.{group}"), &json!({})).await?;
        }
    }
    let definitions = definitions.finish(&format!("{minor}, {} random definitions", kinds.len()), 20);
    let objects = objects.finish(&format!("{minor}, objects of {} kinds", kinds.len()), 200);
    definitions.and(objects)
}

pub(crate) async fn definitions_get_the_answers_of_the_api_server(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let minor = cluster.minor().await?;
    let offline = palisade_gate::cluster(minor);
    let (mut bases, mut compared) = (BTreeMap::new(), Compared::default());
    for (index, line) in lines(&root().join("tests/oracle/definitions/golden/1.36.jsonl.gz"))?.iter().enumerate() {
        let id = line["id"].as_str().unwrap_or_default();
        let base = id.splitn(3, '/').take(2).collect::<Vec<_>>().join("/");
        if !line["sent"].is_null() {
            bases.insert(base.clone(), line["sent"].clone());
        }
        // Go's own code panics on some, and the connection is lost.
        if index % step(17) != 0 || line["panics"] == true {
            continue;
        }
        let mut object = bases.get(&base).cloned().ok_or_else(|| format!("{base} is missing"))?;
        change(&mut object, line);
        // Only the name in the path is missing then.
        let Ok(request) = create(&offline, &object) else { continue };
        compared.add(&offline, &request, &ask_server(cluster, &request).await?);
    }
    compared.finish(&format!("{minor}, definitions with one change"), 12)
}

/// Makes the change of a line.
fn change(object: &mut Json, line: &Json) {
    let Some((parent, key)) = line["at"].as_str().and_then(|at| at.rsplit_once('/')) else { return };
    let key = key.replace("~1", "/").replace("~0", "~");
    let to = line.get("to").cloned().unwrap_or_default();
    match object.pointer_mut(parent) {
        Some(Json::Object(fields)) if line["gone"] == true => drop(fields.remove(&key)),
        Some(Json::Object(fields)) => drop(fields.insert(key, to)),
        Some(Json::Array(list)) if key == "-" => list.push(to),
        Some(Json::Array(list)) => {
            if let Some(element) = key.parse::<usize>().ok().and_then(|at| list.get_mut(at)) {
                *element = to;
            }
        }
        _ => {}
    }
}
