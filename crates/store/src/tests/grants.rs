//! Grants for good: found by their exact text, listed in order, revoked once.

use transcript::Millis;

use super::open;
use crate::Grant;

fn grant(id: &str, covers: &str, at: i64) -> Grant {
    Grant { id: id.to_owned(), covers: covers.to_owned(), at: Millis(at) }
}

#[tokio::test]
async fn a_grant_holds_for_its_words_and_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let granted = "shell: make 'test'; -- \u{e4}";
    {
        let store = open(dir.path());
        assert!(!store.is_granted(granted).await.unwrap());
        store.add_grant(grant("g", granted, 1)).await.unwrap();
        store.close().await;
    }
    let store = open(dir.path());
    assert!(store.is_granted(granted).await.unwrap());
    for other in ["shell", "shell: make", "SHELL: make 'test'; -- \u{e4}", "shell: %", "", "*"] {
        assert!(!store.is_granted(other).await.unwrap(), "{other}");
    }
}

#[tokio::test]
async fn grants_are_listed_oldest_first_and_granted_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for (id, covers, at) in [("a", "three", 3), ("c", "two", 1), ("b", "one", 1)] {
        store.add_grant(grant(id, covers, at)).await.unwrap();
    }
    // Somebody allows the same again.
    store.add_grant(grant("d", "three", 9)).await.unwrap();
    let expected = [grant("b", "one", 1), grant("c", "two", 1), grant("a", "three", 3)];
    assert_eq!(store.grants().await.unwrap(), expected);
}

#[tokio::test]
async fn what_is_taken_back_is_asked_about_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    store.add_grant(grant("a", "one", 1)).await.unwrap();
    store.add_grant(grant("b", "two", 2)).await.unwrap();
    assert!(!store.remove_grant("one").await.unwrap(), "it has another id");
    assert!(store.remove_grant("a").await.unwrap());
    assert!(!store.remove_grant("a").await.unwrap());
    assert!(!store.is_granted("one").await.unwrap() && store.is_granted("two").await.unwrap());
    assert_eq!(store.grants().await.unwrap(), [grant("b", "two", 2)]);
    store.add_grant(grant("c", "one", 3)).await.unwrap();
    assert!(store.is_granted("one").await.unwrap());
}
