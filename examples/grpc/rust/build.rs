use std::{error::Error, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

/// Generates the client from the contract's descriptor set, which does not need protoc.
fn main() -> Result<(), Box<dyn Error>> {
    let path = "../../../.generated/lead-intake-proto/lead-intake.binpb";
    println!("cargo::rerun-if-changed={path}");
    let contract = FileDescriptorSet::decode(fs::read(path)?.as_slice())?;
    tonic_prost_build::configure()
        .build_server(false)
        .extern_path(".google.rpc", "::tonic_types::pb")
        .compile_fds(contract)?;
    Ok(())
}
