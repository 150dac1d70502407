//! Random settings of `access` that are more than a flag or a list of texts.

use palisade_api::settings::{Access, AllowedConnection, ConnectionResource};
use palisade_checks::{Integer, Text};
use proptest::{option, prelude::*, sample};

use super::settings::{Pool, maybe};

pub(crate) const GROUPS: Pool = &["oncall", "system:authenticated", "$text", "$texts"];
pub(crate) const COMMANDS: Pool = &["ps", "cat /proc/1/status", "ls $text", "$texts"];
pub(crate) const PORTS: Pool = &["", "8080", "http", "$text"];

fn elements(pool: Pool) -> impl Strategy<Value = Option<Vec<Text>>> {
    let some = sample::subsequence(pool, 1..=pool.len());
    option::of(some.prop_map(|found| found.into_iter().map(Text::from).collect()))
}

/// Connections: each form that the CRD accepts.
pub(crate) fn connection() -> impl Strategy<Value = AllowedConnection> {
    use ConnectionResource::{Attach, Exec, PodProxy, PortForward, ServiceProxy};
    let kinds = sample::select(vec![
        vec![Exec],
        vec![Exec, Attach, PortForward],
        vec![PodProxy, ServiceProxy],
        vec![Exec, ServiceProxy],
        vec![Attach],
    ]);
    let lists = (elements(GROUPS), elements(COMMANDS), elements(PORTS));
    (kinds, lists).prop_map(|(resources, (groups, commands, ports))| AllowedConnection {
        commands: commands.filter(|_| resources == [Exec]),
        ports: ports.filter(|_| resources == [PodProxy, ServiceProxy]),
        groups,
        resources,
    })
}

prop_compose! {
    pub(crate) fn access()(
        max_token_expiration_seconds in maybe(sample::select(vec![600, 3600, 86400])),
        allowed_connections in maybe(prop::collection::vec(connection(), 0..4)),
    ) -> Access {
        Access {
            max_token_expiration_seconds: max_token_expiration_seconds.map(Integer::from),
            allowed_connections,
            ..Access::default()
        }
    }
}
