//! Access control: the layer in front of all routes, keys and sign-ins, host names, and the password.

pub(crate) mod gate;
pub(crate) mod hosts;
pub(crate) mod keys;
pub mod password;
pub(crate) mod sign_in;
