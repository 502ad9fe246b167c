//! Routes: path, handler and description.

use std::future::Future;

use axum::handler::Handler;
use axum::http::{Method, StatusCode};
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::json_schema;

use super::{DescribeInput, DescribeOutput, Operation};
use crate::error::RequestCode;

/// A route of the HTTP server. `S` is the state of the server.
pub(crate) struct Route<S> {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) handler: MethodRouter<S>,
    /// Whether the route needs no key.
    pub(super) is_public: bool,
    /// Function that describes the handler by the types of its inputs and its output.
    describe_handler: fn(&mut Operation<'_>),
    /// Error codes of the route that do not follow from the types of its handler.
    refusals: &'static [RequestCode],
    answers: Vec<(StatusCode, &'static str)>,
}

impl<S: Clone + Send + Sync + 'static> Route<S> {
    fn new<H, T, D>(
        method: Method,
        filter: MethodFilter,
        path: &'static str,
        handler: H,
        summary: &'static str,
    ) -> Self
    where
        H: Handler<T, S> + Described<D>,
        T: 'static,
    {
        let handler = on(filter, handler);
        let describe_handler = H::describe;
        Self {
            method,
            path,
            summary,
            handler,
            is_public: false,
            describe_handler,
            refusals: &[],
            answers: Vec::new(),
        }
    }

    /// Marks the route as public, as the authorization layer treats it.
    pub(crate) fn public(self) -> Self {
        Self { is_public: true, ..self }
    }

    /// Sets the error codes that the route's handler itself may return.
    pub(crate) fn refuses(mut self, codes: &'static [RequestCode]) -> Self {
        self.refusals = codes;
        self
    }

    /// Adds a response that the route's handler builds itself. The media type is empty if it has no
    /// body. May be called several times.
    pub(crate) fn gives(mut self, status: StatusCode, media_type: &'static str) -> Self {
        self.answers.push((status, media_type));
        self
    }

    /// Returns the name of the route in generated clients, such as `get_api_sessions`.
    pub(crate) fn id(&self) -> String {
        let path = if self.path == "/" { "home" } else { self.path };
        let words = path.split(|c: char| !c.is_ascii_alphanumeric());
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        let method = self.method.as_str().to_lowercase();
        [method].into_iter().chain(words).collect::<Vec<_>>().join("_")
    }

    pub(crate) fn describe(&self, operation: &mut Operation<'_>) {
        (self.describe_handler)(operation);
        operation.refuses(self.refusals);
        for &(status, media_type) in &self.answers {
            let content = match media_type {
                "" => None,
                "*/*" => Some((media_type, json_schema!({}))),
                _ => Some((media_type, json_schema!({ "type": "string" }))),
            };
            operation.gives(status, content);
        }
    }
}

macro_rules! methods {
    ($($name:ident $method:ident)*) => {
        impl<S: Clone + Send + Sync + 'static> Route<S> {
            $(pub(crate) fn $name<H, T, D>(
                path: &'static str,
                handler: H,
                summary: &'static str,
            ) -> Self
            where
                H: Handler<T, S> + Described<D>,
                T: 'static,
            {
                Self::new(Method::$method, MethodFilter::$method, path, handler, summary)
            })*
        }
    };
}

methods! { get GET post POST patch PATCH delete DELETE }

/// A handler function whose arguments and result describe themselves for OpenAPI. `D` distinguishes
/// functions with different numbers of arguments.
pub(crate) trait Described<D> {
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<F, Fut, $($argument: DescribeInput,)* R: DescribeOutput> Described<($($argument,)* R,)> for F
        where
            F: FnOnce($($argument),*) -> Fut,
            Fut: Future<Output = R>,
        {
            fn describe(operation: &mut Operation<'_>) {
                $($argument::describe(operation);)*
                R::describe(operation);
            }
        }
    };
}

described! {}
described! { A }
described! { A B }
described! { A B C }
described! { A B C D }
described! { A B C D E }
described! { A B C D E G }
