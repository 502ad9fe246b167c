//! `callboard password`: sets the password.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, ensure};
use web::auth::password;

use crate::config::Config;

/// Runs `callboard password`. Reads the new password from the terminal without echo, or from the
/// first line of standard input.
pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    let given = if io::stdin().is_terminal() {
        let [first, second] = ["New password: ", "The same again: "]
            .map(|it| rpassword::prompt_password(it).context("reading the password"));
        let first = first?;
        ensure!(first == second?, "the two passwords are not the same; nothing was changed");
        first
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).context("reading the password")?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    password::set(&config.data, &given)?;
    #[expect(clippy::print_stdout, reason = "the answer to the command")]
    {
        println!("The password is set. All sign-ins end, also those of a server that is running.");
    }
    Ok(())
}
