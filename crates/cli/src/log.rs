//! The formats of audit logs: an event in JSON on each line, as an API server writes it; wrapped by a container
//! runtime; compressed with gzip; or lists of events, as webhooks receive them.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::PathBuf,
};

use flate2::bufread::MultiGzDecoder;
use palisade_manifest::Problem;
use serde_json::Value as Json;

use crate::{
    cluster::could_not_run,
    events::Event,
    report::{self, Failure},
};

/// More than an API server writes about one request.
const MAX_LINE: u64 = 16 << 20;
/// The limit for values that span several lines. It limits the memory for a log.
const MAX_VALUES: u64 = 256 << 20;
/// The beginning of a gzip file (RFC 1952, 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The byte order mark of UTF-8 text.
const BOM: &[u8] = "\u{feff}".as_bytes();

/// Reads the events of answered requests, in the order of the logs. Returns problems for items that are not events.
///
/// # Errors
/// A log cannot be read.
pub fn each(paths: &[PathBuf], mut found: impl FnMut(Event)) -> Result<Vec<Problem>, Failure> {
    let mut problems = Vec::new();
    for path in files(paths)? {
        let name = path.display().to_string();
        let problem = if name == "-" {
            read("<stdin>", io::stdin().lock(), &mut found)?
        } else {
            let file = File::open(&path).map_err(|error| could_not_run(format!("{name}: {error}")))?;
            read(&name, BufReader::new(file), &mut found)?
        };
        problems.extend(problem);
    }
    Ok(problems)
}

/// The files, and those in directories sorted by name.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let failed = |error: io::Error| could_not_run(format!("{}: {error}", path.display()));
        if !path.is_dir() {
            all.push(path.clone());
            continue;
        }
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
        let mut found: Vec<_> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
        found.sort();
        if found.is_empty() {
            return Err(could_not_run(format!("{}: no files in this directory", path.display())));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Reads one log. Returns a problem if an item is not an event.
///
/// # Errors
/// It cannot be read.
pub fn read(name: &str, mut from: impl BufRead, found: &mut impl FnMut(Event)) -> Result<Option<Problem>, Failure> {
    let failed = |error: io::Error| could_not_run(format!("{name}: {error}"));
    let mut reader = Reader { name, found, line: 0, unread: 0, first: 0, events: 0, partial: String::new() };
    if from.fill_buf().map_err(failed)?.starts_with(&GZIP) {
        reader.lines(BufReader::new(MultiGzDecoder::new(from))).map_err(failed)?;
    } else {
        reader.lines(from).map_err(failed)?;
    }
    Ok(reader.problem())
}

/// An open log.
struct Reader<'a, F> {
    name: &'a str,
    found: &'a mut F,
    /// The current line, from 1.
    line: u64,
    /// The number of lines that are not events, and the first of them.
    unread: u64,
    first: u64,
    events: u64,
    /// The beginning of a line that a container runtime has split.
    partial: String,
}

