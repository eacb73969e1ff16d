//! Lists all objects of one kind in pages.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::decode::{self, Item, Page, Reading};
use super::super::deliver;
use super::Failure;
use super::request::{Source, is_expired};
use crate::clock::Clock;

/// Number of objects per page. `client-go/tools/pager/pager.go#defaultPageSize @v1.36.3`.
pub(in super::super) const PAGE_SIZE: u32 = 500;

/// The client and the kind of a paginated list.
pub(in super::super) struct Pages<'a, K> {
    pub(in super::super) client: &'a kube::Client,
    pub(in super::super) source: &'a Source,
    pub(in super::super) reading: &'a Reading<K>,
    /// Timeout of each page. `None` for no timeout.
    pub(in super::super) patience: Option<(&'a Clock, Duration)>,
}

/// All objects of a kind.
pub(in super::super) struct Listed<K> {
    /// The objects by their keys.
    pub(in super::super) items: BTreeMap<String, Item<K>>,
    /// The resource version of the list.
    pub(in super::super) version: String,
    /// Whether the list had several pages.
    pub(in super::super) paginated: bool,
}

impl<K: kube::Resource> Pages<'_, K> {
    /// Lists all pages, and calls `counted` with the number of objects on each. If the continue token expires, all objects are
    /// listed again without pages. Follows `client-go/tools/pager/pager.go#ListPager.list @v1.36.3`.
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
