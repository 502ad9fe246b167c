//! Page settings, stored on the server.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use render::Settings;
use serde_json::{Map, Value};

use crate::error::HttpError;
use crate::extract::Input;
use runtime::export::{PAGE_SETTINGS, page_settings};
use runtime::live::hub::Hub;
use store::Store;

pub(crate) async fn show(State(store): State<Store>) -> Result<Json<Settings>, HttpError> {
    Ok(Json(page_settings(&store).await?))
}

/// A partial update of the page settings.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[schemars(with = "Settings")]
pub(crate) struct SettingsPatch(Map<String, Value>);

pub(crate) async fn update(
    State(store): State<Store>,
    State(hub): State<Arc<Hub>>,
    Input(SettingsPatch(changes)): Input<SettingsPatch>,
) -> Result<Json<Settings>, HttpError> {
    let mut fields = serde_json::to_value(page_settings(&store).await?).unwrap_or_default();
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(changes);
    }
    let settings: Settings = serde_json::from_value(fields)
        .map_err(|error| HttpError::invalid(format!("invalid settings: {error}")))?;
    let text = serde_json::to_string(&settings).unwrap_or_default();
    store.set_setting(PAGE_SETTINGS, &text).await?;
    hub.publish_settings(&settings);
    Ok(Json(settings))
}