impl<F: FnMut(Event)> Reader<'_, F> {
    fn lines(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        let mut by_lines = false;
        loop {
            line.clear();
            self.line += 1;
            if from.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let text = line.trim_ascii();
            let text = text.strip_prefix(BOM).unwrap_or(text);
            if text.is_empty() {
                continue;
            }
            if self.take(text) {
                by_lines = true;
                continue;
            }
            if !by_lines && matches!(text.first(), Some(b'{' | b'[')) && serde_json::from_slice::<Json>(text).is_err() {
                // The log has values that span several lines.
                let all = line.strip_prefix(BOM).unwrap_or(&line).to_vec();
                return self.values(io::Cursor::new(all).chain(from));
            }
            if !line.ends_with(b"\n") && self.events > 0 && is_cut_off(text) {
                report::note(&format!("note: {}: the last line is cut off", self.name));
                break;
            }
            self.not_read();
        }
        if !self.partial.is_empty() {
            self.not_read();
        }
        Ok(())
    }

    /// Reads values that span several lines.
    fn values(&mut self, from: impl Read) -> io::Result<()> {
        let mut values = serde_json::Deserializer::from_reader(from.take(MAX_VALUES)).into_iter::<Json>();
        for value in &mut values {
            match value {
                Ok(value) => {
                    if !self.value(value) {
                        self.not_read();
                    }
                }
                Err(error) if error.is_io() => return Err(error.into()),
                Err(error) => {
                    self.line = error.line() as u64;
                    self.not_read();
                    break;
                }
            }
        }
        Ok(())
    }

    fn not_read(&mut self) {
        self.partial.clear();
        self.unread += 1;
        if self.unread == 1 {
            self.first = self.line;
        }
    }

    /// Takes a line. Returns whether it has one or more events.
    fn take(&mut self, line: &[u8]) -> bool {
        if let Some((part, is_whole)) = of_runtime(line) {
            return self.part(part, is_whole);
        }
        match serde_json::from_slice::<Event>(line) {
            Ok(event) if event.is_event() => {
                self.event(event);
                true
            }
            _ => serde_json::from_slice::<Json>(line).is_ok_and(|value| self.value(value)),
        }
    }

    /// Takes a part of a line, which may be the last.
    fn part(&mut self, part: &str, is_whole: bool) -> bool {
        self.partial.push_str(part);
        let text = std::mem::take(&mut self.partial);
        if self.take(text.trim().as_bytes()) {
            return true;
        }
        if !is_whole && (text.len() as u64) < MAX_LINE {
            self.partial = text;
            return true;
        }
        false
    }

    fn value(&mut self, value: Json) -> bool {
        match value {
            Json::Array(values) => !values.is_empty() && self.values_of(values),
            Json::Object(mut fields) => {
                let text = |key: &str| fields.get(key).and_then(Json::as_str);
                let of_audit = text("apiVersion").is_some_and(|version| version.starts_with("audit.k8s.io/"));
                if of_audit && text("kind") == Some("EventList") {
                    return match fields.remove("items") {
                        Some(Json::Array(items)) => self.values_of(items),
                        _ => false,
                    };
                }
                // The format of Docker and of log collectors.
                if let Some(part) = text("log").or(text("message")).map(str::to_owned) {
                    return self.part(&part, text("stream").is_none() || part.ends_with('\n'));
                }
                match serde_json::from_value::<Event>(Json::Object(fields)) {
                    Ok(event) if event.is_event() => {
                        self.event(event);
                        true
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Takes all values. Returns whether each has one or more events.
    fn values_of(&mut self, values: Vec<Json>) -> bool {
        let mut all = true;
        for value in values {
            all &= self.value(value);
        }
        all
    }

    fn event(&mut self, event: Event) {
        self.events += 1;
        if event.is_answered() {
            (self.found)(event);
        }
    }

    fn problem(self) -> Option<Problem> {
        let Self { name, unread, first, events, .. } = self;
        let help =
            "an audit log must have an event in JSON on each line; set --audit-log-format=json on kube-apiserver";
        let message = match (unread, events) {
            (0, 0) => format!("{name}: no audit event in this log"),
            (0, _) => return None,
            (1, _) => format!("{name}:{first}: not an audit event"),
            _ => format!("{name}:{first}: not an audit event, and {} more lines", unread - 1),
        };
        Some(Problem::new(message).help(help))
    }
}

/// Whether a line is the beginning of a value, which an API server may still be writing.
fn is_cut_off(line: &[u8]) -> bool {
    let value = of_runtime(line).map_or(line, |(content, _)| content.as_bytes());
    serde_json::from_slice::<Json>(value).is_err_and(|error| error.is_eof())
}

/// The content of a line of a container runtime, and whether it is the last part (KEP-1753's format of CRI logs:
/// `kubernetes/design-proposals-archive` `node/kubelet-cri-logging.md`).
fn of_runtime(line: &[u8]) -> Option<(&str, bool)> {
    let text = std::str::from_utf8(line).ok()?;
    let mut parts = text.splitn(4, ' ');
    let (time, stream, tag, content) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_runtime = time.starts_with(|c: char| c.is_ascii_digit()) && matches!(stream, "stdout" | "stderr");
    let tag = tag.split(':').next().filter(|tag| is_runtime && matches!(*tag, "F" | "P"))?;
    Some((content, tag == "F"))
}
