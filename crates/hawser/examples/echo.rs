//! Sends lines to an echo server over two paths, and tells what happens to the paths.
//!
//! `echo serve` in one AS prints its address and key; `echo to ADDRESS KEY` runs in another. Take a link
//! down meanwhile: nothing is lost.

use std::error::Error;
use std::time::Duration;

use hawser::{Connection, Host};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let host = Host::bootstrap().await?;
    match args[..] {
        ["serve"] => serve(host).await,
        ["to", server, key] => {
            let connect = host.connect(server.parse()?).server_key(key.parse()?);
            send(connect.paths(2).await?).await
        }
        _ => Err("echo serve | echo to ADDRESS KEY".into()),
    }
}

async fn serve(host: Host) -> Result<(), AnyError> {
    let mut listener = host.bind().allow_any().await?;
    println!("{} {}", listener.local_addr(), listener.key());
    while let Some(connection) = listener.accept().await {
        tokio::spawn(async move {
            let (mut read, mut write) = connection.clone().split();
            tokio::io::copy(&mut read, &mut write).await?;
            connection.close().await?;
            Ok::<_, AnyError>(())
        });
    }
    Ok(())
}

async fn send(mut connection: Connection) -> Result<(), AnyError> {
    let mut events = connection.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            println!("{event}");
        }
    });
    for number in 1..=100_u32 {
        connection.write_u32(number).await?;
        assert_eq!(connection.read_u32().await?, number);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    println!("100 numbers came back in order");
    Ok(connection.close().await?)
}
