//! `hawser demo`: a network, a seeder and downloads in one go.

mod report;
mod scene;

use self::report::{Report, Run};
use self::scene::Act;
pub use self::scene::Scene;
use crate::cli::DemoArgs;
use crate::cmd::{get, torrent};
use crate::failure::{Doing, Failure};
use crate::format;
use crate::out::errln;
use crate::scratch::Scratch;
use crate::stage::content::Content;
use crate::stage::{Bars, Stage, ceiling};

/// Runs the demo and takes everything down, whatever happens.
pub fn run(args: DemoArgs) -> Result<(), Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .doing("starting")?
        .block_on(play(args))
}

async fn play(args: DemoArgs) -> Result<(), Failure> {
    let scene = Scene::of(&args.topology)?;
    let network = scene.network(args.rate.map(|r| r.0))?;
    if args.iperf3 && !scene.has_direct_link(&network) {
        return Err(Failure::usage(format!(
            "--iperf3: {} has no link between seeder and leecher that TCP could be measured over: \
             add --topology fig4",
            scene.topology
        )));
    }
    let folder = Scratch::create()?;
    let content = Content::prepare(
        args.file.as_deref(),
        folder.path(),
        args.size.unwrap_or(scene.default_bytes),
    )?;

    say(&format!(
        "{}: {} from {} to {}",
        scene.topology,
        format::bytes(content.bytes),
        scene.seeder,
        scene.leecher
    ));
    let metainfo = folder.path().join("demo.torrent");
    let bytes = torrent::hashed(&content.path, &Default::default())?;
    std::fs::write(&metainfo, bytes).doing(metainfo.display())?;

    let mut stage = Stage::set(&network, "demo")?;
    say("network up");
    let address = stage
        .seed(scene.seeder, &metainfo, &content.path, &[], false)
        .await?;
    say(&format!("seeding at {address}"));

    let mut report = Report::new(scene.topology, content.bytes);
    for act in scene.acts {
        say(&format!("download: {}", act.label));
        let downloads = tempfile::Builder::new()
            .prefix("get-")
            .tempdir_in(folder.path())
            .doing("making a folder for the download")?;
        let got = stage
            .get(
                scene.leecher,
                &metainfo,
                downloads.path(),
                &address,
                &act.args(),
                Bars::Shown,
            )
            .await?;
        let run = finish(act, &got, &network, &content, downloads.path())?;
        say(&format!("  {}", format::rate(run.goodput_mbit * 1e6)));
        report.add(run);
    }
    if args.iperf3 {
        say("iperf3 TCP over one link");
        report.iperf3_tcp_mbit = Some(stage.iperf3(scene.seeder, scene.leecher).await?);
    }
    stage.clear()?;
    report.show(&scene, args.json)?;
    if report.sha256_ok {
        Ok(())
    } else {
        Err(Failure::job(
            "the downloaded file differs from the seeded one",
        ))
    }
}

fn finish(
    act: &Act,
    got: &get::Report,
    network: &hawser_topology::Network,
    content: &Content,
    downloads: &std::path::Path,
) -> Result<Run, Failure> {
    let costs = got
        .paths
        .iter()
        .map(ceiling::PathCost::of)
        .collect::<Result<Vec<_>, _>>()?;
    let file = downloads.join(&got.name);
    Ok(Run {
        select: act.label.to_owned(),
        seconds: got.seconds,
        goodput_mbit: got.goodput_mbit,
        ceiling_mbit: ceiling::ceiling(network, &costs).map(|c| c / 1e6),
        paths: got.paths.iter().map(report::RunPath::of).collect(),
        sha256_ok: content.matches(&file)?,
    })
}

/// A line on standard error: standard output is the report's.
fn say(text: &str) {
    errln!("{text}");
}
