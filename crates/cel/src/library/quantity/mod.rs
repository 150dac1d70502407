//! Kubernetes' quantities (`k8s.io/apimachinery/pkg/api/resource`): `100m`, `1.5Gi`, `2e3`.
//!
//! A quantity is 64 bits and a power of ten if the text allows that, and otherwise a decimal of any size. CEL shows the
//! difference: only the first form is ever an integer.
//!
//! In the API server, `add` and `sub` change the quantity of the second form that they are called on, and a comparison
//! of both forms turns the first one into a decimal. An expression that names a quantity twice may show that there;
//! here a quantity never changes.

mod amount;
mod text;

use std::cmp::Ordering;

use amount::{Dec, Int};

/// How a quantity is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notation {
    /// `12e6`
    DecimalExponent,
    /// `12Mi`
    BinarySi,
    /// `12M`
    DecimalSi,
}

#[derive(Clone, Debug)]
enum Amount {
    Int(Int),
    Dec(Dec),
}

/// A quantity. Two are equal if they are the same number.
#[derive(Clone, Debug)]
pub struct Quantity {
    amount: Amount,
    notation: Notation,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl Quantity {
    /// `quantity(string)`; `isQuantity(string)` is whether that succeeds.
    pub fn parse(text: &str) -> Result<Self, String> {
        text::parse(text)
    }

    fn from_int(value: i64) -> Self {
        Self { amount: Amount::Int(Int { value, scale: 0 }), notation: Notation::DecimalExponent }
    }

    /// A count, which is written as `12k` (`resource.NewQuantity` with `DecimalSI`).
    pub fn count(value: i64) -> Self {
        Self { notation: Notation::DecimalSi, ..Self::from_int(value) }
    }

    /// How many of `10^-decimals` it is, rounded up away from zero: with 3 what Go's `MilliValue` gives, with 0 what
    /// `Value` gives. Numbers with too many digits have no such form.
    pub fn scaled_up(&self, decimals: i32) -> Option<String> {
        let dec = self.dec();
        let moved = Dec { scale: dec.scale.checked_sub(decimals)?, ..dec };
        Some(moved.round_up(0)?.unscaled.to_string())
    }

    fn dec(&self) -> Dec {
        match &self.amount {
            Amount::Int(int) => int.to_dec(),
            Amount::Dec(dec) => dec.clone(),
        }
    }

    /// `sign(quantity)`: -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        match &self.amount {
            Amount::Int(int) => int.value.signum(),
            Amount::Dec(dec) => dec.sign(),
        }
    }

    /// `quantity.compareTo(quantity)`.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.dec().compare(&other.dec())
    }

    /// `quantity.asInteger()`; `isInteger` is whether that succeeds.
    pub(crate) fn as_integer(&self) -> Result<i64, String> {
        let value = match &self.amount {
            Amount::Int(int) => int.to_i64(),
            Amount::Dec(_) => None,
        };
        value.ok_or_else(|| "cannot convert value to integer".to_owned())
    }

    /// `quantity.asApproximateFloat()`.
    pub fn as_approximate_float(&self) -> f64 {
        let (base, exponent) = match &self.amount {
            #[expect(clippy::cast_precision_loss, reason = "it is approximate")]
            Amount::Int(int) => (int.value as f64, int.scale),
            Amount::Dec(dec) => (dec.unscaled_double(), dec.scale.wrapping_neg()),
        };
        if exponent == 0 { base } else { base * amount::power_of_ten(exponent) }
    }

    /// `quantity.add(quantity)`.
    ///
    /// # Errors
    /// If the numbers are so far apart that their sum has a hundred thousand digits. The API server would compute it.
    pub fn add(&self, other: &Self) -> Result<Self, String> {
        let int = match (&self.amount, &other.amount) {
            (Amount::Int(a), Amount::Int(b)) => a.add(*b),
            _ => None,
        };
        self.plus(other.notation, int, || other.dec())
    }

    /// The sum with another quantity, of which the sum of 64 bits is known if there is one.
    fn plus(&self, notation: Notation, int: Option<Int>, other: impl FnOnce() -> Dec) -> Result<Self, String> {
        let notation = if self.sign() == 0 { notation } else { self.notation };
        let amount = int.map_or_else(|| self.dec().add(&other()).map(Amount::Dec), |int| Ok(Amount::Int(int)))?;
        Ok(Self { amount, notation })
    }

    /// Rounded up to thousandths, away from zero, as the API server keeps amounts of resources.
    #[must_use]
    pub fn round_up_to_milli(&self) -> Self {
        const DECIMALS: i32 = 3;
        let dec = self.dec();
        if dec.scale <= DECIMALS {
            return self.clone();
        }
        let rounded = dec.round_up(DECIMALS);
        rounded.map_or_else(|| self.clone(), |dec| Self { amount: Amount::Dec(dec), notation: self.notation })
    }

    /// Whether the API server takes it for an integer (`q.MilliValue()%1000 == 0`): it is one once it is
    /// [rounded up](Self::round_up_to_milli) to thousandths, and these fit into 64 bits.
    pub fn is_whole(&self) -> bool {
        self.dec().round_up(3).and_then(|dec| i64::try_from(dec.unscaled).ok()).is_some_and(|milli| milli % 1000 == 0)
    }

    /// The number rounded up to an integer, away from zero; none that has more than 64 bits.
    pub fn rounded_up(&self) -> Option<i64> {
        self.dec().round_up(0).and_then(|dec| i64::try_from(dec.unscaled).ok())
    }

    /// `quantity.add(int)`.
    pub(crate) fn add_int(&self, other: i64) -> Result<Self, String> {
        self.add(&Self::from_int(other))
    }

    /// `quantity.sub(quantity)`.
    ///
    /// # Errors
    /// As of [`Self::add`].
    pub fn sub(&self, other: &Self) -> Result<Self, String> {
        let int = match (&self.amount, &other.amount) {
            // The least integer is its own negation in Go.
            (Amount::Int(a), Amount::Int(b)) => a.add(Int { value: b.value.wrapping_neg(), ..*b }),
            _ => None,
        };
        self.plus(other.notation, int, || other.dec().negate())
    }

    /// `quantity.sub(int)`.
    pub(crate) fn sub_int(&self, other: i64) -> Result<Self, String> {
        self.sub(&Self::from_int(other))
    }
}

/// The canonical form.
impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        text::write(self, f)
    }
}

#[cfg(test)]
mod tests;
