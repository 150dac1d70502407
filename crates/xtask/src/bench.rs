//! How fast Palisade's CEL is beside the API server's.

use std::{
    io::{self, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use palisade_agreement::{COMPLETE, Line, Subject, Timing, goldens, oracle};

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Golden(#[from] palisade_agreement::Error),
    #[error("cannot run {0}: {1}; `cargo xtask bench-cel` without --oracle builds it")]
    Oracle(String, io::Error),
    #[error("the oracle measured {measured} of {asked} expressions, see its message")]
    Incomplete { measured: usize, asked: usize },
    #[error("the oracle wrote an invalid measurement: {0}")]
    Content(#[from] serde_json::Error),
}

/// The least that the median of the ratios may be, of an unoptimized build on a busy machine.
const LEAST: [(&str, f64); 2] = [("compile", 4.0), ("evaluate", 1.5)];

/// Measures `count` expressions, evenly spread over the golden files, with the oracle and then with Palisade. Returns whether
/// Palisade is as much faster as `LEAST` says.
pub(crate) fn run(program: &Path, count: usize) -> Result<bool, Error> {
    let mut subject = Subject::new(&oracle(), COMPLETE)?;
    let mut lines = goldens(&oracle(), COMPLETE)?;
    lines.retain(|line| subject.is_measurable(line));
    let count = count.clamp(1, lines.len());
    let chosen: Vec<&Line> = (0..count).map(|index| &lines[index * lines.len() / count]).collect();
    let theirs = measure_theirs(program, &chosen)?;
    let ours: Vec<Timing> = chosen.iter().filter_map(|line| subject.measure(line)).collect();
    if theirs.len() != count || ours.len() != count {
        return Err(Error::Incomplete { measured: theirs.len().min(ours.len()), asked: count });
    }
    println!("{count} expressions; ns each: 10% of them, median, 90%; ratio: of each expression\n");
    println!("{:10} {:>28} {:>28} {:>24}", "", "API server", "Palisade", "API server / Palisade");
    let mut within = true;
    let of: [fn(&Timing) -> u32; 2] = [|timing| timing.compile, |timing| timing.evaluate];
    for ((name, least), of) in LEAST.into_iter().zip(of) {
        let times = |timings: &[Timing]| quantiles(timings.iter().map(|timing| f64::from(of(timing))).collect(), 0);
        let ratios = theirs.iter().zip(&ours).map(|(theirs, ours)| f64::from(of(theirs)) / f64::from(of(ours).max(1)));
        let ratios: Vec<f64> = ratios.collect();
        println!("{name:10} {:>28} {:>28} {:>24}", times(&theirs), times(&ours), quantiles(ratios.clone(), 1));
        if median(ratios) < least {
            eprintln!("error: {name}: the median of the ratios is below its bound, {least}");
            within = false;
        }
    }
    Ok(within)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() - 1) / 2]
}

fn quantiles(mut values: Vec<f64>, digits: usize) -> String {
    values.sort_by(f64::total_cmp);
    let at = |percent: usize| values[(values.len() - 1) * percent / 100];
    format!("{:.digits$} {:.digits$} {:.digits$}", at(10), at(50), at(90))
}

fn measure_theirs(program: &Path, lines: &[&Line]) -> Result<Vec<Timing>, Error> {
    let failed = |error| Error::Oracle(program.display().to_string(), error);
    let mut child = Command::new(program)
        .args(["-root".as_ref(), oracle().as_os_str(), "bench".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let requests: Vec<_> = lines.iter().map(|line| line.request().to_string()).collect();
    let requests = requests.join("\n");
    let mut stdin = child.stdin.take();
    let writer =
        std::thread::spawn(move || stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(requests.as_bytes())));
    let output = child.wait_with_output().map_err(failed)?;
    writer.join().unwrap_or(Ok(())).map_err(failed)?;
    let timings = String::from_utf8_lossy(&output.stdout);
    Ok(timings.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}
