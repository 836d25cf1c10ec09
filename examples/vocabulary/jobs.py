"""Vocabulary maintenance of a knowledge graph: look often, which is cheap, and work seldom.

`category_refresh` asks a launcher whether a model made up relationship types that have no
category yet. `vocab_consolidation` needs no class: it watches the share of types that are not
in use, starts above 20 % and goes on until it is below 10 %.
"""

from typing import Any

import psycopg

from mainspring import Context, Launcher, Mainspring

app = Mainspring()

INACTIVE_SHARE = """
select case when active > 50 then inactive::float / active else 0 end from vocabulary_figures
"""
NEAREST_CATEGORY = """
update relationship_types as fresh
   set category = coalesce((
           select known.category from relationship_types as known
            where known.category <> fresh.category and shared_words(known.name, fresh.name) > 0
            order by shared_words(known.name, fresh.name) desc, known.name limit 1), 'general')
 where fresh.category = %s
"""
MERGE = """
with merged as (
    select old.name as name,
           (select kept.name from relationship_types as kept where kept.is_active
             order by kept.category = old.category desc, kept.name limit 1) as into_name
      from relationship_types as old where not old.is_active order by old.name limit %s
), moved as (
    update edges set type = merged.into_name from merged where edges.type = merged.name
)
delete from relationship_types as old using merged where old.name = merged.name
"""


class CategoryRefreshLauncher(Launcher):
    """Runs when there are types without a proper category."""

    def check_conditions(self) -> bool:
        with psycopg.connect(app.database.url) as connection:
            found = connection.execute(
                "select from relationship_types where category = 'llm_generated'"
            ).fetchone()
        self.reason = "every type has a category"
        return found is not None

    def prepare_job_data(self) -> dict[str, Any]:
        return {"category": "llm_generated"}


@app.schedule("0 */6 * * *", name="category_refresh", launcher=CategoryRefreshLauncher)
@app.job(key="vocab_refresh")
async def refresh_categories(ctx: Context, category: str) -> dict[str, int]:
    """Give the types of a category that of the type they share most words with."""
    async with ctx.transaction() as connection:
        done = await connection.execute(NEAREST_CATEGORY, (category,))
    return {"refreshed": done.rowcount}


@app.schedule(
    "0 */12 * * *",
    name="vocab_consolidation",
    gauge_sql=INACTIVE_SHARE,
    gauge_upper=0.20,
    gauge_lower=0.10,
    gauge_bounds="exclusive",
)
@app.job(key="vocab_consolidate")
async def consolidate(ctx: Context, most: int = 5) -> dict[str, int]:
    """Merge types that are not in use into one that is, a few at a time."""
    async with ctx.transaction() as connection:
        done = await connection.execute(MERGE, (most,))
    return {"merged": done.rowcount}
