//! Compiling sources. A source that exceeds the limits of the process ends the process.

use std::io;

use weir_transpile::SourceError;

use super::border::Pipes;
use crate::program::Source;
use crate::wire::{Compile, to_parent};

pub(super) fn compile(border: &Pipes, request: &Compile<'_>) -> io::Result<()> {
    // From here on the parent process takes an end of this process as a fault of the
    // source.
    border.send_empty(to_parent::COMPILING)?;
    let (name, text) = (&request.name, &request.text);
    let reported = |fault: SourceError| fault.to_string();
    match request.kind {
        Source::Server => {
            let made = weir_transpile::server(name, text).map_err(reported);
            border.send(to_parent::COMPILED, &made)
        }
        Source::Frontend => {
            border.send(to_parent::COMPILED, &weir_transpile::frontend(text).map_err(reported))
        }
        Source::Site => {
            border.send(to_parent::COMPILED, &weir_transpile::site(text).map_err(reported))
        }
    }
}
