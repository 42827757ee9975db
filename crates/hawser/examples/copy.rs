//! Copies a file over several paths at once, and continues over the others when one fails.
//!
//! `copy serve FILE` in one AS prints its address and key; `copy get ADDRESS KEY FILE` runs in another.

use std::error::Error;
use std::sync::Arc;

use hawser::{Connection, Host};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, sink};

type AnyError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), AnyError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let host = Host::bootstrap().await?;
    match args[..] {
        ["serve", file] => serve(host, file.into()).await,
        ["get", server, key, file] => {
            let connect = host.connect(server.parse()?).server_key(key.parse()?);
            get(connect.await?, File::create_new(file).await?).await
        }
        _ => Err("copy serve FILE | copy get ADDRESS KEY FILE".into()),
    }
}

async fn serve(host: Host, file: Arc<str>) -> Result<(), AnyError> {
    let mut listener = host.bind().allow_any().await?;
    println!("{} {}", listener.local_addr(), listener.key());
    while let Some(mut connection) = listener.accept().await {
        let file = Arc::clone(&file);
        tokio::spawn(async move {
            let mut file = File::open(&*file).await?;
            connection.write_u64(file.metadata().await?.len()).await?;
            copy(&mut file, &mut connection).await?;
            connection.shutdown().await?;
            // Until the other side has all, and ends.
            copy(&mut connection, &mut sink()).await?;
            connection.close().await?;
            Ok::<_, AnyError>(())
        });
    }
    Ok(())
}

async fn get(mut connection: Connection, mut file: File) -> Result<(), AnyError> {
    let length = connection.read_u64().await?;
    let copied = copy(&mut connection, &mut file).await?;
    file.sync_all().await?;
    if copied != length {
        return Err(format!("{copied} of {length} bytes arrived").into());
    }
    println!("{copied} bytes");
    Ok(connection.close().await?)
}
