//! Expressions about groups: a part that equals an expression of GROUP BY becomes a reference
//! to it, and no other field or column may be left.

use super::clauses::Clause;
use super::tree::Select;
use crate::tree::Expression;

impl Select {
    /// Lets the expressions of the result, HAVING and ORDER BY refer to groups, if there are
    /// any. Returns the first field, column or property that has no single value for a group.
    pub(super) fn group(&mut self) -> Option<(Clause, Expression)> {
        if !self.is_grouped() {
            return None;
        }
        let groups = &self.groups;
        let key = |expression: &Expression| match expression {
            // A constant needs no group.
            Expression::Literal(_) => None,
            other => groups.iter().position(|group| group == other).map(Expression::Key),
        };
        for (at, item) in self.items.iter_mut().enumerate() {
            item.expression.replace(&key);
            if let Some(column) = ungrouped(&item.expression) {
                return Some((Clause::Item(at), column.clone()));
            }
        }
        if let Some(having) = &mut self.having {
            having.replace(&key);
            if let Some(column) = ungrouped(having) {
                return Some((Clause::Having, column.clone()));
            }
        }
        for (at, order) in self.order.iter_mut().enumerate() {
            order.expression.replace(&key);
            if let Some(column) = ungrouped(&order.expression) {
                return Some((Clause::Order(at), column.clone()));
            }
        }
        None
    }
}

/// The first field, column or property in an expression about a group.
fn ungrouped(expression: &Expression) -> Option<&Expression> {
    match expression {
        Expression::Field(_)
        | Expression::Property(..)
        | Expression::Column(_)
        | Expression::ColumnProperty(..) => Some(expression),
        other => other.children().into_iter().find_map(ungrouped),
    }
}
