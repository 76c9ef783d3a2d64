//! The management API's route table: one flat list of method, path, scope and handler. It
//! is also the table of contents of [`api`](crate::api).
//!
//! What belongs here: the list, and the behaviour that all routes share. A slash at the
//! end is optional everywhere; the dispatcher has removed it before. `PUT` without its
//! own line is `PATCH`, and the paths below `/api/projects/` also exist below
//! `/api/environments/`.
//! What does not: a way to register a handler without a guard. There is none:
//! [`Route::guarded`] accepts only handlers whose first argument is [`Authorized`] of the
//! guard in the table.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::request::Parts;
use http::{HeaderValue, Method, header};
use weir_model::scopes::Scope;

use crate::api::{
    activity, alerts, annotations, dashboards, definitions, domains, events, exports, groups,
    insights, instance, invites, limits, members, organizations, personal_api_keys, persons,
    plugin_configs, plugins, projects, query, roles, saml, schema, scim, sessions, signup,
    subscriptions, user_links, users, warnings,
};
use crate::app::App;
use crate::dispatcher::RoutePattern;
use crate::http::credential::Credential;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{self, Authorized, PathTarget};
use crate::http::guards::{
    ActivityLogRead, AlertsRead, AlertsWrite, AnnotationsRead, AnnotationsWrite, AnyKey,
    DashboardsRead, DashboardsWrite, EventDefinitionsRead, EventsRead, EveryScope, ExportsRead,
    ExportsWrite, GroupsRead, Guard, InsightsRead, InsightsWrite, MembersRead, MembersWrite,
    OrganizationRead, OrganizationWrite, PersonsRead, PersonsWrite, PluginsRead, PluginsWrite,
    ProjectRead, ProjectWrite, PropertyDefinitionsRead, QueryRead, SubscriptionsRead,
    SubscriptionsWrite, UserRead, UserWrite,
};
use crate::http::key_use::{self, NoteUse};
use crate::http::peer::ClientAddress;
use crate::http::{accept, credential};
use crate::limits::{ApiPermit, Exhausted, UserPermit};
use crate::openapi::operation::{Description, Operation};

macro_rules! routes {
    ($($method:ident $path:literal $guard:ident $handler:path;)+) => {
        vec![$(Route::guarded::<$guard, _, _, _>(
            Method::$method, $path, stringify!($handler), $handler
        )),+]
    };
}

macro_rules! public_routes {
    ($($method:ident $path:literal $handler:path, $why:literal;)+) => {
        vec![$(PublicRoute {
            why: $why,
            ..PublicRoute::new(Method::$method, $path, stringify!($handler), $handler)
        }),+]
    };
}

