//! Subscriptions of an insight or of a dashboard.

#![allow(clippy::too_many_arguments, reason = "the fields of a form")]

use leptos::prelude::*;
use serde::{Deserialize, Serialize};

#[cfg(feature = "ssr")]
use crate::context::{enter_project, go, notice, redirect_with_notice, ui_error};
#[cfg(feature = "ssr")]
use crate::edits::Edits;
use crate::error::UiError;
#[cfg(feature = "ssr")]
use crate::ui::field::{moment_shown, parse_time};

/// The subscriptions of an insight or a dashboard, and what their form offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubscriptionsView {
    /// Number of the insight or the dashboard.
    pub(crate) about: i64,
    /// Its name.
    pub(crate) name: String,
    /// Members who can get mails: address and name.
    pub(crate) members: Vec<(String, String)>,
    /// Address of the user.
    pub(crate) own_address: String,
    /// Whether this instance sends mail.
    pub(crate) sends_mail: bool,
    /// The form of a new subscription.
    pub(crate) new: SubscriptionForm,
    pub(crate) subscriptions: Vec<SubscriptionView>,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubscriptionView {
    pub(crate) id: i64,
    pub(crate) form: SubscriptionForm,
    /// When mails are sent, such as `sent every day`.
    pub(crate) summary: String,
    /// When mails are sent next. Empty: never.
    pub(crate) next_at: String,
    /// When mails were sent last. Empty: not yet.
    pub(crate) last_at: String,
    /// Why the last time had no mail, or a mail without some answers. Empty: it was complete.
    pub(crate) error: String,
}

/// The values of the form of a subscription, as its fields show them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SubscriptionForm {
    pub(crate) title: String,
    pub(crate) frequency: String,
    /// The number of days, weeks or months between two mails.
    pub(crate) interval: String,
    /// The words of the days of the week, in order, with commas.
    pub(crate) weekdays: String,
    /// Which of these days of a month. Empty: the subscription is not about one.
    pub(crate) place: String,
    /// The first time.
    pub(crate) start: String,
    /// From when on no mail is sent. Empty: never.
    pub(crate) until: String,
    /// The addresses of the members who get mails, in order, with commas.
    pub(crate) recipients: String,
}

/// Lists the subscriptions of an insight, or of a dashboard if `insight` is empty.
#[server(prefix = "/_fn", endpoint = "list_subscriptions")]
pub(crate) async fn list_subscriptions(
    project: i64,
    #[server(default)] insight: String,
    #[server(default)] dashboard: String,
) -> Result<SubscriptionsView, UiError> {
    use weir_model::members::MemberQuery;
    use weir_model::pagination::Page;
    use weir_model::subscriptions::{Frequency, SUBSCRIPTIONS_MAX, Subscription};

    /// The most members that the form offers.
    const MEMBERS: u64 = 100;
    /// Seconds until the first mail of a new form.
    const SOON: i64 = 60 * 60;

    let (services, ctx) = enter_project(project).await?;
    let (about, name) = subject(&services, &ctx, &insight, &dashboard).await?;
    let page = Page { limit: SUBSCRIPTIONS_MAX as u64, offset: 0 };
    let found = services.subscriptions.list(&ctx, Some(about), page).await.map_err(ui_error)?;
    let page = Page { limit: MEMBERS, offset: 0 };
    let offered = services.members.list(&ctx.org, &MemberQuery::default(), page).await;
    let offered = offered.map_err(ui_error)?.results.into_iter().map(|member| member.user);
    let mut members: Vec<(String, String)> = Vec::new();
    for user in offered {
        let name = super::members::full_name(&user.first_name, &user.last_name, &user.email);
        members.push((user.email, name));
    }
    let own_address = services.users.me(&ctx.org.ctx).await.map_err(ui_error)?.email;
    let chosen = found.results.iter().flat_map(|one| one.target_value.split(','));
    for address in chosen.chain([own_address.as_str()]).filter(|address| !address.is_empty()) {
        if members.iter().all(|(known, _)| known != address) {
            members.push((address.to_owned(), address.to_owned()));
        }
    }
    let time =
        |time: Option<weir_model::Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let view = |one: Subscription| SubscriptionView {
        id: one.id.0,
        form: SubscriptionForm::of(&one),
        next_at: time(one.next_delivery_date),
        last_at: time(one.last_delivery_date),
        summary: one.summary,
        error: one.last_error.unwrap_or_default(),
    };
    let start = ctx.org.ctx.now.plus_seconds(SOON).to_string();
    // The minute is enough.
    let start = moment_shown(&start).chars().take("2026-08-21T14:05".len()).collect();
    Ok(SubscriptionsView {
        about: about.insight().map_or_else(
            || about.dashboard().map_or(0, |dashboard| dashboard.0),
            |insight| insight.0,
        ),
        name,
        members,
        sends_mail: services.mails.is_open(),
        new: SubscriptionForm {
            title: String::new(),
            frequency: Frequency::Weekly.text().to_owned(),
            interval: "1".to_owned(),
            weekdays: String::new(),
            place: String::new(),
            start,
            until: String::new(),
            recipients: own_address.clone(),
        },
        own_address,
        subscriptions: found.results.into_iter().map(view).collect(),
    })
}

