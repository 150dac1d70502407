//! The same hostile pod in other bytes: what one reader of a body sees and another does not.

use serde_json::{Value as Json, json};

use crate::{
    Result,
    arena::Arena,
    pods::{complying, hostile},
    table::{Attack, Expect, Tally, make},
    wire::{JSON, Request, pods, send},
};

const YAML: &str = "application/yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Bodies and types of content.
pub(crate) async fn bodies(arena: &mut Arena) -> Result<Tally> {
    let test = "red-bodies";
    let namespace = arena.stage(test, |_| ()).await?;
    let mut attacks = json_bodies(&namespace);
    attacks.extend(yaml_bodies(&namespace));
    attacks.extend(protobuf(arena, &namespace).await?);
    let tally = make(&arena.tenant, attacks).await;
    arena.delete_profile(test).await?;
    Ok(tally)
}

fn raw(namespace: &str, content: &'static str, body: impl Into<Vec<u8>>) -> Request {
    Request::raw("POST", format!("{}?dryRun=All", pods(namespace)), content, body.into())
}

/// What must not come of it: a pod that is admitted and has this.
fn no_pid() -> Expect {
    Expect::Ineffective("/spec/hostPID", Json::Null)
}

fn denied() -> Expect {
    Expect::check("hostNamespaces")
}

fn json_bodies(namespace: &str) -> Vec<Attack> {
    let (good, bad) = (complying("x").to_string(), hostile("x").to_string());
    // The text of an object with something right after the brace that opens its spec, or before its end.
    let first = |insert: &str| good.replacen("\"spec\":{", &format!("\"spec\":{{{insert},"), 1);
    let last = |insert: &str| {
        let end = good.rfind("}}").unwrap_or_default();
        format!("{},{insert}{}", &good[..end], &good[end..])
    };
    let outer = |insert: &str| format!("{},{insert}}}", &good[..good.len() - 1]);
    let pid = "\"hostPID\":true";
    let nested = |depth: usize| {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        first(&format!("{pid},\"x\":{deep}"))
    };
    let bodies: Vec<(&str, Vec<u8>, Expect)> = vec![
        ("as it is", bad.clone().into(), denied()),
        ("with blanks around", format!(" \n\t{bad}\r\n ").into(), denied()),
        ("a duplicate key, true first", first(&format!("{pid},\"hostPID\":false")).into(), no_pid()),
        ("a duplicate key, true last", first(&format!("\"hostPID\":false,{pid}")).into(), denied()),
        ("a duplicate key, null last", first(&format!("{pid},\"hostPID\":null")).into(), no_pid()),
        ("true, far from the other", last(pid).into(), denied()),
        ("a second spec with it alone", outer(&format!("\"spec\":{{{pid}}}")).into(), no_pid()),
        ("a first spec with it alone", good.replacen('{', &format!("{{\"spec\":{{{pid}}},"), 1).into(), no_pid()),
        ("escaped letters", first("\"host\\u0050ID\":true").into(), denied()),
        ("other letters, hostPid", first("\"hostPid\":true").into(), no_pid()),
        ("other letters, HOSTPID", first("\"HOSTPID\":true").into(), no_pid()),
        ("other letters, HostPID", first("\"HostPID\":true").into(), no_pid()),
        ("a key of the wire format", first("\"HostPID\":true,\"host_pid\":true").into(), no_pid()),
        ("letters that fold, ſpec", outer(&format!("\"\u{17f}pec\":{{{pid}}}")).into(), no_pid()),
        ("SPEC", outer(&format!("\"SPEC\":{{{pid}}}")).into(), no_pid()),
        ("beside the spec", outer(pid).into(), no_pid()),
        ("in the status", outer(&format!("\"status\":{{{pid}}}")).into(), no_pid()),
        ("securityContext of old", first("\"securityContext\":{\"hostPID\":true}").into(), no_pid()),
        ("a truth in a text", first("\"hostPID\":\"true\"").into(), Expect::Refused),
        ("a truth as a number", first("\"hostPID\":1").into(), Expect::Refused),
        ("a truth as True", first("\"hostPID\":True").into(), Expect::Refused),
        ("a truth in a list", first("\"hostPID\":[true]").into(), Expect::Refused),
        ("a comment", first(&format!("/*{pid}*/\"a\":1")).into(), Expect::Refused),
        ("two objects, the second hostile", format!("{good}{bad}").into(), Expect::Stopped),
        ("two objects, the first hostile", format!("{bad}{good}").into(), Expect::Stopped),
        ("garbage behind", format!("{bad}garbage").into(), Expect::Stopped),
        ("a byte order mark", format!("\u{feff}{bad}").into(), Expect::Stopped),
        ("a NUL behind", format!("{bad}\0").into(), Expect::Stopped),
        ("UTF-16", bad.encode_utf16().flat_map(u16::to_le_bytes).collect(), Expect::Refused),
        ("bytes that are no UTF-8", [first(pid).as_bytes(), b"\xff\xfe"].concat(), Expect::Stopped),
        ("nested deeply", nested(5000).into(), Expect::Stopped),
        ("nested too deeply", nested(200_000).into(), Expect::Stopped),
        ("nothing", vec![], Expect::Refused),
        ("null", b"null".to_vec(), Expect::Refused),
        ("a list of pods", format!("[{bad}]").into(), Expect::Refused),
        (
            "a PodList",
            json!({"apiVersion": "v1", "kind": "PodList", "items": [hostile("x")]}).to_string().into(),
            Expect::Refused,
        ),
        ("no kind", bad.replace("\"kind\":\"Pod\",", "").into(), denied()),
        ("no version", bad.replace("\"apiVersion\":\"v1\",", "").into(), denied()),
        ("kind pod", bad.replace("\"Pod\"", "\"pod\"").into(), Expect::Refused),
        ("kind PodTemplate", bad.replace("\"Pod\"", "\"PodTemplate\"").into(), Expect::Refused),
        ("version core/v1", bad.replace("\"v1\"", "\"core/v1\"").into(), Expect::Refused),
        ("version v1beta3", bad.replace("\"v1\"", "\"v1beta3\"").into(), Expect::Refused),
    ];
    let mut attacks: Vec<Attack> = bodies
        .into_iter()
        .map(|(name, body, expect)| Attack::new(format!("JSON, {name}"), raw(namespace, JSON, body), expect))
        .collect();
    for (content, expect) in [
        ("application/json; charset=utf-8", denied()),
        ("application/json;version=v1", denied()),
        ("Application/JSON", Expect::Stopped),
        ("application/json; charset=utf-16", Expect::Stopped),
        ("text/plain", Expect::Refused),
        ("application/x-www-form-urlencoded", Expect::Refused),
        ("application/cbor", Expect::Refused),
        ("application/json-patch+json", Expect::Refused),
        ("application/apply-patch+yaml", Expect::Refused),
        (YAML, denied()),
        (PROTOBUF, Expect::Refused),
    ] {
        attacks.push(Attack::new(format!("JSON as {content}"), raw(namespace, content, bad.clone()), expect));
    }
    attacks
}

