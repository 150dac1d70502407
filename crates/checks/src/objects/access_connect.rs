//! # accessConnect
//!
//! `kubectl exec`, `attach` and `port-forward` connect to a pod that is already running, and the proxies of pods and
//! Services send requests to them through the API server. A user with such a connection has the permissions, Secrets and
//! network of the pod, and no check of pods evaluates what the user does there.
//!
//! Each entry of `allowedConnections` allows connections to some resources, for all users or for groups:
//!
//! - `commands`, with `pods/exec`: the command must begin with these words. A shell, an interpreter, or a program that
//!   starts others allows everything. `pods/attach` has no command: the user gets the process that is running.
//! - `ports`, with `pods/proxy` and `services/proxy`: the port in the path of the request, a number or a name. `''` is a
//!   request without a port. The owner of a Service decides which port of the pods its port is.
//!
//! Port forwarding cannot be limited to ports. The client names a port for each stream, after the connection was admitted;
//! `ports` in the request can be omitted, and the kubelet does not compare them with SPDY streams.
//!
//! All methods connect: `kubectl exec` sends GET for a WebSocket and POST for SPDY. Connections are evaluated when they are
//! opened. The check does not end open connections. The control plane opens none of them, so no user is exempt.
//! `nodes/proxy` is not in a namespace: restrict it with RBAC.
//!
//! ## If your object was denied
//!
//! Use a command or a port that the message lists, or request membership in a group that it lists.

use super::kinds::{POD_ATTACH, POD_EXEC, POD_PORT_FORWARD, POD_PROXY, SERVICE_PROXY};
use crate::{
    Diagnostic, Lowering, Meaning, ObjectCheck, ObjectResource, ObjectRule, Text,
    settings::{AllowedConnection, ConnectionResource},
};

/// The resources, each with the kind of its options.
const RESOURCES: [(ConnectionResource, &[ObjectResource]); 5] = [
    (ConnectionResource::Exec, &[POD_EXEC]),
    (ConnectionResource::Attach, &[POD_ATTACH]),
    (ConnectionResource::PortForward, &[POD_PORT_FORWARD]),
    (ConnectionResource::PodProxy, &[POD_PROXY]),
    (ConnectionResource::ServiceProxy, &[SERVICE_PROXY]),
];
/// The API server writes an unset command as null.
const COMMAND: &str = "dyn(variables.object.?command.orValue(null) == null ? [] : variables.object.command)";
/// The most words of a command that are evaluated.
const MOST: usize = 256;
/// The words of the command, each with a space after it. A space in a word is replaced: it does not end a word.
const WORDS: &str = "(dyn(variables.object.?command.orValue(null) == null ? [] : variables.object.command)\
                     .map(w, string(w).replace(' ', '\\u0001')).join(' ') + ' ')";
/// The port in `name`, `name:port` or `scheme:name:port` (`SplitSchemeNamePort` in apimachinery `pkg/util/net`). With more
/// colons, the API server connects to nothing.
const PORT: &str = "[request.?name.orValue('').split(':')].map(n, n.size() > 1 ? n[n.size() - 1] : '')[0]";

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "accessConnect",
    title: "Connections to pods and Services",
    settings: &["access.allowedConnections"],
    kinds: &[POD_EXEC, POD_ATTACH, POD_PORT_FORWARD, POD_PROXY, SERVICE_PROXY],
    fields: &["command", "request.name", "request.userInfo.groups"],
    exempt: None,
    fixtures: include_str!("access_connect.yaml"),
    compile: |settings, cx| {
        let entries = settings.access.allowed_connections.as_ref()?;
        let entries: Vec<_> = entries.iter().enumerate().map(|(index, one)| Entry::new(index, one, cx)).collect();
        let mut rule = ObjectRule::default();
        for (resource, of) in RESOURCES {
            let some: Vec<_> = entries.iter().filter(|entry| entry.resources.contains(&resource)).collect();
            if some.iter().any(|entry| entry.conditions.is_empty()) {
                continue;
            }
            let conditions: Vec<_> = some.iter().map(|entry| format!("({})", entry.conditions.join(" && "))).collect();
            let has_commands = some.iter().any(|entry| entry.has_commands);
            if has_commands {
                rule.limit(of, "command", COMMAND, MOST);
            }
            let name: &str = resource.into();
            let found = match resource {
                ConnectionResource::Exec if has_commands => {
                    format!("' with the command: ' + {COMMAND}.map(w, string(w)).join(' ') + '")
                }
                _ if some.iter().any(|entry| entry.has_ports) => format!("' to the port: ' + {PORT} + '"),
                _ => "'".to_owned(),
            };
            let allowed: Vec<_> = some.iter().map(|entry| entry.says.join(" + ' with ' + ")).collect();
            let allowed = if allowed.is_empty() { "'none'".to_owned() } else { allowed.join(" + '; ' + ") };
            let violated =
                if conditions.is_empty() { "true".to_owned() } else { format!("!({})", conditions.join(" || ")) };
            rule.finding(of, violated, format!("'forbidden connection to {name}' + {found}, allowed: ' + {allowed}"));
        }
        rule.unless_empty()
    },
};