/// Every operation of the management API that needs a key.
pub fn routes() -> Vec<Route> {
    routes! {
        GET    "/api/organizations/"                                     OrganizationRead  organizations::list_organizations;
        POST   "/api/organizations/"                                     OrganizationWrite organizations::create_organization;
        GET    "/api/organizations/{organization_id}/"                   OrganizationRead  organizations::get_organization;
        PUT    "/api/organizations/{organization_id}/"                   OrganizationWrite organizations::replace_organization;
        PATCH  "/api/organizations/{organization_id}/"                   OrganizationWrite organizations::update_organization;
        DELETE "/api/organizations/{organization_id}/"                   OrganizationWrite organizations::delete_organization;

        GET    "/api/organizations/{organization_id}/domains/"                     OrganizationRead  domains::list_domains;
        POST   "/api/organizations/{organization_id}/domains/"                     OrganizationWrite domains::create_domain;
        GET    "/api/organizations/{organization_id}/domains/{domain_id}/"         OrganizationRead  domains::get_domain;
        PUT    "/api/organizations/{organization_id}/domains/{domain_id}/"         OrganizationWrite domains::replace_domain;
        PATCH  "/api/organizations/{organization_id}/domains/{domain_id}/"         OrganizationWrite domains::update_domain;
        DELETE "/api/organizations/{organization_id}/domains/{domain_id}/"         OrganizationWrite domains::delete_domain;
        GET    "/api/organizations/{organization_id}/domains/{domain_id}/impact/"  MembersRead domains::get_domain_impact;
        POST   "/api/organizations/{organization_id}/domains/{domain_id}/verify/"  OrganizationWrite domains::verify_domain;
        GET    "/api/organizations/{organization_id}/domains/{domain_id}/scim/"          OrganizationRead  scim::get_provisioning;
        POST   "/api/organizations/{organization_id}/domains/{domain_id}/scim/token/"    MembersWrite scim::create_scim_token;
        DELETE "/api/organizations/{organization_id}/domains/{domain_id}/scim/token/"    OrganizationWrite scim::revoke_scim_token;
        GET    "/api/organizations/{organization_id}/domains/{domain_id}/scim/groups/"   OrganizationRead  scim::list_scim_groups;
        GET    "/api/organizations/{organization_id}/domains/{domain_id}/scim/groups/{group_id}/" OrganizationRead  scim::get_scim_group;
        PATCH  "/api/organizations/{organization_id}/domains/{domain_id}/scim/groups/{group_id}/" MembersWrite scim::update_scim_group;

        GET    "/api/organizations/{organization_id}/invites/"               MembersRead  invites::list_invites;
        POST   "/api/organizations/{organization_id}/invites/"               MembersWrite invites::create_invite;
        DELETE "/api/organizations/{organization_id}/invites/{invite_id}/"   MembersWrite invites::delete_invite;
        POST   "/api/organizations/{organization_id}/invites/bulk/"          MembersWrite invites::create_invites;

        GET    "/api/organizations/{organization_id}/limits/"                OrganizationRead  limits::get_organization_limits;

        GET    "/api/organizations/{organization_id}/members/"               MembersRead  members::list_members;
        PUT    "/api/organizations/{organization_id}/members/{user_id}/"     MembersWrite members::replace_member;
        PATCH  "/api/organizations/{organization_id}/members/{user_id}/"     MembersWrite members::update_member;
        DELETE "/api/organizations/{organization_id}/members/{user_id}/"     MembersWrite members::delete_member;
        GET    "/api/organizations/{organization_id}/members/{user_id}/scoped_api_keys/" MembersRead members::list_member_keys;

        GET    "/api/organizations/{organization_id}/roles/"                 OrganizationRead  roles::list_roles;
        POST   "/api/organizations/{organization_id}/roles/"                 OrganizationWrite roles::create_role;
        GET    "/api/organizations/{organization_id}/roles/{role_id}/"       OrganizationRead  roles::get_role;
        PATCH  "/api/organizations/{organization_id}/roles/{role_id}/"       OrganizationWrite roles::update_role;
        DELETE "/api/organizations/{organization_id}/roles/{role_id}/"       OrganizationWrite roles::delete_role;
        GET    "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/" OrganizationRead  roles::list_role_memberships;
        POST   "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/" OrganizationWrite roles::create_role_membership;
        GET    "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/{role_membership_id}/" OrganizationRead  roles::get_role_membership;
        DELETE "/api/organizations/{organization_id}/roles/{role_id}/role_memberships/{role_membership_id}/" OrganizationWrite roles::delete_role_membership;

        GET    "/api/organizations/{organization_id}/batch_exports/" ExportsRead exports::list_batch_exports;
        POST   "/api/organizations/{organization_id}/batch_exports/" ExportsWrite exports::create_batch_export;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/" ExportsRead exports::get_batch_export;
        PUT    "/api/organizations/{organization_id}/batch_exports/{export_id}/" ExportsWrite exports::replace_batch_export;
        PATCH  "/api/organizations/{organization_id}/batch_exports/{export_id}/" ExportsWrite exports::update_batch_export;
        DELETE "/api/organizations/{organization_id}/batch_exports/{export_id}/" ExportsWrite exports::delete_batch_export;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/backfill/" ExportsWrite exports::backfill_batch_export;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/pause/" ExportsWrite exports::pause_batch_export;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/unpause/" ExportsWrite exports::unpause_batch_export;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/backfills/" ExportsRead exports::backfills::list_batch_export_backfills;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/backfills/" ExportsWrite exports::backfills::create_batch_export_backfill;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/backfills/{backfill_id}/" ExportsRead exports::backfills::get_batch_export_backfill;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/backfills/{backfill_id}/cancel/" ExportsWrite exports::backfills::cancel_batch_export_backfill;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/logs/" ExportsRead exports::logs::list_batch_export_logs;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/runs/" ExportsRead exports::runs::list_batch_export_runs;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/runs/{run_id}/" ExportsRead exports::runs::get_batch_export_run;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/runs/{run_id}/cancel/" ExportsWrite exports::runs::cancel_batch_export_run;
        GET    "/api/organizations/{organization_id}/batch_exports/{export_id}/runs/{run_id}/logs/" ExportsRead exports::logs::list_batch_export_run_logs;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/runs/{run_id}/retry/" ExportsWrite exports::runs::retry_batch_export_run;
        GET    "/api/organizations/{organization_id}/batch_exports/test/" ExportsRead exports::testing::list_batch_export_test_steps;
        POST   "/api/organizations/{organization_id}/batch_exports/run_test_step_new/" ExportsWrite exports::testing::run_batch_export_test_step_new;
        POST   "/api/organizations/{organization_id}/batch_exports/{export_id}/run_test_step/" ExportsWrite exports::testing::run_batch_export_test_step;

        GET    "/api/projects/{project_id}/batch_exports/" ExportsRead exports::list_project_batch_exports;
        POST   "/api/projects/{project_id}/batch_exports/" ExportsWrite exports::create_project_batch_export;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/" ExportsRead exports::get_project_batch_export;
        PUT    "/api/projects/{project_id}/batch_exports/{export_id}/" ExportsWrite exports::replace_project_batch_export;
        PATCH  "/api/projects/{project_id}/batch_exports/{export_id}/" ExportsWrite exports::update_project_batch_export;
        DELETE "/api/projects/{project_id}/batch_exports/{export_id}/" ExportsWrite exports::delete_project_batch_export;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/backfill/" ExportsWrite exports::backfill_project_batch_export;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/pause/" ExportsWrite exports::pause_project_batch_export;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/unpause/" ExportsWrite exports::unpause_project_batch_export;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/backfills/" ExportsRead exports::backfills::list_project_batch_export_backfills;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/backfills/" ExportsWrite exports::backfills::create_project_batch_export_backfill;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/backfills/{backfill_id}/" ExportsRead exports::backfills::get_project_batch_export_backfill;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/backfills/{backfill_id}/cancel/" ExportsWrite exports::backfills::cancel_project_batch_export_backfill;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/logs/" ExportsRead exports::logs::list_project_batch_export_logs;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/runs/" ExportsRead exports::runs::list_project_batch_export_runs;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/runs/{run_id}/" ExportsRead exports::runs::get_project_batch_export_run;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/runs/{run_id}/cancel/" ExportsWrite exports::runs::cancel_project_batch_export_run;
        GET    "/api/projects/{project_id}/batch_exports/{export_id}/runs/{run_id}/logs/" ExportsRead exports::logs::list_project_batch_export_run_logs;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/runs/{run_id}/retry/" ExportsWrite exports::runs::retry_project_batch_export_run;
        GET    "/api/projects/{project_id}/batch_exports/test/" ExportsRead exports::testing::list_project_batch_export_test_steps;
        POST   "/api/projects/{project_id}/batch_exports/run_test_step_new/" ExportsWrite exports::testing::run_project_batch_export_test_step_new;
        POST   "/api/projects/{project_id}/batch_exports/{export_id}/run_test_step/" ExportsWrite exports::testing::run_project_batch_export_test_step;

        GET    "/api/organizations/{organization_id}/pipeline_destinations/" PluginsRead plugins::destinations::list_pipeline_destinations;
        POST   "/api/organizations/{organization_id}/pipeline_destinations/" PluginsWrite plugins::destinations::create_pipeline_destination;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/" PluginsRead plugins::destinations::get_pipeline_destination;
        PATCH  "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/" PluginsWrite plugins::destinations::update_pipeline_destination;
        DELETE "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/" PluginsWrite plugins::destinations::delete_pipeline_destination;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/check_for_updates/" PluginsRead plugins::destinations::check_pipeline_destination_for_updates;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/source/" PluginsRead plugins::destinations::get_pipeline_destination_source;
        PATCH  "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/update_source/" PluginsWrite plugins::destinations::update_pipeline_destination_source;
        POST   "/api/organizations/{organization_id}/pipeline_destinations/{plugin_id}/upgrade/" PluginsWrite plugins::destinations::upgrade_pipeline_destination;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/activity/" PluginsRead plugins::destinations::list_pipeline_destination_activity;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/exports_unsubscribe_configs/" PluginsRead plugins::destinations::list_pipeline_destination_export_configs;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/repository/" PluginsRead plugins::destinations::list_pipeline_destination_repository;
        GET    "/api/organizations/{organization_id}/pipeline_destinations/unused/" PluginsRead plugins::destinations::list_unused_pipeline_destinations;

        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/" PluginsRead plugins::frontend_apps::list_pipeline_frontend_apps;
        POST   "/api/organizations/{organization_id}/pipeline_frontend_apps/" PluginsWrite plugins::frontend_apps::create_pipeline_frontend_app;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/" PluginsRead plugins::frontend_apps::get_pipeline_frontend_app;
        PATCH  "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/" PluginsWrite plugins::frontend_apps::update_pipeline_frontend_app;
        DELETE "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/" PluginsWrite plugins::frontend_apps::delete_pipeline_frontend_app;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/check_for_updates/" PluginsRead plugins::frontend_apps::check_pipeline_frontend_app_for_updates;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/source/" PluginsRead plugins::frontend_apps::get_pipeline_frontend_app_source;
        PATCH  "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/update_source/" PluginsWrite plugins::frontend_apps::update_pipeline_frontend_app_source;
        POST   "/api/organizations/{organization_id}/pipeline_frontend_apps/{plugin_id}/upgrade/" PluginsWrite plugins::frontend_apps::upgrade_pipeline_frontend_app;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/activity/" PluginsRead plugins::frontend_apps::list_pipeline_frontend_app_activity;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/exports_unsubscribe_configs/" PluginsRead plugins::frontend_apps::list_pipeline_frontend_app_export_configs;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/repository/" PluginsRead plugins::frontend_apps::list_pipeline_frontend_app_repository;
        GET    "/api/organizations/{organization_id}/pipeline_frontend_apps/unused/" PluginsRead plugins::frontend_apps::list_unused_pipeline_frontend_apps;

        GET    "/api/organizations/{organization_id}/pipeline_import_apps/" PluginsRead plugins::import_apps::list_pipeline_import_apps;
        POST   "/api/organizations/{organization_id}/pipeline_import_apps/" PluginsWrite plugins::import_apps::create_pipeline_import_app;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/" PluginsRead plugins::import_apps::get_pipeline_import_app;
        PATCH  "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/" PluginsWrite plugins::import_apps::update_pipeline_import_app;
        DELETE "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/" PluginsWrite plugins::import_apps::delete_pipeline_import_app;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/check_for_updates/" PluginsRead plugins::import_apps::check_pipeline_import_app_for_updates;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/source/" PluginsRead plugins::import_apps::get_pipeline_import_app_source;
        PATCH  "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/update_source/" PluginsWrite plugins::import_apps::update_pipeline_import_app_source;
        POST   "/api/organizations/{organization_id}/pipeline_import_apps/{plugin_id}/upgrade/" PluginsWrite plugins::import_apps::upgrade_pipeline_import_app;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/activity/" PluginsRead plugins::import_apps::list_pipeline_import_app_activity;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/exports_unsubscribe_configs/" PluginsRead plugins::import_apps::list_pipeline_import_app_export_configs;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/repository/" PluginsRead plugins::import_apps::list_pipeline_import_app_repository;
        GET    "/api/organizations/{organization_id}/pipeline_import_apps/unused/" PluginsRead plugins::import_apps::list_unused_pipeline_import_apps;

        GET    "/api/organizations/{organization_id}/projects/"              ProjectRead  projects::list_organization_projects;
        POST   "/api/organizations/{organization_id}/projects/"              ProjectWrite projects::create_organization_project;
        GET    "/api/organizations/{organization_id}/projects/{project_id}/" ProjectRead  projects::get_organization_project;
        PATCH  "/api/organizations/{organization_id}/projects/{project_id}/" ProjectWrite projects::update_organization_project;
        DELETE "/api/organizations/{organization_id}/projects/{project_id}/" ProjectWrite projects::delete_organization_project;

        PATCH  "/api/organizations/{organization_id}/projects/{project_id}/reset_token/"                ProjectWrite projects::reset_organization_project_token;
        PATCH  "/api/organizations/{organization_id}/projects/{project_id}/rotate_secret_token/"        ProjectWrite projects::rotate_organization_project_secret;
        PATCH  "/api/organizations/{organization_id}/projects/{project_id}/delete_secret_token_backup/" ProjectWrite projects::delete_organization_project_secret_backup;
        POST   "/api/organizations/{organization_id}/projects/{project_id}/change_organization/"        ProjectWrite projects::move_organization_project;
        GET    "/api/organizations/{organization_id}/projects/{project_id}/activity/" ActivityLogRead activity::list_organization_project_changes;

        GET    "/api/organizations/{organization_id}/activity_log/"          ActivityLogRead activity::list_organization_activity;

        GET    "/api/projects/"                                          ProjectRead  projects::list_projects;
        POST   "/api/projects/"                                          ProjectWrite projects::create_project;
        GET    "/api/projects/{project_id}/"                             ProjectRead  projects::get_project;
        PATCH  "/api/projects/{project_id}/"                             ProjectWrite projects::update_project;
        DELETE "/api/projects/{project_id}/"                             ProjectWrite projects::delete_project;
        PATCH  "/api/projects/{project_id}/reset_token/"                 ProjectWrite projects::reset_project_token;
        PATCH  "/api/projects/{project_id}/rotate_secret_token/"         ProjectWrite projects::rotate_project_secret;
        PATCH  "/api/projects/{project_id}/delete_secret_token_backup/"  ProjectWrite projects::delete_project_secret_backup;
        POST   "/api/projects/{project_id}/change_organization/"         ProjectWrite projects::change_project_organization;
        GET    "/api/projects/{project_id}/activity/"                    ActivityLogRead activity::list_project_changes;
        GET    "/api/projects/{project_id}/activity_log/"                ActivityLogRead activity::list_project_activity;
        GET    "/api/projects/{project_id}/events/"                      EventsRead   events::list_events;
        GET    "/api/projects/{project_id}/persons/"                     PersonsRead  persons::list_persons;
        GET    "/api/projects/{project_id}/persons/{person_id}/"         PersonsRead  persons::get_person;
        DELETE "/api/projects/{project_id}/persons/{person_id}/"         PersonsWrite persons::delete_person;
        GET    "/api/projects/{project_id}/persons/{person_id}/erasure/" PersonsRead  persons::get_person_erasure;
        GET    "/api/projects/{project_id}/persons/{person_id}/export/"  EventsRead   persons::export_person;
        GET    "/api/projects/{project_id}/groups/"                      GroupsRead   groups::list_groups;
        GET    "/api/projects/{project_id}/groups/members/"              PersonsRead  groups::list_group_members;
        GET    "/api/projects/{project_id}/groups_types/"                GroupsRead   groups::list_group_types;
        POST   "/api/projects/{project_id}/query/"                       QueryRead    query::create_query;
        GET    "/api/projects/{project_id}/query/{client_query_id}/"     QueryRead    query::get_query;
        DELETE "/api/projects/{project_id}/query/{client_query_id}/"     QueryRead    query::delete_query;
        GET    "/api/projects/{project_id}/sessions/"                    EventsRead   sessions::list_sessions;
        GET    "/api/projects/{project_id}/event_definitions/"           EventDefinitionsRead    definitions::list_event_definitions;
        GET    "/api/projects/{project_id}/property_definitions/"        PropertyDefinitionsRead definitions::list_property_definitions;
        GET    "/api/projects/{project_id}/ingestion_warnings/"          ProjectRead  warnings::list_ingestion_warnings;
        GET    "/api/projects/{project_id}/ingestion_warnings/events/"   ProjectRead  warnings::list_ingestion_warning_events;

        GET    "/api/projects/{project_id}/alerts/"                      AlertsRead      alerts::list_alerts;
        POST   "/api/projects/{project_id}/alerts/"                      AlertsWrite     alerts::create_alert;
        GET    "/api/projects/{project_id}/alerts/{alert_id}/"           AlertsRead      alerts::get_alert;
        PATCH  "/api/projects/{project_id}/alerts/{alert_id}/"           AlertsWrite     alerts::update_alert;
        DELETE "/api/projects/{project_id}/alerts/{alert_id}/"           AlertsWrite     alerts::delete_alert;

        GET    "/api/projects/{project_id}/subscriptions/"               SubscriptionsRead  subscriptions::list_subscriptions;
        POST   "/api/projects/{project_id}/subscriptions/"               SubscriptionsWrite subscriptions::create_subscription;
        GET    "/api/projects/{project_id}/subscriptions/{subscription_id}/" SubscriptionsRead subscriptions::get_subscription;
        PATCH  "/api/projects/{project_id}/subscriptions/{subscription_id}/" SubscriptionsWrite subscriptions::update_subscription;
        DELETE "/api/projects/{project_id}/subscriptions/{subscription_id}/" SubscriptionsWrite subscriptions::delete_subscription;
        POST   "/api/projects/{project_id}/subscriptions/{subscription_id}/test-delivery/" SubscriptionsWrite subscriptions::test_subscription;

        GET    "/api/projects/{project_id}/annotations/"                 AnnotationsRead  annotations::list_annotations;
        POST   "/api/projects/{project_id}/annotations/"                 AnnotationsWrite annotations::create_annotation;
        GET    "/api/projects/{project_id}/annotations/{annotation_id}/" AnnotationsRead  annotations::get_annotation;
        PATCH  "/api/projects/{project_id}/annotations/{annotation_id}/" AnnotationsWrite annotations::update_annotation;
        DELETE "/api/projects/{project_id}/annotations/{annotation_id}/" AnnotationsWrite annotations::delete_annotation;

        GET    "/api/projects/{project_id}/insights/"                    InsightsRead    insights::list_insights;
        POST   "/api/projects/{project_id}/insights/"                    InsightsWrite   insights::create_insight;
        GET    "/api/projects/{project_id}/insights/{insight_id}/"       InsightsRead    insights::get_insight;
        PATCH  "/api/projects/{project_id}/insights/{insight_id}/"       InsightsWrite   insights::update_insight;
        DELETE "/api/projects/{project_id}/insights/{insight_id}/"       InsightsWrite   insights::delete_insight;

        GET    "/api/projects/{project_id}/dashboards/"                  DashboardsRead  dashboards::list_dashboards;
        POST   "/api/projects/{project_id}/dashboards/"                  DashboardsWrite dashboards::create_dashboard;
        GET    "/api/projects/{project_id}/dashboards/{dashboard_id}/"   DashboardsRead  dashboards::get_dashboard;
        PATCH  "/api/projects/{project_id}/dashboards/{dashboard_id}/"   DashboardsWrite dashboards::update_dashboard;
        DELETE "/api/projects/{project_id}/dashboards/{dashboard_id}/"   DashboardsWrite dashboards::delete_dashboard;
        GET    "/api/projects/{project_id}/dashboards/{dashboard_id}/share_links/"           DashboardsRead  dashboards::list_share_links;
        POST   "/api/projects/{project_id}/dashboards/{dashboard_id}/share_links/"           DashboardsWrite dashboards::create_share_link;
        DELETE "/api/projects/{project_id}/dashboards/{dashboard_id}/share_links/{link_id}/" DashboardsWrite dashboards::delete_share_link;

        GET    "/api/projects/{project_id}/pipeline_transformation_configs/" PluginsRead plugin_configs::list_transformation_configs;
        POST   "/api/projects/{project_id}/pipeline_transformation_configs/" PluginsWrite plugin_configs::create_transformation_config;
        GET    "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/" PluginsRead plugin_configs::get_transformation_config;
        PATCH  "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/" PluginsWrite plugin_configs::update_transformation_config;
        DELETE "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/" PluginsWrite plugin_configs::delete_transformation_config;
        GET    "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/frontend/" PluginsRead plugin_configs::get_transformation_config_frontend;
        GET    "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/logs/" PluginsRead plugin_configs::list_transformation_config_logs;
        POST   "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/job/" PluginsWrite plugin_configs::run_transformation_config_job;
        POST   "/api/projects/{project_id}/pipeline_transformation_configs/{config_id}/test/" PluginsWrite plugin_configs::test_transformation_config;
        PATCH  "/api/projects/{project_id}/pipeline_transformation_configs/rearrange/" PluginsWrite plugin_configs::rearrange_transformation_configs;
        POST   "/api/projects/{project_id}/pipeline_transformation_configs/test/" PluginsWrite plugin_configs::test_transformation_configs;

        GET    "/api/users/{user_id}/"                                   UserRead  users::get_user;
        PATCH  "/api/users/{user_id}/"                                   UserWrite users::update_user;
        DELETE "/api/users/{user_id}/"                                   AnyKey users::delete_user;

        GET    "/api/instance/organizations/"                            EveryScope instance::list_instance_organizations;
        GET    "/api/instance/organizations/{organization_id}/limits/"   EveryScope instance::get_instance_organization_limits;
        PATCH  "/api/instance/organizations/{organization_id}/limits/"   EveryScope instance::update_instance_organization_limits;

        GET    "/api/personal_api_keys/"                                 AnyKey personal_api_keys::list_personal_api_keys;
        POST   "/api/personal_api_keys/"                                 AnyKey personal_api_keys::create_personal_api_key;
        GET    "/api/personal_api_keys/{id}/"                            AnyKey personal_api_keys::get_personal_api_key;
        PATCH  "/api/personal_api_keys/{id}/"                            AnyKey personal_api_keys::update_personal_api_key;
        DELETE "/api/personal_api_keys/{id}/"                            AnyKey personal_api_keys::delete_personal_api_key;
        POST   "/api/personal_api_keys/{id}/roll/"                       AnyKey personal_api_keys::roll_personal_api_key;
    }
}

