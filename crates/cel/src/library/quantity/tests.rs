//! Tests of quantities.

use serde_json::{Value, json};

use super::*;
use crate::library::truth::{check, from_double, int, string, texts};

#[test]
fn results_match_the_api_server() {
    check(include_str!("../testdata/quantity.jsonl"), |call, args| {
        let quantity = |index: usize| Quantity::parse(string(&args[index]));
        let written = |quantity: Quantity| Value::from(quantity.to_string());
        let compare = || Ok::<_, String>(quantity(0)?.compare(&quantity(1)?));
        Ok(match call {
            "quantity(x0)" => written(quantity(0)?),
            "isQuantity(x0)" => json!(quantity(0).is_ok()),
            "sign(quantity(x0))" => json!(quantity(0)?.sign()),
            "quantity(x0).isInteger()" => json!(quantity(0)?.as_integer().is_ok()),
            "quantity(x0).asInteger()" => json!(quantity(0)?.as_integer()?),
            "quantity(x0).asApproximateFloat()" => from_double(quantity(0)?.as_approximate_float()),
            "quantity(x0).compareTo(quantity(x1))" => json!(compare()? as i8),
            "quantity(x0).isLessThan(quantity(x1))" => json!(compare()?.is_lt()),
            "quantity(x0).isGreaterThan(quantity(x1))" => json!(compare()?.is_gt()),
            "quantity(x0) == quantity(x1)" => json!(quantity(0)? == quantity(1)?),
            "quantity(x0).add(quantity(x1))" => written(quantity(0)?.add(&quantity(1)?)?),
            "quantity(x0).sub(quantity(x1))" => written(quantity(0)?.sub(&quantity(1)?)?),
            "quantity(x0).add(x1)" => written(quantity(0)?.add_int(int(&args[1]))?),
            "quantity(x0).sub(x1)" => written(quantity(0)?.sub_int(int(&args[1]))?),
            "quantity(x0).add(quantity(x1)).isInteger()" => {
                json!(quantity(0)?.add(&quantity(1)?)?.as_integer().is_ok())
            }
            "quantity(x0).sub(quantity(x1)).isInteger()" => {
                json!(quantity(0)?.sub(&quantity(1)?)?.as_integer().is_ok())
            }
            call => panic!("{call}"),
        })
    });
}

#[test]
fn any_text_parses_as_a_quantity_or_is_rejected() {
    let pieces =
        ["1", "0", "9", ".", "-", "+", "e", "E", "i", "M", "Ki", "Ei", "n", "m", "é", "000000000", "2147483647"];
    let one = Quantity::parse("1.5").unwrap();
    for text in texts(&pieces, 10_000) {
        if let Ok(quantity) = Quantity::parse(&text) {
            let _ = (quantity.add(&one), quantity.sub(&one), quantity.compare(&one), quantity.as_approximate_float());
            let _ = (quantity.to_string(), quantity.as_integer(), quantity.sub_int(i64::MIN));
        }
    }
}
