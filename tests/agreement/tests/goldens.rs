//! `palisade-cel` against what kube-apiserver says of each expression of `tests/oracle`.

use palisade_agreement::{COMPLETE, Line, Report, Subject, goldens, oracle};
use palisade_cel::Minor;

#[test]
fn verdicts_values_and_costs_match_the_api_server() {
    let mut report = Report::default();
    for minor in Minor::ALL {
        let lines = goldens(&oracle(), minor).unwrap();
        report.compare(&minor.to_string(), &mut Subject::new(&oracle(), minor).unwrap(), &lines, true);
    }
    println!("{report}");
    assert!(report.expressions() > 45_000, "golden files are missing");
    assert!(report.unlisted.is_empty(), "{} differences, see above", report.unlisted.len());
}

#[test]
fn difference_is_reported_as_fail_open_or_fail_closed() {
    let mut subject = Subject::new(&oracle(), COMPLETE).unwrap();
    let mut differences = |expr: &str, answer: serde_json::Value| {
        let line = serde_json::json!({"id": "x/1", "expr": expr, "answer": answer});
        let line: Line = serde_json::from_value(line).unwrap();
        let differences = subject.compare(&line).differences;
        differences.into_iter().map(|difference| (difference.what, difference.fail_open)).collect::<Vec<_>>()
    };
    let accepted = serde_json::json!({"ok": true, "type": "bool"});
    let rejected = |column: u8| {
        let error = serde_json::json!({"kind": "undeclared-reference", "line": 1, "column": column, "text": "x"});
        serde_json::json!({"new": {"ok": false, "errors": [error]}})
    };
    assert_eq!(differences("1 == 1", serde_json::json!({"new": accepted, "value": "bool:true", "cost": 1})), []);
    assert_eq!(
        differences("1 == 1", serde_json::json!({"new": accepted, "value": "bool:false", "cost": 2})),
        [("value", true), ("cost", false)]
    );
    assert_eq!(
        differences("1 == 2", serde_json::json!({"new": accepted, "error": "no", "cost": 1})),
        [("value", false)]
    );
    assert_eq!(differences("1 == 1", rejected(1)), [("false accept", true); 2]);
    assert_eq!(differences("nope", serde_json::json!({"new": accepted})), [("false reject", false); 2]);
    assert_eq!(differences(" nope", rejected(2)), [("text", false); 2]);
    assert_eq!(differences(" nope", rejected(1)), [("position", false), ("text", false)].repeat(2));
}