/// Operations without a key, each with its reason. There is no other way around the
/// guards.
pub fn public_routes() -> Vec<PublicRoute> {
    public_routes! {
        GET  "/api/signup/{token}/" signup::get_invitation, "the link is the credential; who has none is to learn what it is for";
        POST "/api/signup/{token}/" signup::accept_invitation, "the link is the credential; an account comes from it";
        POST "/api/login/"              signup::login, "address and password are the credential";
        POST "/api/login/token/"        signup::login_token, "the sign-in that waits, and the code, are the credential";
        POST "/api/login/precheck/"     signup::precheck_login, "asked before signing in; says nothing of accounts";
        POST "/api/reset/"                            user_links::request_password_reset, "who forgot the password; says nothing of accounts";
        GET  "/api/reset/{user_id}/"                  user_links::check_password_reset, "the token of the link is the credential";
        POST "/api/reset/{user_id}/"                  user_links::reset_password, "the token of the link is the credential";
        POST "/api/users/verify_email/"               user_links::confirm_email, "the token of the link is the credential";
        POST "/api/users/request_email_verification/" user_links::request_email_confirmation, "who cannot sign in yet; says nothing of accounts";

        GET "/api/shared_dashboards/{token}/" dashboards::get_shared_dashboard, "the link is the credential; it shows one dashboard";

        GET "/api/saml/metadata/" saml::get_metadata, "identity providers read it; shows no data";

        GET "/api/schema/" schema::get_schema, "describes every instance alike and shows no data";
        GET "/api/docs/"   schema::get_docs,   "the same for people";
        GET "/api/docs/{resource}/" schema::get_docs_of_resource, "the same for people";
    }
}

