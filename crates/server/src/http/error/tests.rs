//! `docs/errors.md` is made from the code. `UPDATE_EXPECT=1` writes it.

use std::fmt::Write;

use transcript::ErrorCode;

/// Codes about requests, which never get into a log.
const REQUEST_CODES: [(&str, &str); 13] = [
    ("unauthorized", "401: the token, the cookie or the password is missing or wrong."),
    ("forbidden_host", "403: the request was not sent to a name of this server."),
    ("forbidden_origin", "403: the request comes from a page of another site."),
    ("invalid_request", "400: the request cannot be read, or asks for something impossible."),
    ("not_found", "404: there is nothing at this address."),
    ("session_not_found", "404: there is no such session."),
    ("method_not_allowed", "405: the address does not take this method."),
    ("session_exists", "409: a session of that id exists already."),
    ("nothing_to_do", "409: there is no answer to continue or to retry."),
    ("too_slow", "408: the body did not come within 30 seconds."),
    ("too_many_attempts", "429: the password was wrong too often; wait a minute."),
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
