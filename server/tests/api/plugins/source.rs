//! GET `…/{group}/{id}/source/`.

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn files_are_returned_beside_the_record() {
    each_group(async |fixture| {
        let (plugin, path) = fixture.made(&json!({"name": "Tea"})).await;
        let source = format!("{path}source/");
        let answer = fixture.owner.get(&source).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        assert_eq!(rest(&answer.json(), &plugin), json!({"source_errors": {}}));
        assert_eq!(fixture.owner.get(&format!("{source}?raw=true")).await.json(), json!({}));

        let files = json!({"tea.txt": " let x = 1\n", "plugin.json": "nonsense"});
        fixture.owner.patch(&format!("{path}update_source/"), &files).await;
        let answer = fixture.owner.get(&source).await.json();
        let rest = rest(&answer, &plugin);
        assert_eq!(rest["tea.txt"], " let x = 1\n");
        assert_eq!(rest["plugin.json"], "nonsense");
        assert!(rest["source_errors"]["plugin.json"].is_string(), "{rest}");
        let raw = fixture.owner.get(&format!("{source}?raw=true")).await.json();
        assert_eq!(raw, files);
    })
    .await;
}