/// One operation that needs a key.
pub struct Route {
    /// The HTTP method.
    pub method: Method,
    /// The path, with the slash at the end and parameters in braces.
    pub path: &'static str,
    /// The scopes of which a key needs one. An empty list accepts every valid key.
    pub scopes: &'static [Scope],
    /// The handler, as `module::function`.
    pub name: &'static str,
    /// The facts in the handler's signature.
    pub describe: fn() -> Description,
    admit: Admit,
    handler: MethodRouter<App>,
    /// For a change: the same handler for `PUT`, if the path has no other.
    replacing: Option<MethodRouter<App>>,
}

/// Authorizes a caller when no handler of the path has the method.
type Admit = for<'a> fn(&'a App, &'a mut Parts, &'static [Scope]) -> BoxFuture<'a, ApiResult<()>>;
type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

fn admit<'a, W: PathTarget>(
    app: &'a App,
    parts: &'a mut Parts,
    scopes: &'static [Scope],
) -> BoxFuture<'a, ApiResult<()>> {
    Box::pin(async move { extract::admit::<W>(app, parts, scopes).await.map(|_context| ()) })
}

/// Argument lists that begin with [`Authorized`] of the guard.
pub trait GuardedBy<S, W> {}
impl<M, S, W: PathTarget> GuardedBy<S, W> for (M, Authorized<S, W>) {}
impl<M, S, W: PathTarget, A> GuardedBy<S, W> for (M, Authorized<S, W>, A) {}
impl<M, S, W: PathTarget, A, B> GuardedBy<S, W> for (M, Authorized<S, W>, A, B) {}
impl<M, S, W: PathTarget, A, B, C> GuardedBy<S, W> for (M, Authorized<S, W>, A, B, C) {}
impl<M, S, W: PathTarget, A, B, C, D> GuardedBy<S, W> for (M, Authorized<S, W>, A, B, C, D) {}