/// Saves a subscription: a new one, or the changed fields of the one with this number.
#[server(prefix = "/_fn", endpoint = "save_subscription")]
pub(crate) async fn save_subscription(
    project: i64,
    #[server(default)] insight: String,
    #[server(default)] dashboard: String,
    #[server(default)] subscription: String,
    #[server(default)] seen: String,
    #[server(default)] title: String,
    #[server(default)] frequency: String,
    #[server(default)] interval: String,
    #[server(default)] place: String,
    #[server(default)] start: String,
    #[server(default)] until: String,
    // Browsers do not send unticked boxes.
    #[server(default)] weekdays: Vec<String>,
    #[server(default)] recipients: Vec<String>,
) -> Result<(), UiError> {
    use weir_model::subscriptions::{SubscriptionInput, SubscriptionPatch};

    let (services, ctx) = enter_project(project).await?;
    let sent = SubscriptionForm {
        title,
        frequency,
        interval,
        weekdays: in_order(&weekdays),
        place,
        start,
        until,
        recipients: joined(recipients),
    };
    let subscriptions = &services.subscriptions;
    let saved = if subscription.is_empty() {
        let (about, _) = subject(&services, &ctx, &insight, &dashboard).await?;
        let patch = sent.patch()?;
        let input = SubscriptionInput {
            about,
            target_value: sent.recipients.clone(),
            frequency: sent.frequency()?,
            start_date: sent.start()?,
            rest: SubscriptionPatch {
                target_value: None,
                frequency: None,
                start_date: None,
                ..patch
            },
        };
        subscriptions.create(&ctx, input).await
    } else {
        let stored = subscriptions.get(&ctx, &subscription).await.map_err(ui_error)?;
        let mut edits = Edits::of(&seen);
        let form = sent.over(SubscriptionForm::of(&stored), &mut edits);
        edits.check()?;
        subscriptions.update(&ctx, &subscription, form.patch()?).await
    };
    let saved = saved.map_err(|error| at_field(ui_error(error)))?;
    let root = root(project, &insight, &dashboard);
    let path = format!("{root}?subscription={}", saved.id);
    redirect_with_notice(&path, "Saved the subscription.");
    Ok(())
}

/// Sends the user the mail that the recipients would get now.
#[server(prefix = "/_fn", endpoint = "test_subscription")]
pub(crate) async fn test_subscription(project: i64, subscription: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    services.subscriptions.send_test(&ctx, &subscription).await.map_err(ui_error)?;
    notice("A mail is on its way to you.");
    Ok(())
}

/// Removes the user from the recipients of a subscription.
#[server(prefix = "/_fn", endpoint = "leave_subscription")]
pub(crate) async fn leave_subscription(project: i64, subscription: String) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    services.subscriptions.unsubscribe(&ctx, &subscription).await.map_err(ui_error)?;
    notice("You get no more mails of this subscription.");
    Ok(())
}

/// Deletes a subscription for ever.
#[server(prefix = "/_fn", endpoint = "delete_subscription")]
pub(crate) async fn delete_subscription(
    project: i64,
    #[server(default)] insight: String,
    #[server(default)] dashboard: String,
    subscription: String,
) -> Result<(), UiError> {
    let (services, ctx) = enter_project(project).await?;
    services.subscriptions.delete(&ctx, &subscription).await.map_err(ui_error)?;
    notice("Deleted the subscription.");
    go(&root(project, &insight, &dashboard));
    Ok(())
}

