-- Keys of this installation, by what each is for. Only the owner of the schema can read them; they
-- are in its backups.
--
-- works with: 0001

create table if not exists mainspring.installation_keys (
    name text primary key,
    key bytea not null
);

-- Makes the digests by which jobs of equal content are recognised. Random UUIDs are the only strong
-- random bytes that PostgreSQL has without an extension; each has 122 random bits.
insert into mainspring.installation_keys (name, key)
select 'content', sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                         || uuid_send(gen_random_uuid()))
               || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                         || uuid_send(gen_random_uuid()))
    on conflict do nothing;
