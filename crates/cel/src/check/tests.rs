use super::*;
use crate::{env::Mode, schema::Admission};

#[test]
#[ignore]
fn scratch() {
    let admission = Admission { params: Some(Type::Dyn), ..Admission::default() };
    let new = Environment::kubernetes(36, Mode::New).with_admission(&admission);
    let stored = Environment::kubernetes(36, Mode::Stored).with_admission(&admission);
    for line in std::fs::read_to_string(std::env::var("EXPRS").unwrap()).unwrap().lines() {
        let source: String = serde_json::from_str(line).unwrap();
        let show = |result: Result<Checked, Vec<Issue>>| match result {
            Ok(checked) => ("".to_owned(), checked.output_type().declared()),
            Err(issues) => (
                issues.iter().map(|i| i.display(&source).to_string()).collect::<Vec<_>>().join("\n"),
                issues[0].help.clone().unwrap_or_default(),
            ),
        };
        let (n, nt) = show(new.check(&source));
        let (s, st) = show(stored.check(&source));
        println!("R {}", serde_json::json!({"n": n, "s": s, "nt": nt, "st": st}));
    }
}
