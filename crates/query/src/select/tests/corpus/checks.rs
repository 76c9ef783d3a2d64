//! Checks for tests and the fuzz target `select_query` (`fuzz/`): they hold for every text.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{Aggregate, LIMIT_MAX, OFFSET_MAX, QueryError, SQL_MAX, Select, Source, parse_select};

/// Maximum characters of a fault: the query is repeated only in part.
const DETAIL_MAX: usize = 300;

/// A text is a query whose normal form is parsed to the same tree, or it is refused with a
/// position in it. Returns whether it is a query.
pub(crate) fn check_select(text: &str) -> bool {
    let values = BTreeMap::from([
        ("name".to_owned(), json!("it's {filters}")),
        ("number".to_owned(), json!(-5)),
        ("half".to_owned(), json!(0.5)),
    ]);
    match parse_select(text, &values) {
        Ok(select) => {
            assert!(select.limit.is_some_and(|limit| limit <= LIMIT_MAX), "{select:?}");
            check_tree(&select);
            check_normal_form(&select);
            true
        }
        Err(error) => {
            check_fault(text, &error);
            false
        }
    }
}

fn check_fault(text: &str, error: &QueryError) {
    let QueryError { detail, position } = error;
    assert!(!detail.is_empty() && detail.chars().count() <= DETAIL_MAX, "{error}");
    assert!(!detail.contains('\n'), "{error}");
    let line = text.split('\n').nth(position.line - 1).expect("the line is there");
    assert!((1..=line.chars().count() + 1).contains(&position.column), "{error}");
}

fn check_tree(select: &Select) {
    assert!((1..=256).contains(&select.items.len()), "{select:?}");
    assert_eq!(select.kinds().len(), select.items.len());
    for (at, item) in select.items.iter().enumerate() {
        let mut before = select.items.iter().take(at);
        assert!(before.all(|other| other.name != item.name), "{}", item.name);
    }
    assert!(select.groups.len() <= 16 && select.order.len() <= 16, "{select:?}");
    assert!(select.offset <= OFFSET_MAX && select.aggregates.len() <= 64, "{select:?}");
    assert!(select.having.is_none() || select.is_grouped(), "{select:?}");
    for call in &select.aggregates {
        let (least, most) = call.aggregate.arguments();
        assert!((least..=most).contains(&call.arguments.len()), "{call:?}");
        if let Aggregate::Quantile(level) = call.aggregate {
            assert!((0.0..=1.0).contains(&level), "{call:?}");
        }
    }
    assert!(select.sets.iter().all(|set| set.items.len() == 1), "{select:?}");
    select.sets.iter().for_each(check_tree);
    if let Source::Select(inner) = &select.source {
        check_tree(inner);
    }
}

fn check_normal_form(select: &Select) {
    let normal = select.normal_form();
    if normal.chars().count() > SQL_MAX {
        return;
    }
    // The values are a part of it.
    match parse_select(&normal, &BTreeMap::new()) {
        Ok(read) => {
            assert_eq!(&read, select, "{normal}");
            assert_eq!(read.normal_form(), normal);
            assert_eq!(read.kinds(), select.kinds(), "{normal}");
        }
        Err(error) => panic!("{normal}\n{error}"),
    }
}
