use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;
use crate::config::Settings;

/// A temporary directory with a data directory in it.
struct Fixture {
    root: TempDir,
    config: Config,
}

impl Fixture {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let settings = Settings { data: Some(data), ..Settings::default() };
        Self { config: settings.over(Settings::default()), root }
    }

    fn named(mut self, path: &str) -> Self {
        self.config.master_key_file = self.root.path().join(path);
        self
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        let path = self.root.path().join(path);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn find(&self) -> Result<Option<MasterKey>, String> {
        KeyFile::of(&self.config).unwrap().unwrap().find().map_err(|error| error.to_string())
    }
}

#[test]
fn the_key_is_made_beside_the_data_for_its_owner_alone() {
    let fixture = Fixture::new();
    assert!(fixture.find().unwrap().is_none());
    let file = KeyFile::of(&fixture.config).unwrap().unwrap();
    let made = file.make().unwrap();
    let path = fixture.root.path().join("data.key");
    assert_eq!(file.path, path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fixture.find().unwrap().unwrap().id(), made.id());
    // The second call uses the existing key.
    assert_eq!(file.make().unwrap().id(), made.id());
}

#[test]
fn files_that_give_the_key_away_are_refused() {
    let key = "ab".repeat(32);
    let fixture = Fixture::new().named("key");
    fixture.write("key", &key, 0o640);
    let location = fixture.find().unwrap_err();
    assert!(location.contains("chmod 600") && !location.contains(&key), "{location}");
    fixture.write("key", &key, 0o400);
    assert!(fixture.find().unwrap().is_some());

    let fixture = Fixture::new().named("data/key");
    fixture.write("data/key", &key, 0o600);
    assert!(fixture.find().unwrap_err().contains("in the data directory"));
    let fixture = Fixture::new().named("data/../data/key");
    assert!(fixture.find().unwrap_err().contains("in the data directory"));
}

#[test]
fn a_file_that_the_operator_named_must_be_there_and_be_a_key() {
    let fixture = Fixture::new().named("key");
    assert!(fixture.find().unwrap_err().contains("is not there"));
    fixture.write("key", "hunter2", 0o600);
    let location = fixture.find().unwrap_err();
    assert!(
        location.contains("64 hexadecimal digits") && !location.contains("hunter2"),
        "{location}"
    );
    std::fs::remove_file(fixture.root.path().join("key")).unwrap();
    std::fs::create_dir(fixture.root.path().join("key")).unwrap();
    assert!(fixture.find().unwrap_err().contains("is a directory"));
}

#[test]
fn the_variable_holds_a_key() {
    let read = |text: &str| KeyVariable::read(OsStr::new(text)).map_err(|error| error.to_string());
    let key = read(&"ab".repeat(32)).unwrap().find().unwrap().unwrap();
    assert_eq!(key.id(), MasterKey::new([0xab; 32]).id());
    let location = read("hunter2").err().unwrap();
    assert!(location.starts_with(VARIABLE) && !location.contains("hunter2"), "{location}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_replaces_the_old_one() {
    let fixture = Fixture::new();
    let file = KeyFile::of(&fixture.config).unwrap().unwrap();
    let old = file.make().unwrap();
    let location = rotate(&fixture.config, None).await.unwrap();
    assert!(location.contains("data.key") && location.contains(&old.id()), "{location}");
    let new = file.read().unwrap().unwrap();
    assert_ne!(new.id(), old.id());
    assert_eq!(file.with_suffix(&format!(".{}", old.id())).read().unwrap().unwrap().id(), old.id());
    assert!(!file.with_suffix(".new").path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_may_be_kept_elsewhere() {
    let fixture = Fixture::new();
    let elsewhere = fixture.root.path().join("elsewhere");
    let location = rotate(&fixture.config, Some(elsewhere.clone())).await.unwrap();
    assert!(location.contains("set master_key_file") && elsewhere.is_file(), "{location}");

    let fixture = Fixture::new();
    let file = KeyFile::of(&fixture.config).unwrap().unwrap();
    file.make().unwrap();
    let same = rotate(&fixture.config, Some(file.path.clone())).await;
    assert!(matches!(same, Err(RotateError::Same)), "{same:?}");

    let fixture = Fixture::new();
    let inside = rotate(&fixture.config, Some(fixture.config.data.join("key"))).await;
    assert!(matches!(inside, Err(RotateError::Key(_))), "{inside:?}");
}
