-- Definitions of the kind remote: their jobs are run by programs that claim them over the API.
-- Programs of the release before do not know the kind, so create such definitions once every
-- process runs this release.
--
-- works with: 0001

alter table mainspring.definitions
    drop constraint definitions_kind_check,
    add constraint definitions_kind_check check (kind in ('python', 'sql', 'command', 'remote'));
