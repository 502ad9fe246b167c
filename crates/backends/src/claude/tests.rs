//! Examples of what recordings do not show.
