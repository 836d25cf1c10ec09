-- Says more than before, which a function cannot be replaced for.

drop function if exists mainspring.grant_places(text[], text[], text[], integer);
