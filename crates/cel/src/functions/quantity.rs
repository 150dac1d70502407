//! Quantities (apiserver `pkg/cel/library/quantity.go`).

use super::{Function, function, member};
use crate::types::Decl::{self, Bool, Double, Int, Object, String};

/// The type of a quantity.
pub const QUANTITY: Decl = Object("kubernetes.Quantity");

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function { name: "quantity", overloads: &[function("string_to_quantity", &[String], QUANTITY).since(28)] },
    Function { name: "isQuantity", overloads: &[function("is_quantity_string", &[String], Bool).since(28)] },
    Function { name: "sign", overloads: &[function("quantity_sign", &[QUANTITY], Int).since(28)] },
    Function {
        name: "isGreaterThan",
        overloads: &[member("quantity_is_greater_than", &[QUANTITY, QUANTITY], Bool).since(28)],
    },
    Function {
        name: "isLessThan",
        overloads: &[member("quantity_is_less_than", &[QUANTITY, QUANTITY], Bool).since(28)],
    },
    Function { name: "compareTo", overloads: &[member("quantity_compare_to", &[QUANTITY, QUANTITY], Int).since(28)] },
    Function { name: "asApproximateFloat", overloads: &[member("quantity_get_float", &[QUANTITY], Double).since(28)] },
    Function { name: "asInteger", overloads: &[member("quantity_get_int", &[QUANTITY], Int).since(28)] },
    Function { name: "isInteger", overloads: &[member("quantity_is_integer", &[QUANTITY], Bool).since(28)] },
    Function {
        name: "add",
        overloads: &[
            member("quantity_add", &[QUANTITY, QUANTITY], QUANTITY).since(28),
            member("quantity_add_int", &[QUANTITY, Int], QUANTITY).since(28),
        ],
    },
    Function {
        name: "sub",
        overloads: &[
            member("quantity_sub", &[QUANTITY, QUANTITY], QUANTITY).since(28),
            member("quantity_sub_int", &[QUANTITY, Int], QUANTITY).since(28),
        ],
    },
];