impl Route {
    fn guarded<S, W, H, T>(
        method: Method,
        path: &'static str,
        name: &'static str,
        handler: H,
    ) -> Self
    where
        S: Guard,
        W: PathTarget,
        H: Handler<T, App> + Operation<T>,
        T: GuardedBy<S, W> + 'static,
    {
        Self {
            path,
            scopes: S::ANY_OF,
            name,
            describe: <H as Operation<T>>::describe,
            admit: admit::<W>,
            replacing: (method == Method::PATCH).then(|| on(MethodFilter::PUT, handler.clone())),
            handler: on(filter(&method), handler),
            method,
        }
    }
}

/// One operation that needs no key.
pub struct PublicRoute {
    /// The HTTP method.
    pub method: Method,
    /// The path, with the slash at the end and parameters in braces.
    pub path: &'static str,
    /// The handler, as `module::function`.
    pub name: &'static str,
    /// Why it needs no key.
    pub why: &'static str,
    /// The facts in the handler's signature.
    pub describe: fn() -> Description,
    handler: MethodRouter<App>,
}

impl PublicRoute {
    fn new<H, T>(method: Method, path: &'static str, name: &'static str, handler: H) -> Self
    where
        H: Handler<T, App> + Operation<T>,
        T: 'static,
    {
        Self {
            path,
            name,
            why: "",
            describe: <H as Operation<T>>::describe,
            handler: on(filter(&method), handler),
            method,
        }
    }
}

