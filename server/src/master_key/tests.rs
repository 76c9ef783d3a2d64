use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::*;
use crate::config::Settings;

/// A temporary directory with a data directory in it.
struct Place {
    root: TempDir,
    config: Config,
}

impl Place {
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
    let place = Place::new();
    assert!(place.find().unwrap().is_none());
    let file = KeyFile::of(&place.config).unwrap().unwrap();
    let made = file.make().unwrap();
    let path = place.root.path().join("data.key");
    assert_eq!(file.path, path);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(place.find().unwrap().unwrap().id(), made.id());
    // The second call uses the existing key.
    assert_eq!(file.make().unwrap().id(), made.id());
}

#[test]
fn files_that_give_the_key_away_are_refused() {
    let key = "ab".repeat(32);
    let place = Place::new().named("key");
    place.write("key", &key, 0o640);
    let told = place.find().unwrap_err();
    assert!(told.contains("chmod 600") && !told.contains(&key), "{told}");
    place.write("key", &key, 0o400);
    assert!(place.find().unwrap().is_some());

    let place = Place::new().named("data/key");
    place.write("data/key", &key, 0o600);
    assert!(place.find().unwrap_err().contains("in the data directory"));
    let place = Place::new().named("data/../data/key");
    assert!(place.find().unwrap_err().contains("in the data directory"));
}

#[test]
fn a_file_that_the_operator_named_must_be_there_and_be_a_key() {
    let place = Place::new().named("key");
    assert!(place.find().unwrap_err().contains("is not there"));
    place.write("key", "hunter2", 0o600);
    let told = place.find().unwrap_err();
    assert!(told.contains("64 hexadecimal digits") && !told.contains("hunter2"), "{told}");
    std::fs::remove_file(place.root.path().join("key")).unwrap();
    std::fs::create_dir(place.root.path().join("key")).unwrap();
    assert!(place.find().unwrap_err().contains("is a directory"));
}

#[test]
fn the_variable_holds_a_key() {
    let read = |text: &str| KeyVariable::read(OsStr::new(text)).map_err(|error| error.to_string());
    let key = read(&"ab".repeat(32)).unwrap().find().unwrap().unwrap();
    assert_eq!(key.id(), MasterKey::new([0xab; 32]).id());
    let told = read("hunter2").err().unwrap();
    assert!(told.starts_with(VARIABLE) && !told.contains("hunter2"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_takes_the_place_of_the_old_one() {
    let place = Place::new();
    let file = KeyFile::of(&place.config).unwrap().unwrap();
    let old = file.make().unwrap();
    let told = rotate(&place.config, None).await.unwrap();
    assert!(told.contains("data.key") && told.contains(&old.id()), "{told}");
    let new = file.read().unwrap().unwrap();
    assert_ne!(new.id(), old.id());
    assert_eq!(file.with_suffix(&format!(".{}", old.id())).read().unwrap().unwrap().id(), old.id());
    assert!(!file.with_suffix(".new").path.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_may_be_kept_elsewhere() {
    let place = Place::new();
    let elsewhere = place.root.path().join("elsewhere");
    let told = rotate(&place.config, Some(elsewhere.clone())).await.unwrap();
    assert!(told.contains("set master_key_file") && elsewhere.is_file(), "{told}");

    let place = Place::new();
    let file = KeyFile::of(&place.config).unwrap().unwrap();
    file.make().unwrap();
    let same = rotate(&place.config, Some(file.path.clone())).await;
    assert!(matches!(same, Err(RotateError::Same)), "{same:?}");

    let place = Place::new();
    let inside = rotate(&place.config, Some(place.config.data.join("key"))).await;
    assert!(matches!(inside, Err(RotateError::Key(_))), "{inside:?}");
}
