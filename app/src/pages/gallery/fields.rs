//! Forms and their fields: initial, refused, and disabled.

use leptos::prelude::*;

use crate::error::UiError;
use crate::ui::field::{
    Check, Choice, Field, MomentField, RadioCards, SecretField, Select, TextArea, TextLine,
    parse_time,
};
use crate::ui::form::{Advanced, FormResult, Submit, Summary};
use crate::ui::password::PasswordField;
use crate::ui::sections::Section;
use crate::ui::time::Time;

/// A time in the format of a `datetime-local` field.
const MOMENT: &str = "2026-08-21T14:05";

/// The fields.
pub(super) fn sections() -> AnyView {
    let result = FormResult::sample(None);
    view! {
        <Section id="fields" title="Fields">{plain()}</Section>
        <Section id="choices" title="Choices">{choices()}</Section>
        <Section id="faults" title="A form that was refused">{refused()}</Section>
        <Section id="guarded-form" title="A form that is not left by accident"
            hint="With scripts, a link asks first once something was typed.">
            <div data-dirty-guard="">
                <form method="post" action="/gallery">
                    <Field result=result name="guarded" label="Description" required=false />
                </form>
            </div>
            <p><a href="/account">"Go to the account"</a></p>
        </Section>
    }
    .into_any()
}

fn plain() -> AnyView {
    let result = FormResult::sample(None);
    let name = "Mill race".to_owned();
    let read = parse_time(MOMENT).map(|time| view! { <Time iso=time.to_string() /> });
    view! {
        <form action="/gallery">
            <Field result=result name="name" label="Name" hint="What people see." value=name />
            <Field result=result name="slug" label="Short name" pattern="[a-z0-9-]+" inputmode="url"
                placeholder="mill-race" required=false />
            <TextLine result=result name="config[port]" label="Port" kind="number" value="5432" />
            <TextArea result=result name="note" label="Note" hint="For colleagues." rows=3 />
            <TextArea result=result name="query" label="Query" code=true rows=4
                value="SELECT event,\n       count() AS events\nFROM events\nGROUP BY event" />
            <PasswordField result=result autocomplete="off" />
            <SecretField result=result name="config[secret]" label="Secret key" set="2026-08-21T14:05:09Z" />
            <SecretField result=result name="config[key]" label="Access key" hint="Of the account." required=true />
            <MomentField result=result name="start" label="Start" value="2026-08-21T14:05:00Z" />
            <p class="hint">"Read back: " {read}</p>
            <Advanced result=result fields=Vec::new()>
                <TextLine result=result name="zone" label="Time zone" value="UTC" />
            </Advanced>
            <Submit result=result label="Save settings" busy="Saving settings..." />
        </form>
    }
    .into_any()
}

fn choices() -> AnyView {
    let result = FormResult::sample(None);
    let levels = || {
        vec![
            Choice::new("1", "Member").hint("Sees everything, changes what projects hold."),
            Choice::new("8", "Administrator").hint("Changes members and settings too."),
            Choice::new("15", "Owner")
                .hint("Also ends the organization.")
                .disabled("Only owners can make others owners."),
        ]
    };
    view! {
        <form action="/gallery">
            <Select result=result name="place" label="Level" hint="What the person may do." choices=levels()
                value="8" autosubmit=true />
            <RadioCards result=result name="rank" legend="Level of new members" choices=levels() value="1" />
            <Check result=result name="enabled" label="Export every hour" hint="Otherwise once a day." checked=true />
            <Check result=result name="encrypted" label="Encrypt files" disabled="This destination cannot do that." />
        </form>
    }
    .into_any()
}

fn refused() -> AnyView {
    let fault = |attr: &str, detail: &str| {
        FormResult::sample(Some(UiError::field(attr, "invalid_input", detail)))
    };
    let bucket = fault("bucket", "There is no bucket of this name.");
    let fields = vec![("bucket".to_owned(), "Bucket".to_owned())];
    let other = |attr: &str| fault(attr, "This field is required.");
    let choice = vec![Choice::new("hour", "Hour"), Choice::new("day", "Day")];
    let cards = vec![Choice::new("json", "JSON Lines"), Choice::new("parquet", "Parquet")];
    view! {
        <form action="/gallery">
            <Summary result=bucket fields=fields />
            <TextLine result=bucket name="bucket" label="Bucket" hint="As the storage calls it." value="mill" />
            <TextArea result=other("prefix") name="prefix" label="Prefix" rows=2 />
            <Select result=other("every") name="every" label="Every" choices=choice />
            <RadioCards result=other("format") name="format" legend="Format" choices=cards />
            <Check result=other("agreed") name="agreed" label="The bucket is ours" />
            <SecretField result=other("secret") name="secret" label="Secret" />
            <MomentField result=other("end") name="end" label="End" />
        </form>
    }
    .into_any()
}
