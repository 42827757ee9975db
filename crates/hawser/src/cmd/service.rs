//! The services of an AS, and the processes that hawser starts for itself.

mod startup;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::time::Duration;

use hawser_control::Control;
use hawser_endhost::responder;
use hawser_router::Router;
use hawser_topology::{AsDir, AsTopology};

use super::{files, process};
use crate::cli::{
    ControlArgs, ControlCommand, InternalArgs, InternalCommand, RouterArgs, RouterCommand,
};
use crate::failure::{Doing, Failure};
use crate::out::errln;

/// Runs `hawser router run`.
pub fn router(args: RouterArgs) -> Result<(), Failure> {
    let RouterCommand::Run { dir, id } = args.command;
    files::check_input(&dir)?;
    let router = Router::open(&AsDir::new(dir), id.as_deref()).map_err(Failure::job)?;
    startup::forget();
    router.run().map_err(Failure::job)
}

/// Runs `hawser control run`.
pub fn control(args: ControlArgs) -> Result<(), Failure> {
    let ControlCommand::Run {
        dir,
        no_echo,
        segment_lifetime,
    } = args.command;
    files::check_input(&dir)?;
    let dir = AsDir::new(dir);
    let host = any_host(&dir.topology().map_err(Failure::job)?);
    // One thread: a lab runs one of these for every AS.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("starting")?;
    runtime.block_on(async {
        let stop = async {
            if let Err(failure) = process::interrupted().await {
                tracing::error!("{failure}");
            }
        };
        let control = Control::bind(&dir, segment_lifetime).await;
        let control = control.map_err(Failure::job)?;
        startup::forget();
        let served = control.run(stop);
        if no_echo {
            return served.await.map_err(Failure::job);
        }
        // The data plane fixes the port: routers deliver echoes there.
        let echoes = responder::run((host, responder::PORT).into());
        tokio::select! {
            ended = served => ended.map_err(Failure::job),
            Err(error) = echoes => Err(Failure::job(format!(
                "{error}: if another program answers echoes here, give --no-echo"
            ))),
        }
    })
}

/// Any address of the family that the AS speaks: hosts get their packets from its border routers.
fn any_host(topology: &AsTopology) -> IpAddr {
    let mut routers = topology.border_routers.values();
    match routers.any(|router| router.internal_addr.is_ipv6()) {
        // Takes IPv4 too, where the system does not say otherwise.
        true => Ipv6Addr::UNSPECIFIED.into(),
        false => Ipv4Addr::UNSPECIFIED.into(),
    }
}

/// Runs `hawser internal`.
pub fn internal(args: InternalArgs) -> ExitCode {
    match args.command {
        InternalCommand::LabSupervisor { dir } => {
            let code = hawser_lab::supervise(&dir);
            // The folders of the session that the lab ended with, if it was killed.
            hawser_experiments::sweep();
            code
        }
        InternalCommand::CrossTraffic {
            from,
            to,
            rate,
            millis,
        } => {
            let time = Duration::from_millis(millis);
            match hawser_experiments::send_cross_traffic(from, to, rate, time) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    errln!("hawser: {error}");
                    ExitCode::FAILURE
                }
            }
        }
    }
}
