-- Errors carry SQLSTATEs of class MS; domain/errors knows them by the same number.

create or replace function mainspring.refuse(code text, message text, detail jsonb default '{}')
returns void
language plpgsql
as $$
begin
    raise exception using errcode = code, message = message, detail = detail::text;
end
$$;

create or replace function mainspring.check_text(option text, value text)
returns void
language plpgsql immutable
as $$
begin
    if length(value) not between 1 and 500 then
        perform mainspring.refuse('MS003',
            option || case when value = '' then ' must not be empty'
                           else ' must be 500 characters at most' end,
            jsonb_build_object('option', option));
    end if;
end
$$;
