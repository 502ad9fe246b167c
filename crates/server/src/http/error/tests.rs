//! `docs/errors.md` is made from the code. `UPDATE_EXPECT=1` writes it.

use std::fmt::Write;

use transcript::ErrorCode;

/// Codes about requests, which never get into a log.
const REQUEST_CODES: [(&str, &str); 9] = [
    ("unauthorized", "401: the token is missing or wrong."),
    ("invalid_request", "400: the request cannot be read, or asks for something impossible."),
    ("not_found", "404: there is nothing at this address."),
    ("session_not_found", "404: there is no such session."),
    ("method_not_allowed", "405: the address does not take this method."),
    ("session_exists", "409: a session of that id exists already."),
    ("nothing_to_do", "409: there is no answer to continue or to retry."),
    ("too_large", "413: the body is larger than 8 MiB."),
    ("stopping", "503: the server is stopping."),
];

#[test]
fn the_documentation_lists_every_code() {
    let mut text = "# Error codes\n\nMade from the code by a test.\n\n## In sessions\n\n\
                    In `error` of `tool_result` and `run_finish`, and in answers to requests.\n\n\
                    | code | meaning |\n|---|---|\n"
        .to_owned();
    for (code, meaning) in ErrorCode::ALL {
        let _ = writeln!(text, "| `{code}` | {meaning} |");
    }
    text.push_str("\n## In answers to requests only\n\n| code | meaning |\n|---|---|\n");
    for (code, meaning) in REQUEST_CODES {
        let _ = writeln!(text, "| `{code}` | {meaning} |");
    }
    expect_test::expect_file!["../../../../../docs/errors.md"].assert_eq(&text);
}