/// The insight or the dashboard, and its name.
#[cfg(feature = "ssr")]
async fn subject(
    services: &weir_service::Services,
    ctx: &weir_service::ProjectCtx,
    insight: &str,
    dashboard: &str,
) -> Result<(weir_model::subscriptions::SubscriptionSubject, String), UiError> {
    use weir_model::subscriptions::SubscriptionSubject;

    if insight.is_empty() {
        let found = services.dashboards.get(ctx, dashboard).await.map_err(ui_error)?.brief;
        return Ok((SubscriptionSubject::Dashboard(found.id), found.name));
    }
    let found = services.insights.get(ctx, insight).await.map_err(ui_error)?;
    Ok((SubscriptionSubject::Insight(found.id), super::insights::name_of(&found)))
}

/// The page with the subscriptions, as a path.
pub(crate) fn root(project: i64, insight: &str, dashboard: &str) -> String {
    match insight.is_empty() {
        true => format!("/projects/{project}/dashboards/{dashboard}/subscriptions"),
        false => format!("/projects/{project}/insights/{insight}/subscriptions"),
    }
}

/// Addresses in order, with commas.
#[cfg(feature = "ssr")]
fn joined(addresses: impl IntoIterator<Item = String>) -> String {
    let mut addresses: Vec<String> = addresses.into_iter().collect();
    addresses.sort();
    addresses.join(",")
}

/// Days in the order of the week, with commas.
#[cfg(feature = "ssr")]
fn in_order(days: &[String]) -> String {
    use weir_model::subscriptions::Weekday;

    let chosen = Weekday::WORDS.iter().filter(|word| days.iter().any(|day| day == *word));
    chosen.copied().collect::<Vec<&str>>().join(",")
}

#[cfg(feature = "ssr")]
impl SubscriptionForm {
    fn of(one: &weir_model::subscriptions::Subscription) -> Self {
        let days = one.byweekday.iter().flatten().map(|day| day.text().to_owned());
        let until = one.until_date.map(|until| moment_shown(&until.to_string()));
        Self {
            title: one.title.clone().unwrap_or_default(),
            frequency: one.frequency.text().to_owned(),
            interval: one.interval.to_string(),
            weekdays: in_order(&days.collect::<Vec<String>>()),
            place: one.bysetpos.map(|place| place.to_string()).unwrap_or_default(),
            start: moment_shown(&one.start_date.to_string()),
            until: until.unwrap_or_default(),
            recipients: joined(
                one.target_value.split(',').filter(|one| !one.is_empty()).map(str::to_owned),
            ),
        }
    }

    /// The stored form with the fields that the sender has changed.
    fn over(self, stored: Self, edits: &mut Edits) -> Self {
        let mut of = |name: &str, label: &str, sent: String, stored: String| {
            if edits.is_own(name, label, &sent, &stored) { sent } else { stored }
        };
        Self {
            title: of("title", "Title", self.title, stored.title),
            frequency: of("frequency", "Send", self.frequency, stored.frequency),
            interval: of("interval", "Interval", self.interval, stored.interval),
            weekdays: of("weekdays", "Days of the week", self.weekdays, stored.weekdays),
            place: of("place", "Which of these days", self.place, stored.place),
            start: of("start", "First mail", self.start, stored.start),
            until: of("until", "End", self.until, stored.until),
            recipients: of("recipients", "Mail to", self.recipients, stored.recipients),
        }
    }

    fn frequency(&self) -> Result<weir_model::subscriptions::Frequency, UiError> {
        let found = weir_model::subscriptions::Frequency::of(&self.frequency);
        found.ok_or_else(|| wrong("frequency", &self.frequency))
    }

    fn start(&self) -> Result<weir_model::Timestamp, UiError> {
        moment("start", &self.start)?.ok_or_else(|| {
            UiError::field("start", "required", "Enter the date and time of the first mail.")
        })
    }

