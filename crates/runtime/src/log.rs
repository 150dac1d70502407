//! Logs: their format and level. A file can change the level while the process is running.

use std::{
    fs, io,
    path::{Path, PathBuf},
    str::FromStr as _,
    time::Duration,
};

use tokio::time::{MissedTickBehavior, interval};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    filter::{LevelFilter, ParseError},
    fmt,
    layer::SubscriberExt as _,
    reload,
    util::SubscriberInitExt as _,
};

/// Interval for reading the file. The kubelet needs up to a minute to update it from a ConfigMap, so a shorter interval
/// would have no benefit.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Options for logs.
#[derive(Clone, Debug, clap::Args)]
#[allow(clippy::struct_field_names, reason = "they are the names of the flags")]
pub struct LogOptions {
    /// Format of log lines.
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// Log level, or directives such as `info,palisade_controller=debug`.
    #[arg(long, env = "PALISADE_LOG", default_value = "info")]
    log_level: String,
    /// File with the log level, for example a mounted key of a ConfigMap. It overrides --log-level and is read every
    /// five seconds. If the file is missing or empty, --log-level applies.
    #[arg(long, value_name = "PATH")]
    log_level_file: Option<PathBuf>,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum LogFormat {
    /// One JSON object per line.
    #[default]
    Json,
    /// Human-readable.
    Text,
}

/// An invalid log level.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WrongLevel {
    #[error("invalid level {0:?}: must be off, error, warn, info, debug or trace")]
    Word(String),
    #[error(transparent)]
    Directive(#[from] ParseError),
}

/// The filter for a log level.
fn filter(text: &str) -> Result<EnvFilter, WrongLevel> {
    // A word alone would also be read as a target, all of which is logged: `inof` would silence everything else.
    for word in text.split(',').map(str::trim) {
        if !word.contains(['=', '[', ']', '{', '}']) && LevelFilter::from_str(word).is_err() {
            return Err(WrongLevel::Word(word.to_owned()));
        }
    }
    Ok(EnvFilter::try_new(text)?)
}

impl LogOptions {
    /// The value of `--log-level`.
    pub(crate) fn level(&self) -> &str {
        &self.log_level
    }

    /// Starts logging, and passes spans to `spans`. The caller must follow the returned levels.
    pub(crate) fn start(
        &self,
        spans: Option<impl Layer<Registry> + Send + Sync>,
    ) -> Result<Option<Levels>, WrongLevel> {
        let (filter, filters) = reload::Layer::new(filter(&self.log_level)?);
        let lines = fmt::layer();
        let lines = match self.log_format {
            LogFormat::Json => {
                let lines = lines.json().flatten_event(true).with_current_span(true).with_span_list(false);
                lines.with_filter(filter).boxed()
            }
            LogFormat::Text => lines.with_filter(filter).boxed(),
        };
        tracing_subscriber::registry().with(spans).with(lines).init();
        let apply: Apply = Box::new(move |filter| filters.reload(filter));
        let mut levels = self.log_level_file.as_ref().map(|file| Levels::new(file, &self.log_level, apply));
        // What is logged first is logged by the file, too.
        levels.iter_mut().for_each(Levels::read);
        Ok(levels)
    }
}

/// Applies a filter.
type Apply = Box<dyn Fn(EnvFilter) -> Result<(), reload::Error> + Send>;

/// The log level, read from a file.
pub(crate) struct Levels {
    file: PathBuf,
    /// Used while the file is empty.
    default: String,
    /// The last content of the file, or the error.
    said: Result<String, String>,
    apply: Apply,
}

impl Levels {
    fn new(file: &Path, default: &str, apply: Apply) -> Self {
        Self { file: file.to_owned(), default: default.to_owned(), said: Ok(String::new()), apply }
    }

    /// Reads the file periodically.
    pub(crate) async fn follow(mut self) {
        let mut turns = interval(POLL_INTERVAL);
        turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            turns.tick().await;
            self.read();
        }
    }

