//! Numbers as people read them.

use crate::text::quantity::dollars;

#[test]
fn money_has_the_digits_that_say_something() {
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
