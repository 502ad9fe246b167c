//! Formatting of numbers.

use crate::text::quantity::dollars;

#[test]
fn costs_have_their_significant_digits() {
    for (cost, shown) in [
        (0.000_01, "under $0.0001"),
        (0.000_1, "$0.0001"),
        (0.004_2, "$0.0042"),
        (0.12, "$0.12"),
        (3.4, "$3.40"),
        (1234.567, "$1234.57"),
    ] {
        assert_eq!(dollars(cost), shown);
    }
}
