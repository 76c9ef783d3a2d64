//! Removes from the process what a script could harm others with. It runs once, before
//! the first byte from a pipe is read.
//!
//! This module is the only one with `unsafe`: descriptors without an owner and
//! environment variables cannot be removed, and signals cannot be ignored, in another way.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::wire::Confinement;

/// Writable memory of the child process, without the stack of its first thread: the
/// running runtime may have 64 MiB, loaded ones another 64 MiB, plus frames and memory
/// that the allocator has not returned.
const DATA: u64 = 256 << 20;
/// Address space of the child process. The program is mapped with 150 MB, and writable
/// memory is added to that. Compiling a source takes a hundred times its length and a
/// stack of up to 112 MiB. An allocator that keeps freed ranges (jemalloc) reserves about
/// as much again as it uses.
const ADDRESS_SPACE: u64 = 1 << 30;
/// Maximum descriptors, including the two pipes and their copies.
const DESCRIPTORS: u64 = 16;

/// Confines this process permanently, and reports the parts that failed. The order
/// matters: a step must come before a later step forbids it.
pub(super) fn confine() -> Confinement {
    let mut missing = Vec::new();
    let mut note = |what: &str, outcome: Result<(), String>| {
        if let Err(error) = outcome {
            missing.push(format!("{what}: {error}"));
        }
    };
    clear_environment();
    note("signals", ignore_hangups().map_err(|error| error.to_string()));
    // If memory runs out, the kernel must kill a child process, which can be replaced,
    // and not the service.
    let first = std::fs::write("/proc/self/oom_score_adj", "1000");
    note("out-of-memory score", first.map_err(|error| error.to_string()));
    note("descriptors", close_descriptors().map_err(|error| error.to_string()));
    for (resource, limit) in [
        (Resource::As, ADDRESS_SPACE),
        (Resource::Data, DATA),
        // The stack of the first thread grows up to this size: the compiler needs much of
        // it.
        (Resource::Stack, weir_transpile::STACK as u64),
        (Resource::Nofile, DESCRIPTORS),
        (Resource::Nproc, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
    ] {
        let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
        note("limits", setrlimit(resource, limit).map_err(|error| error.to_string()));
    }
    let landlock = match forbid_files() {
        Ok(RulesetStatus::FullyEnforced) => "full",
        Ok(RulesetStatus::PartiallyEnforced) => "partial",
        Ok(RulesetStatus::NotEnforced) => {
            note("landlock", Err("the kernel has none".to_owned()));
            "none"
        }
        Err(error) => {
            note("landlock", Err(error.to_string()));
            "none"
        }
    };
    let filtered = forbid_calls();
    let seccomp = filtered.is_ok();
    note("seccomp", filtered);
    Confinement {
        seccomp,
        landlock: landlock.to_owned(),
        address_space: rustix::process::getrlimit(Resource::As).current,
        missing,
    }
}

#[expect(unsafe_code, reason = "one thread that is ours exists, and it reads no variable")]
fn clear_environment() {
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in names {
        // SAFETY: nothing else of this process uses the environment at the same time.
        unsafe { std::env::remove_var(name) };
    }
}

/// SIGHUP tells the service to read its settings again. Supervisors may send it to all
/// processes of the service, and it would end this one.
#[expect(unsafe_code, reason = "the standard library cannot ignore a signal")]
fn ignore_hangups() -> io::Result<()> {
    // SAFETY: nothing else of this process sets what this signal does, and no handler runs.
    let before = unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[expect(unsafe_code, reason = "the standard library cannot close what it does not own")]
fn close_descriptors() -> io::Result<()> {
    // SAFETY: the child has opened nothing yet, so no other code owns what is closed.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Forbids all paths and ports, with every rule that the kernel supports.
fn forbid_files() -> Result<RulesetStatus, landlock::RulesetError> {
    let abi = ABI::V6;
    let status = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?
        .restrict_self()?;
    Ok(status.ruleset)
}

/// Allows only computing, allocating memory and using the pipes. All other system calls
/// fail with `EPERM`: no socket, no open, no exec, no new process.
fn forbid_calls() -> Result<(), String> {
    let open = [
        libc::SYS_read,
        libc::SYS_readv,
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_close,
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_clock_getres,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_getpid,
        libc::SYS_gettid,
        libc::SYS_getrusage,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_sched_yield,
        libc::SYS_sched_getaffinity,
        libc::SYS_getcpu,
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ];
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        open.into_iter().map(|call| (call, Vec::new())).collect();
    let error = |error: seccompiler::BackendError| error.to_string();
    // Memory can never be made executable.
    let no_exec = || -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        let execute = u64::from(libc::PROT_EXEC.unsigned_abs());
        Ok(vec![SeccompRule::new(vec![SeccompCondition::new(
            2,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::MaskedEq(execute),
            0,
        )?])?])
    };
    rules.insert(libc::SYS_mmap, no_exec().map_err(error)?);
    rules.insert(libc::SYS_mprotect, no_exec().map_err(error)?);
    // The process may lower its own time limits, which it does with every request, but
    // not limits of other processes.
    let own_limits = || -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
        Ok(vec![SeccompRule::new(vec![SeccompCondition::new(
            0,
            SeccompCmpArgLen::Dword,
            SeccompCmpOp::Eq,
            0,
        )?])?])
    };
    rules.insert(libc::SYS_prlimit64, own_limits().map_err(error)?);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Errno(libc::EPERM.unsigned_abs()),
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into().map_err(error)?,
    )
    .map_err(error)?;
    let program: BpfProgram = filter.try_into().map_err(error)?;
    // All threads, because the allocator may have started one.
    seccompiler::apply_filter_all_threads(&program).map_err(|error| error.to_string())
}

/// Extends the processor time limit, so that the process ends on its own if no parent
/// process can kill it.
pub(super) fn allow_seconds(more: u64) {
    let used = cpu_seconds();
    let limit = Rlimit { current: Some(used.saturating_add(more)), maximum: None };
    // If the kernel refuses, the timer of the parent process remains, which is the actual
    // limit.
    let _ = setrlimit(Resource::Cpu, limit);
}

fn cpu_seconds() -> u64 {
    used(libc::CLOCK_PROCESS_CPUTIME_ID).as_secs()
}

/// The processor time of this thread.
pub(super) fn processor_time() -> Duration {
    used(libc::CLOCK_THREAD_CPUTIME_ID)
}

#[expect(unsafe_code, reason = "no crate in the tree reads these clocks")]
fn used(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    if read == 0 { Duration::new(seconds, nanos) } else { Duration::ZERO }
}

/// Closes a descriptor by its number, owned or not; returns whether it was open. Only for
/// the probe.
#[expect(unsafe_code, reason = "the probe asks about descriptors without an owner")]
pub(super) fn was_open(descriptor: i32) -> bool {
    // SAFETY: the probe names only descriptors that nothing of this process uses.
    let closed = unsafe { libc::close(descriptor) };
    closed == 0
}
