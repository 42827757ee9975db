use super::*;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age=120\r\n\
    ST: urn:schemas-upnp-org:device:InternetGatewayDevice:1\r\n\
    Location: http://192.168.1.1:5000/rootDesc.xml\r\n\r\n";

const DESCRIPTION: &str = "<?xml version=\"1.0\"?>\n<root xmlns=\"urn:schemas-upnp-org:device-1-0\">\
    <device><serviceList><service>\
    <serviceType>urn:schemas-upnp-org:service:Layer3Forwarding:1</serviceType>\
    <controlURL>/ctl/L3F</controlURL></service></serviceList>\
    <deviceList><device><serviceList><service>\n\
    <serviceType> urn:schemas-upnp-org:service:WANIPConnection:1 </serviceType>\n\
    <serviceId>urn:upnp-org:serviceId:WANIPConn1</serviceId>\n\
    <controlURL>/ctl/IPConn?a=1&amp;b=2</controlURL></service></serviceList></device></deviceList>\
    </device></root>";

fn url(text: &str) -> HttpUrl {
    text.parse().unwrap()
}

#[test]
fn the_service_of_a_gateway_is_found() {
    let from = location(ANSWER.as_bytes()).unwrap();
    assert_eq!(from, url("http://192.168.1.1:5000/rootDesc.xml"));
    let service = service(DESCRIPTION, &from).unwrap();
    assert_eq!(
        service.url,
        url("http://192.168.1.1:5000/ctl/IPConn?a=1&b=2")
    );
    assert_eq!(service.kind, SERVICES[1]);
}

#[test]
fn urls_are_relative_to_the_base_or_to_the_description() {
    let from = url("http://10.0.0.1:80/d/desc.xml");
    let at = |base: &str, control: &str| {
        let description = DESCRIPTION
            .replace("<device>", &format!("{base}<device>"))
            .replace("/ctl/IPConn?a=1&amp;b=2", control);
        service(&description, &from).map(|service| service.url)
    };
    assert_eq!(at("", "ctl"), Some(url("http://10.0.0.1/d/ctl")));
    let base = "<URLBase>http://10.0.0.1:49000/x/</URLBase>";
    assert_eq!(at(base, "ctl"), Some(url("http://10.0.0.1:49000/x/ctl")));
    assert_eq!(
        at(base, "http://10.0.0.1:5/c"),
        Some(url("http://10.0.0.1:5/c"))
    );
    // Another host is not called.
    assert_eq!(at(base, "http://10.0.0.2:5/c"), None);
    assert_eq!(at("<URLBase>http://10.0.0.2/</URLBase>", "ctl"), None);
}

#[test]
fn what_is_no_answer_is_refused() {
    assert_eq!(
        location(b"NOTIFY * HTTP/1.1\r\nLOCATION: http://10.0.0.1/\r\n\r\n"),
        None
    );
    assert_eq!(
        location(b"HTTP/1.1 404 No\r\nLOCATION: http://10.0.0.1/\r\n\r\n"),
        None
    );
    assert_eq!(location(b"HTTP/1.1 200 OK\r\n\r\n"), None);
    assert_eq!(
        location(b"HTTP/1.1 200 OK\r\nLOCATION: https://10.0.0.1/\r\n\r\n"),
        None
    );
}

#[test]
fn calls_name_all_arguments_in_order() {
    let call = Call::Map {
        protocol: Protocol::Tcp,
        port: 6881,
        host: Ipv4Addr::new(192, 168, 1, 7),
        lifetime: 7200,
    };
    assert_eq!(
        call.header(SERVICES[1]),
        "\"urn:schemas-upnp-org:service:WANIPConnection:1#AddPortMapping\""
    );
    let body = call.body(SERVICES[1]);
    let names = [
        "NewRemoteHost",
        "NewExternalPort",
        "NewProtocol",
        "NewInternalPort",
        "NewInternalClient",
        "NewEnabled",
        "NewPortMappingDescription",
        "NewLeaseDuration",
    ];
    let places: Vec<_> = names
        .iter()
        .map(|name| body.find(&format!("<{name}>")))
        .collect();
    assert!(places.is_sorted() && places[0].is_some(), "{body}");
    assert_eq!(
        text_of(&body, "NewInternalClient").as_deref(),
        Some("192.168.1.7")
    );
    assert_eq!(text_of(&body, "NewProtocol").as_deref(), Some("TCP"));
}

#[test]
fn answers_are_read() {
    let answer = "<NewExternalIPAddress>203.0.113.7</NewExternalIPAddress>";
    assert_eq!(address(answer), Some(Ipv4Addr::new(203, 0, 113, 7)));
    assert_eq!(
        address("<NewExternalIPAddress></NewExternalIPAddress>"),
        None
    );
    assert_eq!(
        error_code("<errorCode>725</errorCode>"),
        Some(ONLY_PERMANENT)
    );
    assert_eq!(error_code("<errorCodes>1</errorCodes>"), None);
    assert!(refusal(718).contains("--tcp"));
}

mod fuzz {
    use super::*;

    #[test]
    fn answers_of_gateways() {
        let valid = [ANSWER, DESCRIPTION].map(|text| text.as_bytes().to_vec());
        let from = url("http://192.168.1.1:5000/rootDesc.xml");
        hawser_fuzz::fuzz(&valid, |input| {
            let _ = location(input);
            let text = String::from_utf8_lossy(input);
            if let Some(service) = service(&text, &from) {
                assert_eq!(service.url.host, from.host);
            }
            let _ = (address(&text), error_code(&text));
        });
    }
}
