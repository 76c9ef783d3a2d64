//! GET `…/{group}/{id}/source/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn files_stand_beside_the_record() {
    each_group(async |place| {
        let (plugin, path) = place.made(&json!({"name": "Tea"})).await;
        let source = format!("{path}source/");
        let answer = place.owner.get(&source).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(rest(&answer.json(), &plugin), json!({"source_errors": {}}));
        assert_eq!(place.owner.get(&format!("{source}?raw=true")).await.json(), json!({}));

        let files = json!({"tea.txt": " let x = 1\n", "plugin.json": "nonsense"});
        place.owner.patch(&format!("{path}update_source/"), &files).await;
        let answer = place.owner.get(&source).await.json();
        let rest = rest(&answer, &plugin);
        assert_eq!(rest["tea.txt"], " let x = 1\n");
        assert_eq!(rest["plugin.json"], "nonsense");
        assert!(rest["source_errors"]["plugin.json"].is_string(), "{rest}");
        let raw = place.owner.get(&format!("{source}?raw=true")).await.json();
        assert_eq!(raw, files);
    })
    .await;
}
