//! The parts of a pod that random expressions read and that random pods have.

/// A part of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Spec,
    Container,
    Port,
    Env,
    Mount,
    Volume,
    PullSecret,
    Toleration,
    SecurityContext,
    PodSecurityContext,
    HostAlias,
    Text,
    Number,
}

/// A field, and whether every object of its kind has it.
pub(crate) type Field = (&'static str, bool);

impl Kind {
    /// Its fields that are texts.
    pub(crate) fn texts(self) -> &'static [Field] {
        match self {
            Self::Spec => {
                &[("serviceAccountName", false), ("nodeName", false), ("priorityClassName", false), ("hostname", false)]
            }
            Self::Container => &[("name", true), ("image", false), ("workingDir", false), ("imagePullPolicy", false)],
            Self::Port => &[("name", false), ("protocol", false), ("hostIP", false)],
            Self::Env => &[("name", true), ("value", false)],
            Self::Mount => &[("name", true), ("mountPath", true), ("subPath", false), ("mountPropagation", false)],
            Self::Volume => &[("name", true)],
            Self::PullSecret => &[("name", false)],
            Self::Toleration => &[("key", false), ("operator", false), ("value", false), ("effect", false)],
            Self::SecurityContext => &[("procMount", false)],
            Self::PodSecurityContext => &[("fsGroupChangePolicy", false)],
            Self::HostAlias => &[("ip", true)],
            Self::Text | Self::Number => &[],
        }
    }

    /// Its optional fields that are true or false.
    pub(crate) fn booleans(self) -> &'static [&'static str] {
        match self {
            Self::Spec => &["hostNetwork", "hostPID", "shareProcessNamespace", "hostUsers"],
            Self::Container => &["stdin", "tty"],
            Self::Mount => &["readOnly"],
            Self::SecurityContext => &["privileged", "runAsNonRoot", "allowPrivilegeEscalation"],
            Self::PodSecurityContext => &["runAsNonRoot"],
            _ => &[],
        }
    }

    /// Its fields that are numbers.
    pub(crate) fn numbers(self) -> &'static [Field] {
        match self {
            Self::Spec => &[("priority", false), ("activeDeadlineSeconds", false)],
            Self::Port => &[("containerPort", true), ("hostPort", false)],
            Self::SecurityContext => &[("runAsUser", false), ("runAsGroup", false)],
            Self::PodSecurityContext => &[("runAsUser", false), ("fsGroup", false)],
            Self::Toleration => &[("tolerationSeconds", false)],
            _ => &[],
        }
    }

    /// Its fields that are lists: name, kind of the elements, and whether every object has it.
    pub(crate) fn lists(self) -> &'static [(&'static str, Self, bool)] {
        match self {
            Self::Spec => &[
                ("containers", Self::Container, true),
                ("initContainers", Self::Container, false),
                ("ephemeralContainers", Self::Container, false),
                ("volumes", Self::Volume, false),
                ("imagePullSecrets", Self::PullSecret, false),
                ("tolerations", Self::Toleration, false),
                ("hostAliases", Self::HostAlias, false),
            ],
            Self::Container => &[
                ("ports", Self::Port, false),
                ("env", Self::Env, false),
                ("volumeMounts", Self::Mount, false),
                ("command", Self::Text, false),
                ("args", Self::Text, false),
            ],
            Self::HostAlias => &[("hostnames", Self::Text, false)],
            Self::PodSecurityContext => &[("supplementalGroups", Self::Number, false)],
            _ => &[],
        }
    }

    /// Its optional field that is an object.
    pub(crate) fn object(self) -> Option<(&'static str, Self)> {
        match self {
            Self::Spec => Some(("securityContext", Self::PodSecurityContext)),
            Self::Container => Some(("securityContext", Self::SecurityContext)),
            _ => None,
        }
    }
}

/// Texts that fields have and that expressions compare them with.
pub(crate) const TEXTS: [&str; 12] = ["a", "b", "ab", "a/b", "/a", "/a/", "/", "", "x", "UDP", "/a/../b", "A"];
