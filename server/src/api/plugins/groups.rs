//! The operations of each group of plugins: the same thirteen under three names. An
//! operation has one name in the API document, so each group has its own handlers. The
//! shared functions are in the module above.

use axum::Json;
use axum::extract::State;
use weir_model::pagination::Envelope;
use weir_model::plugins::{Group, Plugin, PluginInput, PluginPatch};

use super::answers::{
    PluginActivityPage, PluginCatalogue, PluginCheck, PluginConfigsOf, PluginSource, Shaped,
    UnusedPlugins,
};
use super::{ActivityFilters, RawFilter, RawListFilter, SentSource};
use crate::api::{Created, NoContent};
use crate::app::App;
use crate::http::error::ApiResult;
use crate::http::extract::{ApiJson, Authorized, InOrganization, PathParams};
use crate::http::guards::{PluginsRead, PluginsWrite};
use crate::http::pagination::{Listing, Params};

/// The handlers of one group, with their names.
macro_rules! group {
    (
        $(#[$doc:meta])* $module:ident = $group:ident:
        $list:ident $create:ident $get:ident $update:ident $delete:ident
        $check:ident $source:ident $update_source:ident $upgrade:ident
        $activity:ident $export_configs:ident $repository:ident $unused:ident
    ) => {
        $(#[$doc])*
        pub mod $module {
            use super::*;

            const GROUP: Group = Group::$group;

            /// The plugins of this group that are visible to the organization.
            pub async fn $list(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                listing: Listing,
            ) -> ApiResult<Json<Envelope<Plugin>>> {
                let paged = app.services.plugins.list(&auth.ctx, GROUP, listing.page()).await?;
                Ok(Json(listing.envelope(paged)))
            }

            /// Install a plugin. Send one of: `url` with a repository on github.com or
            /// gitlab.com, a package on npmjs.com, or `inline:` and the name of an entry
            /// of the catalogue; a form with the file `archive`, a zip or a compressed
            /// tar of at most 5 MiB; or neither, for an empty plugin whose source is
            /// written later.
            pub async fn $create(
                auth: Authorized<PluginsWrite, InOrganization>,
                State(app): State<App>,
                body: ApiJson<PluginInput>,
            ) -> ApiResult<Created<Plugin>> {
                let plugins = &app.services.plugins;
                plugins.may_install(&auth.ctx).await?;
                Ok(Created(plugins.create(&auth.ctx, GROUP, body.checked()?).await?))
            }

            /// One plugin.
            pub async fn $get(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                path: PathParams,
            ) -> ApiResult<Json<Plugin>> {
                let id = path.get(super::super::ID)?;
                Ok(Json(app.services.plugins.get(&auth.ctx, GROUP, id).await?))
            }

            /// Change some fields.
            pub async fn $update(
                auth: Authorized<PluginsWrite, InOrganization>,
                State(app): State<App>,
                path: PathParams,
                body: ApiJson<PluginPatch>,
            ) -> ApiResult<Json<Plugin>> {
                super::super::update(&app, &auth.ctx, GROUP, &path, &body).await
            }

            /// Delete a plugin with its source and its configs.
            pub async fn $delete(
                auth: Authorized<PluginsWrite, InOrganization>,
                State(app): State<App>,
                path: PathParams,
            ) -> ApiResult<NoContent> {
                super::super::delete(&app, &auth.ctx, GROUP, &path).await
            }

            /// Look for a newer version of a plugin. If its host does not answer,
            /// `update_error` has the reason, and the plugin stays as it was.
            pub async fn $check(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                path: PathParams,
                params: Params<RawFilter>,
            ) -> ApiResult<Shaped<PluginCheck>> {
                super::super::check(&app, &auth.ctx, GROUP, &path, &params).await
            }

            /// The source files of a plugin.
            pub async fn $source(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                path: PathParams,
                params: Params<RawFilter>,
            ) -> ApiResult<Shaped<PluginSource>> {
                super::super::source(&app, &auth.ctx, GROUP, &path, &params).await
            }

            /// Change source files.
            pub async fn $update_source(
                auth: Authorized<PluginsWrite, InOrganization>,
                State(app): State<App>,
                path: PathParams,
                params: Params<RawFilter>,
                body: ApiJson<SentSource>,
            ) -> ApiResult<Shaped<PluginSource>> {
                super::super::update_source(&app, &auth.ctx, GROUP, &path, &params, &body).await
            }

            /// Upgrade a plugin to its newest version.
            pub async fn $upgrade(
                auth: Authorized<PluginsWrite, InOrganization>,
                State(app): State<App>,
                path: PathParams,
            ) -> ApiResult<Json<Plugin>> {
                let id = path.get(super::super::ID)?;
                Ok(Json(app.services.plugins.upgrade(&auth.ctx, GROUP, id).await?))
            }

            /// The activity log of plugins.
            pub async fn $activity(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                params: Params<ActivityFilters>,
            ) -> ApiResult<Shaped<PluginActivityPage>> {
                super::super::activity(&app, &auth.ctx, GROUP, &params).await
            }

            /// Enabled configs of plugins with an effect. Configs of plugins that are
            /// offered to all organizations and only change events are not listed.
            pub async fn $export_configs(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                listing: Listing<RawListFilter>,
            ) -> ApiResult<Shaped<PluginConfigsOf>> {
                super::super::export_configs(&app, &auth.ctx, GROUP, &listing).await
            }

            /// The catalogue of plugins.
            pub async fn $repository(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                listing: Listing<RawListFilter>,
            ) -> ApiResult<Shaped<PluginCatalogue>> {
                super::super::repository(&app, &auth.ctx, GROUP, &listing).await
            }

            /// The ids of plugins that no config uses.
            pub async fn $unused(
                auth: Authorized<PluginsRead, InOrganization>,
                State(app): State<App>,
                listing: Listing<RawListFilter>,
            ) -> ApiResult<Shaped<UnusedPlugins>> {
                super::super::unused(&app, &auth.ctx, GROUP, &listing).await
            }
        }
    };
}

group! {
    /// Plugins that deliver events.
    destinations = Destinations:
    list_pipeline_destinations create_pipeline_destination get_pipeline_destination
    update_pipeline_destination delete_pipeline_destination
    check_pipeline_destination_for_updates get_pipeline_destination_source
    update_pipeline_destination_source upgrade_pipeline_destination
    list_pipeline_destination_activity list_pipeline_destination_export_configs
    list_pipeline_destination_repository list_unused_pipeline_destinations
}

group! {
    /// Plugins that show pages in the app.
    frontend_apps = FrontendApps:
    list_pipeline_frontend_apps create_pipeline_frontend_app get_pipeline_frontend_app
    update_pipeline_frontend_app delete_pipeline_frontend_app
    check_pipeline_frontend_app_for_updates get_pipeline_frontend_app_source
    update_pipeline_frontend_app_source upgrade_pipeline_frontend_app
    list_pipeline_frontend_app_activity list_pipeline_frontend_app_export_configs
    list_pipeline_frontend_app_repository list_unused_pipeline_frontend_apps
}

group! {
    /// Plugins that fetch events.
    import_apps = ImportApps:
    list_pipeline_import_apps create_pipeline_import_app get_pipeline_import_app
    update_pipeline_import_app delete_pipeline_import_app
    check_pipeline_import_app_for_updates get_pipeline_import_app_source
    update_pipeline_import_app_source upgrade_pipeline_import_app
    list_pipeline_import_app_activity list_pipeline_import_app_export_configs
    list_pipeline_import_app_repository list_unused_pipeline_import_apps
}