fn filter(method: &Method) -> MethodFilter {
    match *method {
        Method::POST => MethodFilter::POST,
        Method::PUT => MethodFilter::PUT,
        Method::PATCH => MethodFilter::PATCH,
        Method::DELETE => MethodFilter::DELETE,
        // A GET handler also answers HEAD.
        _ => MethodFilter::GET,
    }
}

/// The data that the routes of one path share.
struct PathInfo {
    pattern: &'static str,
    allow: HeaderValue,
    read_scopes: &'static [Scope],
    admit: Admit,
}

const PROJECTS: &str = "/api/projects/";
/// The prefix that newer clients use for projects.
const ENVIRONMENTS: &str = "/api/environments/";

/// The management API as a service.
pub fn api_router(app: &App) -> Router {
    let mut paths: BTreeMap<&'static str, Vec<Route>> = BTreeMap::new();
    for route in routes() {
        paths.entry(route.path).or_default().push(route);
    }
    let mut router = Router::new();
    for (path, routes) in paths {
        let answers = path_router(app, path, routes);
        if let Some(below) = path.strip_prefix(PROJECTS) {
            let other = format!("{ENVIRONMENTS}{below}");
            router = router.route(other.trim_end_matches('/'), answers.clone());
        }
        router = router.route(path.trim_end_matches('/'), answers);
    }
    let mut public: BTreeMap<&'static str, Vec<PublicRoute>> = BTreeMap::new();
    for route in public_routes() {
        public.entry(route.path).or_default().push(route);
    }
    for (path, routes) in public {
        router = router.route(path.trim_end_matches('/'), public_path_router(app, path, routes));
    }
    router.fallback(unknown_path).with_state(app.clone())
}

