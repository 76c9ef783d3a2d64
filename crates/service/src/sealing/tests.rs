use std::sync::{Arc, Mutex};

use uuid::Uuid;
use weir_store::{Location, Settings};

use super::*;

/// A key source that keeps its key where tests can read it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Option<[u8; 32]>>>);

impl KeySource for Kept {
    fn find(&self) -> Result<Option<MasterKey>, KeyError> {
        Ok(self.0.lock().unwrap().map(MasterKey::new))
    }

    fn make(&self) -> Result<MasterKey, KeyError> {
        *self.0.lock().unwrap() = Some([7; 32]);
        Ok(MasterKey::new([7; 32]))
    }

    fn location(&self) -> String {
        "the test".to_owned()
    }
}

async fn store() -> Store {
    Store::open(&Location::Memory, Settings::default()).await.unwrap()
}

fn organization(number: u128) -> OrganizationId {
    OrganizationId(Uuid::from_u128(number))
}

fn location(record: u32, number: u128) -> SealedLocation {
    SealedLocation::new(SealedField::BatchExportSecrets, record, organization(number))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_text_opens_only_at_its_location() {
    let sealer = Sealer::start(store().await, Box::new(EphemeralKey)).await.unwrap();
    let sealed = sealer.seal(&location(1, 1), b"hunter2").await.unwrap();
    assert!(!sealed.contains(&secrets_hex("hunter2")) && !sealed.contains("hunter2"));
    assert_eq!(sealer.open(&location(1, 1), &sealed).unwrap().bytes(), b"hunter2");
    for other in [location(2, 1), location(1, 2)] {
        assert!(sealer.open(&other, &sealed).is_err(), "{other:?}");
    }
    let mut broken = sealed.clone().into_bytes();
    let last = broken.last_mut().unwrap();
    *last = if *last == b'0' { b'1' } else { b'0' };
    assert!(sealer.open(&location(1, 1), std::str::from_utf8(&broken).unwrap()).is_err());
    for other in ["", "w1.", &sealed[..40], "hunter2"] {
        assert!(sealer.open(&location(1, 1), other).is_err(), "{other}");
    }
    // Sealing the same secret again gives another text.
    assert_ne!(sealed, sealer.seal(&location(1, 1), b"hunter2").await.unwrap());
}

fn secrets_hex(text: &str) -> String {
    crate::secrets::hex(text.as_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_made_at_first_need_and_asked_for_afterwards() {
    let (store, kept) = (store().await, Kept::default());
    let start = || Sealer::start(store.clone(), Box::new(kept.clone()));
    let sealer = start().await.unwrap();
    assert!(kept.find().unwrap().is_none(), "nothing was sealed");
    let sealed = sealer.seal(&location(1, 1), b"x").await.unwrap();
    assert!(kept.find().unwrap().is_some());
    assert_eq!(start().await.unwrap().open(&location(1, 1), &sealed).unwrap().bytes(), b"x");

    *kept.0.lock().unwrap() = Some([8; 32]);
    assert!(
        matches!(start().await, Err(KeyError::Wrong { location, .. }) if location == "the test")
    );
    *kept.0.lock().unwrap() = None;
    assert!(matches!(start().await, Err(KeyError::Missing { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_changes_while_nothing_is_sealed_does_no_harm() {
    let (store, kept) = (store().await, Kept::default());
    let start = || Sealer::start(store.clone(), Box::new(kept.clone()));
    *kept.0.lock().unwrap() = Some([1; 32]);
    let early = start().await.unwrap();
    *kept.0.lock().unwrap() = Some([2; 32]);
    start().await.unwrap().seal(&location(1, 1), b"x").await.unwrap();
    *kept.0.lock().unwrap() = Some([1; 32]);
    // Otherwise two keys would be in use.
    assert!(matches!(early.seal(&location(1, 1), b"x").await, Err(Error::Internal(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_rotation_is_reported() {
    let (store, kept) = (store().await, Kept::default());
    let start = || Sealer::start(store.clone(), Box::new(kept.clone()));
    start().await.unwrap().seal(&location(1, 1), b"x").await.unwrap();
    let next = MasterKey::new([9; 32]);
    rows::begin_rotation(&store, &next.id()).await.unwrap();
    assert!(matches!(start().await, Err(KeyError::Unfinished)));
    let from = kept.find().unwrap();
    let third = MasterKey::new([10; 32]);
    let outcome = rotate(&store, from.clone(), kept.location(), third).await;
    assert!(matches!(outcome, Err(RotationError::Elsewhere(_))), "{outcome:?}");
    let wrong = Some(MasterKey::new([11; 32]));
    let outcome = rotate(&store, wrong, kept.location(), next.clone()).await;
    assert!(matches!(outcome, Err(RotationError::Key(KeyError::Wrong { .. }))), "{outcome:?}");
    assert_eq!(rotate(&store, from, kept.location(), next.clone()).await.unwrap(), 0);
    *kept.0.lock().unwrap() = Some([9; 32]);
    start().await.unwrap();
    // A second rotation changes nothing, and does not need the old key.
    assert_eq!(rotate(&store, None, kept.location(), next).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nothing_is_sealed() {
    let sealer = Sealer::without_key(store().await);
    assert!(sealer.seal(&location(1, 1), b"x").await.is_err());
    assert!(sealer.open(&location(1, 1), "w1.").is_err());
}

#[test]
fn keys_are_read_in_three_forms() {
    let bytes: [u8; 32] = std::array::from_fn(|at| u8::try_from(at * 8).unwrap());
    let key = MasterKey::new(bytes);
    let base64 = "AAgQGCAoMDhASFBYYGhweICIkJigqLC4wMjQ2ODo8Pg=";
    for written in [
        key.written().as_bytes(),
        format!(" {}\n", key.written().to_uppercase()).as_bytes(),
        base64.as_bytes(),
        format!("{}\n", base64.trim_end_matches('=')).as_bytes(),
        &bytes,
    ] {
        assert_eq!(MasterKey::parse(written).unwrap().id(), key.id());
    }
    for bad in [&b""[..], b"secret", &[1; 31], &[1; 33], &[b'g'; 64], &[b'!'; 43]] {
        assert_eq!(MasterKey::parse(bad).err(), Some(BadKey));
    }
    assert_eq!(key.id().len(), 16);
    assert_ne!(key.id(), MasterKey::random().unwrap().id());
    assert_eq!(format!("{key:?}"), "MasterKey(..)");
}
