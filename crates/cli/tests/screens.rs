//! The page of `palisade report` in a browser: `cargo xtask report-screens`. Without `PALISADE_CHROMIUM` the tests are
//! ignored.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test that runs programs"
)]
#![allow(clippy::print_stdout, reason = "where the pictures are")]

#[path = "support/tenants.rs"]
mod tenants;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use palisade_cli::captured;
use serde_json::Value as Json;

/// What the test asks the page: how wide it is, what sticks out, contrasts, the order of the tabulator.
const PROBE: &str = include_str!("support/probe.js");
/// Widths of windows.
const WIDTHS: [u32; 2] = [1280, 400];
/// What the browser calls light and dark.
const SCHEMES: [(&str, u32); 2] = [("light", 1), ("dark", 0)];
/// The least contrast of text (WCAG 2.2, AA), of any size.
const CONTRAST: f64 = 4.5;

fn main() -> ExitCode {
    let chromium = || palisade_needs::program("PALISADE_CHROMIUM");
    palisade_needs::run(vec![
        chromium().trial("the_page_fits_its_window_and_can_be_read", |path| Browser::new(path).looks(40)),
        chromium().trial("a_large_page_fits_its_window", |path| Browser::new(path).looks(3_500)),
        chromium().trial("the_policy_runs_the_script_of_the_page_and_no_other", |path| Browser::new(path).policy()),
    ])
}

struct Browser {
    program: PathBuf,
    directory: tempfile::TempDir,
}

impl Browser {
    fn new(program: PathBuf) -> Self {
        Self { program, directory: tempfile::tempdir().unwrap() }
    }

    /// The page about so many namespaces, with a trend.
    fn page(&self, count: usize) -> String {
        let at = self.directory.path();
        let report = |count: usize, time: &str, more: &[String]| {
            let files = tenants::cluster(count);
            let path = |name: &str| at.join(name).display().to_string();
            let mut arguments = vec!["palisade".to_owned(), "report".to_owned(), format!("--time={time}")];
            for (name, text) in files {
                fs::write(at.join(&name), text).unwrap();
                arguments.extend((name == "profile.yaml").then(|| "--profile".to_owned()));
                arguments.push(path(&name));
            }
            let outcome = captured(arguments.iter().chain(more).map(std::ffi::OsString::from));
            assert_eq!(outcome.code, 0, "{}", outcome.err);
            outcome.out
        };
        let earlier = at.join("earlier.json");
        fs::write(&earlier, report(32, "2026-10-25T08:00:00Z", &["-o=json".to_owned()])).unwrap();
        report(count, "2026-11-25T08:00:00Z", &[format!("--earlier={}", earlier.display())])
    }

    fn run(&self, page: &Path, arguments: &[String]) -> String {
        let output = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=20000"])
            .arg(format!("--user-data-dir={}", self.directory.path().join("profile").display()))
            .args(arguments)
            .arg(format!("file://{}", page.display()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the page is after its scripts have run.
    fn dom(&self, text: &str, arguments: &[String]) -> String {
        let page = self.directory.path().join("page.html");
        fs::write(&page, text).unwrap();
        self.run(&page, &[arguments, &["--dump-dom".to_owned()]].concat())
    }

    /// Measures the page in all windows, and takes a picture of each.
    fn looks(&self, count: usize) {
        let page = self.page(count);
        println!("{count} namespaces: {} KiB", page.len() >> 10);
        // The probe is a script that the policy would not run.
        let (before, after) = page.split_once("<meta http-equiv").unwrap();
        let open = format!("{before}<meta data-was{after}");
        let probed = open.replace("</body>", &format!("<script>{PROBE}</script></body>"));
        for width in WIDTHS {
            for (scheme, setting) in SCHEMES {
                let window =
                    [format!("--window-size={width},1000"), format!("--blink-settings=preferredColorScheme={setting}")];
                let dom = self.dom(&probed, &window);
                let (_, found) = dom.split_once("<pre id=\"probe\">").unwrap_or_else(|| panic!("no probe in {dom}"));
                let found = found.split_once("</pre>").unwrap().0.replace("&lt;", "<").replace("&gt;", ">");
                let found: Json = serde_json::from_str(&found.replace("&amp;", "&")).unwrap();
                let place = format!("{count} namespaces, {width} pixels, {scheme}");
                assert_eq!(found["width"], width, "{place}");
                assert_eq!(found["dark"], scheme == "dark", "{place}");
                assert_eq!(found["scrollWidth"], width, "{place}: wider than the window: {}", found["wide"]);
                let worst = found["contrast"]["ratio"].as_f64().unwrap();
                assert!(worst >= CONTRAST, "{place}: {}", found["contrast"]);
                assert!(found["texts"].as_u64().unwrap() > 100, "{place}: {found}");
                assert_eq!(found["disorder"], Json::Array(vec![]), "{place}: the tabulator jumps");
                assert_eq!(found["unmarked"], Json::Array(vec![]), "{place}: the focus is not seen");
                assert!(found["stops"].as_u64().unwrap() > 10, "{place}: {found}");
                let (shown, all) = (found["filtered"].as_u64().unwrap(), found["items"].as_u64().unwrap());
                assert!(shown > 0 && shown < all, "{place}: the filter shows {shown} of {all}");
                println!("{place}: least contrast {worst:.1}, {} stops of the tabulator", found["stops"]);
                self.picture(&page, count, width, scheme, &window);
            }
        }
    }

    fn picture(&self, page: &str, count: usize, width: u32, scheme: &str, window: &[String]) {
        let Some(directory) = std::env::var_os("PALISADE_SCREENS").map(PathBuf::from) else { return };
        fs::create_dir_all(&directory).unwrap();
        let path = self.directory.path().join("page.html");
        fs::write(&path, page).unwrap();
        let picture = directory.join(format!("report-{count}-{width}-{scheme}.png"));
        self.run(&path, &[window, &[format!("--screenshot={}", picture.display())]].concat());
        println!("{}", picture.display());
    }

    /// With its policy, the page's own script shows the filter; a script that somebody smuggled in does not run.
    fn policy(&self) {
        let page = self.page(40);
        let smuggled =
            "<script>document.body.append('smuggled ' + 'in')</script><p onclick=\"x\" style=\"color:red\">x</p>";
        let dom = self.dom(&page.replace("</main>", &format!("{smuggled}</main>")), &[]);
        assert!(
            page.contains("role=\"search\" hidden") && !dom.contains("role=\"search\" hidden"),
            "the filter is hidden"
        );
        assert!(!dom.contains("smuggled in"), "it ran");
        let ran = page.replace("http-equiv", "data-was").replace("</main>", &format!("{smuggled}</main>"));
        assert!(self.dom(&ran, &[]).contains("smuggled in"), "without a policy it runs");
    }
}