/// A path without a key: every client may see its methods.
fn public_path_router(
    app: &App,
    path: &'static str,
    routes: Vec<PublicRoute>,
) -> MethodRouter<App> {
    let methods: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    let allow = allow(&methods);
    let mut router = MethodRouter::new();
    for route in routes {
        router = router.merge(route.handler);
    }
    router
        .fallback(async |method: Method| ApiError::MethodNotAllowed(method))
        .layer(from_fn_with_state(app.clone(), take_permit))
        .layer(from_fn_with_state(app.clone(), credential::read_first))
        .layer(map_response(move |mut response: Response| {
            let allow = allow.clone();
            async move {
                response.headers_mut().insert(header::ALLOW, allow);
                response.extensions_mut().insert(RoutePattern(path));
                response
            }
        }))
}

/// The methods of a path for the header `Allow`.
fn allow(methods: &[&str]) -> HeaderValue {
    let mut allow = methods.join(", ");
    if methods.contains(&"GET") {
        allow.push_str(", HEAD");
    }
    allow.push_str(", OPTIONS");
    // Method names are valid header text.
    HeaderValue::from_str(&allow).unwrap_or(HeaderValue::from_static("OPTIONS"))
}

async fn unknown_path() -> ApiError {
    ApiError::UnknownPath
}

