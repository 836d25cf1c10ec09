-- A console is shown by a command that was started with the database's own credentials: it belongs
-- to nobody, and ends with the command.

alter table mainspring.tokens
    drop constraint tokens_kind_check,
    drop constraint tokens_of_people,
    add constraint tokens_kind_check check (kind in ('token', 'session', 'login', 'console')),
    add constraint tokens_of_people check (kind in ('token', 'console') or person is not null);