    /// The change to the values of this form.
    fn patch(&self) -> Result<weir_model::subscriptions::SubscriptionPatch, UiError> {
        use weir_model::Patch;
        use weir_model::subscriptions::{SubscriptionPatch, Weekday};

        let days = self.weekdays.split(',').filter(|day| !day.is_empty());
        let days: Result<Vec<Weekday>, UiError> =
            days.map(|day| Weekday::of(day).ok_or_else(|| wrong("weekdays", day))).collect();
        let place = match self.place.as_str() {
            "" => Patch::Clear,
            place => Patch::Set(place.parse().map_err(|_| wrong("place", place))?),
        };
        let number = "Enter a whole number, such as 1 or 2.";
        let interval = self.interval.trim().parse();
        let interval = interval.map_err(|_| UiError::field("interval", "invalid_input", number))?;
        Ok(SubscriptionPatch {
            title: Patch::Set(self.title.clone()),
            target_value: Some(self.recipients.clone()),
            frequency: Some(self.frequency()?),
            interval: Some(interval),
            byweekday: Patch::Set(days?),
            bysetpos: place,
            count: Patch::Keep,
            start_date: Some(self.start()?),
            until_date: moment("until", &self.until)?.map_or(Patch::Clear, Patch::Set),
            deleted: Patch::Keep,
        })
    }
}

#[cfg(feature = "ssr")]
fn wrong(name: &str, text: &str) -> UiError {
    UiError::field(name, "invalid_choice", &format!("\"{text}\" is not a valid choice."))
}

/// The time of a field. `None`: the field is empty.
#[cfg(feature = "ssr")]
fn moment(name: &str, text: &str) -> Result<Option<weir_model::Timestamp>, UiError> {
    match (text.trim(), parse_time(text)) {
        ("", _) => Ok(None),
        (_, Some(time)) => Ok(Some(time)),
        (_, None) => {
            let detail = "Enter a date and a time of day, in UTC.";
            Err(UiError::field(name, "invalid_input", detail))
        }
    }
}

/// Moves a fault to the field of the form.
#[cfg(feature = "ssr")]
fn at_field(error: UiError) -> UiError {
    use weir_model::errors::FieldError;

    let UiError::Field(fault) = error else { return error };
    let attr = fault.attr.map(|attr| {
        let field = match attr.as_str() {
            "target_value" => "recipients",
            "bysetpos" => "place",
            "start_date" => "start",
            "until_date" => "until",
            other if other.starts_with("byweekday") => "weekdays",
            other => other,
        };
        field.to_owned()
    });
    UiError::Field(FieldError { attr, ..fault })
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use weir_model::Patch;
    use weir_model::subscriptions::Weekday;

    use super::*;

    fn form() -> SubscriptionForm {
        SubscriptionForm {
            title: String::new(),
            frequency: "weekly".to_owned(),
            interval: " 2 ".to_owned(),
            weekdays: in_order(&["friday".to_owned(), "monday".to_owned(), "never".to_owned()]),
            place: String::new(),
            start: "2026-08-21T14:05".to_owned(),
            until: String::new(),
            recipients: joined(["b@mail.example".to_owned(), "a@mail.example".to_owned()]),
        }
    }

    #[test]
    fn fields_become_a_change() {
        let patch = form().patch().unwrap();
        assert_eq!(patch.byweekday, Patch::Set(vec![Weekday::Monday, Weekday::Friday]));
        assert_eq!((patch.interval, patch.bysetpos), (Some(2), Patch::Clear));
        assert_eq!(patch.start_date.unwrap().to_string(), "2026-08-21T14:05:00Z");
        assert_eq!(patch.until_date, Patch::Clear);
        assert_eq!(patch.target_value.as_deref(), Some("a@mail.example,b@mail.example"));
    }

    #[test]
    fn a_fault_names_its_field() {
        let at = |change: fn(&mut SubscriptionForm)| {
            let mut form = form();
            change(&mut form);
            form.patch().err().and_then(|error| error.attr().map(str::to_owned))
        };
        assert_eq!(at(|_| {}), None);
        assert_eq!(at(|form| form.interval = "often".to_owned()).as_deref(), Some("interval"));
        assert_eq!(at(|form| form.start = String::new()).as_deref(), Some("start"));
        assert_eq!(at(|form| form.until = "soon".to_owned()).as_deref(), Some("until"));
        assert_eq!(at(|form| form.frequency = "hourly".to_owned()).as_deref(), Some("frequency"));
        assert_eq!(at(|form| form.place = "x".to_owned()).as_deref(), Some("place"));
    }
}
