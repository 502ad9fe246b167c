//! Generates `docs/errors.md` and checks that it is current. `UPDATE_EXPECT=1` writes it.

use std::fmt::Write;

use transcript::ErrorCode;

use super::RequestCode;

#[test]
fn the_documentation_lists_every_code() {
    let mut text = "# Error codes\n\nMade from the code by a test.\n\n## In sessions\n\n\
                    In `error` of `tool_result` and `run_finish`.\n\n\
                    | code | meaning |\n|---|---|\n"
        .to_owned();
    for (code, meaning) in ErrorCode::ALL {
        let _ = writeln!(text, "| `{code}` | {meaning} |");
    }
    text.push_str("\n## In answers to requests\n\n| code | status | meaning |\n|---|---|---|\n");
    for code in RequestCode::ALL {
        let (word, status) = (code.as_str(), code.status().as_u16());
        let _ = writeln!(text, "| `{word}` | {status} | {} |", code.meaning());
    }
    expect_test::expect_file!["../../../../docs/errors.md"].assert_eq(&text);
}