fn yaml_bodies(namespace: &str) -> Vec<Attack> {
    // A flow mapping of JSON is YAML, so that only what is of interest needs to be written.
    let good = complying("x");
    let (context, containers) = (&good["spec"]["securityContext"], &good["spec"]["containers"]);
    let pod = |spec: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  automountServiceAccountToken: false\n  \
             securityContext: {context}\n  containers: {containers}\n{spec}"
        )
    };
    let anchored = format!(
        "x: &x\n  hostPID: true\napiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  <<: *x\n  \
         automountServiceAccountToken: false\n  securityContext: {context}\n  containers: {containers}\n"
    );
    [
        ("as it is", pod("  hostPID: true\n"), denied()),
        ("that complies", pod(""), Expect::Admitted),
        ("quoted key", pod("  \"hostPID\": true\n"), denied()),
        ("escaped key", pod("  \"host\\x50ID\": true\n"), denied()),
        ("yes", pod("  hostPID: yes\n"), Expect::Stopped),
        ("on", pod("  hostPID: on\n"), Expect::Stopped),
        ("TRUE", pod("  hostPID: TRUE\n"), Expect::Stopped),
        ("a tag of booleans", pod("  hostPID: !!bool \"true\"\n"), Expect::Stopped),
        ("a tag of texts", pod("  hostPID: !!str true\n"), Expect::Stopped),
        ("a duplicate key, true first", pod("  hostPID: true\n  hostPID: false\n"), no_pid()),
        ("a duplicate key, true last", pod("  hostPID: false\n  hostPID: true\n"), Expect::Stopped),
        ("a merged anchor", anchored, Expect::Stopped),
        ("a second document", format!("{}---\n{}", pod(""), pod("  hostPID: true\n")), no_pid()),
        ("a first document", format!("{}---\n{}", pod("  hostPID: true\n"), pod("")), no_pid()),
        ("another key", pod("  ? hostPID\n  : true\n"), Expect::Stopped),
    ]
    .map(|(name, body, expect)| Attack::new(format!("YAML, {name}"), raw(namespace, YAML, body), expect))
    .to_vec()
}

/// Protobuf, as the API server itself writes the pod in a namespace that no profile selects and whose name is as long.
async fn protobuf(arena: &Arena, namespace: &str) -> Result<Vec<Attack>> {
    let free = "red-bodies-free";
    assert_eq!(free.len(), namespace.len(), "the names are exchanged in the bytes");
    arena.cluster.create_namespace(free, &json!({}), &json!({})).await?;
    arena.admit_tenant(free).await?;
    arena.admitted(free, &hostile("first")).await?;
    let mut attacks = vec![];
    for (name, pod, expect) in
        [("hostile", hostile("x"), denied()), ("that complies", complying("x"), Expect::Admitted)]
    {
        let mut request = Request::pod(free, &pod);
        request.accept = PROTOBUF;
        let written = send(arena.admin(), &request).await;
        let mut bytes = written.bytes.clone();
        if !bytes.starts_with(b"k8s\0") {
            return Err(format!("no protobuf: {}", written.short()).into());
        }
        for at in 0..bytes.len().saturating_sub(free.len()) {
            if bytes[at..].starts_with(free.as_bytes()) {
                bytes[at..at + free.len()].copy_from_slice(namespace.as_bytes());
            }
        }
        attacks.push(Attack::new(format!("protobuf, {name}"), raw(namespace, PROTOBUF, bytes.clone()), expect));
        attacks.push(Attack::new(
            format!("protobuf as JSON, {name}"),
            raw(namespace, JSON, bytes.clone()),
            Expect::Refused,
        ));
        bytes.truncate(bytes.len() / 2);
        attacks.push(Attack::new(
            format!("half of protobuf, {name}"),
            raw(namespace, PROTOBUF, bytes),
            Expect::Stopped,
        ));
    }
    Ok(attacks)
}
