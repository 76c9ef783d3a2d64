//! Reading the events of a question with several threads.

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use weir_segments::{Columns, RowGroup};

use crate::batch::{Batch, Place, Reader};
use crate::error::Result;
use crate::plan::Plan;
use crate::run::Run;
use crate::source::{Block, OpenPart, Part, Source};

/// Calls `see` with each batch that has rows of the plan. Each thread has a state of its own;
/// which batches it sees, and in which order, differs from time to time.
pub(crate) fn scan<T: Send>(
    source: &dyn Source,
    run: &Run<'_>,
    plan: &Plan,
    make: impl Fn() -> T + Sync,
    see: impl Fn(&mut T, &mut Batch<'_>) -> Result<()> + Sync,
) -> Result<Vec<T>> {
    let queue = Queue::new(source, plan);
    in_threads(run, || {
        let _stops = StopsOnPanic(&queue);
        let mut state = make();
        let worked = work(source, run, plan, &queue, |batch| see(&mut state, batch));
        if worked.is_err() {
            queue.stop();
        }
        worked.map(|()| state)
    })
}

/// Runs a function in each thread of a question. Of several errors, one is returned.
pub(crate) fn in_threads<T: Send>(
    run: &Run<'_>,
    work: impl Fn() -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if run.threads <= 1 {
        return Ok(vec![work()?]);
    }
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..run.threads).map(|_| scope.spawn(&work)).collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

fn work(
    source: &dyn Source,
    run: &Run<'_>,
    plan: &Plan,
    queue: &Queue<'_>,
    mut see: impl FnMut(&mut Batch<'_>) -> Result<()>,
) -> Result<()> {
    while let Some(work) = queue.next()? {
        run.cancel.check()?;
        let (place, reader) = match &work {
            Work::Group(part, columns, group) => {
                let place = Place {
                    part: *part,
                    last: queue.last(*part),
                    rows: group.rows as usize,
                    times: group.times,
                    arrivals: group.arrivals,
                };
                (place, Reader::Group { columns, reader: columns.group(*group) })
            }
            Work::Block(part, block) => {
                let (times, arrivals) = (block.times(), block.arrivals());
                let place = Place {
                    part: *part,
                    last: queue.last(*part),
                    rows: times.len(),
                    times: bounds(times, (i64::MAX, i64::MIN)),
                    arrivals: bounds(arrivals, (u64::MAX, 0)),
                };
                (place, Reader::Block(&**block))
            }
        };
        if let Some(mut batch) = Batch::read(source, *run, plan, place, reader)? {
            see(&mut batch)?;
        }
    }
    Ok(())
}

fn bounds<T: Copy + Ord>(items: &[T], empty: (T, T)) -> (T, T) {
    items.iter().fold(empty, |(least, most), item| (least.min(*item), most.max(*item)))
}

/// What a thread works on, with the number of its part.
enum Work {
    Group(usize, Columns, RowGroup),
    Block(usize, Arc<dyn Block>),
}

/// Parts and groups of rows that no thread has taken.
struct Queue<'a> {
    source: &'a dyn Source,
    plan: &'a Plan,
    parts: &'a [Part],
    state: Mutex<State>,
    /// A part was opened, or the threads have to end.
    changed: Condvar,
}

/// Ends the other threads, which may wait for a part, when one panics.
struct StopsOnPanic<'a, 'q>(&'q Queue<'a>);

impl Drop for StopsOnPanic<'_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

struct State {
    parts: Range<usize>,
    groups: Vec<Work>,
    /// Threads that are opening a part.
    opening: usize,
    is_stopped: bool,
}

impl<'a> Queue<'a> {
    fn new(source: &'a dyn Source, plan: &'a Plan) -> Self {
        let parts = source.parts();
        let state =
            State { parts: 0..parts.len(), groups: Vec::new(), opening: 0, is_stopped: false };
        Self { source, plan, parts, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.changed.notify_all();
    }

    fn last(&self, part: usize) -> u64 {
        self.parts.get(part).map_or(u64::MAX, |part| part.last)
    }

    fn may_see(&self, part: usize) -> bool {
        self.parts.get(part).is_some_and(|part| self.plan.may_see(part.times))
    }

    /// What is to be done next. `None`: nothing is left.
    fn next(&self) -> Result<Option<Work>> {
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return Ok(None);
            }
            if let Some(group) = state.groups.pop() {
                return Ok(Some(group));
            }
            let part = state.parts.by_ref().find(|part| self.may_see(*part));
            if let Some(part) = part {
                state.opening += 1;
                drop(state);
                let opened = self.source.open(part);
                state = self.state();
                state.opening -= 1;
                match opened {
                    Ok(opened) => state.groups.extend(self.work_of(part, opened)),
                    Err(error) => {
                        drop(state);
                        self.stop();
                        return Err(error.into());
                    }
                }
                self.changed.notify_all();
            } else if state.opening == 0 {
                return Ok(None);
            } else {
                // Another thread may find more groups than it can take.
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    fn work_of(&self, part: usize, opened: OpenPart) -> Vec<Work> {
        match opened {
            OpenPart::Block(block) => vec![Work::Block(part, block)],
            OpenPart::Segment(columns) => {
                let groups = columns.groups().iter().rev();
                let seen = groups.filter(|group| self.plan.may_see(group.times));
                seen.map(|group| Work::Group(part, columns.clone(), *group)).collect()
            }
        }
    }
}
