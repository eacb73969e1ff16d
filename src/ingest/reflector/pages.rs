//! A whole list of one kind, read in pages.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::decode::{self, Item, Page, Reading};
use super::super::deliver;
use super::Failure;
use super::request::{Source, is_expired};
use crate::clock::Clock;

/// Objects a page. `client-go/tools/pager/pager.go#defaultPageSize @v1.36.3`.
pub(in super::super) const PAGE_SIZE: u32 = 500;

/// Who is asked for what.
pub(in super::super) struct Pages<'a, K> {
    pub(in super::super) client: &'a kube::Client,
    pub(in super::super) source: &'a Source,
    pub(in super::super) reading: &'a Reading<K>,
    /// How long a page may take; for ever if none.
    pub(in super::super) patience: Option<(&'a Clock, Duration)>,
}

/// All objects of a kind.
pub(in super::super) struct Listed<K> {
    /// By their keys.
    pub(in super::super) items: BTreeMap<String, Item<K>>,
    /// The version as of which they are this.
    pub(in super::super) version: String,
    /// Whether there were several pages.
    pub(in super::super) paginated: bool,
}

impl<K: kube::Resource> Pages<'_, K> {
    /// All pages; `counted` is told how many objects each had. Pages that the server has forgotten meanwhile are read again
    /// in one. Follows `client-go/tools/pager/pager.go#ListPager.list @v1.36.3`.
    pub(in super::super) async fn all(
        &self,
        version: &str,
        limit: Option<u32>,
        counted: &(dyn Fn(usize) + Send + Sync),
    ) -> Result<Listed<K>, Failure> {
        let mut items = BTreeMap::new();
        let mut paginated = false;
        let mut page = self.page(version, limit, None).await?;
        loop {
            counted(page.items.len());
            page.items.drain(..).for_each(|item| deliver::collect(&mut items, item));
            let Some(next) = page.next.take() else { return Ok(Listed { items, version: page.version, paginated }) };
            paginated = true;
            page = match self.page("", limit, Some(&next)).await {
                Err(Failure::Request(error)) if is_expired(&error) => {
                    items.clear();
                    self.page(version, None, None).await?
                }
                outcome => outcome?,
            };
        }
    }

    async fn page(&self, version: &str, limit: Option<u32>, next: Option<&str>) -> Result<Page<K>, Failure> {
        let asking = self.source.list(version, limit, next).text(self.client);
        let text = match self.patience {
            None => asking.await?,
            Some((clock, patience)) => {
                let answer = clock.timeout_at(clock.mono() + patience, asking).await;
                answer.map_err(|_| Failure::Silent(patience))??
            }
        };
        Ok(decode::page(&text, self.reading)?)
    }
}