fn path_router(app: &App, path: &'static str, routes: Vec<Route>) -> MethodRouter<App> {
    let mut methods: Vec<&str> = routes.iter().map(|route| route.method.as_str()).collect();
    let has_put = methods.contains(&"PUT");
    if let Some(at) = methods.iter().position(|method| *method == "PATCH").filter(|_| !has_put) {
        methods.insert(at, "PUT");
    }
    let allow = allow(&methods);
    let reading = routes.iter().find(|route| route.method == Method::GET);
    let example = reading.or(routes.first());
    let media: Arc<[&'static str]> =
        routes.iter().flat_map(|route| (route.describe)().media).copied().collect();
    let info = Arc::new(PathInfo {
        pattern: path,
        allow,
        read_scopes: example.map_or(&[], |route| route.scopes),
        admit: example.map_or(admit::<extract::NoTarget>, |route| route.admit),
    });
    let mut router = MethodRouter::new();
    for route in routes {
        router = router.merge(route.handler);
        if let Some(replacing) = route.replacing.filter(|_| !has_put) {
            router = router.merge(replacing);
        }
    }
    let other = Arc::clone(&info);
    router
        .fallback(move |State(app): State<App>, request: Request| {
            let info = Arc::clone(&other);
            async move { answer_other_method(&app, &info, request).await }
        })
        // The outermost layer is last: the permit, finding the key, recording its use,
        // the media types that the caller accepts, and the headers of every answer of the
        // path.
        .layer(from_fn_with_state(app.clone(), take_permit))
        .layer(from_fn_with_state(app.clone(), credential::find))
        .layer(from_fn_with_state(NoteUse { app: app.clone(), pattern: path }, key_use::note))
        .layer(from_fn_with_state(media, check_accept))
        .layer(map_response(move |mut response: Response| {
            let info = Arc::clone(&info);
            async move {
                response.headers_mut().insert(header::ALLOW, info.allow.clone());
                response.extensions_mut().insert(RoutePattern(info.pattern));
                response
            }
        }))
}

/// A missing method is reported only to callers with access to the path (API-6). OPTIONS
/// requires the read scope.
async fn answer_other_method(app: &App, info: &PathInfo, request: Request) -> ApiResult<Response> {
    let (mut parts, _body) = request.into_parts();
    if parts.method == Method::OPTIONS {
        (info.admit)(app, &mut parts, info.read_scopes).await?;
        return Ok(axum::Json(serde_json::json!({
            "renders": ["application/json"],
            "parses": [
                "application/json",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
            ],
        }))
        .into_response());
    }
    (info.admit)(app, &mut parts, &[]).await?;
    Err(ApiError::MethodNotAllowed(parts.method))
}

/// A request without a permit is refused immediately and never waits. When its user is
/// known, it takes one of the user's permits as well. Without a key, it takes one of those
/// of its network.
pub(crate) async fn take_permit(
    State(app): State<App>,
    mut request: Request,
    next: Next,
) -> ApiResult<Response> {
    let extensions = request.extensions_mut();
    let mut of_network = app.permits.api_of_network.of(ClientAddress::networks(extensions));
    if extensions.get::<Credential>().is_none() {
        of_network.grow_to(1).map_err(|Exhausted| ApiError::Busy)?;
    }
    let permit = ApiPermit::enter(&app.permits.api).map_err(|Exhausted| ApiError::Busy)?;
    let of_user = UserPermit::new(&app.permits.api_of_user);
    extensions.insert(of_user.clone());
    extensions.insert(permit.clone());
    let response = next.run(request).await;
    of_user.release();
    permit.release();
    Ok(response)
}

/// Checks that the caller accepts JSON, or another media type that the path returns.
async fn check_accept(
    State(also): State<Arc<[&'static str]>>,
    request: Request,
    next: Next,
) -> ApiResult<Response> {
    let headers = request.headers();
    if accept::takes_json(headers) || accept::names(headers, &also) {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::NotAcceptable)
    }
}

#[cfg(test)]
mod tests {

    use std::collections::BTreeSet;

    use http::Method;
    use weir_model::scopes::{Scope, ScopeAction};

    use super::routes;

    #[test]
    fn safe_methods_need_read_and_the_others_write() {
        for route in routes() {
            for scope in route.scopes {
                let Scope::On(_, action) = scope else { continue };
                // Questions change nothing, whatever the method.
                let asks = route.path.contains("/query/");
                let safe = route.method == Method::GET || asks;
                let expected = if safe { ScopeAction::Read } else { ScopeAction::Write };
                assert_eq!(*action, expected, "{} {}", route.method, route.path);
            }
        }
    }

    #[test]
    fn no_operation_is_listed_twice() {
        let mut seen = BTreeSet::new();
        for route in routes() {
            assert!(route.path.starts_with("/api/") && route.path.ends_with('/'), "{}", route.path);
            assert!(seen.insert((route.path, route.method.to_string())), "{}", route.path);
        }
    }
}
