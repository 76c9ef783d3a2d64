//! The data of the pages that were shown last, for going back. Every change that a form
//! makes empties it.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::ui::page_data::PageData;

/// Number of pages that are kept.
const PAGES: usize = 20;

thread_local! {
    /// Address and data, newest first.
    static KEPT: RefCell<VecDeque<(String, PageData)>> = const { RefCell::new(VecDeque::new()) };
}

/// The data of the page at an address, if it was shown before.
pub(crate) fn get(address: &str) -> Option<PageData> {
    KEPT.with_borrow(|kept| kept.iter().find(|(of, _)| of == address).map(|(_, data)| data.clone()))
}

/// Keeps the data of the page at an address.
pub(crate) fn put(address: String, data: PageData) {
    KEPT.with_borrow_mut(|kept| {
        kept.retain(|(of, _)| *of != address);
        kept.push_front((address, data));
        kept.truncate(PAGES);
    });
}

/// Forgets all data, also that on its way.
pub(crate) fn clear() {
    KEPT.with_borrow_mut(VecDeque::clear);
    super::ahead::clear();
}
