-- Keys of this installation, by what each is for. Only the owner of the schema can read them; they
-- are in its backups.
--
-- works with: 0001

create table mainspring.installation_keys (
    name text primary key,
    key bytea not null
);

-- `content` makes the digests by which jobs of equal content are recognized, `receipts` the tokens
-- by which a worker proves that a receipt is its own. Random UUIDs are the only strong random bytes
-- that PostgreSQL has without an extension; each has 122 random bits.
insert into mainspring.installation_keys (name, key)
select purpose, sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                       || uuid_send(gen_random_uuid()))
             || sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
                       || uuid_send(gen_random_uuid()))
  from unnest(array['content', 'receipts']) as purpose;