    /// Reads the file, and applies it if it has changed.
    fn read(&mut self) {
        let said = match fs::read_to_string(&self.file) {
            Ok(text) => Ok(text.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(error.to_string()),
        };
        if said == self.said {
            return;
        }
        self.said = said;
        if let Err(error) = self.change() {
            let file = self.file.display();
            tracing::warn!(%file, error, "cannot use the file of --log-level-file; the log level stays unchanged");
        }
    }

    fn change(&self) -> Result<(), String> {
        let said = self.said.as_deref().map_err(ToOwned::to_owned)?;
        let log_level = if said.is_empty() { &self.default } else { said };
        let filter = filter(log_level).map_err(|error| error.to_string())?;
        (self.apply)(filter).map_err(|error| error.to_string())?;
        tracing::info!(log_level, "changed the log level");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Write,
        mem,
        sync::{Arc, Mutex},
    };

    use super::*;

    #[test]
    fn a_word_that_is_no_level_is_rejected() {
        for right in ["info", "DEBUG", "off", "warn,palisade_controller=debug", "[reconcile{profile=\"a\"}]=trace,info"]
        {
            assert!(filter(right).is_ok(), "{right}");
        }
        for wrong in ["inof", "debug,palisade_controller", "palisade_controller=loud"] {
            assert!(filter(wrong).is_err(), "{wrong}");
        }
        let error = filter("inof").unwrap_err().to_string();
        assert_eq!(error, "invalid level \"inof\": must be off, error, warn, info, debug or trace");
    }

    /// What is logged, for a test to take.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Lines {
        fn take(&self) -> String {
            String::from_utf8(mem::take(&mut *self.0.lock().unwrap())).unwrap()
        }
    }

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Whether lines of the levels debug, info and warn are logged.
    fn logged(lines: &Lines) -> [bool; 3] {
        lines.take();
        tracing::debug!("a detail");
        tracing::info!("an event");
        tracing::warn!("a problem");
        let text = lines.take();
        ["a detail", "an event", "a problem"].map(|line| text.contains(line))
    }

    #[test]
    fn a_file_changes_what_is_logged_while_the_process_runs() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("controller");
        let lines = Lines::default();
        let writer = lines.clone();
        let (filter, filters) = reload::Layer::new(filter("info").unwrap());
        let log = fmt::layer().with_writer(move || writer.clone()).with_ansi(false).with_filter(filter);
        let mut levels = Levels::new(&file, "info", Box::new(move |filter| filters.reload(filter)));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log), || {
            levels.read();
            assert_eq!(logged(&lines), [false, true, true], "no file");

            fs::write(&file, "debug\n").unwrap();
            levels.read();
            let said = lines.take();
            assert!(said.contains("changed the log level") && said.contains("log_level=\"debug\""), "{said}");
            assert_eq!(logged(&lines), [true, true, true]);
            levels.read();
            assert_eq!(lines.take(), "", "a file that has not changed");

            fs::write(&file, "dbug").unwrap();
            levels.read();
            let said = lines.take();
            assert!(said.contains("stays unchanged") && said.contains("invalid level \\\"dbug\\\""), "{said}");
            assert_eq!(logged(&lines), [true, true, true], "a mistake");
            levels.read();
            assert_eq!(lines.take(), "", "a mistake is reported once");

            fs::write(&file, "warn").unwrap();
            levels.read();
            assert_eq!(logged(&lines), [false, false, true]);

            fs::remove_file(&file).unwrap();
            levels.read();
            assert_eq!(logged(&lines), [false, true, true], "the file is gone");

            // It exists, and is not a file.
            fs::create_dir(&file).unwrap();
            levels.read();
            assert!(lines.take().contains("cannot use the file"), "a directory");
            assert_eq!(logged(&lines), [false, true, true], "a directory");
        });
    }
}
