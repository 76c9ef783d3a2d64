//! Binding values to the names of a statement.
//!
//! What belongs here: the only way to build the variables of a statement. What does not:
//! statements, which are in the module of their resource.

/// The variables of a statement: `bind! { user: user.0, now: now.micros() }`
/// binds `$user` and `$now`.
macro_rules! bind {
    ($($name:ident: $value:expr),* $(,)?) => {
        surrealdb::types::Variables::from_iter([$((
            stringify!($name).to_owned(),
            surrealdb::types::SurrealValue::into_value($value),
        )),*])
    };
}

pub(crate) use bind;