/// An entry of the setting.
struct Entry<'a> {
    resources: &'a [ConnectionResource],
    /// CEL of type bool that all hold for an allowed connection.
    conditions: Vec<String>,
    /// CEL of type string that describes each.
    says: Vec<String>,
    has_commands: bool,
    has_ports: bool,
}

impl<'a> Entry<'a> {
    fn new(index: usize, entry: &'a AllowedConnection, cx: &mut Lowering<'_>) -> Self {
        let AllowedConnection { resources, groups, commands, ports } = entry;
        let path = format!("spec.access.allowedConnections[{index}]");
        let (mut conditions, mut says) = (Vec::new(), Vec::new());
        if let Some(groups) = groups {
            let allowed = cx.texts(&format!("{path}.groups"), groups, Meaning::Word);
            conditions.push(format!("request.userInfo.?groups.orValue([]).exists(g, g in {})", allowed.cel()));
            says.push(format!("'groups ' + {}", allowed.says()));
        }
        if let Some(commands) = commands {
            let path = format!("{path}.commands");
            well_formed(&path, resources, &[ConnectionResource::Exec], "pods/exec", cx);
            for (index, Text(command)) in commands.iter().enumerate() {
                if command.split(' ').any(str::is_empty) {
                    let message = format!("{command:?} has spaces at its beginning or end, or two in a row");
                    let one = Diagnostic::new(format!("{path}[{index}]"), message);
                    cx.report(one.help("write words with single spaces between them"));
                }
            }
            let allowed = cx.texts(&path, commands, Meaning::Word);
            conditions
                .push(format!("[{WORDS}].exists(c, {}.exists(a, a != '' && c.startsWith(a + ' ')))", allowed.cel()));
            says.push(format!("'commands ' + {}", allowed.says()));
        }
        if let Some(ports) = ports {
            let path = format!("{path}.ports");
            let proxies = [ConnectionResource::PodProxy, ConnectionResource::ServiceProxy];
            well_formed(&path, resources, &proxies, "pods/proxy and services/proxy", cx);
            let allowed = cx.texts(&path, ports, Meaning::Word);
            conditions.push(format!("{PORT} in {}", allowed.cel()));
            says.push(format!("'ports ' + {}", allowed.says_unset()));
        }
        Self { resources, conditions, says, has_commands: commands.is_some(), has_ports: ports.is_some() }
    }
}

/// Reports a field that has no effect with one of the resources.
fn well_formed(
    path: &str,
    found: &[ConnectionResource],
    allowed: &[ConnectionResource],
    named: &str,
    cx: &mut Lowering<'_>,
) {
    if found.iter().any(|one| !allowed.contains(one)) {
        let message = format!("is only allowed with {named}");
        cx.report(Diagnostic::new(path, message).help("write a separate entry for the other resources"));
    }
}
