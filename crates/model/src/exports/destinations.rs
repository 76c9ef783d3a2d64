//! The types of destinations and their settings (EXP-1): one list for the API, for forms
//! and for delivery.
//!
//! What belongs here: data. What does not: checking settings ([`config`](super::config)).

/// A type of destination.
#[derive(Debug, PartialEq)]
pub struct DestinationType {
    /// The name on the wire.
    pub name: &'static str,
    /// The display name.
    pub label: &'static str,
    /// Its settings, in the order in which forms ask for them.
    pub fields: &'static [Field],
}

/// A setting of a destination.
#[derive(Debug, PartialEq)]
pub struct Field {
    /// The key in the config.
    pub name: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// Whether it is required.
    pub need: Need,
    /// Whether it is a secret: sealed at rest and never returned.
    pub is_secret: bool,
    /// Whether it names the user or the address: if it changes, all secrets must be sent
    /// again, so that none is sent to another host.
    pub is_address: bool,
}

/// The type of a setting.
#[derive(Debug, PartialEq)]
pub enum Kind {
    /// A text with a maximum length.
    Text {
        /// Maximum characters.
        max: usize,
        /// Whether it may be empty.
        may_be_empty: bool,
    },
    /// A name of a schema or a table: letters, digits and `_`, not beginning with a
    /// digit.
    Identifier,
    /// A URL that begins with `http://` or `https://`.
    Url,
    /// A host name or an IP address, without a port.
    Host,
    /// A part of a host name: letters, digits, `-`, `.` and `_`.
    HostPart,
    /// An integer within bounds.
    Integer {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
    /// True or false.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
    /// Nested settings.
    Object(&'static [Field]),
    /// A text, or nested settings.
    TextOrObject(&'static [Field]),
}

/// Whether a setting is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// It is required.
    Required,
    /// It may be missing or null.
    Nullable,
    /// The default value as JSON, if it is missing.
    Default(&'static str),
}

const TEXT: Kind = Kind::Text { max: 1000, may_be_empty: false };
/// Keys and connection strings.
const LONG: Kind = Kind::Text { max: 20_000, may_be_empty: false };
const MAY_BE_EMPTY: Kind = Kind::Text { max: 1000, may_be_empty: true };
const PORT: Kind = Kind::Integer { min: 1, max: 65_535 };
const FILE_SIZE: Kind = Kind::Integer { min: 0, max: 1_000_000 };

const fn field(name: &'static str, kind: Kind, need: Need) -> Field {
    Field { name, kind, need, is_secret: false, is_address: false }
}

const fn required(name: &'static str, kind: Kind) -> Field {
    field(name, kind, Need::Required)
}

const fn nullable(name: &'static str, kind: Kind) -> Field {
    field(name, kind, Need::Nullable)
}

const fn or(name: &'static str, kind: Kind, default: &'static str) -> Field {
    field(name, kind, Need::Default(default))
}

const fn secret(field: Field) -> Field {
    Field { is_secret: true, ..field }
}

const fn address(field: Field) -> Field {
    Field { is_address: true, ..field }
}

/// Settings of all types: excluded and included event names. Null and an empty list are
/// no filter.
pub const COMMON: &[Field] =
    &[nullable("exclude_events", Kind::Texts), nullable("include_events", Kind::Texts)];

/// Codecs of JSON lines.
pub const LINE_CODECS: &[&str] = &["gzip", "brotli"];
/// Codecs of Parquet.
pub const PARQUET_CODECS: &[&str] = &["zstd", "lz4", "snappy", "gzip", "brotli"];

const COMPRESSION: Kind = Kind::Choice(PARQUET_CODECS);
const FILE_FORMAT: Kind = Kind::Choice(&["JSONLines", "Parquet"]);

/// All types of destinations, in the order of forms.
pub const ALL: &[DestinationType] = &[
    S3,
    AZURE_BLOB,
    GOOGLE_CLOUD_STORAGE,
    POSTGRES,
    REDSHIFT,
    SNOWFLAKE,
    BIG_QUERY,
    DATABRICKS,
    HTTP,
    LOCAL_DIRECTORY,
    NO_OP,
];

/// Their names, in the same order.
pub const NAMES: [&str; ALL.len()] = {
    let mut names = [""; ALL.len()];
    let mut at = 0;
    while at < ALL.len() {
        names[at] = ALL[at].name;
        at += 1;
    }
    names
};

const S3: DestinationType = DestinationType {
    name: "S3",
    label: "S3 and compatible storage",
    fields: &[
        required("bucket_name", Kind::HostPart),
        required("region", Kind::HostPart),
        required("prefix", TEXT),
        address(secret(nullable("aws_access_key_id", TEXT))),
        secret(nullable("aws_secret_access_key", TEXT)),
        nullable("compression", COMPRESSION),
        or("file_format", FILE_FORMAT, "\"JSONLines\""),
        nullable("encryption", Kind::Choice(&["AES256", "aws:kms"])),
        nullable("kms_key_id", TEXT),
        address(nullable("endpoint_url", Kind::Url)),
        nullable("max_file_size_mb", FILE_SIZE),
        or("use_virtual_style_addressing", Kind::Boolean, "false"),
    ],
};

const AZURE_BLOB: DestinationType = DestinationType {
    name: "AzureBlob",
    label: "Azure Blob Storage",
    fields: &[
        required("container_name", TEXT),
        secret(required("connection_string", LONG)),
        or("prefix", MAY_BE_EMPTY, "\"\""),
        nullable("compression", COMPRESSION),
        or("file_format", FILE_FORMAT, "\"JSONLines\""),
        nullable("max_file_size_mb", FILE_SIZE),
    ],
};

const GOOGLE_CLOUD_STORAGE: DestinationType = DestinationType {
    name: "GoogleCloudStorage",
    label: "Google Cloud Storage",
    fields: &[
        required("bucket_name", Kind::HostPart),
        // The key file of Google, as text.
        secret(required("service_account_key", LONG)),
        or("prefix", MAY_BE_EMPTY, "\"\""),
        nullable("compression", COMPRESSION),
        or("file_format", FILE_FORMAT, "\"JSONLines\""),
        address(nullable("endpoint_url", Kind::Url)),
        nullable("max_file_size_mb", FILE_SIZE),
    ],
};

const POSTGRES: DestinationType = DestinationType {
    name: "Postgres",
    label: "PostgreSQL",
    fields: &[
        address(required("host", Kind::Host)),
        address(or("port", PORT, "5432")),
        required("database", TEXT),
        address(secret(required("user", TEXT))),
        secret(required("password", TEXT)),
        or("schema", Kind::Identifier, "\"public\""),
        or("table_name", Kind::Identifier, "\"events\""),
        address(or("has_self_signed_cert", Kind::Boolean, "false")),
    ],
};

const REDSHIFT: DestinationType = DestinationType {
    name: "Redshift",
    label: "Amazon Redshift",
    fields: &[
        address(required("host", Kind::Host)),
        address(or("port", PORT, "5439")),
        required("database", TEXT),
        address(secret(required("user", TEXT))),
        secret(required("password", TEXT)),
        or("schema", Kind::Identifier, "\"public\""),
        or("table_name", Kind::Identifier, "\"events\""),
        or("properties_data_type", Kind::Choice(&["varchar", "super"]), "\"varchar\""),
        or("mode", Kind::Choice(&["INSERT", "COPY"]), "\"INSERT\""),
        nullable("copy_inputs", Kind::Object(COPY_INPUTS)),
    ],
};

const COPY_INPUTS: &[Field] = &[
    required("s3_bucket", Kind::HostPart),
    required("region_name", Kind::HostPart),
    or("s3_key_prefix", TEXT, "\"/\""),
    // The ARN of a role, or credentials.
    required("authorization", Kind::TextOrObject(AWS_CREDENTIALS)),
    required("bucket_credentials", Kind::Object(AWS_CREDENTIALS)),
];

const AWS_CREDENTIALS: &[Field] = &[
    address(secret(required("aws_access_key_id", TEXT))),
    secret(required("aws_secret_access_key", TEXT)),
];

const SNOWFLAKE: DestinationType = DestinationType {
    name: "Snowflake",
    label: "Snowflake",
    fields: &[
        address(required("account", Kind::HostPart)),
        required("database", TEXT),
        required("warehouse", TEXT),
        required("schema", TEXT),
        address(secret(required("user", TEXT))),
        or("authentication_type", Kind::Choice(&["password", "keypair"]), "\"password\""),
        secret(nullable("password", TEXT)),
        secret(nullable("private_key", LONG)),
        secret(nullable("private_key_passphrase", TEXT)),
        or("table_name", TEXT, "\"events\""),
        nullable("role", TEXT),
    ],
};

const BIG_QUERY: DestinationType = DestinationType {
    name: "BigQuery",
    label: "Google BigQuery",
    fields: &[
        required("project_id", TEXT),
        required("dataset_id", TEXT),
        or("table_id", TEXT, "\"events\""),
        secret(required("private_key", LONG)),
        secret(required("private_key_id", TEXT)),
        address(secret(required("token_uri", Kind::Url))),
        address(secret(required("client_email", TEXT))),
        or("use_json_type", Kind::Boolean, "false"),
    ],
};

const DATABRICKS: DestinationType = DestinationType {
    name: "Databricks",
    label: "Databricks",
    fields: &[
        address(required("server_hostname", Kind::Host)),
        required("http_path", TEXT),
        address(required("client_id", TEXT)),
        secret(required("client_secret", TEXT)),
        required("catalog", TEXT),
        required("schema", TEXT),
        required("table_name", TEXT),
        or("use_variant_type", Kind::Boolean, "true"),
        or("use_automatic_schema_evolution", Kind::Boolean, "true"),
    ],
};

const HTTP: DestinationType = DestinationType {
    name: "HTTP",
    label: "HTTP (another instance)",
    fields: &[address(required("url", Kind::Url)), secret(required("token", TEXT))],
};

const LOCAL_DIRECTORY: DestinationType = DestinationType {
    name: "LocalDirectory",
    label: "Directory on the server",
    fields: &[
        required("path", TEXT),
        nullable("compression", COMPRESSION),
        or("file_format", FILE_FORMAT, "\"JSONLines\""),
        nullable("max_file_size_mb", FILE_SIZE),
    ],
};

const NO_OP: DestinationType = DestinationType {
    name: "NoOp",
    label: "Nowhere (for trying a schedule)",
    fields: &[or("arg", MAY_BE_EMPTY, "\"\"")],
};

impl DestinationType {
    /// The type with this name; names are case-sensitive.
    pub fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|kind| kind.name == name)
    }

    /// Its settings and the common ones.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().chain(COMMON)
    }
}
